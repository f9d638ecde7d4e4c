package gateway

import (
	"bytes"
	"encoding/base64"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// sampleBraintree makes a form without its signature. What a request sets is set
// by path from inside the XML: "subject.transaction.amount". A notification has no
// id, so that one that is asked for is put where nobody reads it.
func sampleBraintree(r SampleRequest) ([]byte, error) {
	if braintree.rows.find(r.Type) == nil {
		return nil, unknownSample("braintree", r.Type, braintree.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	s := braintreeSample{SampleRequest: r, amount: n, payment: r.paymentID("", 8)}
	name, subject := s.subject()
	doc := fields{"timestamp": r.At.Format(time.RFC3339), "kind": r.Type, "subject": fields{name: subject}}
	if r.ID != "" {
		doc["sample-id"] = r.ID
	}
	text, err := render(doc, r.Set, same)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	writeXML(&out, "notification", gjson.ParseBytes(text))
	return formOf("bt_payload", base64.StdEncoding.EncodeToString(out.Bytes())+"\n"), nil
}

type braintreeSample struct {
	SampleRequest
	amount, payment string
}

// subject is the object of the sample's kind, and what it is called.
func (s *braintreeSample) subject() (string, fields) {
	switch {
	case strings.HasPrefix(s.Type, "dispute_"):
		return "dispute", s.dispute()
	case s.Type == "refund_failed":
		t := s.transaction("processor_declined")
		t["id"], t["type"], t["refunded-transaction-id"] = s.refID("", 8, s.payment), "credit", s.payment
		return "transaction", t
	case strings.HasPrefix(s.Type, "subscription_"):
		status := "submitted_for_settlement"
		if s.Type == "subscription_charged_unsuccessfully" {
			status = "processor_declined"
		}
		return "subscription", fields{"id": derive(6, "subscription", s.payment), "transactions": []any{s.transaction(status)}}
	case s.Type == "local_payment_completed":
		return "local-payment", fields{"payment-id": s.local(), "transaction": s.transaction("settling")}
	case s.Type == "local_payment_funded":
		return "local-payment-funded", fields{"payment-id": s.local(), "transaction": s.transaction("settled")}
	case s.Type == "local_payment_expired", s.Type == "local_payment_reversed":
		return strings.ReplaceAll(s.Type, "_", "-"), fields{"payment-id": s.localOr()}
	case s.Type == "transaction_settlement_declined":
		return "transaction", s.transaction("settlement_declined")
	}
	return "transaction", s.transaction("settled")
}

// local is the other name of a local payment; where a notification has no other,
// it is the payment that was asked for.
func (s *braintreeSample) local() string { return "PAY-" + derive(20, "local payment", s.payment) }

func (s *braintreeSample) localOr() string {
	if s.Payment != "" {
		return s.Payment
	}
	return s.local()
}

func (s *braintreeSample) transaction(status string) fields {
	t := fields{
		"id": s.payment, "status": status, "type": "sale", "currency-iso-code": s.Amount.Currency, "amount": s.amount,
		"merchant-account-id": s.account(), "order-id": nil, "created-at": s.At.Format(time.RFC3339), "payment-instrument-type": "us_bank_account",
	}
	if s.Reference != "" {
		t["order-id"] = s.Reference
	}
	return t
}

func (s *braintreeSample) account() string {
	if len(s.Source.MerchantAccounts) > 0 {
		return s.Source.MerchantAccounts[0]
	}
	return "example_account"
}

func (s *braintreeSample) dispute() fields {
	status := strings.TrimPrefix(s.Type, "dispute_")
	if status == "opened" {
		status = "open"
	}
	t := fields{"id": s.payment, "amount": s.amount}
	if s.Reference != "" {
		t["order-id"] = s.Reference
	}
	return fields{
		"id": s.refID("", 8, s.payment), "amount": s.amount, "amount-disputed": s.amount, "amount-won": "0.00", "currency-iso-code": s.Amount.Currency,
		"kind": "chargeback", "status": status, "reason": "fraud", "merchant-account-id": s.account(), "transaction": t,
		"received-date": s.At.Format(time.DateOnly),
	}
}
