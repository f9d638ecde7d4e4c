package torture_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// The schedules of this file are finer than those of TestSchedules: what is chosen is which statement reaches the server next, of all
// calls that are under way, and where a connection is cut. Nothing is predicted; what must hold is asked afterwards.

// score is one such schedule: calls with one key, and what comes next at each moment. When the choices are used up, whatever has
// the oldest connection goes on.
type score struct {
	Path    string
	Calls   []part
	Choices []int
}

// part is one call of a score.
type part struct {
	Body string
	Do   string
}

var scores = rapid.Custom(func(t *rapid.T) score {
	one := rapid.Custom(func(t *rapid.T) part {
		return part{
			Body: rapid.SampledFrom([]string{`{"amount":5000}`, `{"amount":5000}`, `{"amount":5000}`, `{"amount":5001}`}).Draw(t, "body"),
			Do:   rapid.SampledFrom([]string{"", "", doFail, doRefuse, doSweep}).Draw(t, "do"),
		}
	})
	return score{
		Path:    rapid.SampledFrom([]string{ordersPath, relaxedPath, chargesPath}).Draw(t, "path"),
		Calls:   rapid.SliceOfN(one, 2, 4).Draw(t, "calls"),
		Choices: rapid.SliceOfN(rapid.IntRange(0, 1<<12), 10, 80).Draw(t, "choices"),
	}
})

// doSweep is a part that is no call but a sweep.
const doSweep = "sweep"

// conductor holds every statement that comes through the wire until it is chosen.
type conductor struct {
	*stage
	server *server
	scores int
	aging  int // of 24 choices, how many are that the locks grow old

	mu     sync.Mutex
	free   bool             // nothing is held
	held   map[int]*waiting // by connection
	doomed map[int]bool     // connections whose next answer is lost
	live   int              // parts that are not over
	told   chan struct{}    // something has changed
}

// waiting is a statement that stands before the server.
type waiting struct {
	wiretest.Statement
	verdict chan wiretest.Verdict
}

func newConductor(t *testing.T, leaks bool) *conductor {
	t.Helper()
	c := &conductor{
		stage: newStage(t), free: true, aging: 2,
		held: map[int]*waiting{}, doomed: map[int]bool{}, told: make(chan struct{}, 1),
	}
	c.stopClock()
	var err error
	c.server, err = newServer(t.Context(), serverConfig{
		Database: c.wire.URL(), Desk: c.desk.URL, MaxConns: 12, Acquire: patience, Statement: patience, LockTimeout: lockTimeout, Leaks: leaks,
	}, t.Output())
	require.NoError(t, err)
	t.Cleanup(c.server.pool.Close)
	c.wire.Intercept(wiretest.Before, func(wiretest.Statement) bool { return true }, c.before)
	c.wire.Intercept(wiretest.After, c.isDoomed, func(wiretest.Statement) wiretest.Verdict { return wiretest.Cut })
	t.Cleanup(c.release)
	return c
}

// before has a statement wait until it is chosen.
func (c *conductor) before(s wiretest.Statement) wiretest.Verdict {
	w := &waiting{s, make(chan wiretest.Verdict, 1)}
	c.mu.Lock()
	if c.free {
		w.verdict <- wiretest.Pass
	} else {
		c.held[s.Conn] = w
	}
	c.mu.Unlock()
	c.tell()
	select {
	case v := <-w.verdict:
		return v
	case <-s.Ended: // on a busy machine, a client's own time-out may be faster than its turn
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.held[s.Conn] == w {
			delete(c.held, s.Conn)
		}
		c.tell()
		return wiretest.Cut
	}
}

func (c *conductor) isDoomed(s wiretest.Statement) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.doomed[s.Conn]
}

func (c *conductor) tell() {
	select {
	case c.told <- struct{}{}:
	default:
	}
}

// release lets everything pass until the next score.
func (c *conductor) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = true
	clear(c.doomed)
	for conn, w := range c.held {
		w.verdict <- wiretest.Pass
		delete(c.held, conn)
	}
}

// here sends a call of a score in this process.
func (c *conductor) here(path, key string, p part) reply {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(p.Body))
	r.Header.Set(idempotency.HeaderKey, key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Test-Caller", merchant)
	r.Header.Set(doHeader, p.Do)
	w := httptest.NewRecorder()
	c.server.ServeHTTP(w, r)
	return reply{code: w.Code, header: w.Header(), body: w.Body.String()}
}

// performance is one score that is being played.
type performance struct {
	*conductor
	score
	key     string
	waiting []part // not begun
	asked   []part // begun, in the order of replies
	replies []reply
	lives   int // how often the key's time has ended, and one
	passes  int
	log     strings.Builder
}

// perform plays a score, and returns what does not hold then, with what was done.
func (c *conductor) perform(s score) (err error) {
	c.scores++
	p := &performance{conductor: c, score: s, key: fmt.Sprintf("score-%d", c.scores), waiting: s.Calls, lives: 1}
	c.mu.Lock()
	c.free = false
	c.mu.Unlock()
	defer c.release()
	charges, _ := c.desk.charged()
	if err = p.play(); err == nil {
		c.release()
		err = p.verify(charges)
	}
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, p.log.String())
	}
	return err
}

func (p *performance) note(format string, args ...any) { fmt.Fprintf(&p.log, format+"\n", args...) }

// play goes from one choice to the next, until every call is answered.
func (p *performance) play() error {
	for i := 0; ; i++ {
		if err := p.rest(); err != nil {
			return err
		}
		choice := -1
		if i < len(p.Choices) {
			// Small numbers are drawn more often than others, and should not mean the same thing each time.
			choice = int(rand.NewPCG(uint64(i), uint64(p.Choices[i])).Uint64() >> 40)
		}
		held := p.standing()
		if len(held) == 0 && len(p.waiting) == 0 {
			return nil
		}
		p.choose(choice, held)
	}
}

// choose does what a choice stands for; -1: what is next in line.
func (p *performance) choose(choice int, held []*waiting) {
	what, which := choice%24, choice/24
	switch {
	case what < p.aging && p.passes < 3 && len(held) > 0:
		p.passes++
		p.note("the locks grow old")
		p.pass(lockTimeout)
		return
	case what == 21 && p.lives < 2 && len(held) > 0:
		p.lives++
		p.note("the key's time is over")
		p.pass(48 * time.Hour)
		return
	case choice < 0:
		which = 0
	}
	which %= len(held) + min(1, len(p.waiting))
	if which == len(held) {
		p.begin()
		return
	}
	w, verdict, how := held[which], wiretest.Pass, "pass"
	switch what {
	case 22:
		verdict, how = wiretest.Cut, "cut before"
	case 23:
		how = "cut after"
	}
	p.note("%s %d: %.60s", how, w.Conn, strings.Join(strings.Fields(w.SQL), " "))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.doomed[w.Conn] = what == 23
	delete(p.held, w.Conn)
	w.verdict <- verdict
}

// begin begins the next part.
func (p *performance) begin() {
	part, i := p.waiting[0], len(p.asked)
	p.waiting, p.asked = p.waiting[1:], append(p.asked, part)
	p.note("call %d: %+v", i, part)
	p.mu.Lock()
	p.live++
	p.replies = append(p.replies, reply{})
	p.mu.Unlock()
	go func() {
		var r reply
		if part.Do == doSweep {
			_, r.err = p.server.store.Sweep(context.Background())
		} else {
			r = p.here(p.Path, p.key, part)
		}
		p.mu.Lock()
		p.replies[i] = r
		p.live--
		p.mu.Unlock()
		p.tell()
	}()
}

// standing returns the statements that stand before the server, by the age of their connections.
func (p *performance) standing() (all []*waiting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range slices.Sorted(maps.Keys(p.held)) {
		all = append(all, p.held[conn])
	}
	return all
}

// rest waits until nothing moves: every part that is not over has a statement before the server, or is waited for by the server
// itself, for the lock of another one.
func (p *performance) rest() error {
	deadline := time.After(patience)
	for {
		quiet, err := p.quiet()
		if quiet || err != nil {
			return err
		}
		select {
		case <-p.told:
		case <-time.After(tick):
		case <-deadline:
			return errors.New("it does not come to rest, or calls wait for each other for ever")
		}
	}
}

func (p *performance) quiet() (bool, error) {
	rows, _ := p.direct.Query(context.Background(), `
		SELECT pid, cardinality(pg_blocking_pids(pid)) > 0 AS blocked, wait_event IS NOT DISTINCT FROM 'ClientRead' AS silent
		FROM pg_stat_activity WHERE application_name = $1`, p.name)
	sessions, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		PID             uint32
		Blocked, Silent bool
	}])
	if err != nil {
		return false, err
	}
	if len(sessions) > p.wire.Connections() {
		return false, nil // one whose client is gone has not noticed it yet, and may hold a lock
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := map[uint32]bool{}
	for _, w := range p.held {
		at[w.PID] = true
	}
	for _, s := range sessions {
		switch {
		case s.Blocked:
			at[s.PID] = true
		case at[s.PID] && !s.Silent:
			return false, nil // it still works on what came before
		}
	}
	nothingToChoose := len(p.held) == 0 && len(p.waiting) == 0
	return len(at) == p.live && (p.live == 0 || !nothingToChoose), nil
}

// verify asks what must hold whatever has happened.
func (p *performance) verify(charges int) error {
	answers := map[string]bool{} // of all who heard success, or a refusal that is kept
	executed := 0
	look := func(who string, q part, r reply) error {
		p.note("%s: %s", who, r.kind())
		switch kind := r.kind(); kind {
		case "201*", "201R", "422*", "422R":
			var doc struct{ To json.RawMessage }
			if err := json.Unmarshal([]byte(r.body), &doc); err != nil || string(doc.To) != q.Body {
				return fmt.Errorf("%s asked %s and got the answer to %s", who, q.Body, doc.To)
			}
			if kind == "201*" {
				executed++
			}
			if kind != "422*" {
				answers[r.body] = true
			}
		case "422":
			if !strings.Contains(r.body, idempotency.CodeKeyReused) {
				return fmt.Errorf("%s got %s", who, r.body)
			}
		case "409", "503", "503*", "409*":
			if r.header.Get("Retry-After") == "" {
				return fmt.Errorf("%s is not told when to come back: %s", who, r.body)
			}
		case "500*":
			if !strings.HasPrefix(r.body, "the handler fails") {
				return fmt.Errorf("%s got %s", who, r.body)
			}
		default:
			return fmt.Errorf("%s got %d %s", who, r.code, r.body)
		}
		return nil
	}
	for i, r := range p.replies {
		if r.err != nil {
			p.note("sweep %d: %v", i, r.err)
		} else if p.asked[i].Do != doSweep {
			if err := look(fmt.Sprintf("call %d", i), p.asked[i], r); err != nil {
				return err
			}
		}
	}
	// Nobody is at it any more: the locks are old, and whoever may, gets an answer at once, again and again the same.
	p.pass(lockTimeout)
	for round := range 2 {
		final := 0
		for _, q := range p.distinct() {
			r := p.here(p.Path, p.key, q)
			if err := look(fmt.Sprintf("round %d", round), q, r); err != nil {
				return err
			}
			if kind := r.kind(); kind == "201*" || kind == "201R" || kind == "422R" {
				final++
			} else if kind != "422" {
				return fmt.Errorf("in the end %s is answered %s", q.Body, kind)
			}
		}
		if final != 1 && round == 1 || final > 1 {
			return fmt.Errorf("the key stands for %d requests", final)
		}
	}
	if len(answers) > p.lives || executed > p.lives {
		return fmt.Errorf("%d answers, %d of them executed", len(answers), executed)
	}
	if n := p.effects(p.key); n > p.lives {
		return fmt.Errorf("%d effects", n)
	}
	if now, _ := p.desk.charged(); now-charges > p.lives {
		return fmt.Errorf("%d charges", now-charges)
	}
	return nil
}

// distinct returns a plain call for each of the bodies.
func (p *performance) distinct() (all []part) {
	for _, q := range p.asked {
		if plain := (part{Body: q.Body}); q.Do != doSweep && !slices.Contains(all, plain) {
			all = append(all, plain)
		}
	}
	if len(all) == 0 {
		all = []part{{Body: `{"amount":5000}`}}
	}
	return all
}

// TestInterleavings plays random scores. However the statements of calls with one key are woven into each other, and whatever is lost
// of them, there is one effect and one answer, nobody gets the answer to another body, and nobody hears 409 for ever.
func TestInterleavings(t *testing.T) {
	t.Parallel()
	c := newConductor(t, false)
	rapid.Check(t, func(rt *rapid.T) {
		if err := c.perform(scores.Draw(rt, "score")); err != nil {
			rt.Fatal(err)
		}
	})
}
