package gateway

import (
	"strings"
)

// stripeSampleVersion is the API version that samples claim to be of.
const stripeSampleVersion = "2025-03-31.basil"

type fields = map[string]any

// sampleStripe makes an event in the shape of API version 2025-03-31, with the
// fields that a reader of it needs and the usual company of others.
func sampleStripe(r SampleRequest) ([]byte, error) {
	t, ok := stripeTypeOf[r.Type]
	if !ok {
		return nil, unknownSample("stripe", r.Type, stripeNames())
	}
	r = r.withDefaults()
	s, err := newStripeSample(r)
	if err != nil {
		return nil, err
	}
	object := s.object(t)
	object["object"] = t.kind.object
	event := fields{
		"id": r.ID, "object": "event", "api_version": stripeSampleVersion, "created": r.At.Unix(),
		"livemode": r.Mode == Live, "pending_webhooks": 1, "request": fields{"id": nil, "idempotency_key": nil},
		"type": r.Type, "data": fields{"object": object},
	}
	if r.Source.StripeAccount != "" {
		event["account"] = r.Source.StripeAccount
	}
	if r.ID == "" {
		event["id"] = "evt_" + derive(24, r.Type, s.payment, s.ref, r.Amount.Currency, r.At.String(), r.Mode)
	}
	return render(event, r.Set, func(path string) string { return path })
}

// stripeSample is what the objects of one payment have in common.
type stripeSample struct {
	SampleRequest
	payment, charge, session, invoiceID, ref string
	n                                        int64 // the amount as Stripe counts
}

func newStripeSample(r SampleRequest) (*stripeSample, error) {
	n, err := stripeExponents.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	s := &stripeSample{SampleRequest: r, n: n, payment: r.Payment, ref: r.Ref}
	if s.payment == "" {
		s.payment = "pi_" + derive(24, "payment", r.Reference, r.Mode)
	}
	s.charge = "ch_" + derive(24, "charge", s.payment)
	s.session = "cs_" + r.Mode + "_" + derive(24, "session", s.payment)
	s.invoiceID = "in_" + derive(24, "invoice", s.payment)
	return s, nil
}

// refOr is the id that the type is about.
func (s *stripeSample) refOr(prefix string) string {
	if s.Ref != "" {
		return s.Ref
	}
	return prefix + derive(24, prefix, s.payment)
}

func (s *stripeSample) object(t *stripeType) fields {
	var o fields
	switch t.kind {
	case &stripeIntent:
		o = s.intent()
	case &stripeSession:
		o = s.checkout()
	case &stripeRefund:
		o = s.refund()
	case &stripeDispute:
		o = s.dispute()
	case &stripeInvoice:
		o = s.invoice()
	case &stripeInvoicePayment:
		return s.invoicePayment()
	default:
		o = s.chargeObject()
	}
	o["currency"] = strings.ToLower(s.Amount.Currency)
	o["created"] = s.At.Unix()
	o["livemode"] = s.Mode == Live
	metadata := fields{}
	if s.Reference != "" {
		metadata["order_id"] = s.Reference
	}
	o["metadata"] = metadata
	return o
}

func (s *stripeSample) intent() fields {
	o := fields{
		"id": s.payment, "amount": s.n, "amount_received": 0, "amount_capturable": 0, "latest_charge": nil,
		"capture_method": "automatic", "payment_method_types": []string{"card"}, "description": nil,
	}
	switch s.Type {
	case "payment_intent.succeeded":
		o["status"], o["amount_received"], o["latest_charge"] = "succeeded", s.n, s.charge
	case "payment_intent.amount_capturable_updated":
		o["status"], o["amount_capturable"], o["latest_charge"] = "requires_capture", s.n, s.charge
		o["capture_method"] = "manual"
	case "payment_intent.processing":
		o["status"] = "processing"
	case "payment_intent.canceled":
		o["status"], o["cancellation_reason"] = "canceled", "requested_by_customer"
	default:
		o["status"], o["latest_charge"] = "requires_payment_method", s.charge
		o["last_payment_error"] = fields{"code": "card_declined", "type": "card_error"}
	}
	return o
}

func (s *stripeSample) chargeObject() fields {
	o := fields{
		"id": s.charge, "amount": s.n, "amount_captured": s.n, "amount_refunded": 0, "captured": true, "paid": true,
		"refunded": false, "status": "succeeded", "payment_intent": s.payment, "payment_method_details": fields{"type": "card"},
	}
	if strings.HasPrefix(s.payment, "ch_") { // a charge without a PaymentIntent
		o["id"], o["payment_intent"] = s.payment, nil
	}
	switch s.Type {
	case "charge.refunded":
		o["amount_refunded"], o["refunded"] = s.n, true
	case "charge.failed":
		o["status"], o["failure_code"] = "failed", "card_declined"
		o["amount_captured"], o["captured"], o["paid"] = 0, false, false
	case "charge.pending":
		o["status"], o["paid"] = "pending", false
	case "charge.expired":
		o["amount_captured"], o["captured"] = 0, false
	}
	return o
}

func (s *stripeSample) checkout() fields {
	o := fields{
		"id": s.session, "amount_total": s.n, "amount_subtotal": s.n, "client_reference_id": nil, "mode": "payment",
		"payment_intent": s.payment, "payment_status": "paid", "status": "complete", "invoice": nil,
	}
	if s.Reference != "" {
		o["client_reference_id"] = s.Reference
	}
	switch s.Type {
	case "checkout.session.expired":
		o["payment_status"], o["status"] = "unpaid", "expired"
	case "checkout.session.async_payment_failed":
		o["payment_status"] = "unpaid"
	}
	return o
}

func (s *stripeSample) refund() fields {
	o := fields{
		"id": s.refOr("re_"), "amount": s.n, "payment_intent": s.payment, "charge": s.charge, "reason": nil, "status": "succeeded",
	}
	if s.Type == "refund.failed" {
		o["status"], o["failure_reason"] = "failed", "expired_or_canceled_card"
	}
	return o
}

func (s *stripeSample) dispute() fields {
	status := map[string]string{
		"charge.dispute.created": "needs_response", "charge.dispute.updated": "under_review",
		"charge.dispute.funds_withdrawn": "needs_response", "charge.dispute.funds_reinstated": "won",
		"charge.dispute.closed": "lost",
	}[s.Type]
	return fields{
		"id": s.refOr("dp_"), "amount": s.n, "payment_intent": s.payment, "charge": s.charge, "reason": "fraudulent",
		"status": status, "balance_transactions": []any{},
	}
}

func (s *stripeSample) invoice() fields {
	o := fields{
		"id": s.invoiceID, "amount_due": s.n, "amount_paid": s.n, "total": s.n, "billing_reason": "manual", "status": "paid",
		"payments": fields{"object": "list", "data": []any{fields{
			"object": "invoice_payment", "payment": fields{"type": "payment_intent", "payment_intent": s.payment},
		}}},
	}
	if s.Type == "invoice.payment_failed" {
		o["amount_paid"], o["status"] = 0, "open"
	}
	return o
}

// invoicePayment has no metadata and so no reference of its own.
func (s *stripeSample) invoicePayment() fields {
	return fields{
		"id": "inpay_" + derive(24, "invoice payment", s.payment), "amount_paid": s.n, "amount_requested": s.n,
		"currency": strings.ToLower(s.Amount.Currency), "created": s.At.Unix(), "livemode": s.Mode == Live, "status": "paid",
		"invoice": s.invoiceID, "payment": fields{"type": "payment_intent", "payment_intent": s.payment},
	}
}
