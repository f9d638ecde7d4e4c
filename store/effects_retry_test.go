package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// dead registers and pays an order whose fulfil the merchant rejected.
func dead(t *testing.T, s *store.Store, ref string) uuid.UUID {
	t.Helper()
	id := owing(t, s, ref)
	settle(t, s, claim(t, s, id), store.Answer{Dead: true, Err: "410 Gone"})
	return id
}

func retryAll(t *testing.T, s *store.Store, f store.EffectFilter) map[string]store.RetryOutcome {
	t.Helper()
	got := map[string]store.RetryOutcome{}
	require.NoError(t, s.RetryEffects(t.Context(), f, func(e store.Effect, o store.RetryOutcome) { got[e.Ref] = o }))
	return got
}

func TestRetryEffects(t *testing.T) {
	t.Parallel()

	t.Run("DeadIsCalledAgain", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := dead(t, s, "ord_1")
		exec(t, pool, `DELETE FROM river_job`)
		require.Equal(t, map[string]store.RetryOutcome{"ord_1": store.RetryRetried}, retryAll(t, s, store.EffectFilter{}))
		require.Equal(t, 1, count(t, pool, "river_job WHERE state = 'available'"))
		require.NotNil(t, readOrder(t, pool, "ord_1").Wake)
		c := claim(t, s, id)
		require.Equal(t, 1, c.Attempt, "with all its attempts")
		settle(t, s, c, store.Answer{Done: true})
		require.Equal(t, "fulfil done", summary(t, pool, id))
	})

	t.Run("WaitingIsDueAtOnce", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := owing(t, s, "ord_1")
		settle(t, s, claim(t, s, id), store.Answer{Wait: time.Hour, Err: "503"})
		require.Empty(t, retryAll(t, s, store.EffectFilter{}), "no state means dead")
		open := store.EffectFilter{States: []order.EffectState{order.EffectOpen}}
		require.Equal(t, map[string]store.RetryOutcome{"ord_1": store.RetryRetried}, retryAll(t, s, open))
		require.WithinDuration(t, time.Now(), *readOrder(t, pool, "ord_1").Wake, time.Minute)
		require.Equal(t, 2, claim(t, s, id).Attempt)
	})

	// A dispute opened meanwhile: the fulfil is not wanted now, and a call for it would be wrong.
	t.Run("Superseded", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := dead(t, s, "ord_1")
		apply(t, s, disputed("evt_d", "pi_ord_1", order.StatusOpen, 1, 5000))
		jobs := count(t, pool, "river_job")
		require.Equal(t, map[string]store.RetryOutcome{"ord_1": store.RetrySuperseded}, retryAll(t, s, store.EffectFilter{}))
		require.Equal(t, "fulfil dead", summary(t, pool, id))
		require.Equal(t, jobs, count(t, pool, "river_job"))
		require.Nil(t, look(t, s, id).Claim)

		apply(t, s, disputed("evt_w", "pi_ord_1", order.StatusWon, 2, 5000))
		require.Equal(t, map[string]store.RetryOutcome{"ord_1": store.RetryRetried}, retryAll(t, s, store.EffectFilter{}))
		require.Equal(t, order.EffectFulfil, claim(t, s, id).Effect)
	})

	// A dead effect blocks only itself: the money went, and the revoke is owed without anybody's help.
	t.Run("DeadDoesNotBlockItsOpposite", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := dead(t, s, "ord_1")
		apply(t, s, refunded("re_1", "pi_ord_1", 5000))
		require.Equal(t, order.EffectRevoke, claim(t, s, id).Effect)
		require.Equal(t, "fulfil assumed, revoke claimed", summary(t, pool, id))
		require.Empty(t, retryAll(t, s, store.EffectFilter{}))
	})

	t.Run("OnlyWhatCanBeRetried", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		for _, st := range []order.EffectState{order.EffectClaimed, order.EffectDone, order.EffectCanceled, order.EffectAssumed} {
			err := s.RetryEffects(t.Context(), store.EffectFilter{States: []order.EffectState{st}}, nil)
			require.ErrorIs(t, err, store.ErrNotRetryable)
		}
	})

	t.Run("ChangedMeanwhile", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := dead(t, s, "ord_1")
		for i := range 70 {
			dead(t, s, fmt.Sprintf("ord_2_%d", i))
		}
		// The first page is read; before the second is, its orders change.
		got := map[store.RetryOutcome]int{}
		require.NoError(t, s.RetryEffects(t.Context(), store.EffectFilter{}, func(_ store.Effect, o store.RetryOutcome) {
			if len(got) == 0 {
				exec(t, pool, `UPDATE order_transitions SET effect_state = 'open', next_at = now() WHERE effect_state = 'dead'`)
			}
			got[o]++
		}))
		require.Equal(t, map[store.RetryOutcome]int{store.RetryRetried: 64}, got, "what is not dead any more is not ours")
		require.Equal(t, order.EffectFulfil, claim(t, s, id).Effect)
	})

	t.Run("TheJobOrNothing", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		id := dead(t, s, "ord_1")
		before := everything(t, pool, id)
		sabotage(t, pool, "INSERT", "river_job", "P0001", 0)
		require.ErrorContains(t, s.RetryEffects(t.Context(), store.EffectFilter{}, nil), "sabotaged")
		require.Equal(t, before, everything(t, pool, id))
	})
}

// The claim wins against a person's retry that read the effect before it.
func TestRetryMeetsAClaim(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	id := owing(t, s, "ord_1")
	settle(t, s, claim(t, s, id), store.Answer{Wait: time.Hour, Err: "503"})

	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM orders FOR NO KEY UPDATE`)
	require.NoError(t, err)
	var got []store.RetryOutcome
	retried := make(chan error)
	go func() {
		f := store.EffectFilter{States: []order.EffectState{order.EffectOpen}}
		retried <- s.RetryEffects(t.Context(), f, func(_ store.Effect, o store.RetryOutcome) { got = append(got, o) })
	}()
	waitForLock(t, pool)
	_, err = tx.Exec(t.Context(), `UPDATE order_transitions SET effect_state = 'claimed', next_at = NULL,
		claimed_until = clock_timestamp() + interval '1 minute', fence = fence + 1, attempts = attempts + 1 WHERE effect_state = 'open'`)
	require.NoError(t, err)
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-retried)
	require.Equal(t, []store.RetryOutcome{store.RetryChanged}, got)
	require.Equal(t, "fulfil claimed", summary(t, pool, id))
}

func TestEffects(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	ctx := t.Context()
	deadID := dead(t, s, "ord_dead")
	doneID := owing(t, s, "ord_done")
	settle(t, s, claim(t, s, doneID), store.Answer{Done: true})
	apply(t, s, refunded("re_1", "pi_ord_done", 5000))
	owing(t, s, "ord_open")
	parked := owing(t, s, "ord_parked")
	settle(t, s, claim(t, s, parked), store.Answer{Wait: time.Hour, Err: "503 Service Unavailable"})
	apply(t, s, disputed("evt_d", "pi_ord_parked", order.StatusOpen, 1, 5000))
	apply(t, s, of("other", register("ord_dead", 5000)), of("other", captured("evt_x", "pi_x", "ord_dead", 5000)))
	exec(t, pool, `UPDATE order_transitions SET at = '2020-01-02T03:04:05Z' WHERE order_id = $1`, deadID)

	feb2020 := time.Date(2020, 2, 1, 0, 0, 0, 0, time.UTC)
	mine := store.EffectFilter{Account: account}
	list := func(change func(*store.EffectFilter)) (names []string) {
		t.Helper()
		f := mine
		change(&f)
		all, err := s.Effects(ctx, f, nil, 100)
		require.NoError(t, err)
		n, err := s.CountEffects(ctx, f)
		require.NoError(t, err)
		require.Len(t, all, n)
		for _, e := range all {
			names = append(names, e.Ref+" "+string(e.Effect)+" "+string(e.State))
		}
		return names
	}
	everything := []string{"ord_dead fulfil dead", "ord_done fulfil done", "ord_done revoke open", "ord_open fulfil open", "ord_parked fulfil open"}
	require.Equal(t, everything, list(func(*store.EffectFilter) {}))
	require.Equal(t, everything[:1], list(func(f *store.EffectFilter) { f.States = []order.EffectState{order.EffectDead} }))
	require.Equal(t, everything[1:3], list(func(f *store.EffectFilter) { f.Order = doneID }))
	require.Equal(t, everything[2:3], list(func(f *store.EffectFilter) { f.Effects = []order.Effect{order.EffectRevoke} }))
	require.Equal(t, everything[3:4], list(func(f *store.EffectFilter) { f.Ref = "ord_open" }))
	require.Equal(t, everything[:1], list(func(f *store.EffectFilter) { f.AskedUntil = feb2020 }))
	require.Equal(t, everything[1:], list(func(f *store.EffectFilter) { f.AskedFrom = feb2020 }))
	require.Len(t, list(func(f *store.EffectFilter) { f.Account, f.Ref = "", "ord_dead" }), 2, "of all accounts")
	require.Empty(t, list(func(f *store.EffectFilter) {
		f.States, f.Effects = []order.EffectState{order.EffectDead, order.EffectOpen}, []order.Effect{order.EffectHold}
	}))

	var pages []string
	for after := (*store.Effect)(nil); ; {
		page, err := s.Effects(ctx, mine, after, 2)
		require.NoError(t, err)
		if len(page) == 0 {
			break
		}
		for _, e := range page {
			pages = append(pages, e.Ref+" "+string(e.Effect)+" "+string(e.State))
		}
		after = &page[len(page)-1]
	}
	require.Equal(t, everything, pages)

	all, err := s.Effects(ctx, mine, nil, 100)
	require.NoError(t, err)
	d := all[0]
	require.Equal(t, fmt.Sprintf("%s:%d:fulfil", deadID, d.Version), d.Key())
	require.Equal(t, "410 Gone", d.LastError)
	require.Equal(t, 1, d.Attempts)
	require.Equal(t, order.StatePaid, d.OrderState)
	require.True(t, d.AskedAt.Equal(time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)))
	require.Nil(t, d.NextAt)
	require.NotNil(t, all[1].SettledAt)
	require.False(t, all[3].Parked)
	require.True(t, all[4].Parked, "not wanted while the dispute is open")

	_, err = s.Effects(ctx, store.EffectFilter{States: []order.EffectState{"x' OR true --"}}, nil, 1)
	require.ErrorContains(t, err, "there is no effect state")
	n, err := s.DeadCount(ctx)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}
