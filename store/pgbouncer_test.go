package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// Behind PgBouncer in transaction mode nothing is prepared: every value must find its type by itself.
func TestApplyWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeExec, pgx.QueryExecModeCacheDescribe} {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
			require.NoError(t, err)
			cfg.ConnConfig.DefaultQueryExecMode = mode
			pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
			require.NoError(t, err)
			t.Cleanup(pool.Close)
			s, err := store.New(pool, store.Options{})
			require.NoError(t, err)

			apply(t, s, register("ord_1", 5000))
			paid := captured("evt_1", "pi_1", "ord_1", 5000)
			apply(t, s, paid, captured("evt_2", "pi_2", "ord_2", 5000))
			require.Equal(t, store.Duplicate, apply(t, s, paid)[0].Outcome)
			paid.Facts = []order.Fact{{Kind: order.KindCaptured, Amount: 5001, Currency: "EUR"}}
			require.Equal(t, store.Flagged, apply(t, s, paid)[0].Outcome)
			paused := captured("evt_3", "pi_3", "ord_1", 100)
			paused.Paused = true
			apply(t, s, paused)
			n, err := s.Resume(t.Context(), account, "stripe")
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, s.CountDeliveries(t.Context(), map[store.EventKey]int{{Account: account, Source: "stripe", ID: "evt_1"}: 1}))

			o := readOrder(t, pool, "ord_1")
			require.Equal(t, "paid", o.State)
			l, err := s.Look(t.Context(), account, o.ID, time.Minute)
			require.NoError(t, err)
			require.NotNil(t, l.Claim)
			_, err = s.Settle(t.Context(), *l.Claim, store.Answer{Done: true}, time.Minute)
			require.NoError(t, err)
			_, _, err = s.Pull(t.Context(), account, time.Minute)
			require.NoError(t, err)
			_, err = s.RenewClaims(t.Context(), 10)
			require.NoError(t, err)
			_, err = s.LapsedAccounts(t.Context(), 0)
			require.NoError(t, err)
			_, err = s.Renew(t.Context(), map[string]int{account: 5}, 0)
			require.NoError(t, err)
			_, err = s.DeadCount(t.Context())
			require.NoError(t, err)
			err = s.RetryEffects(t.Context(), store.EffectFilter{Account: account}, func(store.Effect, store.RetryOutcome) {})
			require.NoError(t, err)
			_, err = s.Timeline(t.Context(), account, o.ID)
			require.NoError(t, err)
			_, _, err = s.ListEvents(t.Context(), store.EventFilter{Since: day, Limit: 2})
			require.NoError(t, err)
			_, _, err = s.ListOrders(t.Context(), store.OrderFilter{Older: time.Second})
			require.NoError(t, err)
			_, err = s.Effects(t.Context(), store.EffectFilter{Account: account, States: []order.EffectState{order.EffectDone}, AskedFrom: day}, nil, 5)
			require.NoError(t, err)
			apply(t, s, pointer("evt_4", paymentOne))
			announce(t, s, paymentOne, "payment/2")
			asked, err := s.PullFetch(t.Context(), account, lease)
			require.NoError(t, err)
			require.Equal(t, "payment/1", asked.Object)
			announce(t, s, paymentOne)
			require.Equal(t, store.FetchSettled{Again: true, Resolved: 1}, settleFetch(t, s, asked, store.FetchAnswer{Done: true, Digest: "paid"}))
			settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Wait: time.Minute, Failing: "gone", Err: "404"})
			_, err = s.RenewFetches(t.Context(), 5, 0)
			require.NoError(t, err)
			_, err = s.Fetches(t.Context(), store.FetchFilter{Account: account}, nil, 5)
			require.NoError(t, err)
			_, err = s.RetryFetches(t.Context(), store.FetchFilter{Account: account})
			require.NoError(t, err)
			_, err = s.FetchPiles(t.Context())
			require.NoError(t, err)
			_, err = s.DropFetches(t.Context(), 24*time.Hour)
			require.NoError(t, err)
			_, err = s.FindEvents(t.Context(), account, "", "evt_4")
			require.NoError(t, err)
			_, err = s.Health(t.Context(), time.Second)
			require.NoError(t, err)
			_, err = s.EnsurePartitions(t.Context())
			require.NoError(t, err)
			_, err = s.DropPartitions(t.Context(), 24*time.Hour)
			require.NoError(t, err)
		})
	}
}
