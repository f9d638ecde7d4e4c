package outbound

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

// VerifierOptions are optional settings of a [Verifier]. The zero value is ready
// to use.
type VerifierOptions struct {
	// PerMinute is how many keys that were never seen to be good a source looks
	// for in a minute, and at once. Default 10. Whoever sends deliveries that are
	// not genuine causes no more calls than that.
	PerMinute int

	// Deadline is the time to find one key. Default 8 s: gateways wait 10 s and
	// more for an answer.
	Deadline time.Duration

	// Keys is how many good keys are kept, of all sources. Default 256.
	Keys int
}

// Verifier verifies the deliveries of gateways whose keys are found on the
// network ([gateway.Remote]), and of all others. It is safe for concurrent use.
//
// A key that was found is kept for as long as it is valid, a day at most; what
// is known to be wrong for ten minutes, that a host did not answer for ten
// seconds. Good keys are kept apart from all else, so that no flood of made-up
// keys drives them out; and a key that was good is looked for again whatever
// flood there is.
type Verifier struct {
	client  *Client
	opts    VerifierOptions
	good    *keyCache
	bad     *keyCache
	flights singleflight.Group

	mu      sync.Mutex
	budgets map[string]*rate.Limiter // by source
}

// NewVerifier returns a Verifier that calls by client.
func NewVerifier(client *Client, opts VerifierOptions) *Verifier {
	if opts.PerMinute == 0 {
		opts.PerMinute = 10
	}
	if opts.Deadline == 0 {
		opts.Deadline = 8 * time.Second
	}
	if opts.Keys == 0 {
		opts.Keys = 256
	}
	return &Verifier{
		client: client, opts: opts, good: newKeyCache(opts.Keys), bad: newKeyCache(1024), budgets: map[string]*rate.Limiter{},
	}
}

// Verify reports whether a delivery is genuine at the time now: nil, or a
// [*signature.Error] if it is not (401). Any other error, an [*Error] or the end
// of ctx, means that nobody could tell: the gateway shall send it again (503).
func (v *Verifier) Verify(ctx context.Context, g *gateway.Gateway, s gateway.Source, d gateway.Delivery, now time.Time) error {
	if g.Remote == nil {
		return g.Verify(s, d, now)
	}
	if s.Basic != "" { // before anything is done for a stranger
		if err := signature.CheckBasic(d.Header, s.Basic); err != nil {
			return err
		}
	}
	if g.Remote.Ask != nil {
		call, ok, err := g.Remote.Ask(s, d)
		if err != nil {
			return err
		}
		if ok {
			return v.ask(ctx, g, s, call)
		}
	}
	ref, err := g.Remote.Key(s, d)
	if err != nil {
		return err
	}
	var w wanted
	if ref.ID != "" {
		w = v.webKey(g, s, ref)
	} else if w, err = v.certificate(g, s, ref); err != nil {
		return err
	}
	key, err := v.key(ctx, s, w, now)
	if err != nil {
		return err
	}
	return g.Verify(s, d, now, key)
}

// ask has the gateway itself verify a delivery.
func (v *Verifier) ask(ctx context.Context, g *gateway.Gateway, s gateway.Source, call gateway.Call) error {
	ctx, cancel := context.WithTimeout(ctx, v.opts.Deadline)
	defer cancel()
	body, err := v.client.ask(ctx, target{gateway: g.Name, base: g.Remote.BaseURL(s)}, s, call)
	if err != nil {
		return err
	}
	return g.Remote.Answered(gateway.Answer{Body: body})
}

// How long what was found is believed.
const (
	wrongFor  = 10 * time.Minute
	silentFor = 10 * time.Second
)

// wanted is a key that is looked for.
type wanted struct {
	gateway string
	name    string // in caches: everything that the result depends on
	find    func(ctx context.Context, now time.Time) (found, error)
}

// key returns a key that is good at now.
func (v *Verifier) key(ctx context.Context, s gateway.Source, w wanted, now time.Time) (string, error) {
	at := v.client.opts.Elapsed()
	kept, known := v.good.get(w.name)
	if known && kept.goodAt(now) && at < kept.fresh {
		return kept.key, nil
	}
	bad, ok := v.bad.get(w.name)
	err := bad.err
	if !ok || !bad.badAt(now, at) {
		var f found
		if f, err = v.look(ctx, s, w, now); err == nil {
			return f.key, nil
		}
	}
	// One that was good and cannot be looked at again just now is good for its day.
	if known && kept.goodAt(now) && signature.ReasonOf(err) == "" {
		return kept.key, nil
	}
	return "", err
}

// mayLook takes one from what a source may look for.
func (v *Verifier) mayLook(source string, at time.Duration) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	b := v.budgets[source]
	if b == nil {
		b = rate.NewLimiter(rate.Every(time.Minute/time.Duration(v.opts.PerMinute)), v.opts.PerMinute)
		v.budgets[source] = b
	}
	return b.AllowN(time.Unix(0, 0).Add(at), 1)
}

// look looks for a key on the network, once for all who want it at the same
// time, and keeps what it finds. What was never good costs the source one of
// what it may look for.
func (v *Verifier) look(ctx context.Context, s gateway.Source, w wanted, now time.Time) (found, error) {
	done := v.flights.DoChan(w.name, func() (any, error) {
		at := v.client.opts.Elapsed()
		kept, known := v.good.get(w.name)
		bad, failed := v.bad.get(w.name)
		switch {
		// Of a flight that landed just before this one began:
		case known && kept.goodAt(now) && at < kept.fresh:
			return kept, nil
		case failed && bad.badAt(now, at):
			return found{}, bad.err
		case !known && !v.mayLook(s.ID, at):
			return found{}, &Error{
				Kind: Retry, After: time.Minute / time.Duration(v.opts.PerMinute), gateway: w.gateway,
				text: "the source has looked for as many unknown keys as it may for now",
			}
		}
		// It goes on for the others when the first who asked goes away.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.opts.Deadline)
		defer cancel()
		f, err := w.find(ctx, now)
		at = v.client.opts.Elapsed()
		if err == nil {
			f.fresh += at
			v.good.put(w.name, f)
			v.bad.drop(w.name)
			return f, nil
		}
		life := silentFor
		if signature.ReasonOf(err) != "" {
			life = wrongFor
			v.good.drop(w.name)
		}
		var e *Error
		if errors.As(err, &e) && e.After == 0 {
			e.After = silentFor
		}
		// Whichever clock is ahead: one of them may stand still in a test.
		v.bad.put(w.name, found{err: err, until: now.Add(life), fresh: at + life})
		return f, err
	})
	select {
	case r := <-done:
		f, _ := r.Val.(found)
		return f, r.Err
	case <-ctx.Done():
		return found{}, unanswered(ctx, target{gateway: w.gateway}, ctx.Err())
	}
}
