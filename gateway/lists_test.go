package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// TestLongListsAreNotCut: where an answer lists more refunds than are read, the
// rest could be money, so a person has to look.
func TestLongListsAreNotCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ gateway, typ, path, one string }{
		{"mercadopago", "payment.approved", "refunds", `{"id":%d,"status":"approved","amount":0.01}`},
		{"mollie-classic", "payment.paid", "_embedded.refunds", `{"resource":"refund","id":"re_%d","status":"refunded","amount":{"value":"0.01","currency":"EUR"}}`},
		{"openpay", "charge.completed", "refunds", `{"id":"tr%d","status":"completed","amount":0.01}`},
		{"shopify", "order.paid", "order.refunds", `{"transactions":[{"id":%d,"kind":"refund","status":"success","amount":"0.01","currency":"EUR"}]}`},
		{"ebanx", "payment.CO", "payment.refunds", `{"id":"%d","status":"CO","amount_ext":"0.01"}`},
	} {
		t.Run(tt.gateway, func(t *testing.T) {
			t.Parallel()
			g, ok := gateway.Lookup(tt.gateway)
			require.True(t, ok)
			source := sourceFor(t, g)
			many := func(n int) string {
				list := make([]string, n)
				for i := range list {
					list[i] = fmt.Sprintf(tt.one, i+1)
				}
				r := gateway.SampleRequest{
					Source: source, Type: typeLike(t, g, source, tt.typ), Reference: "ord_7",
					Set: map[string]string{tt.path: "[" + strings.Join(list, ",") + "]"},
				}
				return spokenOne(t, r).Broken
			}
			require.Empty(t, many(200))
			require.Contains(t, many(201), "more than 200")
		})
	}
}

// typeLike is the gateway's type of that name, or the first that begins so.
func typeLike(t *testing.T, g *gateway.Gateway, source gateway.Source, name string) string {
	t.Helper()
	for _, typ := range g.Types(source) {
		if strings.HasPrefix(typ.Name, name) {
			return typ.Name
		}
	}
	t.Fatalf("%s has no type %s: %v", g.Name, name, g.Types(source))
	return ""
}
