package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// sqlRenewMoves is sqlRenewFetches for transactions. What waits for its turn although no other one of the payment is on the way was
// forgotten by a settle that did not see it yet: it is due too.
const sqlRenewMoves = `
	WITH RECURSIVE accounts (id) AS (
		(SELECT account_id FROM transactions WHERE ` + openTransaction + ` ORDER BY account_id LIMIT 1)
	UNION ALL
		SELECT n.account_id FROM accounts a
		CROSS JOIN LATERAL (
			SELECT t.account_id FROM transactions t WHERE t.` + openTransaction + ` AND t.account_id > a.id ORDER BY t.account_id LIMIT 1) n
	), bound AS (
		SELECT least(clock_timestamp(), (
			SELECT min(scheduled_at) FROM river_job WHERE state = 'available' AND queue = $1)) - $2::interval AS t
	), lapsed AS (
		SELECT l.account_id, l.id
		FROM accounts a
		CROSS JOIN LATERAL (
			SELECT t.account_id, t.id FROM transactions t
			WHERE t.account_id = a.id AND t.` + openTransaction + `
				AND (t.next_at < (SELECT t FROM bound) AND (t.status <> 'pending' OR NOT ` + another + `)
					OR t.status = 'pending' AND t.next_at IS NULL AND t.created_at < (SELECT t FROM bound) AND NOT EXISTS (
						SELECT FROM transactions x WHERE x.account_id = t.account_id AND x.payment_id = t.payment_id AND x.id <> t.id
							AND x.` + openTransaction + ` AND (x.status <> 'pending' OR x.next_at IS NOT NULL OR x.id < t.id)))
			ORDER BY t.next_at LIMIT $3
			FOR NO KEY UPDATE SKIP LOCKED) l
	)
	UPDATE transactions t SET next_at = clock_timestamp()
	FROM lapsed l
	WHERE t.account_id = l.account_id AND t.id = l.id
	RETURNING t.account_id, t.id`

// RenewMoves asks for jobs for transactions whose promise lapsed more than grace ago without a job that would keep it, at most so
// many per account, and returns how many it asked for, by account. New promises and jobs commit together.
func (s *Store) RenewMoves(ctx context.Context, perAccount int, grace time.Duration) (map[string]int, error) {
	renewed := map[string]int{}
	_, err := retry(ctx, &s.retried, func() (struct{}, error) {
		clear(renewed)
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlSettings); err != nil {
				return err
			}
			rows, _ := tx.Query(ctx, sqlRenewMoves, MoveQueue, grace, perAccount)
			lapsed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[MoveArgs])
			if err != nil {
				return err
			}
			jobs := make([]moveJob, len(lapsed))
			for i, args := range lapsed {
				jobs[i] = moveJob{MoveArgs: args}
				renewed[args.Account]++
			}
			return s.enqueueMoves(ctx, tx, jobs)
		})
	})
	if err != nil {
		return nil, fmt.Errorf("renew lapsed transactions: %w", err)
	}
	return renewed, nil
}

// MovePile is how the transactions of one gateway in one status stand, over all accounts.
type MovePile struct {
	Count  int
	Oldest time.Duration // since the one that is there the longest was entered
}

// MovePiles counts the transactions that are not settled, by gateway and status.
func (s *Store) MovePiles(ctx context.Context) (map[string]map[TransactionStatus]MovePile, error) {
	piles := map[string]map[TransactionStatus]MovePile{}
	var (
		gateway string
		status  TransactionStatus
		pile    MovePile
	)
	rows, _ := s.pool.Query(ctx, `
		SELECT gateway, status, count(*), clock_timestamp() - min(created_at) FROM transactions WHERE `+openTransaction+` GROUP BY gateway, status`)
	_, err := pgx.ForEachRow(rows, []any{&gateway, &status, &pile.Count, &pile.Oldest}, func() error {
		if piles[gateway] == nil {
			piles[gateway] = map[TransactionStatus]MovePile{}
		}
		piles[gateway][status] = pile
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count transactions: %w", err)
	}
	return piles, nil
}

// MoveResolution is what a person, or a webhook, says became of a transaction that is uncertain.
type MoveResolution struct {
	Status     TransactionStatus // succeeded or failed; or pending: it is proven that nothing was done, so it is begun anew under another key
	GatewayRef string            // the gateway's id of what it made; empty: not known
	Code       string            // who says so
	Detail     string            // how they know
}

// Codes of those who resolve a transaction.
const (
	ResolvedByPerson  = "person"
	ResolvedByWebhook = "webhook"
)

// RefusedNotUncertain says that a transaction is settled, on its way, or being looked up: others resolve only one of which nobody knows.
const RefusedNotUncertain RefusalCode = "not_uncertain"

// ResolveTransaction settles an uncertain transaction by what somebody else knows, in the caller's transaction. It moves no money and
// no order: the gateway's events do. The error wraps [ErrNotFound], or is a [*Refusal] with [RefusedNotUncertain].
func (s *Store) ResolveTransaction(ctx context.Context, tx Tx, account string, id uuid.UUID, r MoveResolution) (Transaction, error) {
	return s.resolveTransaction(ctx, tx, account, id, r, []string{string(TransactionUncertain)})
}

// resolveTransaction is ResolveTransaction for transactions of these statuses.
func (s *Store) resolveTransaction(ctx context.Context, tx Tx, account string, id uuid.UUID, r MoveResolution, from []string) (Transaction, error) {
	if r.Status != TransactionSucceeded && r.Status != TransactionFailed && r.Status != TransactionPending {
		return Transaction{}, fmt.Errorf("a transaction is not resolved to %q", r.Status)
	}
	t, err := transactionOf(ctx, tx, byTransactionID, account, pgUUID(id))
	if err != nil {
		return t, err
	}
	var (
		next *time.Time
		now  time.Time
	)
	err = tx.QueryRow(ctx, `
		UPDATE transactions t SET
			status = $3, gateway_ref = coalesce($4, t.gateway_ref), code = $5, detail = $6, fence = t.fence + 1,
			epoch = t.epoch + CASE $3 WHEN 'pending' THEN 1 ELSE 0 END, key = CASE $3 WHEN 'pending' THEN $7 ELSE t.key END,
			sent_at = CASE $3 WHEN 'pending' THEN NULL ELSE t.sent_at END, attempts = CASE $3 WHEN 'pending' THEN 0 ELSE t.attempts END,
			next_at = CASE $3 WHEN 'pending' THEN clock_timestamp() END, settled_at = CASE $3 WHEN 'pending' THEN NULL ELSE clock_timestamp() END
		WHERE t.account_id = $1 AND t.id = $2 AND t.status = ANY($9) AND t.claimed_until IS NULL AND t.epoch = $8
		RETURNING t.next_at, clock_timestamp()`, account, pgUUID(id), string(r.Status), nullText(storable(r.GatewayRef)), nullText(storable(r.Code)),
		nullText(storable(r.Detail)), TransactionKey(id, t.Epoch+1), t.Epoch, from).Scan(&next, &now)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, &Refusal{Code: RefusedNotUncertain, Order: t.Order}
	}
	if err != nil {
		return t, fmt.Errorf("resolve transaction %s: %w", id, err)
	}
	var jobs []moveJob
	if next != nil {
		jobs = []moveJob{moveAt(MoveArgs{account, id}, *next, now)}
	} else if jobs, err = nextMove(ctx, tx, t, now); err != nil {
		return t, fmt.Errorf("resolve transaction %s: %w", id, err)
	}
	if err := s.enqueueMoves(ctx, tx, jobs); err != nil {
		return t, err
	}
	return transactionOf(ctx, tx, byTransactionID, account, pgUUID(id))
}

// sqlHeard are transactions that were sent, and not answered so far, of which a webhook has told meanwhile: an event about the payment that carries our id as its
// reference, as gateways that keep it send it back.
const sqlHeard = `
	SELECT t.account_id, t.id, e.event_id, e.facts -> 'facts'
	FROM transactions t
	JOIN LATERAL (SELECT jsonb_array_elements_text(t.movement -> 'payment') AS name) n ON true
	JOIN processed_events e ON e.account_id = t.account_id AND e.payment = n.name AND e.facts ->> 'reference' = t.id::text
	WHERE t.status IN ('sent', 'uncertain') AND t.attempts > 0 AND t.claimed_until IS NULL
	ORDER BY t.account_id, t.id, e.received_at
	LIMIT $1`

// heardAtOnce bounds how many transactions one call of [Store.HearOfMoves] settles.
const heardAtOnce = 100

// HearOfMoves settles transactions whose outcome is not known, and of which a webhook has told, by what it said of the capture or refund: that it was
// done, or denied. It returns how many.
func (s *Store) HearOfMoves(ctx context.Context) (int, error) {
	type heard struct {
		Account string
		ID      uuid.UUID
		Event   string
		Facts   []order.Fact
	}
	rows, _ := s.pool.Query(ctx, sqlHeard, heardAtOnce)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[heard])
	if err != nil {
		return 0, fmt.Errorf("find transactions that webhooks told of: %w", err)
	}
	settled := 0
	for _, h := range all {
		r, ok := resolutionOf(h.Event, h.Facts)
		if !ok {
			continue
		}
		err := s.InTx(ctx, func(tx Tx) error {
			_, err := s.resolveTransaction(ctx, tx, h.Account, h.ID, r, []string{string(TransactionSent), string(TransactionUncertain)})
			return err
		})
		var no *Refusal
		switch {
		case errors.As(err, &no): // settled meanwhile
		case err != nil:
			return settled, err
		default:
			settled++
		}
	}
	return settled, nil
}

// resolutionOf is what facts say of a movement that they tell of.
func resolutionOf(event string, facts []order.Fact) (MoveResolution, bool) {
	for _, f := range facts {
		r := MoveResolution{Code: ResolvedByWebhook, Detail: "event " + event + " told", GatewayRef: f.Ref}
		switch {
		case f.Misfit != "":
		case f.Kind == order.KindPhase && f.Status == order.StatusCanceled:
			r.Status = TransactionSucceeded
			return r, true
		case (f.Kind != order.KindCaptured && f.Kind != order.KindRefunded) || f.Ref == "":
		case f.Status == order.StatusDenied:
			r.Status = TransactionFailed
			return r, true
		default: // done, on its way, or done and undone
			r.Status = TransactionSucceeded
			return r, true
		}
	}
	return MoveResolution{}, false
}
