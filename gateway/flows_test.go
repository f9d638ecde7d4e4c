package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// step is one event of a flow, minutes after its start.
type step struct {
	typ string
	at  int
	amt int64 // 0: 5000
	ref string
	set map[string]string
}

func (s step) event(t *testing.T, source gateway.Source) order.Event {
	t.Helper()
	amount := order.Amount{Minor: 5000, Currency: "EUR"}
	if s.amt != 0 {
		amount.Minor = s.amt
	}
	return spokenOne(t, gateway.SampleRequest{
		Source: source, Type: s.typ, Reference: "ord_7", Ref: s.ref, Amount: amount, At: now.Add(time.Duration(s.at) * time.Minute), Set: s.set,
	})
}

// zero is for cancellations, which Adyen sends with an amount of 0.
var zero = map[string]string{"amount.value": "0"}

func set(path, value string) map[string]string { return map[string]string{path: value} }

// TestFlows plays what gateways really send for one order of 50.00 EUR, in every
// order of arrival and with repetitions, and looks at what the order becomes.
func TestFlows(t *testing.T) {
	t.Parallel()
	stripe, auto, bare := stripeSource(), adyenSource(), bareAdyen()
	manual := adyenSource()
	manual.Capture = gateway.CaptureManual
	partial := func(captured, refunded string) map[string]string {
		return map[string]string{
			"data.object.amount": "5000", "data.object.amount_captured": captured, "data.object.amount_refunded": refunded,
		}
	}
	old := func(captured, refunded string) map[string]string {
		m := partial(captured, refunded)
		m["api_version"] = "2024-06-20"
		return m
	}
	playFlows(t, []flow{
		{"StripeThreeTypesOfOnePayment", stripe, []step{
			{typ: "checkout.session.completed"}, {typ: "payment_intent.succeeded"}, {typ: "charge.succeeded"},
		}, "paid 5000-0-0 go"},
		{"StripeManualCaptureOfACheckout", stripe, []step{
			{typ: "checkout.session.completed", set: set("data.object.payment_status", "unpaid")},
			{typ: "payment_intent.amount_capturable_updated"},
			{typ: "payment_intent.succeeded", at: 9, set: set("data.object.metadata", "{}")},
		}, "paid 5000-0-0 go"},
		{"StripeAuthorized", stripe, []step{
			{typ: "charge.succeeded", set: set("data.object.captured", "false")}, {typ: "payment_intent.amount_capturable_updated"},
		}, "authorized 0-0-0 wait"},
		{"StripeFailedThenPaid", stripe, []step{
			{typ: "payment_intent.payment_failed"}, {typ: "charge.failed"}, {typ: "payment_intent.succeeded", at: 2}, {typ: "charge.succeeded", at: 2},
		}, "paid 5000-0-0 go"},
		{"StripeFailed", stripe, []step{
			{typ: "payment_intent.processing"}, {typ: "payment_intent.payment_failed", at: 1}, {typ: "charge.failed", at: 1},
		}, "failed 0-0-0 wait"},
		{"StripeDelayedMethod", stripe, []step{
			{typ: "checkout.session.completed", set: set("data.object.payment_status", "unpaid")},
			{typ: "charge.pending"},
			{typ: "payment_intent.processing"},
			{typ: "checkout.session.async_payment_succeeded", at: 999},
		}, "paid 5000-0-0 go"},
		{"StripeCheckoutLeft", stripe, []step{
			{typ: "checkout.session.expired", at: 99, set: set("data.object.payment_intent", "null")},
		}, "pending 0-0-0 wait"},
		{"StripeCanceled", stripe, []step{
			{typ: "payment_intent.amount_capturable_updated"}, {typ: "payment_intent.canceled", at: 9},
		}, "canceled 0-0-0 wait"},
		{"StripePartialRefundByTotalAndID", stripe, []step{
			{typ: "payment_intent.succeeded"},
			{typ: "charge.refunded", at: 5, set: partial("5000", "1000")},
			{typ: "refund.created", at: 5, amt: 1000},
			{typ: "refund.updated", at: 6, amt: 1000},
		}, "partially_refunded 5000-1000-0 go"},
		{"StripeRefundFails", stripe, []step{
			{typ: "payment_intent.succeeded"}, {typ: "charge.refunded", at: 5}, {typ: "refund.created", at: 5}, {typ: "refund.failed", at: 9},
		}, "paid 5000-0-0 go"},
		{"StripeDisputeWon", stripe, []step{
			{typ: "payment_intent.succeeded"},
			{typ: "charge.dispute.created", at: 5},
			{typ: "charge.dispute.funds_withdrawn", at: 5},
			{typ: "charge.dispute.closed", at: 9, set: set("data.object.status", "won")},
			{typ: "charge.dispute.funds_reinstated", at: 9},
		}, "paid 5000-0-0 go"},
		{"StripeDisputeLost", stripe, []step{
			{typ: "payment_intent.succeeded"}, {typ: "charge.dispute.created", at: 5}, {typ: "charge.dispute.closed", at: 9},
		}, "charged_back 5000-0-5000 stop"},
		{"StripeDisputeOpen", stripe, []step{
			{typ: "payment_intent.succeeded"}, {typ: "charge.dispute.created", at: 5}, {typ: "charge.dispute.updated", at: 7},
		}, "disputed 5000-0-0 pause"},
		{"StripePartialCapture", stripe, []step{
			{typ: "charge.captured", at: 3, set: partial("2000", "0")}, {typ: "payment_intent.succeeded", at: 3, amt: 2000},
		}, "partially_paid 2000-0-0 wait"},
		{"StripePartialCaptureBeforeBasil", stripe, []step{
			{typ: "charge.captured", at: 3, set: old("2000", "3000")},
			{typ: "payment_intent.succeeded", at: 3, amt: 2000},
			{typ: "charge.refund.updated", at: 3, amt: 3000},
		}, "partially_paid 2000-0-0 wait"},
		{"StripeSubscriptionInvoice", stripe, []step{
			{typ: "checkout.session.completed", set: map[string]string{
				"data.object.payment_intent": "null", "data.object.invoice": stripeInvoiceID(t), "data.object.mode": "subscription",
			}},
			{typ: "invoice.paid"},
			{typ: "invoice_payment.paid"},
			{typ: "payment_intent.succeeded", set: set("data.object.metadata", "{}")},
			{typ: "charge.refunded", at: 8, set: partial("5000", "500")},
		}, "partially_refunded 5000-500-0 go"},

		{"AdyenAutomatic", auto, []step{{typ: "AUTHORISATION"}}, "paid 5000-0-0 go"},
		{"AdyenAutomaticAndACaptureAllTheSame", auto, []step{{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}}, "paid 5000-0-0 go"},
		{"AdyenManual", manual, []step{{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}}, "paid 5000-0-0 go"},
		{"AdyenAuthorized", manual, []step{{typ: "PENDING"}, {typ: "AUTHORISATION", at: 1}}, "authorized 0-0-0 wait"},
		{"AdyenTwoCaptures", manual, []step{
			{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5, amt: 2000, ref: "C1"}, {typ: "CAPTURE", at: 6, amt: 3000, ref: "C2"},
		}, "paid 5000-0-0 go"},
		{"AdyenRefusedThenPaid", auto, []step{{typ: "AUTHORISATION", set: set("success", "false")}, {typ: "AUTHORISATION"}}, "paid 5000-0-0 go"},
		{"AdyenRefusedThenPaidWithoutDates", bare, []step{{typ: "AUTHORISATION", set: set("success", "false")}, {typ: "AUTHORISATION"}}, "paid 5000-0-0 go"},
		{"AdyenCaptureFailed", manual, []step{{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}, {typ: "CAPTURE_FAILED", at: 9}}, "authorized 0-0-0 stop"},
		{"AdyenCaptureFailedWithoutDates", bare, []step{{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}, {typ: "CAPTURE_FAILED", at: 9}}, "authorized 0-0-0 stop"},
		{"AdyenRecaptured", manual, []step{
			{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}, {typ: "CAPTURE_FAILED", at: 9}, {typ: "CAPTURE", at: 12, set: set("reason", "Transaction Recaptured")},
		}, "paid 5000-0-0 go"},
		{"AdyenCanceledInTheCaptureDelay", auto, []step{{typ: "AUTHORISATION"}, {typ: "CANCELLATION", at: 5, set: zero}}, "canceled 0-0-0 stop"},
		{"AdyenCanceled", manual, []step{{typ: "AUTHORISATION"}, {typ: "CANCELLATION", at: 5, set: zero}}, "canceled 0-0-0 wait"},
		{"AdyenCanceledWithoutDates", bare, []step{{typ: "AUTHORISATION"}, {typ: "TECHNICAL_CANCEL", at: 5, set: zero}}, "canceled 0-0-0 stop"},
		{"AdyenExpired", manual, []step{{typ: "AUTHORISATION"}, {typ: "EXPIRE", at: 99}}, "expired 0-0-0 wait"},
		{"AdyenCancelOrRefundOfACapture", manual, []step{
			{typ: "AUTHORISATION"}, {typ: "CAPTURE", at: 5}, {typ: "CANCEL_OR_REFUND", at: 9, set: zero},
		}, "refunded 5000-5000-0 stop"},
		{"AdyenCancelOrRefundOfNothing", manual, []step{{typ: "AUTHORISATION"}, {typ: "CANCEL_OR_REFUND", at: 9, set: zero}}, "canceled 0-0-0 wait"},
		{"AdyenCancelOrRefundThatCanceled", auto, []step{{typ: "AUTHORISATION"}, {typ: "CANCEL_OR_REFUND", at: 9, set: map[string]string{
			"amount.value": "0", `additionalData.modification\.action`: "cancel",
		}}}, "canceled 0-0-0 stop"},
		{"AdyenRefund", auto, []step{{typ: "AUTHORISATION"}, {typ: "REFUND", at: 5, amt: 1000}}, "partially_refunded 5000-1000-0 go"},
		{"AdyenRefundFailed", auto, []step{{typ: "AUTHORISATION"}, {typ: "REFUND", at: 5}, {typ: "REFUND_FAILED", at: 9}}, "paid 5000-0-0 go"},
		{"AdyenRefundReversedWithoutDates", bare, []step{{typ: "AUTHORISATION"}, {typ: "REFUND", at: 5}, {typ: "REFUNDED_REVERSED", at: 9}}, "paid 5000-0-0 go"},
		{"AdyenRefundRefused", auto, []step{{typ: "AUTHORISATION"}, {typ: "REFUND", at: 5, set: set("success", "false")}}, "paid 5000-0-0 go"},
		{"AdyenDispute", auto, []step{{typ: "AUTHORISATION"}, {typ: "NOTIFICATION_OF_CHARGEBACK", at: 5}}, "disputed 5000-0-0 pause"},
		{"AdyenChargebackThatCanBeDefended", auto, []step{
			{typ: "AUTHORISATION"}, {typ: "NOTIFICATION_OF_CHARGEBACK", at: 5}, {typ: "CHARGEBACK", at: 6},
		}, "disputed 5000-0-0 pause"},
		{"AdyenChargebackWithoutItsStatus", bare, []step{
			{typ: "AUTHORISATION"}, {typ: "NOTIFICATION_OF_CHARGEBACK", at: 5}, {typ: "CHARGEBACK", at: 6},
		}, "charged_back 5000-0-5000 stop"},
		{"AdyenChargebackReversed", auto, []step{
			{typ: "AUTHORISATION"}, {typ: "CHARGEBACK", at: 6}, {typ: "CHARGEBACK_REVERSED", at: 7},
		}, "paid 5000-0-0 go"},
		{"AdyenSecondChargeback", auto, []step{
			{typ: "AUTHORISATION"}, {typ: "CHARGEBACK", at: 6}, {typ: "CHARGEBACK_REVERSED", at: 7}, {typ: "SECOND_CHARGEBACK", at: 6},
		}, "charged_back 5000-0-5000 stop"},

		{"Standard", standardSource(), []step{{typ: "payment.authorized"}, {typ: "payment.succeeded", at: 3}}, "paid 5000-0-0 go"},
		{"StandardRefund", standardSource(), []step{
			{typ: "payment.succeeded"}, {typ: "refund.succeeded", at: 3, amt: 1000}, {typ: "refund.succeeded", at: 4, amt: 1500},
		}, "partially_refunded 5000-1500-0 go"},
	})
}

// flow is what a gateway sends for one order of 50.00 EUR, of reference ord_7.
type flow struct {
	name   string
	source gateway.Source
	steps  []step
	want   string // state, captured-refunded-lost, want
}

// playFlows delivers each flow in every order of arrival and with repetitions.
func playFlows(t *testing.T, flows []flow) {
	t.Helper()
	for _, tt := range flows {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			evs := make([]order.Event, len(tt.steps))
			for i, s := range tt.steps {
				evs[i] = s.event(t, tt.source)
				require.Empty(t, evs[i].Broken)
			}
			permute(evs, func(evs []order.Event) {
				v := fold(append(slices.Clone(evs), evs[0], evs[len(evs)-1]))
				require.Zero(t, v.Flags&^order.FlagUnderpaid, v.Flags.String())
				got := fmt.Sprintf("%s %d-%d-%d %s", v.State, v.Captured, v.Refunded, v.Lost, v.Want)
				require.Equal(t, tt.want, got, "in the order %v", types(evs))
			})
		})
	}
}

// stripeInvoiceID is the invoice that the samples of ord_7 name.
func stripeInvoiceID(t *testing.T) string {
	ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "invoice.paid", Reference: "ord_7"})
	return ev.Payment[len(ev.Payment)-1]
}

// fold joins the events of one order of 50.00 EUR: events that share an id are
// about one payment, and all payments are the order's.
func fold(evs []order.Event) order.View {
	var groups [][]order.Event
	for _, ev := range evs {
		if ev.Ignored != "" {
			continue
		}
		group := []order.Event{ev}
		groups = slices.DeleteFunc(groups, func(g []order.Event) bool {
			for _, other := range g {
				if slices.ContainsFunc(other.Payment, func(id string) bool { return slices.Contains(ev.Payment, id) }) {
					group = append(group, g...)
					return true
				}
			}
			return false
		})
		groups = append(groups, group)
	}
	o := order.Order{Registered: true, Total: 5000, Currency: "EUR", Payments: map[string]*order.Ledger{}}
	for _, group := range groups {
		l := order.NewLedger()
		for _, ev := range group {
			l.JoinEvent(ev)
		}
		if l.Link.Ref == "ord_7" {
			o.Payments[slices.Min(l.IDs)] = l
		}
	}
	return o.View()
}

func types(evs []order.Event) []string {
	var out []string
	for _, ev := range evs {
		out = append(out, ev.Type)
	}
	return out
}

// permute calls f with every order of evs.
func permute(evs []order.Event, f func([]order.Event)) {
	var rec func(int)
	rec = func(k int) {
		if k == len(evs) {
			f(evs)
			return
		}
		for i := k; i < len(evs); i++ {
			evs[k], evs[i] = evs[i], evs[k]
			rec(k + 1)
			evs[k], evs[i] = evs[i], evs[k]
		}
	}
	rec(0)
}
