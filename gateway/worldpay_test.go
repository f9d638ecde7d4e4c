package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("worldpay", conformance{
	volatile:    map[string]string{"_links": `{"self":{"href":"https://access.example/1"}}`},
	unknownType: map[string]string{"eventDetails.type": "brandNew"},
	typ:         "sentForSettlement",
	amount:      "eventDetails.amount.value",
	currency:    "eventDetails.amount.currencyCode",
	noMode:      true,
	noTime:      true, // it has no zone
	oneName:     true,
})

func worldpaySource() gateway.Source {
	s := gateway.Worldpay.Example("main")
	s.ID = "worldpay"
	return s
}

func TestWorldpayIsRefusedByDefault(t *testing.T) {
	t.Parallel()
	s := worldpaySource()
	require.NoError(t, gateway.Worldpay.Check(s))
	s.Unconfirmed = false
	require.ErrorContains(t, gateway.Worldpay.Check(s), "unconfirmed is not true")
}

func TestWorldpayReferences(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: worldpaySource(), Type: "sentForRefund", ID: "EV1", Reference: "ord_7", Ref: "R1"}
	require.Equal(t, "R1", sampled(t, r).Facts[0].Ref)
	r.Set = set("eventDetails.reference", "null")
	require.Equal(t, "EV1", sampled(t, r).Facts[0].Ref, "two refunds must not become one")
	r.Type = "refundFailed"
	require.Equal(t, gateway.NoFact, sampled(t, r).Ignored, "nobody knows which refund")
	r.Type = "sentForSettlement"
	ev := sampled(t, r)
	require.Equal(t, "ord_7", ev.Facts[0].Ref)
	require.Equal(t, order.StrengthPayment, ev.Strength)
	require.True(t, ev.At.IsZero(), "a time without a zone")
}

// TestWorldpayYen: "a whole number with an exponent of 2", says the page, also of
// currencies that have no decimals.
func TestWorldpayYen(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int64{"500000": 5000, "5000": 50} {
		ev := sampled(t, gateway.SampleRequest{
			Source: worldpaySource(), Type: "sentForSettlement", Reference: "ord_7", Amount: order.Amount{Minor: 5000, Currency: "JPY"},
			Set: set("eventDetails.amount.value", value),
		})
		require.Equal(t, want, ev.Facts[0].Amount, value)
	}
}

func TestWorldpayFlows(t *testing.T) {
	t.Parallel()
	s := worldpaySource()
	again := func(typ string) map[string]string { return set("eventDetails.type", typ) }
	playFlows(t, []flow{
		{"Authorized", s, []step{{typ: "sentForAuthorization"}, {typ: "authorized", at: 1}}, "authorized 0-0-0 wait"},
		{"Paid", s, []step{{typ: "sentForAuthorization"}, {typ: "authorized", at: 1}, {typ: "sentForSettlement", at: 9}, {typ: "sentForSettlement", at: 99, set: again("settled")}}, "paid 5000-0-0 go"},
		{"PaidInParts", s, []step{{typ: "authorized"}, {typ: "sentForSettlement", at: 9, amt: 2000, ref: "S1"}, {typ: "sentForSettlement", at: 19, amt: 3000, ref: "S2"}}, "paid 5000-0-0 go"},
		{"PartsWithoutNamesCountOnce", s, []step{{typ: "authorized"}, {typ: "sentForSettlement", at: 9, amt: 2000}, {typ: "sentForSettlement", at: 19, amt: 3000}}, "partially_paid 3000-0-0 wait"},
		{"Refused", s, []step{{typ: "sentForAuthorization"}, {typ: "refused", at: 1}}, "failed 0-0-0 wait"},
		{"Error", s, []step{{typ: "sentForAuthorization"}, {typ: "error", at: 1}}, "failed 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "authorized"}, {typ: "cancelled", at: 9}}, "canceled 0-0-0 wait"},
		{"Expired", s, []step{{typ: "authorized"}, {typ: "expired", at: 99}}, "expired 0-0-0 wait"},
		{"RefundedInParts", s, []step{
			{typ: "sentForSettlement"},
			{typ: "sentForRefund", at: 9, amt: 1000, ref: "R1"},
			{typ: "sentForRefund", at: 10, amt: 1000, ref: "R1", set: again("refunded")},
			{typ: "sentForRefund", at: 19, amt: 1000, ref: "R2"},
		}, "partially_refunded 5000-2000-0 go"},
		{"RefundFails", s, []step{{typ: "sentForSettlement"}, {typ: "sentForRefund", at: 9}, {typ: "refundFailed", at: 19}}, "paid 5000-0-0 go"},
		{"SettlementFails", s, []step{{typ: "authorized"}, {typ: "sentForSettlement", at: 9}, {typ: "settlementFailed", at: 19}}, "authorized 0-0-0 stop"},
		{"OneOfTwoSettlementsFails", s, []step{
			{typ: "authorized"},
			{typ: "sentForSettlement", at: 9, amt: 2000, ref: "S1"},
			{typ: "sentForSettlement", at: 9, amt: 3000, ref: "S2"},
			{typ: "settlementFailed", at: 19, amt: 2000, ref: "S1"},
		}, "partially_paid 3000-0-0 wait"},
		{"NobodySaysWhichSettlementFailed", s, []step{
			{typ: "sentForSettlement", at: 9, amt: 2000, ref: "S1"},
			{typ: "sentForSettlement", at: 9, amt: 3000, ref: "S2"},
			{typ: "settlementFailed", at: 19, amt: 2000},
		}, "partially_refunded 5000-0-2000 pause"},
		{"ChargedBack", s, []step{{typ: "sentForSettlement"}, {typ: "informationRequested", at: 9}, {typ: "chargedBack", at: 19}}, "charged_back 5000-0-5000 stop"},
		{"ChargedBackInPart", s, []step{{typ: "sentForSettlement"}, {typ: "chargedBack", at: 19, amt: 1000}}, "partially_refunded 5000-0-1000 pause"},
		{"Disputed", s, []step{{typ: "sentForSettlement"}, {typ: "informationRequested", at: 9}}, "disputed 5000-0-0 pause"},
	})
}
