package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// DuplicateError says that money which our API was to enter is, by every sign, the money that it entered a moment ago:
// towards the same order or from the same party, of the same kind, amount and currencies, in the same minute and
// under no other reference. Nothing was written. Who means it gives each a reference of its own.
type DuplicateError struct {
	Resource string    // what it is, in one word: "income"
	ID       uuid.UUID // of the one that is there
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("possible duplicate of %s %s", e.Resource, e.ID)
}

// moneyTable is a table of money that our own API enters, and that a unique index guards against entering twice, whoever
// inserts. Webhooks never write one.
type moneyTable struct {
	name     string
	resource string
	void     []string // the statuses of rows that count for nothing, and in nobody's way
}

// moneyKey is what the index compares.
type moneyKey struct {
	account string
	order   uuid.UUID // zero: none
	party   string
	kind    string
	source  string // currency that was handed over; empty: the other one
	amount  order.Amount
	at      time.Time // created_at, of which the minute counts
	ref     string
}

func (k moneyKey) args() []any {
	source := k.source
	if source == "" {
		source = k.amount.Currency
	}
	return []any{k.account, pgUUID(k.order), k.party, k.kind, source, k.amount.Currency, k.amount.Minor, k.at, k.ref}
}

// sqlTwin finds the row that the index let nobody enter again. Its expressions are the index's own.
func (m moneyTable) sqlTwin() string {
	return `
		SELECT m.id FROM ` + m.name + ` m
		WHERE m.account_id = $1 AND coalesce(m.order_id::text, '') = coalesce($2::uuid::text, '') AND coalesce(m.party, '') = $3 AND m.kind = $4
			AND coalesce(m.source_currency, m.currency) = $5 AND m.currency = $6 AND m.amount = $7
			AND date_trunc('minute', m.created_at AT TIME ZONE 'UTC') = date_trunc('minute', $8::timestamptz AT TIME ZONE 'UTC')
			AND coalesce(m.external_ref, '') = $9 AND m.status NOT IN ('` + strings.Join(m.void, "', '") + `')`
}

// enter has insert put a row in, which it does with ON CONFLICT DO NOTHING and reports, and returns a [*DuplicateError] if
// one with the same key is there. A row that went void meanwhile stands in nobody's way, so that it tries again.
func (m moneyTable) enter(ctx context.Context, tx pgx.Tx, key moneyKey, insert func() (entered bool, err error)) error {
	for range maxTries {
		entered, err := insert()
		if entered || err != nil {
			return err
		}
		var twin pgtype.UUID
		err = tx.QueryRow(ctx, m.sqlTwin(), key.args()...).Scan(&twin)
		if err == nil {
			return &DuplicateError{Resource: m.resource, ID: uuid.UUID(twin.Bytes)}
		}
		if !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("find the %s that is there: %w", m.resource, err)
		}
	}
	return fmt.Errorf("enter %s: refused %d times because of rows that were gone", m.resource, maxTries)
}
