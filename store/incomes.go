package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// IncomeStatus is whether an income stands.
type IncomeStatus string

// The statuses of incomes.
const (
	IncomeReceived IncomeStatus = "received"
	IncomeVoided   IncomeStatus = "voided" // was entered by mistake, or did not come after all
)

// Income is money that the merchant received outside of gateways, as it was entered. For the orders it is a payment in
// the name space [order.Offline], whose id is the income's.
type Income struct {
	Account    string           `json:"account"`
	ID         uuid.UUID        `json:"id"`
	Ref        string           `json:"external_ref,omitempty"`
	Order      *uuid.UUID       `json:"order_id"` // as it was received for; a person may have linked the payment elsewhere
	OrderRef   string           `json:"order_ref,omitempty"`
	Party      string           `json:"party,omitempty"`
	Kind       order.IncomeKind `json:"kind"`
	Amount     order.Amount     `json:"amount"`
	Source     *order.Amount    `json:"source,omitempty"`      // what was handed over, in another currency
	ReceivedOn *time.Time       `json:"received_on,omitempty"` // a day, at midnight UTC
	Metadata   json.RawMessage  `json:"metadata,omitempty"`
	Status     IncomeStatus     `json:"status"`
	VoidedAt   *time.Time       `json:"voided_at,omitempty"`
	CreatedAt  time.Time        `json:"created_at"`
}

// NewIncome is what is said about an income when it is entered. One of Ref, Order, OrderRef and Party must be there: of
// money of which nothing else is known, nobody could tell whether it was entered before.
type NewIncome struct {
	Account string

	// Ref is the merchant's own name of it, unique in the account for ever. It tells incomes of one amount apart.
	Ref string

	// Order or OrderRef, not both, is what it was received for: an order that there is. None: for no order.
	Order    uuid.UUID
	OrderRef string

	Party  string // who paid, in the merchant's own words; at most [order.MaxReference] bytes
	Kind   order.IncomeKind
	Amount order.Amount // more than 0, and less than [order.All]

	Source     *order.Amount // what was handed over, if that is another currency
	ReceivedOn *time.Time    // the day; nil: not told
	Metadata   json.RawMessage

	Payload []byte // the request, kept as a webhook's bytes are; nil: none
}

func (n *NewIncome) check() error {
	positive := func(a order.Amount) bool {
		return a.Minor > 0 && order.Fact{Kind: order.KindCaptured, Amount: a.Minor, Currency: a.Currency}.Validate() == nil
	}
	switch {
	case n.Ref == "" && n.Order == uuid.Nil && n.OrderRef == "" && n.Party == "":
		return errors.New("neither a reference, nor an order, nor a party")
	case n.Order != uuid.Nil && n.OrderRef != "":
		return errors.New("two orders")
	case n.Ref != "" && !order.IsReference(n.Ref), n.Party != "" && !order.IsReference(n.Party):
		return fmt.Errorf("its reference or party is not %d bytes of printable text at most", order.MaxReference)
	case !slices.Contains(order.IncomeKinds(), n.Kind):
		return fmt.Errorf("unknown kind %q", n.Kind)
	case !positive(n.Amount):
		return fmt.Errorf("amount %d %s", n.Amount.Minor, n.Amount.Currency)
	case n.Source != nil && (!positive(*n.Source) || n.Source.Currency == n.Amount.Currency):
		return fmt.Errorf("source amount %d %s of an income in %s", n.Source.Minor, n.Source.Currency, n.Amount.Currency)
	}
	return nil
}

// EnteredIncome is an income, and what became of the request to enter it.
type EnteredIncome struct {
	Income
	New     bool // false: its reference was known
	Differs bool // its reference was known, and the request says something else than the first one did
}

var incomesTable = moneyTable{name: "incomes", resource: "income", void: []string{string(IncomeVoided)}}

// errKnownRef: the reference of an income that was to be entered is another one's.
var errKnownRef = errors.New("the reference is known")

// CreateIncome enters an income in the caller's transaction: the fact that moves its order, and its row. Where its reference
// is known it returns the income that has it, and writes nothing. The error wraps [ErrNotFound] if the order that it
// names is not there, [ErrUnstorable] if it cannot be an income, and is a [*DuplicateError] if the same was entered
// within this minute; then nothing of it is left in the transaction. Call it once in a transaction, after everything else that
// locks: incomes come last.
func (s *Store) CreateIncome(ctx context.Context, tx Tx, n NewIncome) (in EnteredIncome, err error) {
	if err := n.check(); err != nil {
		return in, fmt.Errorf("income: %w: %w", ErrUnstorable, err)
	}
	if n.Ref != "" {
		if old, err := incomeOf(ctx, tx, byIncomeRef, n.Account, n.Ref); !errors.Is(err, ErrNotFound) {
			return n.repeated(old), err
		}
	}
	err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
		in, err = s.enterIncome(ctx, sp, &n)
		return err
	})
	if errors.Is(err, errKnownRef) { // another transaction has entered it since we looked
		old, err := incomeOf(ctx, tx, byIncomeRef, n.Account, n.Ref)
		if err != nil {
			return EnteredIncome{}, fmt.Errorf("income %q is entered, and not found: %w", n.Ref, err)
		}
		return n.repeated(old), nil
	}
	if err != nil {
		return EnteredIncome{}, err
	}
	return in, nil
}

func (s *Store) enterIncome(ctx context.Context, tx pgx.Tx, n *NewIncome) (in EnteredIncome, err error) {
	now, err := s.Clock(ctx, tx)
	if err != nil {
		return in, err
	}
	ref := n.OrderRef
	if n.Order != uuid.Nil {
		o, err := getOrder(ctx, tx, n.Account, n.Order)
		if err != nil {
			return in, err
		}
		ref = o.Ref
	}
	id := newID()
	e := Event{
		Account: n.Account, Payload: n.Payload,
		Event: offlineEvent(incomeEventID(n.Ref, id), "income.received", now, id, order.StatusOK, n.Amount, order.Income{Kind: n.Kind, Source: n.Source}),
	}
	if ref != "" {
		// The payment's own event, and not a person's link: one that is taken back must leave it here.
		e.Reference, e.Strength = ref, order.StrengthPayment
	}
	res, err := s.Command(ctx, tx, e, Condition{})
	if err != nil {
		return in, err
	}
	if res.Outcome == Duplicate {
		return in, errKnownRef
	}
	key := moneyKey{
		account: n.Account, order: res.Order, party: n.Party, kind: string(n.Kind), amount: n.Amount, at: now, ref: n.Ref,
	}
	if n.Source != nil {
		key.source = n.Source.Currency
	}
	err = incomesTable.enter(ctx, tx, key, func() (entered bool, err error) {
		in.Income, entered, err = n.insert(ctx, tx, id, res.Order, now)
		if entered || err != nil || n.Ref == "" {
			return entered, err
		}
		switch _, err := incomeOf(ctx, tx, byIncomeRef, n.Account, n.Ref); {
		case errors.Is(err, ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		}
		return false, errKnownRef // a row that somebody put in without the event
	})
	in.New = true
	return in, err
}

// offlineEvent says what became of the one capture of an income's payment.
func offlineEvent(id, typ string, at time.Time, income uuid.UUID, s order.Status, a order.Amount, said order.Income) order.Event {
	return order.Event{
		ID: id, Type: typ, At: at, Realm: order.Offline, Payment: []string{income.String()},
		Facts:   []order.Fact{{Kind: order.KindCaptured, Ref: income.String(), Status: s, Amount: a.Minor, Currency: a.Currency}},
		Command: &order.Command{Income: &said},
	}
}

// incomeEventID is the id of the event that an income comes with: one per reference, so that of two that come at once one
// is a duplicate.
func incomeEventID(ref string, id uuid.UUID) string {
	if ref == "" {
		return EventID("income", id.String())
	}
	return EventID("income:ref", ref)
}

// incomeVoidedID is the id of the event that takes an income back: there is one for ever.
func incomeVoidedID(id uuid.UUID) string { return "income_voided:" + id.String() }

func (n *NewIncome) insert(ctx context.Context, tx pgx.Tx, id, ord uuid.UUID, now time.Time) (Income, bool, error) {
	var (
		source   *int64
		currency *string
	)
	if n.Source != nil {
		source, currency = &n.Source.Minor, &n.Source.Currency
	}
	var metadata *string
	if n.Metadata != nil {
		text := string(n.Metadata)
		metadata = &text
	}
	rows, _ := tx.Query(ctx, `
		WITH i AS (
			INSERT INTO incomes (account_id, id, external_ref, order_id, party, kind, amount, currency, source_amount, source_currency,
				received_on, metadata, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13)
			ON CONFLICT DO NOTHING
			RETURNING *)
		SELECT `+incomeRecord+` FROM i LEFT JOIN orders o ON o.account_id = i.account_id AND o.id = i.order_id`,
		n.Account, pgUUID(id), nullText(n.Ref), pgUUID(ord), nullText(n.Party), string(n.Kind), n.Amount.Minor, n.Amount.Currency,
		source, currency, n.ReceivedOn, metadata, now)
	found, err := pgx.CollectRows(rows, scanIncome)
	if err != nil {
		return Income{}, false, fmt.Errorf("enter income: %w", err)
	}
	if len(found) == 0 {
		return Income{}, false, nil
	}
	return found[0], true, nil
}

// repeated is the answer to a request whose reference old has.
func (n *NewIncome) repeated(old Income) EnteredIncome {
	differs := old.Kind != n.Kind || old.Amount != n.Amount || old.Party != n.Party || !sameJSON(old.Metadata, n.Metadata)
	switch {
	case n.Order != uuid.Nil:
		differs = differs || old.Order == nil || *old.Order != n.Order
	default:
		differs = differs || old.OrderRef != n.OrderRef
	}
	differs = differs || deref(old.Source) != deref(n.Source) || !sameDay(old.ReceivedOn, n.ReceivedOn)
	return EnteredIncome{Income: old, Differs: differs}
}

func sameDay(a, b *time.Time) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Format(time.DateOnly) == b.Format(time.DateOnly)
}

// VoidIncome takes an income back in the caller's transaction: its payment counts for nothing from now on, and what the
// merchant was told because of it is revoked. The row stays, and so does its reference. It reports false if it was void
// before. The error wraps [ErrNotFound] if there is none of that id.
func (s *Store) VoidIncome(ctx context.Context, tx Tx, account string, id uuid.UUID) (in Income, voided bool, err error) {
	in, err = incomeOf(ctx, tx, byIncomeID, account, pgUUID(id))
	if err != nil || in.Status == IncomeVoided {
		return in, false, err
	}
	err = pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) error {
		now, err := s.Clock(ctx, sp)
		if err != nil {
			return err
		}
		e := Event{Account: account, Event: offlineEvent(incomeVoidedID(id), "income.voided", now, id, order.StatusFailed,
			in.Amount, order.Income{Voided: true})}
		if _, err := s.Command(ctx, sp, e, Condition{}); err != nil {
			return err
		}
		tag, err := sp.Exec(ctx, `UPDATE incomes SET status = 'voided', voided_at = $3 WHERE account_id = $1 AND id = $2 AND status = 'received'`,
			account, pgUUID(id), now)
		if err != nil {
			return fmt.Errorf("void income %s: %w", id, err)
		}
		voided = tag.RowsAffected() == 1
		return nil
	})
	if err != nil {
		return in, false, err
	}
	in, err = incomeOf(ctx, tx, byIncomeID, account, pgUUID(id))
	return in, voided, err
}

// GetIncome returns one income of an account, or an error that is [ErrNotFound].
func (s *Store) GetIncome(ctx context.Context, account string, id uuid.UUID) (Income, error) {
	return incomeOf(ctx, s.pool, byIncomeID, account, pgUUID(id))
}

const incomeRecord = `i.account_id, i.id, coalesce(i.external_ref, ''), i.order_id, coalesce(o.external_ref, ''), coalesce(i.party, ''), i.kind,
	i.amount, i.currency, i.source_amount, i.source_currency, i.received_on, i.metadata, i.status, i.voided_at, i.created_at`

const sqlIncomes = `SELECT ` + incomeRecord + ` FROM incomes i LEFT JOIN orders o ON o.account_id = i.account_id AND o.id = i.order_id`

const (
	byIncomeID  = ` WHERE i.account_id = $1 AND i.id = $2`
	byIncomeRef = ` WHERE i.account_id = $1 AND i.external_ref = $2`
)

func scanIncome(row pgx.CollectableRow) (in Income, err error) {
	var (
		ord      pgtype.UUID
		source   *int64
		currency *string
	)
	err = row.Scan(&in.Account, &in.ID, &in.Ref, &ord, &in.OrderRef, &in.Party, &in.Kind, &in.Amount.Minor, &in.Amount.Currency,
		&source, &currency, &in.ReceivedOn, &in.Metadata, &in.Status, &in.VoidedAt, &in.CreatedAt)
	if ord.Valid {
		id := uuid.UUID(ord.Bytes)
		in.Order = &id
	}
	if source != nil {
		in.Source = &order.Amount{Minor: *source, Currency: deref(currency)}
	}
	return in, err
}

func incomeOf(ctx context.Context, q querier, where string, args ...any) (Income, error) {
	rows, _ := q.Query(ctx, sqlIncomes+where, args...)
	in, err := pgx.CollectExactlyOneRow(rows, scanIncome)
	if errors.Is(err, pgx.ErrNoRows) {
		return in, fmt.Errorf("income: %w", ErrNotFound)
	}
	if err != nil {
		return in, fmt.Errorf("read income: %w", err)
	}
	return in, nil
}
