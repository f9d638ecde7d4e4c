package signature_test

import (
	"errors"
	"fmt"
	"strings"
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

		{"paystack", "sk_live_x", ""},
		{"paystack", "pk_live_x", bad},
		{"shopify", "shpss_x", ""},
		{"shopify", "shpat_0123", bad},
		{"razorpay", "rzp_whsec", ""},
		{"razorpay", "rzp_live_0123", bad},
		{"gocardless", "live_0123456", bad},
		{"paddle", "pdl_ntfset_0123", ""},
		{"paddle", "pdl_live_apikey_0123", bad},
		{"mollie", "test_" + strings.Repeat("a", 30), bad},
		{"mollie", "test_secret", ""},
		{"checkout", "pk_0123456", bad},
		{"lemonsqueezy", "eyJhbGciOi", bad},
		{"klarna", "klarna_live_api_0123", bad},
		{"flutterwave-v3", "FLWSECK_TEST-0123", bad},
		{"flutterwave-v4", "FLWPUBK-0123", bad},
		{"xendit", "xnd_production_0123", bad},
		{"xendit", "xnd_callback_verification_token", ""},
		{"square", "sq0idp-0123", bad},
		{"mercadopago", "APP_USR-0123", bad},
		{"midtrans", "SB-Mid-client-0123", bad},
		{"wompi", "prv_test_0123", bad},
		{"wompi", "prod_events_0123", ""},
		{"adyen-platform", "shpss_hush", bad},
		{"braintree", "public:private", ""},
		{"braintree", "only-one-key", bad},
		{"braintree", ":only-one-key", bad},
		{"braintree", "only-one-key:", bad},
		{"braintree", "pub|lic:only-one", bad},
		{"dlocal", "login:key", ""},
		{"dlocal", "only-one-key", bad},
		{"dlocal", ":only-one-key", bad},
		{"payu-latam", "MD5:api", ""},
		{"payu-latam", "HMAC-SHA256:api:own", ""},
		{"payu-latam", "4Vj8eK4rloUd", bad},
		{"payu-latam", "md5:4Vj8eK4r", bad},
		{"payu-latam", "MD5:", bad},
		{"payu-latam", "HMAC-SHA256:4Vj8eK4r", bad},
		{"redsys", redsysSecret, ""},
		{"redsys", redsysSecret + "\n", bad},
		{"redsys", "too-short!", bad},
		{"conekta", "MIIBIjANBgkq", bad},
		{"conekta", `-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----`, bad},
		{"conekta", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", bad},
		{"conekta", "-----BEGIN OTHER-----\nAAAA\n-----END OTHER-----\n", bad},
		{"paypal", "4JH86294D6297924G", bad},
		{"plaid", "not-a-jwk", bad},
		{"plaid", `{"kty":"RSA","n":"0123456789"}`, bad},
		{"plaid", `{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}`, bad},
		{"plaid", `{"kty":"EC","crv":"P-256","kid":"k","x":"AAAA","y":"AAAA"}`, bad},
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
