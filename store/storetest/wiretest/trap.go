package wiretest

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// Trap stops one connection at one statement, once.
type Trap struct {
	proxy   *Proxy
	once    sync.Once
	sprung  chan struct{}
	verdict chan Verdict
}

// Trap lays a trap for the first statement that matches. The connection that runs into it stands there until
// [Trap.Pass] or [Trap.Cut], and to the server it looks alive for as long, even if the client dies.
func (p *Proxy) Trap(at Moment, match Match) *Trap {
	t := &Trap{proxy: p, sprung: make(chan struct{}), verdict: make(chan Verdict, 1)}
	p.Intercept(at, t.first(match), func(Statement) Verdict {
		close(t.sprung)
		select {
		case v := <-t.verdict:
			return v
		case <-p.closed:
			return Cut
		}
	})
	return t
}

// first matches once.
func (t *Trap) first(match Match) Match {
	return func(s Statement) bool {
		hit := false
		if match(s) {
			t.once.Do(func() { hit = true })
		}
		return hit
	}
}

// Sprung is closed when a connection stands in the trap.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// Wait waits until a connection stands in the trap. If none comes it ends the test, whose goroutine it must run in.
func (t *Trap) Wait() {
	t.proxy.tb.Helper()
	select {
	case <-t.sprung:
	case <-time.After(patience):
		var lines []string
		for _, s := range t.proxy.Seen() {
			lines = append(lines, fmt.Sprintf("%d: %.150s", s.Conn, strings.Join(strings.Fields(s.SQL), " ")))
		}
		t.proxy.tb.Fatalf("wiretest: nothing ran into the trap within %s; what passed:\n%s", patience, strings.Join(lines, "\n"))
	}
}

// Pass lets the connection that stands in the trap, or will, go on.
func (t *Trap) Pass() { t.decide(Pass) }

// Cut cuts the connection that stands in the trap, or will.
func (t *Trap) Cut() { t.decide(Cut) }

func (t *Trap) decide(v Verdict) {
	select {
	case t.verdict <- v:
	default: // decided already
	}
}
