package gateway_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// answered are the events of what the API answers at that step.
func (s step) answered(t *testing.T, source gateway.Source) []order.Event {
	t.Helper()
	r := gateway.SampleRequest{
		Source: source, Type: s.typ, Reference: "ord_7", Ref: s.ref, Set: s.set,
		Amount: order.Amount{Minor: 5000, Currency: "EUR"}, At: now.Add(time.Duration(s.at) * time.Minute),
	}
	if s.amt != 0 {
		r.Amount.Minor = s.amt
	}
	g := of(t, source)
	object, answer, err := g.Fetch.Sample(r)
	require.NoError(t, err)
	evs, err := g.Fetched(source, object, gateway.Answer{Body: answer, Started: r.At})
	require.NoError(t, err)
	return evs
}

// TestAskedFlows is TestFlows for gateways that are asked: the states that a
// payment goes through, as the API would tell them, read in every order and with
// repetitions. Any state that is missed must not matter either: the newest alone
// says the same as all of them (of what the last one says at all).
func TestAskedFlows(t *testing.T) {
	t.Parallel()
	for _, tt := range askedFlows {
		t.Run(tt.gateway+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			source := sourceNamed(t, tt.gateway)
			var evs []order.Event
			for _, s := range tt.steps {
				for _, ev := range s.answered(t, source) {
					require.Empty(t, ev.Broken, s.typ)
					evs = append(evs, ev)
				}
			}
			permute(evs, func(evs []order.Event) {
				v := fold(append(slices.Clone(evs), evs[0], evs[len(evs)-1]))
				require.Zero(t, v.Flags&^(order.FlagUnderpaid|tt.flags), v.Flags.String())
				got := fmt.Sprintf("%s %d-%d-%d %s", v.State, v.Captured, v.Refunded, v.Lost, v.Want)
				require.Equal(t, tt.want, got, "in the order %v", types(evs))
			})
			if !tt.parts {
				v := fold(evs[len(evs)-1:])
				got := fmt.Sprintf("%s %d-%d-%d", v.State, v.Captured, v.Refunded, v.Lost)
				require.Contains(t, tt.want, got, "the last state alone")
			}
		})
	}
}

type askedFlow struct {
	gateway, name string
	steps         []step
	want          string
	parts         bool // what is answered are parts of the payment, not the whole of it
	flags         order.Flags
}

var askedFlows = []askedFlow{
	{gateway: "mercadopago", name: "Paid", steps: []step{{typ: "payment.pending"}, {typ: "payment.in_process", at: 1}, {typ: "payment.approved", at: 2}}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "AuthorizedThenCaptured", steps: []step{{typ: "payment.authorized"}, {typ: "payment.approved", at: 2}}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "CapturedInPart", steps: []step{{typ: "payment.authorized"}, {typ: "payment.approved", at: 2, amt: 2000}}, want: "partially_paid 2000-0-0 wait"},
	{gateway: "mercadopago", name: "Rejected", steps: []step{{typ: "payment.pending"}, {typ: "payment.rejected", at: 2}}, want: "failed 0-0-0 wait"},
	{gateway: "mercadopago", name: "Expired", steps: []step{{typ: "payment.pending"}, {typ: "payment.cancelled", at: 2, set: set("status_detail", "expired")}}, want: "expired 0-0-0 wait"},
	{gateway: "mercadopago", name: "ApprovedThenCancelled", steps: []step{{typ: "payment.approved"}, {typ: "payment.cancelled", at: 2}}, want: "canceled 0-0-0 stop"}, // money was here once
	{gateway: "mercadopago", name: "PartialRefundThatFails", steps: []step{
		{typ: "payment.approved"},
		{typ: "payment.approved", at: 3, set: map[string]string{"transaction_amount_refunded": "10.00", "refunds": `[{"id":9,"amount":10.00,"status":"approved"}]`}},
		{typ: "payment.approved", at: 4, set: map[string]string{"transaction_amount_refunded": "0", "refunds": `[{"id":9,"amount":10.00,"status":"rejected"}]`}},
	}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "PartlyRefunded", steps: []step{
		{typ: "payment.approved"},
		{typ: "payment.approved", at: 3, set: map[string]string{"transaction_amount_refunded": "10.00", "refunds": `[{"id":9,"amount":10.00,"status":"approved"}]`}},
	}, want: "partially_refunded 5000-1000-0 go"},
	{gateway: "mercadopago", name: "Refunded", steps: []step{{typ: "payment.approved"}, {typ: "payment.refunded", at: 2}}, want: "refunded 5000-5000-0 stop"},
	{gateway: "mercadopago", name: "DisputeOpen", steps: []step{{typ: "payment.approved"}, {typ: "payment.in_mediation", at: 2}}, want: "disputed 5000-0-0 pause"},
	{gateway: "mercadopago", name: "DisputeLost", steps: []step{
		{typ: "payment.approved"}, {typ: "payment.in_mediation", at: 2},
		{typ: "payment.charged_back", at: 3, set: set("status_detail", "in_process")}, {typ: "payment.charged_back", at: 4},
	}, want: "charged_back 5000-0-5000 stop"},
	{gateway: "mercadopago", name: "DisputeWon", steps: []step{
		{typ: "payment.approved"}, {typ: "payment.charged_back", at: 3}, {typ: "payment.charged_back", at: 4, set: set("status_detail", "reimbursed")},
	}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "Order", steps: []step{
		{typ: "order.created"}, {typ: "order.action_required", at: 1}, {typ: "order.processed", at: 2},
	}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "OrderRefunded", steps: []step{{typ: "order.processed"}, {typ: "order.refunded", at: 2}}, want: "refunded 5000-5000-0 stop"},
	{gateway: "mercadopago", name: "OrderChargedBack", steps: []step{{typ: "order.processed"}, {typ: "order.charged_back", at: 2}}, want: "charged_back 5000-0-5000 stop"},
}
