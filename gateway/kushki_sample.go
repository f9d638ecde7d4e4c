package gateway

import "strings"

// sampleKushki makes a webhook: of a card in snake case, of all else in camel case.
func sampleKushki(r SampleRequest) ([]byte, error) {
	if kushkiTypeOf(Source{Unconfirmed: true}, r.Type) == nil {
		return nil, unknownSample("kushki", r.Type, kushkiNames(r.Source))
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.Payment
	if payment == "" {
		payment = digits(18, "payment", r.Reference, r.Mode)
	}
	parts := fields{"subtotalIva": number("0"), "subtotalIva0": amount, "iva": number("0"), "ice": number("0")}
	metadata := fields{}
	if r.Reference != "" {
		metadata["order_id"] = r.Reference
	}
	created := r.At.UnixMilli()
	kind, status, typed := strings.Cut(r.Type, ".")
	var body fields
	switch {
	case !typed:
		body = fields{
			"ticketNumber": payment, "token": strings.ToLower(derive(32, "token", payment)), "totalAmount": amount, "amount": parts,
			"currency": r.Amount.Currency, "created": created, "completedAt": created, "status": kind, "country": "Colombia",
			"merchantId": "20000000000000000001", "merchantName": "Test Shop", "metadata": metadata,
		}
	case kind == "SALE" || kind == "PREAUTHORIZATION":
		body = fields{
			"ticket_number": payment, "transaction_reference": strings.ToLower(derive(32, "reference", payment)), "transaction_id": derive(18, "id", payment),
			"transaction_type": kind, "transaction_status": status, "amount": parts, "approved_transaction_amount": amount, "request_amount": amount,
			"currency_code": r.Amount.Currency, "created": created, "merchant_id": "20000000000000000001", "metadata": metadata,
			"payment_brand": "VISA", "last_four_digits": "4242",
		}
	default:
		own := r.refID("", 18, payment)
		body = fields{
			"ticketNumber": own, "transactionReference": strings.ToLower(derive(32, "reference", own)), "saleTicketNumber": payment,
			"saleTransactionReference": strings.ToLower(derive(32, "reference", payment)), "saleTransactionType": "SALE",
			"transactionType": kind, "transactionStatus": status, "amount": parts, "requestAmount": amount, "currency": r.Amount.Currency,
			"created": created, "merchantId": "20000000000000000001", "isSandboxTransaction": r.Mode == Test, "metadata": metadata,
		}
		if kind == "CAPTURE" {
			body["saleTransactionType"], body["approvedTransactionAmount"] = "PREAUTHORIZATION", amount
		}
	}
	return render(body, r.Set, same)
}
