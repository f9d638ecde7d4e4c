package audit

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// joined is what events say of their payment. Where an id came again with facts that are the same today, the flag may be there or
// not: that is maybe.
func joined(events []*store.AuditEvent) (l *order.Ledger, maybe order.Flags) {
	l = order.NewLedger()
	for _, e := range events {
		l.JoinEvent(e.Event)
		switch {
		case e.Twin && e.TwinFits:
			l.Flags |= order.FlagIDReused
		case e.Twin:
			maybe |= order.FlagIDReused
		}
	}
	return l, maybe
}

// ledger checks the ledger of a payment, and returns what it should be.
func (r *run) ledger(p *store.AuditPayment, ref string) (*order.Ledger, error) {
	least, maybe := joined(p.Events)
	d := Difference{Kind: PaymentLedger, Order: ref, OrderID: idText(p.Order), Payment: p.ID.String()}
	if p.Unreadable != "" {
		d.Kind, d.Says = PaymentUnreadable, "Its ledger cannot be read: "+p.Unreadable+"."
		return least, r.found(d, p.Events...)
	}
	written := p.Ledger
	if len(p.Apart) == 0 {
		least.Flags |= written.Flags & maybe
		if d.Expected, d.Found = differing(least, written); d.Expected+d.Found == "" {
			return least, nil
		}
		d.Says = "Its ledger is not the join of what its events say."
		return least, r.found(d, p.Events...)
	}
	// What the events say that know another payment too may stand with that one.
	all := slices.Concat(p.Events, p.Apart)
	most, maybe := joined(all)
	most.Flags |= written.Flags & maybe
	if lacks, _ := differing(with2(written, least), written); lacks != "" {
		d.Says = "Its ledger lacks what events of this payment alone say."
		d.Expected, d.Found = differing(with2(written, least), written)
		return with2(written, least), r.found(d, all...)
	}
	if d.Expected, d.Found = differing(most, with2(most, written)); d.Expected+d.Found != "" {
		d.Says = "Its ledger holds more than all events say that know it."
		return most, r.found(d, all...)
	}
	return written, nil
}

// with2 is the join of two ledgers.
func with2(a, b *order.Ledger) *order.Ledger {
	c := a.Clone()
	c.Merge(b)
	return c
}

// placed reports whether a payment may stand where it stands: on the order called ref (empty: on none), which is registered now, or
// may have been once. refs are the orders that there are; l is its ledger.
func (r *run) placed(p *store.AuditPayment, l *order.Ledger, ref string, registered bool, refs map[string]uuid.UUID) (expected string, ok bool) {
	if len(p.Apart) > 0 {
		return "", true // what names its order may be an event of the payment that it stays apart from
	}
	events := p.Events
	best := l.Links().Best()
	_, there := refs[best.Ref]
	named := slices.ContainsFunc(events, func(e *store.AuditEvent) bool { return e.Event.Reference == ref })
	var tookBack, ignored, stood bool
	for _, e := range events {
		tookBack = tookBack || e.Event.Command != nil && e.Event.Command.Link && e.Event.Reference == ""
		ignored = ignored || e.OnUnknown == store.OnUnknownIgnore && e.Event.Reference == best.Ref
		stood = stood || e.Order != uuid.Nil
	}
	// Its order may be taken from it by a person's word, or because what named the order was read again.
	left := !stood || tookBack || r.reread
	switch {
	case best.Ref == "":
		return "no order", ref == "" && left
	case there && ref == best.Ref:
		return "", true
	case !there && ref == "":
		return "the order that it stood on", left
	case !there:
		return "an order that its events name", named
	case best.Strength == order.StrengthPerson:
		return "order " + best.Ref + ", to which a person has linked it", false
	case ref != "" && registered:
		return "order " + best.Ref, named
	}
	// Its best reference makes no order, and the one that there is may have come later.
	weak := best.Strength == order.StrengthModification || ignored
	if ref == "" {
		return "order " + best.Ref, weak && left
	}
	return "order " + best.Ref, weak && named
}

// place checks where a payment stands.
func (r *run) place(p *store.AuditPayment, l *order.Ledger, ref string, registered bool, refs map[string]uuid.UUID) (ok bool, err error) {
	expected, ok := r.placed(p, l, ref, registered, refs)
	if ok {
		return true, nil
	}
	d := Difference{
		Kind: PaymentOrder, Order: ref, OrderID: idText(p.Order), Payment: p.ID.String(), Says: "It stands where its events do not lead.",
		Expected: expected, Found: "no order",
	}
	if ref != "" {
		d.Found = "order " + ref
	}
	return false, r.found(d, slices.Concat(p.Events, p.Apart)...)
}

// loose checks payments that stand on no order.
func (r *run) loose(page []*store.AuditLoosePayment) error {
	for _, p := range page {
		r.sum.Payments++
		if err := r.loosePayment(p); err != nil {
			return err
		}
	}
	r.progress(len(page))
	return nil
}

func (r *run) loosePayment(p *store.AuditLoosePayment) error {
	if p.Into != uuid.Nil {
		_, left := differing(order.NewLedger(), p.Ledger)
		if p.Unreadable == "" && left == "" {
			return nil
		}
		return r.found(Difference{
			Kind: PaymentMerged, Payment: p.ID.String(), Found: left,
			Says: "It was merged into payment " + p.Into.String() + ", which holds all that is known, and has a ledger of its own left.",
		})
	}
	l, err := r.ledger(&p.AuditPayment, "")
	if err != nil || len(l.IDs) == 0 {
		return err // nothing is known of it: it lost a race for its only id, or all that named it was read again
	}
	_, err = r.place(&p.AuditPayment, l, "", false, p.Refs)
	return err
}

// strays tells of payment ids that lead astray.
func (r *run) strays(ctx context.Context) error {
	found, err := r.a.Strays(ctx)
	if err != nil {
		return err
	}
	for _, s := range found {
		if err := r.stray(s); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) stray(s store.AuditStray) error {
	d := Difference{
		Kind: PaymentID, Subject: fmt.Sprintf("payment id %s of %s", s.ID, s.Realm), Payment: "",
		Says: "It leads to a payment that does not know it.", Found: idText(s.Leads), Expected: "the payment of its events",
	}
	if s.Leads == uuid.Nil {
		d.Says = "It leads to no payment."
	}
	if len(s.Known) > 0 {
		d.Expected = s.Known[0].String()
	}
	for _, e := range s.Events {
		d.Events = append(d.Events, Event{e.Source, e.ID})
	}
	return r.found(d)
}

// paymentIDs checks ids that no event may name any more.
func (r *run) paymentIDs(seen int, strays []store.AuditStray) error {
	for _, s := range strays {
		if err := r.stray(s); err != nil {
			return err
		}
	}
	r.progress(seen)
	return nil
}
