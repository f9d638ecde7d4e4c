package store

import (
	"log/slog"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
)

// fold takes the events one after another: facts into payments, payments into orders, orders into what is owed. It
// fills each item's result and returns the drain jobs that the orders' promises ask for.
func (s *Store) fold(bt *batch, comps map[int]*component, items []*item) ([]job, error) {
	for _, o := range bt.orders {
		o.rows = map[int]rowCause{}
		o.in.Payments = map[string]*order.Ledger{}
	}
	touched := map[*lockedOrder]bool{}
	for _, it := range items {
		moved := map[*lockedOrder]bool{}
		var main *lockedOrder
		causes := order.CausesOf(it.Event.Event)
		if err := bt.permit(it, comps[it.comp]); err != nil {
			return nil, &EventError{Index: it.index, Err: err}
		}
		if it.comp >= 0 {
			c := comps[it.comp]
			if !c.placed {
				c.placed = true
				if bt.place(c, moved) {
					causes |= order.CauseLink
				}
			}
			p := c.keep
			if c.apart {
				p = bt.leastRoot(it)
			}
			confirming := p.ledger.Confirming()
			p.ledger.JoinEvent(it.Event.Event)
			if confirming && !p.ledger.Confirming() {
				causes |= order.CauseLink
			}
			if it.id != it.ID {
				p.ledger.Flags |= order.FlagIDReused
			}
			p.dirty = true
			main = bt.orders[orderKey{p.account, p.order}]
			if main != nil && (c.create && !c.apart || it.OnUnknown == OnUnknownCreate) {
				main.in.Create = true
			}
		}
		if it.Command != nil && it.comp < 0 {
			var err error
			if main, err = bt.command(it); err != nil {
				return nil, &EventError{Index: it.index, Err: err}
			}
		}
		s.settleItem(bt, it, main, moved, causes)
		for o := range moved {
			touched[o] = true
		}
	}
	var jobs []job
	for o := range touched {
		if at, ok := o.wakeAfterIngest(bt.now); ok {
			jobs = append(jobs, o.drainAt(at, bt.now))
		}
	}
	return jobs, nil
}

// settleItem moves the orders that an event touches and says what it did.
func (s *Store) settleItem(bt *batch, it *item, main *lockedOrder, moved map[*lockedOrder]bool, causes order.Causes) {
	if main != nil {
		moved[main] = true
		main.used = true
		it.res.Order, it.res.Before, it.res.NewOrder = main.id, main.book.Version, main.isNew && main.rows[1].item == nil
		if main.isNew && main.rows[1].item == nil {
			main.rows[1] = rowCause{it, main.book.View}
		}
	}
	for o := range moved {
		o.used = true
		s.step(bt, o, it, causes)
	}
	if main != nil {
		it.res.After = main.book.Version
	}
	it.res.Outcome, it.res.Reason = it.outcome(main)
}

// step folds an order anew and lets its book plan.
func (s *Store) step(bt *batch, o *lockedOrder, it *item, causes order.Causes) {
	clear(o.in.Payments)
	for _, p := range o.payments {
		o.in.Payments[p.id.String()] = p.ledger
	}
	o.in.Recall(o.book.View, it.raised(o))
	from, view := o.book.View.State, o.in.View()
	if order.UnexpectedChange(o.book.View, view, causes) {
		o.mark(order.FlagUnexpectedMove)
		view = o.in.View()
		s.opts.Logger.Error("unexpected move", slog.String("account", o.account), slog.String("order", o.ref),
			slog.String("event_id", it.id), slog.String("from", string(from)), slog.String("to", string(view.State)))
	}
	if o.isNew && o.book.Version == 1 && it.Command != nil && view.State == order.StatePending {
		// The order was made by its own registration: that is version 1, not a change of it.
		o.book.View, o.rows[1] = view, rowCause{it, view}
	}
	before := o.book.Version
	if o.noted && view == o.book.View {
		o.book.Note(it.Type, view, bt.now)
	} else {
		o.book.Step(it.Type, view, bt.now)
	}
	o.noted = false
	for v := before + 1; v <= o.book.Version; v++ {
		o.rows[v] = rowCause{it, view}
	}
}

// place decides which order the payment of a component belongs to. The strongest reference wins; a payment leaves a
// stub freely, but stays on a registered order unless a person links it, and then both orders are flagged. It reports
// whether payments that were known before were merged or changed their order, which may move orders in any direction.
func (bt *batch) place(c *component, moved map[*lockedOrder]bool) bool {
	stood := c.standing(bt.orders)
	known := len(c.keep.ledger.IDs) > 0
	registered := 0
	for _, o := range stood {
		if o.book.View.Registered {
			registered++
		}
		moved[o] = true
	}
	link := c.links.Best()
	// Where a person's word holds, or was just taken back, the payment does not stay where it stood.
	person := link.Strength == order.StrengthPerson || c.person
	if registered > 1 && !person {
		// Two payments, each on a registered order, turn out to be one: neither is taken from its order.
		for _, o := range stood {
			if o.book.View.Registered {
				o.mark(order.FlagReferenceConflict)
			}
		}
		c.apart = true
		return false
	}
	c.merge()
	for _, o := range stood {
		for _, p := range c.found {
			delete(o.payments, p.id)
		}
	}
	c.keep.ledger.Link, c.keep.ledger.Person = c.links.Gateway, c.links.Person
	to := bt.byRef[orderRef{c.keep.account, link.Ref}]
	for _, o := range stood {
		if o.book.View.Registered && !person {
			to = o
			break
		}
	}
	if to == nil && len(stood) > 0 && !(c.person && link.Ref == "") {
		to = stood[0]
	}
	if !person {
		bt.flagConflict(c, to, moved)
	}
	c.keep.order = uuid.Nil
	if to != nil {
		c.keep.order = to.id
		to.payments[c.keep.id] = c.keep
		moved[to] = true
	}
	c.keep.dirty = true
	return len(c.found) > 1 || known && (len(stood) == 0 || to != stood[0])
}

// flagConflict flags the order that a payment stands on, and every other one that an own event of the payment names:
// arrival may decide where the payment stands, but never whether somebody hears of it.
func (bt *batch) flagConflict(c *component, to *lockedOrder, moved map[*lockedOrder]bool) {
	if to == nil {
		return
	}
	for ref := range c.refs {
		if ref == to.ref {
			continue
		}
		to.mark(order.FlagReferenceConflict)
		if o := bt.byRef[orderRef{to.account, ref}]; o != nil && (!o.isNew || o.used) {
			o.mark(order.FlagReferenceConflict)
			moved[o] = true
		}
	}
}

// outcome says what an event did to the order that it concerns.
func (it *item) outcome(o *lockedOrder) (Outcome, string) {
	for _, f := range it.Facts {
		switch f.Misfit {
		case order.MisfitMode:
			return Flagged, ReasonModeMismatch
		case order.MisfitAccount:
			return Flagged, ReasonAccountMismatch
		}
	}
	switch {
	case o == nil && it.OnUnknown == OnUnknownIgnore && it.Reference != "":
		return Ignored, ReasonUnknownOrder
	case o == nil && it.Command != nil:
		return NoChange, ReasonNoOrder
	case o == nil:
		return Waiting, ReasonNoReference
	case it.id != it.ID:
		return Flagged, ReasonIDReused
	case !o.book.View.Registered:
		return Waiting, ReasonUnregistered
	}
	for _, f := range it.Facts {
		if f.Currency != "" && f.Currency != o.book.View.Currency {
			return Flagged, ReasonCurrencyMismatch
		}
	}
	if it.res.After == it.res.Before && !it.res.NewOrder {
		return NoChange, ReasonAlreadyKnown
	}
	return Applied, ""
}

// transitions are the new versions of an order, as Options.InTx sees them.
func (o *lockedOrder) transitions() []Transition {
	var out []Transition
	add := func(r *order.Row) {
		t := Transition{Account: o.account, Order: o.id, Ref: o.ref, Version: r.Version, From: string(r.From), To: string(r.To)}
		if c := o.rows[r.Version]; c.item != nil {
			t.Source, t.EventID = c.item.Source, c.item.id
		}
		out = append(out, t)
	}
	if o.isNew {
		add(&order.Row{Version: 1, To: order.StatePending})
	}
	for _, r := range o.book.New() {
		add(r)
	}
	return out
}
