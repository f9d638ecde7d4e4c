package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// PaymentName is an id of a payment within the name space of its gateway.
type PaymentName struct{ Account, Realm, ID string }

// PaymentKey is a payment of ours. The zero value is none.
type PaymentKey struct {
	Account string
	ID      uuid.UUID
}

// BookedPayment is what is known of a payment.
type BookedPayment struct {
	PaymentKey
	Order  string // the reference of the order it belongs to, if it does
	Ledger *order.Ledger
}

// Realm is a name space of payment ids of an account.
type Realm struct{ Account, Name string }

// Books reads payments as they all were at one moment.
type Books struct{ tx pgx.Tx }

// ReadBooks lets fn read in one snapshot, so that a payment that is merged with another one meanwhile does not count for both. It
// writes nothing, and holds nobody up.
func (s *Store) ReadBooks(ctx context.Context, fn func(*Books) error) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// Nothing of a long comparison is short enough for the limits of those who write.
		if _, err := tx.Exec(ctx, `SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0`); err != nil {
			return err
		}
		return fn(&Books{tx})
	})
	if err != nil {
		return fmt.Errorf("read payments: %w", err)
	}
	return nil
}

// Find returns the payment of each name, the one that it was merged into if it was; the zero key where there is none.
func (b *Books) Find(ctx context.Context, names []PaymentName) ([]PaymentKey, error) {
	accounts, realms, ids := make([]string, len(names)), make([]string, len(names)), make([]string, len(names))
	for i, n := range names {
		accounts[i], realms[i], ids[i] = n.Account, n.Realm, n.ID
	}
	found := make([]PaymentKey, len(names))
	var at int64
	var id uuid.UUID
	rows, _ := b.tx.Query(ctx, sqlRoots, accounts, realms, ids)
	_, err := pgx.ForEachRow(rows, []any{&at, &id}, func() error {
		found[at] = PaymentKey{names[at].Account, id}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find payments by their ids: %w", err)
	}
	return found, nil
}

const bookedColumns = `p.account_id, p.id, p.ledger, coalesce((SELECT o.external_ref FROM orders o WHERE o.account_id = p.account_id AND o.id = p.order_id), '')`

// Payments returns payments with their ledgers, in no order.
func (b *Books) Payments(ctx context.Context, keys []PaymentKey) ([]BookedPayment, error) {
	accounts, ids := make([]string, len(keys)), make([]uuid.UUID, len(keys))
	for i, k := range keys {
		accounts[i], ids[i] = k.Account, k.ID
	}
	rows, _ := b.tx.Query(ctx, `
		SELECT b.* FROM unnest($1::text[], $2::uuid[]) AS x(a, i)
		CROSS JOIN LATERAL (SELECT `+bookedColumns+` FROM payments p WHERE p.account_id = x.a AND p.id = x.i OFFSET 0) b`, accounts, ids)
	found, err := pgx.CollectRows(rows, scanBooked)
	if err != nil {
		return nil, fmt.Errorf("read ledgers: %w", err)
	}
	return found, nil
}

// tellsCapture holds for an event that tells of captured money that counts.
const tellsCapture = ` e.source_id <> '` + APISource + `' AND e.facts @? '$.facts[*] ? (@.kind == "captured" && @.amount > 0 && (!exists(@.status) || @.status == "ok") && !exists(@.misfit))' `

// CapturedBetween calls each for every payment of the realms of which captured money was first told of in [from, until), by the
// gateway's own time, in the order of their keys: accounts by their bytes, then ids.
func (b *Books) CapturedBetween(ctx context.Context, realms []Realm, from, until time.Time, each func(BookedPayment) error) error {
	accounts, names := make([]string, len(realms)), make([]string, len(realms))
	for i, r := range realms {
		accounts[i], names[i] = r.Account, r.Name
	}
	// What happened since then was received since then, give or take the clocks.
	rows, _ := b.tx.Query(ctx, `
		WITH RECURSIVE told(a, realm, i) AS (
			SELECT DISTINCT e.account_id, e.realm, e.payment
			FROM unnest($1::text[], $2::text[]) AS x(a, r) JOIN processed_events e ON e.account_id = x.a AND e.realm = x.r
			WHERE e.received_at >= $3::timestamptz - interval '1 day' AND coalesce(e.occurred_at, e.received_at) >= $3
				AND coalesce(e.occurred_at, e.received_at) < $4 AND e.payment IS NOT NULL AND `+tellsCapture+`),
		r(a, id, up) AS (
			SELECT t.a, q.id, q.merged_into
			FROM told t JOIN payment_ids p ON p.account_id = t.a AND p.realm = t.realm AND p.id = t.i
			JOIN payments q ON q.account_id = p.account_id AND q.id = p.payment_id
			UNION
			SELECT r.a, q.id, q.merged_into FROM r JOIN payments q ON q.account_id = r.a AND q.id = r.up)
		SELECT `+bookedColumns+`
		FROM (SELECT DISTINCT a, id FROM r WHERE up IS NULL) k JOIN payments p ON p.account_id = k.a AND p.id = k.id
		WHERE NOT EXISTS (
			SELECT FROM jsonb_array_elements_text(p.ledger -> 'ids') AS n(id) JOIN processed_events e ON e.account_id = p.account_id AND e.payment = n.id
			WHERE e.realm = ANY($2) AND coalesce(e.occurred_at, e.received_at) < $3 AND `+tellsCapture+`)
		ORDER BY p.account_id COLLATE "C", p.id`, accounts, names, from, until)
	var p BookedPayment
	var doc []byte
	_, err := pgx.ForEachRow(rows, []any{&p.Account, &p.ID, &doc, &p.Order}, func() error {
		p.Ledger = order.NewLedger()
		if err := json.Unmarshal(doc, p.Ledger); err != nil {
			return fmt.Errorf("ledger of payment %s: %w", p.ID, err)
		}
		return each(p)
	})
	if err != nil {
		return fmt.Errorf("list captured payments: %w", err)
	}
	return nil
}

func scanBooked(row pgx.CollectableRow) (BookedPayment, error) {
	var doc []byte
	p := BookedPayment{Ledger: order.NewLedger()}
	if err := row.Scan(&p.Account, &p.ID, &doc, &p.Order); err != nil {
		return p, err
	}
	if err := json.Unmarshal(doc, p.Ledger); err != nil {
		return p, fmt.Errorf("ledger of payment %s: %w", p.ID, err)
	}
	return p, nil
}
