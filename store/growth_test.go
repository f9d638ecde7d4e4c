package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// Statements are prepared on empty tables; as these grow, an event must go on reading a few index entries and no more. A
// plan that reads a whole account where one row was asked for would read thousands.
func TestApplyReadsAsLittleOnTablesThatGrow(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	const batches, perBatch = 60, 50
	for b := range batches {
		var events []store.Event
		for i := range perBatch {
			ref, p := fmt.Sprintf("ord_%d_%d", b, i), fmt.Sprintf("pi_%d_%d", b, i)
			events = append(events, register(ref, 5000), captured("evt_"+p, p, ref, 5000))
		}
		apply(t, s, events...)
	}
	_, err := pool.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`)
	require.NoError(t, err)
	pool.Reset() // sessions that end have told what they read
	var read, scanned int64
	require.Eventually(t, func() bool {
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(sum(idx_tup_read), 0) FROM pg_stat_user_indexes`).Scan(&read))
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables
			WHERE relname IN ('orders', 'payments', 'payment_ids', 'processed_events', 'order_transitions')`).Scan(&scanned))
		return read >= batches*perBatch
	}, waitLong, waitTick)
	events := int64(2 * batches * perBatch)
	t.Logf("%d index entries read for %d events", read, events)
	require.Less(t, read/events, int64(60))
	require.Less(t, scanned/events, int64(20))
}
