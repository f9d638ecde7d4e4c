package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// rowCause is what stands behind a new row of order_transitions: the event, and the view that it led to.
type rowCause struct {
	item *item
	view order.View
}

type orderKey struct {
	account string
	id      uuid.UUID
}

func (k orderKey) compare(l orderKey) int {
	return cmp.Or(cmp.Compare(k.account, l.account), bytes.Compare(k.id[:], l.id[:]))
}

// lockedOrder is an order under its row lock: its inputs, what the fold said at its version, and its book.
type lockedOrder struct {
	orderKey
	ref      string
	in       order.Order     // Payments is filled by apply only; the view of a drain comes from the row
	details  json.RawMessage // what replaces the details; nil: they stay
	had      json.RawMessage // the details as they stand: read where the batch amends some
	noted    bool            // something changed that no view shows
	expiry   *order.Expiry   // what replaces the expiry; nil: it stays
	payments map[uuid.UUID]*payment
	book     *order.Book
	wake     time.Time // zero: nobody has to look

	read     int // version read under the lock
	readIn   order.Order
	readWk   time.Time
	readTo   order.Told
	readView order.View
	isNew    bool             // this transaction inserted the row
	used     bool             // an event of this batch concerns it
	rows     map[int]rowCause // by version
}

const orderColumns = `o.account_id, o.id, o.external_ref, o.registered, o.total, o.currency, o.canceled, o.create_from_payment,
	array_to_string(o.marks, ','), array_to_string(o.dismissed, ','), o.state, array_to_string(o.flags, ','), o.want, o.captured, o.refunded, o.lost, o.kept,
	o.at_risk, o.authorized, o.told, o.fence, o.wake_at, o.version`

// orderScan holds the destinations of orderColumns.
type orderScan struct {
	key                     orderKey
	ref                     string
	in                      order.Order
	view                    order.View
	total                   *int64
	currency                *string
	marks, dismissed, flags string
	told                    order.Told
	fence                   int64
	wake                    *time.Time
	version                 int
}

func (s *orderScan) dest() []any {
	v := &s.view
	return []any{
		&s.key.account, &s.key.id, &s.ref, &s.in.Registered, &s.total, &s.currency, &s.in.Canceled, &s.in.Create,
		&s.marks, &s.dismissed, &v.State, &s.flags, &v.Want, &v.Captured, &v.Refunded, &v.Lost, &v.Kept,
		&v.AtRisk, &v.Authorized, &s.told, &s.fence, &s.wake, &s.version,
	}
}

// read fills the inputs and the view from what stands in other columns. Its error is a flag that this program does not know.
func (s *orderScan) read() (err error) {
	for _, f := range []struct {
		to   *order.Flags
		from string
	}{{&s.in.Marks, s.marks}, {&s.in.Dismissed, s.dismissed}, {&s.view.Flags, s.flags}} {
		if *f.to, err = parseFlags(f.from); err != nil {
			return err
		}
	}
	if s.total != nil {
		s.view.Registered, s.view.Total, s.view.Currency = true, *s.total, deref(s.currency)
	}
	if s.in.Registered {
		s.in.Total, s.in.Currency = s.view.Total, s.view.Currency
	}
	return nil
}

func scanOrder(row pgx.CollectableRow) (*lockedOrder, error) {
	var s orderScan
	if err := row.Scan(s.dest()...); err != nil {
		return nil, err
	}
	if err := s.read(); err != nil {
		return nil, err
	}
	o := &lockedOrder{orderKey: s.key, ref: s.ref, in: s.in, wake: deref(s.wake), read: s.version, payments: map[uuid.UUID]*payment{}}
	o.readIn, o.readWk, o.readTo, o.readView = o.in, o.wake, s.told, s.view
	o.book = order.NewBook(o.read, s.told, s.view, s.fence, nil)
	return o, nil
}

func parseFlags(s string) (order.Flags, error) {
	if s == "" {
		return 0, nil
	}
	return order.ParseFlags(strings.Split(s, ","))
}

const rowColumns = `t.version, t.from_state, t.to_state, t.cause, t.effect, t.effect_state, t.after, t.attempts, t.tried, t.fence,
	t.claimed_until, t.next_at, t.last_error, t.why`

// rowScan holds the destinations of rowColumns; all may be NULL where the row comes from a LEFT JOIN.
type rowScan struct {
	version, attempts                             *int
	from, to, cause, effect, state, after, e, why *string
	tried                                         *bool
	fence                                         *int64
	until, next                                   *time.Time
}

func (r *rowScan) dest() []any {
	return []any{
		&r.version, &r.from, &r.to, &r.cause, &r.effect, &r.state, &r.after, &r.attempts, &r.tried, &r.fence,
		&r.until, &r.next, &r.e, &r.why,
	}
}

func (r *rowScan) row() *order.Row {
	if r.version == nil {
		return nil
	}
	return &order.Row{
		Version: *r.version, From: order.State(deref(r.from)), To: order.State(deref(r.to)), Cause: deref(r.cause),
		Effect: order.Effect(deref(r.effect)), EffectState: order.EffectState(deref(r.state)), After: order.Told(deref(r.after)),
		Attempts: deref(r.attempts), Tried: deref(r.tried), Fence: deref(r.fence),
		ClaimedUntil: deref(r.until), NextAt: deref(r.next), LastError: deref(r.e), Why: deref(r.why),
	}
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// orderSet names orders by id or by the merchant's reference; a statement takes it as parameters $1 to $4.
type orderSet struct {
	accounts    []string
	ids         []pgtype.UUID
	refAccounts []string
	refs        []string
}

func (s *orderSet) add(k orderKey) {
	s.accounts, s.ids = append(s.accounts, k.account), append(s.ids, pgUUID(k.id))
}

func (s *orderSet) empty() bool { return len(s.ids)+len(s.refs) == 0 }

func (s *orderSet) args() []any { return []any{s.accounts, s.ids, s.refAccounts, s.refs} }

// orderKeys are the keys of an orderSet, sorted. Statements reach orders from it by LATERAL, key by key: whatever the
// planner believes of the tables, it can't start from them, and the locks are taken in the order of the keys.
const orderKeys = `(
		SELECT a, i FROM (
			SELECT a, i FROM unnest($1::text[], $2::uuid[]) AS x(a, i)
			UNION
			SELECT x.a, q.id FROM unnest($3::text[], $4::text[]) AS x(a, r)
			CROSS JOIN LATERAL (SELECT q.id FROM orders q WHERE q.account_id = x.a AND q.external_ref = x.r LIMIT 1) q) y
		ORDER BY a, i) AS k(a, i) `

const (
	sqlLockOrders = `SELECT o.* FROM ` + orderKeys + `
		CROSS JOIN LATERAL (
			SELECT ` + orderColumns + ` FROM orders o WHERE o.account_id = k.a AND o.id = k.i
			FOR NO KEY UPDATE OF o) o`
	sqlClock    = `SELECT clock_timestamp()`
	sqlOpenRows = `SELECT k.a, k.i, t.*,
			u.version, u.from_state, u.to_state, u.cause, u.effect, u.effect_state, u.after, u.attempts, u.tried, u.fence,
			u.claimed_until, u.next_at, u.last_error, u.why
		FROM ` + orderKeys + `
		CROSS JOIN LATERAL (
			SELECT ` + rowColumns + `, t.undoes FROM order_transitions t
			WHERE t.account_id = k.a AND t.order_id = k.i AND t.effect_state IN ('open', 'claimed', 'dead')
			LIMIT 1) t
		LEFT JOIN LATERAL (
			SELECT * FROM order_transitions u
			WHERE u.account_id = k.a AND u.order_id = k.i AND u.version = t.undoes LIMIT 1) u ON true`
)

// lockedSet is what queueLock fills once its batch has been read.
type lockedSet struct {
	orders map[orderKey]*lockedOrder
	now    time.Time // the database's clock, read after the last lock was granted
}

// queueLock locks the orders of set in key order and reads, by statements of their own that therefore start after the
// locks were granted, the clock, what between queues (may be nil), and the open effects with the rows they undo.
func (s *Store) queueLock(b *pgx.Batch, set *orderSet, between func(*lockedSet)) *lockedSet {
	l := &lockedSet{orders: map[orderKey]*lockedOrder{}}
	b.Queue(sqlLockOrders, set.args()...).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanOrder)
		for _, o := range found {
			o.book.MaxAttempts = s.opts.MaxAttempts
			l.orders[o.orderKey] = o
		}
		return err
	})
	b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&l.now) })
	if between != nil {
		between(l)
	}
	b.Queue(sqlOpenRows, set.args()...).Query(func(rows pgx.Rows) error {
		var (
			account    string
			id         uuid.UUID
			open, undo rowScan
		)
		var undoes *int
		dest := append([]any{&account, &id}, open.dest()...)
		dest = append(dest, &undoes)
		_, err := pgx.ForEachRow(rows, append(dest, undo.dest()...), func() error {
			o := l.orders[orderKey{account, id}]
			if o == nil {
				return fmt.Errorf("open effect of order %s, which is not locked", id)
			}
			r := open.row()
			r.Undoes = undo.row()
			book := order.NewBook(o.book.Version, o.book.Told, o.book.View, o.book.Fence, r)
			book.MaxAttempts = o.book.MaxAttempts
			o.book = book
			return nil
		})
		return err
	})
	return l
}

// wakeAfterIngest applies the rule of a writer that is no drain: wake_at is a promise that only drains clear or move
// later. It reports when a drain job must run, if the promise that stands does not cover it.
func (o *lockedOrder) wakeAfterIngest(now time.Time) (at time.Time, enqueue bool) {
	if open := o.book.Open; open != nil && open.EffectState == order.EffectClaimed {
		return time.Time{}, false // a call is out: wake_at is its claim's end, and its settle plans again
	}
	due := o.book.Due()
	if due.IsZero() {
		return time.Time{}, false
	}
	if due.Before(now) {
		due = now
	}
	if !o.wake.IsZero() && !o.wake.After(due) {
		return time.Time{}, false
	}
	o.wake = due
	return due, true
}

// mark sets a flag that is kept beside the payments, and shows it even where it was dismissed before: it arose anew.
func (o *lockedOrder) mark(f order.Flags) {
	o.in.Marks |= f
	o.in.Dismissed &^= f
}

// changed reports whether the order's row differs from what was read.
func (o *lockedOrder) changed() bool {
	return o.isNew || o.book.Version != o.read || o.book.Told != o.readTo || !o.wake.Equal(o.readWk) ||
		o.in.Registered != o.readIn.Registered || o.in.Canceled != o.readIn.Canceled || o.in.Create != o.readIn.Create ||
		o.in.Marks != o.readIn.Marks || o.in.Dismissed != o.readIn.Dismissed || o.expiry != nil || !o.book.Clean()
}

func sortOrders(orders []*lockedOrder) {
	slices.SortFunc(orders, func(a, b *lockedOrder) int { return a.compare(b.orderKey) })
}

// send runs one pipeline and waits for it: one round trip.
func send(ctx context.Context, q interface {
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}, b *pgx.Batch,
) error {
	if b.Len() == 0 {
		return nil
	}
	return q.SendBatch(ctx, b).Close()
}

func pgUUID(id uuid.UUID) pgtype.UUID { return pgtype.UUID{Bytes: id, Valid: id != uuid.Nil} }

func nullTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
