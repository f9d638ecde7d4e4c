package gateway

import (
	"strings"
	"time"
)

// sampleSquare makes an event with the fields that a reader of it needs.
func sampleSquare(r SampleRequest) ([]byte, error) {
	if square.rows.find(r.Type) == nil {
		return nil, unknownSample("square", r.Type, square.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("", 29)
	money := fields{"amount": n, "currency": r.Amount.Currency}
	kind, _, _ := strings.Cut(r.Type, ".")
	at := r.At.Format(time.RFC3339)
	o := fields{"amount_money": money, "created_at": at, "updated_at": at, "location_id": "EXAMPLELOCATION", "version": r.At.Unix()}
	switch kind {
	case "payment":
		o["id"], o["total_money"], o["status"], o["source_type"] = payment, money, "COMPLETED", "CARD"
		o["order_id"] = derive(29, "square order", payment)
		if r.Type == "payment.created" {
			o["status"], o["approved_money"] = "APPROVED", money
		}
		if r.Reference != "" {
			o["reference_id"] = r.Reference
		}
	case "refund":
		o["id"], o["payment_id"], o["status"] = r.refID("", 45, payment), payment, "COMPLETED"
		if r.Type == "refund.created" {
			o["status"] = "PENDING"
		}
	case "dispute":
		o["id"], o["disputed_payment"], o["state"] = r.refID("", 20, payment), fields{"payment_id": payment}, "LOST"
		o["reason"] = "NO_KNOWLEDGE"
		if r.Type == "dispute.created" {
			o["state"] = "EVIDENCE_REQUIRED"
		}
	}
	merchant := "EXAMPLEMERCHANT"
	if len(r.Source.MerchantAccounts) > 0 {
		merchant = r.Source.MerchantAccounts[0]
	}
	id := r.ID
	if id == "" {
		id = strings.ToLower(derive(32, r.Type, payment, r.Ref, r.Amount.Currency, r.At.String(), r.Mode))
	}
	return render(fields{
		"merchant_id": merchant, "type": r.Type, "event_id": id, "created_at": at,
		"data": fields{"type": kind, "id": o["id"], "object": fields{kind: o}},
	}, r.Set, same)
}
