package gateway

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

// paypalFields are the fields of a resource that are read, of all kinds of it.
var paypalFields = []string{
	"id", "amount", "status", "state", "custom_id", "custom", "invoice_id", "invoice_number", "links",
	"sale_id", "capture_id", "seller_payable_breakdown",
	"dispute_id", "dispute_amount", "dispute_outcome", "disputed_transactions", "create_time", "update_time", "supplementary_data",
}

// paypalEvent is an event while its resource is read. others are the further
// payments that a dispute is about.
type paypalEvent struct {
	draft
	o      object
	others []*draft

	// Of a resource that an API answered: the order it is of, and the authorisation of a capture or the capture of a refund,
	// where the resource itself does not say. "": nobody knows.
	order, from string
}

// first takes the first of some fields that is there: version 2 and version 1
// call one thing by two names.
func (e *paypalEvent) first(fields ...string) value {
	for _, field := range fields {
		if v := e.o.get(field); !v.absent() {
			return v
		}
	}
	return value{}
}

// about sets what the event is about, and takes its reference. Where our mark stands in the place of the merchant's custom_id,
// invoice_id may be another name than the order's.
func (e *paypalEvent) about(strength order.Strength, payment ...string) {
	e.Payment, e.Strength = payment, strength
	for _, fields := range [][]string{{"custom_id", "custom"}, {"invoice_id", "invoice_number"}} {
		text, _ := e.first(fields...).text()
		var marked string
		if e.Reference, marked = paypalUnmark(text); e.Reference != "" || marked != "" {
			return
		}
	}
}

// id is the id of the resource.
func (e *paypalEvent) id() string { return e.text(e.o.get("id"), "resource.id") }

// amount is {"value","currency_code"}, in version 1 {"total","currency"}. Version
// 1 writes what left the account with a minus.
func (e *paypalEvent) amount(v value, where string, outgoing bool) order.Amount {
	o := e.members(v, where, "value", "currency_code", "total", "currency")
	n, cur := o.get("value"), o.get("currency_code")
	if n.absent() {
		n, cur = o.get("total"), o.get("currency")
		if digits, negative := strings.CutPrefix(n.Str, "-"); negative && outgoing {
			n = value{gjson.Result{Type: gjson.String, Str: digits}}
		}
	}
	return e.decimal(n, cur, where)
}

// authorized: CREATED also tells of an authorisation that PayPal still looks at, or
// that was denied.
func (e *paypalEvent) authorized() {
	e.about(order.StrengthPayment, e.known(paypalAuthorizations, e.id())...)
	m := e.amount(e.o.get("amount"), "resource.amount", false)
	e.Own = &m
	switch strings.ToUpper(e.first("status", "state").Str) {
	case "PENDING":
		e.phase(order.StatusProcessing, 0)
		return
	case "DENIED":
		e.phase(order.StatusFailed, 0)
		return
	}
	e.phase(order.StatusAuthorized, 0)
	e.add(order.Fact{Kind: order.KindAuthorized}, m)
}

func (e *paypalEvent) voided() {
	e.about(order.StrengthPayment, e.known(paypalAuthorizations, e.id())...)
	e.phase(order.StatusCanceled, 0)
}

// paypalCapture: one capture by its id; what the type says decides. It is of the payment of the authorisation that it took
// from, so that what is left of that is known.
func paypalCapture(status, phase order.Status) func(*paypalEvent) {
	return func(e *paypalEvent) {
		id := e.id()
		if from := e.authorization(); from != "" {
			e.about(order.StrengthPayment, append([]string{id}, e.known(paypalAuthorizations, from)...)...)
		} else {
			e.about(order.StrengthPayment, e.known(paypalCaptures, id)...)
		}
		e.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: status}, e.amount(e.o.get("amount"), "resource.amount", false))
		if phase != "" {
			e.phase(phase, 0)
		}
	}
}

var paypalRefundStatus = map[string]order.Status{
	"COMPLETED": order.StatusOK, "PENDING": order.StatusPending, "FAILED": order.StatusFailed, "CANCELLED": order.StatusFailed,
}

// paypalRefund: one refund by its id, and the total of all refunds of its
// capture, if it is there. status holds where the refund itself names none.
func paypalRefund(status order.Status, forced bool) func(*paypalEvent) {
	return func(e *paypalEvent) {
		e.about(order.StrengthModification, e.refunded())
		status := status
		if said := e.first("status", "state"); !said.absent() {
			var known bool
			if status, known = paypalRefundStatus[strings.ToUpper(said.Str)]; !known {
				e.fail("resource.status is none that a refund has")
			}
		}
		m := e.amount(e.o.get("amount"), "resource.amount", true)
		e.add(order.Fact{Kind: order.KindRefunded, Ref: e.id(), Status: status, Forced: forced}, m)

		b := e.optional(e.o.get("seller_payable_breakdown"), "resource.seller_payable_breakdown", "total_refunded_amount")
		if total := b.get("total_refunded_amount"); !total.absent() {
			e.add(order.Fact{Kind: order.KindRefunded}, e.amount(total, "resource.seller_payable_breakdown.total_refunded_amount", false))
		}
	}
}

// paypalPayments are the ends of the paths under which a link names a payment.
var paypalPayments = []string{"/v2/payments/captures/", "/v1/payments/capture/", "/v1/payments/sale/"}

// refunded is the payment that a refund is of.
func (e *paypalEvent) refunded() string {
	if v := e.first("capture_id", "sale_id"); !v.absent() {
		return e.text(v, "the id of the payment that resource refunds")
	}
	for _, link := range e.o.get("links").elements(maxListed) {
		l := e.members(link, "resource.links", "rel", "href")
		if rel := l.get("rel").Str; rel != "up" && rel != "sale" && rel != "capture" {
			continue
		}
		for _, path := range paypalPayments {
			_, id, ok := strings.Cut(l.get("href").Str, path)
			if ok && isName(id) && !strings.ContainsAny(id, "/?#%") {
				return id
			}
		}
	}
	if e.from == "" {
		e.fail("resource names no payment that it refunds")
	}
	return e.from
}

// paypalOutcomes are the codes of outcomes. While there is none, and with one that
// PayPal may add one day, nothing is decided.
// https://developer.paypal.com/api/customer-disputes/v1/definitions/dispute_outcome
var paypalOutcomes = map[string]order.Status{
	"RESOLVED_BUYER_FAVOUR": order.StatusLost, "ACCEPTED": order.StatusLost,
	"RESOLVED_SELLER_FAVOUR": order.StatusWon, "RESOLVED_WITH_PAYOUT": order.StatusWon, "CANCELED_BY_BUYER": order.StatusWon,
	"DENIED": order.StatusWon, "NONE": order.StatusWon,
}

// dispute: by its outcome, in the order of its update times. One dispute may be
// about several payments: each is an event, and what of the amount falls to it is
// what PayPal says the payment was, or else everything. Of a lost one about one
// payment, what went back to the buyer counts, who may have agreed to a part.
func (e *paypalEvent) dispute() {
	amount := e.amount(e.o.get("dispute_amount"), "resource.dispute_amount", false)
	all := e.list(e.o.get("disputed_transactions"), "resource.disputed_transactions", maxRefunds)
	status := order.StatusOpen
	if e.Type == "CUSTOMER.DISPUTE.RESOLVED" || e.o.get("status").Str == "RESOLVED" {
		o := e.optional(e.o.get("dispute_outcome"), "resource.dispute_outcome", "outcome_code", "amount_refunded")
		if decided, known := paypalOutcomes[o.get("outcome_code").Str]; known {
			status = decided
		}
		if refunded := o.get("amount_refunded"); status == order.StatusLost && len(all) == 1 && !refunded.absent() {
			amount = e.amount(refunded, "resource.dispute_outcome.amount_refunded", false)
		}
	}
	at := rfc3339(e.first("update_time", "create_time"))
	if at.IsZero() {
		at = e.At
	}
	f := order.Fact{
		Kind: order.KindDisputed, Ref: e.text(e.o.get("dispute_id"), "resource.dispute_id"), Status: status, Via: true,
		Seq: max(0, at.UnixMilli()),
	}
	if len(all) == 0 {
		e.fail("resource names no transaction that is disputed")
	}
	template := e.Event
	for i, v := range all {
		d := &e.draft
		if i > 0 {
			d = &draft{template}
			e.others = append(e.others, d)
		}
		share := amount
		if len(all) > 1 {
			d.ID += ":" + d.paypalTransaction(v)
			share = d.paypalShare(v, amount)
		} else {
			d.paypalTransaction(v)
		}
		d.add(f, share)
	}
}

// paypalTransaction reads what a transaction of a dispute names.
func (d *draft) paypalTransaction(v value) string {
	t := d.members(v, "resource.disputed_transactions", "seller_transaction_id", "custom", "invoice_number")
	id := d.text(t.get("seller_transaction_id"), "resource.disputed_transactions.seller_transaction_id")
	d.Payment, d.Strength = []string{id}, order.StrengthModification
	if d.Reference, _ = t.get("custom").text(); d.Reference == "" {
		d.Reference, _ = t.get("invoice_number").text()
	}
	return id
}

// paypalShare is how much of a dispute of several payments is about this one.
func (d *draft) paypalShare(v value, whole order.Amount) order.Amount {
	t := d.members(v, "resource.disputed_transactions", "gross_amount")
	if t.get("gross_amount").absent() {
		whole.Minor = order.All
		return whole
	}
	o := d.members(t.get("gross_amount"), "resource.disputed_transactions.gross_amount", "value", "currency_code")
	return d.decimal(o.get("value"), o.get("currency_code"), "resource.disputed_transactions.gross_amount")
}
