package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Due is an account with promises that have lapsed.
type Due struct {
	Account string
	Since   time.Duration // how long ago its oldest promise was due
}

// sqlDue walks the accounts that have promises, one index probe each: neither accounts nor orders without any are read.
const sqlDue = `
	WITH RECURSIVE due (account_id, wake_at) AS (
		(SELECT account_id, wake_at FROM orders
		WHERE wake_at IS NOT NULL
		ORDER BY account_id, wake_at LIMIT 1)
	UNION ALL
		SELECT n.account_id, n.wake_at
		FROM due d
		CROSS JOIN LATERAL (
			SELECT o.account_id, o.wake_at FROM orders o
			WHERE o.wake_at IS NOT NULL AND o.account_id > d.account_id
			ORDER BY o.account_id, o.wake_at LIMIT 1) n
	)
	SELECT account_id, clock_timestamp() - wake_at FROM due
	WHERE wake_at < (SELECT clock_timestamp()) - $1::interval`

// sqlRenew renews promises that no job will keep: they are older than the grace, and older than the oldest job that
// waits in the queue, which is first in, first out. Without the second condition a backlog would be enqueued once more
// at every tick. The new promise is now, so that the job which goes with it is given its turn in the queue.
const sqlRenew = `
	WITH bound AS (
		SELECT least(clock_timestamp(), (
			SELECT min(scheduled_at) FROM river_job
			WHERE state = 'available' AND queue = $3 AND priority = $5)) - $4::interval AS t
	), lapsed AS (
		SELECT l.account_id, l.id
		FROM unnest($1::text[], $2::int[]) AS a (id, most)
		CROSS JOIN LATERAL (
			SELECT o.account_id, o.id FROM orders o
			WHERE o.account_id = a.id AND o.wake_at < (SELECT t FROM bound)
			ORDER BY o.wake_at LIMIT a.most
			FOR NO KEY UPDATE SKIP LOCKED) l
	)
	UPDATE orders o SET wake_at = clock_timestamp()
	FROM lapsed l
	WHERE o.account_id = l.account_id AND o.id = l.id
	RETURNING o.account_id, o.id`

// LapsedAccounts returns the accounts that have a promise which lapsed more than grace ago, in order of their names.
func (s *Store) LapsedAccounts(ctx context.Context, grace time.Duration) ([]Due, error) {
	rows, _ := s.pool.Query(ctx, sqlDue, grace)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Due])
	if err != nil {
		return nil, fmt.Errorf("find accounts with lapsed promises: %w", err)
	}
	return due, nil
}

// Renew asks for drain jobs for orders whose promise lapsed more than grace ago without a job that would keep it: at
// most so many per account as most says. It returns how many it asked for, by account. New promises and jobs commit
// together. It never waits for a lock: an order that is locked is being looked at.
//
// The grace covers the difference between the clocks of the processes that enqueue and the database's.
func (s *Store) Renew(ctx context.Context, most map[string]int, grace time.Duration) (map[string]int, error) {
	var (
		accounts []string
		limits   []int32
	)
	for a, n := range most {
		accounts, limits = append(accounts, a), append(limits, int32(n))
	}
	renewed := map[string]int{}
	if len(accounts) == 0 {
		return renewed, nil
	}
	_, err := retry(ctx, &s.retried, func() (struct{}, error) {
		clear(renewed)
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, sqlRenew, accounts, limits, Queue, grace, priorityDrain)
			var (
				jobs    []job
				account string
				id      uuid.UUID
			)
			_, err := pgx.ForEachRow(rows, []any{&account, &id}, func() error {
				jobs = append(jobs, job{DrainArgs: DrainArgs{account, id}})
				renewed[account]++
				return nil
			})
			if err != nil {
				return err
			}
			return s.enqueue(ctx, tx, jobs)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("renew lapsed promises: %w", err)
	}
	return renewed, nil
}

// sqlLapsed moves the promise of an order whose claim lapsed back to when its effect was asked for, its old place in the
// line. An order is done so once: its promise was the end of the claim before, and is not after.
const sqlLapsed = `
	WITH lapsed AS (
		SELECT o.account_id, o.id, t.at
		FROM order_transitions t
		JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id AND o.wake_at = t.claimed_until
		WHERE t.effect_state = 'claimed' AND t.claimed_until < (SELECT clock_timestamp())
		ORDER BY t.claimed_until LIMIT $1
		FOR NO KEY UPDATE OF o SKIP LOCKED
	)
	UPDATE orders o SET wake_at = l.at
	FROM lapsed l
	WHERE o.account_id = l.account_id AND o.id = l.id
	RETURNING o.account_id, o.id`

// RenewClaims asks for drain jobs for up to limit orders whose claim lapsed, and returns how many those were. A claim is
// made without a job for its end, and both its times are the database's, so neither a grace nor the length of the queue
// matters: the jobs go before all others, for these effects had their turn.
func (s *Store) RenewClaims(ctx context.Context, limit int) (int, error) {
	n, err := retry(ctx, &s.retried, func() (n int, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, sqlLapsed, limit)
			lapsed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DrainArgs])
			if err != nil {
				return err
			}
			jobs := make([]job, len(lapsed))
			for i, args := range lapsed {
				jobs[i] = job{DrainArgs: args, urgent: true}
			}
			n = len(jobs)
			return s.enqueue(ctx, tx, jobs)
		})
		return n, err
	})
	if err != nil {
		return 0, fmt.Errorf("renew lapsed claims: %w", err)
	}
	return n, nil
}

// MaxDeadCount is where [Store.DeadCount] stops counting.
const MaxDeadCount = 10_000

// DeadCount is how many effects are dead, over all accounts, up to [MaxDeadCount].
func (s *Store) DeadCount(ctx context.Context) (n int, err error) {
	err = s.pool.QueryRow(ctx, `
		SELECT count(*) FROM (
			SELECT FROM order_transitions WHERE effect_state = 'dead' LIMIT $1) d`, MaxDeadCount).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count dead effects: %w", err)
	}
	return n, nil
}
