package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const razorpayPayment = "payload.payment.entity."

var _ = conforms("razorpay", conformance{
	volatile:    map[string]string{"contains": `["payment","order"]`},
	unknownType: map[string]string{"event": "settlement.processed"},
	typ:         "payment.captured",
	amount:      razorpayPayment + "amount",
	currency:    razorpayPayment + "currency",
	noMode:      true,
	alone:       []string{"payment_link.expired", "payment_link.cancelled"},
})

func TestRazorpayFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "razorpay")
	auto := set(razorpayPayment+"captured", "false")
	playFlows(t, []flow{
		{"Paid", s, []step{
			{typ: "payment.authorized"}, {typ: "payment.captured", at: 1}, {typ: "order.paid", at: 1}, {typ: "payment_link.paid", at: 1},
		}, "paid 5000-0-0 go"},
		{"ReceiptOfTheOrderAlone", s, []step{
			{typ: "payment.authorized", set: set(razorpayPayment+"notes", "[]")},
			{typ: "payment.captured", at: 1, set: set(razorpayPayment+"notes", "[]")},
			{typ: "order.paid", at: 1, set: set(razorpayPayment+"notes", "[]")},
		}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "payment.failed"}, {typ: "payment.authorized", at: 1}}, "authorized 0-0-0 wait"},
		{"Failed", s, []step{{typ: "payment.authorized"}, {typ: "payment.failed", at: 1}}, "failed 0-0-0 wait"},
		{"NeverCaptured", s, []step{
			{typ: "payment.authorized"}, {typ: "refund.created", at: 9, set: auto}, {typ: "refund.processed", at: 10, set: auto},
		}, "canceled 0-0-0 wait"},
		{"LinkExpired", s, []step{{typ: "payment_link.expired", at: 9}}, "expired 0-0-0 wait"},
		{"SecondLinkPaid", s, []step{{typ: "payment_link.cancelled", at: 3}, {typ: "payment.captured", at: 9}}, "paid 5000-0-0 go"},
		{"TwoPartialRefunds", s, []step{
			{typ: "payment.captured"},
			{typ: "refund.created", at: 5, amt: 1000, ref: "rfnd_1"},
			{typ: "refund.processed", at: 6, amt: 1000, ref: "rfnd_1"},
			{typ: "refund.processed", at: 7, amt: 1500, ref: "rfnd_2"},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundPending", s, []step{{typ: "payment.captured"}, {typ: "refund.created", at: 5}}, "paid 5000-0-0 go"},
		{"RefundFails", s, []step{
			{typ: "payment.captured"}, {typ: "refund.created", at: 5}, {typ: "refund.processed", at: 6}, {typ: "refund.failed", at: 9},
		}, "paid 5000-0-0 go"},
		{"DisputeOpen", s, []step{
			{typ: "payment.captured"},
			{typ: "payment.dispute.created", at: 5},
			{typ: "payment.dispute.under_review", at: 6},
			{typ: "payment.dispute.action_required", at: 7},
		}, "disputed 5000-0-0 pause"},
		{"OrderOfAPaymentThatIsNotCaptured", s, []step{
			{typ: "order.paid", set: map[string]string{razorpayPayment + "status": "authorized", razorpayPayment + "captured": "false"}},
			{typ: "payment_link.paid", set: map[string]string{razorpayPayment + "status": "authorized", razorpayPayment + "captured": "false"}},
		}, "authorized 0-0-0 wait"},
		{"DisputeWon", s, []step{
			{typ: "payment.captured"}, {typ: "payment.dispute.created", at: 5}, {typ: "payment.dispute.won", at: 9},
		}, "paid 5000-0-0 go"},
		{"DisputeLost", s, []step{
			{typ: "payment.captured"}, {typ: "payment.dispute.created", at: 5}, {typ: "payment.dispute.lost", at: 9},
		}, "charged_back 5000-0-5000 stop"},
		{"DisputeClosedByARefund", s, []step{
			{typ: "payment.captured"}, {typ: "payment.dispute.created", at: 5}, {typ: "refund.processed", at: 6}, {typ: "payment.dispute.closed", at: 9},
		}, "refunded 5000-5000-0 stop"},
	})
}

// TestRazorpayIDs: the id is made of what is signed, and the header that is not
// signed says nothing.
func TestRazorpayIDs(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "razorpay")
	ev := func(typ string, at int, set map[string]string) order.Event {
		return step{typ: typ, at: at, set: set}.event(t, s)
	}
	first := ev("payment.captured", 0, nil)
	require.Equal(t, "payment.captured:"+first.Payment[0]+":1767258000", first.ID)
	require.Equal(t, first.ID, ev("payment.captured", 0, set(razorpayPayment+"amount", "1")).ID, "other facts of one event: flagged where they are stored")
	require.NotEqual(t, first.ID, ev("payment.captured", 1, nil).ID)
	require.NotEqual(t, first.ID, ev("order.paid", 0, nil).ID)
	refund := ev("refund.processed", 0, nil)
	require.Contains(t, refund.ID, refund.Facts[0].Ref)
	dispute := ev("payment.dispute.won", 0, nil)
	require.Contains(t, dispute.ID, dispute.Facts[0].Ref)
}

// TestRazorpayOrderIsNoPayment: two payments of one order stay two.
func TestRazorpayOrderIsNoPayment(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "razorpay")
	ev := step{typ: "payment.captured", set: set(razorpayPayment+"order_id", "order_shared")}.event(t, s)
	require.Len(t, ev.Payment, 1)
	s.Reference = "/payload/payment/entity/order_id"
	require.Equal(t, "order_shared", step{typ: "payment.captured", set: set(razorpayPayment+"order_id", "order_shared")}.event(t, s).Reference)
}

// TestRazorpayReference: what is said of the payment comes before what is said of
// its order.
func TestRazorpayReference(t *testing.T) {
	t.Parallel()
	const orderAt = "payload.order.entity."
	r := gateway.SampleRequest{Source: sourceNamed(t, "razorpay"), Type: "order.paid", Reference: "ord_7"}
	for _, tt := range []struct{ payment, notes, want string }{
		{`{"order_id":"a"}`, `{"order_id":"b"}`, "a"},
		{`[]`, `{"order_id":"b"}`, "b"},
		{`[]`, `{"external_ref":"c"}`, "c"},
		{`[]`, `[]`, "ord_7"},
	} {
		r.Set = map[string]string{razorpayPayment + "notes": tt.payment, orderAt + "notes": tt.notes}
		require.Equal(t, tt.want, sampled(t, r).Reference, tt)
	}
}

func TestRazorpayAccount(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "razorpay")
	s.MerchantAccounts = []string{"acc_ours", "acc_too"}
	for account, want := range map[string]order.Misfit{`"acc_ours"`: "", `"acc_too"`: "", `"acc_theirs"`: order.MisfitAccount, `null`: order.MisfitAccount, `7`: order.MisfitAccount} {
		ev := sampled(t, gateway.SampleRequest{Source: s, Type: "payment.captured", Reference: "ord_7", Set: set("account_id", account)})
		require.Equal(t, want, ev.Facts[0].Misfit, account)
		require.Equal(t, want == "", ev.Own != nil)
	}
}
