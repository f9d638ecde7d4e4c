package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// stripeRenews are the billing reasons of invoices that bill a period of a
// subscription: the first one, and those that follow. Others are about a change
// within one (subscription_update, subscription_threshold), or none (manual).
// https://docs.stripe.com/api/invoices/object#invoice_object-billing_reason
var stripeRenews = map[string]bool{"subscription_create": true, "subscription_cycle": true}

// renewal tells of which period of which subscription an invoice is, or a
// Checkout session that began one; nil if it is of none.
func (e *stripeEvent) renewal(s Source) *order.Renewal {
	switch e.kind {
	case &stripeInvoice:
		if stripeRenews[e.o.get("billing_reason").Str] {
			details := e.subscriptionDetails()
			refs := e.metadata(details.metadata)
			return renews(s, e.periodStart(), e.idIn(details.subscription, "subscription"), refs[:]...)
		}
	case &stripeSession:
		// It names no period, but its subscription begins with it. Only its own
		// reference counts: without one it says nothing of an order.
		if !e.o.get("subscription").absent() {
			at, _ := unixTime(e.o.get("created"))
			return renews(s, at, "")
		}
	}
	return nil
}

// stripeSubscription is what an invoice says of its subscription.
type stripeSubscription struct{ metadata, subscription value }

// subscriptionDetails are in subscription_details and subscription, from
// 2025-03-31 on in parent.subscription_details.
func (e *stripeEvent) subscriptionDetails() (d stripeSubscription) {
	details := e.o.get("subscription_details")
	d.subscription = e.o.get("subscription")
	if parent := e.o.get("parent"); parent.IsObject() {
		var err error
		if details, err = parent.at("/subscription_details"); err != nil {
			e.fail("data.object.parent: %v", err)
			return d
		}
	}
	if !details.IsObject() {
		return d
	}
	o, err := details.members([]string{"metadata", "subscription"})
	if err != nil {
		e.fail("data.object.subscription_details: %v", err)
		return d
	}
	d.metadata = o.get("metadata")
	if id := o.get("subscription"); !id.absent() {
		d.subscription = id
	}
	return d
}

// periodStart is when the period begins that an invoice bills: that of its first
// line for a subscription's item. Lines that settle a change (prorations) and
// other pending items come before it and are of the period that ends. The zero
// time if no line has a period.
//
// The order of lines: https://docs.stripe.com/api/invoices/object#invoice_object-lines
func (e *stripeEvent) periodStart() (start time.Time) {
	for _, v := range e.list("lines") {
		line, err := v.members([]string{"period", "type", "proration", "parent"})
		if err != nil {
			e.fail("data.object.lines: %v", err)
			return time.Time{}
		}
		at, err := line.get("period").at("/start")
		if err != nil {
			e.fail("data.object.lines: %v", err)
			return time.Time{}
		}
		t, ok := unixTime(at)
		if !ok {
			continue
		}
		if e.billsItem(line) {
			return t
		}
		if start.IsZero() {
			start = t
		}
	}
	return start
}

// billsItem reports whether a line bills an item of a subscription for a period.
func (e *stripeEvent) billsItem(line object) bool {
	parent := line.get("parent")
	if !parent.IsObject() { // before 2025-03-31
		return line.get("type").Str == "subscription" && !line.get("proration").isTrue()
	}
	of, err := parent.at("/type")
	if err != nil {
		e.fail("data.object.lines: %v", err)
		return false
	}
	proration, err := parent.at("/subscription_item_details/proration")
	if err != nil {
		e.fail("data.object.lines: %v", err)
		return false
	}
	return of.Str == "subscription_item_details" && !proration.isTrue()
}
