package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// Statements are prepared on empty tables; as these grow, an event must go on reading as few rows as at first. A plan that
// reads a whole account where one row was asked for reads more with every event.
func TestApplyReadsAsLittleOnTablesThatGrow(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.MaxConns = 1 // whose session tells all that was read
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)

	const batches, perBatch = 60, 50
	reads := make([]int64, 0, 3) // index entries, after each third
	for b := range batches {
		var events []store.Event
		for i := range perBatch {
			ref, p := fmt.Sprintf("ord_%d_%d", b, i), fmt.Sprintf("pi_%d_%d", b, i)
			events = append(events, register(ref, 5000), captured("evt_"+p, p, ref, 5000))
		}
		apply(t, s, events...)
		if (b+1)%(batches/3) == 0 {
			reads = append(reads, indexReads(t, pool))
		}
	}
	first, last := reads[0], reads[2]-reads[1]
	t.Logf("index entries read by the first third of the events: %d, by the last: %d", first, last)
	require.Greater(t, first, int64(2*batches/3*perBatch), "the session has told what it read")
	require.Less(t, last, first+first/4)
	var scanned int64
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT sum(seq_tup_read) FROM pg_stat_user_tables
		WHERE relname IN ('orders', 'payments', 'payment_ids', 'processed_events', 'order_transitions')`).Scan(&scanned))
	require.Zero(t, scanned, "rows read in sequence")
}

// indexReads is how many index entries the pool's only session has read so far.
func indexReads(t *testing.T, pool *pgxpool.Pool) (n int64) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT sum(idx_tup_read) FROM pg_stat_user_indexes`).Scan(&n))
	return n
}
