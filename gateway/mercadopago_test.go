package gateway_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("mercadopago", conformance{
	volatile:      map[string]string{"id": "999", "date_created": "2026-01-01T06:00:00.000-04:00"},
	unknownType:   map[string]string{"status": "held_by_nobody"},
	typ:           "payment.approved",
	amount:        "transaction_amount",
	currency:      "currency_id",
	badAmounts:    decimals,
	badCurrencies: nil,
	noMode:        true, // of orders; payments: see below
	object: func(body []byte) gateway.Object {
		o := gateway.Object{Kind: "payment", ID: gjson.GetBytes(body, "id").String()}
		if gjson.GetBytes(body, "transactions").Exists() {
			o.Kind = "order"
		}
		return o
	},
	// The type says whether there is anything to ask about; see the gateway's comment.
	places: []string{`"type":"payment"`, `"type":"order"`},
})

func TestMercadoPagoObjects(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "mercadopago")
	for _, tt := range []struct {
		name, query, body, want string
		fails                   bool
	}{
		{name: "Payment", query: "data.id=123&type=payment", body: `{"type":"payment","data":{"id":"123"}}`, want: "payment/123"},
		{name: "TheURLNotTheBody", query: "data.id=123", body: `{"type":"payment","data":{"id":"666"}}`, want: "payment/123"},
		{name: "WithoutAType", query: "data.id=123", body: `{}`, want: "payment/123"},
		{name: "OrderAsReceived", query: "data.id=ORDTST01M2V0XY&type=order", body: `{"type":"order"}`, want: "order/ORDTST01M2V0XY"},
		{name: "OrderInLowerCase", query: "data.id=ordtst01m2v0xy", body: `{"type":"order"}`, want: "order/ordtst01m2v0xy"},
		{name: "TheIDDecides", query: "data.id=123", body: `{"type":"order"}`, want: "payment/123"},
		{name: "AnotherTopic", query: "data.id=123", body: `{"type":"topic_merchant_order_wh"}`},
		{name: "NoID", query: "type=payment", body: `{"type":"payment","data":{"id":"123"}}`, fails: true},
		{name: "TwoIDs", query: "data.id=1&data.id=2", body: `{"type":"payment"}`, fails: true},
		{name: "Traversal", query: "data.id=" + url.QueryEscape("1/../2"), body: `{"type":"payment"}`, fails: true},
		{name: "TooLong", query: "data.id=12345678901234567890", body: `{"type":"payment"}`, fails: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := gateway.MercadoPago.Objects(source, gateway.Delivery{Query: tt.query, Body: []byte(tt.body)})
			if tt.fails {
				require.ErrorAs(t, err, new(*gateway.ParseError))
				return
			}
			require.NoError(t, err)
			if tt.want == "" {
				require.Empty(t, got)
				return
			}
			require.Len(t, got, 1)
			require.Equal(t, tt.want, got[0].String())
		})
	}
}

func TestMercadoPagoCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "mercadopago")
	call, err := gateway.MercadoPago.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "123"})
	require.NoError(t, err)
	require.Equal(t, "/v1/payments/123", call.Path)
	require.Equal(t, "Bearer "+source.AccessToken, call.Header.Get("Authorization"))
	call, err = gateway.MercadoPago.Fetch.Call(source, gateway.Object{Kind: "order", ID: "ORD01K0000000"})
	require.NoError(t, err)
	require.Equal(t, "/v1/orders/ORD01K0000000", call.Path)
	for _, o := range []gateway.Object{{Kind: "payment", ID: "ORD01K0000000"}, {Kind: "order", ID: "../x"}, {Kind: "refund", ID: "1"}} {
		_, err = gateway.MercadoPago.Fetch.Call(source, o)
		require.Error(t, err, o)
	}
}

// TestMercadoPagoAnswers: what is asked about is what is answered, in the mode
// of the source.
func TestMercadoPagoAnswers(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: sourceNamed(t, "mercadopago"), Type: "payment.approved", Reference: "ord_7", Payment: "123"}
	object, answer, err := gateway.MercadoPago.Fetch.Sample(r)
	require.NoError(t, err)
	_, err = gateway.MercadoPago.Fetched(r.Source, gateway.Object{Kind: "payment", ID: "124"}, gateway.Answer{Body: answer, Started: now})
	require.ErrorAs(t, err, new(*gateway.ParseError), "an answer about another payment")
	require.Equal(t, "payment/123", object.String())

	r.Mode = gateway.Live
	for _, f := range spokenOne(t, r).Facts {
		require.Equal(t, order.MisfitMode, f.Misfit)
	}
	r.Mode, r.Set = "", map[string]string{"live_mode": "null"} // the credentials decide
	require.Empty(t, spokenOne(t, r).Facts[0].Misfit)

	// An order that tests counts on no live source.
	live := gateway.SampleRequest{Source: r.Source, Type: "order.processed", Reference: "ord_7", Mode: gateway.Test}
	live.Source.Mode = gateway.Live
	for _, f := range spokenOne(t, live).Facts {
		require.Equal(t, order.MisfitMode, f.Misfit)
	}
	live.Mode = gateway.Live
	require.Empty(t, spokenOne(t, live).Facts[0].Misfit)

	// A state is as old as it says, whenever it was asked for.
	r.At = now.Add(-time.Hour)
	r.Set = nil
	require.Equal(t, r.At.UnixMilli(), spokenOne(t, r).Facts[0].Seq)

	// Without a time of its own, a state is as old as the call.
	r.Set = map[string]string{"date_last_updated": "null"}
	require.Equal(t, now.UnixMilli(), spokenOne(t, r).Facts[0].Seq)
}

// TestMercadoPagoPartOfNothing: an order that is refunded in part must say how
// much, or it would count as paid in full.
func TestMercadoPagoPartOfNothing(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: sourceNamed(t, "mercadopago"), Type: "order.processed", Reference: "ord_7", Amount: order.Amount{Minor: 5000, Currency: "BRL"}}
	payment := r
	payment.Type, payment.Set = "payment.approved", map[string]string{"status_detail": "partially_refunded"}
	require.Contains(t, spokenOne(t, payment).Broken, "refunded")
	payment.Set["transaction_amount_refunded"] = "10"
	require.Empty(t, spokenOne(t, payment).Broken)
	for _, path := range []string{"status_detail", "transactions.payments.0.status_detail"} {
		r.Set = map[string]string{path: "partially_refunded"}
		require.Contains(t, spokenOne(t, r).Broken, "refunded")
		r.Set["transactions.payments.0.refunded_amount"] = "10.00"
		require.Empty(t, spokenOne(t, r).Broken)
		delete(r.Set, "transactions.payments.0.refunded_amount")
		r.Set["transactions.refunds"] = `[{"id":"REF1","amount":"10.00","status":"processed"}]`
		require.Empty(t, spokenOne(t, r).Broken)
	}
}

var _ = asks([]askedFlow{
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
		{typ: "payment.approved"},
		{typ: "payment.in_mediation", at: 2},
		{typ: "payment.charged_back", at: 3, set: set("status_detail", "in_process")},
		{typ: "payment.charged_back", at: 4},
	}, want: "charged_back 5000-0-5000 stop"},
	{gateway: "mercadopago", name: "DisputeWon", steps: []step{
		{typ: "payment.approved"}, {typ: "payment.charged_back", at: 3}, {typ: "payment.charged_back", at: 4, set: set("status_detail", "reimbursed")},
	}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "Order", steps: []step{
		{typ: "order.created"}, {typ: "order.action_required", at: 1}, {typ: "order.processed", at: 2},
	}, want: "paid 5000-0-0 go"},
	{gateway: "mercadopago", name: "OrderRefunded", steps: []step{{typ: "order.processed"}, {typ: "order.refunded", at: 2}}, want: "refunded 5000-5000-0 stop"},
	{gateway: "mercadopago", name: "OrderStaysProcessedWhenRefunded", steps: []step{
		{typ: "order.processed"}, {typ: "order.processed", at: 2, set: set("status_detail", "refunded")},
	}, want: "refunded 5000-5000-0 stop"},
	{gateway: "mercadopago", name: "OrderPaymentStaysProcessedWhenRefunded", steps: []step{
		{typ: "order.processed"}, {typ: "order.processed", at: 2, set: set("transactions.payments.0.status_detail", "refunded")},
	}, want: "refunded 5000-5000-0 stop"},
	{gateway: "mercadopago", name: "OrderChargedBack", steps: []step{{typ: "order.processed"}, {typ: "order.charged_back", at: 2}}, want: "charged_back 5000-0-5000 stop"},
}...)
