package signature_test

import (
	"cmp"
	"encoding/base64"
	"encoding/hex"
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
// package comment documents, from the request and without the package under test.
// Where there is none, we do as the gateway's library, which is what the vector
// says.
var policies = map[string]func(v vector) bool{
	// One t, at most 300 s from now in either direction; Stripe's libraries take
	// any time in the future, and the last of two.
	"stripe": func(v vector) bool {
		t, sigs := elements(v.header("Stripe-Signature"), ",", "t", "v1")
		return within300(v, t) && slices.Contains(sigs, hexText(mac(v.Secret, t+"."+v.Body)))
	},
	// The same, and any h1 will do. Paddle's libraries look 5 s back or not at all,
	// and take one h1.
	"paddle": func(v vector) bool {
		t, sigs := elements(v.header("Paddle-Signature"), ";", "ts", "h1")
		return within300(v, t) && slices.Contains(sigs, hexText(mac(v.Secret, t+":"+v.Body)))
	},
	// No tolerance; the id in lower case, or as it stands.
	"mercadopago": func(v vector) bool {
		t, sigs := elements(strings.ReplaceAll(v.header("X-Signature"), " ", ""), ",", "ts", "v1")
		id, _ := url.ParseQuery(v.request().Query)
		for _, id := range []string{strings.ToLower(id.Get("data.id")), id.Get("data.id")} {
			var manifest string
			for _, pair := range [][2]string{{"id", id}, {"request-id", v.header("X-Request-Id")}, {"ts", t}} {
				if pair[1] != "" {
					manifest += pair[0] + ":" + pair[1] + ";"
				}
			}
			if slices.Contains(sigs, hexText(mac(v.Secret, manifest))) {
				return true
			}
		}
		return false
	},
	// No tolerance, and never the simple signature.
	"kushki": func(v vector) bool {
		return strings.ToLower(v.header("X-Kushki-Signature")) == hexText(mac(v.Secret, v.Body+"."+v.header("X-Kushki-Id")))
	},
	// No tolerance.
	"dlocal": func(v vector) bool {
		return strings.ToLower(v.header("Authorization")) == strings.ToLower("V2-HMAC-SHA256, Signature: ")+
			hexText(mac(v.Key.SecretKey, v.Key.XLogin+v.header("X-Date")+v.Body))
	},
	// At most 300 s in the future; Plaid's page speaks of the past alone.
	"plaid": func(v vector) bool {
		var claims struct{ Iat int64 }
		parts := strings.Split(v.header("Plaid-Verification"), ".")
		text, err := base64.RawURLEncoding.DecodeString(parts[min(1, len(parts)-1)])
		return v.Valid && err == nil && json.Unmarshal(text, &claims) == nil && claims.Iat-v.Now <= 300
	},
}

// policy is the policy for a vector's scheme, nil if there is none.
func (v vector) policy(scheme string) func(vector) bool {
	for _, r := range bodyRows {
		if r.scheme == scheme {
			return r.policy
		}
	}
	return policies[scheme]
}

// policy is that of a scheme that signs the body: any one signature will do, in
// upper case where the row says so.
func (r bodyRow) policy(v vector) bool {
	r.secret, r.key = v.Secret, v.Secret
	if r.scheme == "adyen-platform" {
		key, err := hex.DecodeString(v.Secret)
		if err != nil {
			return false
		}
		r.key = string(key)
	}
	if r.plain != "" {
		r.plain = v.Secret + "-"
	}
	sent := v.header(r.header)
	if r.scheme == "primer" {
		sent += "," + v.header("X-Signature-Secondary")
	}
	for _, sig := range strings.Split(sent, ",") {
		sig = strings.TrimSpace(sig)
		if r.scheme == "worldpay" {
			_, sig, _ = strings.Cut(sig, "/SHA256/")
		}
		sig = strings.TrimPrefix(sig, "sha256=")
		if r.upper {
			sig = strings.ToLower(sig)
		}
		if v.Secret != "" && sig == r.text(v.Body) {
			return true
		}
	}
	return false
}

// header is a header in any spelling.
func (v vector) header(name string) string { return v.request().Header.Get(name) }

// elements reads a list for its one time ("" if there is not one) and its
// signatures, in lower case if the list may be in either.
func elements(list, sep, timeLabel, sigLabel string) (t string, sigs []string) {
	for _, e := range strings.Split(list, sep) {
		switch label, value, _ := strings.Cut(e, "="); label {
		case timeLabel:
			if t != "" {
				return "", nil
			}
			t = value
		case sigLabel:
			if sep == "," && timeLabel == "t" {
				value = strings.ToLower(value)
			}
			sigs = append(sigs, value)
		}
	}
	return t, sigs
}

func within300(v vector, t string) bool {
	n, err := strconv.ParseInt(t, 10, 64)
	return err == nil && strconv.FormatInt(n, 10) == t && max(n-v.Now, v.Now-n) <= 300
}

func (v vector) request() signature.Request {
	h := http.Header{}
	for name, value := range v.Headers {
		h.Add(name, value) // two spellings of one name are that header twice
	}
	req := signature.Request{Method: cmp.Or(v.Method, http.MethodPost), URL: v.URL, Header: h, Body: []byte(v.Body)}
	if u, err := url.Parse(v.URL); err == nil {
		req.Query, req.Path = u.RawQuery, u.EscapedPath()
	}
	if v.URL == "" && v.DataID != "" {
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
		return ownVectors(tb)
	}
	if _, err := os.Stat(file); err != nil && !filepath.IsAbs(file) {
		file = filepath.Join("..", file) // from where the command was given
	}
	return readVectorsOf(tb, file)
}

// ownVectors reads the repository's vectors.
func ownVectors(tb testing.TB) []vector {
	tb.Helper()
	return readVectorsOf(tb, filepath.Join("..", "testdata", "vectors", "signatures.json"))
}

func readVectorsOf(tb testing.TB, file string) []vector {
	tb.Helper()
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
			if policy := v.policy(scheme.Name); v.PolicyDependent && policy != nil {
				want = policy(v)
			}

			err := scheme.Verify(v.request(), v.secrets(), time.Unix(v.Now, 0))
			if want {
				require.NoError(t, err)
				return
			}
			// Also for a secret that is none: a wrong one may well be malformed.
			require.Error(t, err)
			require.NotEmpty(t, signature.ReasonOf(err))
		})
	}
}

// TestPolicies: a policy is right about the vectors that need none, too; so it
// decides by the request, and not by what the vector says.
func TestPolicies(t *testing.T) {
	t.Parallel()
	for _, v := range ownVectors(t) {
		scheme, known := v.scheme()
		if !known || v.PolicyDependent {
			continue
		}
		if policy := v.policy(scheme.Name); policy != nil {
			require.Equal(t, v.Valid, policy(v), "%s: %s", v.Provider, v.Name)
		}
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
