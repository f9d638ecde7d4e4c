package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// mollieReader is a payment while it is read.
type mollieReader struct {
	draft
	version int64
}

// mollieAnswered reads a payment, or the payments of a payment link.
func mollieAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	if o.Kind == "payment-link" {
		return mollieLink(s, o, a)
	}
	doc, err := readAnswer(o, a.Body)
	if err != nil {
		return nil, err
	}
	return molliePayment(s, doc, doc, a, true), nil
}

// mollieLink reads the payments that were made with a link: their list has
// neither refunds nor chargebacks embedded, so it says nothing of them one by one.
func mollieLink(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	self, err := doc.at("/_links/self/href")
	if err != nil || !strings.Contains(self.Str, "/payment-links/"+o.ID+"/") {
		return nil, parseError("shape", "the answer is not about the %s that was asked about", o.Kind)
	}
	list, err := doc.at("/_embedded/payments")
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	var events []order.Event
	payments := list.elements(maxPayments + 1)
	if len(payments) > maxPayments {
		return nil, parseError("shape", "the payment link has more than %d payments", maxPayments)
	}
	for _, v := range payments {
		events = append(events, molliePayment(s, doc, v, a, false)...)
	}
	if len(events) == 0 {
		events = append(events, order.Event{Type: "payment-link.open", Ignored: NoFact})
	}
	return events, nil
}

// molliePayment reads a payment; whole says that its refunds and chargebacks are
// embedded if there are any.
func molliePayment(s Source, doc, v value, a Answer, whole bool) []order.Event {
	m := mollieReader{version: updated(time.Time{}, a)}
	f := m.members(v, "the payment", "id", "mode", "status", "amount", "amountCaptured", "amountRefunded", "amountChargedBack", "metadata", "_embedded")
	m.Type, m.Strength = unreadableType, order.StrengthPayment
	id := m.text(f.get("id"), "id")
	if id != "" {
		m.Payment = []string{id}
	}
	m.Reference = m.reference(f.get("metadata"))
	if whole {
		m.refer(s, doc)
	}
	status, ok := f.get("status").kind()
	if !ok {
		m.fail("status is missing or no plain text")
		return m.done()
	}
	m.Type = "payment." + status
	for _, state := range mollieStates {
		if state.status == status {
			m.snapshot(f, state, whole)
			m.mode(s, f.get("mode"))
			return m.done()
		}
	}
	m.Ignored = UnknownType
	return m.done()
}

// snapshot sets every register of the payment that the answer tells.
func (m *mollieReader) snapshot(f object, state mollieState, whole bool) {
	amount := m.amount(f.get("amount"), "amount")
	none := order.Amount{Currency: amount.Currency}
	captured, refunded := none, none
	if v := f.get("amountCaptured"); !v.absent() {
		captured = m.amount(v, "amountCaptured")
	}
	if state.status == "paid" && captured.Minor == 0 {
		captured = amount // methods that have no capture of their own
	}
	if v := f.get("amountRefunded"); !v.absent() {
		refunded = m.amount(v, "amountRefunded")
	}
	m.phase(state.phase, m.version)
	if state.status == "authorized" {
		m.add(order.Fact{Kind: order.KindAuthorized}, amount)
	}
	m.add(order.Fact{Kind: order.KindCaptured, Seq: m.version}, captured)
	m.add(order.Fact{Kind: order.KindRefunded, Seq: m.version}, refunded)
	m.Own = &amount
	if !whole {
		return
	}
	parts := m.optional(f.get("_embedded"), "_embedded", "refunds", "chargebacks")
	for i, v := range m.list(parts.get("refunds"), "_embedded.refunds", maxRefunds) {
		m.refund(v, i)
	}
	chargebacks := m.list(parts.get("chargebacks"), "_embedded.chargebacks", maxRefunds)
	for _, v := range chargebacks {
		m.chargeback(v)
	}
	if charged := f.get("amountChargedBack"); len(chargebacks) == 0 && !charged.absent() {
		if back := m.amount(charged, "amountChargedBack"); back.Minor > 0 {
			m.fail("the answer embeds no chargeback, and tells an amount of some")
		}
	}
}

// amount reads {"currency":"EUR","value":"50.00"}.
func (m *mollieReader) amount(v value, where string) order.Amount {
	o := m.members(v, where, "currency", "value")
	return m.decimal(o.get("value"), o.get("currency"), where)
}

// mollieRefunds: https://docs.mollie.com/reference/get-refund (status)
var mollieRefunds = map[string]order.Status{
	"queued": order.StatusPending, "pending": order.StatusPending, "processing": order.StatusPending, "refunded": order.StatusOK,
	"failed": order.StatusFailed, "canceled": order.StatusFailed,
}

func (m *mollieReader) refund(v value, i int) {
	o := m.members(v, "a refund", "id", "status", "amount")
	id := m.text(o.get("id"), "the id of a refund")
	status, known := mollieRefunds[o.get("status").Str]
	if !known {
		m.fail("the status of refund %d is none that a refund has", i)
	}
	m.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: status, Seq: m.version}, m.amount(o.get("amount"), "the amount of a refund"))
}

func (m *mollieReader) chargeback(v value) {
	o := m.members(v, "a chargeback", "id", "amount", "reversedAt")
	id := m.text(o.get("id"), "the id of a chargeback")
	status := order.StatusLost
	if !o.get("reversedAt").absent() {
		status = order.StatusWon
	}
	m.add(order.Fact{Kind: order.KindDisputed, Ref: id, Status: status, Seq: m.version}, m.amount(o.get("amount"), "the amount of a chargeback"))
}

// reference is order_id in the metadata, or the metadata itself.
func (m *mollieReader) reference(metadata value) string {
	if !metadata.IsObject() {
		text, _ := metadata.text()
		return text
	}
	o := m.members(metadata, "metadata", "order_id")
	ref, _ := o.get("order_id").name()
	return ref
}

func (m *mollieReader) mode(s Source, v value) {
	if text := v.Str; text == Live && s.Mode != Live || text == Test && s.Mode == Live {
		misfit(&m.Event, order.MisfitMode)
	}
}

// mollieSample is what a delivery and the API's answer have in common.
type mollieSample struct {
	SampleRequest
	payment, status, value string
}

func newMollieSample(name string, r SampleRequest) (*mollieSample, error) {
	status, ok := strings.CutPrefix(r.Type, "payment.")
	known := false
	for _, state := range mollieStates {
		known = known || ok && state.status == status
	}
	if !known {
		return nil, unknownSample(name, r.Type, mollieTypes)
	}
	r = r.withDefaults()
	value, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	return &mollieSample{r, r.paymentID("tr_", 22), status, value}, nil
}

// mollieAnswer makes what the API answers about the payment.
func mollieAnswer(r SampleRequest) (Object, []byte, error) {
	m, err := newMollieSample(r.Source.Gateway, r)
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(m.object(), r.Set, same)
	return Object{"payment", m.payment}, body, err
}

func (m *mollieSample) object() fields {
	o := fields{
		"resource": "payment", "id": m.payment, "mode": m.Mode, "createdAt": m.At.Format(time.RFC3339), "status": m.status,
		"amount": fields{"value": m.value, "currency": m.Amount.Currency}, "description": "An order", "method": "ideal", "metadata": nil,
		"profileId": "pfl_EXAMPLE001", "sequenceType": "oneoff",
		"_embedded": fields{"refunds": []any{}, "chargebacks": []any{}},
	}
	if m.Reference != "" {
		o["metadata"] = fields{"order_id": m.Reference}
	}
	switch m.status {
	case "paid":
		o["paidAt"] = m.At.Format(time.RFC3339)
		o["amountRefunded"] = fields{"value": "0.00", "currency": m.Amount.Currency}
	case "canceled", "expired", "failed":
		o[m.status+"At"] = m.At.Format(time.RFC3339)
	}
	return o
}
