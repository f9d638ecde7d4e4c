package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

func mollieConformance() conformance {
	return conformance{
		unknownType: map[string]string{"status": "settled"},
		typ:         "payment.paid",
		amount:      "amount.value",
		currency:    "amount.currency",
		badAmounts:  decimals,
		noTime:      true,
		object: func(body []byte) gateway.Object {
			if gjson.GetBytes(body, "count").Exists() {
				return gateway.Object{Kind: "payment-link", ID: "pl_EXAMPLE1"}
			}
			return gateway.Object{Kind: "payment", ID: gjson.GetBytes(body, "id").String()}
		},
	}
}

var (
	_ = conforms("mollie", mollieConformance())
	_ = conforms("mollie-classic", func() conformance {
		c := mollieConformance()
		c.unreadable = map[string]string{
			"Empty": "", "JSON": `{"id":"tr_1"}`, "NoID": "a=b", "TwoIDs": "id=tr_1&id=tr_2", "Traversal": "id=tr_1%2F..%2Ftr_2",
			"NotMollies": "id=1", "Space": "id=tr_1%20", "Broken": "id=%zz", "LineFeed": "id=tr_1%0A",
		}
		return c
	}())
	_ = asks(mollieFlows("mollie")...)
	_ = asks(mollieFlows("mollie-classic")...)
)

func mollieFlows(name string) []askedFlow {
	money := func(v string) string { return `{"value":"` + v + `","currency":"EUR"}` }
	refund := func(total, status string) map[string]string {
		return map[string]string{
			"amountRefunded":    money(total),
			"_embedded.refunds": `[{"id":"re_1","status":"` + status + `","amount":` + money("10.00") + `}]`,
		}
	}
	chargeback := func(reversed string) map[string]string {
		return set("_embedded.chargebacks", `[{"id":"chb_1","amount":`+money("50.00")+`,"reversedAt":`+reversed+`}]`)
	}
	return []askedFlow{
		{gateway: name, name: "Paid", steps: []step{{typ: "payment.open"}, {typ: "payment.pending", at: 1}, {typ: "payment.paid", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: name, name: "AuthorizedThenPaid", steps: []step{{typ: "payment.authorized"}, {typ: "payment.paid", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: name, name: "CapturedInPart", steps: []step{
			{typ: "payment.authorized"}, {typ: "payment.paid", at: 2, set: set("amountCaptured", money("20.00"))},
		}, want: "partially_paid 2000-0-0 wait"},
		{gateway: name, name: "Canceled", steps: []step{{typ: "payment.open"}, {typ: "payment.canceled", at: 1}}, want: "canceled 0-0-0 wait"},
		{gateway: name, name: "Expired", steps: []step{{typ: "payment.open"}, {typ: "payment.expired", at: 1}}, want: "expired 0-0-0 wait"},
		{gateway: name, name: "Failed", steps: []step{{typ: "payment.open"}, {typ: "payment.failed", at: 1}}, want: "failed 0-0-0 wait"},
		{gateway: name, name: "PartlyRefunded", steps: []step{{typ: "payment.paid"}, {typ: "payment.paid", at: 1, set: refund("10.00", "refunded")}}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: name, name: "RefundFails", steps: []step{
			{typ: "payment.paid"}, {typ: "payment.paid", at: 1, set: refund("10.00", "processing")}, {typ: "payment.paid", at: 2, set: refund("0.00", "failed")},
		}, want: "paid 5000-0-0 go"},
		{gateway: name, name: "RefundFailsAndStaysInTheTotal", steps: []step{
			{typ: "payment.paid"}, {typ: "payment.paid", at: 1, set: refund("10.00", "refunded")}, {typ: "payment.paid", at: 2, set: refund("10.00", "failed")},
		}, want: "paid 5000-0-0 go"},
		{gateway: name, name: "ChargedBack", steps: []step{{typ: "payment.paid"}, {typ: "payment.paid", at: 1, set: chargeback("null")}}, want: "charged_back 5000-0-5000 stop"},
		{gateway: name, name: "ChargebackReversed", steps: []step{
			{typ: "payment.paid"}, {typ: "payment.paid", at: 1, set: chargeback("null")}, {typ: "payment.paid", at: 2, set: chargeback(`"2026-01-02T09:00:00+00:00"`)},
		}, want: "paid 5000-0-0 go"},
	}
}

// TestMollieIsOneGateway: classic and signed webhooks tell of the same payments.
func TestMollieIsOneGateway(t *testing.T) {
	t.Parallel()
	classic, next := sourceNamed(t, "mollie-classic"), sourceNamed(t, "mollie")
	r := gateway.SampleRequest{Source: classic, Type: "payment.paid", Reference: "ord_7", At: now}
	a := spokenOne(t, r)
	r.Source = next
	b := spokenOne(t, r)
	require.Equal(t, "mollie:test", a.Realm)
	require.Equal(t, a, b)
}

func TestMollieCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "mollie")
	call, err := gateway.Mollie.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "tr_1"})
	require.NoError(t, err)
	require.Equal(t, "/v2/payments/tr_1?embed=refunds,chargebacks", call.Path)
	require.Equal(t, "Bearer "+source.AccessToken, call.Header.Get("Authorization"))
	call, err = gateway.Mollie.Fetch.Call(source, gateway.Object{Kind: "payment-link", ID: "pl_1"})
	require.NoError(t, err)
	require.Equal(t, "/v2/payment-links/pl_1/payments?limit=50", call.Path)
	for _, o := range []gateway.Object{{Kind: "payment", ID: "pl_1"}, {Kind: "payment", ID: "tr_1/refunds"}, {Kind: "refund", ID: "re_1"}} {
		_, err = gateway.Mollie.Fetch.Call(source, o)
		require.Error(t, err, o)
	}

	source.Mode = gateway.Live
	require.ErrorContains(t, gateway.Mollie.Check(source), "access_token is a key of the other mode")
	require.NotContains(t, gateway.Mollie.Check(source).Error(), source.AccessToken)
}

func TestMollieAnswersAboutAnother(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: sourceNamed(t, "mollie"), Type: "payment.paid", Payment: "tr_1"}
	_, answer, err := gateway.Mollie.Fetch.Sample(r)
	require.NoError(t, err)
	_, err = gateway.Mollie.Fetched(r.Source, gateway.Object{Kind: "payment", ID: "tr_2"}, gateway.Answer{Body: answer, Started: now})
	require.ErrorAs(t, err, new(*gateway.ParseError))
	link := `{"count":0,"_embedded":{"payments":[]},"_links":{"self":{"href":"https://api.mollie.com/v2/payment-links/pl_1/payments"}}}`
	_, err = gateway.Mollie.Fetched(r.Source, gateway.Object{Kind: "payment-link", ID: "pl_2"}, gateway.Answer{Body: []byte(link), Started: now})
	require.ErrorAs(t, err, new(*gateway.ParseError))
}
