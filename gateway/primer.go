package gateway

import (
	"net/http"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Primer maps the webhooks of Primer. Its rules:
//
//   - A payment is known by its id; the merchant's reference is its orderId. Each
//     event carries the whole payment: phase, captured and refunded are set by the
//     latest, in the order of payment.dateUpdated.
//   - What is captured is processor.amountCaptured of a payment that is settled,
//     fully or partially; what is refunded is processor.amountRefunded.
//   - Events have no id: one is made of type, payment, status and dateUpdated. date
//     and signedAt are of the delivery.
//   - DISPUTE.OPENED tells neither amount nor time: all of the payment is at stake
//     until a DISPUTE.STATUS says more. Its currency is then XXX, "none" in ISO
//     4217, which flags the order.
//   - Times have no zone and are taken for UTC; they are only compared with those of
//     the same payment.
//   - No byte tells the sandbox from live.
var Primer = &Gateway{
	Name:     "primer",
	Title:    "Primer",
	Docs:     "https://primer.io/docs/api-reference/get-started/configure-webhooks",
	Scheme:   "primer",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Primer → Developers → Webhooks → Signing secret. For 24 hours after a rotation deliveries are also signed with the old one, in X-Signature-Secondary.",
		EventID:  "Made of `eventType`, `payment.id`, `payment.status` and `payment.dateUpdated`, of disputes of their id, status and `receivedAt`: Primer sends none.",
		Retries:  "Five more tries, after about 10 s, 60 s, 5, 10 and 15 minutes; then the event is dropped.",
		Ordering: "None is promised; `payment.dateUpdated` orders them.",
		Notes: "Use a version of the API whose payments have `dateUpdated`. Give the order's reference as `orderId`. `signedAt` stands inside the signed body and is not checked: what is repeated is known by its id. " +
			"`DISPUTE.OPENED` has no amount, so that an order is held as a whole; subscribe to `DISPUTE.STATUS` too, which Primer has for some processors. " +
			"That times are in UTC, and that a retrieval which expires or is accepted takes no money by itself, could not be confirmed.",
	},
	Covers: Coverage{Of: "body"},
	// "Primer uses a 10 second timeout":
	// https://primer.io/docs/api-reference/get-started/configure-webhooks
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Signature-Primary", "X-Signature-Secondary"},
	Options:     []Option{optionSecrets},
	Parse:       primer.parse,
	Probe:       primerProbe,
	Types:       primer.rows.types,
	Sample:      samplePrimer,
	Example: func(seed string) Source {
		return Source{Gateway: "primer", Mode: Test, Secrets: []string{exampleSecret("primer", seed)}}
	},
}

var primer = layout{
	typ:  "/eventType",
	at:   primerTime,
	made: primerID,
	rows: eventRows{
		{"PAYMENT.STATUS", "the status of a payment changed", order.StrengthPayment, primerPayment},
		{"PAYMENT.REFUND", "a refund reached its end", order.StrengthModification, primerPayment},
		{"DISPUTE.OPENED", "the shopper disputes a payment", order.StrengthModification, primerOpened},
		{"DISPUTE.STATUS", "a dispute changed", order.StrengthModification, primerDispute},
	},
}

func primerTime(r *reader) time.Time {
	at := "/payment/dateUpdated"
	if strings.HasPrefix(r.Type, "DISPUTE.") {
		at = "/receivedAt"
	}
	if t := r.date(at); !t.IsZero() {
		return t
	}
	return localTime(r.at(at), "2006-01-02T15:04:05", "UTC")
}

func primerID(r *reader) string {
	switch r.Type {
	case "DISPUTE.OPENED":
		return madeID(r.Type, r.first("/paymentId"), r.first("/processorDisputeId"))
	case "DISPUTE.STATUS":
		return madeID(r.Type, r.first("/paymentId"), r.first("/processorDisputeId"), r.first("/type"), r.first("/status"), r.first("/receivedAt"))
	}
	return madeID(r.Type, r.first("/payment/id"), r.first("/payment/status"), r.first("/payment/dateUpdated"))
}

// primerPhases are the statuses of payments.
// https://primer.io/docs/payments-services/payment-statuses
var primerPhases = map[string]order.Status{
	"PENDING": order.StatusProcessing, "FAILED": order.StatusFailed, "DECLINED": order.StatusFailed, "CANCELLED": order.StatusCanceled,
	"AUTHORIZED": order.StatusAuthorized, "SETTLING": order.StatusAuthorized,
	"PARTIALLY_SETTLED": order.StatusAuthorized, "SETTLED": order.StatusAuthorized,
}

func primerPayment(r *reader) {
	r.Payment = []string{r.text("/payment/id")}
	r.Reference = r.first("/payment/orderId")
	status := r.text("/payment/status")
	phase, known := primerPhases[status]
	if !known {
		r.fail("/payment/status is none that a payment has")
	}
	cur := r.currency("/payment/currencyCode")
	amount := r.minor("/payment/amount", cur)
	r.own(amount)
	r.phase(phase, r.order())
	if phase == order.StatusAuthorized {
		r.add(order.Fact{Kind: order.KindAuthorized}, amount)
	}
	if status == "SETTLING" {
		return // of what was settled before, in part, it says nothing
	}
	captured, refunded := order.Amount{Currency: cur}, order.Amount{Currency: cur}
	if strings.HasSuffix(status, "SETTLED") {
		captured = r.minor("/payment/processor/amountCaptured", cur)
		refunded = r.minor("/payment/processor/amountRefunded", cur)
	}
	r.add(order.Fact{Kind: order.KindCaptured, Seq: r.order()}, captured)
	r.add(order.Fact{Kind: order.KindRefunded, Seq: r.order()}, refunded)
}

// primerOpened: nothing is said but which payment.
func primerOpened(r *reader) {
	r.Payment = []string{r.text("/paymentId")}
	r.Reference = r.first("/orderId")
	r.add(order.Fact{Kind: order.KindDisputed, Ref: r.text("/processorDisputeId"), Status: order.StatusOpen},
		order.Amount{Minor: order.All, Currency: "XXX"})
}

// primerDispute: all stages of a dispute share the processor's id of it.
// https://primer.io/docs/api/webhooks/dispute-chargebacks-webhooks/dispute-status-webhook-event
func primerDispute(r *reader) {
	r.Payment = []string{r.text("/paymentId")}
	r.Reference = r.first("/orderId")
	retrieval := r.text("/type") == "RETRIEVAL"
	status := order.StatusOpen
	switch r.text("/status") {
	case "OPEN", "CHALLENGED":
	case "WON", "CANCELLED":
		status = order.StatusWon
	case "LOST":
		status = order.StatusLost
	case "ACCEPTED", "EXPIRED":
		status = order.StatusLost
		if retrieval {
			status = order.StatusWon
		}
	default:
		r.fail("/status is none that a dispute has")
	}
	f := order.Fact{Kind: order.KindDisputed, Ref: r.text("/processorDisputeId"), Status: status, Seq: r.order()}
	r.add(f, r.minor("/amount", r.currency("/currency")))
}

// primerProbe knows what the dashboard sends to test a connection.
// https://primer.io/docs/guides/webhooks
func primerProbe(_ Source, d Delivery) (Probe, bool) {
	if d.Method != http.MethodPost || len(d.Body) > 256 {
		return Probe{}, false
	}
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return Probe{}, false
	}
	message, err := doc.at("/message")
	if err != nil || message.Str != "Testing your webhook connection" {
		return Probe{}, false
	}
	return Probe{Note: "Primer tests the connection"}, true
}

// samplePrimer makes an event. A payment is settled, and refunded in full if that is
// what the event is about.
func samplePrimer(r SampleRequest) ([]byte, error) {
	if primer.rows.find(r.Type) == nil {
		return nil, unknownSample("primer", r.Type, primer.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment, at := r.paymentID("", 8), r.At.Format("2006-01-02T15:04:05.000000")
	event := fields{"eventType": r.Type, "version": "2.4", "date": at, "signedAt": "1767258000"}
	if strings.HasPrefix(r.Type, "DISPUTE.") {
		event["paymentId"], event["transactionId"] = payment, uuidOf("transaction", payment)
		event["primerAccountId"], event["processorDisputeId"] = uuidOf("account"), r.refID("dp_", 16, payment)
		if r.Reference != "" {
			event["orderId"] = r.Reference
		}
		if r.Type == "DISPUTE.STATUS" {
			event["type"], event["status"], event["amount"], event["currency"] = "DISPUTE", "OPEN", n, r.Amount.Currency
			event["receivedAt"], event["processor"], event["reason"] = at, "ADYEN", "FRAUD"
		} else {
			event["processorId"] = "ADYEN"
		}
		return render(event, r.Set, same)
	}
	refunded := int64(0)
	transactions := []any{primerSampleTransaction("SALE", payment, n, r.Amount.Currency, at)}
	if r.Type == "PAYMENT.REFUND" {
		refunded = n
		transactions = append(transactions, primerSampleTransaction("REFUND", payment, n, r.Amount.Currency, at))
	}
	event["notificationConfig"] = fields{"id": uuidOf("notification"), "description": "Payment webhook"}
	object := fields{
		"id": payment, "date": at, "dateUpdated": at, "amount": n, "currencyCode": r.Amount.Currency, "status": "SETTLED", "metadata": fields{},
		"paymentMethod": fields{"paymentMethodType": "PAYMENT_CARD"}, "transactions": transactions,
		"processor": fields{"name": "ADYEN", "processorMerchantId": "ExampleShopECOM", "amountCaptured": n, "amountRefunded": refunded},
	}
	if r.Reference != "" {
		object["orderId"] = r.Reference
	}
	event["payment"] = object
	return render(event, r.Set, same)
}

func primerSampleTransaction(typ, payment string, n int64, cur, at string) fields {
	return fields{
		"date": at, "amount": n, "currencyCode": cur, "transactionType": typ, "processorTransactionId": derive(16, typ, payment),
		"processorName": "ADYEN", "processorMerchantId": "ExampleShopECOM", "processorStatus": "SETTLED",
	}
}
