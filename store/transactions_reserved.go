package store

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// Reservation is money of one payment that is authorized for an order, and that could be let go of.
type Reservation struct {
	Origin

	Payment string       // the payment's first name
	Amount  order.Amount // what is held, in the payment's own currency
}

// sqlVoided are those of some payments of an order that somebody has asked to let go of once, under whichever name they had then.
const sqlVoided = `
	WITH RECURSIVE r(root, id) AS (
		SELECT x, x FROM unnest($3::uuid[]) AS x
		UNION
		SELECT r.root, p.id FROM r JOIN payments p ON p.account_id = $1 AND p.merged_into = r.id)
	SELECT DISTINCT r.root
	FROM transactions t JOIN r ON r.id = t.payment_id
	WHERE t.account_id = $1 AND t.order_id = $2 AND t.kind = 'void'`

// Reservations returns what is authorized for an order, and that nobody has asked to let go of yet, whatever became of that: what
// a call is taking right now is not among it. It locks the order in the caller's transaction, and its error wraps [ErrNotFound]
// if there is none.
func (s *Store) Reservations(ctx context.Context, tx Tx, account string, id uuid.UUID) ([]Reservation, error) {
	n := &NewTransaction{Account: account, Order: id, Kind: order.MovementVoid}
	if _, _, err := lockOrderForMove(ctx, tx, n); err != nil {
		return nil, err
	}
	all, err := movablePayments(ctx, tx, n, "")
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(m *movable) bool { return m.left == 0 })
	if len(all) == 0 {
		return nil, nil
	}
	ids := make([]pgtype.UUID, len(all))
	for i, m := range all {
		ids[i] = pgUUID(m.id)
	}
	rows, _ := tx.Query(ctx, sqlVoided, account, pgUUID(id), ids)
	voided, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil {
		return nil, fmt.Errorf("what was let go of for order %s: %w", id, err)
	}
	var held []Reservation
	for _, m := range all {
		if !slices.Contains(voided, m.id) {
			held = append(held, Reservation{Origin: m.from, Payment: m.ledger.IDs[0], Amount: order.Amount{Minor: m.left, Currency: m.currency}})
		}
	}
	return held, nil
}
