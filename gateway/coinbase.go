package gateway

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// CoinbaseCommerce maps the events of Coinbase Commerce. Its rules:
//
//   - A payment is a charge, known by its code and id. Each event carries the whole
//     charge, so that the latest, by the time of the event, says what is captured.
//   - Amounts are those of the currency in which the charge is priced, never of the
//     cryptocurrency. What counts are the payments that are confirmed on the chain,
//     each with the value it had; of a charge that is confirmed, at least its price,
//     since Coinbase accepts small deviations. So too little stays too little
//     (underpaid), too much is too much (overpaid), and a payment that came after
//     the charge had expired (delayed) counts with what it was worth.
//   - A charge that was resolved by hand counts no more than what came in.
//   - The merchant's reference is metadata.order_id or metadata.external_ref.
//   - There is no test mode, and there are no refunds: they are made by hand.
var CoinbaseCommerce = &Gateway{
	Name:     "coinbase-commerce",
	Title:    "Coinbase Commerce",
	Docs:     "https://docs.cdp.coinbase.com/commerce/api-architecture/webhooks-overview",
	Scheme:   "coinbase-commerce",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Coinbase Commerce → Settings → Notifications → Webhook shared secret.",
		EventID:  "`event.id`; the outer `id` and `attempt_number` are of the delivery.",
		Retries:  "With growing pauses, at most an hour, for three days.",
		Ordering: "None is promised; `event.created_at` orders them.",
		Notes: "Put the order's reference into `metadata.order_id` of the charge. A payment that is seen but not confirmed (`charge:pending`) is not counted, although Coinbase calls it paid. " +
			"Refunds are made from a wallet by hand and are not told: record them in Paidonce. There is no test mode. How long Coinbase waits for an answer could not be confirmed; 10 s is assumed.",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Cc-Webhook-Signature"},
	Options:     []Option{optionSecrets},
	Parse:       coinbase.parse,
	Types:       coinbase.rows.types,
	Sample:      sampleCoinbase,
	Example: func(seed string) Source {
		return Source{Gateway: "coinbase-commerce", Mode: Test, Secrets: []string{exampleSecret("coinbase-commerce", seed)}}
	},
}

// The types: https://docs.cdp.coinbase.com/commerce/api-architecture/webhooks-fields
// and https://github.com/coinbase/coinbase-commerce-node#webhooks
var coinbase = layout{
	id:  "/event/id",
	typ: "/event/type",
	at:  func(r *reader) time.Time { return r.date("/event/created_at") },
	rows: eventRows{
		{"charge:created", "a charge was made", order.StrengthPayment, coinbaseCharge},
		{"charge:pending", "a payment was seen and is not confirmed yet", order.StrengthPayment, coinbaseCharge},
		{"charge:confirmed", "a charge was paid", order.StrengthPayment, coinbaseCharge},
		{"charge:failed", "a charge was not paid in time, not in full, or was canceled", order.StrengthPayment, coinbaseCharge},
		{"charge:delayed", "a payment came after the charge had expired", order.StrengthPayment, coinbaseCharge},
		{"charge:resolved", "a charge that was paid wrongly was resolved by hand", order.StrengthPayment, coinbaseCharge},
	},
}

const coinbaseAt = "/event/data"

func coinbaseCharge(r *reader) {
	r.Payment = []string{r.text(coinbaseAt + "/code"), r.first(coinbaseAt + "/id")}
	r.Reference = r.first(coinbaseAt+"/metadata/order_id", coinbaseAt+"/metadata/external_ref")
	r.phase(coinbasePhase(r), r.order())

	var price order.Amount // of donations there is none
	if !r.at(coinbaseAt + "/pricing/local").absent() {
		price = r.major(coinbaseAt+"/pricing/local/amount", r.currency(coinbaseAt+"/pricing/local/currency"))
		r.own(price)
	}
	captured := coinbaseReceived(r, price.Currency)
	if r.Type == "charge:confirmed" && captured.Minor < price.Minor {
		captured = price
	}
	if captured.Currency != "" {
		r.add(order.Fact{Kind: order.KindCaptured, Seq: r.order()}, captured)
	}
}

// coinbasePhase goes by the type, and of a charge that failed by where its timeline
// ends.
func coinbasePhase(r *reader) order.Status {
	switch r.Type {
	case "charge:confirmed", "charge:resolved":
		return order.StatusAuthorized
	case "charge:failed":
		timeline := r.at(coinbaseAt + "/timeline").elements(maxCoinbase)
		if len(timeline) == 0 {
			return order.StatusFailed
		}
		switch strings.ToUpper(r.at(fmt.Sprintf("%s/timeline/%d/status", coinbaseAt, len(timeline)-1)).Str) {
		case "EXPIRED":
			return order.StatusExpired
		case "CANCELED":
			return order.StatusCanceled
		}
		return order.StatusFailed
	}
	return order.StatusProcessing
}

// maxCoinbase is how many payments, and steps of a timeline, a charge may have.
const maxCoinbase = 100

// coinbaseReceived adds up the confirmed payments of a charge, in the currency of
// its price, else in that of the first payment.
func coinbaseReceived(r *reader, cur string) order.Amount {
	sum := order.Amount{Currency: cur}
	payments := r.at(coinbaseAt + "/payments").elements(maxCoinbase + 1)
	if len(payments) > maxCoinbase {
		r.fail("%s/payments has more than %d elements", coinbaseAt, maxCoinbase)
		return sum
	}
	for i := range payments {
		at := fmt.Sprintf("%s/payments/%d/", coinbaseAt, i)
		if !strings.EqualFold(r.at(at+"status").Str, "confirmed") {
			continue
		}
		m := r.major(at+"value/local/amount", r.currency(at+"value/local/currency"))
		switch {
		case r.broken():
			return sum
		case sum.Currency == "":
			sum.Currency = m.Currency
		case sum.Currency != m.Currency:
			r.fail("%svalue/local/currency is not that of the charge", at)
		}
		if m.Minor > math.MaxInt64-1-sum.Minor {
			r.fail("%s/payments: %v", coinbaseAt, errTooGreat)
			return sum
		}
		sum.Minor += m.Minor
	}
	return sum
}

// sampleCoinbase makes an event of a charge that one payment paid, as far as the
// type says so.
func sampleCoinbase(r SampleRequest) ([]byte, error) {
	if coinbase.rows.find(r.Type) == nil {
		return nil, unknownSample("coinbase-commerce", r.Type, coinbase.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	code, at := r.paymentID("", 8), r.At.Format(time.RFC3339)
	local := fields{"amount": n, "currency": r.Amount.Currency}
	timeline := []any{fields{"time": at, "status": "NEW"}}
	step := func(status, context string) {
		f := fields{"time": at, "status": status}
		if context != "" {
			f["context"] = context
		}
		timeline = append(timeline, f)
	}
	status := "CONFIRMED"
	switch r.Type {
	case "charge:created":
		status = ""
	case "charge:pending":
		step("PENDING", "")
		status = "PENDING"
	case "charge:confirmed":
		step("COMPLETED", "")
	case "charge:failed":
		step("EXPIRED", "")
		status = ""
	case "charge:delayed":
		step("EXPIRED", "")
		step("UNRESOLVED", "DELAYED")
	case "charge:resolved":
		step("UNRESOLVED", "DELAYED")
		step("RESOLVED", "")
	}
	payments := []any{}
	if status != "" {
		payments = append(payments, fields{
			"network": "ethereum", "transaction_id": "0x" + strings.ToLower(derive(64, "transaction", code)), "status": status,
			"detected_at": at, "value": fields{"local": local, "crypto": fields{"amount": "0.0123", "currency": "ETH"}},
		})
	}
	metadata := fields{}
	if r.Reference != "" {
		metadata["order_id"] = r.Reference
	}
	id := r.ID
	if id == "" {
		id = uuidOf("event", r.Type, code, n, r.Amount.Currency, at)
	}
	return render(fields{
		"id": uuidOf("delivery", id), "scheduled_for": at, "attempt_number": 1,
		"event": fields{
			"id": id, "resource": "event", "type": r.Type, "api_version": "2018-03-22", "created_at": at,
			"data": fields{
				"id": uuidOf("charge", code), "code": code, "resource": "charge", "pricing_type": "fixed_price", "created_at": at,
				"metadata": metadata, "pricing": fields{"local": local}, "payments": payments, "timeline": timeline,
			},
		},
	}, r.Set, same)
}
