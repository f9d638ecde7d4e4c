package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("flutterwave-v4", conformance{
	volatile: map[string]string{"webhook_id": "wbk_another", "timestamp": "1767258001000"}, unknownType: map[string]string{"type": "transfer.disburse"},
	typ: "charge.completed", amount: "data.amount", currency: "data.currency",
	badAmounts: append([]string{`-50.00`, `50.001`, `5e3`, `92233720368547758.07`, `99999999999999999999`}, decimals...),
	noMode:     true,
})

// TestFlutterwaveV4Unconfirmed: how it signs could not be confirmed, so a source
// must say that somebody checked.
func TestFlutterwaveV4Unconfirmed(t *testing.T) {
	t.Parallel()
	s := gateway.FlutterwaveV4.Example("main")
	require.NoError(t, gateway.FlutterwaveV4.Check(s))
	s.Unconfirmed = false
	require.ErrorContains(t, gateway.FlutterwaveV4.Check(s), "unconfirmed")

	// A header that equals the secret hash signs nothing.
	d := deliver(t, sourceNamed(t, "flutterwave-v4"), sample(t, gateway.SampleRequest{Source: s, Type: "charge.completed"}))
	d.Header.Set("Flutterwave-Signature", s.Secrets[0])
	require.Error(t, gateway.FlutterwaveV4.Verify(s, d, now))
}

// TestFlutterwaveV4Statuses: the status decides, and what is not known is not
// guessed at.
func TestFlutterwaveV4Statuses(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "flutterwave-v4")
	for _, tt := range []struct {
		typ, status string
		kind        order.Kind
		want        order.Status // "": broken
	}{
		{"charge.completed", "succeeded", order.KindCaptured, order.StatusOK},
		{"charge.completed", "SUCCEEDED", order.KindCaptured, order.StatusOK},
		{"charge.completed", "failed", order.KindPhase, order.StatusFailed},
		{"charge.completed", "pending", order.KindPhase, order.StatusProcessing},
		{"charge.completed", "voided", order.KindPhase, order.StatusCanceled},
		{"charge.completed", "done", "", ""},
		{"charge.failed", "failed", order.KindPhase, order.StatusFailed},
		{"charge.failed", "succeeded", "", ""},
		{"refund.completed", "succeeded", order.KindRefunded, order.StatusOK},
		{"refund.completed", "processing", order.KindRefunded, order.StatusPending},
		{"refund.completed", "failed", order.KindRefunded, order.StatusFailed},
		{"refund.completed", "done", "", ""},
		{"refund.failed", "failed", order.KindRefunded, order.StatusFailed},
		{"refund.failed", "succeeded", "", ""},
		{"chargeback.created", "initiated", order.KindDisputed, order.StatusOpen},
		{"chargeback.updated", "declined", order.KindDisputed, order.StatusOpen},
		{"chargeback.updated", "won", order.KindDisputed, order.StatusWon},
		{"chargeback.updated", "accepted", order.KindDisputed, order.StatusLost},
		{"chargeback.updated", "lost", order.KindDisputed, order.StatusLost},
	} {
		ev := sampled(t, gateway.SampleRequest{Source: source, Type: tt.typ, Reference: "ord_7", Set: set("data.status", tt.status)})
		if tt.want == "" {
			require.NotEmpty(t, ev.Broken, tt)
			continue
		}
		require.Empty(t, ev.Broken, tt)
		if tt.status == "voided" {
			require.Len(t, ev.Facts, 2, tt)
		} else {
			require.Len(t, ev.Facts, 1, tt)
		}
		require.Equal(t, tt.kind, ev.Facts[0].Kind, tt)
		require.Equal(t, tt.want, ev.Facts[0].Status, tt)
	}
}

func TestFlutterwaveV4Flows(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "flutterwave-v4")
	playFlows(t, []flow{
		{"Charge", source, []step{{typ: "charge.completed", set: set("data.status", "pending")}, {typ: "charge.completed", at: 3}}, "paid 5000-0-0 go"},
		{"VoidedAfterItSucceeded", source, []step{{typ: "charge.completed"}, {typ: "charge.completed", at: 3, set: set("data.status", "voided")}}, "canceled 0-0-0 stop"},
		{"Failed", source, []step{{typ: "charge.completed", set: set("data.status", "failed")}}, "failed 0-0-0 wait"},
		{"PartialRefunds", source, []step{
			{typ: "charge.completed"}, {typ: "refund.completed", at: 5, amt: 1000, ref: "rfd_1"}, {typ: "refund.completed", at: 6, amt: 550, ref: "rfd_2"},
		}, "partially_refunded 5000-1550-0 go"},
		{"RefundFails", source, []step{{typ: "charge.completed"}, {typ: "refund.completed", at: 5}, {typ: "refund.failed", at: 6}}, "paid 5000-0-0 go"},
		{"Chargeback", source, []step{{typ: "charge.completed"}, {typ: "chargeback.created", at: 5}}, "disputed 5000-0-0 pause"},
		{"ChargebackWon", source, []step{{typ: "charge.completed"}, {typ: "chargeback.created", at: 5}, {typ: "chargeback.updated", at: 6}}, "paid 5000-0-0 go"},
		{"ChargebackLost", source, []step{
			{typ: "charge.completed"}, {typ: "chargeback.created", at: 5}, {typ: "chargeback.updated", at: 6, set: set("data.status", "lost")},
		}, "charged_back 5000-0-5000 stop"},
	})
}
