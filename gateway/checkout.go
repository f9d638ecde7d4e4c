package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// checkoutExponents: of the currencies without decimals in ISO 4217, Checkout.com
// counts the Chilean peso in hundredths, always 00.
// https://www.checkout.com/docs/resources/calculating-the-amount
var checkoutExponents = exponents{"CLP": 2}

// Checkout maps the events of Checkout.com (Unified Payments API, Workflows). Its
// rules:
//
//   - A payment is known by its id (pay_…), which stands in data.id, of disputes in
//     data.payment_id.
//   - The merchant's reference is data.reference, else metadata.order_id. A
//     capture or refund may have been given a reference of its own, so that theirs
//     only finds an order.
//   - Captures and refunds come by the id of their action (act_…), and, where the
//     event carries balances, as running totals too.
//   - A void closes the payment only if nothing is left to capture.
//   - A payment that is returned was paid and taken back by the shopper's bank, as
//     ACH debits may be: money that we did not give. Payouts are returned too; of
//     them nothing was captured, so that it takes nothing.
//   - A dispute that nobody answered in time (dispute_expired) is lost: the money
//     was taken when it began.
//   - No signed byte that is documented tells the sandbox from live.
var Checkout = &Gateway{
	Name:     "checkout",
	Title:    "Checkout.com",
	Docs:     "https://www.checkout.com/docs/developer-resources/event-notifications",
	Scheme:   "checkout",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Developers → Webhooks → the webhook → Signature key. The Authorization header key beside it is the option `authorization`.",
		EventID:  "`id` (`evt_…`), the same over all tries and for all workflows.",
		Retries:  "What is not answered with 2xx is tried again; the schedule could not be confirmed.",
		Ordering: "None is promised.",
		Notes: "The payload does not tell the sandbox from live: use another signature key for each. How long Checkout.com waits for an answer could not be confirmed; 10 s is assumed. " +
			"Some `authentication_failed` events were reported not to be JSON; they are answered with 400. " +
			"`payment_paid` is about payouts and moves no order. Subscribe to `payment_returned` if you take ACH or another method that can fail after it succeeded: nothing else tells of it.",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Cko-Signature", "Content-Type", "User-Agent"},
	Options: []Option{
		optionSecrets,
		{"authorization", false, "the Authorization header that Checkout.com was told to send; if set, a delivery must carry it"},
	},
	CheckMore: func(c *Checker) {
		if s := c.s.Authorization; strings.TrimSpace(s) != s || strings.ContainsAny(s, "\r\n\x00") {
			c.add("authorization", "is no value of a header: it begins or ends with a space, or has a line break in it")
		}
	},
	Parse:  checkout.parse,
	Types:  checkout.rows.types,
	Sample: sampleCheckout,
	Example: func(seed string) Source {
		return Source{Gateway: "checkout", Mode: Test, Secrets: []string{exampleSecret("checkout", seed)}}
	},
}

// The types: https://www.checkout.com/docs/developer-resources/event-notifications/event-types
var checkout = layout{
	id:    "/id",
	typ:   "/type",
	at:    checkoutTime,
	units: checkoutExponents,
	rows: eventRows{
		{"payment_pending", "the shopper has to do something", order.StrengthPayment, checkoutPhase(order.StatusProcessing)},
		{"payment_approved", "money is authorised", order.StrengthPayment, checkoutAuthorized},
		{"payment_authorization_incremented", "more money is authorised", order.StrengthPayment, checkoutAuthorized},
		{"payment_declined", "the payment was declined", order.StrengthPayment, checkoutPhase(order.StatusFailed)},
		{"payment_canceled", "the shopper canceled", order.StrengthPayment, checkoutPhase(order.StatusCanceled)},
		{"payment_expired", "the payment was not finished in time", order.StrengthPayment, checkoutPhase(order.StatusExpired)},
		{"payment_voided", "an authorisation was given up", order.StrengthModification, checkoutVoided},
		{"payment_capture_pending", "a capture is on its way", order.StrengthModification, checkoutCapture(order.StatusPending)},
		{"payment_captured", "money was captured", order.StrengthModification, checkoutCapture(order.StatusOK)},
		{"payment_capture_declined", "a capture was declined", order.StrengthModification, checkoutCapture(order.StatusDenied)},
		{"payment_refund_pending", "a refund is on its way", order.StrengthModification, checkoutRefund(order.StatusPending)},
		{"payment_refunded", "money was refunded", order.StrengthModification, checkoutRefund(order.StatusOK)},
		{"payment_refund_declined", "a refund was declined", order.StrengthModification, checkoutRefund(order.StatusDenied)},
		{"payment_returned", "the shopper's bank took a payment back", order.StrengthModification, checkoutReturned},
		{"dispute_received", "the shopper disputes a payment", order.StrengthModification, checkoutDispute(order.StatusOpen)},
		{"dispute_evidence_required", "a dispute has to be answered", order.StrengthModification, checkoutDispute(order.StatusOpen)},
		{"dispute_evidence_submitted", "a dispute was answered", order.StrengthModification, checkoutDispute(order.StatusOpen)},
		{"dispute_arbitration_evidence_submitted", "a dispute goes to arbitration", order.StrengthModification, checkoutDispute(order.StatusOpen)},
		{"dispute_resolved", "a dispute ended by itself: the money had been refunded", order.StrengthModification, checkoutDispute(order.StatusWon)},
		{"dispute_canceled", "the bank took a dispute back", order.StrengthModification, checkoutDispute(order.StatusWon)},
		{"dispute_won", "a dispute was won", order.StrengthModification, checkoutDispute(order.StatusWon)},
		{"dispute_arbitration_won", "an arbitration was won", order.StrengthModification, checkoutDispute(order.StatusWon)},
		{"dispute_accepted", "a dispute was accepted", order.StrengthModification, checkoutDispute(order.StatusLost)},
		{"dispute_expired", "a dispute was not answered in time", order.StrengthModification, checkoutDispute(order.StatusLost)},
		{"dispute_lost", "a dispute was lost", order.StrengthModification, checkoutDispute(order.StatusLost)},
		{"dispute_arbitration_lost", "an arbitration was lost", order.StrengthModification, checkoutDispute(order.StatusLost)},
	},
}

// checkoutTime: the two names are of different versions of the payload.
func checkoutTime(r *reader) time.Time {
	if at := r.date("/created_on"); !at.IsZero() {
		return at
	}
	return r.date("/timestamp")
}

func checkoutPayment(r *reader) {
	r.Payment = []string{r.text("/data/id")}
	r.Reference = r.first("/data/reference", "/data/metadata/order_id")
}

func checkoutPhase(status order.Status) func(*reader) {
	return func(r *reader) {
		checkoutPayment(r)
		r.phase(status, r.order())
	}
}

// checkoutAuthorized: the amount of an increment is what was added, so that the
// balance counts where there is one.
func checkoutAuthorized(r *reader) {
	checkoutPayment(r)
	cur := r.currency("/data/currency")
	m, known := r.balance("total_authorized", cur)
	if !known {
		if r.Type != "payment_approved" {
			r.fail("/data/balances/total_authorized is missing")
		}
		m = r.minor("/data/amount", cur)
	}
	r.own(m)
	r.phase(order.StatusAuthorized, r.order())
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// balance is one of the balances of a payment; older payloads have none.
func (r *reader) balance(name, cur string) (order.Amount, bool) {
	at := "/data/balances/" + name
	if r.at(at).absent() {
		return order.Amount{}, false
	}
	return r.minor(at, cur), true
}

func checkoutVoided(r *reader) {
	checkoutPayment(r)
	if left, known := r.balance("available_to_capture", r.currency("/data/currency")); known && left.Minor > 0 {
		return
	}
	r.phase(order.StatusCanceled, r.order())
}

func checkoutCapture(status order.Status) func(*reader) {
	return checkoutAction(order.KindCaptured, status, "total_captured")
}

func checkoutRefund(status order.Status) func(*reader) {
	return checkoutAction(order.KindRefunded, status, "total_refunded")
}

// checkoutAction: one capture or refund, and how much there is of them by now. The
// balance of one that is on its way may count it already, so that it is left out.
func checkoutAction(kind order.Kind, status order.Status, balance string) func(*reader) {
	return func(r *reader) {
		checkoutPayment(r)
		cur := r.currency("/data/currency")
		r.add(order.Fact{Kind: kind, Ref: r.text("/data/action_id"), Status: status}, r.minor("/data/amount", cur))
		if status != order.StatusOK {
			return
		}
		if total, known := r.balance(balance, cur); known {
			r.add(order.Fact{Kind: kind}, total)
		}
	}
}

// checkoutReturned: by the id of the return. It names no capture, and balances are
// not known to tell of it.
// https://www.checkout.com/docs/workflows/webhook-event-types/payment_returned
func checkoutReturned(r *reader) {
	checkoutPayment(r)
	f := order.Fact{Kind: order.KindRefunded, Ref: r.text("/data/action_id"), Status: order.StatusOK, Forced: true}
	r.add(f, r.minor("/data/amount", r.currency("/data/currency")))
}

func checkoutDispute(status order.Status) func(*reader) {
	return func(r *reader) {
		r.Payment = []string{r.text("/data/payment_id")}
		r.Reference = r.first("/data/payment_reference")
		f := order.Fact{Kind: order.KindDisputed, Ref: r.text("/data/id"), Status: status, Seq: r.order()}
		r.add(f, r.minor("/data/amount", r.currency("/data/currency")))
	}
}

// sampleCheckout makes an event with the balances of a payment of which nothing
// else happened.
func sampleCheckout(r SampleRequest) ([]byte, error) {
	if checkout.rows.find(r.Type) == nil {
		return nil, unknownSample("checkout", r.Type, checkout.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := checkoutExponents.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment, at := r.paymentID("pay_", 26), r.At.Format(time.RFC3339Nano)
	id := r.ID
	if id == "" {
		id = "evt_" + strings.ToLower(derive(26, r.Type, payment, r.Ref, r.Amount.Currency, at, r.Mode))
	}
	data := fields{"amount": n, "currency": r.Amount.Currency}
	if strings.HasPrefix(r.Type, "dispute_") {
		data["id"], data["payment_id"], data["date"] = r.refID("dsp_", 20, payment), payment, at
		data["category"], data["reason_code"], data["payment_method"] = "fraudulent", "10.4", "VISA"
		data["payment_action_id"] = "act_" + derive(26, "capture", payment)
		if r.Reference != "" {
			data["payment_reference"] = r.Reference
		}
	} else {
		data["id"], data["action_id"], data["processed_on"] = payment, r.refID("act_", 26, payment), at
		data["response_code"], data["response_summary"], data["metadata"] = "10000", "Approved", fields{}
		data["balances"] = checkoutSampleBalances(r.Type, n)
		if r.Reference != "" {
			data["reference"] = r.Reference
		}
	}
	return render(fields{"id": id, "type": r.Type, "version": "1.0.29", "created_on": at, "data": data}, r.Set, same)
}

func checkoutSampleBalances(typ string, n int64) fields {
	b := fields{
		"total_authorized": n, "total_voided": 0, "available_to_void": n, "total_captured": 0, "available_to_capture": n,
		"total_refunded": 0, "available_to_refund": 0,
	}
	switch typ {
	case "payment_voided":
		b["total_voided"], b["available_to_void"], b["available_to_capture"] = n, 0, 0
	case "payment_captured":
		b["total_captured"], b["available_to_void"], b["available_to_capture"], b["available_to_refund"] = n, 0, 0, n
	case "payment_refunded":
		b["total_captured"], b["available_to_void"], b["available_to_capture"], b["total_refunded"] = n, 0, 0, n
	}
	return b
}
