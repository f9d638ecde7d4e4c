package gateway

import (
	"strconv"
	"strings"
)

// samplePaystack makes an event. Payments are named by the reference of their
// transaction: where the request names none, that is the merchant's.
func samplePaystack(r SampleRequest) ([]byte, error) {
	if paystack.rows.find(r.Type) == nil {
		return nil, unknownSample("paystack", r.Type, paystack.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := paystackExponents.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment, at := r.paymentID("T", 20), r.At.Format("2006-01-02T15:04:05.000Z")
	metadata := any("")
	if r.Reference != "" {
		metadata = fields{"order_id": r.Reference}
	}
	data := fields{"domain": r.Mode, "currency": r.Amount.Currency}
	kind, what, _ := strings.Cut(r.Type, ".")
	switch {
	case kind == "refund":
		data["transaction_reference"], data["refund_reference"] = payment, r.refID("TRF_", 15, payment)
		data["status"], data["amount"], data["processor"] = what, strconv.FormatInt(n, 10), "instant-transfer"
	case strings.HasPrefix(what, "dispute."):
		data["id"], data["refund_amount"], data["category"] = r.refID("", 7, payment), n, "chargeback"
		data["status"], data["resolution"] = "awaiting-merchant-feedback", nil
		if what == "dispute.resolve" {
			data["status"], data["resolution"] = "resolved", "merchant-accepted"
		}
		data["transaction"] = fields{
			"id": paystackSampleID(payment), "domain": r.Mode, "status": "success", "reference": payment, "amount": n,
			"currency": r.Amount.Currency, "metadata": metadata,
		}
		data["created_at"], data["updated_at"] = at, at
	default:
		data["id"], data["reference"], data["amount"], data["metadata"] = paystackSampleID(payment), payment, n, metadata
		data["status"], data["message"], data["fees"] = "success", "Approved", 0
		switch r.Type {
		case "charge.success":
			data["paid_at"], data["created_at"], data["channel"], data["requested_amount"] = at, at, "card", n
		case "preauthorization.reserve.success":
			data["status"], data["captured_at"], data["captured_amount"] = "authorized", nil, nil
		case "preauthorization.capture.success":
			data["status"], data["captured_at"], data["captured_amount"] = "captured", at, strconv.FormatInt(n, 10)
		case "preauthorization.release.success":
			data["status"], data["captured_at"], data["captured_amount"], data["expired_at"] = "released", nil, nil, at
		}
	}
	return render(fields{"event": r.Type, "data": data}, r.Set, same)
}

// paystackSampleID makes a number of a transaction out of its reference.
func paystackSampleID(payment string) int64 {
	n, err := strconv.ParseInt(derive(8, "transaction", payment), 16, 64)
	if err != nil {
		panic(err) // eight hexadecimal digits are a number
	}
	return n
}
