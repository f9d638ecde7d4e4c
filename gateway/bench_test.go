package gateway_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// BenchmarkEvents measures the mapping alone, of payloads of the usual size.
func BenchmarkEvents(b *testing.B) {
	for _, bm := range []struct {
		name, file string
		source     gateway.Source
	}{
		{"StripeIntent", "stripe/payment_intent.succeeded.json", stripeSource()},
		{"StripeCharge", "stripe/charge.refunded.json", stripeSource()},
		{"StripeIgnored", "stripe/customer.created.json", stripeSource()},
		{"Adyen", "adyen/AUTHORISATION.json", adyenSource()},
		{"AdyenThree", "adyen/batch.three-items.json", adyenSource()},
		{"Standard", "standard/payment.succeeded.json", standardSource()},
	} {
		b.Run(bm.name, func(b *testing.B) {
			body, err := os.ReadFile(filepath.Join(payloads, bm.file))
			require.NoError(b, err)
			d := deliver(b, bm.source, body)
			g := of(b, bm.source)
			b.SetBytes(int64(len(d.Body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Events(bm.source, d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
