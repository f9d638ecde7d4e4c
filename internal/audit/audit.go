// Package audit asks whether the database agrees with itself: every payment and every order is folded again from the facts of
// their events, by package order alone and not by the way in which they came about, and compared with what is written; and
// whatever points at something else, or says what something else did, is followed. Each disagreement is a [Difference]. There is
// none in a database that only this program has written, whatever happened to it, and also while it is written.
//
// # What is compared
//
//	events        they can be read, their hash is theirs, their outcome fits what they say, and the versions that they say they
//	              made are there and name them; with Options.Read, the kept bytes still say what is stored
//	payments      their ids lead to them; their ledgers are the join of the facts of their events; they stand on the order that
//	              their links name; what was merged away has nothing left
//	orders        total, currency, cancellation, details and time limit are what the merchant's commands said, and the rest is
//	              [order.Order.View] of that and of the folded payments
//	versions      1, 2, 3 … without a gap, each from the state that the one before led to, the last one as the order stands
//	effects       one at most is live; what the merchant was told is what the settled ones lead to; what is owed is asked for, and
//	              somebody will look
//	incomes, recurrences, transactions, idempotency keys: what they say they did is there
//
// # What may differ, and why
//
// Facts join, so that arrival decides nothing about a ledger. It decides a few other things, and there the audit goes by
// what is written, and checks only that it could have come so:
//
//   - A payment stays on a registered order unless a person links it elsewhere. So it may stand on any registered order that an
//     event of it names, also on one that a payment's own amount had registered until that payment left. On a stub, or nowhere, it may stand only where its best reference makes no order (a modification's, or of a
//     source that ignores unknown orders): such an order may have been made since.
//   - Two payments on two registered orders that turn out to be one stay apart, and an event that knows both counts for one of
//     them: for which one, depends on what had been merged. So each ledger must hold all that is of its payment alone, and at most what such
//     events add; where they stand is not judged, since each may stand there by an event of the other.
//   - The marks reference_conflict, unexpected_move and expired_unpaid tell what happened once. Each must stand in a version; whether it
//     had to be set is checked where that can be told (a payment that was never linked by a person, whose own events name two orders).
//   - create_from_payment stays when its payment has moved on. That it is set where an event says so is checked.
//   - A flag that a person dismissed is hidden until it arises anew. What is hidden must have been dismissed, and must hold.
//   - What came again under a known id is flagged, unless what came first was read again since and is the same now.
//   - Events that were read again ([store.Store.Reevaluate]) share the versions that this made: they need not be named by each.
//     Where any event of an account was, a payment may have left its order, and the order may have forgotten what it had kept beside it,
//     without an event that says so.
//   - The hash of an event with details of the merchant, or of a renewal that was given the order of its period, cannot be made
//     again from what is kept.
//   - An event of another payment than the order's may be the cause of a version: that the payment left, or names this order too.
//   - A promise that is kept late, or that finds nothing to do, is none that was broken: only where somebody must look, and nobody will, is it told.
//   - An event that was lost and entered again from its bytes (paidonce replay --from-db) does not know any more which versions it had made.
//   - Where rows of processed_events are deleted, what they said cannot be told from what nobody said.
package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

// Options say what is audited, and who is told. The zero value audits everything.
type Options struct {
	Account string    // only this account; empty: all
	Order   uuid.UUID // only this order of the account, its payments and their events; zero: all

	// Read, if set, has the kept bytes of every event read again: see [store.AuditOptions].
	Read func(store.StoredDelivery) ([]store.Event, error)
	Same func(id string, today store.Event) bool

	// Each, if set, is told of every difference as soon as it is found. Its error ends the audit.
	Each func(Difference) error

	// Progress, if set, is told how many rows were looked at, of how many.
	Progress func(done, total int)
}

// Summary is what an audit looked at.
type Summary struct {
	At           time.Time      `json:"at"` // the moment that was looked at, by the database's clock
	Accounts     int            `json:"accounts"`
	Events       int            `json:"events"`
	Payments     int            `json:"payments"`
	Orders       int            `json:"orders"`
	Versions     int            `json:"versions"`
	Incomes      int            `json:"incomes"`
	Recurrences  int            `json:"recurrences"`
	Transactions int            `json:"transactions"`
	Keys         int            `json:"idempotency_keys"`
	Reread       int            `json:"reread,omitempty"` // events whose bytes were read again
	Unread       map[string]int `json:"unread,omitempty"` // events whose bytes were not, by reason
	Differences  int            `json:"differences"`      // none: everything agrees
	Kinds        map[Kind]int   `json:"kinds,omitempty"`  // differences by kind
}

// Plus is what two audits looked at together, as of the later one.
func (s Summary) Plus(t Summary) Summary {
	if t.At.After(s.At) {
		s.At = t.At
	}
	s.Accounts += t.Accounts
	s.Events += t.Events
	s.Payments += t.Payments
	s.Orders += t.Orders
	s.Versions += t.Versions
	s.Incomes += t.Incomes
	s.Recurrences += t.Recurrences
	s.Transactions += t.Transactions
	s.Keys += t.Keys
	s.Reread += t.Reread
	s.Differences += t.Differences
	s.Unread, s.Kinds = added(s.Unread, t.Unread), added(s.Kinds, t.Kinds)
	return s
}

func added[K comparable](a, b map[K]int) map[K]int {
	sum := make(map[K]int, len(a)+len(b))
	for _, m := range []map[K]int{a, b} {
		for k, n := range m {
			sum[k] += n
		}
	}
	return sum
}

// Run audits the database of a store as of this moment. It writes nothing, takes no locks, and holds a page of rows at a time, with the
// largest order's. The error is about the audit itself; what it found is in the Summary.
func Run(ctx context.Context, st *store.Store, o Options) (Summary, error) {
	r := &run{o: o, told: map[string]bool{}}
	r.sum.Kinds = map[Kind]int{}
	if o.Order != uuid.Nil && o.Account == "" {
		return r.sum, errors.New("audit: Options.Order needs its Account")
	}
	err := st.Audit(ctx, store.AuditOptions{Read: o.Read, Same: o.Same}, func(a *store.AuditSnapshot) error {
		r.a, r.sum.At = a, a.Now()
		if o.Order != uuid.Nil {
			r.sum.Accounts = 1
			return r.order(ctx)
		}
		return r.everything(ctx)
	})
	if err != nil {
		return r.sum, fmt.Errorf("audit: %w", err)
	}
	return r.sum, nil
}

// run is one audit.
type run struct {
	o    Options
	a    *store.AuditSnapshot
	sum  Summary
	told map[string]bool // differences that were told already, by what they are about

	account     string
	reread      bool // some event of the account was read again once
	done, total int
}

func (r *run) everything(ctx context.Context) error {
	accounts := []string{r.o.Account}
	if r.o.Account == "" {
		var err error
		if accounts, err = r.a.Accounts(ctx); err != nil {
			return err
		}
	}
	if r.o.Progress != nil {
		for _, account := range accounts {
			n, err := r.a.Count(ctx, account)
			if err != nil {
				return err
			}
			r.total += n.Events + n.Orders + n.Payments + n.PaymentIDs + n.Incomes + n.Recurrences + n.Transactions + n.Keys
		}
	}
	for _, account := range accounts {
		if err := r.oneAccount(ctx, account); err != nil {
			return err
		}
		r.sum.Accounts++
	}
	return nil
}

// oneAccount audits an account. Events come first: ids that lead astray are known before anything is folded.
func (r *run) oneAccount(ctx context.Context, account string) (err error) {
	r.account = account
	if r.reread, err = r.a.Reread(ctx, account); err != nil {
		return err
	}
	for _, part := range []func() error{
		func() error {
			return r.a.Events(ctx, account, func(page []*store.AuditEvent) error { return r.events(ctx, page) })
		},
		func() error { return r.strays(ctx) },
		func() error { return r.a.Orders(ctx, account, r.orders) },
		func() error { return r.a.LoosePayments(ctx, account, r.loose) },
		func() error { return r.a.PaymentIDs(ctx, account, r.paymentIDs) },
		func() error { return r.a.Incomes(ctx, account, r.incomes) },
		func() error {
			return r.a.Recurrences(ctx, account, func(page []store.Recurrence) error { return r.recurrences(ctx, page) })
		},
		func() error { return r.a.Transactions(ctx, account, r.transactions) },
		func() error { return r.a.Keys(ctx, account, r.keys) },
	} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// order audits one order, with its payments and their events.
func (r *run) order(ctx context.Context) (err error) {
	r.account = r.o.Account
	if r.reread, err = r.a.Reread(ctx, r.account); err != nil {
		return err
	}
	o, err := r.a.Order(ctx, r.account, r.o.Order)
	if err != nil {
		return err
	}
	if o == nil {
		return fmt.Errorf("order %s: %w", r.o.Order, store.ErrNotFound)
	}
	keys := map[store.EventKey]bool{}
	var list []store.EventKey
	add := func(events ...*store.AuditEvent) {
		for _, e := range events {
			if e != nil && !keys[e.EventKey] {
				keys[e.EventKey] = true
				list = append(list, e.EventKey)
			}
		}
	}
	add(o.Commands...)
	for _, p := range o.Payments {
		add(p.Events...)
		add(p.Apart...)
	}
	for _, row := range o.Rows {
		add(row.Event)
	}
	r.total = len(list) + 1
	if err := r.a.EventsOf(ctx, list, func(page []*store.AuditEvent) error { return r.events(ctx, page) }); err != nil {
		return err
	}
	if err := r.strays(ctx); err != nil {
		return err
	}
	if o, err = r.a.Order(ctx, r.account, r.o.Order); err != nil { // by the ids that are known by now
		return err
	}
	return r.orders([]*store.AuditOrder{o})
}

// progress notes that n rows were looked at.
func (r *run) progress(n int) {
	r.done += n
	if r.o.Progress != nil {
		r.o.Progress(r.done, max(r.total, r.done))
	}
}
