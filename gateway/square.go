package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// Square maps the events of Square's Payments, Refunds and Disputes APIs. Its
// rules:
//
//   - A payment is known by its own id alone. order_id is none of its ids: an
//     order may be paid by several payments, and every refund has an order of its
//     own.
//   - Each event of a payment is a snapshot: how much was captured and refunded,
//     in which phase it is. The latest updated_at counts; a payload without one
//     goes by the event's created_at.
//   - What was captured is total_money, with tips; without it amount_money.
//   - Refunds come by id besides, so that one that fails is known. A refund that
//     was rejected counts like one that failed, since refunded_money may have
//     held it.
//   - The merchant's reference is reference_id of the payment. A merchant who
//     registers orders under Square's own order id sets
//     reference: /data/object/payment/order_id.
//   - No byte tells production from sandbox; merchant_id tells the account.
//
// Objects: https://github.com/square/square-nodejs-sdk (api/types: Payment,
// PaymentRefund, Dispute, DisputeState).
var Square = &Gateway{
	Name:     "square",
	Title:    "Square",
	Docs:     "https://developer.squareup.com/docs/webhooks/overview",
	Scheme:   "square",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Developer Console → the application → Webhooks → Subscriptions → the subscription → Signature Key. A second subscription of the same URL has another key.",
		EventID:  "`event_id`, the same over all tries.",
		Retries:  "After 1, 2, 4, 8, 16 and 32 minutes, then every hour, for 72 hours (24 in newer texts). Redirects count as failures.",
		Ordering: "None is promised.",
		Notes: "`public_url` must be the URL of the subscription to the last character, since it is signed. " +
			"Subscribe to `payment.*`, `refund.*` and `dispute.*`. The payload does not tell production from sandbox: their signature keys do. " +
			"Refunds that are pending count from the beginning: `refunded_money` holds them, as Square's support says, and what is rejected or fails is taken off again (subscribe to `refund.*`).",
	},
	Covers: Coverage{Of: "body"},
	// https://developer.squareup.com/docs/webhooks/build-with-webhooks
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Square-Hmacsha256-Signature"},
	Options: []Option{
		optionSecrets,
		{"public_url", true, "the notification URL of the subscription, exactly as Square shows it: it is signed"},
		optionAccounts,
	},
	Parse:  square.parse,
	Types:  square.rows.types,
	Sample: sampleSquare,
	Example: func(seed string) Source {
		return Source{
			Gateway: "square", Mode: Test, Secrets: []string{exampleSecret("square", seed)}, PublicURL: "https://shop.example/webhooks/square",
		}
	},
}

var square = layout{
	id:  "/event_id",
	typ: "/type",
	at:  func(r *reader) time.Time { return r.date("/created_at") },
	rows: eventRows{
		{"payment.created", "a payment was made; its status says how far it is", order.StrengthPayment, squarePayment},
		{"payment.updated", "a payment changed; its status says how far it is", order.StrengthPayment, squarePayment},
		{"refund.created", "a refund was asked for", order.StrengthModification, squareRefund},
		{"refund.updated", "a refund changed", order.StrengthModification, squareRefund},
		{"dispute.created", "the shopper disputes a payment", order.StrengthModification, squareDispute},
		{"dispute.state.updated", "a dispute changed", order.StrengthModification, squareDispute},
		{"dispute.state.changed", "a dispute changed (older name)", order.StrengthModification, squareDispute},
	},
	silent: []string{
		"webhooks.test_notification", "order.created", "order.updated", "order.fulfillment.updated",
		"dispute.evidence.added", "dispute.evidence.created", "dispute.evidence.removed", "dispute.evidence.deleted",
	},
	misfit: func(r *reader) order.Misfit { return r.account("/merchant_id") },
}

// squareMoney is a Money object.
func squareMoney(r *reader, pointer string) order.Amount {
	return r.minor(pointer+"/amount", r.currency(pointer+"/currency"))
}

// squareTime is when the object changed, in microseconds.
func squareTime(r *reader, object string) int64 {
	at := r.date(object + "/updated_at")
	if at.IsZero() {
		at = r.At
	}
	return r.orderBy(at, "the event")
}

// squarePhases are the statuses of a payment.
var squarePhases = map[string]order.Status{
	"PENDING": order.StatusProcessing, "APPROVED": order.StatusAuthorized, "COMPLETED": order.StatusAuthorized,
	"CANCELED": order.StatusCanceled, "FAILED": order.StatusFailed,
}

func squarePayment(r *reader) {
	const at = "/data/object/payment"
	r.Payment = []string{r.text(at + "/id")}
	r.Reference = r.first(at + "/reference_id")
	status := r.at(at + "/status").Str
	phase, known := squarePhases[status]
	if !known {
		r.fail("%s/status is none that a payment has", at)
	}
	amount := at + "/total_money"
	if r.at(amount).absent() {
		amount = at + "/amount_money"
	}
	m := squareMoney(r, amount)
	r.own(m)
	seq := squareTime(r, at)
	r.phase(phase, seq)
	captured := order.Amount{Currency: m.Currency}
	switch status {
	case "APPROVED":
		r.add(order.Fact{Kind: order.KindAuthorized}, m)
	case "COMPLETED":
		captured = m
	}
	r.add(order.Fact{Kind: order.KindCaptured, Seq: seq}, captured)
	refunded := order.Amount{Currency: m.Currency}
	if !r.at(at + "/refunded_money").absent() {
		refunded = squareMoney(r, at+"/refunded_money")
	}
	r.add(order.Fact{Kind: order.KindRefunded, Seq: seq}, refunded)
}

var squareRefunds = map[string]order.Status{
	"PENDING": order.StatusPending, "COMPLETED": order.StatusOK, "REJECTED": order.StatusFailed, "FAILED": order.StatusFailed,
}

// squareRefund: one that is not linked to a payment of Square's is none of ours.
func squareRefund(r *reader) {
	const at = "/data/object/refund"
	id := r.text(at + "/id")
	if r.at(at + "/payment_id").absent() {
		return
	}
	r.Payment = []string{r.text(at + "/payment_id")}
	status, known := squareRefunds[r.at(at+"/status").Str]
	if !known {
		r.fail("%s/status is none that a refund has", at)
	}
	r.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: status}, squareMoney(r, at+"/amount_money"))
}

// squareDispute: a state that is neither won nor lost is open, also what Square
// may add one day. An inquiry that closed took nothing.
func squareDispute(r *reader) {
	const at = "/data/object/dispute"
	id := r.first(at+"/id", at+"/dispute_id")
	if id == "" {
		r.fail("%s has no id", at)
	}
	r.Payment = []string{r.text(at + "/disputed_payment/payment_id")}
	status := order.StatusOpen
	switch r.text(at + "/state") {
	case "WON", "INQUIRY_CLOSED":
		status = order.StatusWon
	case "LOST", "ACCEPTED":
		status = order.StatusLost
	}
	r.add(order.Fact{Kind: order.KindDisputed, Ref: id, Status: status, Seq: squareTime(r, at)}, squareMoney(r, at+"/amount_money"))
}
