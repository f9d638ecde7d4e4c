package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

var _ = conforms("wompi", conformance{
	volatile:    map[string]string{"sent_at": "2026-01-02T09:00:00Z"},
	unknownType: map[string]string{"data.status": "HELD"},
	typ:         "APPROVED", amount: "data.amount_in_cents", currency: "data.currency",
	noMode: true,
	object: func(body []byte) gateway.Object {
		return gateway.Object{Kind: "transaction", ID: gjson.GetBytes(body, "data.id").String()}
	},
})

// TestWompiObjects: the id that is asked about is the one that is signed.
func TestWompiObjects(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "wompi")
	for _, tt := range []struct{ body, want string }{
		{`{"event":"transaction.updated","data":{"transaction":{"id":"1234-1610641025-49201"}}}`, "transaction/1234-1610641025-49201"},
		{`{"data":{"transaction":{"id":"1/../2"}}}`, ""},
		{`{"data":{"transaction":{"id":".."}}}`, ""},
		{`{"data":{"transaction":{"id":1234}}}`, ""},
		{`{"data":{"transaction":{"id":"1","id":"2"}}}`, ""},
		{`{"data":{"nequi_token":{"id":"1"}}}`, ""},
		{`{}`, ""},
	} {
		got, err := gateway.Wompi.Objects(source, gateway.Delivery{Body: []byte(tt.body)})
		if tt.want == "" {
			require.ErrorAs(t, err, new(*gateway.ParseError), tt.body)
			continue
		}
		require.NoError(t, err, tt.body)
		require.Len(t, got, 1)
		require.Equal(t, tt.want, got[0].String())
	}
}

func TestWompiCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "wompi")
	call, err := gateway.Wompi.Fetch.Call(source, gateway.Object{Kind: "transaction", ID: "1234-1610641025-49201"})
	require.NoError(t, err)
	require.Equal(t, "/v1/transactions/1234-1610641025-49201", call.Path)
	require.Empty(t, call.Header.Get("Authorization"))
	source.AccessToken = "prv_test_1"
	call, err = gateway.Wompi.Fetch.Call(source, gateway.Object{Kind: "transaction", ID: "1"})
	require.NoError(t, err)
	require.Equal(t, "Bearer prv_test_1", call.Header.Get("Authorization"))
	_, err = gateway.Wompi.Fetch.Call(source, gateway.Object{Kind: "transaction", ID: ".."})
	require.Error(t, err)
}

// TestWompiUncoveredReference: what stands in the event beside what is signed
// never gets to an order; the API's answer does.
func TestWompiUncoveredReference(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "wompi")
	d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: "APPROVED", Reference: "ord_7", Set: map[string]string{
		"data.transaction.reference": "ord_8", "data.transaction.currency": "USD",
	}}))
	evs, err := gateway.Wompi.Events(source, d)
	require.NoError(t, err)
	require.Empty(t, evs)
	ev := spokenOne(t, gateway.SampleRequest{Source: source, Type: "APPROVED", Reference: "ord_7"})
	require.Equal(t, "ord_7", ev.Reference)
	_, err = gateway.Wompi.Fetched(source, gateway.Object{Kind: "transaction", ID: "1"}, gateway.Answer{
		Body: []byte(`{"data":{"id":"2","status":"APPROVED","amount_in_cents":1,"currency":"COP"}}`), Started: now,
	})
	require.ErrorAs(t, err, new(*gateway.ParseError))
}

var _ = asks(
	askedFlow{gateway: "wompi", name: "Approved", steps: []step{{typ: "PENDING"}, {typ: "APPROVED", at: 5}}, want: "paid 5000-0-0 go"},
	askedFlow{gateway: "wompi", name: "Pending", steps: []step{{typ: "PENDING"}}, want: "pending 0-0-0 wait"},
	askedFlow{gateway: "wompi", name: "Declined", steps: []step{{typ: "PENDING"}, {typ: "DECLINED", at: 5}}, want: "failed 0-0-0 wait"},
	askedFlow{gateway: "wompi", name: "Error", steps: []step{{typ: "PENDING"}, {typ: "ERROR", at: 5}}, want: "failed 0-0-0 wait"},
	askedFlow{gateway: "wompi", name: "Voided", steps: []step{{typ: "PENDING"}, {typ: "APPROVED", at: 5}, {typ: "VOIDED", at: 9}}, want: "canceled 0-0-0 stop"},
)
