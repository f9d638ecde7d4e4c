package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Orders that wait: something is known of their payment, and it is not over. They are found by the events of their payments, each of
// which is looked at once, when it has become old enough; an order without any event of a payment waits for its customer, and is
// nothing to ask a gateway about. From then on a row of reconcile_orders says when it is asked about next.

// waits is the condition under which an order o waits. Whatever could still come of the other states comes by itself or not at all.
const waits = `o.state IN ('pending', 'authorized', 'partially_paid')`

const (
	// sqlScanned is where a look at so many events ends.
	sqlScanned = `
		SELECT coalesce((
			SELECT e.received_at FROM processed_events e
			WHERE e.account_id = $1 AND e.received_at > $2 AND e.received_at <= clock_timestamp() - $3::interval
			ORDER BY e.received_at OFFSET $4 LIMIT 1), greatest($2, clock_timestamp() - $3::interval))`

	sqlFindWaiting = `
		WITH RECURSIVE ev AS MATERIALIZED (
			SELECT DISTINCT e.order_id, e.payment FROM processed_events e
			WHERE e.account_id = $1 AND e.received_at > $3 AND e.received_at <= $4 AND e.realm = $5 AND e.payment IS NOT NULL
		), r (id, up, placed) AS (
			SELECT p.id, p.merged_into, p.order_id FROM (SELECT DISTINCT payment FROM ev) x
			CROSS JOIN LATERAL (SELECT i.payment_id FROM payment_ids i WHERE i.account_id = $1 AND i.realm = $5 AND i.id = x.payment LIMIT 1) i
			CROSS JOIN LATERAL (SELECT p.id, p.merged_into, p.order_id FROM payments p WHERE p.account_id = $1 AND p.id = i.payment_id LIMIT 1) p
		UNION
			SELECT p.id, p.merged_into, p.order_id FROM r
			CROSS JOIN LATERAL (SELECT p.id, p.merged_into, p.order_id FROM payments p WHERE p.account_id = $1 AND p.id = r.up LIMIT 1) p
		), found AS (
			SELECT order_id FROM ev WHERE order_id IS NOT NULL
		UNION
			SELECT placed FROM r WHERE placed IS NOT NULL
		)
		INSERT INTO reconcile_orders AS w (account_id, source_id, order_id, version)
		SELECT $1, $2, o.id, o.version FROM found f
		CROSS JOIN LATERAL (SELECT o.id, o.version, o.state FROM orders o WHERE o.account_id = $1 AND o.id = f.order_id LIMIT 1) o
		WHERE ` + waits + ` ORDER BY o.id
		ON CONFLICT ON CONSTRAINT reconcile_orders_pk DO UPDATE
			SET version = excluded.version, asks = 0, found_at = clock_timestamp(), next_at = clock_timestamp()
			WHERE w.version < excluded.version`

	sqlForgetWaiting = `
		DELETE FROM reconcile_orders w
		WHERE w.account_id = $1 AND w.source_id = $2
			AND NOT EXISTS (SELECT FROM orders o WHERE o.account_id = w.account_id AND o.id = w.order_id AND ` + waits + `)`
)

// FindWaiting looks through events about payments of a realm that were received after a time and are older than age, and notes the
// orders of these that wait; an order that was asked about in vain begins anew if it has moved since. At most limit events are looked
// at, of all realms: it returns up to when those were received, and whether there are more.
func (s *Store) FindWaiting(ctx context.Context, c ReconcileClaim, realm string, after time.Time, age time.Duration, limit int) (through time.Time, more bool, err error) {
	_, err = retry(ctx, &s.retried, func() (struct{}, error) {
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlSettings); err != nil {
				return err
			}
			var end time.Time
			if err := tx.QueryRow(ctx, sqlScanned, c.Account, after, age, limit-1).Scan(&through); err != nil {
				return err
			}
			if err := tx.QueryRow(ctx, `SELECT clock_timestamp() - $1::interval`, age).Scan(&end); err != nil {
				return err
			}
			more = through.Before(end.Add(-time.Second))
			_, err := tx.Exec(ctx, sqlFindWaiting, c.Account, c.Source, after, through, realm)
			return err
		})
	})
	if err != nil {
		return after, false, fmt.Errorf("find orders of account %s that wait: %w", c.Account, err)
	}
	return through, more, nil
}

// WaitingPayments are what an order that waits can be asked about.
type WaitingPayments struct {
	Order    uuid.UUID
	Payments [][]string // the ids of each payment, in the realm that was asked for
	Objects  []string   // that told of them before, kind/id
}

const (
	sqlDueWaiting = `
		SELECT w.order_id FROM reconcile_orders w
		WHERE w.account_id = $1 AND w.source_id = $2 AND w.next_at <= clock_timestamp()
		ORDER BY w.next_at, w.order_id LIMIT $3`

	sqlWaitingIDs = `
		SELECT p.order_id, p.id, i.id, coalesce(told.objects, '{}')
		FROM payments p
		CROSS JOIN LATERAL jsonb_array_elements_text(p.ledger -> 'ids') AS n(name)
		CROSS JOIN LATERAL (SELECT i.id FROM payment_ids i WHERE i.account_id = p.account_id AND i.realm = $3 AND i.id = n.name LIMIT 1) i
		LEFT JOIN LATERAL (
			SELECT array_agg(DISTINCT regexp_replace(e.event_id, ':[0-9a-f]{24}$', '')) AS objects FROM processed_events e
			WHERE e.account_id = p.account_id AND e.payment = i.id AND e.source_id = $4 AND e.event_id ~ '^[a-z0-9_-]+/.*:[0-9a-f]{24}$') told ON true
		WHERE p.account_id = $1 AND p.order_id = ANY($2::uuid[])
		ORDER BY p.order_id, p.id, i.id`
)

// DueWaiting returns the orders that wait and are to be asked about now, at most limit, with the ids that their payments have in a
// realm. Those that wait no more are forgotten.
func (s *Store) DueWaiting(ctx context.Context, c ReconcileClaim, realm string, limit int) ([]WaitingPayments, error) {
	if _, err := s.pool.Exec(ctx, sqlForgetWaiting, c.Account, c.Source); err != nil {
		return nil, fmt.Errorf("forget orders that wait no more: %w", err)
	}
	rows, _ := s.pool.Query(ctx, sqlDueWaiting, c.Account, c.Source, limit)
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("find orders to ask about: %w", err)
	}
	out, at := make([]WaitingPayments, len(due)), map[uuid.UUID]int{}
	for i, id := range due {
		out[i].Order, at[id] = id, i
	}
	rows, _ = s.pool.Query(ctx, sqlWaitingIDs, c.Account, pgUUIDs(due), realm, c.Source)
	var (
		ord, payment, last uuid.UUID
		id                 string
		objects            []string
	)
	_, err = pgx.ForEachRow(rows, []any{&ord, &payment, &id, &objects}, func() error {
		w := &out[at[ord]]
		if payment != last {
			w.Payments, last = append(w.Payments, nil), payment
		}
		n := len(w.Payments) - 1
		w.Payments[n] = append(w.Payments[n], id)
		w.Objects = append(w.Objects, objects...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find what to ask about: %w", err)
	}
	return out, nil
}

// AskedWaiting notes that orders are asked about, and when each is the next time: after base, twice as long after each further time, at
// most after most; and after so many times not any more.
func (s *Store) AskedWaiting(ctx context.Context, c ReconcileClaim, orders []uuid.UUID, base, most time.Duration, times int) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE reconcile_orders w SET asks = w.asks + 1, asked_at = clock_timestamp(),
			next_at = CASE WHEN w.asks + 1 < $6 THEN clock_timestamp() + least($4::interval * power(2, least(w.asks, 20)), $5::interval) END
		WHERE w.account_id = $1 AND w.source_id = $2 AND w.order_id = ANY($3::uuid[])`, c.Account, c.Source, pgUUIDs(orders), base, most, times)
	if err != nil {
		return fmt.Errorf("note which orders are asked about: %w", err)
	}
	return nil
}

func pgUUIDs(ids []uuid.UUID) []pgtype.UUID {
	out := make([]pgtype.UUID, len(ids))
	for i, id := range ids {
		out[i] = pgUUID(id)
	}
	return out
}

// Waiting returns orders of a source that wait, the one that waits the longest first, at most limit, and how many there are.
func (s *Store) Waiting(ctx context.Context, c ReconcileClaim, limit int) (list []WaitingOrder, all int, err error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT o.id, o.external_ref, o.state, NOT o.registered, o.updated_at, w.asks, w.asked_at, w.next_at, count(*) OVER ()
		FROM reconcile_orders w JOIN orders o ON o.account_id = w.account_id AND o.id = w.order_id
		WHERE w.account_id = $1 AND w.source_id = $2 AND `+waits+`
		ORDER BY o.updated_at, o.id LIMIT $3`, c.Account, c.Source, limit)
	var one WaitingOrder
	_, err = pgx.ForEachRow(rows, []any{&one.Order, &one.Ref, &one.State, &one.Stub, &one.Since, &one.Asks, &one.AskedAt, &one.NextAt, &all}, func() error {
		list = append(list, one)
		one.AskedAt, one.NextAt = nil, nil
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list orders that wait: %w", err)
	}
	return list, all, nil
}

// UncertainTransactions returns transactions of some sources of an account of which it is not known, longer than age after they were
// sent, what became of them: the oldest first, at most limit, and how many there are.
func (s *Store) UncertainTransactions(ctx context.Context, account string, sources []string, age time.Duration, limit int) (list []UncertainTransaction, all int, err error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT t.id, t.order_id, t.kind, t.amount, t.currency, t.sent_at, coalesce(t.code, ''), count(*) OVER ()
		FROM transactions t
		WHERE t.account_id = $1 AND t.source_id = ANY($2) AND t.status = 'uncertain' AND t.sent_at <= clock_timestamp() - $3::interval
		ORDER BY t.id LIMIT $4`, account, sources, age, limit)
	var one UncertainTransaction
	_, err = pgx.ForEachRow(rows, []any{&one.ID, &one.Order, &one.Kind, &one.Amount, &one.Currency, &one.SentAt, &one.Code, &all}, func() error {
		list = append(list, one)
		one.SentAt = nil
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list uncertain transactions: %w", err)
	}
	return list, all, nil
}
