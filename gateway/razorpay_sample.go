package gateway

import (
	"slices"
	"strings"
)

// sampleRazorpay makes an event with the entities that it really carries.
func sampleRazorpay(r SampleRequest) ([]byte, error) {
	if razorpay.rows.find(r.Type) == nil {
		return nil, unknownSample("razorpay", r.Type, razorpay.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("pay_", 14)
	notes := any([]any{})
	if r.Reference != "" {
		notes = fields{"order_id": r.Reference}
	}
	entities := map[string]fields{}
	if !slices.Contains([]string{"payment_link.expired", "payment_link.cancelled"}, r.Type) {
		entities["payment"] = razorpaySamplePayment(r, payment, n, notes)
	}
	subject, _, _ := strings.Cut(r.Type, ".")
	if strings.HasPrefix(r.Type, "payment.dispute.") {
		subject = "dispute"
	}
	common := fields{"entity": subject, "amount": n, "currency": r.Amount.Currency, "created_at": r.At.Unix()}
	switch subject {
	case "order":
		common["id"], common["amount_paid"], common["amount_due"] = "order_"+derive(14, "order", payment), n, 0
		common["status"], common["receipt"], common["notes"] = "paid", r.Reference, notes
	case "payment_link":
		common["id"], common["reference_id"], common["notes"] = "plink_"+derive(14, "link", payment), r.Reference, notes
		common["status"], common["amount_paid"] = strings.TrimPrefix(r.Type, "payment_link."), n
		if entities["payment"] == nil {
			common["id"], common["amount_paid"] = r.paymentID("plink_", 14), 0
		}
	case "refund":
		common["id"], common["payment_id"], common["notes"], common["receipt"] = r.refID("rfnd_", 14, payment), payment, []any{}, nil
		common["status"] = map[string]string{"refund.created": "pending", "refund.failed": "failed"}[r.Type]
		if common["status"] == "" {
			common["status"] = "processed"
		}
	case "dispute":
		common["id"], common["payment_id"], common["phase"] = r.refID("disp_", 14, payment), payment, "chargeback"
		common["status"], common["reason_code"], common["amount_deducted"] = strings.TrimPrefix(r.Type, "payment.dispute."), "chargeback", 0
		switch r.Type {
		case "payment.dispute.created", "payment.dispute.action_required":
			common["status"] = "open"
		case "payment.dispute.lost":
			common["amount_deducted"] = n
		}
	}
	if subject != "payment" {
		entities[subject] = common
	}
	payload, contains := fields{}, []string{}
	for _, name := range []string{"dispute", "refund", "payment_link", "order", "payment"} {
		if entities[name] != nil {
			payload[name], contains = fields{"entity": entities[name]}, append(contains, name)
		}
	}
	account := "acc_" + derive(14, "account")
	if len(r.Source.MerchantAccounts) > 0 {
		account = r.Source.MerchantAccounts[0]
	}
	return render(fields{
		"entity": "event", "account_id": account, "event": r.Type, "contains": contains, "payload": payload, "created_at": r.At.Unix(),
	}, r.Set, same)
}

func razorpaySamplePayment(r SampleRequest, payment string, n int64, notes any) fields {
	status, captured := "captured", true
	switch r.Type {
	case "payment.authorized":
		status, captured = "authorized", false
	case "payment.failed":
		status, captured = "failed", false
	}
	refunded := int64(0)
	if strings.HasPrefix(r.Type, "refund.") && r.Type != "refund.failed" {
		refunded = n
	}
	return fields{
		"id": payment, "entity": "payment", "amount": n, "currency": r.Amount.Currency, "status": status, "captured": captured,
		"order_id": "order_" + derive(14, "order", payment), "method": "card", "international": false,
		"amount_refunded": refunded, "refund_status": nil, "notes": notes, "fee": nil, "tax": nil, "created_at": r.At.Unix(),
	}
}
