package signature_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// Secrets of these tests. The private key is the pair that Svix publishes in its
// own tests.
const (
	stripeSecret   = "whsec_TESTONLY_signature"
	standardSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	privateSecret  = "whsk_6Xb/dCcHpPea21PS1N9VY/NZW723CEc77N4rJCubMbfVKIDij2HKpMKkioLlX0dRqSKJp4AJ6p9lMicMFs6Kvg=="
	publicSecret   = "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="
	adyenSecret    = "DFB1EB5485895CFA84146406857104ABB4CBCABDC8AAF103A624C8F6A3EAAB00"
)

// signedAt is when the requests of these tests were signed.
const signedAt = 1_790_000_000

var now = time.Unix(signedAt, 0)

const event = `{"id":"evt_1","canary":"CANARY-BODY"}`

// mac is the HMAC-SHA-256, made without the package under test.
func mac(key, message string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(message))
	return h.Sum(nil)
}

// stripeV1 is the v1 of event at the time t, as text.
func stripeV1(secret, t string) string {
	return hex.EncodeToString(mac(secret, t+"."+event))
}

// standardV1 is the v1 of event, as text. The key is the one after decoding.
func standardV1(key, id, t string) string {
	return base64.StdEncoding.EncodeToString(mac(key, id+"."+t+"."+event))
}

func decodedStandardKey(tb testing.TB) string {
	tb.Helper()
	b, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(standardSecret, "whsec_"))
	require.NoError(tb, err)
	return string(b)
}

// headers makes a header of name, value, name, value …; names as net/http has them.
func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

// attempt is one line of a table: a request, and the reason for which it is
// refused; "" if it is genuine.
type attempt struct {
	name    string
	header  http.Header
	body    string   // default: event
	secrets []string // default: the scheme's
	now     time.Time

	// What few schemes look at.
	url, query, path string
	tolerance        time.Duration

	want signature.Reason
}

// run runs a table, each line as a subtest, and sees that no error tells what it
// must not.
func run(t *testing.T, scheme, secret string, attempts []attempt) {
	t.Helper()
	s, ok := signature.Lookup(scheme)
	require.True(t, ok)
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if a.body == "" {
				a.body = event
			}
			if a.secrets == nil {
				a.secrets = []string{secret}
			}
			if a.now.IsZero() {
				a.now = now
			}
			err := s.Verify(signature.Request{
				Method: http.MethodPost, URL: a.url, Query: a.query, Path: a.path,
				Header: a.header, Body: []byte(a.body), Tolerance: a.tolerance,
			}, a.secrets, a.now)
			require.Equal(t, a.want, signature.ReasonOf(err), "%v", err)
			if a.want == "" {
				require.NoError(t, err)
				return
			}
			requireDiscreet(t, err, a)
		})
	}
}

// requireDiscreet sees that an error holds no secret, nothing of the body or of
// the headers, and no digest.
func requireDiscreet(t *testing.T, err error, a attempt) {
	t.Helper()
	text := fmt.Sprintf("%v %+v %#v", err, err, err)
	require.NotContains(t, text, "CANARY")
	for _, s := range a.secrets {
		if s != "" {
			require.NotContains(t, text, s)
		}
	}
	for _, values := range a.header {
		for _, v := range values {
			if len(v) > 12 {
				require.NotContains(t, text, v)
			}
		}
	}
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t\",:{}()", r) }) {
		_, number := strconv.Atoi(word)
		require.True(t, len(word) < 32 || number == nil, "is %q a digest?", word)
	}
}

func hexText(b []byte) string { return hex.EncodeToString(b) }

func base64Text(b []byte) string { return base64.StdEncoding.EncodeToString(b) }

// swap returns a copy of s with edits made, in pairs of old and new, each of which
// must be there to be replaced.
func swap(tb testing.TB, s string, edits ...string) string {
	tb.Helper()
	for i := 0; i < len(edits); i += 2 {
		require.Contains(tb, s, edits[i])
		s = strings.Replace(s, edits[i], edits[i+1], 1)
	}
	return s
}
