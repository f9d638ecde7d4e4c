package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

var (
	_ = conforms("gocardless", conformance{
		volatile:    map[string]string{"meta.webhook_id": "WB2"},
		unknownType: map[string]string{"payments.status": "lost_in_the_post"},
		typ:         "payments.confirmed",
		amount:      "payments.amount",
		currency:    "payments.currency",
		noMode:      true,
		noTime:      true,
		object: func(body []byte) gateway.Object {
			kind := "payment"
			if gjson.GetBytes(body, "refunds").Exists() {
				kind = "refund"
			}
			return gateway.Object{Kind: kind, ID: gjson.GetBytes(body, kind+"s.id").String()}
		},
	})
	_ = asks([]askedFlow{
		{gateway: "gocardless", name: "PaidOut", steps: []step{
			{typ: "payments.pending_submission"}, {typ: "payments.submitted", at: 1}, {typ: "payments.confirmed", at: 2}, {typ: "payments.paid_out", at: 3},
		}, want: "paid 5000-0-0 go"},
		{gateway: "gocardless", name: "Failed", steps: []step{{typ: "payments.submitted"}, {typ: "payments.failed", at: 2}}, want: "failed 0-0-0 wait"},
		{gateway: "gocardless", name: "FailsLate", steps: []step{{typ: "payments.confirmed"}, {typ: "payments.paid_out", at: 1}, {typ: "payments.failed", at: 2}}, want: "failed 0-0-0 stop"},
		{gateway: "gocardless", name: "Canceled", steps: []step{{typ: "payments.pending_submission"}, {typ: "payments.cancelled", at: 2}}, want: "canceled 0-0-0 wait"},
		{gateway: "gocardless", name: "ChargedBack", steps: []step{{typ: "payments.paid_out"}, {typ: "payments.charged_back", at: 2}}, want: "charged_back 5000-0-5000 stop"},
		{gateway: "gocardless", name: "ChargebackCanceled", steps: []step{{typ: "payments.paid_out"}, {typ: "payments.charged_back", at: 2}, {typ: "payments.paid_out", at: 3}}, want: "paid 5000-0-0 go"},
		{gateway: "gocardless", name: "PartlyRefunded", parts: true, steps: []step{
			{typ: "payments.paid_out"},
			{typ: "payments.paid_out", at: 2, set: set("payments.amount_refunded", "1000")},
			{typ: "refunds.submitted", at: 2, amt: 1000},
			{typ: "refunds.paid", at: 3, amt: 1000},
		}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: "gocardless", name: "RefundComesBackAndStaysInTheTotal", parts: true, steps: []step{
			{typ: "payments.paid_out"},
			{typ: "payments.paid_out", at: 2, set: set("payments.amount_refunded", "1000")},
			{typ: "refunds.paid", at: 2, amt: 1000},
			{typ: "refunds.funds_returned", at: 3, amt: 1000},
		}, want: "paid 5000-0-0 go"},
		{gateway: "gocardless", name: "RefundComesBackAndLeavesTheTotal", parts: true, steps: []step{
			{typ: "payments.paid_out", at: 2, set: set("payments.amount_refunded", "1000")},
			{typ: "payments.paid_out", at: 4},
			{typ: "refunds.paid", at: 2, amt: 1000},
			{typ: "refunds.funds_returned", at: 3, amt: 1000},
		}, want: "paid 5000-0-0 go"},
	}...)
)

// TestGoCardlessBatch: every event of a delivery is one, by its own id, and each
// object is asked about once.
func TestGoCardlessBatch(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "gocardless")
	one := func(id, resource, link string) string {
		return `{"id":"` + id + `","resource_type":"` + resource + `","action":"confirmed","links":{` + link + `}}`
	}
	body := func(events ...string) []byte {
		return []byte(`{"events":[` + strings.Join(events, ",") + `],"meta":{"webhook_id":"WB1"}}`)
	}
	pm, rf := `"payment":"PM1","refund":"RF9"`, `"refund":"RF1"`
	d := deliver(t, source, body(one("EV1", "payments", pm), one("EV2", "mandates", ""), one("EV3", "refunds", rf), one("EV4", "payments", pm)))
	evs, err := gateway.GoCardless.Events(source, d)
	require.NoError(t, err)
	require.Len(t, evs, 4)
	for i, want := range []string{"payment/PM1", "", "refund/RF1", "payment/PM1"} {
		require.Equal(t, want, evs[i].Fetch)
	}
	objects, err := gateway.GoCardless.Objects(source, d)
	require.NoError(t, err)
	require.Equal(t, []gateway.Object{{Kind: "payment", ID: "PM1"}, {Kind: "refund", ID: "RF1"}}, objects)

	for _, bad := range []string{`{"events":[]}`, `{"events":{}}`, `{"events":[7]}`, `{"events":[{"action":"x"}]}`, `{}`} {
		_, err := gateway.GoCardless.Events(source, deliver(t, source, []byte(bad)))
		require.ErrorAs(t, err, new(*gateway.ParseError), bad)
	}
	many := make([]string, 1001)
	for i := range many {
		many[i] = one("EV1", "payments", pm)
	}
	_, err = gateway.GoCardless.Events(source, deliver(t, source, body(many...)))
	require.ErrorAs(t, err, new(*gateway.ParseError), "events would be left out in silence")
}

func TestGoCardlessCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "gocardless")
	call, err := gateway.GoCardless.Fetch.Call(source, gateway.Object{Kind: "refund", ID: "RF1"})
	require.NoError(t, err)
	require.Equal(t, "/refunds/RF1", call.Path)
	require.Equal(t, "2015-07-06", call.Header.Get("GoCardless-Version"))
	require.Equal(t, "Bearer "+source.AccessToken, call.Header.Get("Authorization"))
	_, err = gateway.GoCardless.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "PM1/actions/cancel"})
	require.Error(t, err)
	require.Equal(t, "https://api-sandbox.gocardless.com", gateway.GoCardless.Fetch.BaseURL(source))

	_, answer, err := gateway.GoCardless.Fetch.Sample(gateway.SampleRequest{Source: source, Type: "payments.confirmed", Payment: "PM1"})
	require.NoError(t, err)
	for _, o := range []gateway.Object{{Kind: "payment", ID: "PM2"}, {Kind: "refund", ID: "PM1"}} {
		_, err = gateway.GoCardless.Fetched(source, o, gateway.Answer{Body: answer, Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), o)
	}
}
