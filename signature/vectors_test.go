package signature_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// vector is one entry of a file of vectors: a request, and whether it is genuine.
type vector struct {
	Provider        string            `json:"provider"`
	Name            string            `json:"name"`
	Secret          string            `json:"secret"`
	Key             vectorKey         `json:"key"`
	Method          string            `json:"method"`
	URL             string            `json:"url"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	Now             int64             `json:"now"` // Unix seconds
	Valid           bool              `json:"valid"`
	PolicyDependent bool              `json:"policy_dependent"`
}

type vectorKey struct {
	PublicKey string `json:"public_key"`
}

// vectorSchemes maps the providers of the vectors to schemes.
var vectorSchemes = map[string]string{
	"stripe":           "stripe",
	"standard":         "standard",
	"standardwebhooks": "standard",
	"svix":             "standard",
	"lithic":           "standard",
	"adyen":            "adyen",
}

// laterProviders have vectors and no scheme yet.
var laterProviders = []string{
	"adyen-platform", "braintree", "checkout", "coinbase-commerce", "conekta", "dlocal", "ebanx",
	"flutterwave-v3", "flutterwave-v4", "gocardless", "klarna", "kushki", "lemonsqueezy", "mercadopago",
	"midtrans", "mollie", "paddle", "pagbank", "paypal", "paystack", "payu-latam", "plaid", "primer",
	"razorpay", "redsys", "shopify", "square", "wise", "wompi", "worldpay", "xendit",
}

// policies decide the vectors whose answer is a choice, by the choice that the
// package comment documents. Where there is none, we do as the gateway's library.
var policies = map[string]func(v vector) bool{
	// A time more than 300 s in the future is refused; Stripe's libraries take it.
	"stripe": func(v vector) bool {
		_, rest, _ := strings.Cut(v.request().Header.Get("Stripe-Signature"), "t=")
		digits, _, _ := strings.Cut(rest, ",")
		t, err := strconv.ParseInt(digits, 10, 64)
		return v.Valid && err == nil && t-v.Now <= 300
	},
}

func (v vector) request() signature.Request {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	return signature.Request{Method: http.MethodPost, URL: v.URL, Header: h, Body: []byte(v.Body)}
}

func (v vector) secrets() []string {
	if v.Key.PublicKey != "" {
		return []string{v.Key.PublicKey}
	}
	return []string{v.Secret}
}

// readVectors reads the repository's vectors, or the file that PAIDONCE_VECTORS
// names.
func readVectors(tb testing.TB) []vector {
	tb.Helper()
	file := os.Getenv("PAIDONCE_VECTORS")
	if file == "" {
		file = filepath.Join("..", "testdata", "vectors", "signatures.json")
	}
	text, err := os.ReadFile(file)
	require.NoError(tb, err)
	var list []vector
	require.NoError(tb, json.Unmarshal(text, &list))
	require.NotEmpty(tb, list)
	return list
}

func TestVectors(t *testing.T) {
	t.Parallel()
	later := map[string]bool{}
	for _, p := range laterProviders {
		later[p] = true
	}
	for _, v := range readVectors(t) {
		t.Run(v.Provider+"/"+v.Name, func(t *testing.T) {
			t.Parallel()
			if later[v.Provider] {
				t.Skipf("no scheme for %s yet", v.Provider)
			}
			scheme, known := vectorSchemes[v.Provider]
			require.True(t, known, "unknown provider %q", v.Provider)
			want := v.Valid
			if policy := policies[scheme]; v.PolicyDependent && policy != nil {
				want = policy(v)
			}

			err := signature.Verify(scheme, v.request(), v.secrets(), time.Unix(v.Now, 0))
			if want {
				require.NoError(t, err)
				return
			}
			require.Contains(t, []signature.Reason{
				signature.Missing, signature.Malformed, signature.Ambiguous,
				signature.Mismatch, signature.Stale, signature.Future,
			}, signature.ReasonOf(err), "%v", err)
		})
	}
}

// TestVectorsLeadToAScheme holds the two tables of this file together: a provider
// is in one of them, and what they name exists.
func TestVectorsLeadToAScheme(t *testing.T) {
	t.Parallel()
	for _, p := range laterProviders {
		require.NotContains(t, vectorSchemes, p)
	}
	for _, name := range vectorSchemes {
		_, ok := signature.Lookup(name)
		require.True(t, ok, name)
	}
	for name := range policies {
		_, ok := signature.Lookup(name)
		require.True(t, ok, name)
	}
}
