package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

func TestListAndRetryFetches(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	announce(t, s, "payment/done", "payment/dead", "payment/late", "payment/out")
	settleFetch(t, s, claimFetch(t, s, "payment/done"), store.FetchAnswer{Done: true, Digest: "paid"})
	settleFetch(t, s, claimFetch(t, s, "payment/dead"), store.FetchAnswer{Dead: true, Err: "404"})
	settleFetch(t, s, claimFetch(t, s, "payment/late"), store.FetchAnswer{Wait: time.Hour, Failing: "denied", Err: "401"})
	out := claimFetch(t, s, "payment/out")
	_, err := s.Announce(t.Context(), []store.Announcement{{Account: "beta", Source: "b", Gateway: "g", Object: paymentOne}})
	require.NoError(t, err)
	names := func(f store.FetchFilter) (all []string) {
		t.Helper()
		var after *store.Fetch
		for {
			page, err := s.Fetches(t.Context(), f, after, 2)
			require.NoError(t, err)
			for _, f := range page {
				all = append(all, f.Object+" "+f.State)
			}
			if len(page) < 2 {
				n, err := s.CountFetches(t.Context(), f)
				require.NoError(t, err)
				require.Len(t, all, n)
				return all
			}
			after = &page[1]
		}
	}
	require.Equal(t, []string{"payment/dead dead", "payment/late open", "payment/out open", "payment/1 open"}, names(store.FetchFilter{}))
	require.Equal(t, []string{"payment/1 open"}, names(store.FetchFilter{Source: "b"}))
	require.Equal(t, []string{"payment/done done"}, names(store.FetchFilter{Account: account, States: []string{"done"}}))
	require.Equal(t, []string{"payment/late open"}, names(store.FetchFilter{Object: "payment/late"}))
	_, err = s.Fetches(t.Context(), store.FetchFilter{States: []string{"lost"}}, nil, 1)
	require.ErrorContains(t, err, "lost")

	deleteFetchJobs(t, pool)
	n, err := s.RetryFetches(t.Context(), store.FetchFilter{Account: account})
	require.NoError(t, err)
	require.Equal(t, 2, n, "the dead and the late; what is being asked about is left alone")
	require.Equal(t, 2, count(t, pool, `river_job WHERE kind = 'fetch'`))
	for _, o := range []string{"payment/dead", "payment/late"} {
		require.Equal(t, 1, claimFetch(t, s, o).Attempt, o)
	}
	require.False(t, settleFetch(t, s, out, store.FetchAnswer{Done: true}).Stale)
}

func TestRetryFetchesTakesThemAll(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	exec(t, pool, `INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, settled_at)
		SELECT $1, 'mollie', 'payment/' || n, 'mollie-classic', 'dead', NULL, now() FROM generate_series(1, 1203) n`, account)
	n, err := s.RetryFetches(t.Context(), store.FetchFilter{})
	require.NoError(t, err)
	require.Equal(t, 1203, n)
	require.Equal(t, 1203, count(t, pool, `river_job WHERE kind = 'fetch'`))
}
