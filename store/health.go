package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// ReviewKey names a pile of events that somebody should look at.
type ReviewKey struct {
	Account string
	Outcome Outcome
}

// Health counts what waits for somebody.
type Health struct {
	StubsByAccount map[string]int    // orders with a payment that nobody registered in time
	Review         map[ReviewKey]int // waiting, flagged and quarantined events
	StuckByKind    map[string]int    // River jobs that run far longer than any may
}

// Stubs is the sum of StubsByAccount.
func (h Health) Stubs() int { return sum(h.StubsByAccount) }

// Stuck is the sum of StuckByKind.
func (h Health) Stuck() int { return sum(h.StuckByKind) }

func sum(m map[string]int) (n int) {
	for _, v := range m {
		n += v
	}
	return n
}

// Health counts stubs older than stubAge, events to review, and jobs that have been running for over ten minutes (no job
// of ours may take so long; River's rescuer frees them).
func (s *Store) Health(ctx context.Context, stubAge time.Duration) (Health, error) {
	h := Health{StubsByAccount: map[string]int{}, Review: map[ReviewKey]int{}, StuckByKind: map[string]int{}}
	var b pgx.Batch
	b.Queue(`
		SELECT o.account_id, count(*) FROM orders o
		WHERE NOT o.registered AND o.total IS NULL AND o.created_at < now() - $1::interval
			AND EXISTS (SELECT FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id)
		GROUP BY 1`, stubAge).Query(func(rows pgx.Rows) error { return countInto(rows, h.StubsByAccount) })
	b.Queue(`
		SELECT account_id, outcome, count(*) FROM processed_events
		WHERE outcome IN ('waiting', 'flagged', 'quarantined') AND dismissed_at IS NULL GROUP BY 1, 2`).Query(func(rows pgx.Rows) error {
		var k ReviewKey
		var n int
		_, err := pgx.ForEachRow(rows, []any{&k.Account, &k.Outcome, &n}, func() error {
			h.Review[k] = n
			return nil
		})
		return err
	})
	b.Queue(`
		SELECT kind, count(*) FROM river_job WHERE state = 'running' AND attempted_at < now() - interval '10 minutes' GROUP BY 1`).
		Query(func(rows pgx.Rows) error { return countInto(rows, h.StuckByKind) })
	if err := send(ctx, s.pool, &b); err != nil {
		return h, fmt.Errorf("count what waits: %w", err)
	}
	return h, nil
}

func countInto(rows pgx.Rows, m map[string]int) error {
	var k string
	var n int
	_, err := pgx.ForEachRow(rows, []any{&k, &n}, func() error {
		m[k] = n
		return nil
	})
	return err
}
