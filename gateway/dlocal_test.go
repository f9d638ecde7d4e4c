package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("dlocal", conformance{
	volatile: map[string]string{"notification_url": "https://shop.example/other"}, unknownType: map[string]string{"status": "MOVED"},
	typ: "payment.PAID", amount: "amount", currency: "currency",
	badAmounts: append([]string{`-50.00`, `50.001`, `5e3`, `92233720368547758.07`, `99999999999999999999`}, decimals...),
	noMode:     true,
})

// TestDLocalObjects: refunds and chargebacks name their payment, and captures
// their authorisation.
func TestDLocalObjects(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "dlocal")
	for _, tt := range []struct {
		name, body string
		want       string
		payment    []string
		facts      []order.Fact
		strength   order.Strength
	}{
		{
			"Payment", `{"id":"D-4-1","status":"PAID","amount":72.10,"currency":"BRL","order_id":"ord_7"}`,
			"payment.PAID",
			[]string{"D-4-1"},
			[]order.Fact{{Kind: order.KindCaptured, Amount: 7210, Currency: "BRL"}},
			order.StrengthPayment,
		},
		{
			"Capture", `{"id":"D-4-2","authorization_id":"D-4-1","status":"PAID","amount":"20","currency":"CLP","order_id":"ord_7"}`,
			"payment.PAID",
			[]string{"D-4-1", "D-4-2"},
			[]order.Fact{{Kind: order.KindCaptured, Ref: "D-4-2", Status: order.StatusOK, Amount: 20, Currency: "CLP"}},
			order.StrengthModification,
		},
		{
			"CaptureUnderWay", `{"id":"D-4-2","authorization_id":"D-4-1","status":"PENDING","amount":20,"currency":"BRL","order_id":"ord_7"}`,
			"payment.PENDING",
			[]string{"D-4-1", "D-4-2"},
			[]order.Fact{{Kind: order.KindCaptured, Ref: "D-4-2", Status: order.StatusPending, Amount: 2000, Currency: "BRL"}},
			order.StrengthModification,
		},
		{ // of a capture that is rejected the authorisation stays
			"CaptureRejected", `{"id":"D-4-2","authorization_id":"D-4-1","status":"REJECTED","amount":20,"currency":"BRL","order_id":"ord_7"}`,
			"payment.REJECTED",
			[]string{"D-4-1", "D-4-2"},
			[]order.Fact{{Kind: order.KindCaptured, Ref: "D-4-2", Status: order.StatusDenied, Amount: 2000, Currency: "BRL"}},
			order.StrengthModification,
		},
		{
			"PendingRefund", `{"id":"R-4-1","payment_id":"D-4-1","status":"PENDING","status_detail":"The refund is pending.","amount":20,"currency":"BRL","order_id":"ord_7"}`,
			"refund.PENDING",
			[]string{"D-4-1"},
			[]order.Fact{{Kind: order.KindRefunded, Ref: "R-4-1", Status: order.StatusPending, Amount: 2000, Currency: "BRL"}},
			order.StrengthModification,
		},
		{
			"PendingChargebackByItsDetail", `{"id":"C-4-1","payment_id":"D-4-1","status":"PENDING","status_detail":"The chargeback is pending.","amount":20,"currency":"BRL","order_id":"ord_7"}`,
			"chargeback.PENDING",
			[]string{"D-4-1"},
			[]order.Fact{{Kind: order.KindDisputed, Ref: "C-4-1", Status: order.StatusOpen, Seq: 2, Amount: 2000, Currency: "BRL"}},
			order.StrengthModification,
		},
		{
			"PendingChargebackByItsID", `{"id":"CHAR42","payment_id":"D-4-1","status":"PENDING","amount":20,"currency":"BRL","order_id":"ord_7"}`,
			"chargeback.PENDING",
			[]string{"D-4-1"},
			[]order.Fact{{Kind: order.KindDisputed, Ref: "CHAR42", Status: order.StatusOpen, Seq: 2, Amount: 2000, Currency: "BRL"}},
			order.StrengthModification,
		},
	} {
		ev := mapped(t, source, tt.body)
		require.Empty(t, ev.Broken, tt.name)
		require.Equal(t, tt.want, ev.Type, tt.name)
		require.Equal(t, tt.payment, ev.Payment, tt.name)
		require.Equal(t, tt.facts, ev.Facts, tt.name)
		require.Equal(t, tt.strength, ev.Strength, tt.name)
		require.Equal(t, "ord_7", ev.Reference, tt.name)
		require.Equal(t, tt.strength == order.StrengthPayment, ev.Own != nil, tt.name)
	}
}

// TestDLocalMovesNothing: a card that was checked is known and no money; what is
// neither payment, refund nor chargeback is not.
func TestDLocalMovesNothing(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "dlocal")
	require.Equal(t, gateway.NoFact, mapped(t, source, `{"id":"D-4-1","status":"VERIFIED","amount":0,"currency":"BRL"}`).Ignored)
	require.Equal(t, gateway.UnknownType, mapped(t, source, `{"id":"D-4-1","payment_id":"D-4-0","status":"PAID","amount":1,"currency":"BRL"}`).Ignored)
	require.NotEmpty(t, mapped(t, source, `{"id":"D-4-1","amount":1,"currency":"BRL"}`).Broken)
	require.NotEmpty(t, mapped(t, source, `{"id":"R-1","payment_id":7,"status":"SUCCESS","amount":1,"currency":"BRL"}`).Broken)
	require.NotEmpty(t, mapped(t, source, `{"id":"D-1","authorization_id":{},"status":"PAID","amount":1,"currency":"BRL"}`).Broken)
}

func TestDLocalFlows(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "dlocal")
	auth := set("id", "D-4-AUTH")
	capture := func(id string) map[string]string {
		return map[string]string{"authorization_id": "D-4-AUTH", "id": id}
	}
	playFlows(t, []flow{
		{"Ticket", source, []step{{typ: "payment.PENDING"}, {typ: "payment.PAID", at: 60}}, "paid 5000-0-0 go"},
		{"TicketExpired", source, []step{{typ: "payment.PENDING"}, {typ: "payment.EXPIRED", at: 60}}, "expired 0-0-0 wait"},
		{"Rejected", source, []step{{typ: "payment.PENDING"}, {typ: "payment.REJECTED", at: 1}}, "failed 0-0-0 wait"},
		{"Authorized", source, []step{{typ: "payment.PENDING"}, {typ: "payment.AUTHORIZED", at: 1}}, "authorized 0-0-0 wait"},
		{"AuthorizationCancelled", source, []step{{typ: "payment.AUTHORIZED"}, {typ: "payment.CANCELLED", at: 1}}, "canceled 0-0-0 wait"},
		{"TwoCaptures", source, []step{
			{typ: "payment.AUTHORIZED", set: auth},
			{typ: "payment.PAID", at: 5, amt: 2000, set: capture("D-4-C1")},
			{typ: "payment.PAID", at: 6, amt: 3000, set: capture("D-4-C2")},
		}, "paid 5000-0-0 go"},
		{"CapturedAndAuthorizationPaid", source, []step{ // the same money, told twice
			{typ: "payment.AUTHORIZED", set: auth},
			{typ: "payment.PAID", at: 5, set: capture("D-4-C1")},
			{typ: "payment.PAID", at: 6, set: auth},
		}, "paid 5000-0-0 go"},
		{"CaptureRejected", source, []step{
			{typ: "payment.AUTHORIZED", set: auth}, {typ: "payment.REJECTED", at: 5, set: capture("D-4-C1")},
		}, "authorized 0-0-0 wait"},
		{"RefundOfACapture", source, []step{ // the refund knows the capture alone
			{typ: "payment.AUTHORIZED", set: auth},
			{typ: "payment.PAID", at: 5, set: capture("D-4-C1")},
			{typ: "refund.SUCCESS", at: 9, amt: 1000, set: set("payment_id", "D-4-C1")},
		}, "partially_refunded 5000-1000-0 go"},
		{"PartialRefunds", source, []step{
			{typ: "payment.PAID"},
			{typ: "refund.PENDING", at: 5, amt: 1000, ref: "REF1"},
			{typ: "refund.SUCCESS", at: 6, amt: 1000, ref: "REF1"},
			{typ: "refund.SUCCESS", at: 7, amt: 500, ref: "REF2"},
		}, "partially_refunded 5000-1500-0 go"},
		{"RefundRejected", source, []step{
			{typ: "payment.PAID"}, {typ: "refund.PENDING", at: 5}, {typ: "refund.REJECTED", at: 9},
		}, "paid 5000-0-0 go"},
		{"RefundTakenBack", source, []step{
			{typ: "payment.PAID"}, {typ: "refund.SUCCESS", at: 5}, {typ: "refund.REJECTED", at: 9},
		}, "paid 5000-0-0 go"},
		{"Inquiry", source, []step{{typ: "payment.PAID"}, {typ: "chargeback.INQUIRY", at: 5}}, "disputed 5000-0-0 pause"},
		{"Chargeback", source, []step{
			{typ: "payment.PAID"}, {typ: "chargeback.PENDING", at: 5}, {typ: "chargeback.COMPLETED", at: 6},
		}, "charged_back 5000-0-5000 stop"},
		{"ChargebackContested", source, []step{
			{typ: "payment.PAID"}, {typ: "chargeback.COMPLETED", at: 6}, {typ: "chargeback.IN_DISPUTE", at: 7},
		}, "disputed 5000-0-0 pause"},
		{"ChargebackWon", source, []step{
			{typ: "payment.PAID"}, {typ: "chargeback.COMPLETED", at: 6}, {typ: "chargeback.IN_DISPUTE", at: 7}, {typ: "chargeback.REVERSAL", at: 8},
		}, "paid 5000-0-0 go"},
		{"ChargebackLost", source, []step{
			{typ: "payment.PAID"}, {typ: "chargeback.COMPLETED", at: 6}, {typ: "chargeback.IN_DISPUTE", at: 7}, {typ: "chargeback.DISPUTE_LOST", at: 8},
		}, "charged_back 5000-0-5000 stop"},
	})
}
