package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

// Whatever fails between a period's order and the schedule's next step takes both back; once it works, all is made.
func TestRecurrenceMakesAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ op, table string }{
		{"INSERT", "processed_events"},
		{"UPDATE", "processed_events"},
		{"INSERT", "orders"},
		{"UPDATE", "orders"},
		{"INSERT", "order_transitions"},
		{"UPDATE", "recurrences"},
	} {
		t.Run(f.op+" "+f.table, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			r := create(t, s, recurring(t, pool, "club_1", -10, 30))
			began := func() store.Recurrence { // it begins 110 days earlier after all
				first := ago(r.StartsOn, 110)
				_, err := pool.Exec(t.Context(), `UPDATE recurrences SET starts_on = $1, next_period = $2, next_start = next_start - interval '110 days'`,
					first.UTC(), first.String())
				require.NoError(t, err)
				return get(t, s, r)
			}
			before := began()

			sabotage(t, pool, f.op, f.table, "P0001", 0)
			_, err := s.CreateDueOrders(t.Context(), account, r.ID)
			require.ErrorContains(t, err, "sabotaged")
			requireNothing(t, pool)
			require.Empty(t, orderRefs(t, pool))
			require.Equal(t, before, get(t, s, r))

			_, err = pool.Exec(t.Context(), `DROP FUNCTION sabotage CASCADE`)
			require.NoError(t, err)
			require.Equal(t, store.CreatedOrders{Orders: 4}, due(t, s, r))
			require.Len(t, orderRefs(t, pool), 4)
		})
	}

	t.Run("COMMIT", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		r := create(t, s, recurring(t, pool, "club_1", 100, 30))
		asIfNew(t, pool, r)
		_, err := pool.Exec(t.Context(), `DELETE FROM order_transitions; DELETE FROM orders; DELETE FROM processed_events`)
		require.NoError(t, err)
		before := get(t, s, r)
		atCommit(t, pool, "recurrences", "RAISE EXCEPTION 'refused at commit'")

		_, err = s.CreateDueOrders(t.Context(), account, r.ID)
		require.ErrorContains(t, err, "refused at commit")
		requireNothing(t, pool)
		require.Empty(t, orderRefs(t, pool))
		require.Equal(t, before, get(t, s, r))
		require.ErrorContains(t, s.InTx(t.Context(), func(tx store.Tx) error {
			_, _, err := s.CreateRecurrence(t.Context(), tx, recurring(t, pool, "club_2", 100, 30))
			return err
		}), "refused at commit")
		require.Equal(t, 1, count(t, pool, "recurrences"))
		require.Empty(t, orderRefs(t, pool))
	})

	t.Run("ConnectionLost", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		r := create(t, s, recurring(t, pool, "club_1", 100, 30))
		asIfNew(t, pool, r)
		_, err := pool.Exec(t.Context(), `DELETE FROM order_transitions; DELETE FROM orders; DELETE FROM processed_events`)
		require.NoError(t, err)
		atCommit(t, pool, "recurrences", "PERFORM pg_terminate_backend(pg_backend_pid())")

		_, err = s.CreateDueOrders(t.Context(), account, r.ID)
		require.Error(t, err)
		require.Empty(t, orderRefs(t, pool))
		_, err = pool.Exec(t.Context(), `DROP FUNCTION at_commit CASCADE`)
		require.NoError(t, err)
		require.Equal(t, store.CreatedOrders{Orders: 4}, due(t, s, r))
	})
}

// One recurrence that cannot go on holds up no other, and says why.
func TestRecurrenceThatCannotGoOn(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	bad, good := create(t, s, recurring(t, pool, "bad", 100, 30)), create(t, s, recurring(t, pool, "good", 100, 30))
	asIfNew(t, pool, bad)
	asIfNew(t, pool, good)
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET time_zone = 'Mars/Base' WHERE external_ref = 'bad'`)
	require.NoError(t, err)
	_, err = s.CreateDueOrders(t.Context(), account, bad.ID)
	require.ErrorContains(t, err, "Mars/Base")
	require.Equal(t, store.CreatedOrders{Known: 4}, due(t, s, good))
	late, err := s.DueRecurrences(t.Context(), 10, []uuid.UUID{good.ID})
	require.NoError(t, err)
	require.Len(t, late, 1)
	require.Equal(t, bad.ID, late[0].ID)
}

// A recurrence that another transaction is at is left to that one.
func TestRecurrenceIsWorkedByOne(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	r := create(t, s, recurring(t, pool, "club_1", 229, 1))
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT 1 FROM recurrences WHERE id = $1 FOR NO KEY UPDATE`, r.ID)
	require.NoError(t, err)
	require.Equal(t, store.CreatedOrders{Busy: true}, due(t, s, r))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, store.CreatedOrders{Orders: 100, More: true}, due(t, s, r))
}

// Sixty-four workers at ten recurrences, with the merchant's own registrations and their webhooks in between: each period
// has its order, once.
func TestRecurrencesUnderConcurrency(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	const recurrences, periods = 10, 130
	var all []store.Recurrence
	for i := range recurrences {
		all = append(all, create(t, s, recurring(t, pool, fmt.Sprintf("club_%d", i), periods-1, 1)))
	}
	for _, r := range all[:5] {
		asIfNew(t, pool, r) // half of them begin all over
	}
	require.Equal(t, recurrences*store.MaxPeriods, count(t, pool, "orders"))

	var orders, known atomic.Int64
	var wg sync.WaitGroup
	errs := make([]error, 64)
	start := make(chan struct{})
	for i := range errs {
		wg.Go(func() {
			<-start
			mine := all[i%recurrences]
			ref := store.OrderRef(mine.Ref, ago(mine.StartsOn, -(100+i%30)).String())
			events := []store.Event{captured(fmt.Sprintf("evt_%d", i), fmt.Sprintf("pi_%d", i), ref, 5000)}
			if i%2 == 0 {
				own := register(ref, 5000)
				own.ID = store.RegisterID(ref)
				events = append(events, own)
			}
			if _, errs[i] = s.Apply(t.Context(), events); errs[i] != nil {
				return
			}
			for {
				due, err := s.DueRecurrences(t.Context(), 100, nil)
				if err != nil || len(due) == 0 {
					errs[i] = err
					return
				}
				for n := range due {
					made, err := s.CreateDueOrders(t.Context(), due[(n+i)%len(due)].Account, due[(n+i)%len(due)].ID)
					if err != nil {
						errs[i] = err
						return
					}
					orders.Add(int64(made.Orders))
					known.Add(int64(made.Known))
				}
			}
		})
	}
	close(start)
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 5*periods+5*(periods-store.MaxPeriods), orders.Load()+known.Load(), "each period was made once, after it was put back")
	require.Equal(t, recurrences*periods, count(t, pool, "orders"))
	require.Equal(t, recurrences*periods, count(t, pool, "orders WHERE registered"))
	require.Equal(t, recurrences*periods, count(t, pool, "processed_events WHERE type = 'order.registered'"))
	require.Equal(t, recurrences, count(t, pool, "recurrences WHERE created_count = $1", periods))
	require.Zero(t, count(t, pool, "orders WHERE captured > 0 AND state <> 'paid'"))
	require.Equal(t, count(t, pool, "orders WHERE state = 'paid'"), count(t, pool, "order_transitions WHERE effect = 'fulfil'"))
	require.Zero(t, s.Retries().Deadlock, "all of them take their locks in one order")
}

// An end while workers are at it: what had begun is made, nothing that begins later, whoever was first.
func TestEndWhileCreating(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	r := create(t, s, recurring(t, pool, "club_1", 229, 1))
	var wg sync.WaitGroup
	errs := make([]error, 9)
	for i := range errs {
		wg.Go(func() {
			if i == 0 {
				errs[i] = s.InTx(t.Context(), func(tx store.Tx) error {
					_, err := s.EndRecurrence(t.Context(), tx, account, r.ID, period.Date{})
					return err
				})
				return
			}
			_, errs[i] = s.CreateDueOrders(t.Context(), account, r.ID)
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	for more := true; more; {
		more = due(t, s, r).More
	}
	got := get(t, s, r)
	require.NotNil(t, got.EndedAt)
	require.Equal(t, 230, got.Created)
	require.Len(t, orderRefs(t, pool), 230)
}
