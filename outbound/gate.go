package outbound

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/paidonce/paidonce/gateway"
)

const (
	// fullAfter is what a caller waits at least whose source has all its calls
	// under way.
	fullAfter = 250 * time.Millisecond

	// longestLine bounds how far ahead callers are told to come back.
	longestLine = time.Minute
)

// gates hold each source to its pace. There are as many as sources.
type gates struct {
	every time.Duration
	burst int
	slots int

	mu sync.Mutex
	m  map[string]*gate
}

func (g *gates) of(source string) *gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	one := g.m[source]
	if one == nil {
		one = &gate{every: g.every, slots: g.slots, bucket: rate.NewLimiter(rate.Every(g.every), g.burst)}
		g.m[source] = one
	}
	return one
}

// gate is one source's.
type gate struct {
	every  time.Duration
	bucket *rate.Limiter

	mu    sync.Mutex
	slots int           // calls that may begin
	until time.Duration // no call before: the gateway asked for it
	line  time.Duration // when the last of those who were turned away comes back
}

// enter takes a slot and a token. Else wait says when to come back: later for
// each, so that those who were turned away do not all return at once.
func (g *gate) enter(now time.Duration) (wait time.Duration, why string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until > now {
		return g.until - now, "it asked us to wait"
	}
	if g.slots == 0 {
		return g.queue(now, fullAfter), "the source has as many calls under way as it may"
	}
	at := time.Unix(0, 0).Add(now)
	if r := g.bucket.ReserveN(at, 1); r.DelayFrom(at) > 0 {
		delay := r.DelayFrom(at)
		r.CancelAt(at)
		return g.queue(now, delay), "the source has made as many calls as it may for now"
	}
	g.slots--
	return 0, ""
}

// queue puts a caller at the end of the line.
func (g *gate) queue(now, least time.Duration) time.Duration {
	g.line = min(max(g.line+g.every, now+least), now+longestLine)
	return g.line - now
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.slots++
}

// hold lets no call begin before the given time.
func (g *gate) hold(until time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = max(g.until, until)
}

// enter asks for permission to call host for a source. leave gives it back.
func (c *Client) enter(t target, s gateway.Source, host string) (leave func(), away *Error) {
	turnAway := func(after time.Duration, why string) (func(), *Error) {
		return nil, &Error{Kind: Retry, After: after, gateway: t.gateway, text: why}
	}
	endpoint := circuitOf(s, host)
	pass := c.circuits.Enter(endpoint)
	if pass == nil {
		// Wait is zero while the one probe is under way.
		return turnAway(max(c.circuits.Wait(endpoint), time.Second), "its host is left alone because it did not answer")
	}
	g := c.gates.of(s.ID)
	if wait, why := g.enter(c.opts.Elapsed()); why != "" {
		c.circuits.Leave(pass)
		return turnAway(wait, why)
	}
	return func() {
		g.leave()
		c.circuits.Leave(pass)
	}, nil
}
