package bank_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// TestCurrencies: amounts in the gateway's own minor units, where they are not those of ISO 4217, and what they cannot hold is no
// amount.
func TestCurrencies(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	for _, row := range []struct {
		gw, currency   string
		minor, written int64
	}{
		{"stripe", "JPY", 5000, 5000},
		{"stripe", "ISK", 5000, 500000},
		{"stripe", "UGX", 70, 7000},
		{"stripe", "MGA", 5000, 50},
		{"stripe", "KWD", 5000, 5000},
		{"adyen", "JPY", 5000, 5000},
		{"adyen", "CLP", 5000, 500000},
		{"adyen", "CVE", 5000, 50},
		{"adyen", "IDR", 5000, 50},
		{"adyen", "ISK", 50, 5000},
	} {
		p, err := s.Open(bank.Opening{Source: "a." + row.gw, Reference: "A", Amount: order.Amount{Minor: row.minor, Currency: row.currency}, Captured: true})
		require.NoError(t, err)
		call, field := ask{
			method: "POST", path: "/v71/payments/" + p.IDs[0] + "/refunds",
			body: fmt.Sprintf(`{"merchantAccount":"ExampleShopECOM","amount":{"value":%d,"currency":%q}}`, row.written, row.currency),
		}, "amount.value"
		if row.gw == "stripe" {
			require.Equal(t, row.written, s.get("stripe", "/v1/payment_intents/"+p.IDs[0]).body.Get("amount_received").Int(), row)
			call, field = ask{method: "POST", path: "/v1/refunds", body: fmt.Sprintf("payment_intent=%s&amount=%d", p.IDs[0], row.written)}, "amount"
		}
		got := s.do(row.gw, call)
		require.Contains(t, []int{200, 201}, got.status, got.text)
		require.Equal(t, row.written, got.body.Get(field).Int(), row)
		require.Equal(t, bank.Sums{Authorized: row.minor, Captured: row.minor, Refunded: row.minor}, s.book(p).Sums[row.currency], row)
	}
	for value, issue := range map[string]string{"10.00": "DECIMALS_NOT_SUPPORTED", "51": "REFUND_AMOUNT_EXCEEDED", "10": ""} {
		p, err := s.Open(bank.Opening{Source: "a.paypal", Amount: order.Amount{Minor: 5000, Currency: "HUF"}, Captured: true})
		require.NoError(t, err)
		got := s.do("paypal", ask{method: "POST", path: "/v2/payments/captures/" + p.IDs[0] + "/refund", header: map[string]string{"Prefer": "return=representation"}, body: fmt.Sprintf(`{"amount":{"value":%q,"currency_code":"HUF"}}`, value)})
		require.Equal(t, issue, got.body.Get("details.0.issue").String(), value)
		if issue == "" {
			require.Equal(t, value, got.body.Get("amount.value").String())
			require.EqualValues(t, 1000, s.book(p).Sums["HUF"].Refunded)
		}
	}
	p, err := s.Open(bank.Opening{Source: "a.stripe", Amount: order.Amount{Minor: 5000, Currency: "ISK"}, Captured: true})
	require.NoError(t, err)
	got := s.do("stripe", ask{method: "POST", path: "/v1/refunds", body: "amount=150&payment_intent=" + p.IDs[0]})
	require.Equal(t, "parameter_invalid_integer", got.body.Get("error.code").String())
}
