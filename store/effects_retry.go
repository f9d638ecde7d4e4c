package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// RetryOutcome says what a person's retry of an effect did.
type RetryOutcome string

// Retried: it is due now; a dead one has all its attempts again. Superseded: the order does not want it any more, so it
// was not made due; what is owed instead, if anything, is planned. Changed: it was called or ended while we looked.
const (
	RetryRetried    RetryOutcome = "retried"
	RetrySuperseded RetryOutcome = "superseded"
	RetryChanged    RetryOutcome = "changed"
)

// ErrNotRetryable is returned for a filter with states other than open and dead: what is claimed is being called, and
// what is done, canceled or assumed is over.
var ErrNotRetryable = errors.New("only effects that are open or dead can be retried")

// RetryFilter returns f as [Store.RetryEffects] reads it, for a count beforehand: no states means dead.
func RetryFilter(f EffectFilter) (EffectFilter, error) {
	if len(f.States) == 0 {
		f.States = []order.EffectState{order.EffectDead}
	}
	for _, st := range f.States {
		if st != order.EffectOpen && st != order.EffectDead {
			return f, fmt.Errorf("%w, not %s", ErrNotRetryable, st)
		}
	}
	return f, nil
}

// retryPage is how many orders one transaction of RetryEffects locks.
const retryPage = 64

// RetryEffects makes the effects that match f due at once, without waiting for their schedule, and calls each with what
// became of every one, in order. Whether an effect is still wanted is computed anew under its order's lock. Up to 64
// orders commit together, with their jobs; an error leaves those before it retried. See [RetryFilter] for f's states.
func (s *Store) RetryEffects(ctx context.Context, f EffectFilter, each func(Effect, RetryOutcome)) error {
	f, err := RetryFilter(f)
	if err != nil {
		return err
	}
	var after *Effect
	for {
		page, err := s.Effects(ctx, f, after, retryPage)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			return nil
		}
		outcomes, err := retry(ctx, &s.retried, func() ([]RetryOutcome, error) { return s.retryEffects(ctx, page, f.States) })
		if err != nil {
			return fmt.Errorf("retry effects: %w", err)
		}
		for i, e := range page {
			each(e, outcomes[i])
		}
		after = &page[len(page)-1]
	}
}

func (s *Store) retryEffects(ctx context.Context, page []Effect, states []order.EffectState) ([]RetryOutcome, error) {
	outcomes := make([]RetryOutcome, len(page))
	err := s.inPipe(ctx, func(tx *pipedTx) error {
		var (
			b   pgx.Batch
			set orderSet
		)
		b.Queue("BEGIN")
		b.Queue(sqlSettings)
		for _, e := range page {
			set.add(orderKey{e.Account, e.Order})
		}
		l := s.queueLock(&b, &set, nil)
		if err := send(ctx, tx, &b); err != nil {
			return err
		}
		var (
			changed []*lockedOrder
			jobs    []job
		)
		for i, e := range page {
			o := l.orders[orderKey{e.Account, e.Order}]
			outcomes[i] = RetryChanged
			if o == nil || o.book.Open == nil || o.book.Open.Version != e.Version || !slices.Contains(states, o.book.Open.EffectState) {
				continue
			}
			outcomes[i] = RetryRetried
			if superseded, _ := o.book.Retry(l.now); superseded {
				outcomes[i] = RetrySuperseded
			}
			if at, enqueue := o.wakeAfterIngest(l.now); enqueue {
				jobs = append(jobs, o.drainAt(at, l.now))
			}
			changed = append(changed, o)
		}
		if err := s.enqueue(ctx, tx, jobs); err != nil {
			return err
		}
		b = pgx.Batch{}
		if len(jobs) > 0 && s.bell.rings(l.now) {
			queueBell(&b)
		}
		queueOrders(&b, changed)
		b.Queue("COMMIT")
		return send(ctx, tx, &b)
	})
	return outcomes, err
}
