package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("klarna", conformance{
	volatile:    map[string]string{"metadata.correlation_id": "3223496a"},
	unknownType: map[string]string{"metadata.event_type": "payment.request.state-change.brand-new"},
	typ:         "payment.dispute.state-change.initiated",
	amount:      "payload.dispute_details.dispute_amount",
	currency:    "payload.dispute_details.currency",
	alone:       []string{"payment.dispute.state-change.initiated", "payment.dispute.state-change.closed"}, // they know the payment by its other name
})

func klarnaSource() gateway.Source {
	s := gateway.Klarna.Example("main")
	s.ID = "klarna"
	return s
}

// TestKlarnaShapes: one event, wrapped and flat.
func TestKlarnaShapes(t *testing.T) {
	t.Parallel()
	const meta = `"event_type":"payment.request.state-change.expired","event_id":"ev1","event_version":"v2","occurred_at":"2026-01-01T09:00:00Z"`
	const object = `"payment_request_id":"krn:1","payment_request_reference":"ord_7","state":"EXPIRED"`
	var first order.Event
	for i, body := range []string{
		`{"metadata":{` + meta + `},"payload":{` + object + `}}`,
		`{` + meta + `,"payload":{` + object + `}}`,
		`{` + meta + `,` + object + `}`,
		`{"event_type":"payment.request.state-change.expired","event_id":"other","metadata":{` + meta + `},"payload":{` + object + `}}`,
	} {
		ev := event(t, klarnaSource(), []byte(body))
		require.Equal(t, "ev1", ev.ID)
		require.Equal(t, order.StatusExpired, ev.Facts[0].Status)
		require.Equal(t, "ord_7", ev.Reference)
		if i == 0 {
			first = ev
		}
		require.Equal(t, first, ev)
	}
	r := gateway.SampleRequest{Source: klarnaSource(), Type: "payment.request.state-change.expired", Set: set("metadata.occurred_at", "yesterday")}
	require.NotEmpty(t, sampled(t, r).Broken, "the order of events cannot be told")
}

// TestKlarnaPaysNothing: of no type of Klarna's does a captured or an authorised
// amount come, whatever it says.
func TestKlarnaPaysNothing(t *testing.T) {
	t.Parallel()
	s := klarnaSource()
	money := map[string]string{"payload.amount": "5000", "payload.currency": "EUR", "payload.captured_amount": "5000"}
	for _, typ := range gateway.Klarna.Types(s) {
		for _, f := range sampled(t, gateway.SampleRequest{Source: s, Type: typ.Name, Set: money}).Facts {
			require.Contains(t, []order.Kind{order.KindPhase, order.KindDisputed}, f.Kind, typ.Name)
		}
	}
	for _, typ := range []string{"authorized", "completed"} {
		ev := sampled(t, gateway.SampleRequest{
			Source: s, Type: "payment.request.state-change.completed",
			Set: set("metadata.event_type", "payment.transaction.state-change."+typ),
		})
		require.Equal(t, gateway.NoFact, ev.Ignored)
	}
}

func TestKlarnaDisputes(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: klarnaSource(), Type: "payment.dispute.state-change.closed", Payment: "krn:tx", Ref: "krn:d1"}
	require.Equal(t, order.StatusLost, sampled(t, r).Facts[0].Status)
	r.Set = map[string]string{"payload.dispute_outcome": "WON", "payload.dispute_details": "null"}
	won := sampled(t, r)
	require.Equal(t, order.Fact{Kind: order.KindDisputed, Ref: "krn:d1", Status: order.StatusWon, Seq: won.At.UnixMicro()}, won.Facts[0])
	r.Set["payload.dispute_outcome"] = "LOST"
	require.NotEmpty(t, sampled(t, r).Broken, "nobody knows how much was lost")
	for _, outcome := range []string{"null", "DRAW", "won"} {
		r.Set = set("payload.dispute_outcome", outcome)
		require.NotEmpty(t, sampled(t, r).Broken, outcome)
	}
}

func TestKlarnaModeAndAccount(t *testing.T) {
	t.Parallel()
	misfit := func(s gateway.Source, set map[string]string) order.Misfit {
		body := sample(t, gateway.SampleRequest{Source: klarnaSource(), Type: "payment.request.state-change.expired", Set: set})
		return event(t, s, body).Facts[0].Misfit
	}
	s := klarnaSource()
	require.Empty(t, misfit(s, nil))
	require.Equal(t, order.MisfitMode, misfit(s, set("metadata.live", "true")))
	require.Empty(t, misfit(s, set("metadata.live", "null")), "an older event that does not tell")
	s.Mode = gateway.Live
	require.Equal(t, order.MisfitMode, misfit(s, nil))
	require.Empty(t, misfit(s, set("metadata.live", "true")))

	s = klarnaSource()
	s.MerchantAccounts = []string{"K000009"}
	require.Equal(t, order.MisfitAccount, misfit(s, nil))
	require.Empty(t, misfit(s, set("metadata.subject_account_id", "K000009")))
	require.Empty(t, misfit(s, set("metadata.merchant_id", "K000009")))
}

func TestKlarnaFlows(t *testing.T) {
	t.Parallel()
	s := klarnaSource()
	state := func(name string) string { return "payment.request.state-change." + name }
	playFlows(t, []flow{
		{"Approved", s, []step{{typ: state("submitted")}, {typ: state("in-progress"), at: 1}, {typ: state("completed"), at: 2}}, "pending 0-0-0 wait"},
		{"Declined", s, []step{{typ: state("submitted")}, {typ: state("completed"), at: 1}, {typ: state("declined"), at: 2}}, "failed 0-0-0 wait"},
		{"Canceled", s, []step{{typ: state("submitted")}, {typ: state("canceled"), at: 2}}, "canceled 0-0-0 wait"},
		{"Expired", s, []step{{typ: state("submitted")}, {typ: state("expired"), at: 180}}, "expired 0-0-0 wait"},
		{"Disputed", s, []step{{typ: state("authorized")}, {typ: "payment.dispute.state-change.initiated", at: 9}, {typ: "payment.dispute.state-change.closed", at: 99}}, "pending 0-0-0 wait"},
	})
}

// TestKlarnaNames: a request and its transaction are one payment.
func TestKlarnaNames(t *testing.T) {
	t.Parallel()
	s := klarnaSource()
	submitted := sampled(t, gateway.SampleRequest{Source: s, Type: "payment.request.state-change.submitted", Reference: "ord_7"})
	authorized := sampled(t, gateway.SampleRequest{Source: s, Type: "payment.request.state-change.authorized", Reference: "ord_7"})
	dispute := sampled(t, gateway.SampleRequest{Source: s, Type: "payment.dispute.state-change.initiated", Reference: "ord_7"})
	require.Equal(t, []string{submitted.Payment[0], dispute.Payment[0]}, authorized.Payment)
	require.True(t, strings.HasPrefix(authorized.Payment[1], "krn:payment:"))
}
