package gateway

import (
	"strings"

	"github.com/paidonce/paidonce/order"
)

// mercadoSnapshot is what an answer says of one payment, before it is facts.
type mercadoSnapshot struct {
	draft
	state    *mercadoState
	detail   string
	whole    string // status_detail of the order that it belongs to
	amount   order.Amount
	refunded order.Amount
	version  int64
}

// mercadoPayment reads what /v1/payments answered.
func mercadoPayment(s Source, doc value, a Answer) ([]order.Event, error) {
	m := mercadoSnapshot{}
	o := m.members(doc, "the payment", "id", "status", "status_detail", "live_mode", "date_last_updated", "external_reference",
		"transaction_amount", "transaction_amount_refunded", "currency_id", "refunds")
	id, _ := o.get("id").name()
	m.Payment = []string{id}
	m.At = rfc3339(o.get("date_last_updated"))
	m.version = updated(m.At, a)
	m.Reference, _ = o.get("external_reference").name()
	m.Strength = order.StrengthPayment
	m.refer(s, doc)
	m.is("payment.", mercadoPayments, o.get("status"), o.get("status_detail"))
	if m.unknown() {
		return m.done(), nil
	}
	cur := o.get("currency_id")
	m.amount = m.decimal(o.get("transaction_amount"), cur, "transaction_amount")
	m.refunded = m.refundedTotal(o.get("transaction_amount_refunded"), cur, "transaction_amount_refunded")
	m.all(m.Payment[0])
	for i, r := range m.list(o.get("refunds"), "refunds", maxRefunds) {
		f := m.members(r, "a refund", "id", "status", "amount")
		m.refund(f, cur, i)
	}
	m.partOfNothing(true)
	m.flagMode(s, o.get("live_mode"))
	return m.done(), nil
}

// mercadoOrder reads what /v1/orders answered: one event for each payment. The
// order's id may come in other letters than it was announced in, since URLs of
// notifications have it in small ones; its payments have ids of their own.
func mercadoOrder(s Source, asked Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	whole := draft{}
	o := whole.members(doc, "the order", "id", "status", "status_detail", "external_reference", "currency", "country_code", "last_updated_date", "transactions")
	if id, _ := o.get("id").name(); !strings.EqualFold(id, asked.ID) {
		return nil, parseError("shape", "the answer is not about the order that was asked about")
	}
	whole.At = rfc3339(o.get("last_updated_date"))
	whole.Reference, _ = o.get("external_reference").name()
	whole.Strength = order.StrengthPayment
	whole.refer(s, doc)
	whole.Type = "order." + o.get("status").Str
	t := whole.optional(o.get("transactions"), "transactions", "payments", "refunds")
	payments, refunds := whole.list(t.get("payments"), "transactions.payments", maxPayments), whole.list(t.get("refunds"), "transactions.refunds", maxRefunds)
	if whole.broken() || len(payments) == 0 {
		return whole.done(), nil
	}
	cur := mercadoCurrency(o)
	var events []order.Event
	for _, p := range payments {
		m := mercadoSnapshot{draft: whole, version: updated(whole.At, a), whole: o.get("status_detail").Str}
		f := m.members(p, "a payment", "id", "status", "status_detail", "amount", "refunded_amount")
		id := m.text(f.get("id"), "the id of a payment")
		m.is("order.", mercadoOrders, f.get("status"), f.get("status_detail"))
		if !m.broken() {
			m.Payment = []string{id}
			if of := o.get("id").Str; mercadoKinds["order"].MatchString(of) {
				m.Payment = append(m.Payment, mercadoOrderID(of, id))
			}
		}
		if !m.unknown() {
			m.amount = m.decimal(f.get("amount"), cur, "amount")
			m.refunded = m.refundedTotal(f.get("refunded_amount"), cur, "refunded_amount")
			m.all(id)
			m.refundsOf(id, refunds, cur, len(payments) == 1)
			m.partOfNothing(len(payments) == 1)
		}
		if s.Mode == Live && strings.HasPrefix(strings.ToUpper(o.get("id").Str), mercadoTest) {
			misfit(&m.Event, order.MisfitMode)
		}
		events = append(events, m.done()...)
	}
	return events, nil
}

// mercadoTest begins the ids of test orders.
const mercadoTest = "ORDTST"

// Bounds on the lists of one answer.
const (
	maxPayments = 50
	maxRefunds  = 200
)

// is sets the state and the type.
func (m *mercadoSnapshot) is(prefix string, states []mercadoState, status, detail value) {
	text, ok := status.kind()
	if !ok {
		m.fail("status is missing or no plain text")
		m.Type = unreadableType
		return
	}
	m.detail = detail.Str
	if prefix == "order." && text == "cancelled" {
		text = "canceled"
	}
	m.Type = prefix + text
	if m.state = mercadoStateOf(states, text); m.state == nil {
		m.Ignored = UnknownType
	}
}

// unknown reports whether the status says nothing that is understood.
func (m *mercadoSnapshot) unknown() bool { return m.broken() || m.state == nil }

// refundedTotal is the total that was refunded. A fully refunded payment without
// one is refunded in full. Some orders stay processed when they are refunded, and
// only their status_detail tells.
// https://www.mercadopago.com.br/developers/en/docs/checkout-pro-orders/payment-management/status/order-status
func (m *mercadoSnapshot) refundedTotal(v, cur value, where string) order.Amount {
	told := order.Amount{Currency: m.amount.Currency}
	if !v.absent() {
		told = m.decimal(v, cur, where)
	}
	full := m.state.status == "refunded" || m.state.captured && (m.detail == "refunded" || m.whole == "refunded")
	if full && told.Minor == 0 {
		return m.amount
	}
	return told
}

// partOfNothing breaks a payment that is refunded in part without a word of how
// much. Of an order with several, its own status_detail does not tell which.
func (m *mercadoSnapshot) partOfNothing(only bool) {
	if m.detail != partlyRefunded && !(only && m.whole == partlyRefunded) {
		return
	}
	for _, f := range m.Facts {
		if f.Kind == order.KindRefunded && f.Amount > 0 {
			return
		}
	}
	m.fail("the payment is refunded in part, and there is no amount")
}

const partlyRefunded = "partially_refunded"

// all sets every register of the payment.
func (m *mercadoSnapshot) all(id string) {
	phase, captured := m.state.phase, order.Amount{Currency: m.amount.Currency}
	switch {
	case m.state.captured:
		captured = m.amount
	case m.detail == "waiting_capture": // of orders
		phase = order.StatusAuthorized
	case m.detail == "expired" && phase == order.StatusCanceled:
		phase = order.StatusExpired
	}
	m.phase(phase, m.version)
	if phase == order.StatusAuthorized && !m.state.captured {
		m.add(order.Fact{Kind: order.KindAuthorized}, m.amount)
	}
	m.add(order.Fact{Kind: order.KindCaptured, Seq: m.version}, captured)
	m.add(order.Fact{Kind: order.KindRefunded, Seq: m.version}, m.refunded)
	m.dispute(id)
	m.Own = &m.amount
}

// dispute: there is one at most, and what is at stake is all there is.
func (m *mercadoSnapshot) dispute(id string) {
	f := order.Fact{Kind: order.KindDisputed, Ref: id, Status: order.StatusNone, Seq: m.version}
	switch {
	case m.state.status == "in_mediation", m.state.disputed && m.detail == "in_process":
		f.Status = order.StatusOpen
	case m.detail == "reimbursed": // the money came back
		f.Status = order.StatusWon
	case m.state.disputed:
		f.Status = order.StatusLost
	}
	if f.Status != order.StatusNone {
		f.Amount, f.Currency = order.All, m.amount.Currency
	}
	m.Facts = append(m.Facts, f)
}

// mercadoRefunds are the statuses of refunds: of payments, then of orders.
var mercadoRefunds = map[string]order.Status{
	"": order.StatusOK, "approved": order.StatusOK, "in_process": order.StatusPending, "pending": order.StatusPending,
	"authorized": order.StatusPending, "rejected": order.StatusFailed, "cancelled": order.StatusFailed,
	"processed": order.StatusOK, "processing": order.StatusPending, "failed": order.StatusFailed,
}

// refund is the i-th refund of the payment, by its id.
func (m *mercadoSnapshot) refund(o object, cur value, i int) {
	id, ok := o.get("id").name()
	if !ok {
		m.fail("the id of refund %d is missing or no plain text", i)
	}
	text := o.get("status")
	status, known := mercadoRefunds[text.Str]
	if !known || !text.absent() && text.Str == "" {
		m.fail("the status of refund %d is none that a refund has", i)
	}
	m.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: status, Seq: m.version}, m.decimal(o.get("amount"), cur, "the amount of a refund"))
}

// refundsOf are those refunds of an order that belong to the payment. One that
// does not say so belongs to the only payment there is.
func (m *mercadoSnapshot) refundsOf(id string, refunds []value, cur value, only bool) {
	for i, r := range refunds {
		o := m.members(r, "a refund", "id", "status", "amount", "transaction_id")
		of := o.get("transaction_id")
		switch {
		case of.absent() && !only:
			m.fail("refund %d does not say of which payment", i)
		case of.absent(), of.Str == id:
			m.refund(o, cur, i)
		}
	}
}

// mercadoCurrency is the order's currency. Older answers name only the country;
// there Mercado Pago has one currency each, but in Uruguay.
func mercadoCurrency(o object) value {
	if cur := o.get("currency"); !cur.absent() {
		return cur
	}
	return textValue(mercadoCountries[strings.ToUpper(o.get("country_code").Str)])
}

var mercadoCountries = map[string]string{
	"ARG": "ARS", "AR": "ARS", "BRA": "BRL", "BR": "BRL", "CHL": "CLP", "CL": "CLP", "COL": "COP", "CO": "COP",
	"MEX": "MXN", "MX": "MXN", "PER": "PEN", "PE": "PEN",
}
