package diagnose_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
	"github.com/paidonce/paidonce/signature/diagnose"
)

// pair is a new RSA key in PEM.
func pair(t *testing.T) (public, private string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	open, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	block := func(name string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}))
	}
	return block("PUBLIC KEY", open), block("PRIVATE KEY", secret)
}

// signedBy is a delivery that a private key signed.
func signedBy(t *testing.T, name, public, private string) diagnose.Input {
	t.Helper()
	s := scheme(t, name)
	signed, err := s.Sign([]byte(nested), private, now, signature.SignOptions{ID: "tx-1"})
	require.NoError(t, err)
	return diagnose.Input{
		Scheme: s, Secrets: []string{public}, Now: now,
		Request: signature.Request{Method: http.MethodPost, Header: signed.Header, Body: signed.Body},
	}
}

// TestTellsTheKeyFromTheBody: what a public key opens it made, so a wrong key and a
// changed body are told apart.
func TestTellsTheKeyFromTheBody(t *testing.T) {
	t.Parallel()
	public, private := pair(t)
	other, _ := pair(t)
	for _, tt := range []struct {
		name, scheme, before string
		spoil                func(*diagnose.Input)
		cause                diagnose.Cause
		says                 string
	}{
		{"Genuine", "conekta", "", func(*diagnose.Input) {}, diagnose.None, "verifies"},
		{"OtherKey", "conekta", "", func(in *diagnose.Input) { in.Secrets = []string{other} }, diagnose.WrongSecret, "was not made with the key of the public key"},
		{"OtherBody", "conekta", "", replace("129900", "129901"), diagnose.BodyChanged, "The key is right"},
		{"Spaces", "conekta", "", func(in *diagnose.Input) { in.Request.Body = indent(in.Request.Body, "  ") }, diagnose.JSONSpacing, "its spaces changed"},
		{"Cut", "conekta", "", func(in *diagnose.Input) {
			header(in, "Digest", func(v string) []string { return []string{v[:len(v)-8]} })
		}, diagnose.HeaderCut, "incomplete"},
		{"OneLine", "conekta", "", func(in *diagnose.Input) { in.Secrets = []string{strings.ReplaceAll(public, "\n", " ")} }, diagnose.SecretEncoding, "line breaks of the key"},
		{"EscapedLines", "conekta", "", func(in *diagnose.Input) { in.Secrets = []string{strings.ReplaceAll(public, "\n", `\n`)} }, diagnose.SecretEncoding, "line breaks of the key"},
		{"WithoutLines", "conekta", "", func(in *diagnose.Input) {
			block, _ := pem.Decode([]byte(public))
			in.Secrets = []string{base64.StdEncoding.EncodeToString(block.Bytes)}
		}, diagnose.SecretPrefix, "lacks its first and last line"},
		{"WebhookID", "paypal", "WH-1:", func(in *diagnose.Input) { in.Secrets = []string{"WH-2:" + public} }, diagnose.BodyChanged, "the webhook id is another webhook's"},
		{"Certificate", "paypal", "WH-1:", func(in *diagnose.Input) { in.Secrets = []string{"WH-1:" + other} }, diagnose.WrongSecret, "was not made with the key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := signedBy(t, tt.scheme, tt.before+public, tt.before+private)
			tt.spoil(&in)
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
		})
	}
}

// jwks are the two halves of a new key of P-256.
func jwks(t *testing.T, kid string) (public, private string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	point, err := key.PublicKey.Bytes()
	require.NoError(t, err)
	d, err := key.Bytes()
	require.NoError(t, err)
	text := func(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
	jwk := map[string]string{"kty": "EC", "crv": "P-256", "kid": kid, "x": text(point[1:33]), "y": text(point[33:])}
	open, err := json.Marshal(jwk)
	require.NoError(t, err)
	jwk["d"] = text(d)
	secret, err := json.Marshal(jwk)
	require.NoError(t, err)
	return string(open), string(secret)
}

// TestPlaid: a token that is genuine says that its key is right.
func TestPlaid(t *testing.T) {
	t.Parallel()
	public, private := jwks(t, "kid-1")
	other, _ := jwks(t, "kid-2")
	for _, tt := range []struct {
		name  string
		spoil func(*diagnose.Input)
		cause diagnose.Cause
		says  string
	}{
		{"OtherKey", func(in *diagnose.Input) { in.Secrets = []string{other} }, diagnose.WrongSecret, "its kid is another key's"},
		{"OtherBody", replace("129900", "129901"), diagnose.BodyChanged, "The token is genuine"},
		{"Newline", func(in *diagnose.Input) { in.Request.Body = append(bytes.Clone(in.Request.Body), '\n') }, diagnose.Newline, "was added"},
		{"Twice", func(in *diagnose.Input) {
			header(in, "Plaid-Verification", func(v string) []string { return []string{v, v} })
		}, diagnose.HeaderTwice, "more than once"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := signedBy(t, "plaid", public, private)
			tt.spoil(&in)
			f := diagnose.Diagnose(in)
			require.Equal(t, tt.cause, f.Cause, f.Sentence)
			require.Contains(t, f.Sentence, tt.says)
		})
	}
}
