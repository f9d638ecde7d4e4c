package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("lemonsqueezy", conformance{
	volatile:    map[string]string{"meta.webhook_id": "9e1f0a56", "data.links": "{}"},
	unknownType: map[string]string{"meta.event_name": "license_key_created"},
	typ:         "order_created",
	amount:      lemonAt + "total",
	currency:    lemonAt + "currency",
	payment: func(r gateway.SampleRequest) string {
		if strings.HasPrefix(r.Type, "order_") {
			return "orders/" + r.Payment
		}
		return "subscription-invoices/" + r.Payment
	},
	alone: []string{"subscription_payment_success", "subscription_payment_failed", "subscription_payment_recovered", "subscription_payment_refunded"},
})

const lemonAt = "data.attributes."

// refundedBy sets how much of an order was refunded by then.
func refundedBy(amount, status string) map[string]string {
	return map[string]string{lemonAt + "refunded_amount": amount, lemonAt + "status": status}
}

func TestLemonSqueezyFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "lemonsqueezy")
	renewals := s
	renewals.Reference = "/meta/custom_data/order_id"
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "order_created"}}, "paid 5000-0-0 go"},
		{"Pending", s, []step{{typ: "order_created", set: set(lemonAt+"status", "pending")}}, "pending 0-0-0 wait"},
		{"Failed", s, []step{{typ: "order_created", set: set(lemonAt+"status", "failed")}}, "failed 0-0-0 wait"},
		{"FirstInvoiceIsItsOrder", s, []step{
			{typ: "order_created"}, {typ: "subscription_payment_success", set: set(lemonAt+"billing_reason", "initial")},
		}, "paid 5000-0-0 go"},
		{"RenewalIsAnotherSale", s, []step{{typ: "order_created"}, {typ: "subscription_payment_success", at: 9999}}, "paid 5000-0-0 go"},
		{"Refunded", s, []step{{typ: "order_created"}, {typ: "order_refunded", at: 5}}, "refunded 5000-5000-0 stop"},
		{"TwoRefunds", s, []step{
			{typ: "order_created"},
			{typ: "order_refunded", at: 5, set: refundedBy("1000", "partial_refund")},
			{typ: "order_refunded", at: 6, set: refundedBy("2500", "partial_refund")},
		}, "partially_refunded 5000-2500-0 go"},
		{"FirstEventLost", s, []step{{typ: "order_refunded", at: 5, set: refundedBy("1000", "partial_refund")}}, "partially_refunded 5000-1000-0 go"},
		{"Fraudulent", s, []step{{typ: "order_created"}, {typ: "order_refunded", at: 5, set: set(lemonAt+"status", "fraudulent")}}, "canceled 0-0-0 stop"},
		{"RenewalRecovered", renewals, []step{
			{typ: "subscription_payment_failed"}, {typ: "subscription_payment_recovered", at: 99}, {typ: "subscription_payment_success", at: 99},
		}, "paid 5000-0-0 go"},
		{"RenewalFailed", renewals, []step{{typ: "subscription_payment_failed"}}, "failed 0-0-0 wait"},
		{"RenewalRefunded", renewals, []step{
			{typ: "subscription_payment_success"}, {typ: "subscription_payment_refunded", at: 9, set: refundedBy("1000", "partial_refund")},
		}, "partially_refunded 5000-1000-0 go"},
	})
}

// TestLemonSqueezyNumbers: order 7 and invoice 7 are two payments.
func TestLemonSqueezyNumbers(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "lemonsqueezy")
	read := func(typ, payment string) order.Event {
		return sampled(t, gateway.SampleRequest{Source: s, Type: typ, Payment: payment, Reference: "ord_7"})
	}
	require.Equal(t, []string{"orders/7"}, read("order_created", "7").Payment)
	require.Equal(t, []string{"orders/7"}, read("order_refunded", "orders/7").Payment)
	require.Equal(t, []string{"subscription-invoices/7"}, read("subscription_payment_success", "7").Payment)
	require.Empty(t, read("subscription_payment_success", "7").Reference)
	require.NotEqual(t, read("order_created", "7").ID, read("order_refunded", "7").ID)
}

func TestLemonSqueezyModeAndStore(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "lemonsqueezy")
	s.MerchantAccounts = []string{"1001"}
	for _, tt := range []struct {
		mode, test, store string
		want              order.Misfit
	}{
		{gateway.Test, "true", "1001", ""},
		{gateway.Live, "false", "1001", ""},
		{gateway.Test, "false", "1001", order.MisfitMode},
		{gateway.Live, "true", "1001", order.MisfitMode},
		{gateway.Live, "null", "1001", order.MisfitMode},
		{gateway.Live, `"false"`, "1001", order.MisfitMode},
		{gateway.Test, "true", "1002", order.MisfitAccount},
		{gateway.Test, "true", "null", order.MisfitAccount},
	} {
		s.Mode = tt.mode
		ev := sampled(t, gateway.SampleRequest{Source: s, Type: "order_created", Reference: "ord_7", Set: map[string]string{
			lemonAt + "test_mode": tt.test, lemonAt + "store_id": tt.store,
		}})
		require.Len(t, ev.Facts, 3)
		require.Equal(t, tt.want, ev.Facts[0].Misfit, "%+v", tt)
	}
}
