package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// Tx is a transaction in which a caller has rows of its own written together with ours.
type Tx = pgx.Tx

// RefusalCode says why a command was not carried out.
type RefusalCode string

// The refusals. All of them are about the order as it stood under its lock.
const (
	RefusedVersion      RefusalCode = "version_mismatch" // the order is no longer at the version that the command is for
	RefusedUnregistered RefusalCode = "unregistered"     // nobody has registered the order yet
	RefusedCaptured     RefusalCode = "captured"         // the total of an order that money was captured for once stays
	RefusedMoneyKept    RefusalCode = "money_kept"       // an order for which money is kept is not canceled
	RefusedDetails      RefusalCode = "details"          // a patch that leaves no object
	RefusedElsewhere    RefusalCode = "elsewhere"        // the payment does not belong to the order that it was to be taken from
)

// Refusal says that a command was not carried out, and at which version of the order. Nothing was written.
type Refusal struct {
	Code    RefusalCode
	Order   uuid.UUID
	Version int
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("order %s at version %d: %s", r.Order, r.Version, r.Code)
}

// Condition is what must hold of an order for a command to be carried out.
type Condition struct {
	Version int // the order's version, exactly; 0: any

	// Holds is the order that the payment of the command belongs to now; zero: any, or none. It is what a link is taken back
	// from, which names no order.
	Holds uuid.UUID
}

// InTx runs f in a transaction, again if Postgres refused it for the sake of another one, and commits. It is for
// callers that hold no transaction yet; f must not keep anything of a run that failed.
func (s *Store) InTx(ctx context.Context, f func(Tx) error) error {
	_, err := retry(ctx, &s.retried, func() (struct{}, error) {
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return f(tx) })
	})
	return err
}

// Clock returns the database's time: that of a command. It does not stand still within a transaction.
func (s *Store) Clock(ctx context.Context, tx Tx) (now time.Time, err error) {
	if err := tx.QueryRow(ctx, sqlClock).Scan(&now); err != nil {
		return now, fmt.Errorf("read the clock: %w", err)
	}
	return now, nil
}

// OrderTx is [Store.GetOrder] inside a transaction: it sees what that transaction has written.
func (s *Store) OrderTx(ctx context.Context, tx Tx, account string, id uuid.UUID) (Order, error) {
	return getOrder(ctx, tx, account, id)
}

// Command enters one event of the merchant's own API in the caller's transaction. Whether it may be carried out is
// decided under the order's lock: the error is then a [*Refusal], or wraps [ErrNotFound] if the event names an order that
// there is not. Both leave the transaction as it was before.
func (s *Store) Command(ctx context.Context, tx Tx, e Event, cond Condition) (Result, error) {
	if e.Command == nil {
		return Result{}, fmt.Errorf("event %s is no command", e.ID)
	}
	e.Source = APISource
	e.refuse = func(o *lockedOrder) error { return cond.refuse(o, e.Command) }
	e.holds = cond.Holds
	results, err := s.ApplyTx(ctx, tx, []Event{e})
	if err != nil {
		return Result{}, fmt.Errorf("command %s: %w", e.Type, err)
	}
	return results[0], nil
}

// refuse says why a command may not be carried out on the order; o is nil where there is none of that name.
func (c Condition) refuse(o *lockedOrder, cmd *order.Command) error {
	no := func(code RefusalCode) error { return &Refusal{Code: code, Order: o.id, Version: o.read} }
	switch {
	case o == nil:
		return ErrNotFound
	case c.Version != 0 && c.Version != o.read:
		return no(RefusedVersion)
	case (cmd.Amend != nil || cmd.Cancel) && !o.in.Registered:
		return no(RefusedUnregistered)
	case cmd.Cancel && o.book.View.Kept > 0:
		return no(RefusedMoneyKept)
	case cmd.Amend != nil && cmd.Amend.Total != nil && *cmd.Amend.Total != (order.Amount{Minor: o.in.Total, Currency: o.in.Currency}):
		for _, p := range o.payments {
			if p.ledger.EverCaptured() {
				return no(RefusedCaptured)
			}
		}
	}
	return nil
}

// permit asks whether an item may be carried out, before it has changed anything. c is the payment that it is about, or nil.
func (bt *batch) permit(it *item, c *component) error {
	if it.holds != uuid.Nil && (c == nil || !c.standsOn(it.holds)) {
		return &Refusal{Code: RefusedElsewhere, Order: it.holds}
	}
	if it.refuse == nil || it.Reference == "" {
		return nil
	}
	o := bt.byRef[orderRef{it.Account, it.Reference}]
	if o != nil && o.isNew && !o.used && !it.createsOrder() {
		o = nil // its row is of this transaction, and made for something else
	}
	if o == nil && it.createsOrder() {
		return nil
	}
	return it.refuse(o)
}

// command applies what the merchant says about an order itself. Nil: there is no order of that name.
func (bt *batch) command(it *item) (*lockedOrder, error) {
	o := bt.byRef[orderRef{it.Account, it.Reference}]
	if o == nil {
		return nil, nil
	}
	c := it.Command
	if r := c.Register; r != nil && !o.in.Registered {
		o.in.Registered, o.in.Total, o.in.Currency = true, r.Minor, r.Currency
		o.details = c.Details
		if c.ExpiresAt != nil {
			o.expiry = &order.Expiry{At: c.ExpiresAt}
		}
	}
	if c.Cancel && !o.in.Canceled {
		o.in.Canceled, o.noted = true, true
	}
	if a := c.Amend; a != nil {
		if err := o.amend(a); err != nil {
			return nil, err
		}
	}
	o.in.Dismissed = (o.in.Dismissed | c.Dismiss) &^ c.Restore
	return o, nil
}

// amend changes a registered order. What no view shows still makes a version, so that the ETag moves.
func (o *lockedOrder) amend(a *order.Amendment) error {
	if a.Total != nil {
		o.in.Total, o.in.Currency = a.Total.Minor, a.Total.Currency
	}
	details, err := a.Apply(o.had)
	if err != nil {
		return &Refusal{Code: RefusedDetails, Order: o.id, Version: o.read}
	}
	if a.Details != nil && !sameJSON(details, o.had) {
		o.details, o.had, o.noted = details, details, true
	}
	if a.Expiry != nil {
		o.expiry, o.noted = a.Expiry, true
		o.in.Marks &^= order.FlagExpiredUnpaid
	}
	return nil
}

// queueDetails reads, under the locks, the details of orders where the batch amends some.
func queueDetails(b *pgx.Batch, set *orderSet, items []*item, l *lockedSet) {
	amends := false
	for _, it := range items {
		amends = amends || it.Command != nil && it.Command.Amend != nil
	}
	if !amends {
		return
	}
	b.Queue(`SELECT o.* FROM `+orderKeys+`
		CROSS JOIN LATERAL (
			SELECT o.account_id, o.id, o.details FROM orders o WHERE o.account_id = k.a AND o.id = k.i LIMIT 1) o`,
		set.args()...).Query(func(rows pgx.Rows) error {
		var (
			k   orderKey
			doc []byte
		)
		_, err := pgx.ForEachRow(rows, []any{&k.account, &k.id, &doc}, func() error {
			if o := l.orders[k]; o != nil {
				o.had = bytes.Clone(doc)
			}
			return nil
		})
		return err
	})
}

// raised are the flags that the item raises on an order, even where a person had dismissed them before.
func (it *item) raised(o *lockedOrder) order.Flags {
	f := order.Raised(it.Event.Event, o.book.View.Currency)
	if it.id != it.ID {
		f |= order.FlagIDReused
	}
	return f
}

// DismissEvent says that a person has dealt with an event, or, with dismissed false, that somebody should look at it
// again. It changes neither the event's outcome nor any order. It returns [ErrNotFound] if there is no such event.
func (s *Store) DismissEvent(ctx context.Context, tx Tx, key EventKey, dismissed bool) error {
	tag, err := tx.Exec(ctx, `
		UPDATE processed_events SET dismissed_at = CASE WHEN $4 THEN coalesce(dismissed_at, clock_timestamp()) END
		WHERE account_id = $1 AND source_id = $2 AND event_id = $3`, key.Account, key.Source, key.ID, dismissed)
	if err != nil {
		return fmt.Errorf("dismiss event %s: %w", key.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("event %s: %w", key.ID, ErrNotFound)
	}
	return nil
}

// PaymentID is one of the names of a payment, and the name space that it is of.
type PaymentID struct {
	Realm string     `json:"realm"`
	ID    string     `json:"id"`
	Order *uuid.UUID `json:"order_id"` // nil: the payment belongs to no order
}

// PaymentsNamed returns the payments that are called id in one of these name spaces, by name space: none, or one as a rule. It
// locks them, so that a time that is read after it ([Store.Clock]) is later than all that was said about them before: of what
// persons say the last word holds, and that must be the last one that was carried out.
func (s *Store) PaymentsNamed(ctx context.Context, tx Tx, account string, realms []string, id string) ([]PaymentID, error) {
	rows, _ := tx.Query(ctx, `
		WITH RECURSIVE r(realm, payment, up) AS (
			SELECT i.realm, p.id, p.merged_into FROM payment_ids i JOIN payments p ON p.account_id = i.account_id AND p.id = i.payment_id
			WHERE i.account_id = $1 AND i.realm = ANY($3) AND i.id = $2
			UNION ALL
			SELECT r.realm, p.id, p.merged_into FROM r JOIN payments p ON p.account_id = $1 AND p.id = r.up)
		SELECT r.realm, $2::text, p.order_id FROM r JOIN payments p ON p.account_id = $1 AND p.id = r.payment
		WHERE r.up IS NULL ORDER BY p.id FOR NO KEY UPDATE OF p`, account, id, realms)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[PaymentID])
	if err != nil {
		return nil, fmt.Errorf("find payment %q: %w", id, err)
	}
	slices.SortFunc(found, func(a, b PaymentID) int { return cmp.Compare(a.Realm, b.Realm) })
	return found, nil
}
