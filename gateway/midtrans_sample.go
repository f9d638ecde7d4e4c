package gateway

import (
	"strings"
	"time"
)

// midtransSample is what a notification and the API's answer have in common.
func midtransSample(r SampleRequest) (id string, body fields, err error) {
	if midtransStateOf(r.Type) == nil {
		return "", nil, unknownSample("midtrans", r.Type, midtransNames())
	}
	r = r.withDefaults()
	amount, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return "", nil, err
	}
	if !strings.Contains(amount, ".") {
		amount += ".00" // Midtrans writes two decimals, whatever the currency
	}
	payment := r.paymentID("", 32)
	id = r.Reference
	if id == "" {
		id = "order-" + derive(12, "order", payment)
	}
	body = fields{
		"transaction_time": r.At.In(time.FixedZone("WIB", 7*60*60)).Format(time.DateTime), "transaction_status": r.Type, "transaction_id": payment,
		"status_code": "200", "payment_type": "credit_card", "order_id": id, "merchant_id": "G000000001", "gross_amount": amount,
		"fraud_status": "accept", "currency": r.Amount.Currency,
	}
	switch r.Type {
	case "pending":
		body["status_code"] = "201"
	case "deny", "failure", "cancel", "expire":
		body["status_code"] = "202"
	case "refund", "partial_refund":
		body["refund_amount"] = amount
		body["refunds"] = []fields{{
			"refund_chargeback_id": 1, "refund_amount": amount, "created_at": body["transaction_time"], "reason": "",
			"refund_key": r.refID("refund-", 8, payment),
		}}
	}
	return id, body, nil
}

// sampleMidtrans makes the notification that leads to the state of the type.
func sampleMidtrans(r SampleRequest) ([]byte, error) {
	_, body, err := midtransSample(r)
	if err != nil {
		return nil, err
	}
	body["status_message"] = "midtrans payment notification"
	return render(body, r.Set, same)
}

// midtransAnswer makes what the API answers about the order.
func midtransAnswer(r SampleRequest) (Object, []byte, error) {
	id, body, err := midtransSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	body["status_message"] = "Success, transaction is found"
	answer, err := render(body, r.Set, same)
	return Object{"order", id}, answer, err
}
