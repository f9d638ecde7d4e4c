package store_test

import (
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

func partitions(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'event_payloads'::regclass ORDER BY 1`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return names
}

func TestPartitionsStandReady(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	all := partitions(t, pool)
	for _, name := range all[len(all)-3:] {
		_, err := pool.Exec(t.Context(), `DROP TABLE `+name)
		require.NoError(t, err)
	}
	var made [4]int
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			n, err := s.EnsurePartitions(t.Context())
			if err != nil {
				t.Error(err)
			}
			made[i] = n
		})
	}
	wg.Wait()
	require.Equal(t, all, partitions(t, pool))
	n, err := s.EnsurePartitions(t.Context())
	require.NoError(t, err)
	require.Zero(t, n)
	var compression string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT attcompression FROM pg_attribute WHERE attrelid = $1::regclass AND attname = 'body'`,
		all[len(all)-1]).Scan(&compression))
	require.Equal(t, "l", compression, "a new partition compresses like the first ones")
}

// old moves a day's worth of payloads into a partition of its own, long ago.
func old(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		CREATE TABLE event_payloads_20200101 PARTITION OF event_payloads FOR VALUES FROM ('2020-01-01 00:00:00+00') TO ('2020-01-02 00:00:00+00');
		UPDATE event_payloads SET received_at = '2020-01-01 12:00:00+00'`)
	require.NoError(t, err)
}

func TestRetentionKeepsWhatIsNotResolved(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	broken := captured("evt_broken", "pi_b", "ord_b", 0)
	broken.Facts, broken.Broken = nil, "amount is null"
	apply(t, s, register("ord_1", 100))
	apply(t, s, captured("evt_applied", "pi_1", "ord_1", 100), captured("evt_waits", "pi_2", "ord_2", 100), broken)
	old(t, pool)

	dropped, err := s.DropPartitions(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{"event_payloads_20200101"}, dropped)
	require.NotContains(t, partitions(t, pool), "event_payloads_20200101")

	key := func(id string) store.EventKey { return store.EventKey{Account: account, Source: "stripe", ID: id} }
	_, err = s.Payload(t.Context(), key("evt_applied"))
	require.ErrorIs(t, err, store.ErrNotFound)
	for _, id := range []string{"evt_waits", "evt_broken"} {
		p, err := s.Payload(t.Context(), key(id))
		require.NoError(t, err)
		require.JSONEq(t, `{"id":"`+id+`"}`, string(p.Body))
	}
	require.Equal(t, 4, count(t, pool, "processed_events"), "the narrow rows stay")

	// Once its order is registered, the event waits no longer.
	apply(t, s, register("ord_2", 100))
	dropped, err = s.DropPartitions(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Empty(t, dropped)
	_, err = s.Payload(t.Context(), key("evt_waits"))
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.Payload(t.Context(), key("evt_broken"))
	require.NoError(t, err)
}

func TestDropPartitionsFinishesAnInterruptedDetach(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 100))
	old(t, pool)
	// A reader of the partition keeps DETACH CONCURRENTLY waiting in its second half; its backend is killed there.
	reader, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = reader.Exec(t.Context(), `SELECT count(*) FROM event_payloads`)
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() {
		_, err := s.DropPartitions(t.Context(), 24*time.Hour)
		done <- err
	}()
	waitForLock(t, pool)
	_, err = pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DETACH%'`)
	require.NoError(t, err)
	require.Error(t, <-done)
	require.NoError(t, reader.Rollback(t.Context()))

	dropped, err := s.DropPartitions(t.Context(), 24*time.Hour)
	require.NoError(t, err)
	require.Equal(t, []string{"event_payloads_20200101"}, dropped)
	_, err = s.Payload(t.Context(), store.EventKey{Account: account, Source: "stripe", ID: "evt_1"})
	require.NoError(t, err)
}
