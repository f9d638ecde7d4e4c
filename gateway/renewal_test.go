package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const (
	november = `{"start":1793538000,"end":1796130000}` // from 2026-11-01 13:00 on
	october  = `{"start":1790859600,"end":1793538000}`
)

func TestStripeRenewal(t *testing.T) {
	t.Parallel()
	basil := func(more ...string) map[string]string { // pairs of path and value
		m := map[string]string{
			"data.object.metadata": `{}`, "data.object.billing_reason": "subscription_cycle",
			"data.object.parent": `{"subscription_details":{"metadata":{"external_ref":"club_1"},"subscription":"sub_1"}}`,
			"data.object.lines":  `{"data":[{"period":` + november + `,"parent":{"type":"subscription_item_details","subscription_item_details":{"proration":false}}}]}`,
		}
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	item := func(period, proration string) string {
		return `{"period":` + period + `,"parent":{"type":"subscription_item_details","subscription_item_details":{"proration":` + proration + `}}}`
	}
	lines := func(all string) []string { return []string{"data.object.lines", `{"data":[` + all + `]}`} }
	start := time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name    string
		set     map[string]string
		of      []string // nil: it is no renewal
		pattern string
	}{
		{name: "Basil", set: basil(), of: []string{"club_1", "sub_1"}},
		{name: "TheFirstInvoice", set: basil("data.object.billing_reason", "subscription_create"), of: []string{"club_1"}},
		{name: "AChangeWithinAPeriod", set: basil("data.object.billing_reason", "subscription_update")},
		{name: "AThreshold", set: basil("data.object.billing_reason", "subscription_threshold")},
		{name: "ByHand", set: basil("data.object.billing_reason", "manual")},
		{name: "NoReason", set: basil("data.object.billing_reason", "null")},
		{name: "OwnMetadataNamesTheOrder", set: basil("data.object.metadata", `{"order_id":"ord_1"}`), of: []string{"ord_1"}},
		{
			name: "BothNamesOfTheMerchant", of: []string{"a", "b", "sub_1"},
			set: basil("data.object.parent", `{"subscription_details":{"metadata":{"order_id":"a","external_ref":"b"},"subscription":{"id":"sub_1"}}}`),
		},
		{name: "NoMetadata", set: basil("data.object.parent", `{"subscription_details":{"subscription":"sub_1"}}`), of: []string{"sub_1"}},
		{name: "NoSubscription", set: basil("data.object.parent", `null`)},
		{
			name: "BeforeBasil", of: []string{"club_1", "sub_1"},
			set: basil("data.object.parent", `null`, "data.object.subscription", "sub_1", "data.object.subscription_details", `{"metadata":{"order_id":"club_1"}}`,
				"data.object.lines", `{"data":[{"type":"invoiceitem","period":`+october+`},{"type":"subscription","proration":true,"period":`+october+`},
					{"type":"subscription","proration":false,"period":`+november+`}]}`),
		},
		{name: "TheItemAndNotAProration", set: basil(lines(item(october, "true") + "," + item(november, "false"))...), of: []string{"club_1", "sub_1"}},
		{
			name: "TheItemAndNotAPendingOne", of: []string{"club_1", "sub_1"},
			set: basil(lines(`{"period":` + october + `,"parent":{"type":"invoice_item_details"}},` + item(november, "false") + "," + item(october, "false"))...),
		},
		{name: "NoItemAtAll", set: basil(lines(`{"period":` + november + `},` + item(october, "true"))...), of: []string{"club_1", "sub_1"}},
		{name: "NoPeriod", set: basil(lines(`{"amount":5000}`)...)},
		{name: "NoLines", set: basil("data.object.lines", `null`)},
		{name: "APeriodThatIsNoTime", set: basil(lines(`{"period":{"start":"soon"}}`)...)},
		{name: "ThePattern", set: basil(), of: []string{"1", "sub_1"}, pattern: `^club_(\d+)$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := stripeSource()
			s.ReferencePattern = tt.pattern
			ev := sampled(t, gateway.SampleRequest{Source: s, Type: "invoice.paid", Set: tt.set})
			require.Empty(t, ev.Broken)
			require.Len(t, ev.Facts, 1, "the money counts in any case")
			if tt.of == nil {
				require.Nil(t, ev.Renewal)
				return
			}
			require.Equal(t, &order.Renewal{Of: tt.of, Start: start}, ev.Renewal)
		})
	}
}

// A Checkout session that begins a subscription is of the same order as its first invoice.
func TestStripeSessionOfASubscription(t *testing.T) {
	t.Parallel()
	set := map[string]string{"data.object.subscription": "sub_1", "data.object.client_reference_id": "club_1", "data.object.created": "1793538000"}
	ev := sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "checkout.session.completed", Set: set})
	require.Equal(t, &order.Renewal{Of: []string{"club_1"}, Start: time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC)}, ev.Renewal)

	set["data.object.client_reference_id"] = "null"
	require.Nil(t, sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "checkout.session.completed", Set: set}).Renewal, "it names no order")
	set["data.object.client_reference_id"], set["data.object.subscription"] = "club_1", "null"
	require.Nil(t, sampled(t, gateway.SampleRequest{Source: stripeSource(), Type: "checkout.session.completed", Set: set}).Renewal, "it begins nothing")
}

func TestStripeRenewalThatIsAskedFor(t *testing.T) {
	t.Parallel()
	g, ok := gateway.Lookup("stripe")
	require.True(t, ok)
	s := stripeSource()
	o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: "invoice.paid", Set: map[string]string{
		"billing_reason": "subscription_cycle", "parent": `{"subscription_details":{"subscription":"sub_1"}}`,
		"lines": `{"data":[{"period":` + november + `}]}`,
	}})
	require.NoError(t, err)
	events, err := g.Fetched(s, o, gateway.Answer{Body: body, Started: time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)})
	require.NoError(t, err)
	require.Len(t, events, 1)
	require.Equal(t, []string{"sub_1"}, events[0].Renewal.Of)
}

func TestPaddleRenewal(t *testing.T) {
	t.Parallel()
	g, ok := gateway.Lookup("paddle")
	require.True(t, ok)
	s := g.Example("renewal")
	for _, tt := range []struct {
		name, origin, period string
		of                   []string
	}{
		{"Renewal", "subscription_recurring", `{"starts_at":"2026-11-01T13:00:00.5Z"}`, []string{"club_1", "sub_1"}},
		{"TheFirst", "web", `{"starts_at":"2026-11-01T13:00:00Z"}`, nil},
		{"OneTimeCharge", "subscription_charge", `{"starts_at":"2026-11-01T13:00:00Z"}`, nil},
		{"NoPeriod", "subscription_recurring", `null`, nil},
		{"NoTime", "subscription_recurring", `{"starts_at":"soon"}`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ev := sampled(t, gateway.SampleRequest{Source: s, Type: "transaction.completed", Reference: "club_1", Set: map[string]string{
				"data.origin": tt.origin, "data.billing_period": tt.period, "data.subscription_id": "sub_1",
			}})
			require.Empty(t, ev.Broken)
			if tt.of == nil {
				require.Nil(t, ev.Renewal)
				return
			}
			require.Equal(t, tt.of, ev.Renewal.Of)
			require.Equal(t, "2026-11-01T13:00:00.5Z", ev.Renewal.Start.Format(time.RFC3339Nano))
		})
	}
}

func TestBraintreeRenewal(t *testing.T) {
	t.Parallel()
	g, ok := gateway.Lookup("braintree")
	require.True(t, ok)
	s := g.Example("renewal")
	const at = "subject.subscription.transactions.0."
	for _, typ := range []string{"subscription_charged_successfully", "subscription_charged_unsuccessfully"} {
		set := map[string]string{"subject.subscription.id": "club_1", at + "order-id": "null", at + "subscription": `{"billing-period-start-date":"2026-11-01"}`}
		ev := sampled(t, gateway.SampleRequest{Source: s, Type: typ, Set: set})
		require.Equal(t, &order.Renewal{Of: []string{"club_1"}, On: "2026-11-01"}, ev.Renewal)

		set[at+"order-id"] = "ord_1"
		require.Equal(t, []string{"ord_1"}, sampled(t, gateway.SampleRequest{Source: s, Type: typ, Set: set}).Renewal.Of)
		for _, none := range []string{`null`, `{"billing-period-start-date":"2026-11-31"}`, `{"billing-period-start-date":"soon"}`} {
			set[at+"subscription"] = none
			require.Nil(t, sampled(t, gateway.SampleRequest{Source: s, Type: typ, Set: set}).Renewal, none)
		}
	}
}

// A reference that a pattern takes out of a text is taken out once: what is left need not match again.
func TestFetchedReferencePattern(t *testing.T) {
	t.Parallel()
	g, ok := gateway.Lookup("mercadopago")
	require.True(t, ok)
	s := g.Example("pattern")
	s.ReferencePattern = `^order-(\d+)$`
	o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: g.Types(s)[0].Name, Reference: "order-12"})
	require.NoError(t, err)
	events, err := g.Fetched(s, o, gateway.Answer{Body: body})
	require.NoError(t, err)
	require.Equal(t, "12", events[0].Reference)
}
