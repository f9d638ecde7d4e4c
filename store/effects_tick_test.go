package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// promise sets when an order must be looked at, from now.
func promise(t *testing.T, pool *pgxpool.Pool, ref string, in time.Duration) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `UPDATE orders SET wake_at = clock_timestamp() + $2::interval WHERE external_ref = $1`, ref, in)
	require.NoError(t, err)
}

// of says the same event of another account.
func of(account string, e store.Event) store.Event {
	e.Account = account
	return e
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

func TestPull(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	first, second := owing(t, s, "ord_1"), owing(t, s, "ord_2")
	owing(t, s, "ord_3")
	apply(t, s, of("other", register("ord_x", 5000)), of("other", captured("evt_x", "pi_x", "ord_x", 5000)))
	promise(t, pool, "ord_1", -2*time.Minute)
	promise(t, pool, "ord_2", -time.Minute)
	promise(t, pool, "ord_3", time.Minute)
	promise(t, pool, "ord_x", -time.Hour)

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM orders WHERE id = $1 FOR NO KEY UPDATE`, first)
	require.NoError(t, err)
	l, found, err := s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, second, l.Claim.Order, "the first is being looked at: skipped, not waited for")
	require.NoError(t, tx.Rollback(t.Context()))

	l, found, err = s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, first, l.Claim.Order)

	_, found, err = s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.False(t, found, "claimed ones and the one due in a minute are not due, and another account's is not ours")

	// A lapsed promise with nothing to call is found all the same, and cleared.
	settle(t, s, *l.Claim, store.Answer{Done: true})
	promise(t, pool, "ord_1", -time.Second)
	l, found, err = s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.True(t, found)
	require.Nil(t, l.Claim)
	require.Nil(t, readOrder(t, pool, "ord_1").Wake)
}

// spy keeps the statements of pipelines.
type spy struct {
	wire
	statements []string
}

func (s *spy) TraceBatchQuery(_ context.Context, _ *pgx.Conn, d pgx.TraceBatchQueryData) {
	s.statements = append(s.statements, d.SQL)
}

// What waits for a later attempt must not be walked over on the way to what is due.
func TestPullReadsOnlyWhatIsDue(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	var seen spy
	cfg.ConnConfig.Tracer, cfg.MaxConns = &seen, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	for i := range 50 {
		ref := fmt.Sprintf("ord_%d", i)
		apply(t, s, register(ref, 5000))
		promise(t, pool, ref, time.Hour)
	}

	seen.statements = nil
	_, found, err := s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.False(t, found)
	i := slices.IndexFunc(seen.statements, func(sql string) bool { return strings.Contains(sql, "SKIP LOCKED") })
	require.GreaterOrEqual(t, i, 0, "%q", seen.statements)

	exec(t, pool, `SET enable_seqscan = off`) // as Pull does; the pool has one connection
	rows, _ := pool.Query(t.Context(), `EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) `+seen.statements[i], account)
	plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Contains(t, strings.Join(plan, "\n"), "orders_wake")
	require.NotContains(t, strings.Join(plan, "\n"), "Rows Removed by Filter")
}

// A call costs four round trips, one more if it must come again: that, and the merchant, is what a worker's time goes to.
func TestDrainRoundTrips(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	var w wire
	cfg.ConnConfig.Tracer, cfg.MaxConns = &w, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	cost := func(f func()) int64 {
		before := w.trips.Load()
		f()
		return w.trips.Load() - before
	}
	var c store.Claim
	for _, warm := range []bool{true, false} { // at first statements are prepared
		id := owing(t, s, fmt.Sprintf("ord_%t", warm))
		look := cost(func() { c = claim(t, s, id) })
		again := cost(func() { settle(t, s, c, store.Answer{Err: "503", Wait: -time.Second}) })
		c = claim(t, s, id)
		done := cost(func() { settle(t, s, c, store.Answer{Done: true}) })
		if !warm {
			require.Equal(t, []int64{2, 3, 2}, []int64{look, again, done})
		}
	}
}

func TestLapsedAccounts(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.Empty(t, lapsed(t, s, 0))
	for _, a := range []string{"a", "b", "c", "d"} {
		apply(t, s, of(a, register("ord_"+a, 5000)), of(a, register("also_"+a, 5000)))
	}
	promise(t, pool, "ord_a", -time.Hour)
	promise(t, pool, "also_a", -2*time.Hour)
	promise(t, pool, "ord_b", time.Hour)
	promise(t, pool, "ord_d", -10*time.Second)

	require.Equal(t, []string{"a", "d"}, slices.Sorted(maps.Keys(lapsed(t, s, 5*time.Second))))
	require.Equal(t, []string{"a"}, slices.Sorted(maps.Keys(lapsed(t, s, time.Minute))))
	require.InDelta(t, 2*time.Hour, lapsed(t, s, 0)["a"], float64(time.Minute), "its oldest")
}

func lapsed(t *testing.T, s *store.Store, grace time.Duration) map[string]time.Duration {
	t.Helper()
	due, err := s.LapsedAccounts(t.Context(), grace)
	require.NoError(t, err)
	m := map[string]time.Duration{}
	for _, d := range due {
		m[d.Account] = d.Since
	}
	return m
}

func renew(t *testing.T, s *store.Store, most map[string]int) map[string]int {
	t.Helper()
	n, err := s.Renew(t.Context(), most, 5*time.Second)
	require.NoError(t, err)
	return n
}

func TestRenew(t *testing.T) {
	t.Parallel()
	ask := map[string]int{account: 64}

	t.Run("ADeletedJobComesBack", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		exec(t, pool, `DELETE FROM river_job`)
		require.Empty(t, renew(t, s, ask), "not before the grace is over")
		promise(t, pool, "ord_1", -6*time.Second)

		require.Equal(t, map[string]int{account: 1}, renew(t, s, ask))
		require.Equal(t, 1, count(t, pool, "river_job WHERE args->>'order_id' = $1 AND state = 'available'", id.String()))
		require.WithinDuration(t, time.Now(), *readOrder(t, pool, "ord_1").Wake, 5*time.Second, "a new promise")
		require.Empty(t, renew(t, s, ask), "which stands")
	})

	t.Run("ABacklogIsNotEnqueuedTwice", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		owing(t, s, "ord_1")
		promise(t, pool, "ord_1", -time.Minute)
		exec(t, pool, `UPDATE river_job SET scheduled_at = now() - interval '2 minutes'`)
		require.Empty(t, renew(t, s, ask), "an older job waits: ours may be behind it")
		exec(t, pool, `UPDATE river_job SET scheduled_at = now() - interval '30 s'`)
		require.Len(t, renew(t, s, ask), 1, "the queue has passed the time at which its job would have come")
	})

	t.Run("OnlySoManyPerAccountTheOldestFirst", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		for i := range 4 {
			ref := fmt.Sprintf("ord_%d", i)
			apply(t, s, register(ref, 5000))
			promise(t, pool, ref, -time.Duration(10+i)*time.Second)
			apply(t, s, of("other", register(ref+"_o", 5000)), of("silent", register(ref+"_s", 5000)))
			promise(t, pool, ref+"_o", -time.Minute)
			promise(t, pool, ref+"_s", -time.Minute)
		}
		require.Equal(t, map[string]int{account: 2, "other": 3}, renew(t, s, map[string]int{account: 2, "other": 3}))
		require.Equal(t, 0, count(t, pool, "orders WHERE external_ref IN ('ord_2', 'ord_3') AND wake_at < now() - interval '5 s'"))
		require.Equal(t, 2, count(t, pool, "orders WHERE external_ref IN ('ord_0', 'ord_1') AND wake_at < now() - interval '5 s'"))
		require.Equal(t, 0, count(t, pool, "river_job WHERE args->>'account_id' = 'silent'"))
	})

	t.Run("ALockedOrderIsBeingLookedAt", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		owing(t, s, "ord_1")
		exec(t, pool, `DELETE FROM river_job`)
		promise(t, pool, "ord_1", -time.Minute)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT FROM orders FOR NO KEY UPDATE`)
		require.NoError(t, err)
		require.Empty(t, renew(t, s, ask))
		require.NoError(t, tx.Rollback(t.Context()))
	})

	t.Run("PromiseAndJobOrNeither", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		owing(t, s, "ord_1")
		exec(t, pool, `DELETE FROM river_job`)
		promise(t, pool, "ord_1", -time.Minute)
		before := readOrder(t, pool, "ord_1").Wake
		sabotage(t, pool, "INSERT", "river_job", "P0001", 0)
		_, err := s.Renew(t.Context(), ask, 5*time.Second)
		require.ErrorContains(t, err, "sabotaged")
		require.Equal(t, before, readOrder(t, pool, "ord_1").Wake)
	})
}

func TestRenewClaims(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	reclaim := func() int {
		t.Helper()
		n, err := s.RenewClaims(t.Context(), 10)
		require.NoError(t, err)
		return n
	}
	id := owing(t, s, "ord_1")
	c := claim(t, s, id)
	owing(t, s, "ord_waiting")
	exec(t, pool, `UPDATE river_job SET scheduled_at = now() - interval '1 hour'`)
	require.Zero(t, reclaim(), "the call is out")

	lapse(t, pool, id)
	require.Empty(t, renew(t, s, map[string]int{account: 64}), "the queue is long")
	require.Equal(t, 1, reclaim(), "which does not matter here")
	require.Equal(t, 1, count(t, pool, `river_job WHERE args->>'order_id' = $1 AND state = 'available'
		AND priority < (SELECT min(priority) FROM river_job WHERE args->>'order_id' <> $1)`, id.String()), "it goes before the others")
	require.Equal(t, c.AskedAt, *readOrder(t, pool, "ord_1").Wake, "and is pulled before younger ones")
	require.Zero(t, reclaim(), "once")
	l, found, err := s.Pull(t.Context(), account, lease)
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, id, l.Claim.Order)
	require.Equal(t, 2, l.Claim.Attempt)
	require.Zero(t, reclaim())

	lapse(t, pool, id)
	before := everything(t, pool, id)
	sabotage(t, pool, "INSERT", "river_job", "P0001", 0)
	_, err = s.RenewClaims(t.Context(), 10)
	require.ErrorContains(t, err, "sabotaged")
	require.Equal(t, before, everything(t, pool, id))
}

// Both halves of a drain's transactions hold, or neither does.
func TestDrainAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, half := range []struct{ name, op, table string }{
		{"Job", "INSERT", "river_job"}, {"Order", "UPDATE", "orders"}, {"Row", "UPDATE", "order_transitions"},
	} {
		t.Run(half.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			id := owing(t, s, "ord_1")
			c := claim(t, s, id)
			before := everything(t, pool, id)
			sabotage(t, pool, half.op, half.table, "P0001", 0)
			_, err := s.Settle(t.Context(), c, store.Answer{Wait: time.Hour, Err: "down"}, 0)
			require.ErrorContains(t, err, "sabotaged")
			require.Equal(t, before, everything(t, pool, id))
		})
	}
	t.Run("Commit", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		before := everything(t, pool, id)
		atCommit(t, pool, "order_transitions", `RAISE EXCEPTION 'refused at commit'`)
		_, err := s.Look(t.Context(), account, id, lease)
		require.ErrorContains(t, err, "refused at commit")
		require.Equal(t, before, everything(t, pool, id), "a claim that did not commit is not handed out")
	})
	for _, code := range []string{"40P01", "40001", "55P03"} {
		t.Run("TriedAgain"+code, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			id := owing(t, s, "ord_1")
			sabotage(t, pool, "UPDATE", "order_transitions", code, 2)
			c := claim(t, s, id)
			require.Equal(t, 1, c.Attempt)
			require.EqualValues(t, 1, c.Fence)
		})
	}
	t.Run("AConnectionThatDiesIsGivenBack", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		atCommit(t, pool, "order_transitions", `PERFORM pg_terminate_backend(pg_backend_pid())`)
		for range 12 { // more than the pool has
			_, err := s.Look(t.Context(), account, id, lease)
			require.Error(t, err)
		}
		exec(t, pool, `DROP TRIGGER at_commit ON order_transitions`)
		claim(t, s, id)
	})
	t.Run("ACanceledLookLeavesNoLock", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `SELECT FROM orders FOR NO KEY UPDATE`)
		require.NoError(t, err)
		looked := make(chan error)
		go func() {
			_, err := s.Look(ctx, account, id, lease)
			looked <- err
		}()
		waitForLock(t, pool)
		cancel()
		require.ErrorIs(t, <-looked, context.Canceled)
		require.NoError(t, tx.Rollback(t.Context()))
		claim(t, s, id)
	})
}
