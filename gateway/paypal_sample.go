package gateway

import (
	"strings"
	"time"
)

// samplePayPal makes an event of version 2 (of sales: version 1) with the fields
// that a reader of it needs.
func samplePayPal(r SampleRequest) ([]byte, error) {
	s, err := newPayPalSample(r)
	if err != nil {
		return nil, err
	}
	r = s.SampleRequest
	kind, resource := s.resource()
	event := fields{
		"id": r.ID, "event_version": "1.0", "create_time": s.time(), "resource_type": kind, "resource_version": "2.0",
		"event_type": r.Type, "summary": "A sample of " + r.Type, "resource": resource,
	}
	if r.ID == "" {
		event["id"] = "WH-" + derive(17, r.Type, s.payment, s.ref) + "-" + derive(17, r.Amount.Currency, r.At.String(), r.Mode)
	}
	return render(event, r.Set, func(path string) string { return path })
}

// paypalSample is what the objects of one payment have in common.
type paypalSample struct {
	SampleRequest
	amount       fields
	payment, ref string
}

func newPayPalSample(r SampleRequest) (*paypalSample, error) {
	if paypalTypeOf[r.Type] == nil {
		return nil, unknownSample("paypal", r.Type, paypalNames())
	}
	r = r.withDefaults()
	n, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	s := &paypalSample{SampleRequest: r, amount: fields{"currency_code": r.Amount.Currency, "value": n}, payment: r.Payment, ref: r.Ref}
	if s.payment == "" {
		s.payment = derive(17, "paypal payment", r.Reference, r.Mode)
		if strings.HasPrefix(r.Type, "PAYMENT.AUTHORIZATION.") {
			s.payment = derive(17, "paypal authorization", r.Reference, r.Mode)
		}
	}
	if s.ref == "" {
		s.ref = derive(17, "paypal ref", s.payment)
	}
	return s, nil
}

// order is the checkout order of the payment.
func (s *paypalSample) order() string { return derive(17, "paypal order", s.payment, s.Mode) }

func (s *paypalSample) time() string { return s.At.Format(time.RFC3339) }

func (s *paypalSample) host() string {
	if s.Mode == Live {
		return "https://api.paypal.com"
	}
	return "https://api.sandbox.paypal.com"
}

func (s *paypalSample) link(rel, path string) fields {
	return fields{"href": s.host() + path, "rel": rel, "method": "GET"}
}

// resource is the object of the sample's type, and what kind it is.
func (s *paypalSample) resource() (string, fields) {
	kind := strings.Split(s.Type, ".")
	switch {
	case kind[0] == "CUSTOMER":
		return "dispute", s.dispute()
	case kind[1] == "SALE":
		return s.sale(kind[2])
	case kind[1] == "REFUND", kind[2] == "REFUNDED", kind[2] == "REVERSED":
		return paypalRefunded, s.refund(kind[2])
	}
	name := paypalCaptured
	if kind[1] == "AUTHORIZATION" {
		name = paypalAuthorization
	}
	return name, s.payable(kind[2], name)
}

// payable is an authorisation or a capture of an order.
func (s *paypalSample) payable(status, kind string) fields {
	return s.refer(fields{
		"id": s.payment, "status": status, "amount": s.amount, "create_time": s.time(), "update_time": s.time(),
		"supplementary_data": fields{"related_ids": fields{"order_id": s.order()}},
		"links":              []any{s.link("self", paypalPaths[kind]+s.payment), s.link("up", paypalPaths[paypalOrder]+s.order())},
	})
}

func (s *paypalSample) refer(o fields) fields {
	if s.Reference != "" {
		o["custom_id"] = s.Reference
	}
	return o
}

func (s *paypalSample) refund(word string) fields {
	status := map[string]string{"PENDING": "PENDING", "FAILED": "FAILED"}[word]
	breakdown := fields{"gross_amount": s.amount, "total_refunded_amount": s.amount}
	if status == "" {
		status = "COMPLETED"
	} else {
		breakdown = fields{"gross_amount": s.amount}
	}
	return s.refer(fields{
		"id": s.ref, "status": status, "amount": s.amount, "seller_payable_breakdown": breakdown, "create_time": s.time(), "update_time": s.time(),
		"links": []any{s.link("self", "/v2/payments/refunds/"+s.ref), s.link("up", "/v2/payments/captures/"+s.payment)},
	})
}

// sale is of version 1: other names, and amounts with a minus where money left.
func (s *paypalSample) sale(word string) (string, fields) {
	kind, total := "sale", s.amount["value"]
	o := fields{"id": s.payment, "state": strings.ToLower(word), "create_time": s.time(), "update_time": s.time()}
	if word == "REFUNDED" || word == "REVERSED" {
		kind = "refund"
		o["id"], o["sale_id"], o["state"] = s.ref, s.payment, "completed"
		total = "-" + s.amount["value"].(string) //nolint:forcetypeassert // made above
	}
	o["amount"] = fields{"total": total, "currency": s.Amount.Currency}
	if s.Reference != "" {
		o["custom"] = s.Reference
	}
	return kind, o
}

func (s *paypalSample) dispute() fields {
	transaction := fields{"seller_transaction_id": s.payment, "gross_amount": s.amount, "seller": fields{"merchant_id": "EXAMPLEMERCHANT"}}
	if s.Reference != "" {
		transaction["custom"] = s.Reference
	}
	o := fields{
		"dispute_id": s.ref, "create_time": s.time(), "update_time": s.time(), "status": "OPEN", "reason": "MERCHANDISE_OR_SERVICE_NOT_RECEIVED",
		"dispute_amount": s.amount, "dispute_life_cycle_stage": "CHARGEBACK", "disputed_transactions": []any{transaction},
	}
	if s.Type == "CUSTOMER.DISPUTE.UPDATED" {
		o["status"] = "UNDER_REVIEW"
	}
	if s.Type == "CUSTOMER.DISPUTE.RESOLVED" {
		o["status"] = "RESOLVED"
		o["dispute_outcome"] = fields{"outcome_code": "RESOLVED_BUYER_FAVOUR", "amount_refunded": s.amount}
	}
	return o
}
