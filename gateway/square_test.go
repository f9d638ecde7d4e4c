package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

var _ = conforms("square", conformance{
	volatile:    map[string]string{"data.object.payment.receipt_url": "https://squareup.example/r/1"},
	unknownType: map[string]string{"type": "customer.created"},
	typ:         "payment.updated",
	amount:      "data.object.payment.total_money.amount",
	currency:    "data.object.payment.total_money.currency",
	noMode:      true,
})

func squareSource() gateway.Source {
	s := gateway.Square.Example("main")
	s.ID = "square"
	return s
}

func status(s string) map[string]string { return set("data.object.payment.status", s) }

func TestSquareFlows(t *testing.T) {
	t.Parallel()
	s := squareSource()
	refunded := func(n string) map[string]string {
		return set("data.object.payment.refunded_money", `{"amount":`+n+`,"currency":"EUR"}`)
	}
	refund := func(s string) map[string]string { return set("data.object.refund.status", s) }
	state := func(s string) map[string]string { return set("data.object.dispute.state", s) }
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "payment.created", set: status("COMPLETED")}}, "paid 5000-0-0 go"},
		{"AuthorizedThenPaid", s, []step{{typ: "payment.created"}, {typ: "payment.updated", at: 5}, {typ: "payment.updated", at: 6}}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "payment.created", set: status("PENDING")}, {typ: "payment.updated", at: 1, set: status("APPROVED")}}, "authorized 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "payment.created"}, {typ: "payment.updated", at: 5, set: status("CANCELED")}}, "canceled 0-0-0 wait"},
		{"Failed", s, []step{{typ: "payment.created", set: status("PENDING")}, {typ: "payment.updated", at: 5, set: status("FAILED")}}, "failed 0-0-0 wait"},
		{"RefundedInParts", s, []step{
			{typ: "payment.updated"},
			{typ: "refund.created", at: 5, amt: 1000, ref: "R1"},
			{typ: "refund.updated", at: 6, amt: 1000, ref: "R1"},
			{typ: "payment.updated", at: 6, set: refunded("1000")},
			{typ: "refund.updated", at: 8, amt: 1500, ref: "R2"},
			{typ: "payment.updated", at: 8, set: refunded("2500")},
		}, "partially_refunded 5000-2500-0 go"},
		{"RefundFails", s, []step{
			{typ: "payment.updated"},
			{typ: "refund.created", at: 5},
			{typ: "payment.updated", at: 5, set: refunded("5000")},
			{typ: "refund.updated", at: 9, set: refund("FAILED")},
		}, "paid 5000-0-0 go"},
		{"RefundRejectedAndTheTotalFalls", s, []step{
			{typ: "payment.updated"},
			{typ: "refund.created", at: 5, amt: 1000, ref: "R1"},
			{typ: "refund.updated", at: 6, amt: 500, ref: "R2"},
			{typ: "payment.updated", at: 7, set: refunded("1500")},
			{typ: "refund.updated", at: 9, amt: 1000, ref: "R1", set: refund("REJECTED")},
			{typ: "payment.updated", at: 9, set: refunded("500")},
		}, "partially_refunded 5000-500-0 go"},
		{"DisputeOpen", s, []step{{typ: "payment.updated"}, {typ: "dispute.created", at: 5}, {typ: "dispute.state.updated", at: 6, set: state("PROCESSING")}}, "disputed 5000-0-0 pause"},
		{"DisputeWon", s, []step{{typ: "payment.updated"}, {typ: "dispute.created", at: 5}, {typ: "dispute.state.updated", at: 6, set: state("WON")}}, "paid 5000-0-0 go"},
		{"DisputeLost", s, []step{{typ: "payment.updated"}, {typ: "dispute.created", at: 5}, {typ: "dispute.state.changed", at: 6, set: state("ACCEPTED")}}, "charged_back 5000-0-5000 stop"},
		{"InquiryBecomesADispute", s, []step{
			{typ: "payment.updated"},
			{typ: "dispute.created", at: 5, set: state("INQUIRY_EVIDENCE_REQUIRED")},
			{typ: "dispute.state.updated", at: 6, set: state("INQUIRY_CLOSED")},
			{typ: "dispute.state.updated", at: 8, set: state("EVIDENCE_REQUIRED")},
		}, "disputed 5000-0-0 pause"},
	})
}

func TestSquarePayment(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: squareSource(), Type: "payment.updated", Reference: "ord_7", Payment: "PAY1"}
	ev := sampled(t, r)
	require.Equal(t, []string{"PAY1"}, ev.Payment, "an order's id is none of a payment's")

	r.Set = map[string]string{"data.object.payment.total_money.amount": "5500", "data.object.payment.tip_money": `{"amount":500,"currency":"EUR"}`}
	require.Equal(t, &order.Amount{Minor: 5500, Currency: "EUR"}, sampled(t, r).Own, "with the tip")

	for _, bad := range []map[string]string{status("DONE"), status("completed"), set("data.object.payment.status", "null"), set("data.object.payment.id", "null")} {
		r.Set = bad
		require.NotEmpty(t, sampled(t, r).Broken, bad)
	}
	r.Set = set("data.object.payment.order_id", "sq_order_1")
	r.Source.Reference = "/data/object/payment/order_id"
	require.Equal(t, "sq_order_1", sampled(t, r).Reference)
}

func TestSquareAccount(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: squareSource(), Type: "payment.updated", Set: set("merchant_id", "OTHER")}
	require.Empty(t, sampled(t, r).Facts[0].Misfit)
	r.Source.MerchantAccounts = []string{"OURS"}
	ev := sampled(t, r)
	for _, f := range ev.Facts {
		require.Equal(t, order.MisfitAccount, f.Misfit)
	}
	require.Nil(t, ev.Own)
}

// TestSquareSignsItsURL: the URL of the configuration, never that of the request.
func TestSquareSignsItsURL(t *testing.T) {
	t.Parallel()
	s := squareSource()
	d := deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: "payment.updated"}))
	d.Header.Set("X-Forwarded-Host", "evil.example")
	require.NoError(t, gateway.Square.Verify(s, d, now))
	s.PublicURL += "/"
	require.Equal(t, signature.Mismatch, signature.ReasonOf(gateway.Square.Verify(s, d, now)))
	s.PublicURL = ""
	require.ErrorContains(t, gateway.Square.Check(s), "public_url is missing")
	require.Error(t, gateway.Square.Verify(s, d, now))
}
