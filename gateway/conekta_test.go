package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const conektaAt = "data.object."

var _ = conforms("conekta", conformance{
	volatile:    map[string]string{"webhook_logs": `[{"failed_attempts":3}]`, "webhook_status": "failing"},
	unknownType: map[string]string{"type": "webhook_ping"},
	typ:         "order.paid",
	amount:      conektaAt + "amount",
	currency:    conektaAt + "currency",
})

func TestConektaFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "conekta")
	back := func(amount string) map[string]string {
		return map[string]string{conektaAt + "amount": "5000", conektaAt + "amount_refunded": amount}
	}
	// tries is an order that was paid at the second try.
	tries := func(status string) map[string]string {
		return set(conektaAt+"charges.data", `[{"id":"c1","status":"declined"},{"id":"c2","status":"`+status+`"},{"id":"c3","status":"declined"}]`)
	}
	playFlows(t, []flow{
		{"Paid", s, []step{
			{typ: "order.created"}, {typ: "order.pending_payment", at: 1}, {typ: "order.paid", at: 2}, {typ: "charge.paid", at: 2},
		}, "paid 5000-0-0 go"},
		{"TwoCharges", s, []step{
			{typ: "order.pending_payment"}, {typ: "charge.paid", at: 1, amt: 2000, ref: "c1"}, {typ: "charge.paid", at: 2, amt: 3000, ref: "c2"},
		}, "paid 5000-0-0 go"},
		{"OneOfTwoCharges", s, []step{{typ: "order.pending_payment"}, {typ: "charge.paid", at: 1, amt: 2000, ref: "c1"}}, "partially_paid 2000-0-0 wait"},
		{"CashTakenBack", s, []step{{typ: "order.pending_payment"}, {typ: "charge.paid", at: 1}, {typ: "charge.reversed", at: 9}}, "pending 0-0-0 stop"},
		{"PreAuthorized", s, []step{{typ: "order.created"}, {typ: "order.pre_authorized", at: 1}}, "authorized 0-0-0 wait"},
		{"Voided", s, []step{{typ: "order.pre_authorized"}, {typ: "order.voided", at: 1}}, "canceled 0-0-0 wait"},
		{"Declined", s, []step{{typ: "order.pending_payment"}, {typ: "charge.declined", at: 1}, {typ: "order.declined", at: 1}}, "failed 0-0-0 wait"},
		{"Expired", s, []step{{typ: "order.pending_payment"}, {typ: "order.expired", at: 9}}, "expired 0-0-0 wait"},
		{"Canceled", s, []step{{typ: "order.pending_payment"}, {typ: "order.canceled", at: 9}}, "canceled 0-0-0 wait"},
		{"TwoRefunds", s, []step{
			{typ: "order.paid"}, {typ: "order.partially_refunded", at: 1, set: back("1000")}, {typ: "order.partially_refunded", at: 2, set: back("2500")},
		}, "partially_refunded 5000-2500-0 go"},
		{"Refunded", s, []step{{typ: "order.paid"}, {typ: "charge.refunded", at: 2}, {typ: "order.refunded", at: 2}}, "refunded 5000-5000-0 stop"},
		{"ChargebackOpen", s, []step{{typ: "order.paid"}, {typ: "charge.chargeback.created", at: 2}, {typ: "charge.chargeback.under_review", at: 3}}, "disputed 5000-0-0 pause"},
		{"ChargebackWon", s, []step{{typ: "order.paid"}, {typ: "charge.chargeback.created", at: 2}, {typ: "order.charged_back", at: 2}, {typ: "charge.chargeback.won", at: 9}}, "paid 5000-0-0 go"},
		{"ChargebackOfTheSecondTryWon", s, []step{
			{typ: "order.paid", set: tries("paid")},
			{typ: "order.charged_back", at: 2, set: tries("charged_back")},
			{typ: "charge.chargeback.won", at: 9, ref: "c2"},
		}, "paid 5000-0-0 go"},
		{"ChargebackOfACallThatStaysPaid", s, []step{
			{typ: "order.paid", set: tries("paid")},
			{typ: "order.charged_back", at: 2, set: tries("paid")},
			{typ: "charge.chargeback.won", at: 9, ref: "c2"},
		}, "paid 5000-0-0 go"},
		{"ChargebackLost", s, []step{{typ: "order.paid"}, {typ: "charge.chargeback.lost", at: 9}, {typ: "order.charged_back", at: 9}}, "charged_back 5000-0-5000 stop"},
	})
}

// TestConektaChargebackWithoutAmount: it names a charge and nothing else, finds its
// order, and holds it as a whole.
func TestConektaChargebackWithoutAmount(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "conekta")
	evs := []order.Event{
		step{typ: "order.paid", ref: "c1"}.event(t, s),
		step{typ: "charge.chargeback.created", ref: "c1", set: set("data.object", `{"object":"chargeback","id":"cb1","charge_id":"c1"}`)}.event(t, s),
	}
	require.Equal(t, []string{"c1"}, evs[1].Payment)
	permute(evs, func(evs []order.Event) {
		v := fold(evs)
		require.Equal(t, order.WantPause, v.Want)
		require.Equal(t, order.FlagCurrencyMismatch, v.Flags)
	})
}

func TestConektaMode(t *testing.T) {
	t.Parallel()
	for mode, fits := range map[string]string{gateway.Live: "true", gateway.Test: "false"} {
		s := sourceNamed(t, "conekta")
		s.Mode = mode
		for _, live := range []string{"true", "false", `"true"`, `"false"`, "null", "1"} {
			ev := sampled(t, gateway.SampleRequest{Source: s, Type: "order.paid", Set: set("livemode", live)})
			require.Equal(t, live == fits, ev.Facts[0].Misfit == "", "%s on %s", live, mode)
		}
	}
}
