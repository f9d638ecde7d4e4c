package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// An announcement, its call and what had waited for it read as few rows in a large table as in an empty one, and none in
// sequence. The tables grow without an ANALYZE, after the statements were prepared.
func TestFetchesReadAsLittleOnTablesThatGrow(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.MaxConns = 1 // whose session tells all that was read
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	exec(t, pool, `ALTER TABLE fetches SET (autovacuum_enabled = off); ALTER TABLE processed_events SET (autovacuum_enabled = off)`)

	round := func(object string) int64 {
		t.Helper()
		before := indexReads(t, pool)
		apply(t, s, pointer("evt_"+object, object))
		announce(t, s, object)
		announce(t, s, object)
		c := claimFetch(t, s, object)
		announce(t, s, object)
		require.Equal(t, 1, settleFetch(t, s, c, store.FetchAnswer{Done: true, Digest: "paid"}).Resolved)
		c, err := s.PullFetch(t.Context(), account, lease)
		require.NoError(t, err)
		settleFetch(t, s, c, store.FetchAnswer{Done: true, Digest: "refunded"})
		_, err = s.RenewFetches(t.Context(), 64, 0)
		require.NoError(t, err)
		_, err = s.FetchPiles(t.Context())
		require.NoError(t, err)
		_, err = s.DropFetches(t.Context(), 400*24*time.Hour)
		require.NoError(t, err)
		return indexReads(t, pool) - before
	}
	var small int64
	for _, object := range []string{"payment/a", "payment/b", "payment/c", "payment/d", "payment/e", "payment/f"} {
		small = round(object) // generic plans come with the sixth time
	}
	exec(t, pool, `
		INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, last_digest, settled_at)
		SELECT $1, 'mollie', 'payment/' || n, 'mollie-classic', 'done', NULL, 'd', now() - interval '100 days' FROM generate_series(1, 20000) n`, account)
	exec(t, pool, `
		INSERT INTO processed_events (account_id, source_id, event_id, type, outcome, reason, facts, facts_hash, mapping_version)
		SELECT $1, 'mollie', 'evt_' || n, 't', 'waiting', 'needs_fetch: payment/' || n, jsonb_build_object('fetch', 'payment/' || n), '', 1
		FROM generate_series(1, 20000) n`, account)
	large := round("payment/g")
	t.Logf("index entries read on small tables: %d, on large ones: %d", small, large)
	require.Positive(t, small)
	require.Less(t, large, small+small/2+10)
	var scanned int64
	require.NoError(t, pool.QueryRow(t.Context(),
		`SELECT sum(seq_tup_read) FROM pg_stat_user_tables WHERE relname IN ('fetches', 'processed_events')`).Scan(&scanned))
	require.Zero(t, scanned, "rows read in sequence")
}
