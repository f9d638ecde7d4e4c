package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

var _ = conforms("checkout", conformance{
	volatile:    map[string]string{"action_invocations": `[{"workflow_id":"wf_2"}]`, "_links": "{}"},
	unknownType: map[string]string{"type": "card_verified"},
	typ:         "payment_captured",
	amount:      "data.amount",
	currency:    "data.currency",
	noMode:      true,
})

// balances sets how much of a payment is captured and refunded by now.
func balances(captured, refunded string) map[string]string {
	return map[string]string{"data.balances.total_captured": captured, "data.balances.total_refunded": refunded}
}

func TestCheckoutFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "checkout")
	playFlows(t, []flow{
		{"Paid", s, []step{
			{typ: "payment_pending"}, {typ: "payment_approved", at: 1}, {typ: "payment_capture_pending", at: 2}, {typ: "payment_captured", at: 3},
		}, "paid 5000-0-0 go"},
		{"TwoCaptures", s, []step{
			{typ: "payment_approved"},
			{typ: "payment_captured", at: 2, amt: 2000, ref: "act_1", set: balances("2000", "0")},
			{typ: "payment_captured", at: 3, amt: 3000, ref: "act_2", set: balances("5000", "0")},
		}, "paid 5000-0-0 go"},
		{"FirstCaptureLost", s, []step{{typ: "payment_captured", at: 3, amt: 3000, ref: "act_2", set: balances("5000", "0")}}, "paid 5000-0-0 go"},
		{"CapturesWithoutBalances", s, []step{
			{typ: "payment_captured", at: 2, amt: 2000, ref: "act_1", set: set("data.balances", "null")},
			{typ: "payment_captured", at: 3, amt: 3000, ref: "act_2", set: set("data.balances", "null")},
		}, "paid 5000-0-0 go"},
		{"CaptureDeclined", s, []step{{typ: "payment_approved"}, {typ: "payment_capture_pending", at: 1}, {typ: "payment_capture_declined", at: 2}}, "authorized 0-0-0 wait"},
		{"Declined", s, []step{{typ: "payment_pending"}, {typ: "payment_declined", at: 1}}, "failed 0-0-0 wait"},
		{"Voided", s, []step{{typ: "payment_approved"}, {typ: "payment_voided", at: 1}}, "canceled 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "payment_pending"}, {typ: "payment_canceled", at: 1}}, "canceled 0-0-0 wait"},
		{"Expired", s, []step{{typ: "payment_pending"}, {typ: "payment_expired", at: 1}}, "expired 0-0-0 wait"},
		{"Incremented", s, []step{
			{typ: "payment_approved", amt: 3000},
			{typ: "payment_authorization_incremented", at: 1, amt: 2000, set: set("data.balances.total_authorized", "5000")},
		}, "authorized 0-0-0 wait"},
		{"TwoRefunds", s, []step{
			{typ: "payment_captured"},
			{typ: "payment_refund_pending", at: 1, amt: 1000, ref: "act_r1"},
			{typ: "payment_refunded", at: 2, amt: 1000, ref: "act_r1", set: balances("5000", "1000")},
			{typ: "payment_refunded", at: 3, amt: 1500, ref: "act_r2", set: balances("5000", "2500")},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundDeclined", s, []step{{typ: "payment_captured"}, {typ: "payment_refund_pending", at: 1, ref: "act_r1"}, {typ: "payment_refund_declined", at: 2, ref: "act_r1"}}, "paid 5000-0-0 go"},
		{"ReturnedByTheBank", s, []step{{typ: "payment_captured"}, {typ: "payment_returned", at: 9, ref: "act_b1"}}, "charged_back 5000-0-5000 stop"},
		{"RefundedInPartThenReturned", s, []step{
			{typ: "payment_captured"},
			{typ: "payment_refunded", at: 2, amt: 1000, ref: "act_r1", set: balances("5000", "1000")},
			{typ: "payment_returned", at: 9, amt: 4000, ref: "act_b1"},
		}, "charged_back 5000-1000-4000 stop"},
		{"ReturnedPayout", s, []step{{typ: "payment_returned", ref: "act_b1"}}, "pending 0-0-0 wait"},
		{"DisputeOpen", s, []step{{typ: "payment_captured"}, {typ: "dispute_received", at: 1}, {typ: "dispute_evidence_required", at: 2}, {typ: "dispute_evidence_submitted", at: 3}}, "disputed 5000-0-0 pause"},
		{"DisputeWon", s, []step{{typ: "payment_captured"}, {typ: "dispute_received", at: 1}, {typ: "dispute_won", at: 2}}, "paid 5000-0-0 go"},
		{"DisputeLost", s, []step{{typ: "payment_captured"}, {typ: "dispute_evidence_required", at: 1}, {typ: "dispute_expired", at: 2}}, "charged_back 5000-0-5000 stop"},
		{"LostAndWonInArbitration", s, []step{
			{typ: "payment_captured"}, {typ: "dispute_lost", at: 1}, {typ: "dispute_arbitration_evidence_submitted", at: 2}, {typ: "dispute_arbitration_won", at: 3},
		}, "paid 5000-0-0 go"},
	})
}

// TestCheckoutAuthorization: a delivery without the header that was agreed is
// refused before its signature is looked at.
func TestCheckoutAuthorization(t *testing.T) {
	t.Parallel()
	g := gateway.Checkout
	s := sourceNamed(t, "checkout")
	bare := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "payment_captured"}))

	s.Authorization = "Bearer 5f1a-made-up"
	require.NoError(t, g.Check(s))
	require.Equal(t, signature.Missing, signature.ReasonOf(g.Verify(s, bare, now)))
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "payment_captured"}))
	require.Equal(t, s.Authorization, d.Header.Get("Authorization"))
	require.NotContains(t, g.Keep(d.Header), "Authorization")

	for _, other := range []string{"Bearer 5f1a-made-u", "Bearer 5f1a-made-up1", "bearer 5f1a-made-up", "5f1a-made-up", "Basic NWYxYS1tYWRlLXVw"} {
		bad := d
		bad.Header = d.Header.Clone()
		bad.Header.Set("Authorization", other)
		err := g.Verify(s, bad, now)
		require.Equal(t, signature.Mismatch, signature.ReasonOf(err), other)
		require.NotContains(t, err.Error(), "made-up")
	}
	twice := d
	twice.Header = d.Header.Clone()
	twice.Header.Add("Authorization", s.Authorization)
	require.Error(t, g.Verify(s, twice, now))

	unsigned := d
	unsigned.Header = d.Header.Clone()
	unsigned.Header.Del("Cko-Signature")
	require.Equal(t, signature.Missing, signature.ReasonOf(g.Verify(s, unsigned, now)), "the header replaces no signature")

	s.Authorization = "two\nlines"
	err := g.Check(s)
	require.ErrorContains(t, err, "authorization")
	require.NotContains(t, err.Error(), "lines")

	other := sourceNamed(t, "razorpay")
	other.Authorization = "x"
	require.ErrorContains(t, gateway.Razorpay.Check(other), "authorization is no option of gateway razorpay")
}
