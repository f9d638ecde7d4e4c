package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("paystack", conformance{
	volatile:    map[string]string{"data.log": "null", "data.ip_address": "192.0.2.9"},
	unknownType: map[string]string{"event": "transfer.success"},
	typ:         "charge.success",
	amount:      "data.amount",
	currency:    "data.currency",
	noTime:      true, // refunds and authorisations have none
})

func TestPaystackFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paystack")
	noRef := set("data.refund_reference", "null")
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "charge.success"}}, "paid 5000-0-0 go"},
		{"AuthorizedAndCaptured", s, []step{
			{typ: "preauthorization.reserve.success"}, {typ: "preauthorization.capture.success", at: 1}, {typ: "charge.success", at: 1},
		}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "preauthorization.reserve.success"}}, "authorized 0-0-0 wait"},
		{"Released", s, []step{{typ: "preauthorization.reserve.success"}, {typ: "preauthorization.release.success", at: 1}}, "canceled 0-0-0 wait"},
		{"CapturedInPart", s, []step{
			{typ: "preauthorization.reserve.success"}, {typ: "preauthorization.capture.success", at: 1, set: set("data.captured_amount", "2000")},
		}, "partially_paid 2000-0-0 wait"},
		{"TwoRefunds", s, []step{
			{typ: "charge.success"},
			{typ: "refund.pending", amt: 1000, set: noRef},
			{typ: "refund.processing", amt: 1000, ref: "1"},
			{typ: "refund.processed", amt: 1000, ref: "1"},
			{typ: "refund.processed", amt: 1500, ref: "2"},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundFails", s, []step{{typ: "charge.success"}, {typ: "refund.pending", ref: "1"}, {typ: "refund.failed", ref: "1"}}, "paid 5000-0-0 go"},
		{"DisputeOpen", s, []step{{typ: "charge.success"}, {typ: "charge.dispute.create", at: 1}, {typ: "charge.dispute.remind", at: 5}}, "disputed 5000-0-0 pause"},
		{"DisputeWithoutAmount", s, []step{{typ: "charge.success"}, {typ: "charge.dispute.create", at: 1, set: set("data.refund_amount", "null")}}, "disputed 5000-0-0 pause"},
		{"DisputeDeclined", s, []step{
			{typ: "charge.success"}, {typ: "charge.dispute.create", at: 1}, {typ: "charge.dispute.resolve", at: 5, set: set("data.resolution", "declined")},
		}, "paid 5000-0-0 go"},
		{"DisputeAccepted", s, []step{{typ: "charge.success"}, {typ: "charge.dispute.create", at: 1}, {typ: "charge.dispute.resolve", at: 5}}, "charged_back 5000-0-5000 stop"},
		{"DisputeAcceptedInPartAndItsRefund", s, []step{
			{typ: "charge.success"},
			{typ: "charge.dispute.create", at: 1},
			{typ: "charge.dispute.resolve", at: 5, amt: 2000},
			{typ: "refund.processed", amt: 2000, ref: "3"},
		}, "partially_refunded 5000-2000-0 go"},
	})
}

// TestPaystackIDs: what Paystack tells apart is told apart, and a retry is not.
func TestPaystackIDs(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "paystack")
	ids := map[string]bool{}
	for _, st := range []step{
		{typ: "charge.success"},
		{typ: "refund.pending", ref: "1"},
		{typ: "refund.processed", ref: "1"},
		{typ: "refund.processed", ref: "2"},
		{typ: "refund.processed", ref: "2", amt: 7},
		{typ: "charge.dispute.remind", at: 1},
		{typ: "charge.dispute.remind", at: 2},
		{typ: "charge.dispute.resolve", at: 2},
	} {
		ev := st.event(t, s)
		require.False(t, ids[ev.ID], ev.ID)
		ids[ev.ID] = true
		require.NotContains(t, ev.ID, "body:")
		require.Equal(t, ev.ID, st.event(t, s).ID)
	}
	pending := step{typ: "refund.pending", set: set("data.refund_reference", "null")}.event(t, s)
	require.Contains(t, pending.ID, "body:")
	require.Equal(t, gateway.NoFact, pending.Ignored)
}

// TestPaystackMode: what does not say that it is live is not.
func TestPaystackMode(t *testing.T) {
	t.Parallel()
	live := sourceNamed(t, "paystack")
	live.Mode = gateway.Live
	for domain, want := range map[string]order.Misfit{`"live"`: "", `"test"`: order.MisfitMode, `null`: order.MisfitMode, `"LIVE"`: order.MisfitMode, `true`: order.MisfitMode} {
		ev := sampled(t, gateway.SampleRequest{Source: live, Type: "charge.success", Reference: "ord_7", Set: set("data", `{"domain":`+domain+`,"reference":"x","status":"success","amount":1,"currency":"NGN"}`)})
		require.Equal(t, want, ev.Facts[0].Misfit, domain)
	}
}
