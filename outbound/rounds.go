package outbound

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/internal/egress"
)

// rounds are how jobs go from one claim to the next, and the ticker that makes good for jobs that did not come.
type rounds[C any] struct {
	share   *egress.Share
	elapsed func() time.Duration

	lease, jobTimeout, tickEvery time.Duration
	stopping                     atomic.Bool
	denied                       prometheus.Counter // jobs whose account had its share

	pull   func(ctx context.Context, account string, lease time.Duration) (*C, error)
	follow func(ctx context.Context, c C, since time.Duration) error // sees to a claim; since is when it was asked for
}

// work sees to what claim claims, and then, if work of its account was turned away, to more of the account's.
func (r *rounds[C]) work(ctx context.Context, account string, claim func() (*C, error)) error {
	if !r.share.Acquire(account) {
		// Nothing is written: the promise lapses, and a worker of the same account, or the ticker, comes back.
		r.denied.Inc()
		return nil
	}
	defer r.share.Release(account)
	began := r.elapsed()
	c, err := claim()
	if err != nil {
		return err
	}
	if c != nil {
		if err := r.follow(ctx, *c, began); err != nil {
			return err
		}
	}
	for r.more(ctx, account, began) {
		backlog := r.share.Backlog(account)
		if backlog == 0 {
			return nil
		}
		since := r.elapsed()
		c, err := r.pull(ctx, account, r.lease)
		if err != nil {
			return err
		}
		if c == nil {
			r.share.CaughtUp(account, backlog)
			return nil
		}
		if err := r.follow(ctx, *c, since); err != nil {
			return err
		}
	}
	return nil
}

// more reports whether a job that began then may begin another call.
func (r *rounds[C]) more(ctx context.Context, account string, began time.Duration) bool {
	return ctx.Err() == nil && !r.stopping.Load() && r.elapsed()-began < r.jobTimeout-r.lease && r.share.Keeps(account)
}

// run ticks until ctx ends; no further call is begun then.
func (r *rounds[C]) run(ctx context.Context, log *slog.Logger, what string, tick func(context.Context) error) error {
	r.stopping.Store(false)
	defer r.stopping.Store(true)
	timer := time.NewTimer(rand.N(r.tickEvery)) // processes that start together do not tick together
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := tick(ctx); err != nil && ctx.Err() == nil {
				log.WarnContext(ctx, "lapsed work not renewed", "what", what, "err", err)
			}
			timer.Reset(r.tickEvery)
		}
	}
}

// renewed notes the jobs that a tick asked for, by account.
func (r *rounds[C]) renewed(jobs map[string]int, limit int, count prometheus.Counter) {
	for account, n := range jobs {
		count.Add(float64(n))
		if n == limit {
			r.share.TurnedAway(account) // there are more: its workers go on to them
		}
	}
}
