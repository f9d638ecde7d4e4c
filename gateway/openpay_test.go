package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

var (
	_ = conforms("openpay", conformance{
		unknownType: map[string]string{"status": "frozen"},
		typ:         "charge.completed",
		amount:      "amount",
		currency:    "currency",
		badAmounts:  decimals,
		noMode:      true,
		noTime:      true,
		object: func(body []byte) gateway.Object {
			return gateway.Object{Kind: "charge", ID: gjson.GetBytes(body, "id").String()}
		},
	})
	_ = asks([]askedFlow{
		{gateway: "openpay", name: "Paid", steps: []step{{typ: "charge.charge_pending"}, {typ: "charge.in_progress", at: 1}, {typ: "charge.completed", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "openpay", name: "Failed", steps: []step{{typ: "charge.in_progress"}, {typ: "charge.failed", at: 2}}, want: "failed 0-0-0 wait"},
		{gateway: "openpay", name: "Canceled", steps: []step{{typ: "charge.in_progress"}, {typ: "charge.cancelled", at: 2}}, want: "canceled 0-0-0 wait"},
		{gateway: "openpay", name: "Expired", steps: []step{{typ: "charge.in_progress"}, {typ: "charge.expired", at: 2}}, want: "expired 0-0-0 wait"},
		{gateway: "openpay", name: "TwoPartialRefundsOfWhichTheLastIsTold", parts: true, steps: []step{
			{typ: "charge.completed"},
			{typ: "charge.completed", at: 1, set: set("refund", `{"id":"tr1","status":"completed","amount":10.00}`)},
			{typ: "charge.completed", at: 2, set: set("refund", `{"id":"tr2","status":"completed","amount":5.00}`)},
		}, want: "partially_refunded 5000-1500-0 go"},
		{gateway: "openpay", name: "RefundFails", steps: []step{
			{typ: "charge.completed"},
			{typ: "charge.completed", at: 1, set: set("refund", `{"id":"tr1","status":"in_progress","amount":10.00}`)},
			{typ: "charge.completed", at: 2, set: set("refund", `{"id":"tr1","status":"failed","amount":10.00}`)},
		}, want: "paid 5000-0-0 go"},
		{gateway: "openpay", name: "Refunded", steps: []step{{typ: "charge.completed"}, {typ: "charge.refunded", at: 2}}, want: "refunded 5000-5000-0 stop"},
		{gateway: "openpay", name: "DisputeOpen", steps: []step{{typ: "charge.completed"}, {typ: "charge.chargeback_pending", at: 2}}, want: "disputed 5000-0-0 pause"},
		{gateway: "openpay", name: "DisputeWon", steps: []step{{typ: "charge.completed"}, {typ: "charge.chargeback_pending", at: 2}, {typ: "charge.completed", at: 3}}, want: "paid 5000-0-0 go"},
		{gateway: "openpay", name: "DisputeLost", steps: []step{{typ: "charge.completed"}, {typ: "charge.chargeback_pending", at: 2}, {typ: "charge.chargeback_accepted", at: 3}}, want: "charged_back 5000-0-5000 stop"},
	}...)
)

func TestOpenpayProbe(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "openpay")
	probe := func(body string) (gateway.Probe, bool) {
		return gateway.Openpay.Probe(source, gateway.Delivery{Body: []byte(body)})
	}
	p, ok := probe(`{"type":"verification","event_date":"2013-11-22T11:04:49-06:00","verification_code":"UY1qqrxw"}`)
	require.True(t, ok)
	require.Contains(t, p.Note, "UY1qqrxw")
	require.Empty(t, p.Body)
	for _, body := range []string{
		``, `{}`, `{"type":"verification"}`, `{"type":"verification","verification_code":"a b\nc"}`, `{"type":"charge.succeeded","verification_code":"UY1qqrxw"}`,
		`{"type":"verification","verification_code":"UY1q","verification_code":"qrxw"}`,
	} {
		_, ok = probe(body)
		require.False(t, ok, body)
	}
}

func TestOpenpayCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "openpay")
	source.ClientID, source.AccessToken = "mexample000000000001", "sk_example"
	d := deliver(t, source, []byte(`{"type":"charge.succeeded","transaction":{"id":"trexample01","customer_id":"acexample01","transaction_type":"charge"}}`))
	objects, err := gateway.Openpay.Objects(source, d)
	require.NoError(t, err)
	require.Equal(t, []gateway.Object{{Kind: "customer-charge", ID: "acexample01.trexample01"}}, objects)
	call, err := gateway.Openpay.Fetch.Call(source, objects[0])
	require.NoError(t, err)
	require.Equal(t, "/v1/mexample000000000001/customers/acexample01/charges/trexample01", call.Path)
	require.Equal(t, "Basic c2tfZXhhbXBsZTo=", call.Header.Get("Authorization"))
	call, err = gateway.Openpay.Fetch.Call(source, gateway.Object{Kind: "charge", ID: "trexample01"})
	require.NoError(t, err)
	require.Equal(t, "/v1/mexample000000000001/charges/trexample01", call.Path)

	answer := gateway.Answer{Body: []byte(`{"id":"trexample01","status":"completed","amount":50.00,"currency":"MXN"}`), Started: now}
	evs, err := gateway.Openpay.Fetched(source, objects[0], answer)
	require.NoError(t, err)
	require.Equal(t, []string{"trexample01"}, evs[0].Payment)
	_, err = gateway.Openpay.Fetched(source, gateway.Object{Kind: "customer-charge", ID: "acexample01.trexample02"}, answer)
	require.ErrorAs(t, err, new(*gateway.ParseError))
	for _, o := range []gateway.Object{{Kind: "charge", ID: "trexample01/refund"}, {Kind: "charge", ID: "acexample01.trexample01"}, {Kind: "customer-charge", ID: "trexample01"}} {
		_, err = gateway.Openpay.Fetch.Call(source, o)
		require.Error(t, err, o)
	}
	source.ClientID = "me/../x"
	_, err = gateway.Openpay.Fetch.Call(source, gateway.Object{Kind: "charge", ID: "trexample01"})
	require.Error(t, err)
	require.ErrorContains(t, gateway.Openpay.Check(source), "client_id")
}
