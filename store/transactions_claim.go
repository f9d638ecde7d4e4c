package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// MoveClaim is a transaction that is to be called or looked up now, and the right to say what came of it until the lease ends.
type MoveClaim struct {
	Transaction
	Request

	// Fence tells this claim from every other one; Since is when it began, by the database's clock.
	Fence int64
	Since time.Time

	Lag     time.Duration // how long after it was due it was claimed
	Expired bool          // an earlier claim had lapsed: whoever held it is taken for dead
}

const sqlClaimMove = `
	UPDATE transactions t SET
		status = CASE t.status WHEN 'pending' THEN 'sent' ELSE t.status END,
		attempts = t.attempts + CASE t.status WHEN 'uncertain' THEN 0 ELSE 1 END, lookups = t.lookups + CASE t.status WHEN 'uncertain' THEN 1 ELSE 0 END,
		fence = t.fence + 1, sent_at = coalesce(t.sent_at, c.now), claimed_until = c.now + $1::interval, next_at = c.now + $1::interval
	FROM due d, LATERAL (SELECT clock_timestamp() AS now) c, orders o
	WHERE t.account_id = d.account_id AND t.id = d.id AND o.account_id = t.account_id AND o.id = t.order_id
	RETURNING ` + transactionRecord + `, t.method, t.path, t.header, t.body, t.fence, c.now, c.now - d.next_at, d.claimed_until IS NOT NULL`

// another is whether another one of the payment has been sent and not settled.
const another = `EXISTS (SELECT FROM transactions x WHERE x.account_id = t.account_id AND x.payment_id = t.payment_id AND x.id <> t.id
	AND x.status IN ('sent', 'uncertain'))`

// ClaimMove claims a transaction, if it is due, nobody else works on it, and no other one of its payment is out: nil if not. From
// then on it may have been sent. The claim commits before ClaimMove returns.
func (s *Store) ClaimMove(ctx context.Context, account string, id uuid.UUID, lease time.Duration) (*MoveClaim, error) {
	c, err := s.claimMove(ctx, `
		WITH due AS MATERIALIZED (
			SELECT account_id, id, next_at, claimed_until FROM transactions t
			WHERE account_id = $2 AND id = $3 AND next_at <= clock_timestamp() AND (status <> 'pending' OR NOT `+another+`)
			FOR NO KEY UPDATE)`+sqlClaimMove, lease, account, pgUUID(id))
	if err != nil {
		return nil, fmt.Errorf("claim transaction %s: %w", id, err)
	}
	return c, nil
}

// PullMove claims the account's transaction that has been due the longest; nil if there is none.
func (s *Store) PullMove(ctx context.Context, account string, lease time.Duration) (*MoveClaim, error) {
	c, err := s.claimMove(ctx, `
		WITH due AS MATERIALIZED (
			SELECT account_id, id, next_at, claimed_until FROM transactions t
			WHERE account_id = $2 AND next_at <= (SELECT clock_timestamp()) AND (status <> 'pending' OR NOT `+another+`)
			ORDER BY next_at LIMIT 1
			FOR NO KEY UPDATE SKIP LOCKED)`+sqlClaimMove, lease, account)
	if err != nil {
		return nil, fmt.Errorf("pull a due transaction of %s: %w", account, err)
	}
	return c, nil
}

func (s *Store) claimMove(ctx context.Context, sql string, args ...any) (*MoveClaim, error) {
	return retry(ctx, &s.retried, func() (c *MoveClaim, err error) {
		var b pgx.Batch
		b.Queue("BEGIN")
		b.Queue(sqlSettings)
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, scanMoveClaim)
			if len(found) > 0 {
				c = &found[0]
			}
			return err
		})
		b.Queue("COMMIT")
		err = s.inPipe(ctx, func(tx *pipedTx) error { return send(ctx, tx, &b) })
		if isOneAtATime(err) {
			return nil, nil // another one of the payment was claimed at this moment: that one's settle calls for this one
		}
		return c, err
	})
}

func isOneAtATime(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && pg.ConstraintName == "transactions_one_at_a_time"
}

func scanMoveClaim(row pgx.CollectableRow) (c MoveClaim, err error) {
	err = row.Scan(append(c.Transaction.dest(), &c.Method, &c.Path, &c.Header, &c.Body, &c.Fence, &c.Since, &c.Lag, &c.Expired)...)
	return c, err
}

// MoveAnswer is what came of a call, or of looking one up.
type MoveAnswer struct {
	// Status is how it stands now. Sent and uncertain come again after Wait, unless Stop says that only a webhook or a person can go
	// on; pending begins a new epoch, under another key: only where it is proven that nothing was done.
	Status TransactionStatus
	Wait   time.Duration
	Stop   bool

	Free bool // no call was made, so the attempt does not count

	GatewayRef   string // the gateway's id of what it made; empty: not told
	Code, Detail string // why it stands so; each cut to 500 bytes

	Events []Event // what the gateway says happened, to be entered in the same transaction
}

// MoveSettled says what a [MoveAnswer] did.
type MoveSettled struct {
	Stale   bool     // the claim had lapsed and been taken by another: what the events say was entered, and nothing else
	Results []Result // of the events
	Next    bool     // another transaction of the payment has its turn now
}

const sqlSettleMove = `
	UPDATE transactions t SET
		status = $5, claimed_until = NULL,
		next_at = CASE WHEN $5 IN ('succeeded', 'failed') OR $7 THEN NULL ELSE clock_timestamp() + $6::interval END,
		epoch = t.epoch + CASE $5 WHEN 'pending' THEN 1 ELSE 0 END,
		key = CASE $5 WHEN 'pending' THEN $12 ELSE t.key END,
		sent_at = CASE $5 WHEN 'pending' THEN NULL ELSE t.sent_at END,
		attempts = CASE WHEN $5 = 'pending' THEN 0 WHEN $8 AND t.status = 'sent' THEN t.attempts - 1 ELSE t.attempts END,
		lookups = CASE WHEN $8 AND t.status = 'uncertain' THEN t.lookups - 1 ELSE t.lookups END,
		gateway_ref = coalesce($9, t.gateway_ref),
		code = $10, detail = $11,
		settled_at = CASE WHEN $5 IN ('succeeded', 'failed') THEN clock_timestamp() END
	WHERE t.account_id = $1 AND t.id = $2 AND t.fence = $3 AND t.epoch = $4 AND t.claimed_until IS NOT NULL
	RETURNING t.next_at, clock_timestamp()`

// sqlNextMove gives the turn to the oldest transaction of the payment that has waited for it.
const sqlNextMove = `
	WITH n AS MATERIALIZED (
		SELECT t.account_id, t.id FROM transactions t
		WHERE t.account_id = $1 AND t.payment_id = $2 AND t.status = 'pending' AND NOT ` + another + `
		ORDER BY t.id LIMIT 1
		FOR NO KEY UPDATE SKIP LOCKED)
	UPDATE transactions t SET next_at = coalesce(t.next_at, clock_timestamp()) FROM n
	WHERE t.account_id = n.account_id AND t.id = n.id
	RETURNING t.id, t.next_at`

// SettleMove enters what the gateway says happened, and records what became of the call of c, in one transaction with the job of
// what has its turn next. Only the claim's fence decides about the record: what a gateway has said is true, whoever heard it.
func (s *Store) SettleMove(ctx context.Context, c MoveClaim, a MoveAnswer) (MoveSettled, error) {
	out, err := retry(ctx, &s.retried, func() (out MoveSettled, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			out, err = s.settleMove(ctx, tx, c, a)
			return err
		})
		return out, err
	})
	if err != nil {
		return MoveSettled{}, fmt.Errorf("settle transaction %s: %w", c.ID, err)
	}
	return out, nil
}

func (s *Store) settleMove(ctx context.Context, tx pgx.Tx, c MoveClaim, a MoveAnswer) (out MoveSettled, err error) {
	if out.Results, err = s.ApplyTx(ctx, tx, a.Events); err != nil {
		return out, err
	}
	if _, err := tx.Exec(ctx, sqlSettings); err != nil {
		return out, err
	}
	var (
		next *time.Time
		now  time.Time
	)
	err = tx.QueryRow(ctx, sqlSettleMove, c.Account, pgUUID(c.ID), c.Fence, c.Epoch, string(a.Status), max(0, a.Wait), a.Stop, a.Free,
		nullText(storable(a.GatewayRef)), nullText(storable(a.Code)), nullText(storable(a.Detail)), TransactionKey(c.ID, c.Epoch+1)).Scan(&next, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		out.Stale = true
		return out, nil
	}
	if err != nil {
		return out, err
	}
	var jobs []moveJob
	if next != nil {
		jobs = append(jobs, moveAt(MoveArgs{c.Account, c.ID}, *next, now))
	}
	if a.Status == TransactionSucceeded || a.Status == TransactionFailed {
		turn, err := nextMove(ctx, tx, c.Transaction, now)
		if err != nil {
			return out, err
		}
		out.Next = len(turn) > 0
		jobs = append(jobs, turn...)
	}
	return out, s.enqueueMoves(ctx, tx, jobs)
}

// nextMove gives the next transaction of the payment its turn, and returns its job, if there is one.
func nextMove(ctx context.Context, tx pgx.Tx, t Transaction, now time.Time) ([]moveJob, error) {
	var (
		id uuid.UUID
		at time.Time
	)
	err := tx.QueryRow(ctx, sqlNextMove, t.Account, pgUUID(t.Payment)).Scan(&id, &at)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return []moveJob{moveAt(MoveArgs{t.Account, id}, at, now)}, err
}
