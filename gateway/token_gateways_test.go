package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
)

// Clip, which signs nothing, and the two whose deliveries carry a token of the sender.
var (
	_ = conforms("clip", conformance{
		unknownType: map[string]string{"status": "CHECKOUT_LOST"},
		typ:         "checkout.CHECKOUT_COMPLETED",
		amount:      "amount",
		currency:    "currency",
		badAmounts:  decimals,
		noMode:      true,
		noTime:      true,
		object: func(body []byte) gateway.Object {
			return gateway.Object{Kind: "checkout", ID: gjson.GetBytes(body, "payment_request_id").String()}
		},
	})
	_ = conforms("flutterwave-v3", conformance{
		unknownType: map[string]string{"data.status": "lost"},
		typ:         "transaction.successful",
		amount:      "data.amount",
		currency:    "data.currency",
		badAmounts:  decimals,
		noMode:      true,
		noTime:      true,
		object: func(body []byte) gateway.Object {
			return gateway.Object{Kind: "transaction", ID: gjson.GetBytes(body, "data.id").Raw}
		},
	})
	_ = conforms("xendit", conformance{
		unknownType: map[string]string{"status": "LOST"},
		typ:         "invoice.PAID",
		amount:      "amount",
		currency:    "currency",
		badAmounts:  decimals,
		noMode:      true,
		alone: []string{
			"payment_request.PENDING", "payment_request.REQUIRES_ACTION", "payment_request.AWAITING_CAPTURE", "payment_request.SUCCEEDED",
			"payment_request.FAILED", "payment_request.CANCELED", "payment_request.VOIDED", "payment_request.EXPIRED",
		},
		object: func(body []byte) gateway.Object {
			id, kind := gjson.GetBytes(body, "id").String(), "invoice"
			switch {
			case id[:3] == "pr-":
				kind = "payment_request"
			case id[:4] == "rfd-":
				kind = "refund"
			}
			return gateway.Object{Kind: kind, ID: id}
		},
	})
	_ = asks([]askedFlow{
		{gateway: "clip", name: "Paid", steps: []step{{typ: "checkout.CHECKOUT_CREATED"}, {typ: "checkout.CHECKOUT_PENDING", at: 1}, {typ: "checkout.CHECKOUT_COMPLETED", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "clip", name: "Canceled", steps: []step{{typ: "checkout.CHECKOUT_CREATED"}, {typ: "checkout.CHECKOUT_CANCELLED", at: 2}}, want: "canceled 0-0-0 wait"},
		{gateway: "clip", name: "Expired", steps: []step{{typ: "checkout.CHECKOUT_CREATED"}, {typ: "checkout.CHECKOUT_EXPIRED", at: 2}}, want: "expired 0-0-0 wait"},
		{gateway: "flutterwave-v3", name: "Paid", steps: []step{{typ: "transaction.pending"}, {typ: "transaction.successful", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "flutterwave-v3", name: "LessWasCharged", steps: []step{{typ: "transaction.successful", set: set("data.charged_amount", "20.00")}}, want: "partially_paid 2000-0-0 wait"},
		{gateway: "flutterwave-v3", name: "FeesOnTop", steps: []step{{typ: "transaction.successful", set: set("data.charged_amount", "50.70")}}, want: "paid 5000-0-0 go"},
		{gateway: "flutterwave-v3", name: "ChargedIsNotTold", steps: []step{{typ: "transaction.successful", set: set("data.charged_amount", "null")}}, want: "paid 5000-0-0 go"},
		{gateway: "flutterwave-v3", name: "Failed", steps: []step{{typ: "transaction.pending"}, {typ: "transaction.failed", at: 2}}, want: "failed 0-0-0 wait"},
		{gateway: "xendit", name: "Invoice", steps: []step{{typ: "invoice.PENDING"}, {typ: "invoice.PAID", at: 1}, {typ: "invoice.SETTLED", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "xendit", name: "InvoicePaidInPart", steps: []step{{typ: "invoice.PENDING"}, {typ: "invoice.PAID", at: 1, set: set("paid_amount", "20.00")}}, want: "partially_paid 2000-0-0 wait"},
		{gateway: "xendit", name: "Expired", steps: []step{{typ: "invoice.PENDING"}, {typ: "invoice.EXPIRED", at: 1}}, want: "expired 0-0-0 wait"},
		{gateway: "xendit", name: "PaymentRequest", steps: []step{
			{typ: "payment_request.REQUIRES_ACTION"}, {typ: "payment_request.AWAITING_CAPTURE", at: 1}, {typ: "payment_request.SUCCEEDED", at: 2},
		}, want: "paid 5000-0-0 go"},
		{gateway: "xendit", name: "Voided", steps: []step{{typ: "payment_request.AWAITING_CAPTURE"}, {typ: "payment_request.VOIDED", at: 1}}, want: "canceled 0-0-0 wait"},
		{gateway: "xendit", name: "PartlyRefunded", parts: true, steps: []step{
			{typ: "invoice.PAID"}, {typ: "refund.PENDING", at: 1, amt: 1000}, {typ: "refund.SUCCEEDED", at: 2, amt: 1000},
		}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: "xendit", name: "RefundFails", parts: true, steps: []step{
			{typ: "invoice.PAID"}, {typ: "refund.PENDING", at: 1, amt: 1000}, {typ: "refund.FAILED", at: 2, amt: 1000},
		}, want: "paid 5000-0-0 go"},
		{gateway: "xendit", name: "Refunded", parts: true, steps: []step{{typ: "invoice.PAID"}, {typ: "refund.SUCCEEDED", at: 2}}, want: "refunded 5000-5000-0 stop"},
	}...)
)

// TestXenditRefundOf: a refund names its payment in one of three ways, and one
// that names none is nobody's.
func TestXenditRefundOf(t *testing.T) {
	t.Parallel()
	const invoice, request = "65d000000000000000000001", "pr-11111111-0000-4000-8000-000000000001"
	for _, tt := range []struct{ request, payment, invoice, want string }{
		{request, "null", "null", request},
		{"null", request, "null", request},
		{request, request, "null", request},
		{"null", "ddpy-1", invoice, invoice},
		{request, "py-1", invoice, invoice},
		{"null", "ddpy-1", "null", ""},
		{"null", "null", "null", ""},
	} {
		r := gateway.SampleRequest{Source: sourceNamed(t, "xendit"), Type: "refund.SUCCEEDED", Reference: "ord_7", Set: map[string]string{
			"payment_request_id": tt.request, "payment_id": tt.payment, "invoice_id": tt.invoice,
		}}
		ev := spokenOne(t, r)
		if tt.want == "" {
			require.Contains(t, ev.Broken, "names no payment", tt)
			continue
		}
		require.Equal(t, []string{tt.want}, ev.Payment, tt)
	}
}

// TestTokenGateways: whatever a delivery says besides, only an id comes out of it.
func TestTokenGateways(t *testing.T) {
	t.Parallel()
	const invoice, uuid = "65d000000000000000000001", "11111111-0000-4000-8000-000000000001"
	for _, tt := range []struct{ gateway, body, object, path string }{
		{"clip", `{"payment_request_id":"` + uuid + `","resource_status":"COMPLETED"}`, "checkout/" + uuid, "/v2/checkout/" + uuid},
		{"clip", `{"payment_request_id":"../x"}`, "", ""},
		{"clip", `{"id":"` + uuid + `"}`, "", ""},
		{"flutterwave-v3", `{"event":"charge.completed","data":{"id":285959875,"status":"successful"}}`, "transaction/285959875", "/v3/transactions/285959875/verify"},
		{"flutterwave-v3", `{"data":{"id":"285959875"}}`, "transaction/285959875", "/v3/transactions/285959875/verify"},
		{"flutterwave-v3", `{"event":"charge.completed","data":{"id":2.5}}`, "", ""},
		{"flutterwave-v3", `{"event":"charge.completed"}`, "", ""},
		{"xendit", `{"id":"` + invoice + `","status":"PAID"}`, "invoice/" + invoice, "/v2/invoices/" + invoice},
		{"xendit", `{"event":"payment.succeeded","data":{"payment_request_id":"pr-` + uuid + `"}}`, "payment_request/pr-" + uuid, "/payment_requests/pr-" + uuid},
		{"xendit", `{"event":"capture.succeeded","data":{"payment_request_id":"pr-` + uuid + `"}}`, "payment_request/pr-" + uuid, "/payment_requests/pr-" + uuid},
		{"xendit", `{"event":"refund.failed","data":{"id":"rfd-` + uuid + `"}}`, "refund/rfd-" + uuid, "/refunds/rfd-" + uuid},
		{"xendit", `{"event":"payment.succeeded","data":{"payment_request_id":"` + invoice + `"}}`, "", ""},
		{"xendit", `{"id":"x"}`, "", ""},
	} {
		source := sourceNamed(t, tt.gateway)
		g := of(t, source)
		d := deliver(t, source, []byte(tt.body))
		evs, err := g.Events(source, d)
		require.NoError(t, err)
		require.Empty(t, evs)
		objects, err := g.Objects(source, d)
		if tt.object == "" {
			require.ErrorAs(t, err, new(*gateway.ParseError), tt.body)
			continue
		}
		require.NoError(t, err)
		require.Len(t, objects, 1)
		require.Equal(t, tt.object, objects[0].String())
		call, err := g.Fetch.Call(source, objects[0])
		require.NoError(t, err)
		require.Equal(t, tt.path, call.Path)
		require.NotEmpty(t, call.Header.Get("Authorization"))
		_, err = g.Fetch.Call(source, gateway.Object{Kind: objects[0].Kind, ID: objects[0].ID + "/.."})
		require.Error(t, err)
		_, err = g.Fetched(source, objects[0], gateway.Answer{Body: []byte(`{"id":"other","payment_request_id":"other","data":{"id":1}}`), Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), "an answer about another object")
	}
	for name, key := range map[string]string{"xendit": "xnd_production_x", "flutterwave-v3": "FLWSECK-x"} {
		source := sourceNamed(t, name)
		source.AccessToken = key
		require.ErrorContains(t, of(t, source).Check(source), "access_token is a key of the other mode")
	}
	source := sourceNamed(t, "clip")
	source.AccessToken = "only-one"
	require.ErrorContains(t, gateway.Clip.Check(source), "access_token must be")
}
