package gateway

import (
	"slices"

	"github.com/paidonce/paidonce/order"
)

// stripePhase says that the payment as a whole is in that phase. Sessions and invoices
// are no payments themselves: a session that never had a PaymentIntent says
// nothing about one.
func stripePhase(status order.Status) func(*stripeEvent) {
	return func(e *stripeEvent) {
		if e.kind == &stripeSession && e.o.get("payment_intent").absent() {
			return
		}
		e.Facts = append(e.Facts, order.Fact{Kind: order.KindPhase, Status: status, Seq: e.seq()})
	}
}

// authorized: amount_capturable of a PaymentIntent. The event also comes when
// nothing is left to capture; that says nothing.
func (e *stripeEvent) authorized() {
	m := e.money("amount_capturable")
	if m.Minor == 0 {
		return
	}
	e.Facts = append(e.Facts, order.Fact{Kind: order.KindPhase, Status: order.StatusAuthorized, Seq: e.seq()})
	e.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// received: amount_received of a PaymentIntent, the running total.
func (e *stripeEvent) received() {
	e.add(order.Fact{Kind: order.KindCaptured}, e.money("amount_received"))
}

// session: a checkout that is paid. One that is complete and unpaid (a delayed
// method, manual capture) tells which order its PaymentIntent belongs to.
func (e *stripeEvent) session() {
	if e.o.get("payment_status").Str == "paid" {
		e.add(order.Fact{Kind: order.KindCaptured}, e.money("amount_total"))
	}
}

// charge: the running totals of a charge. An authorised one has none, and
// neither has a bank debit that is under way, though its captured is true.
// Before 2014 charges had no captured, and until 2020 no amount_captured: they
// were captured in full.
func (e *stripeEvent) charge() {
	switch captured := e.o.get("captured"); {
	case captured.isFalse():
		return
	case !captured.absent() && !captured.isTrue():
		e.fail("data.object.captured is no boolean")
		return
	}
	if status := e.o.get("status").Str; status == "pending" || status == "failed" {
		return
	}
	field := "amount_captured"
	if e.o.get(field).absent() {
		field = "amount"
	}
	captured := e.money(field)
	e.add(order.Fact{Kind: order.KindCaptured}, captured)

	if e.kind == &stripeRefunded || !e.o.get("amount_refunded").absent() {
		if refunded := e.money("amount_refunded"); refunded.Minor > 0 {
			e.add(order.Fact{Kind: order.KindRefunded}, refunded)
		}
	}
	if field == "amount_captured" && e.releases() {
		if whole := e.money("amount"); whole.Minor > captured.Minor {
			e.add(order.Fact{Kind: order.KindReleased},
				order.Amount{Minor: whole.Minor - captured.Minor, Currency: whole.Currency})
		}
	}
}

// releases reports whether amount_refunded holds the uncaptured rest too. An
// unknown version counts as a new one: then less money is taken to be there.
func (e *stripeEvent) releases() bool {
	const date = len(stripeNoRelease)
	return len(e.version) >= date && e.version[4] == '-' && e.version[7] == '-' && e.version[:date] < stripeNoRelease
}

// denied: a charge that never happened.
func (e *stripeEvent) denied() {
	e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id(), Status: order.StatusDenied}, e.money("amount"))
}

// stripeRefundStatus: a pending refund is ok, since Stripe's own totals count
// it. The oldest refunds have no status, and were made at once.
var stripeRefundStatus = map[string]order.Status{
	"": order.StatusOK, "pending": order.StatusOK, "succeeded": order.StatusOK,
	"requires_action": order.StatusPending,
	"failed":          order.StatusFailed, "canceled": order.StatusFailed,
}

// refund: one refund, by its id. One that names no payment (of a customer's
// cash balance) is none of ours.
func (e *stripeEvent) refund() {
	if len(e.Payment) == 0 {
		return
	}
	text := e.o.get("status")
	status, ok := stripeRefundStatus[text.Str]
	if !ok || !text.absent() && text.Str == "" {
		e.fail("data.object.status is none that a refund has")
		return
	}
	e.add(order.Fact{Kind: order.KindRefunded, Ref: e.id(), Status: status}, e.money("amount"))
}

// dispute: by the object's status. What is neither won nor lost is open, also
// what Stripe may add one day. charge_refunded is of old versions: the merchant
// gave the money back, which the charge's totals tell.
func (e *stripeEvent) dispute() {
	text, ok := e.o.get("status").text()
	if !ok {
		e.fail("data.object.status is missing or no plain text")
		return
	}
	status := order.StatusOpen
	switch {
	case text == "lost":
		status = order.StatusLost
	case slices.Contains([]string{"won", "warning_closed", "prevented", "charge_refunded"}, text):
		status = order.StatusWon
	}
	e.add(order.Fact{Kind: order.KindDisputed, Ref: e.id(), Status: status, Seq: e.seq()}, e.money("amount"))
}

// invoice: what was paid of an invoice, a running total.
func (e *stripeEvent) invoice() {
	e.add(order.Fact{Kind: order.KindCaptured}, e.money("amount_paid"))
}
