package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("shopify", conformance{
	unknownType: map[string]string{"order.financial_status": "swapped"},
	typ:         "order.paid",
	amount:      "order.total_price",
	currency:    "order.currency",
	badAmounts:  decimals,
	noMode:      true, // of disputes, and of test sources; see below
	noTime:      true, // of disputes; see below
	object: func(body []byte) gateway.Object {
		kind := "order"
		if gjson.GetBytes(body, "dispute").Exists() {
			kind = "dispute"
		}
		return gateway.Object{Kind: kind, ID: gjson.GetBytes(body, kind+".id").Raw}
	},
})

// TestShopifyDelivery: a delivery is known by its bytes, says nothing itself,
// and leads to the order whatever its headers claim.
func TestShopifyDelivery(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "shopify")
	body := []byte(`{"id":820982911946154508,"financial_status":"paid","total_price":"50.00"}`)
	d := deliver(t, source, body)
	d.Header.Set("X-Shopify-Topic", "refunds/create")
	d.Header.Set("X-Shopify-Webhook-Id", "b54557e4")
	evs, err := gateway.Shopify.Events(source, d)
	require.NoError(t, err)
	require.Len(t, evs, 1)
	require.Equal(t, "order/820982911946154508", evs[0].Fetch)
	require.Empty(t, evs[0].Facts)
	first := evs[0].ID

	d.Header.Set("X-Shopify-Webhook-Id", "another")
	evs, err = gateway.Shopify.Events(source, d)
	require.NoError(t, err)
	require.Equal(t, first, evs[0].ID)
	require.NotEqual(t, first, event(t, source, append(body, '\n')).ID)
}

func TestShopifyCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "shopify")
	require.Equal(t, "https://example.myshopify.com", gateway.Shopify.Fetch.BaseURL(source))
	call, err := gateway.Shopify.Fetch.Call(source, gateway.Object{Kind: "order", ID: "820982911946154508"})
	require.NoError(t, err)
	require.Equal(t, "/admin/api/2026-01/orders/820982911946154508.json", call.Path)
	require.Equal(t, source.AccessToken, call.Header.Get("X-Shopify-Access-Token"))
	call, err = gateway.Shopify.Fetch.Call(source, gateway.Object{Kind: "dispute", ID: "7"})
	require.NoError(t, err)
	require.Equal(t, "/admin/api/2026-01/shopify_payments/disputes/7.json", call.Path)
	for _, o := range []gateway.Object{{Kind: "order", ID: "7/../8"}, {Kind: "shop", ID: "7"}} {
		_, err = gateway.Shopify.Fetch.Call(source, o)
		require.Error(t, err, o)
	}
}

func TestShopifyAnswers(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: sourceNamed(t, "shopify"), Type: "order.paid", Reference: "ord_7", Payment: "123", At: now.Add(-time.Hour)}
	ev := spokenOne(t, r)
	require.Equal(t, r.At, ev.At)
	require.Equal(t, r.At.UnixMilli(), ev.Facts[0].Seq, "a state is as old as it says")

	_, answer, err := gateway.Shopify.Fetch.Sample(r)
	require.NoError(t, err)
	for _, o := range []gateway.Object{{Kind: "order", ID: "124"}, {Kind: "dispute", ID: "123"}} {
		_, err = gateway.Shopify.Fetched(r.Source, o, gateway.Answer{Body: answer, Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), o)
	}

	// A test counts on no live source.
	r.Source.Mode, r.Mode = gateway.Live, gateway.Test
	for _, f := range spokenOne(t, r).Facts {
		require.Equal(t, order.MisfitMode, f.Misfit)
	}
	r.Mode = gateway.Live
	require.Empty(t, spokenOne(t, r).Facts[0].Misfit)

	// Another place for the reference.
	r.Source.Reference = "/order/name"
	require.Equal(t, "#1001", spokenOne(t, r).Reference)
}

var _ = asks(shopifyFlows()...)

func shopifyFlows() []askedFlow {
	refund := func(status string) map[string]string {
		return map[string]string{"order.refunds.0.transactions.0.amount": "10.00", "order.refunds.0.transactions.0.status": status}
	}
	dispute := step{typ: "dispute.needs_response", at: 3}
	return []askedFlow{
		{gateway: "shopify", name: "Paid", steps: []step{{typ: "order.pending"}, {typ: "order.paid", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "AuthorizedThenPaid", steps: []step{{typ: "order.pending"}, {typ: "order.authorized", at: 1}, {typ: "order.paid", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "PaidInParts", steps: []step{{typ: "order.authorized"}, {typ: "order.partially_paid", at: 1, amt: 2500}}, want: "partially_paid 2500-0-0 wait"},
		{gateway: "shopify", name: "EditedBeforeItWasPaid", steps: []step{{typ: "order.pending"}, {typ: "order.paid", at: 1, set: set("order.current_total_price", "40.00")}}, want: "partially_paid 4000-0-0 wait"},
		{gateway: "shopify", name: "EditedAfterItWasPaid", steps: []step{{typ: "order.paid"}, {typ: "order.paid", at: 1, set: map[string]string{
			"order.current_total_price": "40.00", "order.total_outstanding": "-10.00",
		}}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "EditedAndPaidInPart", steps: []step{{typ: "order.partially_paid", amt: 2500, set: map[string]string{
			"order.current_total_price": "40.00", "order.total_outstanding": "15.00",
		}}}, want: "partially_paid 2500-0-0 wait"},
		{gateway: "shopify", name: "MoreWasAdded", steps: []step{{typ: "order.paid"}, {typ: "order.partially_paid", at: 1, amt: 2500, set: map[string]string{
			"order.current_total_price": "70.00", "order.total_outstanding": "20.00",
		}}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "PaidInPartAndRefundedInPart", steps: []step{{typ: "order.partially_refunded", set: map[string]string{
			"order.refunds.0.transactions.0.amount": "10.00", "order.current_total_price": "50.00", "order.total_outstanding": "30.00",
		}}}, want: "partially_paid 3000-1000-0 wait"},
		{gateway: "shopify", name: "RefundWithItsGoods", steps: []step{{typ: "order.paid"}, {typ: "order.partially_refunded", at: 1, set: map[string]string{
			"order.refunds.0.transactions.0.amount": "10.00", "order.current_total_price": "40.00", "order.total_outstanding": "0.00",
		}}}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: "shopify", name: "RefundWithItsGoodsFails", steps: []step{{typ: "order.paid"}, {typ: "order.paid", at: 1, set: map[string]string{
			"order.current_total_price": "0.00", "order.refunds": `[{"id":1,"transactions":[{"id":2,"kind":"refund","status":"failure","amount":"50.00","currency":"EUR"}]}]`,
		}}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "Voided", steps: []step{{typ: "order.authorized"}, {typ: "order.voided", at: 1}}, want: "canceled 0-0-0 wait"},
		{gateway: "shopify", name: "Expired", steps: []step{{typ: "order.authorized"}, {typ: "order.expired", at: 1}}, want: "expired 0-0-0 wait"},
		{gateway: "shopify", name: "PartlyRefunded", steps: []step{{typ: "order.paid"}, {typ: "order.partially_refunded", at: 1, set: refund("success")}}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: "shopify", name: "RefundFails", steps: []step{
			{typ: "order.paid"}, {typ: "order.partially_refunded", at: 1, set: refund("pending")}, {typ: "order.partially_refunded", at: 2, set: refund("failure")},
		}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "Refunded", steps: []step{{typ: "order.paid"}, {typ: "order.refunded", at: 1}}, want: "refunded 5000-5000-0 stop"},
		{gateway: "shopify", name: "DisputeOpen", parts: true, steps: []step{{typ: "order.paid"}, dispute, {typ: "dispute.under_review", at: 4}}, want: "disputed 5000-0-0 pause"},
		{gateway: "shopify", name: "DisputeWon", parts: true, steps: []step{{typ: "order.paid"}, dispute, {typ: "dispute.won", at: 5}}, want: "paid 5000-0-0 go"},
		{gateway: "shopify", name: "DisputeLost", parts: true, steps: []step{{typ: "order.paid"}, dispute, {typ: "dispute.lost", at: 5}}, want: "charged_back 5000-0-5000 stop"},
		{gateway: "shopify", name: "DisputeRefunded", parts: true, steps: []step{{typ: "order.paid"}, dispute, {typ: "order.refunded", at: 4}, {typ: "dispute.charge_refunded", at: 5}}, want: "refunded 5000-5000-0 stop"},
	}
}
