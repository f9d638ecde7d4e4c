package gateway

import (
	"strings"
)

// mercadoTime is how Mercado Pago writes times.
const mercadoTime = "2006-01-02T15:04:05.000Z07:00"

// sampleMercado makes the notification that leads to the state of the type.
func sampleMercado(r SampleRequest) ([]byte, error) {
	m, err := newMercadoSample(r)
	if err != nil {
		return nil, err
	}
	id := m.ID
	if id == "" {
		id = digits(12, "notification", m.object.ID, r.Type, m.At.String())
	}
	return render(fields{
		"id": idValue(id), "live_mode": m.Mode == Live, "type": m.object.Kind, "date_created": m.At.Format(mercadoTime),
		"user_id": 44444001, "application_id": "1230001", "api_version": "v1", "action": m.object.Kind + ".updated",
		"data": fields{"id": m.object.ID},
	}, r.Set, same)
}

// mercadoSample is what a notification and the API's answer have in common.
type mercadoSample struct {
	SampleRequest
	object         Object
	status, detail string
	payment        string // of an order
}

func newMercadoSample(r SampleRequest) (*mercadoSample, error) {
	kind, status, _ := strings.Cut(r.Type, ".")
	states := mercadoPayments
	if kind == "order" {
		states = mercadoOrders
	}
	if mercadoStateOf(states, status) == nil || kind != "order" && kind != "payment" {
		return nil, unknownSample("mercadopago", r.Type, mercadoTypes)
	}
	r = r.withDefaults()
	m := &mercadoSample{SampleRequest: r, status: status}
	m.detail = map[string]string{
		"approved": "accredited", "authorized": "pending_capture", "in_process": "pending_contingency", "pending": "pending_waiting_payment",
		"rejected": "cc_rejected_other_reason", "cancelled": "by_collector", "in_mediation": "pending", "charged_back": "settled",
		"processed": "accredited", "action_required": "waiting_capture",
	}[status]
	if m.detail == "" {
		m.detail = status
	}
	m.payment = r.Payment
	if m.payment == "" {
		m.payment = digits(11, "payment", r.Reference, r.Mode)
	}
	m.object = Object{kind, m.payment}
	if kind == "order" {
		m.object.ID = "ORD01" + derive(24, "order", m.payment)
		if m.Mode != Live {
			m.object.ID = mercadoTest + m.object.ID[3:]
		}
	}
	return m, nil
}

// mercadoAnswer makes what the API answers about the payment or order.
func mercadoAnswer(r SampleRequest) (Object, []byte, error) {
	m, err := newMercadoSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	amount, err := major(m.Amount.Minor, m.Amount.Currency)
	if err != nil {
		return Object{}, nil, err
	}
	refunds, refunded := []fields{}, "0"
	if m.status == "refunded" {
		refunded = amount
		id := m.Ref
		if id == "" {
			id = digits(10, "refund", m.payment)
		}
		refunds = append(refunds, fields{"id": idValue(id), "payment_id": idValue(m.payment), "amount": number(amount), "status": "approved"})
	}
	var answer fields
	if m.object.Kind == "order" {
		answer = m.order(amount, refunds, refunded)
	} else {
		answer = fields{
			"id": idValue(m.object.ID), "status": m.status, "status_detail": m.detail, "live_mode": m.Mode == Live,
			"date_created": m.At.Format(mercadoTime), "date_last_updated": m.At.Format(mercadoTime), "currency_id": m.Amount.Currency,
			"transaction_amount": number(amount), "transaction_amount_refunded": number(refunded), "refunds": refunds,
			"external_reference": nil, "payment_type_id": "credit_card", "captured": mercadoStateOf(mercadoPayments, m.status).captured,
		}
	}
	if m.Reference != "" {
		answer["external_reference"] = m.Reference
	}
	body, err := render(answer, r.Set, same)
	return m.object, body, err
}

func (m *mercadoSample) order(amount string, refunds []fields, refunded string) fields {
	for _, f := range refunds {
		id, status := f["id"], "processed"
		clear(f)
		f["id"], f["transaction_id"], f["amount"], f["status"] = asText(id), m.payment, amount, status
	}
	return fields{
		"id": m.object.ID, "type": "online", "status": m.status, "status_detail": m.detail, "currency": m.Amount.Currency,
		"total_amount": amount, "last_updated_date": m.At.Format(mercadoTime), "processing_mode": "automatic",
		"transactions": fields{
			"payments": []fields{{
				"id": m.payment, "status": m.status, "status_detail": m.detail, "amount": amount, "refunded_amount": refunded,
				"payment_method": fields{"id": "master", "type": "credit_card"},
			}},
			"refunds": refunds,
		},
	}
}

// asText is an id of [idValue] as text.
func asText(id any) string {
	if n, ok := id.(number); ok {
		return string(n)
	}
	text, _ := id.(string)
	return text
}
