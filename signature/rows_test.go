package signature

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestRowsAreData writes the rows of gateways that are not in the table yet, and
// runs their vectors: one of a known family needs no code.
func TestRowsAreData(t *testing.T) {
	t.Parallel()
	ofBody := func(name string, enc encoding, keys func(string) *key) family {
		return &inHeader{
			header: field{name: name}, encoding: enc,
			message: []part{{from: fromBody}}, keys: &keyring{parse: keys},
		}
	}
	plain := textKey("", sha256.New)
	rows := map[string]family{
		"shopify":           ofBody("X-Shopify-Hmac-Sha256", base64Text, plain),
		"razorpay":          ofBody("X-Razorpay-Signature", hexText, plain),
		"gocardless":        ofBody("Webhook-Signature", hexText, plain),
		"coinbase-commerce": ofBody("X-Cc-Webhook-Signature", hexText, plain),
		"checkout":          ofBody("Cko-Signature", hexText, plain),
		"lemonsqueezy":      ofBody("X-Signature", hexText, plain),
		"klarna":            ofBody("Klarna-Signature", hexText, plain),
		"flutterwave-v4":    ofBody("Flutterwave-Signature", base64Text, plain),
		"paystack":          ofBody("X-Paystack-Signature", hexText, textKey("", sha512.New)),
		"adyen-platform":    ofBody("Hmacsignature", base64Text, hexKey("", sha256.New, sha256.Size)),
		"square": &inHeader{
			header: field{name: "X-Square-Hmacsha256-Signature"}, encoding: base64Text,
			message: []part{{from: fromURL}, {from: fromBody}}, keys: &keyring{parse: plain},
		},
		"paddle": &inHeader{
			header: field{name: "Paddle-Signature"}, syntax: syntax{sep: ';', cut: '=', strict: true},
			message: []part{{from: fromSignature, name: "ts", role: roleTime}, {from: fromRow, name: ":"}, {from: fromBody}},
			keys:    &keyring{parse: textKey("h1", sha256.New)},
		},
		"kushki": &inHeader{
			header:  field{name: "X-Kushki-Signature"},
			message: []part{{from: fromBody}, {from: fromRow, name: "."}, {from: fromHeader, head: field{name: "X-Kushki-Id"}}},
			keys:    &keyring{parse: plain},
		},
	}

	text, err := os.ReadFile(filepath.Join("..", "testdata", "vectors", "signatures.json"))
	require.NoError(t, err)
	var vectors []struct {
		Provider, Name, Secret, URL, Body string
		Headers                           map[string]string
		Now                               int64
		Valid                             bool
		Policy                            bool `json:"policy_dependent"`
	}
	require.NoError(t, json.Unmarshal(text, &vectors))
	ran := map[string]int{}
	for _, v := range vectors {
		f := rows[v.Provider]
		if f == nil || v.Policy {
			continue
		}
		h := http.Header{}
		for name, value := range v.Headers {
			h.Set(name, value)
		}
		now := time.Unix(v.Now, 0)
		refused := f.verify(Request{URL: v.URL, Header: h, Body: []byte(v.Body)}, []string{v.Secret}, now, 0)
		require.Equal(t, v.Valid, refused == nil, "%s: %s: %v", v.Provider, v.Name, refused)

		if f, ok := f.(*inHeader); ok && f.message[0].from == fromBody && len(f.message) == 1 {
			signed, err := f.sign([]byte(v.Body), v.Secret, now, SignOptions{})
			require.Nil(t, err)
			require.Nil(t, f.verify(Request{Header: signed.Header, Body: signed.Body}, []string{v.Secret}, now, 0))
		}
		ran[v.Provider]++
	}
	require.Len(t, ran, len(rows))
}

// TestTable holds what the code of the families takes for granted of a row.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range table {
		require.NotEmpty(t, s.Name)
		require.NotEmpty(t, s.Spec)
		require.False(t, names[s.Name], "two rows are called %s", s.Name)
		names[s.Name] = true

		f, ok := s.family.(*inHeader)
		if !ok {
			continue
		}
		require.LessOrEqual(t, len(f.message), maxParts, s.Name)
		fields := []field{f.header}
		times, bodies := 0, 0
		for _, p := range f.message {
			if p.from == fromHeader {
				fields = append(fields, p.head)
			}
			if p.from == fromBody {
				bodies++
			}
			if p.role == roleTime {
				times++
			}
		}
		for _, h := range fields {
			require.Equal(t, http.CanonicalHeaderKey(h.name), h.name)
			require.Equal(t, http.CanonicalHeaderKey(h.alt), h.alt)
		}
		require.Equal(t, 1, bodies, s.Name)
		require.Equal(t, s.Tolerance > 0, times == 1, "%s: a tolerance, and no time to compare", s.Name)
	}
}

// TestKeyringIsBounded: more secrets than it keeps still verify.
func TestKeyringIsBounded(t *testing.T) {
	t.Parallel()
	made := 0
	r := keyring{parse: func(s string) *key {
		made++
		return hmacKey("", sha256.New, []byte(s))
	}}
	first := r.get("k")
	require.Same(t, first, r.get("k"))
	require.Equal(t, 1, made)
	for i := range maxKeys + 10 {
		r.get(string(rune('a' + i)))
		require.LessOrEqual(t, len(r.keys), maxKeys)
	}
	require.NotNil(t, r.get("k").macs)
}
