package gateway_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// currencies are those with other decimals at some gateway, and common ones.
var currencies = []string{"EUR", "USD", "JPY", "KWD", "ISK", "UGX", "MGA", "CLP", "CVE", "IDR", "HUF", "TWD", "KRW", "BHD", "VND"}

// TestAmountsComeBack: an amount that a sample carries in the gateway's units is
// read as the same money.
func TestAmountsComeBack(t *testing.T) {
	t.Parallel()
	types := map[string]string{
		"stripe": "payment_intent.succeeded", "adyen": "AUTHORISATION", "standard": "payment.succeeded", "paypal": "PAYMENT.CAPTURE.COMPLETED",
		"braintree": "transaction_settled", "redsys": "0", "worldpay": "sentForSettlement",
	}
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(types))).Draw(t, "gateway")
		source := sourceNamed(t, name)
		g, _ := gateway.Lookup(name)
		want := order.Amount{
			Minor:    rapid.Int64Range(0, order.All-1).Draw(t, "minor"),
			Currency: rapid.SampledFrom(currencies).Draw(t, "currency"),
		}
		body, err := g.Sample(gateway.SampleRequest{Source: source, Type: types[name], Amount: want})
		if err != nil {
			return // no whole number of the gateway's units, or one too great
		}
		header, signed, err := g.Sign(source, body, now)
		require.NoError(t, err)
		evs, err := g.Events(source, gateway.Delivery{Header: header, Body: signed})
		require.NoError(t, err)
		require.Empty(t, evs[0].Broken)
		captured := evs[0].Facts[len(evs[0].Facts)-1]
		require.Equal(t, want, order.Amount{Minor: captured.Amount, Currency: captured.Currency})
	})
}

// TestDecimals pins the currencies that a gateway counts in other units than
// ISO 4217, and their neighbours that it does not.
func TestDecimals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gateway, currency string
		theirs            string
		ours              int64 // -1: not a whole number of our units
	}{
		{"stripe", "isk", "500", 5}, // https://docs.stripe.com/currencies#special-cases: "to charge 5 ISK, provide 500"
		{"stripe", "ugx", "500", 5},
		{"stripe", "isk", "550", -1},
		{"stripe", "mga", "5", 500},
		{"stripe", "huf", "500", 500},
		{"stripe", "twd", "500", 500},
		{"stripe", "jpy", "500", 500},
		{"stripe", "clp", "500", 500},
		{"stripe", "idr", "500", 500},
		{"stripe", "kwd", "5120", 5120},
		{"stripe", "mga", "92233720368547757", 9223372036854775700},
		{"stripe", "mga", "92233720368547758", -1}, // beyond 64 bits
		{"adyen", "CLP", "500", 5},
		{"adyen", "ISK", "500", 5},
		{"adyen", "CLP", "1", -1},
		{"adyen", "CVE", "5", 500},
		{"adyen", "IDR", "5", 500},
		{"adyen", "IDR", "9223372036854775806", -1},
		{"adyen", "UGX", "5", 5},
		{"adyen", "MGA", "500", 500},
		{"adyen", "JPY", "5", 5},
		{"adyen", "KWD", "5000", 5000},
	} {
		source := sourceNamed(t, tt.gateway)
		r := gateway.SampleRequest{Source: source, Type: "payment_intent.succeeded", Set: map[string]string{
			"data.object.amount": tt.theirs, "data.object.amount_received": tt.theirs, "data.object.currency": tt.currency,
		}}
		if tt.gateway == "adyen" {
			r.Type, r.Set = "AUTHORISATION", map[string]string{"amount.value": tt.theirs, "amount.currency": tt.currency}
		}
		ev := sampled(t, r)
		if tt.ours < 0 {
			require.NotEmpty(t, ev.Broken, "%+v", tt)
			continue
		}
		require.Empty(t, ev.Broken, "%+v", tt)
		require.Equal(t, tt.ours, ev.Own.Minor, "%+v", tt)
	}
}

// TestSampleRefusesWhatCannotBeSent: an amount that the gateway has no number for.
func TestSampleRefusesWhatCannotBeSent(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		gateway string
		amount  order.Amount
	}{
		{"stripe", order.Amount{Minor: 550, Currency: "MGA"}},
		{"stripe", order.Amount{Minor: -1, Currency: "EUR"}},
		{"stripe", order.Amount{Minor: 1, Currency: "ZZZ"}},
		{"stripe", order.Amount{Minor: order.All - 1, Currency: "ISK"}},
		{"adyen", order.Amount{Minor: 501, Currency: "IDR"}},
		{"adyen", order.Amount{Minor: 1, Currency: "eur"}},
		{"standard", order.Amount{Minor: 1, Currency: "ZZZ"}},
	} {
		source := sourceNamed(t, tt.gateway)
		g := of(t, source)
		_, err := g.Sample(gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name, Amount: tt.amount})
		require.Error(t, err, "%+v", tt)
	}
}
