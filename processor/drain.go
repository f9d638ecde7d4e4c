package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/egress"
	"github.com/paidonce/paidonce/store"
)

// turn is a worker's time for one account: one job, in which it may call several effects.
type turn struct {
	w        *Workers
	account  string
	endpoint string
	pass     *egress.Pass
	began    time.Duration
}

// enter asks for a turn. A job that gets none ends and writes nothing: the order's promise stands and lapses, and a
// worker of the same account, or the ticker, comes back to it.
func (w *Workers) enter(account string) (t *turn, denied string) {
	endpoint, ok := w.endpoint(account)
	if !ok {
		w.share.TurnedAway(account)
		return nil, "no_callback"
	}
	pass := w.circuits.Enter(endpoint)
	if pass == nil {
		w.share.TurnedAway(account)
		return nil, "circuit"
	}
	if !w.share.Acquire(account) {
		w.circuits.Leave(pass)
		return nil, "share"
	}
	return &turn{w: w, account: account, endpoint: endpoint, pass: pass, began: w.opts.Elapsed()}, ""
}

func (t *turn) end() {
	t.w.share.Release(t.account)
	t.w.circuits.Leave(t.pass)
}

// more reports whether the turn may begin another call.
func (t *turn) more(ctx context.Context) bool {
	return ctx.Err() == nil && !t.w.stopping.Load() && t.w.opts.Elapsed()-t.began < t.w.opts.budget() &&
		t.w.circuits.Closed(t.endpoint) && t.w.share.Keeps(t.account)
}

// drain calls what one order owes, and then, if work of its account was turned away, what others of it do.
func (w *Workers) drain(ctx context.Context, account string, id uuid.UUID) error {
	t, denied := w.enter(account)
	if t == nil {
		w.metrics.denied.WithLabelValues(denied).Inc()
		return nil
	}
	defer t.end()

	since := w.opts.Elapsed()
	looked, err := w.store.Look(ctx, account, id, w.opts.Lease)
	if err != nil {
		return err
	}
	w.note(ctx, "job", looked)
	if err := t.follow(ctx, looked.Claim, since); err != nil {
		return err
	}
	for t.more(ctx) {
		backlog := w.share.Backlog(account)
		if backlog == 0 {
			return nil
		}
		since := w.opts.Elapsed()
		looked, found, err := w.store.Pull(ctx, account, w.opts.Lease)
		if err != nil {
			return err
		}
		if !found {
			w.share.CaughtUp(account, backlog)
			return nil
		}
		w.note(ctx, "pull", looked)
		if err := t.follow(ctx, looked.Claim, since); err != nil {
			return err
		}
	}
	return nil
}

func (w *Workers) note(ctx context.Context, by string, l store.Looked) {
	found := "nothing"
	if l.Claim != nil {
		found = "claim"
	}
	w.metrics.looks.WithLabelValues(by, found).Inc()
	if l.Expired {
		w.metrics.expired.Inc()
	}
	if l.Dead {
		w.metrics.died.Inc()
		w.opts.Logger.ErrorContext(ctx, "effect is dead", "account_id", l.Account, "order_id", l.Order,
			"err", "its last call was never settled")
	}
}

// follow calls the claimed effect, settles it, and goes on with the next one of the same order if that is due. since is
// when the claim was asked for.
func (t *turn) follow(ctx context.Context, c *store.Claim, since time.Duration) error {
	w := t.w
	for c != nil {
		w.metrics.lag.Observe(c.Lag.Seconds())
		answer, r := t.call(ctx, c, since)
		since = w.opts.Elapsed()
		lease := w.opts.Lease
		if !t.more(ctx) {
			lease = 0
		}
		settled, err := w.settle(ctx, *c, answer, lease)
		if err != nil {
			return err
		}
		if settled.Stale {
			w.metrics.stale.Inc()
			w.opts.Logger.WarnContext(ctx, "result of a lapsed claim dropped", "account_id", c.Account, "order_id", c.Order,
				"effect", c.Effect, "version", c.Version, "attempt", c.Attempt, "result", r.name())
		}
		if settled.Dead {
			w.metrics.died.Inc()
			w.opts.Logger.ErrorContext(ctx, "effect is dead", "account_id", c.Account, "order_id", c.Order,
				"external_ref", c.Ref, "effect", c.Effect, "version", c.Version, "attempt", c.Attempt, "err", r.text)
		}
		c = settled.Next
	}
	return nil
}

// call brings the effect about and says what to record of it.
func (t *turn) call(ctx context.Context, c *store.Claim, since time.Duration) (store.Answer, result) {
	w := t.w
	begin := w.opts.Elapsed()
	if begin-since > w.opts.Lease-w.opts.Deadline {
		// The process slept, or the claim's commit took that long: the call could outlast its claim.
		w.metrics.late.Inc()
		r := result{text: "not called: too late for its claim"}
		return store.Answer{Err: r.text}, r
	}
	r := t.fulfil(ctx, Call{
		Account: c.Account, Order: c.Order, ExternalRef: c.Ref, Version: c.Version, Effect: c.Effect, After: c.After,
		Attempt: c.Attempt, AskedAt: c.AskedAt, View: c.View,
	})
	took := w.opts.Elapsed() - begin
	w.metrics.calls.WithLabelValues(string(c.Effect), r.name()).Inc()
	w.metrics.seconds.Observe(took.Seconds())

	answer := store.Answer{Done: r.done, Err: r.text}
	level := slog.LevelInfo
	attrs := []slog.Attr{
		slog.String("account_id", c.Account), slog.String("order_id", c.Order.String()), slog.String("external_ref", c.Ref),
		slog.String("effect", string(c.Effect)), slog.Int("version", c.Version), slog.Int("attempt", c.Attempt),
		slog.String("result", r.name()), slog.Int("status", r.status), slog.Duration("duration", took), slog.Duration("lag", c.Lag),
	}
	if !r.done {
		wait, again := w.schedule.next(c.Attempt, r)
		answer.Wait, answer.Dead = wait, !again
		level = slog.LevelWarn
		attrs = append(attrs, slog.Duration("wait", wait), slog.String("err", r.text))
	}
	w.opts.Logger.LogAttrs(ctx, level, "effect called", attrs...)

	opened, closed := w.circuits.Report(t.endpoint, r.timedOut)
	switch {
	case opened:
		w.opts.Logger.WarnContext(ctx, "callback left alone: it only timed out", "account_id", c.Account)
	case closed:
		w.opts.Logger.InfoContext(ctx, "callback answers again", "account_id", c.Account)
	}
	return answer, r
}

// fulfil runs the Fulfiller under its deadline. A panic in it is an error like another: without that, the effect would
// stay claimed until the lease ends.
func (t *turn) fulfil(ctx context.Context, c Call) (r result) {
	ctx, cancel := context.WithTimeout(ctx, t.w.opts.Deadline)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			t.w.opts.Logger.ErrorContext(ctx, "panic in the Fulfiller", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			r = result{text: "panic in the Fulfiller"}
		}
	}()
	return resultOf(t.w.fulfill.Fulfil(ctx, c))
}

// settleTries is how often a settle is tried within its time when the database does not answer.
const settleTries = 3

// settle records the answer even when the job's context is over. A try whose commit was lost on the way back is
// harmless to repeat: the fence tells.
func (w *Workers) settle(ctx context.Context, c store.Claim, a store.Answer, lease time.Duration) (store.Settled, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.opts.SettleTimeout)
	defer cancel()
	var errs error
	for try := 1; ; try++ {
		s, err := w.store.Settle(ctx, c, a, lease)
		if err == nil {
			// Stale after an error most likely means that the first try did commit.
			s.Stale = s.Stale && try == 1
			return s, nil
		}
		errs = errors.Join(errs, err)
		if try == settleTries {
			return s, errs
		}
		pause := time.NewTimer(w.opts.SettleTimeout / 20)
		select {
		case <-ctx.Done():
			pause.Stop()
			return s, errs
		case <-pause.C:
		}
	}
}
