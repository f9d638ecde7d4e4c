package store_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// Statements are prepared on empty tables; as these grow, an event must go on reading a few rows and no more. A plan that
// reads a whole account where one row was asked for would read thousands.
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
	for b := range batches {
		var events []store.Event
		for i := range perBatch {
			ref, p := fmt.Sprintf("ord_%d_%d", b, i), fmt.Sprintf("pi_%d_%d", b, i)
			events = append(events, register(ref, 5000), captured("evt_"+p, p, ref, 5000))
		}
		apply(t, s, events...)
	}
	_, err = pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	var read, written, scanned int64
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT sum(n_tup_ins), sum(seq_tup_read) FROM pg_stat_user_tables
		WHERE relname IN ('orders', 'payments', 'payment_ids', 'processed_events', 'order_transitions')`).Scan(&written, &scanned))
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT sum(idx_tup_read) FROM pg_stat_user_indexes`).Scan(&read))
	const events = 2 * batches * perBatch
	t.Logf("%d rows written, %d index entries and %d rows in sequence read for %d events", written, read, scanned, events)
	require.GreaterOrEqual(t, written, int64(events), "the session has told what it did")
	require.Less(t, read/events, int64(40), "index entries per event")
	require.Less(t, scanned/events, int64(20), "rows read in sequence per event")
}
