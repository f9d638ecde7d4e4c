package gateway

import (
	"strings"
	"time"
)

// shopifySample is what a delivery and the API's answer have in common.
type shopifySample struct {
	SampleRequest
	object       Object
	status       string
	payment, ref string
	amount       string
}

func newShopifySample(r SampleRequest) (*shopifySample, error) {
	kind, status, _ := strings.Cut(r.Type, ".")
	known := false
	for _, t := range shopifyTypes {
		known = known || t.Name == r.Type
	}
	if !known {
		return nil, unknownSample("shopify", r.Type, shopifyTypes)
	}
	r = r.withDefaults()
	amount, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	s := &shopifySample{SampleRequest: r, status: status, payment: r.Payment, ref: r.Ref, amount: amount}
	if s.payment == "" {
		s.payment = digits(13, "order", r.Reference, r.Mode)
	}
	if s.ref == "" {
		s.ref = digits(12, kind, s.payment)
	}
	s.object = Object{kind, s.payment}
	if kind == "dispute" {
		s.object.ID = s.ref
	}
	return s, nil
}

// sampleShopify makes the delivery of orders/updated or disputes/update.
func sampleShopify(r SampleRequest) ([]byte, error) {
	s, err := newShopifySample(r)
	if err != nil {
		return nil, err
	}
	o, err := s.body()
	if err != nil {
		return nil, err
	}
	return render(o, r.Set, shopifyPath(s.object.Kind))
}

// shopifyAnswer makes what the API answers: the same object, wrapped.
func shopifyAnswer(r SampleRequest) (Object, []byte, error) {
	s, err := newShopifySample(r)
	if err != nil {
		return Object{}, nil, err
	}
	o, err := s.body()
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(fields{s.object.Kind: o}, r.Set, same)
	return s.object, body, err
}

func (s *shopifySample) body() (fields, error) {
	if s.object.Kind == "dispute" {
		return fields{
			"id": idValue(s.ref), "order_id": idValue(s.payment), "type": "chargeback", "amount": s.amount, "currency": s.Amount.Currency,
			"reason": "fraudulent", "network_reason_code": "4837", "status": s.status, "evidence_due_by": nil,
			"initiated_at": s.At.Format(time.RFC3339), "finalized_on": nil,
		}, nil
	}
	total, outstanding := s.amount, "0.00"
	var err error
	switch s.status {
	case "partially_paid": // half of it
		outstanding = s.amount
		total, err = major(2*s.Amount.Minor, s.Amount.Currency)
	case "pending", "authorized", "voided", "expired":
		outstanding = s.amount
	}
	o := fields{
		"id": idValue(s.payment), "name": "#1001", "order_number": 1001, "financial_status": s.status, "currency": s.Amount.Currency,
		"presentment_currency": s.Amount.Currency, "total_price": total, "total_outstanding": outstanding, "test": s.Mode != Live,
		"created_at": s.At.Format(time.RFC3339), "updated_at": s.At.Format(time.RFC3339), "cancelled_at": nil, "note_attributes": []any{},
		"refunds": []any{},
	}
	if s.Reference != "" {
		o["note_attributes"] = []any{fields{"name": "order_id", "value": s.Reference}}
	}
	if strings.HasSuffix(s.status, "refunded") {
		o["refunds"] = []any{fields{
			"id": idValue(digits(12, "refund", s.ref)), "order_id": idValue(s.payment), "refund_line_items": []any{},
			"transactions": []any{fields{
				"id": idValue(s.ref), "order_id": idValue(s.payment), "kind": "refund", "status": "success", "amount": s.amount,
				"currency": s.Amount.Currency,
			}},
		}}
	}
	return o, err
}
