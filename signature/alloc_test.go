//go:build !race

package signature_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// TestNoAllocations holds what the benchmark measures: checking a genuine request
// of a scheme with an HMAC in a header allocates nothing, whether it signs the body
// alone or more. (Under the race detector sync.Pool drops
// states at random, so it says nothing there.)
func TestNoAllocations(t *testing.T) {
	const url = "https://merchant.example/hooks"
	for name, secrets := range map[string][]string{
		"stripe":   {"whsec_other", stripeSecret},
		"standard": {"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", standardSecret},
		"paddle":   {"other", "pdl_ntfset_test_only"},
		"square":   {"other", "sq-test-only-key"},
		"razorpay": {"other", "rzp-secret"},
		"shopify":  {"other", "shopify-test-only"},
		"paystack": {"other", "sk_test_only"},
		"dlocal":   {"login:other", "login:key"},
	} {
		s, _ := signature.Lookup(name)
		signed, err := s.Sign([]byte(strings.Repeat("a", 2147)), secrets[1], now, signature.SignOptions{URL: url})
		require.NoError(t, err)
		req := signature.Request{URL: url, Header: signed.Header, Body: signed.Body}
		n := testing.AllocsPerRun(200, func() {
			if err := s.Verify(req, secrets, now); err != nil {
				t.Error(err)
			}
		})
		require.Zero(t, n, name)
	}
}
