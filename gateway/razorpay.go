package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// Razorpay maps the events of Razorpay (and Curlec). Its rules:
//
//   - A payment is known by its own id (pay_…) alone: an order (order_…) may have
//     several payments, so that its id is none of theirs.
//   - The merchant's reference is notes.order_id or notes.external_ref of the
//     payment, else the reference_id of the payment link, else the same notes or
//     the receipt of the order, where the event carries them. notes may be an object
//     or an empty list.
//   - The event's own id is only in a header that is not signed, so that an id is
//     made: type, id of what it is about, time of the event.
//   - A payment is captured in full. Refunds and disputes come by id, with the
//     status of the object.
//   - A refund of a payment that was never captured is Razorpay giving up an
//     authorisation (an auto-refund): the payment is canceled.
//   - No byte tells test from live; account_id tells the account.
var Razorpay = &Gateway{
	Name:     "razorpay",
	Title:    "Razorpay",
	Docs:     "https://razorpay.com/docs/webhooks/",
	Scheme:   "razorpay",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Account & Settings → Webhooks → Secret, which you choose yourself; it is not the API secret. After a change, tries of older events stay signed with the old one: keep both for a day.",
		EventID:  "Made of type, id of the payment, refund or dispute, and `created_at`. Razorpay's own (`x-razorpay-event-id`) is in a header that is not signed.",
		Retries:  "With growing pauses for 24 hours, then the webhook is disabled. Replays from the dashboard are the same bytes.",
		Ordering: "None is promised.",
		Notes: "The payload does not tell test from live: use another secret for each. The merchant's reference is `notes.order_id` of the payment; without it subscribe to `order.paid`, " +
			"which carries the notes and the receipt of the order, or set `reference: /payload/payment/entity/order_id` and register orders under Razorpay's order id. " +
			"A dispute that is `closed` counts as won: it ends so when the money was refunded, which comes as a refund of its own. " +
			"That amounts have the decimals of ISO 4217 in every currency could not be confirmed for those of three decimals.",
	},
	Covers: Coverage{Of: "body"},
	// "Reply 2xx within 5 seconds":
	// https://razorpay.com/docs/payments/payment-gateway/s2s-integration/test-s2s/best-practices/webhooks-and-fetch-apis
	Deadline:    5 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Razorpay-Event-Id", "X-Razorpay-Signature"},
	Options:     []Option{optionSecrets, optionAccounts},
	Parse:       razorpay.parse,
	Types:       razorpay.rows.types,
	Sample:      sampleRazorpay,
	Example: func(seed string) Source {
		return Source{Gateway: "razorpay", Mode: Test, Secrets: []string{exampleSecret("razorpay", seed)}}
	},
}

var razorpay = layout{
	typ:  "/event",
	at:   func(r *reader) time.Time { return r.seconds("/created_at") },
	made: razorpayID,
	rows: eventRows{
		{"payment.authorized", "money is authorised and can be captured", order.StrengthPayment, razorpayAuthorized},
		{"payment.captured", "the money was captured", order.StrengthPayment, razorpayCaptured},
		{"payment.failed", "an attempt to pay failed", order.StrengthPayment, razorpayFailed},
		{"order.paid", "a payment completed its order", order.StrengthPayment, razorpayCaptured},
		{"payment_link.paid", "a payment completed a payment link", order.StrengthPayment, razorpayCaptured},
		{"payment_link.partially_paid", "a payment paid a part of a payment link", order.StrengthPayment, razorpayCaptured},
		{"payment_link.expired", "a payment link was left unused", order.StrengthPayment, razorpayLink(order.StatusExpired)},
		{"payment_link.cancelled", "a payment link was canceled", order.StrengthPayment, razorpayLink(order.StatusCanceled)},
		{"refund.created", "a refund was made", order.StrengthModification, razorpayRefund},
		{"refund.processed", "a refund reached the shopper", order.StrengthModification, razorpayRefund},
		{"refund.speed_changed", "a refund takes another way", order.StrengthModification, razorpayRefund},
		{"refund.failed", "a refund failed: the money came back", order.StrengthModification, razorpayRefund},
		{"payment.dispute.created", "the shopper disputes a payment", order.StrengthModification, razorpayDispute},
		{"payment.dispute.under_review", "the bank looks at the evidence", order.StrengthModification, razorpayDispute},
		{"payment.dispute.action_required", "the bank wants more evidence", order.StrengthModification, razorpayDispute},
		{"payment.dispute.won", "a dispute was won", order.StrengthModification, razorpayDispute},
		{"payment.dispute.lost", "a dispute was lost", order.StrengthModification, razorpayDispute},
		{"payment.dispute.closed", "a dispute ended without a decision", order.StrengthModification, razorpayDispute},
	},
	misfit: func(r *reader) order.Misfit { return r.account("/account_id") },
}

// Where the entities of an event stand.
const (
	razorpayPaymentAt = "/payload/payment/entity"
	razorpayOrderAt   = "/payload/order/entity"
	razorpayLinkAt    = "/payload/payment_link/entity"
	razorpayRefundAt  = "/payload/refund/entity"
	razorpayDisputeAt = "/payload/dispute/entity"
)

func razorpayID(r *reader) string {
	about := r.first(razorpayDisputeAt+"/id", razorpayRefundAt+"/id", razorpayPaymentAt+"/id", razorpayLinkAt+"/id")
	return madeID(r.Type, about, r.first("/created_at"))
}

// razorpayPayment reads the payment of an event and whose order it is.
func razorpayPayment(r *reader) {
	id := r.first(razorpayPaymentAt+"/id", razorpayRefundAt+"/payment_id", razorpayDisputeAt+"/payment_id")
	if id == "" {
		r.fail("no payment is named")
		return
	}
	for _, at := range []string{razorpayRefundAt, razorpayDisputeAt} {
		if of := r.first(at + "/payment_id"); of != "" && of != id {
			r.fail("%s is of another payment", at)
		}
	}
	r.Payment = []string{id}
	r.Reference = r.first(
		razorpayPaymentAt+"/notes/order_id", razorpayPaymentAt+"/notes/external_ref",
		razorpayLinkAt+"/reference_id", razorpayOrderAt+"/notes/order_id", razorpayOrderAt+"/notes/external_ref", razorpayOrderAt+"/receipt",
	)
}

func razorpayMoney(r *reader, at, amount string) order.Amount {
	return r.minor(at+"/"+amount, r.currency(at+"/currency"))
}

func razorpayAuthorized(r *reader) {
	razorpayPayment(r)
	m := razorpayMoney(r, razorpayPaymentAt, "amount")
	r.own(m)
	r.phase(order.StatusAuthorized, r.order())
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// razorpayCaptured: the payment, which is captured in full. An order or a link that
// is called paid is believed only as far as its payment was captured.
func razorpayCaptured(r *reader) {
	if r.at(razorpayPaymentAt + "/captured").isFalse() {
		razorpayAuthorized(r)
		return
	}
	razorpayPayment(r)
	m := razorpayMoney(r, razorpayPaymentAt, "amount")
	r.own(m)
	r.add(order.Fact{Kind: order.KindCaptured}, m)
}

// razorpayFailed: the currency may be empty, and nothing needs it.
func razorpayFailed(r *reader) {
	razorpayPayment(r)
	r.phase(order.StatusFailed, r.order())
}

// razorpayLink: a payment link that nobody will use any more, a payment of its
// own. What was paid through it before came as payments.
func razorpayLink(status order.Status) func(*reader) {
	return func(r *reader) {
		r.Payment = []string{r.text(razorpayLinkAt + "/id")}
		r.Reference = r.first(razorpayLinkAt+"/notes/order_id", razorpayLinkAt+"/notes/external_ref", razorpayLinkAt+"/reference_id")
		r.phase(status, r.order())
	}
}

var razorpayRefundStatus = map[string]order.Status{
	"pending": order.StatusPending, "processed": order.StatusOK, "failed": order.StatusFailed,
}

func razorpayRefund(r *reader) {
	razorpayPayment(r)
	status, ok := razorpayRefundStatus[r.at(razorpayRefundAt+"/status").Str]
	if !ok {
		r.fail("%s/status is none that a refund has", razorpayRefundAt)
	}
	r.add(order.Fact{Kind: order.KindRefunded, Ref: r.text(razorpayRefundAt + "/id"), Status: status}, razorpayMoney(r, razorpayRefundAt, "amount"))
	// https://razorpay.com/docs/webhooks/refunds/ (Identify Auto-Refunds)
	if r.at(razorpayPaymentAt + "/captured").isFalse() {
		r.phase(order.StatusCanceled, r.order())
	}
}

// razorpayDispute: by the object's status. What is neither won, closed nor lost is
// open, also what Razorpay may add one day. Of a lost one, what was deducted
// counts, for a dispute can be accepted in part.
// https://razorpay.com/docs/api/disputes/entity
func razorpayDispute(r *reader) {
	razorpayPayment(r)
	status, amount := order.StatusOpen, "amount"
	switch r.text(razorpayDisputeAt + "/status") {
	case "won", "closed":
		status = order.StatusWon
	case "lost":
		status = order.StatusLost
		if n, ok := r.at(razorpayDisputeAt + "/amount_deducted").integer(); ok && n > 0 {
			amount = "amount_deducted"
		}
	}
	f := order.Fact{Kind: order.KindDisputed, Ref: r.text(razorpayDisputeAt + "/id"), Status: status, Seq: r.order()}
	r.add(f, razorpayMoney(r, razorpayDisputeAt, amount))
}
