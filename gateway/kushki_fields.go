package gateway

import (
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// kushkiTop are the fields that are read, each in the ways in which Kushki writes it.
var kushkiTop = []string{
	"ticket_number", "ticketNumber", "transaction_reference", "transactionReference", "transaction_id", "transactionId",
	"sale_ticket_number", "saleTicketNumber", "sale_transaction_reference", "saleTransactionReference",
	"transaction_type", "transactionType", "sale_transaction_type", "saleTransactionType",
	"transaction_status", "transactionStatus", "status", "created", "completedAt",
	"currency_code", "currencyCode", "currency", "amount", "metadata",
	"approved_transaction_amount", "approvedTransactionAmount", "totalAmount", "request_amount", "requestAmount",
	"merchant_id", "merchantId", "publicMerchantId", "isSandboxTransaction", "partialVoid", "partial_void", "details",
}

// kushkiEvent is a webhook while it is read.
type kushkiEvent struct {
	draft
	source Source
	top    object
	id     string // of the transaction itself
}

// get is the first of the fields that is there.
func (e *kushkiEvent) get(names ...string) value {
	for _, name := range names {
		if v := e.top.get(name); !v.absent() && v.Raw != `""` {
			return v
		}
	}
	return value{}
}

// name is the first of the fields that is there, as an id; "" if none is.
func (e *kushkiEvent) name(names ...string) string {
	v := e.get(names...)
	if v.absent() {
		return ""
	}
	id, ok := v.name()
	if !ok {
		e.fail("%s is no plain text", names[0])
	}
	return id
}

func parseKushki(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members(kushkiTop)
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	e := &kushkiEvent{source: s, top: top}
	e.ID, e.Type = bodyID(d.Body), unreadableType
	status, ok := e.get("transaction_status", "transactionStatus", "status").kind()
	if !ok {
		// Of a payout to a card all stands in details.
		details := e.optional(e.get("details"), "details", "transactionType")
		if e.Type = details.get("transactionType").Str; e.Type == "PAYOUT" {
			e.Ignored = UnknownType
			return e.done(), nil
		}
		e.Type = unreadableType
		e.fail("there is no transaction_status that can be read")
		return e.done(), nil
	}
	e.Type = status
	if kind, ok := e.get("transaction_type", "transactionType").kind(); ok {
		e.Type = kind + "." + status
	}
	e.At = millis(e.get("created"))
	if at := millis(e.get("completedAt")); !at.IsZero() {
		e.At = at
	}
	t := kushkiTypeOf(s, e.Type)
	if t == nil {
		e.Ignored = UnknownType
		if e.Type == "CHARGEBACK.FAILED" { // it could not begin
			e.Ignored = NoFact
		}
		return e.done(), nil
	}
	e.read(doc)
	if !e.broken() {
		t.facts(e)
	}
	switch sandbox := e.get("isSandboxTransaction"); {
	case e.broken():
	case s.Mode == Live && sandbox.isTrue(), s.Mode != Live && sandbox.isFalse():
		misfit(&e.Event, order.MisfitMode)
	case e.wrongAccount():
		misfit(&e.Event, order.MisfitAccount)
	}
	return e.done(), nil
}

// read reads the ids and the reference.
func (e *kushkiEvent) read(doc value) {
	own := distinct([]string{
		e.name("ticket_number", "ticketNumber"), e.name("transaction_reference", "transactionReference"), e.name("transaction_id", "transactionId"),
	})
	sale := distinct([]string{
		e.name("sale_ticket_number", "saleTicketNumber"), e.name("sale_transaction_reference", "saleTransactionReference"),
	})
	kind, _, _ := strings.Cut(e.Type, ".")
	switch {
	case e.broken():
		return
	case slices.Contains([]string{"VOID", "REFUND", "CAPTURE"}, kind):
		if len(own) == 0 || len(sale) == 0 {
			e.fail("there is no ticket number of the transaction, or none of its sale")
			return
		}
		e.id, e.Payment = own[0], sale
	case kind == "CHARGEBACK" && len(sale) > 0:
		e.id, e.Payment = sale[0], sale
	case len(own) == 0:
		e.fail("there is no ticket number, transaction reference or transaction id")
		return
	default:
		e.id, e.Payment = own[0], own
	}
	e.ID = e.Type + ":" + e.id
	e.Strength = order.StrengthModification
	if len(sale) == 0 && kind != "CHARGEBACK" {
		e.Strength = order.StrengthPayment
	}
	if own := e.get("metadata"); own.IsObject() { // of another kind it is the merchant's, and no order's name
		m := e.members(own, "metadata", "order_id", "orderId", "external_ref")
		for i := len(m.names) - 1; i >= 0; i-- {
			if ref, ok := m.values[i].name(); ok {
				e.Reference = ref
			}
		}
	}
	e.refer(e.source, doc)
}

// currency is the transaction's, beside the amount or in it.
func (e *kushkiEvent) currency() string {
	v := e.get("currency_code", "currencyCode", "currency")
	if v.absent() {
		v = e.optional(e.get("amount"), "amount", "currency").get("currency")
	}
	cur, err := currency(v)
	if err != nil {
		e.fail("currency: %v", err)
	}
	return cur
}

// paid is the amount of a payment: what was approved of it.
func (e *kushkiEvent) paid() order.Amount {
	v := e.get("approved_transaction_amount", "approvedTransactionAmount", "totalAmount")
	if v.absent() {
		return e.parts()
	}
	return e.of(v, "the approved amount")
}

// returned is the amount of a refund. A void that says none is of all there is.
func (e *kushkiEvent) returned() order.Amount {
	requested := e.get("request_amount", "requestAmount")
	if !e.get("amount").absent() {
		if m := e.parts(); m.Minor > 0 || e.broken() {
			return m
		}
	}
	switch {
	case !requested.absent():
		return e.of(requested, "the requested amount")
	case e.get("partialVoid", "partial_void").isTrue():
		e.fail("a part was undone, and there is no amount")
	}
	return order.Amount{Minor: order.All, Currency: e.currency()}
}

func (e *kushkiEvent) of(v value, what string) order.Amount {
	cur := e.currency()
	if e.broken() {
		return order.Amount{}
	}
	n, err := decimal(v, cur)
	if err != nil {
		e.fail("%s: %v", what, err)
	}
	return order.Amount{Minor: n, Currency: cur}
}

// Parts of an amount, in both spellings.
var (
	kushkiParts = []string{"subtotalIva", "subtotal_iva", "subtotalIva0", "subtotal_iva0", "iva", "ice", "extraTaxes", "extra_taxes"}
	kushkiTaxes = []string{"iac", "tasaAeroportuaria", "agenciaDeViajes", "propina", "airportTax", "travelAgency", "tip"}
)

// parts is the sum of the parts that an amount has.
func (e *kushkiEvent) parts() order.Amount {
	o := e.members(e.get("amount"), "amount", kushkiParts...)
	sum := order.Amount{Currency: e.currency()}
	if e.broken() {
		return sum
	}
	add := func(v value, what string) {
		if v.absent() || e.broken() {
			return
		}
		n := e.of(v, what).Minor
		if sum.Minor += n; sum.Minor < n || sum.Minor == order.All {
			e.fail("amount: %v", errTooGreat)
		}
	}
	for _, name := range kushkiParts[:6] {
		add(o.get(name), "amount."+name)
	}
	for _, name := range kushkiParts[6:] {
		taxes := e.optional(o.get(name), "amount."+name, kushkiTaxes...)
		for _, tax := range kushkiTaxes {
			add(taxes.get(tax), "a tax of amount")
		}
	}
	return sum
}

// millis is a time in milliseconds since the Unix epoch, or in seconds; the zero
// time if it is none. As seconds the least of the former is the year 5138.
func millis(v value) time.Time {
	const least = 100_000_000_000
	n, ok := v.integer()
	if !ok || n == 0 || n/1000 > lastUnix {
		return time.Time{}
	}
	if n < least {
		n *= 1000
	}
	return time.UnixMilli(n).UTC()
}
