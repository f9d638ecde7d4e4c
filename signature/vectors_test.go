package signature_test

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
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
	DataID          string            `json:"data_id"`
	Headers         map[string]string `json:"headers"`
	Body            string            `json:"body"`
	Now             int64             `json:"now"` // Unix seconds
	Valid           bool              `json:"valid"`
	PolicyDependent bool              `json:"policy_dependent"`
}

// vectorKey is the key of a provider whose secret has parts.
type vectorKey struct {
	PublicKey  string          `json:"public_key"`
	PrivateKey string          `json:"private_key"`
	APIKey     string          `json:"api_key"`
	SecretKey  string          `json:"secret_key"`
	Algorithm  string          `json:"algorithm"`
	XLogin     string          `json:"x_login"`
	WebhookID  string          `json:"webhook_id"`
	PEM        string          `json:"public_key_pem"`
	JWK        json.RawMessage `json:"jwk"`
}

// vectorSchemes maps the providers of the vectors to schemes, where the name is
// another.
var vectorSchemes = map[string]string{
	"standardwebhooks": "standard",
	"svix":             "standard",
	"lithic":           "standard",
}

// scheme is the scheme of a provider: its own, or the one it is mapped to.
func (v vector) scheme() (*signature.Scheme, bool) {
	name, mapped := vectorSchemes[v.Provider]
	if !mapped {
		name = v.Provider
	}
	return signature.Lookup(name)
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
	// 300 s in both directions, and any h1 will do. Paddle's libraries look 5 s
	// back or not at all, and take one h1.
	"paddle": func(v vector) bool {
		ts, rest, _ := strings.Cut(v.request().Header.Get("Paddle-Signature"), ";")
		t, err := strconv.ParseInt(strings.TrimPrefix(ts, "ts="), 10, 64)
		want := "h1=" + hexText(mac(v.Secret, strings.TrimPrefix(ts, "ts=")+":"+v.Body))
		return err == nil && max(t-v.Now, v.Now-t) <= 300 && slices.Contains(strings.Split(rest, ";"), want)
	},
}

func (v vector) request() signature.Request {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Set(name, value)
	}
	req := signature.Request{Method: cmp.Or(v.Method, http.MethodPost), URL: v.URL, Header: h, Body: []byte(v.Body)}
	if u, err := url.Parse(v.URL); err == nil {
		req.Query, req.Path = u.RawQuery, u.EscapedPath()
	}
	if req.Query == "" && v.DataID != "" {
		req.Query = url.Values{"data.id": {v.DataID}}.Encode()
	}
	return req
}

// secrets puts the parts of a key together as configuration has them.
func (v vector) secrets() []string {
	k := v.Key
	switch {
	case k.PEM != "" && k.WebhookID != "":
		return []string{k.WebhookID + ":" + k.PEM}
	case k.PEM != "":
		return []string{k.PEM}
	case len(k.JWK) > 0:
		return []string{string(k.JWK)}
	case k.PrivateKey != "":
		return []string{k.PublicKey + ":" + k.PrivateKey}
	case k.PublicKey != "":
		return []string{k.PublicKey}
	case k.XLogin != "":
		return []string{k.XLogin + ":" + k.SecretKey}
	case strings.HasPrefix(k.Algorithm, "HMAC"):
		return []string{k.Algorithm + ":" + k.APIKey + ":" + k.SecretKey}
	case k.APIKey != "":
		return []string{k.Algorithm + ":" + k.APIKey}
	default:
		return []string{v.Secret}
	}
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
	for _, v := range readVectors(t) {
		t.Run(v.Provider+"/"+v.Name, func(t *testing.T) {
			t.Parallel()
			scheme, known := v.scheme()
			require.True(t, known, "unknown provider %q", v.Provider)
			want := v.Valid
			if policy := policies[scheme.Name]; v.PolicyDependent && policy != nil {
				want = policy(v)
			}

			err := scheme.Verify(v.request(), v.secrets(), time.Unix(v.Now, 0))
			if want {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			var refused *signature.Error
			require.ErrorAs(t, err, &refused)
			if refused.Reason == signature.NoSecret {
				require.Equal(t, []string{""}, v.secrets())
				return
			}
			require.Contains(t, []signature.Reason{
				signature.Missing, signature.Malformed, signature.Ambiguous,
				signature.Mismatch, signature.Stale, signature.Future,
			}, refused.Reason, "%v", err)
		})
	}
}

// TestVectorsLeadToAScheme: what the tables of this file name exists, and a
// provider that nobody knows has no scheme.
func TestVectorsLeadToAScheme(t *testing.T) {
	t.Parallel()
	for _, name := range vectorSchemes {
		_, ok := signature.Lookup(name)
		require.True(t, ok, name)
	}
	for name := range policies {
		_, ok := signature.Lookup(name)
		require.True(t, ok, name)
	}
	_, ok := vector{Provider: "nobody"}.scheme()
	require.False(t, ok)
}
