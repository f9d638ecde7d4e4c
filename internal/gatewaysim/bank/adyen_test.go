package bank_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
)

func TestAdyenModifications(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	held := s.pay("adyen", "A-1", false)
	got := s.do("adyen", s.capture("adyen", held, 3000, "m-1", "k-1"))
	require.Equal(t, 201, got.status)
	require.Equal(t, "k-1", got.header.Get("idempotency-key"))
	require.Equal(t, `["ExampleShopECOM","m-1","received",3000,"EUR"]`, got.body.Get("[merchantAccount,reference,status,amount.value,amount.currency]").Raw)
	require.Equal(t, held.IDs[0], got.body.Get("paymentPspReference").String())
	ref := got.body.Get("pspReference").String()
	require.Len(t, ref, 16)
	s.Pump(t.Context())
	item := gjson.ParseBytes(s.inbox.hook[1].Delivery.Body).Get("notificationItems.0.NotificationRequestItem")
	require.Equal(t, `["CAPTURE","true","m-1","ExampleShopECOM",3000,""]`, item.Get("[eventCode,success,merchantReference,merchantAccountCode,amount.value,reason]").Raw)
	require.Equal(t, []string{ref, held.IDs[0]}, []string{item.Get("pspReference").String(), item.Get("originalReference").String()})
	require.Equal(t, "false", gjson.ParseBytes(s.inbox.hook[1].Delivery.Body).Get("live").String())

	// Under the prefix of live URLs, and without a reference: then the payment's is told.
	s.inbox.clear()
	got = s.do("adyen", ask{method: "POST", path: "/checkout/v72/payments/" + held.IDs[0] + "/refunds", body: `{"merchantAccount":"ExampleShopECOM","amount":{"value":100,"currency":"EUR"}}`})
	require.Equal(t, 201, got.status, got.text)
	s.Pump(t.Context())
	require.Equal(t, "A-1", gjson.ParseBytes(s.inbox.hook[0].Delivery.Body).Get("notificationItems.0.NotificationRequestItem.merchantReference").String())

	for _, row := range []struct {
		what, body, code string
		status           int
	}{
		{"refunds", `{`, "702", 400},
		{"refunds", `{"merchantAccount":"ExampleShopECOM"}`, "100", 422},
		{"refunds", `{"merchantAccount":"ExampleShopECOM","amount":{"value":1,"currency":"USD"}}`, "137", 422},
		{"refunds", `{"merchantAccount":"ExampleShopECOM","amount":{"value":-1,"currency":"EUR"}}`, "137", 422},
	} {
		got := s.do("adyen", ask{method: "POST", path: "/v71/payments/" + held.IDs[0] + "/" + row.what, body: row.body})
		require.Equal(t, row.status, got.status, row)
		require.Equal(t, row.code, got.body.Get("errorCode").String(), row)
	}
	require.Equal(t, 422, s.do("adyen", ask{method: "POST", path: "/v71/payments/" + ref + "/refunds", body: `{"merchantAccount":"ExampleShopECOM","amount":{"value":1,"currency":"EUR"}}`}).status, "a modification is no payment")
	require.Equal(t, 404, s.get("adyen", "/v71/payments/"+held.IDs[0]).status)
	require.Equal(t, 404, s.do("adyen", ask{method: "POST", path: "/v71/payments"}).status)
}
