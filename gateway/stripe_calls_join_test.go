package gateway_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// stripeTold is a webhook about the payment of the movements.
func stripeTold(t testing.TB, typ string, amount order.Amount, at time.Time, set map[string]string) order.Event {
	t.Helper()
	all := map[string]string{"data.object.metadata": `{"order_id":"ord_7"}`}
	switch {
	case strings.HasPrefix(typ, "payment_intent."):
		all["data.object.latest_charge"] = stripeCH
	case strings.HasPrefix(typ, "refund."):
		all["data.object.charge"] = stripeCH
	default:
		all["data.object.id"] = stripeCH
	}
	for name, text := range set {
		all[name] = text
	}
	return sampled(t, gateway.SampleRequest{
		Source: askingStripe(), Type: typ, Payment: stripePI, Ref: stripeRE, Reference: "ord_7", Amount: amount, At: at, Set: all,
	})
}

// TestStripeJoins: what a call of ours is answered, what looking it up tells, and the webhooks about the same are one entry of
// the ledger, whichever comes first, and however often.
func TestStripeJoins(t *testing.T) {
	t.Parallel()
	s := askingStripe()
	whole := order.Amount{Minor: 5000, Currency: "EUR"}
	at := func(minute int) time.Time { return now.Add(time.Duration(minute-10) * time.Minute) }
	authorized := stripeTold(t, "payment_intent.amount_capturable_updated", whole, at(0), nil)
	captured := stripeTold(t, "payment_intent.succeeded", whole, at(1), nil)
	refund := stripeMovement(order.MovementRefund, "1500 EUR")
	capture := stripeMovement(order.MovementCapture, "2000 EUR")
	void := stripeMovement(order.MovementVoid, "5000 EUR")
	old := map[string]string{"api_version": "2020-08-27"}
	totals := func(captured, refunded int, more map[string]string) map[string]string {
		set := map[string]string{
			"data.object.amount": "5000", "data.object.amount_captured": strconv.Itoa(captured), "data.object.amount_refunded": strconv.Itoa(refunded),
		}
		for name, text := range more {
			set[name] = text
		}
		return set
	}
	for _, row := range []struct {
		name     string
		m        order.Movement
		answer   string
		was      []order.Event
		webhooks []order.Event

		refundable, capturable int64
		phase                  order.Status
	}{
		{
			"Refund", refund, stripeDoes(t, refund),
			[]order.Event{authorized, captured},
			[]order.Event{stripeTold(t, "refund.created", refund.Amount, at(2), nil), stripeTold(t, "charge.refunded", whole, at(2), totals(5000, 1500, nil))},
			3500, 0, order.StatusAuthorized,
		},
		{
			"RefundThatFailsLater", refund, strings.Replace(stripeDoes(t, refund), "succeeded", "pending", 1),
			[]order.Event{authorized, captured},
			[]order.Event{
				stripeTold(t, "refund.created", refund.Amount, at(2), nil), stripeTold(t, "charge.refunded", whole, at(2), totals(5000, 1500, nil)),
				stripeTold(t, "refund.failed", refund.Amount, at(9), nil),
			},
			5000, 0, order.StatusAuthorized,
		},
		{
			"RefundThatWaitsForThePayer", refund, strings.Replace(stripeDoes(t, refund), "succeeded", "requires_action", 1),
			[]order.Event{authorized, captured},
			[]order.Event{stripeTold(t, "refund.updated", refund.Amount, at(3), nil)},
			3500, 0, order.StatusAuthorized,
		},
		{
			"Capture", capture, stripeDoes(t, capture),
			[]order.Event{authorized},
			[]order.Event{
				stripeTold(t, "payment_intent.succeeded", capture.Amount, at(2), map[string]string{"data.object.amount": "5000"}),
				stripeTold(t, "charge.captured", whole, at(2), totals(2000, 0, nil)),
			},
			2000, 3000, order.StatusAuthorized, // the rest is let go, and no event of Stripe's says so: Stripe refuses a second capture
		},
		{
			"CaptureInAnOldVersion", capture, stripeDoes(t, capture),
			[]order.Event{authorized},
			[]order.Event{stripeTold(t, "charge.captured", whole, at(2), totals(2000, 3000, old))},
			2000, 0, order.StatusAuthorized,
		},
		{
			"Void", void, stripeDoes(t, void),
			[]order.Event{authorized},
			[]order.Event{stripeTold(t, "payment_intent.canceled", whole, time.Unix(1767258001, 0), nil)},
			0, 0, order.StatusCanceled,
		},
		{
			"VoidToldALittleLater", void, stripeDoes(t, void),
			[]order.Event{authorized},
			[]order.Event{stripeTold(t, "payment_intent.canceled", whole, time.Unix(1767258004, 0), nil)},
			0, 0, order.StatusCanceled,
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			v := judged(t, s, row.m, answered(200, row.answer), false)
			require.Equal(t, gateway.Done, v.Ruling)
			lookup := row.answer
			if row.m.Kind == order.MovementRefund {
				lookup = stripeListOf(false, row.answer)
			}
			found := judged(t, s, row.m, answered(200, lookup), true)
			require.Equal(t, v.Events, found.Events, "looking it up tells something else")

			// What Stripe said alone: the money is moved already.
			alone := ledgerOf(append(row.was[:len(row.was):len(row.was)], v.Events...))
			if row.m.Kind == order.MovementVoid {
				require.Equal(t, order.StatusCanceled, alone.Phase.Status)
			}
			told := ledgerOf(append(row.was[:len(row.was):len(row.was)], row.webhooks...))
			want := ledgerOf(append(append(row.was[:len(row.was):len(row.was)], v.Events...), row.webhooks...))
			require.Equal(t, want, told, "the answer adds to what the webhooks tell")
			for _, all := range orders(append(row.webhooks[:len(row.webhooks):len(row.webhooks)], v.Events...)) {
				require.Equal(t, want, ledgerOf(append(row.was[:len(row.was):len(row.was)], all...)))
			}
			for _, l := range []*order.Ledger{want, alone} {
				if row.name == "RefundThatFailsLater" && l == alone {
					continue
				}
				left, _ := l.Movable(order.MovementRefund, "EUR")
				require.Equal(t, row.refundable, left)
				if row.name != "CaptureInAnOldVersion" || l != alone { // that the rest is let go, only the webhook says
					left, _ = l.Movable(order.MovementCapture, "EUR")
					require.Equal(t, row.capturable, left)
				}
				require.Equal(t, row.phase, l.Phase.Status)
			}
		})
	}
}

// TestStripeCaptureOfChargeJoins: the answer is in a version that says what it means, so that a capture of a part, whose rest older
// versions book as refunded, is not taken for a refund.
func TestStripeCaptureOfChargeJoins(t *testing.T) {
	t.Parallel()
	m := bareMovement(order.MovementCapture, "2000 EUR")
	call, err := gateway.Stripe.Calls.Make(askingStripe(), m)
	require.NoError(t, err)
	require.Equal(t, "2025-03-31.basil", call.Header.Get("Stripe-Version"))
	v := judged(t, askingStripe(), m, answered(200, stripeChargeOf(m, true, 2000)), false)
	hook := sampled(t, gateway.SampleRequest{
		Source: askingStripe(), Type: "charge.captured", Payment: stripeBareCH, Reference: "ord_7", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now,
		Set: map[string]string{"api_version": "2020-08-27", "data.object.amount_captured": "2000", "data.object.amount_refunded": "3000"},
	})
	want := ledgerOf([]order.Event{hook})
	require.Equal(t, want, ledgerOf([]order.Event{hook, v.Events[0]}))
	require.Equal(t, want, ledgerOf([]order.Event{v.Events[0], hook}))
	left, err := want.Movable(order.MovementRefund, "EUR")
	require.NoError(t, err)
	require.EqualValues(t, 2000, left)
}

// TestStripeVoidGoesByTheirClock: where our clock is behind Stripe's, the cancellation is still later than what went before it.
func TestStripeVoidGoesByTheirClock(t *testing.T) {
	t.Parallel()
	m := stripeMovement(order.MovementVoid, "5000 EUR")
	r := answered(200, stripeDoes(t, m))
	r.Started = now.Add(-time.Hour)
	v := judged(t, askingStripe(), m, r, false)
	authorized := stripeTold(t, "payment_intent.amount_capturable_updated", m.Amount, now.Add(-time.Minute), nil)
	require.Equal(t, order.StatusCanceled, ledgerOf([]order.Event{v.Events[0], authorized}).Phase.Status)

	// One that was looked up and is as it was tells no phase: ahead of Stripe's, our clock would outdo a cancellation that follows.
	r = answered(200, stripeHasNotDone(t, m))
	r.Started = now.Add(time.Hour)
	require.Empty(t, judged(t, askingStripe(), m, r, true).Events)
}

// TestStripeAbout: what is asked about to learn how a payment stands.
func TestStripeAbout(t *testing.T) {
	t.Parallel()
	about := gateway.Stripe.Fetch.About
	ids := []string{"ch_1", "cs_test_1", "in_1", "pi_1", "pi_1/../x", "re_1"}
	require.Empty(t, about(stripeSource(), ids), "without a key nothing is asked")
	require.Equal(t, []gateway.Object{{Kind: "payment_intent", ID: "pi_1"}, {Kind: "charge", ID: "ch_1"}}, about(askingStripe(), ids))
	require.Equal(t, []gateway.Object{{Kind: "charge", ID: "py_1"}}, about(askingStripe(), []string{"py_1"}))
	require.Empty(t, about(askingStripe(), []string{"cs_test_1", "in_1"}))
	many := []string{"pi_1"}
	for i := range 99 {
		many = append(many, "ch_"+strconv.Itoa(i))
	}
	slices.Sort(many)
	objects := about(askingStripe(), many)
	require.Len(t, objects, 10)
	require.Equal(t, "payment_intent/pi_1", objects[0].String())
	for _, o := range objects {
		_, err := gateway.Stripe.Fetch.Call(askingStripe(), o)
		require.NoError(t, err)
	}
}
