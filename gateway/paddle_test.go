package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

var _ = conforms("paddle", conformance{
	volatile:    map[string]string{"notification_id": "ntf_of_a_replay"},
	unknownType: map[string]string{"event_type": "subscription.activated"},
	typ:         "transaction.completed",
	amount:      "data.details.totals.grand_total",
	currency:    "data.currency_code",
	badAmounts:  minorTexts,
	noMode:      true,
})

// minorTexts are what is no amount where amounts are texts of digits.
var minorTexts = []string{
	`null`, `"abc"`, `"50.00"`, `"-5000"`, `"+5000"`, `"5e3"`, `"05000"`, `""`, `" 5000"`, `"9223372036854775807"`, `"9223372036854775808"`, `true`, `{}`,
}

// chargeback makes an adjustment of that kind of the whole payment.
func chargeback(kind string) map[string]string {
	return map[string]string{"data.action": kind, "data.status": "approved", "data.id": "adj_" + kind}
}

func TestPaddleFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paddle")
	playFlows(t, []flow{
		{"Paid", s, []step{
			{typ: "transaction.created"}, {typ: "transaction.ready", at: 1}, {typ: "transaction.paid", at: 2}, {typ: "transaction.completed", at: 3},
		}, "paid 5000-0-0 go"},
		{"PaidAtThirdTry", s, []step{
			{typ: "transaction.payment_failed"}, {typ: "transaction.payment_failed", at: 1}, {typ: "transaction.paid", at: 2}, {typ: "transaction.updated", at: -1},
		}, "paid 5000-0-0 go"},
		{"Failed", s, []step{{typ: "transaction.ready"}, {typ: "transaction.payment_failed", at: 1}}, "failed 0-0-0 wait"},
		{"PastDue", s, []step{{typ: "transaction.created"}, {typ: "transaction.past_due", at: 9}}, "failed 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "transaction.billed"}, {typ: "transaction.canceled", at: 9}}, "canceled 0-0-0 wait"},
		{"RefundWaits", s, []step{{typ: "transaction.completed"}, {typ: "adjustment.created", at: 5}}, "paid 5000-0-0 go"},
		{"RefundApproved", s, []step{
			{typ: "transaction.completed"},
			{typ: "adjustment.created", at: 5, amt: 1000},
			{typ: "adjustment.updated", at: 6, amt: 1000},
			{typ: "transaction.revised", at: 7},
		}, "partially_refunded 5000-1000-0 go"},
		{"RefundRejected", s, []step{
			{typ: "transaction.completed"}, {typ: "adjustment.created", at: 5}, {typ: "adjustment.updated", at: 6, set: set("data.status", "rejected")},
		}, "paid 5000-0-0 go"},
		{"ChargebackWarned", s, []step{
			{typ: "transaction.completed"}, {typ: "adjustment.created", at: 5, set: chargeback("chargeback_warning")},
		}, "disputed 5000-0-0 pause"},
		{"ChargedBack", s, []step{
			{typ: "transaction.completed"},
			{typ: "adjustment.created", at: 5, set: chargeback("chargeback_warning")},
			{typ: "adjustment.created", at: 6, set: chargeback("chargeback")},
		}, "charged_back 5000-0-5000 stop"},
		{"ChargebackReversed", s, []step{
			{typ: "transaction.completed"},
			{typ: "adjustment.created", at: 5, set: chargeback("chargeback_warning")},
			{typ: "adjustment.created", at: 6, set: chargeback("chargeback")},
			{typ: "adjustment.created", at: 8, set: chargeback("chargeback_reverse")},
		}, "paid 5000-0-0 go"},
		{"ChargebackReversedByItsStatus", s, []step{
			{typ: "transaction.completed"},
			{typ: "adjustment.created", at: 6, set: chargeback("chargeback")},
			{typ: "adjustment.updated", at: 8, set: map[string]string{"data.action": "chargeback", "data.status": "reversed"}},
		}, "paid 5000-0-0 go"},
	})
}

// TestPaddleLateSnapshot: what came before says nothing any more, however late it
// arrives, and what was lost on the way is not missed.
func TestPaddleLateSnapshot(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paddle")
	ready := step{typ: "transaction.ready", at: 1}.event(t, s)
	require.Len(t, ready.Facts, 2)
	require.Equal(t, now.Add(time.Minute).UnixMicro(), ready.Facts[1].Seq)
	require.Zero(t, ready.Facts[1].Amount)
	require.Nil(t, ready.Own, "what is not paid may still change")
}

// TestPaddleSubscription: what a subscription charges later carries the custom data
// of its first sale, and is no payment of that order.
func TestPaddleSubscription(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paddle")
	for origin, want := range map[string]string{
		`"web"`: "ord_7", `"api"`: "ord_7", `null`: "ord_7",
		`"subscription_recurring"`: "", `"subscription_charge"`: "", `"subscription_update"`: "", `"subscription_payment_method_change"`: "",
	} {
		st := step{typ: "transaction.completed", set: set("data.origin", origin)}
		s.Reference = ""
		require.Equal(t, want, st.event(t, s).Reference, origin)
		s.Reference = "/data/custom_data/order_id"
		require.Equal(t, "ord_7", st.event(t, s).Reference, "the merchant says so")
	}
}

// TestPaddleSimulator: what Paddle's simulator sends is signed like everything else,
// and is no money.
func TestPaddleSimulator(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paddle")
	for id, want := range map[string]order.Misfit{"ntfsimevt_01kdx8w2b3c4d5e6f7g8h9j0k1": order.MisfitMode, "evt_01kdx8w2b3c4d5e6f7g8h9j0k1": ""} {
		s.Mode = gateway.Live
		ev := sampled(t, gateway.SampleRequest{Source: s, Type: "transaction.completed", ID: id, Reference: "ord_7"})
		require.Equal(t, want, ev.Facts[0].Misfit, id)
		require.Equal(t, want != "", ev.Own == nil, id)
		s.Mode = gateway.Test
		require.Empty(t, sampled(t, gateway.SampleRequest{Source: s, Type: "transaction.completed", ID: id, Reference: "ord_7"}).Facts[0].Misfit, id)
	}
}

// TestPaddleTolerance: a queue between Paddle and us may need more time.
func TestPaddleTolerance(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paddle")
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "transaction.paid"}))
	late := now.Add(20 * time.Minute)
	require.Equal(t, signature.Stale, signature.ReasonOf(gateway.Paddle.Verify(s, d, late)))
	s.Tolerance = 30 * time.Minute
	require.NoError(t, gateway.Paddle.Check(s))
	require.NoError(t, gateway.Paddle.Verify(s, d, late))
	s.Tolerance = -1
	require.ErrorContains(t, gateway.Paddle.Check(s), "tolerance")
}
