//go:build !race

package signature_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// TestNoAllocations holds what the benchmark measures: checking a genuine request
// of a header scheme allocates nothing. (Under the race detector sync.Pool drops
// states at random, so it says nothing there.)
func TestNoAllocations(t *testing.T) {
	for name, secret := range map[string]string{"stripe": stripeSecret, "standard": standardSecret} {
		s, _ := signature.Lookup(name)
		signed, err := s.Sign([]byte(strings.Repeat("a", 2147)), secret, now, signature.SignOptions{})
		require.NoError(t, err)
		req := signature.Request{Header: signed.Header, Body: signed.Body}
		secrets := []string{"whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", secret}
		n := testing.AllocsPerRun(200, func() {
			if err := s.Verify(req, secrets, now); err != nil {
				t.Error(err)
			}
		})
		require.Zero(t, n, name)
	}
}
