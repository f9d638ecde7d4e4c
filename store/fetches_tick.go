package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// sqlRenewFetches is sqlDue and sqlRenew for objects: it walks the accounts that have promises, and renews those that
// are older than the grace and than the oldest job that waits.
const sqlRenewFetches = `
	WITH RECURSIVE accounts (id) AS (
		(SELECT account_id FROM fetches WHERE next_at IS NOT NULL ORDER BY account_id, next_at LIMIT 1)
	UNION ALL
		SELECT n.account_id FROM accounts a
		CROSS JOIN LATERAL (
			SELECT f.account_id FROM fetches f
			WHERE f.next_at IS NOT NULL AND f.account_id > a.id
			ORDER BY f.account_id, f.next_at LIMIT 1) n
	), bound AS (
		SELECT least(clock_timestamp(), (
			SELECT min(scheduled_at) FROM river_job WHERE state = 'available' AND queue = $1)) - $2::interval AS t
	), lapsed AS (
		SELECT l.account_id, l.source_id, l.object
		FROM accounts a
		CROSS JOIN LATERAL (
			SELECT f.account_id, f.source_id, f.object FROM fetches f
			WHERE f.account_id = a.id AND f.next_at < (SELECT t FROM bound)
			ORDER BY f.next_at LIMIT $3
			FOR NO KEY UPDATE SKIP LOCKED) l
	)
	UPDATE fetches f SET next_at = clock_timestamp()
	FROM lapsed l
	WHERE f.account_id = l.account_id AND f.source_id = l.source_id AND f.object = l.object
	RETURNING f.account_id, f.source_id, f.object`

// RenewFetches asks for jobs for objects whose promise lapsed more than grace ago without a job that would keep it:
// deleted, given up, or lost with its process. At most so many per account. It returns how many it asked for, by
// account. New promises and jobs commit together; rows that are locked are being looked at.
func (s *Store) RenewFetches(ctx context.Context, perAccount int, grace time.Duration) (map[string]int, error) {
	renewed := map[string]int{}
	_, err := retry(ctx, &s.retried, func() (struct{}, error) {
		clear(renewed)
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlSettings); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, sqlRenewFetches, FetchQueue, grace, perAccount)
			lapsed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[FetchArgs])
			if err != nil {
				return err
			}
			jobs := make([]fetchJob, len(lapsed))
			for i, args := range lapsed {
				jobs[i] = fetchJob{FetchArgs: args}
				renewed[args.Account]++
			}
			return s.enqueueFetches(ctx, tx, jobs)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("renew lapsed fetches: %w", err)
	}
	return renewed, nil
}

// FetchPile is how the objects of one gateway stand, over all accounts.
type FetchPile struct {
	Open   int           // announced, and not asked about since
	Oldest time.Duration // how long the one that waits the longest has been announced
	Dead   int           // given up
}

// maxFetchPile is where [Store.FetchPiles] stops counting.
const maxFetchPile = 100_000

// FetchPiles counts open and dead objects, by gateway.
func (s *Store) FetchPiles(ctx context.Context) (map[string]FetchPile, error) {
	piles := map[string]FetchPile{}
	var (
		b       pgx.Batch
		gateway string
		n       int
		oldest  time.Duration
	)
	b.Queue("BEGIN READ ONLY")
	b.Queue(sqlSettings)
	b.Queue(`
		SELECT gateway, count(*), max(clock_timestamp() - announced_at)
		FROM (SELECT gateway, announced_at FROM fetches WHERE next_at IS NOT NULL LIMIT $1) f GROUP BY 1`, maxFetchPile).
		Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&gateway, &n, &oldest}, func() error {
				piles[gateway] = FetchPile{Open: n, Oldest: max(0, oldest)}
				return nil
			})
			return err
		})
	b.Queue(`
		SELECT gateway, count(*)
		FROM (SELECT gateway FROM fetches WHERE state = 'dead' LIMIT $1) f GROUP BY 1`, maxFetchPile).
		Query(func(rows pgx.Rows) error {
			_, err := pgx.ForEachRow(rows, []any{&gateway, &n}, func() error {
				p := piles[gateway]
				p.Dead = n
				piles[gateway] = p
				return nil
			})
			return err
		})
	b.Queue("COMMIT")
	if err := s.inPipe(ctx, func(tx *pipedTx) error { return send(ctx, tx, &b) }); err != nil {
		return nil, fmt.Errorf("count fetches: %w", err)
	}
	return piles, nil
}

// strangersKept is how long an object that was given up and never once found is kept, for a person to see. Of unsigned
// deliveries it may be anybody's invention.
const strangersKept = 3 * 24 * time.Hour

// DropFetches deletes what was settled longer than keep ago, and objects that were never found after three days. It
// returns how many rows it deleted.
func (s *Store) DropFetches(ctx context.Context, keep time.Duration) (dropped int64, err error) {
	const atOnce = 5000
	for _, d := range []struct {
		which string
		age   time.Duration
	}{
		{`f.state <> 'open'`, keep},
		{`f.state = 'dead' AND f.last_digest IS NULL`, min(keep, strangersKept)},
	} {
		for n := int64(atOnce); n == atOnce; dropped += n {
			if n, err = s.dropFetches(ctx, d.which, d.age, atOnce); err != nil {
				return dropped, fmt.Errorf("delete old fetches: %w", err)
			}
		}
	}
	return dropped, nil
}

func (s *Store) dropFetches(ctx context.Context, which string, age time.Duration, limit int) (n int64, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlSettings); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			WITH old AS MATERIALIZED (
				SELECT account_id, source_id, object FROM fetches f
				WHERE f.settled_at < (SELECT clock_timestamp()) - $1::interval AND `+which+`
				LIMIT $2
				FOR UPDATE SKIP LOCKED)
			DELETE FROM fetches f USING old o
			WHERE f.account_id = o.account_id AND f.source_id = o.source_id AND f.object = o.object`, age, limit)
		n = tag.RowsAffected()
		return err
	})
	return n, err
}
