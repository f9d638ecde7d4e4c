package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// NewTransaction is what is said when money is to be moved.
type NewTransaction struct {
	Account string
	Order   uuid.UUID
	Kind    order.MovementKind

	// Ref is the merchant's own name of it, unique in the account for ever. It tells two refunds of one amount apart.
	Ref string

	// Payment is the gateway's id of the payment, by any of the names that it is known under; empty: the order's only one that can
	// be moved so. Realms are the name spaces whose payments somebody can call the gateway about: only those are moved.
	Payment string
	Realms  []string

	// Amount is what moves, in minor units; 0: all that can. Of a void always all. Currency is the order's if empty; of an order
	// that has none yet, the payment's.
	Amount   int64
	Currency string

	Reason   string // for the gateway's records
	Metadata json.RawMessage

	// Prepare makes the call of a movement. It is asked under the order's lock, so it must be quick, and is pure. Its error is
	// returned as it is.
	Prepare func(from Origin, m order.Movement) (Prepared, error)
}

// Origin says where a payment comes from.
type Origin struct {
	Realm  string // the name space of its ids; empty: nothing has told of it but what counts for nothing
	Source string // the source whose event told of it first; empty: only our own API has
}

// Prepared is the call of a movement, and who it goes to.
type Prepared struct {
	Source, Gateway string
	Request
}

// EnteredTransaction is a transaction, and what became of the request to enter it.
type EnteredTransaction struct {
	Transaction
	New     bool // false: its reference was known
	Differs bool // its reference was known, and the request says something else than the first one did
}

// MoveRefusalCode says why money is not moved.
type MoveRefusalCode string

// The refusals of movements. All of them are about the order as it stood under its lock.
const (
	MoveNoPayment        MoveRefusalCode = "no_payment"        // the order has no payment of that name, or none at all
	MoveNothing          MoveRefusalCode = "nothing_to_move"   // Why says why
	MovePaymentAmbiguous MoveRefusalCode = "payment_ambiguous" // several payments of the order can be moved so: one must be named
	MoveExceeds          MoveRefusalCode = "amount_exceeds"    // more than Left
	MoveNotCallable      MoveRefusalCode = "not_callable"      // it is there, and nobody can call the gateway about it: its name space is none of those asked for
)

// MoveRefusal says that money is not moved. Nothing was written.
type MoveRefusal struct {
	Code  MoveRefusalCode
	Why   order.NotMovable // of MoveNothing; empty: all of it is being moved already
	Left  order.Amount     // of MoveExceeds: what can move at most
	Under int64            // of MoveExceeds and MoveNothing: what calls that are not settled are moving of it, in minor units
	Names []string         // of MovePaymentAmbiguous: the payments, each by its first name

	Origins []Origin // of MoveNotCallable: where the money is, each once
}

func (r *MoveRefusal) Error() string { return fmt.Sprintf("money is not moved: %s %s", r.Code, r.Why) }

var transactionsTable = moneyTable{name: "transactions", resource: "transaction", void: []string{string(TransactionFailed)}}

// CreateTransaction enters a movement of money and the job that sees to it, in the caller's transaction: nothing is sent before
// that is committed. How much can move is decided under the order's lock, by what the gateway has told and by what was asked for
// before; so calls that run at once never move more than there is. Where its reference is known it returns the transaction that
// has it, and writes nothing.
//
// The error wraps [ErrNotFound] if there is no such order, is a [*MoveRefusal] if the money is not there, or a [*DuplicateError]
// if the same was entered within this minute; then nothing of it is left in the caller's transaction.
func (s *Store) CreateTransaction(ctx context.Context, tx Tx, n NewTransaction) (EnteredTransaction, error) {
	if n.Ref != "" {
		if old, err := transactionOf(ctx, tx, byTransactionRef, n.Account, n.Ref); !errors.Is(err, ErrNotFound) {
			return n.repeated(old), err
		}
	}
	var made Transaction
	err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
		made, err = s.enterTransaction(ctx, sp, &n)
		return err
	})
	if errors.Is(err, errKnownRef) { // another transaction has entered it since we looked
		old, err := transactionOf(ctx, tx, byTransactionRef, n.Account, n.Ref)
		if err != nil {
			return EnteredTransaction{}, fmt.Errorf("transaction %q is entered, and not found: %w", n.Ref, err)
		}
		return n.repeated(old), nil
	}
	if err != nil {
		return EnteredTransaction{}, err
	}
	return EnteredTransaction{Transaction: made, New: true}, nil
}

// repeated is the answer to a request whose reference old has.
func (n *NewTransaction) repeated(old Transaction) EnteredTransaction {
	differs := old.Order != n.Order || old.Kind != n.Kind || n.Amount != 0 && old.Amount.Minor != n.Amount ||
		n.Currency != "" && old.Amount.Currency != n.Currency || old.Reason != n.Reason || !sameJSON(old.Metadata, n.Metadata) ||
		n.Payment != "" && !slices.Contains(old.Movement.Payment, n.Payment)
	return EnteredTransaction{Transaction: old, Differs: differs}
}

// sqlMovable are the payments of an order under its lock, each with where it comes from. One id may stand for two payments in two
// name spaces, so what counts is where the names of the payment itself are entered.
const sqlMovable = `
	WITH RECURSIVE r(root, id) AS (
		SELECT p.id, p.id FROM payments p WHERE p.account_id = $1 AND p.order_id = $2
		UNION
		SELECT r.root, p.id FROM r JOIN payments p ON p.account_id = $1 AND p.merged_into = r.id)
	SELECT p.id, p.ledger, coalesce(o.realm, ''), coalesce(nullif(o.source_id, '` + APISource + `'), '')
	FROM payments p
	LEFT JOIN LATERAL (
		SELECT e.realm, e.source_id
		FROM processed_events e
		JOIN payment_ids i ON i.account_id = e.account_id AND i.realm = e.realm AND i.id = e.payment
		WHERE e.account_id = p.account_id AND e.payment = ANY(ARRAY(SELECT jsonb_array_elements_text(p.ledger -> 'ids')))
			AND i.payment_id IN (SELECT r.id FROM r WHERE r.root = p.id)
		ORDER BY e.source_id = '` + APISource + `', e.received_at, e.source_id, e.event_id LIMIT 1) o ON true
	WHERE p.account_id = $1 AND p.order_id = $2 ORDER BY p.id`

// sqlMoving is what was asked for and is not settled, of payments and of what was merged into them.
const sqlMoving = `
	WITH RECURSIVE r(root, id) AS (
		SELECT x, x FROM unnest($2::uuid[]) AS x
		UNION
		SELECT r.root, p.id FROM r JOIN payments p ON p.account_id = $1 AND p.merged_into = r.id)
	SELECT r.root, t.kind, t.currency, t.amount
	FROM r JOIN transactions t ON t.account_id = $1 AND t.payment_id = r.id AND t.` + openTransaction

// movable is a payment that a movement may be about.
type movable struct {
	id       uuid.UUID
	from     Origin
	ledger   *order.Ledger
	currency string
	moving   map[order.MovementKind]int64 // in that currency
	busy     bool                         // another one has the first turn
	left     int64
	why      order.NotMovable
}

// under is what calls that are not settled are moving of what a movement of that kind would move.
func (m *movable) under(kind order.MovementKind) int64 {
	if kind == order.MovementRefund {
		return m.moving[kind]
	}
	return m.moving[order.MovementCapture] + m.moving[order.MovementVoid]
}

// measure finds out how much can still move.
func (m *movable) measure(kind order.MovementKind) error {
	left, err := m.ledger.Movable(kind, m.currency)
	var no *order.NotMovableError
	if errors.As(err, &no) {
		m.why = no.Why
		return nil
	}
	if err != nil {
		return err
	}
	switch {
	case kind == order.MovementRefund:
		m.left = left - m.moving[order.MovementRefund]
	case m.moving[order.MovementVoid] > 0, kind == order.MovementVoid && m.moving[order.MovementCapture] > 0:
		// Of an authorization that is about to be let go, or taken, nobody knows what will be left.
	default:
		m.left = left - m.moving[order.MovementCapture]
	}
	m.left = max(m.left, 0)
	return nil
}

func (s *Store) enterTransaction(ctx context.Context, tx pgx.Tx, n *NewTransaction) (t Transaction, err error) {
	ref, currency, err := lockOrderForMove(ctx, tx, n)
	if err != nil {
		return t, err
	}
	all, err := movablePayments(ctx, tx, n, currency)
	if err != nil {
		return t, err
	}
	p, err := n.choose(all)
	if err != nil {
		return t, err
	}
	amount := n.Amount
	if amount == 0 || n.Kind == order.MovementVoid {
		amount = p.left
	}
	t = Transaction{
		Account: n.Account, ID: newID(), Ref: n.Ref, Order: n.Order, OrderRef: ref, Payment: p.id, Kind: n.Kind, Amount: order.Amount{Minor: amount, Currency: p.currency},
		Reason: n.Reason, Metadata: n.Metadata, Status: TransactionPending, Epoch: 1,
	}
	t.Movement = order.Movement{
		ID: t.ID.String(), Kind: n.Kind, Amount: t.Amount, Payment: p.ledger.IDs, Captures: p.ledger.CapturesIn(p.currency), Reference: ref, Reason: n.Reason,
	}
	made, err := n.Prepare(p.from, t.Movement)
	if err != nil {
		return t, err
	}
	t.Source, t.Gateway, t.Key = made.Source, made.Gateway, TransactionKey(t.ID, 1)
	if t.CreatedAt, err = s.Clock(ctx, tx); err != nil {
		return t, err
	}
	if !p.busy {
		t.NextAt = &t.CreatedAt
	}
	key := moneyKey{account: n.Account, order: n.Order, party: p.id.String(), kind: string(n.Kind), amount: t.Amount, at: t.CreatedAt, ref: n.Ref}
	err = transactionsTable.enter(ctx, tx, key, func() (bool, error) {
		entered, err := t.insert(ctx, tx, made.Request)
		if entered || err != nil || n.Ref == "" {
			return entered, err
		}
		switch _, err := transactionOf(ctx, tx, byTransactionRef, n.Account, n.Ref); {
		case errors.Is(err, ErrNotFound):
			return false, nil
		case err != nil:
			return false, err
		}
		return false, errKnownRef
	})
	if err != nil || t.NextAt == nil {
		return t, err
	}
	return t, s.enqueueMoves(ctx, tx, []moveJob{{MoveArgs: MoveArgs{t.Account, t.ID}}})
}

// lockOrderForMove locks the order, and with it its payments: those are written only under that lock.
func lockOrderForMove(ctx context.Context, tx pgx.Tx, n *NewTransaction) (ref, currency string, err error) {
	var orders *string
	if _, err := tx.Exec(ctx, sqlSettings); err != nil {
		return "", "", err
	}
	err = tx.QueryRow(ctx, `SELECT external_ref, currency FROM orders WHERE account_id = $1 AND id = $2 FOR NO KEY UPDATE`, n.Account, pgUUID(n.Order)).
		Scan(&ref, &orders)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", "", fmt.Errorf("order %s: %w", n.Order, ErrNotFound)
	}
	if err != nil {
		return "", "", fmt.Errorf("lock order %s: %w", n.Order, err)
	}
	return ref, cmp.Or(n.Currency, deref(orders)), nil
}

// movablePayments are the order's payments, or those of them that are called so, and what is left of each.
func movablePayments(ctx context.Context, tx pgx.Tx, n *NewTransaction, currency string) ([]*movable, error) {
	var (
		all    []*movable
		ids    []pgtype.UUID
		id     uuid.UUID
		doc    []byte
		from   Origin
		kind   order.MovementKind
		cur    string
		amount int64
	)
	rows, _ := tx.Query(ctx, sqlMovable, n.Account, pgUUID(n.Order))
	_, err := pgx.ForEachRow(rows, []any{&id, &doc, &from.Realm, &from.Source}, func() error {
		l := order.NewLedger()
		if err := json.Unmarshal(doc, l); err != nil {
			return fmt.Errorf("ledger of payment %s: %w", id, err)
		}
		if n.Payment != "" && !slices.Contains(l.IDs, n.Payment) {
			return nil
		}
		all = append(all, &movable{id: id, from: from, ledger: l, currency: cmp.Or(currency, currencyOf(l)), moving: map[order.MovementKind]int64{}})
		ids = append(ids, pgUUID(id))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("payments of order %s: %w", n.Order, err)
	}
	rows, _ = tx.Query(ctx, sqlMoving, n.Account, ids)
	_, err = pgx.ForEachRow(rows, []any{&id, &kind, &cur, &amount}, func() error {
		m := all[slices.IndexFunc(all, func(m *movable) bool { return m.id == id })]
		m.busy = true
		if cur == m.currency {
			m.moving[kind] += amount
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("what is being moved for order %s: %w", n.Order, err)
	}
	for _, m := range all {
		if err := m.measure(n.Kind); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// currencyOf is the currency of a payment: its only one as a rule, else the first.
func currencyOf(l *order.Ledger) string {
	currencies := slices.Sorted(maps.Keys(l.Money))
	if len(currencies) == 0 {
		return ""
	}
	return currencies[0]
}

// choose finds the payment that is meant.
func (n *NewTransaction) choose(all []*movable) (*movable, error) {
	if len(all) == 0 {
		return nil, &MoveRefusal{Code: MoveNoPayment}
	}
	var some []*movable
	no := &MoveRefusal{Code: MoveNothing, Why: telling(all)}
	for _, m := range all {
		switch {
		case m.left == 0:
			no.Under += m.under(n.Kind)
		case slices.Contains(n.Realms, m.from.Realm):
			some = append(some, m)
		case !slices.Contains(no.Origins, m.from):
			no.Origins = append(no.Origins, m.from)
		}
	}
	switch {
	case len(some) == 0 && len(no.Origins) > 0:
		return nil, &MoveRefusal{Code: MoveNotCallable, Origins: no.Origins}
	case len(some) == 0:
		return nil, no
	case len(some) > 1:
		no := &MoveRefusal{Code: MovePaymentAmbiguous}
		for _, m := range some {
			no.Names = append(no.Names, m.ledger.IDs[0])
		}
		return nil, no
	case n.Amount > some[0].left:
		return nil, &MoveRefusal{Code: MoveExceeds, Left: order.Amount{Minor: some[0].left, Currency: some[0].currency}, Under: some[0].under(n.Kind)}
	}
	return some[0], nil
}

// telling is the reason that says most about why none of some payments can be moved: an attempt that failed says little where
// another one succeeded. Empty: of one of them all is being moved already.
func telling(all []*movable) order.NotMovable {
	ranks := []order.NotMovable{"", order.AlreadyCaptured, order.NotSaid, order.NothingAuthorized, order.NothingCaptured, order.PaymentOver}
	most := slices.MinFunc(all, func(a, b *movable) int { return cmp.Compare(slices.Index(ranks, a.why), slices.Index(ranks, b.why)) })
	return most.why
}

func (t *Transaction) insert(ctx context.Context, tx pgx.Tx, r Request) (bool, error) {
	header := r.Header
	if header == nil {
		header = map[string]string{}
	}
	var metadata *string
	if t.Metadata != nil {
		text := string(t.Metadata)
		metadata = &text
	}
	body := r.Body
	if body == nil {
		body = []byte{}
	}
	tag, err := tx.Exec(ctx, `
		INSERT INTO transactions (account_id, id, external_ref, order_id, payment_id, party, source_id, gateway, kind, amount, currency, reason, metadata,
			movement, method, path, header, body, key, next_at, created_at)
		VALUES ($1, $2, $3, $4, $5, $5::uuid::text, $6, $7, $8, $9, $10, $11, $12::text::jsonb, $13, $14, $15, $16, $17, $18, $19, $20)
		ON CONFLICT DO NOTHING`,
		t.Account, pgUUID(t.ID), nullText(t.Ref), pgUUID(t.Order), pgUUID(t.Payment), t.Source, t.Gateway, string(t.Kind), t.Amount.Minor, t.Amount.Currency,
		nullText(t.Reason), metadata, t.Movement, r.Method, r.Path, header, body, t.Key, t.NextAt, t.CreatedAt)
	if err != nil {
		return false, fmt.Errorf("enter transaction: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// transactionOf reads one transaction; the error wraps [ErrNotFound].
func transactionOf(ctx context.Context, q querier, where string, args ...any) (Transaction, error) {
	rows, _ := q.Query(ctx, sqlTransactions+where, args...)
	t, err := pgx.CollectExactlyOneRow(rows, scanTransaction)
	if errors.Is(err, pgx.ErrNoRows) {
		return t, fmt.Errorf("transaction: %w", ErrNotFound)
	}
	if err != nil {
		return t, fmt.Errorf("read transaction: %w", err)
	}
	return t, nil
}

// GetTransaction returns one transaction of an account, or an error that is [ErrNotFound].
func (s *Store) GetTransaction(ctx context.Context, account string, id uuid.UUID) (Transaction, error) {
	return transactionOf(ctx, s.pool, byTransactionID, account, pgUUID(id))
}

// FindTransaction returns the transaction of an id, of whichever account if account is empty, or an error that is [ErrNotFound].
func (s *Store) FindTransaction(ctx context.Context, account string, id uuid.UUID) (Transaction, error) {
	return transactionOf(ctx, s.pool, ` JOIN accounts a ON a.id = t.account_id WHERE ($1 = '' OR a.id = $1) AND t.id = $2`, account, pgUUID(id))
}

// TransactionTx is [Store.GetTransaction] inside a transaction: it sees what that transaction has written.
func (s *Store) TransactionTx(ctx context.Context, tx Tx, account string, id uuid.UUID) (Transaction, error) {
	return transactionOf(ctx, tx, byTransactionID, account, pgUUID(id))
}

// OrderTransactions returns all that were entered for an order, in the order in which they were, in the caller's transaction.
func (s *Store) OrderTransactions(ctx context.Context, tx Tx, account string, id uuid.UUID) ([]Transaction, error) {
	return orderTransactions(ctx, tx, account, id)
}

func orderTransactions(ctx context.Context, q querier, account string, id uuid.UUID) ([]Transaction, error) {
	rows, _ := q.Query(ctx, sqlTransactions+` WHERE t.account_id = $1 AND t.order_id = $2 ORDER BY t.id`, account, pgUUID(id))
	all, err := pgx.CollectRows(rows, scanTransaction)
	if err != nil {
		return nil, fmt.Errorf("transactions of order %s: %w", id, err)
	}
	return all, nil
}

// TransactionFilter chooses transactions; zero fields choose all.
type TransactionFilter struct {
	Account  string
	Order    uuid.UUID
	OrderRef string // the merchant's name of the order
	Ref      string // the merchant's name of the transaction
	Status   TransactionStatus

	CreatedFrom, CreatedUntil time.Time // from the first on, before the second

	Before uuid.UUID // of the page before: its last id
	Limit  int       // default 50, at most 1000
}

func (f TransactionFilter) conditions() (*conditions, error) {
	c := &conditions{}
	if f.Account != "" {
		c.add("t.account_id = ?", f.Account)
	}
	if f.Order != uuid.Nil {
		c.add("t.order_id = ?", pgUUID(f.Order))
	}
	if f.OrderRef != "" {
		c.add("o.external_ref = ?", f.OrderRef)
	}
	if f.Ref != "" {
		c.add("t.external_ref = ?", f.Ref)
	}
	if f.Status != "" {
		if !slices.Contains(TransactionStatuses(), f.Status) {
			return nil, fmt.Errorf("there is no status %q", f.Status)
		}
		c.add("t.status = '" + string(f.Status) + "'") // written out for the index of those that are not done
	}
	c.created("t", f.CreatedFrom, f.CreatedUntil)
	if f.Before != uuid.Nil {
		c.add("t.id < ?", pgUUID(f.Before))
	}
	return c, nil
}

// ListTransactions returns transactions, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ListTransactions(ctx context.Context, f TransactionFilter) ([]Transaction, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	c, err := f.conditions()
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list transactions: %w", err)
	}
	rows, _ := s.pool.Query(ctx, sqlTransactions+c.where()+` ORDER BY t.id DESC LIMIT `+c.arg(limit+1), c.args...)
	found, err := pgx.CollectRows(rows, scanTransaction)
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list transactions: %w", err)
	}
	if len(found) > limit {
		return found[:limit], found[limit-1].ID, nil
	}
	return found, uuid.Nil, nil
}
