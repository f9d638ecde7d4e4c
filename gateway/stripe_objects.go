package gateway

import (
	"fmt"
	"slices"
	"time"

	"github.com/paidonce/paidonce/order"
)

// The kinds of objects, and which of their fields are read.
var (
	stripeIntent = stripeKind{
		object: "payment_intent", strength: order.StrengthPayment, own: "amount",
		fields: []string{
			"id", "object", "amount", "amount_received", "amount_capturable", "currency", "metadata",
			"latest_charge", "charges", "invoice", "status", "last_payment_error",
		},
		ids: func(e *stripeEvent) []string {
			ids := append([]string{e.id(), e.idOf("latest_charge")}, e.listed("charges")...)
			return append(ids, e.idOf("invoice"))
		},
	}
	stripeCharge = stripeKind{
		object: "charge", strength: order.StrengthPayment, own: "amount",
		fields: stripeChargeFields, ids: stripeChargeIDs,
	}
	// A refunded charge is still a charge, but the event is about the refund.
	stripeRefunded = stripeKind{
		object: "charge", strength: order.StrengthModification,
		fields: stripeChargeFields, ids: stripeChargeIDs,
	}
	stripeSession = stripeKind{
		object: "checkout.session", strength: order.StrengthPayment, own: "amount_total",
		fields: []string{
			"id", "object", "amount_total", "currency", "metadata", "client_reference_id", "payment_intent",
			"payment_status", "invoice", "status", "subscription", "created",
		},
		ids: func(e *stripeEvent) []string {
			return []string{e.idOf("payment_intent"), e.idOf("invoice"), e.id()}
		},
	}
	stripeRefund = stripeKind{
		object: "refund", strength: order.StrengthModification,
		fields: []string{"id", "object", "amount", "currency", "metadata", "payment_intent", "charge", "status"},
		ids: func(e *stripeEvent) []string {
			return []string{e.idOf("payment_intent"), e.idOf("charge")}
		},
	}
	stripeDispute = stripeKind{
		object: "dispute", strength: order.StrengthModification,
		fields: []string{"id", "object", "amount", "currency", "metadata", "payment_intent", "charge", "status"},
		ids: func(e *stripeEvent) []string {
			ids := []string{e.idOf("payment_intent"), e.idOf("charge")}
			if ids[0] == "" && ids[1] == "" {
				e.fail("data.object names neither payment_intent nor charge")
			}
			return ids
		},
	}
	stripeInvoice = stripeKind{
		object: "invoice", strength: order.StrengthPayment, own: "amount_due",
		fields: []string{
			"id", "object", "amount_paid", "amount_due", "currency", "metadata", "payment_intent", "charge", "payments",
			"billing_reason", "subscription", "subscription_details", "parent", "lines",
		},
		ids: func(e *stripeEvent) []string {
			ids := append([]string{e.idOf("payment_intent"), e.idOf("charge")}, e.payments()...)
			return append(ids, e.id())
		},
	}
	stripeInvoicePayment = stripeKind{
		object: "invoice_payment", strength: order.StrengthPayment,
		fields: []string{"id", "object", "amount_paid", "currency", "metadata", "payment", "invoice", "status"},
		ids: func(e *stripeEvent) []string {
			return append(e.paymentOf(e.o.get("payment")), e.idOf("invoice"))
		},
	}
)

var stripeChargeFields = []string{
	"id", "object", "amount", "amount_captured", "amount_refunded", "captured", "currency", "metadata",
	"payment_intent", "invoice", "status",
}

func stripeChargeIDs(e *stripeEvent) []string {
	return []string{e.idOf("payment_intent"), e.id(), e.idOf("invoice")}
}

// stripeEvent is an event while its object is read. The first fault breaks it,
// and what is read after that no longer matters.
type stripeEvent struct {
	*order.Event
	kind    *stripeKind
	o       object // data.object
	created value
	version string
}

func (e *stripeEvent) broken() bool { return e.Broken != "" }

func (e *stripeEvent) fail(format string, args ...any) {
	if !e.broken() {
		e.Broken = fmt.Sprintf(format, args...)
	}
}

// read reads the fields of data.object.
func (e *stripeEvent) read(data value) {
	e.o = object{names: e.kind.fields, values: make([]value, len(e.kind.fields))}
	d, err := data.members([]string{"object"})
	if err != nil {
		e.fail("data %v", err)
		return
	}
	e.readObject(d.get("object"))
}

// readObject reads the fields of the object itself.
func (e *stripeEvent) readObject(v value) {
	e.o = object{names: e.kind.fields, values: make([]value, len(e.kind.fields))}
	o, err := v.members(e.kind.fields)
	if err != nil {
		e.fail("data.object %v", err)
		return
	}
	e.o = o
	if is := o.get("object"); !is.absent() && is.Str != e.kind.object {
		e.fail("data.object is not a %s", e.kind.object)
	}
}

// id is the id of the object, which must be there.
func (e *stripeEvent) id() string {
	id, ok := e.o.get("id").text()
	if !ok {
		e.fail("data.object.id is missing or no plain text")
	}
	return id
}

// idOf is the id of the object that a field names, by its id or expanded; ""
// if it names none.
func (e *stripeEvent) idOf(field string) string {
	return e.idIn(e.o.get(field), field)
}

func (e *stripeEvent) idIn(v value, field string) string {
	if v.absent() {
		return ""
	}
	if v.IsObject() {
		o, err := v.members([]string{"id"})
		if err != nil {
			e.fail("data.object.%s: %v", field, err)
			return ""
		}
		v = o.get("id")
	}
	id, ok := v.text()
	if !ok {
		e.fail("data.object.%s is no plain text", field)
	}
	return id
}

// maxListed is how many ids of a list are taken: the newest come first.
const maxListed = 10

// listed returns the ids of the objects in a list ({"data":[…]}).
func (e *stripeEvent) listed(field string) []string {
	var ids []string
	for _, v := range e.list(field) {
		ids = append(ids, e.idIn(v, field))
	}
	return ids
}

func (e *stripeEvent) list(field string) []value {
	v := e.o.get(field)
	if v.absent() {
		return nil
	}
	o, err := v.members([]string{"data"})
	if err != nil {
		e.fail("data.object.%s: %v", field, err)
		return nil
	}
	return o.get("data").elements(maxListed)
}

// payments returns the ids of what paid an invoice: API versions from
// 2025-03-31 on list its payments.
func (e *stripeEvent) payments() []string {
	var ids []string
	for _, v := range e.list("payments") {
		o, err := v.members([]string{"payment"})
		if err != nil {
			e.fail("data.object.payments: %v", err)
			return nil
		}
		ids = append(ids, e.paymentOf(o.get("payment"))...)
	}
	return ids
}

// paymentOf reads {"type":"payment_intent","payment_intent":"pi_…"}.
func (e *stripeEvent) paymentOf(v value) []string {
	if v.absent() {
		return nil
	}
	o, err := v.members([]string{"payment_intent", "charge"})
	if err != nil {
		e.fail("data.object.payment: %v", err)
		return nil
	}
	return []string{e.idIn(o.get("payment_intent"), "payment"), e.idIn(o.get("charge"), "payment")}
}

// reference looks for the merchant's reference.
func (e *stripeEvent) reference() string {
	own := e.metadata(e.o.get("metadata"))
	if own[0] != "" {
		return own[0]
	}
	switch e.kind {
	case &stripeSession:
		if ref, ok := e.o.get("client_reference_id").text(); ok {
			return ref
		}
	case &stripeInvoice:
		if own[1] == "" && e.o.get("billing_reason").Str == "subscription_create" {
			return e.subscription()
		}
	}
	return own[1]
}

// metadata returns the values of order_id and external_ref.
func (e *stripeEvent) metadata(v value) (found [2]string) {
	if !v.IsObject() {
		return found
	}
	names := []string{"order_id", "external_ref"}
	o, err := v.members(names)
	if err != nil {
		e.fail("metadata: %v", err)
		return found
	}
	for i, name := range names {
		found[i], _ = o.get(name).text()
	}
	return found
}

// subscription is the reference in the metadata of an invoice's subscription.
func (e *stripeEvent) subscription() string {
	found := e.metadata(e.subscriptionDetails().metadata)
	if found[0] != "" {
		return found[0]
	}
	return found[1]
}

// money reads an amount in the object's currency; it must be there.
func (e *stripeEvent) money(field string) order.Amount {
	cur, err := currency(e.o.get("currency"))
	if err != nil {
		e.fail("data.object.currency: %v", err)
		return order.Amount{}
	}
	n, err := stripeExponents.amount(e.o.get(field), cur)
	if err != nil {
		e.fail("data.object.%s: %v", field, err)
	}
	return order.Amount{Minor: n, Currency: cur}
}

// ownAmount reads the payment's own amount. That of a charge is the payment's
// only where there is no PaymentIntent: one intent may be charged in parts.
func (e *stripeEvent) ownAmount() {
	if e.kind.own == "" || e.o.get(e.kind.own).absent() {
		return
	}
	if e.kind == &stripeCharge && !e.o.get("payment_intent").absent() {
		return
	}
	own := e.money(e.kind.own)
	e.Own = &own
}

// seq is the order of events about one payment: Stripe's event time.
func (e *stripeEvent) seq() int64 {
	t, ok := unixTime(e.created)
	if !ok {
		e.fail("created is missing or no time")
		return 0
	}
	return t.Unix()
}

func (e *stripeEvent) add(f order.Fact, m order.Amount) {
	f.Amount, f.Currency = m.Minor, m.Currency
	e.Facts = append(e.Facts, f)
}

// lastUnix is the end of the year 9999, the last time that RFC 3339 can write.
const lastUnix = 253402300799

// unixTime reads seconds since the Unix epoch.
func unixTime(v value) (time.Time, bool) {
	n, ok := v.integer()
	if !ok || n == 0 || n > lastUnix {
		return time.Time{}, false
	}
	return time.Unix(n, 0).UTC(), true
}

// rfc3339 reads a time in RFC 3339; the zero time if it is none.
func rfc3339(v value) time.Time {
	t, err := time.Parse(time.RFC3339, v.Str)
	if err != nil || t.Year() < 1970 {
		return time.Time{}
	}
	return t.UTC()
}

// distinct returns the ids that are there, each once, in their order.
func distinct(ids []string) []string {
	var out []string
	for _, id := range ids {
		if id != "" && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}
