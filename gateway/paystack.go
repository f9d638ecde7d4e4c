package gateway

import (
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

// paystackExponents: amounts are in hundredths ("kobo"). For the currencies that
// have no decimals in ISO 4217 that is remembered and not confirmed; read so, a
// wrong memory makes too little of a payment, and never too much.
var paystackExponents = exponents{"XOF": 2, "RWF": 2}

// Paystack maps the events of Paystack. Its rules:
//
//   - A payment is known by the reference of its transaction, which is unique in an
//     account. The merchant's reference is order_id or external_ref in the
//     transaction's metadata, else that reference. Refunds and disputes only name
//     the transaction.
//   - Events have no id: one is made of type, transaction, and what the event is
//     about, with the amount or the time that tells one from another.
//   - Refund events carry no time. A refund is known by its id, else by its
//     refund_reference; as long as it has neither (pending), it says nothing.
//   - An accepted dispute is given back as a refund, which comes as an event of its
//     own too; the money is counted once.
//   - domain tells live from test; an event without one is a misfit.
var Paystack = &Gateway{
	Name:     "paystack",
	Title:    "Paystack",
	Docs:     "https://paystack.com/docs/payments/webhooks/",
	Scheme:   "paystack",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "Dashboard → Settings → API Keys & Webhooks → the secret API key itself (`sk_live_…` or `sk_test_…`). While it is rolled, give both.",
		EventID:  "Made of type, reference of the transaction, id of the refund or dispute, and amount or time: Paystack sends none.",
		Retries:  "Live: every 3 minutes for the first 4 tries, then hourly for 72 hours. Test: hourly for 72 hours.",
		Ordering: "None is promised.",
		Notes: "There is no event for a payment that failed. Put the order's reference into `metadata.order_id`, or use it as the reference of the transaction. " +
			"That XOF and RWF are counted in hundredths, and how long Paystack waits for an answer (10 s is assumed), could not be confirmed.",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Paystack-Signature"},
	Options:     []Option{optionSecrets},
	Parse:       paystack.parse,
	Types:       paystack.rows.types,
	Sample:      samplePaystack,
	Example: func(seed string) Source {
		return Source{Gateway: "paystack", Mode: Test, Secrets: []string{"sk_test_" + exampleSecret("paystack", seed)}}
	},
}

// The payloads: https://github.com/PaystackOSS/doc-code-snippets (dist/doc/payments)
var paystack = layout{
	typ:   "/event",
	at:    paystackTime,
	made:  paystackID,
	units: paystackExponents,
	rows: eventRows{
		{"charge.success", "the money was captured", order.StrengthPayment, paystackCharge},
		{"preauthorization.reserve.success", "money is authorised and can be captured", order.StrengthPayment, paystackReserved},
		{"preauthorization.capture.success", "authorised money was captured", order.StrengthPayment, paystackCaptured},
		{"preauthorization.release.success", "an authorisation was given up", order.StrengthPayment, paystackReleased},
		{"refund.pending", "a refund was made", order.StrengthModification, paystackRefund(order.StatusPending)},
		{"refund.processing", "a refund is on its way", order.StrengthModification, paystackRefund(order.StatusPending)},
		{"refund.processed", "a refund reached the shopper", order.StrengthModification, paystackRefund(order.StatusOK)},
		{"refund.failed", "a refund failed: the money came back", order.StrengthModification, paystackRefund(order.StatusFailed)},
		{"charge.dispute.create", "the shopper disputes a payment", order.StrengthModification, paystackDispute},
		{"charge.dispute.remind", "a dispute has to be answered", order.StrengthModification, paystackDispute},
		{"charge.dispute.resolve", "a dispute was decided", order.StrengthModification, paystackDispute},
	},
	misfit: func(r *reader) order.Misfit {
		if r.at("/data/domain").Str != r.source.Mode {
			return order.MisfitMode
		}
		return ""
	},
}

func paystackTime(r *reader) time.Time {
	for _, at := range []string{"/data/updated_at", "/data/captured_at", "/data/paid_at"} {
		if t := r.date(at); !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

func paystackID(r *reader) string {
	switch {
	case strings.HasPrefix(r.Type, "charge.dispute."):
		return madeID(r.Type, r.first("/data/id"), r.first("/data/updated_at"))
	case strings.HasPrefix(r.Type, "refund."):
		return madeID(r.Type, r.first("/data/transaction_reference"), r.first("/data/id", "/data/refund_reference"), r.first("/data/amount"))
	default:
		return madeID(r.Type, r.first("/data/reference"), r.first("/data/id"))
	}
}

// paystackPayment reads the transaction of its own event.
func paystackPayment(r *reader) {
	reference := r.text("/data/reference")
	r.Payment = []string{reference}
	r.Reference = r.first("/data/metadata/order_id", "/data/metadata/external_ref")
	if r.Reference == "" {
		r.Reference = reference
	}
}

// paystackMoney is an amount that Paystack writes as a number or as its digits,
// of refunds and captures.
func paystackMoney(r *reader, pointer string) order.Amount {
	cur := r.currency("/data/currency")
	if r.at(pointer).Type == gjson.String {
		return r.minorText(pointer, cur)
	}
	return r.minor(pointer, cur)
}

func paystackCharge(r *reader) {
	paystackPayment(r)
	if r.text("/data/status") != "success" {
		r.fail("/data/status is not success")
	}
	m := r.minor("/data/amount", r.currency("/data/currency"))
	r.own(m)
	r.add(order.Fact{Kind: order.KindCaptured}, m)
}

// paystackReserved: authorisations carry no time, so that what closes one wins by
// its rank.
func paystackReserved(r *reader) {
	paystackPayment(r)
	m := r.minor("/data/amount", r.currency("/data/currency"))
	r.own(m)
	r.phase(order.StatusAuthorized, 0)
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

func paystackCaptured(r *reader) {
	paystackPayment(r)
	r.own(r.minor("/data/amount", r.currency("/data/currency")))
	r.add(order.Fact{Kind: order.KindCaptured}, paystackMoney(r, "/data/captured_amount"))
}

func paystackReleased(r *reader) {
	paystackPayment(r)
	r.phase(order.StatusCanceled, 0)
}

func paystackRefund(status order.Status) func(*reader) {
	return func(r *reader) {
		r.Payment = []string{r.text("/data/transaction_reference")}
		m := paystackMoney(r, "/data/amount")
		ref := r.first("/data/id", "/data/refund_reference")
		switch {
		case ref != "":
			r.add(order.Fact{Kind: order.KindRefunded, Ref: ref, Status: status}, m)
		case status != order.StatusPending:
			r.fail("the refund has neither id nor refund_reference")
		}
	}
}

// paystackDispute: by the object. What is not resolved is open, and so is a
// resolution that Paystack may add one day.
func paystackDispute(r *reader) {
	r.Payment = []string{r.text("/data/transaction/reference")}
	r.Reference = r.first("/data/transaction/metadata/order_id", "/data/transaction/metadata/external_ref")
	status := order.StatusOpen
	if r.text("/data/status") == "resolved" {
		switch r.at("/data/resolution").Str {
		case "merchant-accepted", "auto-accepted":
			status = order.StatusLost
		case "declined":
			status = order.StatusWon
		}
	}
	at := r.orderBy(r.date("/data/updated_at"), "the dispute")
	f := order.Fact{Kind: order.KindDisputed, Ref: r.text("/data/id"), Status: status, Seq: at, Via: true}
	amount := "/data/refund_amount"
	if r.at(amount).absent() {
		amount = "/data/transaction/amount" // all of it, while nobody has said how much
	}
	r.add(f, paystackMoney(r, amount))
}
