package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// FetchClaim is an object that is to be asked about now, and the right to say what came of it until the lease ends.
type FetchClaim struct {
	Account, Source, Object string
	Gateway                 string

	// Attempt counts from 1: this one, and those before it that failed in a row in the way that Failing names (empty:
	// none did) or were never settled.
	Attempt int
	Failing string
	Fence   int64

	// AskedAt is when the claim began, by the database's clock: the answer knows at least what was so then.
	AskedAt time.Time

	// Digest is what the last settle said of what was taken in; empty: nothing was yet.
	Digest string

	Lag     time.Duration // how long after it was due it was claimed
	Expired bool          // an earlier claim had lapsed: whoever held it is taken for dead

	// Overtaken: another source of the account told of this object since Digest was taken in (two sources of one
	// gateway, or its old and its new webhooks), so that an answer like the last one may be news.
	Overtaken bool
}

const sqlClaimFetch = `
	UPDATE fetches f SET
		attempts = f.attempts + 1, fence = f.fence + 1, again = false, asked_at = c.now,
		claimed_until = c.now + $1::interval, next_at = c.now + $1::interval
	FROM due d, LATERAL (SELECT clock_timestamp() AS now) c
	WHERE f.account_id = d.account_id AND f.source_id = d.source_id AND f.object = d.object
	RETURNING f.account_id, f.source_id, f.object, f.gateway, f.attempts, coalesce(f.failing, ''), f.fence, f.asked_at, coalesce(f.last_digest, ''),
		f.asked_at - d.next_at, d.claimed_until IS NOT NULL,
		EXISTS (SELECT FROM fetches o
			WHERE o.account_id = f.account_id AND o.object = f.object AND o.source_id <> f.source_id AND o.told_at > f.told_at)`

// ClaimFetch claims an object, if it is due and nobody else is asking about it: nil if not. The attempt is counted and
// the claim commits before ClaimFetch returns.
func (s *Store) ClaimFetch(ctx context.Context, account, source, object string, lease time.Duration) (*FetchClaim, error) {
	c, err := s.claimFetch(ctx, `
		WITH due AS MATERIALIZED (
			SELECT account_id, source_id, object, next_at, claimed_until FROM fetches
			WHERE account_id = $2 AND source_id = $3 AND object = $4 AND next_at <= clock_timestamp()
			FOR NO KEY UPDATE)`+sqlClaimFetch, lease, account, source, object)
	if err != nil {
		return nil, fmt.Errorf("claim %s of source %s: %w", object, source, err)
	}
	return c, nil
}

// PullFetch claims the account's object that has been due the longest; nil if there is none.
func (s *Store) PullFetch(ctx context.Context, account string, lease time.Duration) (*FetchClaim, error) {
	c, err := s.claimFetch(ctx, `
		WITH due AS MATERIALIZED (
			SELECT account_id, source_id, object, next_at, claimed_until FROM fetches
			WHERE account_id = $2 AND next_at <= (SELECT clock_timestamp())
			ORDER BY next_at LIMIT 1
			FOR NO KEY UPDATE SKIP LOCKED)`+sqlClaimFetch, lease, account)
	if err != nil {
		return nil, fmt.Errorf("pull a due object of %s: %w", account, err)
	}
	return c, nil
}

func (s *Store) claimFetch(ctx context.Context, sql string, args ...any) (*FetchClaim, error) {
	return retry(ctx, &s.retried, func() (c *FetchClaim, err error) {
		var b pgx.Batch
		b.Queue("BEGIN")
		b.Queue(sqlSettings)
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByPos[FetchClaim])
			if len(found) > 0 {
				c = found[0]
			}
			return err
		})
		b.Queue("COMMIT")
		err = s.inPipe(ctx, func(tx *pipedTx) error { return send(ctx, tx, &b) })
		return c, err
	})
}

// FetchAnswer is what came of a call.
type FetchAnswer struct {
	Done   bool   // the answer is taken in
	Digest string // of it, if Done
	Told   bool   // and it was ingested, because it was news

	// Failing is otherwise the way in which it failed. A failure of another way than the one before begins to count anew.
	Failing string

	Dead bool          // otherwise: it is given up until it is announced again
	Wait time.Duration // otherwise: ask again after this
	Free bool          // otherwise: no call was made, so the attempt does not count
	Err  string        // why not, for people; cut to 500 bytes
}

// FetchSettled says what a [FetchAnswer] did.
type FetchSettled struct {
	Stale    bool // the claim had lapsed and been taken by another: nothing was written
	Dead     bool // it was given up
	Again    bool // it is to be asked about once more, at once: it was announced during the call
	Resolved int  // events that had waited for it
}

const sqlSettleFetch = `
	UPDATE fetches f SET
		state = x.state, claimed_until = NULL, again = false,
		next_at = CASE WHEN x.state = 'open' THEN greatest(clock_timestamp() + $5::interval, x.earliest) END,
		announced_at = CASE WHEN $6 AND f.again THEN f.asked_at ELSE f.announced_at END,
		settled_at = CASE WHEN x.state = 'open' THEN f.settled_at ELSE clock_timestamp() END,
		attempts = CASE WHEN $6 THEN 0 WHEN $8 THEN f.attempts - 1 WHEN f.failing <> $11 THEN 1 ELSE f.attempts END,
		failing = CASE WHEN $6 THEN NULL WHEN $8 THEN f.failing ELSE $11 END,
		unchanged = x.unchanged,
		last_digest = CASE WHEN $6 THEN $9 ELSE f.last_digest END,
		told_at = CASE WHEN $12 THEN f.asked_at ELSE f.told_at END,
		last_error = CASE WHEN NOT $6 THEN $10 END
	FROM (
		SELECT CASE WHEN f.again OR NOT $6 AND NOT $7 THEN 'open' WHEN $6 THEN 'done' ELSE 'dead' END AS state, f.unchanged,
			CASE WHEN $6 THEN f.asked_at + ` + sqlPause + ` END AS earliest
		FROM (
			SELECT again, asked_at, CASE WHEN NOT $6 THEN unchanged WHEN last_digest IS NOT DISTINCT FROM $9 THEN unchanged + 1 ELSE 0 END AS unchanged
			FROM fetches
			WHERE account_id = $1 AND source_id = $2 AND object = $3 AND fence = $4 AND claimed_until IS NOT NULL
			FOR NO KEY UPDATE) f) x
	WHERE f.account_id = $1 AND f.source_id = $2 AND f.object = $3
	RETURNING f.state, f.next_at, clock_timestamp()`

// resolveLimit bounds how many waiting events one transaction resolves.
const resolveLimit = 256

const sqlResolve = `
	WITH waiting AS MATERIALIZED (
		SELECT event_id FROM processed_events
		WHERE account_id = $1 AND source_id = $2 AND facts ->> 'fetch' = $3 AND outcome = 'waiting' AND received_at <= $4
		ORDER BY event_id LIMIT $5
		FOR NO KEY UPDATE)
	UPDATE processed_events e SET outcome = 'no_change', reason = $6
	FROM waiting w
	WHERE e.account_id = $1 AND e.source_id = $2 AND e.event_id = w.event_id`

// SettleFetch records what came of the call of c, in one transaction with the job that asks again, if one has to, and,
// after a success, with the outcome of the events that were received before the call and had waited for it. Only the
// claim's fence decides; settling twice is harmless.
func (s *Store) SettleFetch(ctx context.Context, c FetchClaim, a FetchAnswer) (FetchSettled, error) {
	out, err := retry(ctx, &s.retried, func() (out FetchSettled, err error) {
		err = s.inPipe(ctx, func(tx *pipedTx) error {
			out, err = s.settleFetch(ctx, tx, c, a)
			return err
		})
		return out, err
	})
	for n := out.Resolved; err == nil && n == resolveLimit; out.Resolved += n {
		n, err = s.resolveMore(ctx, c)
	}
	if err != nil {
		return FetchSettled{}, fmt.Errorf("settle %s of source %s: %w", c.Object, c.Source, err)
	}
	return out, nil
}

func (s *Store) settleFetch(ctx context.Context, tx *pipedTx, c FetchClaim, a FetchAnswer) (FetchSettled, error) {
	var (
		out   FetchSettled
		state string
		next  *time.Time
		now   time.Time
		b     pgx.Batch
	)
	b.Queue("BEGIN")
	b.Queue(sqlSettings)
	b.Queue(sqlSettleFetch, c.Account, c.Source, c.Object, c.Fence, max(0, a.Wait), a.Done, a.Dead, a.Free, a.Digest, storable(a.Err), a.Failing, a.Told).
		QueryRow(func(row pgx.Row) error { return row.Scan(&state, &next, &now) })
	if err := send(ctx, tx, &b); errors.Is(err, pgx.ErrNoRows) {
		return FetchSettled{Stale: true}, nil
	} else if err != nil {
		return out, err
	}
	out.Dead, out.Again = state == "dead", state == "open" && a.Done
	if a.Done {
		n, err := resolve(ctx, tx, c)
		if err != nil {
			return out, err
		}
		out.Resolved = n
	}
	b = pgx.Batch{}
	if next != nil {
		j := fetchAt(FetchArgs{c.Account, c.Source, c.Object}, *next, now)
		if err := s.enqueueFetches(ctx, tx, []fetchJob{j}); err != nil {
			return out, err
		}
		if j.at.IsZero() && s.fetchBell.rings(now) {
			queueFetchBell(&b)
		}
	}
	b.Queue("COMMIT")
	return out, send(ctx, tx, &b)
}

func resolve(ctx context.Context, tx pgx.Tx, c FetchClaim) (int, error) {
	tag, err := tx.Exec(ctx, sqlResolve, c.Account, c.Source, c.Object, c.AskedAt, resolveLimit, ReasonFetched+": "+c.Object)
	return int(tag.RowsAffected()), err
}

func (s *Store) resolveMore(ctx context.Context, c FetchClaim) (int, error) {
	return retry(ctx, &s.retried, func() (n int, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlSettings); err != nil {
				return err
			}
			n, err = resolve(ctx, tx, c)
			return err
		})
		return n, err
	})
}
