package signature_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

func TestLookup(t *testing.T) {
	t.Parallel()
	all := signature.Schemes()
	require.NotEmpty(t, all)
	for _, s := range all {
		found, ok := signature.Lookup(s.Name)
		require.True(t, ok)
		require.Same(t, s, found)
	}
	_, ok := signature.Lookup("nobody")
	require.False(t, ok)

	all[0] = nil // the caller's slice is its own
	require.NotNil(t, signature.Schemes()[0])

	err := signature.Verify("nobody", signature.Request{}, []string{"s"}, now)
	require.Equal(t, signature.UnknownScheme, signature.ReasonOf(err))
}

func TestReasonOf(t *testing.T) {
	t.Parallel()
	err := signature.Verify("stripe", signature.Request{}, nil, now)
	require.Equal(t, signature.Missing, signature.ReasonOf(fmt.Errorf("receive: %w", err)))
	require.Empty(t, signature.ReasonOf(nil))
	require.Empty(t, signature.ReasonOf(errors.New("other")))
}

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	const none, bad = signature.NoSecret, signature.BadSecret
	thirtyTwo := strings.TrimPrefix(publicSecret, "whpk_")
	for _, tt := range []struct {
		scheme, secret string
		want           signature.Reason
	}{
		{"stripe", stripeSecret, ""},
		{"stripe", "", none},
		{"stripe", "whsec_", bad},
		{"stripe", "sk_live_4eC39HqLyjWDarjtT1zdp7dc", bad},
		{"stripe", "we_1Mr5jULkdIwHu7ix1ibLTM0x", bad},
		{"stripe", stripeSecret + "\n", bad},
		{"stripe", " " + stripeSecret, bad},
		{"stripe", "whsec_a b_secret", bad},
		{"stripe", "whsec_ключ_secret", bad},

		{"standard", standardSecret, ""},
		{"standard", strings.TrimPrefix(standardSecret, "whsec_"), ""},
		{"standard", publicSecret, ""},
		{"standard", "whsec_" + thirtyTwo, ""},
		{"standard", "", none},
		{"standard", "whsec_", bad},
		{"standard", "whsec_dG9vIHNob3J0", bad},
		{"standard", stripeSecret, bad},
		{"standard", standardSecret + "\n", bad},
		{"standard", standardSecret[:20] + "\n" + standardSecret[20:], bad},
		{"standard", "whsec_" + strings.TrimRight(thirtyTwo, "="), bad},
		{"standard", "whpk_", bad},
		{"standard", "whpk_" + strings.TrimPrefix(standardSecret, "whsec_"), bad},
		{"standard", "whpk_" + strings.TrimPrefix(privateSecret, "whsk_"), bad},
		{"standard", "whpk_not base64 at all", bad},
		{"standard", privateSecret, bad},
		{"standard", "whsk_" + thirtyTwo, bad},
		{"standard", "whsk_AAAA", bad},

		{"adyen", adyenSecret, ""},
		{"adyen", strings.ToLower(adyenSecret), ""},
		{"adyen", "", none},
		{"adyen", adyenSecret[:62], bad},
		{"adyen", adyenSecret + "00", bad},
		{"adyen", "0x" + adyenSecret[2:], bad},
		{"adyen", adyenSecret + "\n", bad},
	} {
		s, ok := signature.Lookup(tt.scheme)
		require.True(t, ok)
		err := s.CheckSecret(tt.secret)
		require.Equal(t, tt.want, signature.ReasonOf(err), "%s %q: %v", tt.scheme, tt.secret, err)
		if len(tt.secret) > len("whsec_") && err != nil {
			require.NotContains(t, err.Error(), tt.secret)
			require.NotContains(t, err.Error(), strings.TrimSpace(tt.secret)[6:])
		}
	}
}

func TestSignRefusesSecrets(t *testing.T) {
	t.Parallel()
	other := "whsk_" + strings.TrimPrefix(privateSecret, "whsk_")[:40] + "AAAA" + strings.TrimPrefix(privateSecret, "whsk_")[44:]
	for _, tt := range []struct {
		scheme, secret string
		want           signature.Reason
	}{
		{"stripe", "", signature.NoSecret},
		{"standard", "", signature.NoSecret},
		{"adyen", "", signature.NoSecret},
		{"standard", publicSecret, signature.BadSecret},
		{"standard", "whsec_!", signature.BadSecret},
		{"standard", other, signature.BadSecret},
		{"adyen", "00", signature.BadSecret},
	} {
		s, _ := signature.Lookup(tt.scheme)
		signed, err := s.Sign([]byte(adyenBody), tt.secret, now, signature.SignOptions{})
		require.Equal(t, tt.want, signature.ReasonOf(err), "%s %v", tt.scheme, err)
		require.Empty(t, signed)
	}
	s, _ := signature.Lookup("standard")
	_, err := s.Sign(nil, publicSecret, now, signature.SignOptions{})
	require.EqualError(t, err, "signature: standard: bad_secret: a public key cannot sign")

	s, _ = signature.Lookup("adyen")
	_, err = s.Sign([]byte(`{}`), adyenSecret, now, signature.SignOptions{})
	require.Equal(t, signature.Missing, signature.ReasonOf(err))
}

// TestSeedSigns: a private key may be written as its seed alone.
func TestSeedSigns(t *testing.T) {
	t.Parallel()
	s, _ := signature.Lookup("standard")
	seed := "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbc="
	long, err := s.Sign([]byte(event), privateSecret, now, signature.SignOptions{})
	require.NoError(t, err)
	short, err := s.Sign([]byte(event), seed, now, signature.SignOptions{})
	require.NoError(t, err)
	require.Equal(t, long, short)
}

// TestConcurrent: schemes are shared, and their states are used again.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				for name, secret := range map[string]string{"stripe": stripeSecret, "standard": standardSecret, "adyen": adyenSecret} {
					s, _ := signature.Lookup(name)
					body := strings.Replace(adyenBody, "ord_1", fmt.Sprintf("ord_%d_%d", g, i), 1)
					signed, err := s.Sign([]byte(body), secret, now, signature.SignOptions{})
					if err == nil {
						err = s.Verify(signature.Request{Header: signed.Header, Body: signed.Body}, []string{secret}, now)
					}
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestBodyIsNotChanged: verification reads, it does not write.
func TestBodyIsNotChanged(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{"stripe": stripeSecret, "standard": standardSecret, "adyen": adyenSecret} {
		s, _ := signature.Lookup(name)
		body := []byte(adyenBody)
		signed, err := s.Sign(body, secret, now, signature.SignOptions{})
		require.NoError(t, err)
		require.Equal(t, adyenBody, string(body))
		before, header := string(signed.Body), signed.Header.Clone()
		require.NoError(t, s.Verify(signature.Request{Header: signed.Header, Body: signed.Body}, []string{secret}, now))
		require.Equal(t, before, string(signed.Body))
		require.Equal(t, header, signed.Header)
	}
}
