package idempotency

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// sweepBatch is how many rows one statement deletes at most, so that no sweep holds many locks.
const sweepBatch = 1000

// SweepResult is what a sweep has done, and what it has left.
type SweepResult struct {
	Expired int64 // keys deleted at the end of their time
	Reaped  int64 // of those, calls that were given up and never tried again

	Rows             int64         // keys in the table now, as the database estimates
	Unswept          int64         // expired keys that are left, because a call holds them or the sweep was cut short
	OldestProcessing time.Duration // of the call that has been silent for longest; 0: none
}

// Both statements read one of the partial indexes in order. now() is the statement's start, and an index can be searched
// by it, which clock_timestamp() cannot. SKIP LOCKED leaves alone what a call or another sweep is working on.
const (
	sqlSweep = `
DELETE FROM idempotency_keys
WHERE id = ANY (ARRAY(
  SELECT id FROM idempotency_keys
  WHERE status <> 'PROCESSING' AND expires_at <= now()
  ORDER BY expires_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED))`

	sqlReap = `
DELETE FROM idempotency_keys
WHERE id = ANY (ARRAY(
  SELECT id FROM idempotency_keys
  WHERE status = 'PROCESSING' AND locked_at <= now() AND locked_at + lock_timeout <= now() AND expires_at <= now()
  ORDER BY locked_at
  LIMIT $1::int
  FOR UPDATE SKIP LOCKED))`

	sqlStats = `
SELECT greatest((SELECT reltuples FROM pg_class WHERE oid = 'idempotency_keys'::regclass), 0)::bigint,
  (SELECT count(*) FROM (SELECT FROM idempotency_keys WHERE status <> 'PROCESSING' AND expires_at <= now() LIMIT 100000) u),
  (SELECT clock_timestamp() - min(locked_at) FROM idempotency_keys WHERE status = 'PROCESSING')`
)

// Sweep deletes the keys that have expired, in batches of at most 1000 rows, each of them a transaction. Any number of processes
// may sweep at once. It must be called now and then, some minutes apart: expired keys are not honoured, but they remain until then.
// What was deleted before an error stays deleted.
func (s *Store) Sweep(ctx context.Context) (SweepResult, error) {
	var res SweepResult
	for _, part := range []struct {
		sql   string
		count *int64
	}{{sqlSweep, &res.Expired}, {sqlReap, &res.Reaped}} {
		for {
			n, err := s.sweepOnce(ctx, part.sql)
			if err != nil {
				return res, fmt.Errorf("idempotency: sweep: %w", err)
			}
			if *part.count += n; n < sweepBatch {
				break
			}
		}
	}
	res.Expired += res.Reaped
	err := s.onPool(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		var oldest pgtype.Interval
		if err := conn.QueryRow(ctx, sqlStats).Scan(&res.Rows, &res.Unswept, &oldest); err != nil {
			return err
		}
		res.OldestProcessing = duration(oldest)
		return nil
	})
	if err != nil {
		return res, fmt.Errorf("idempotency: sweep: %w", err)
	}
	s.stats.Store(&res)
	return res, nil
}

func (s *Store) sweepOnce(ctx context.Context, sql string) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	err = s.onPool(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		tag, err := conn.Exec(ctx, sql, sweepBatch)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}
