package interop_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"
	stripe "github.com/stripe/stripe-go/v84/webhook"

	"github.com/paidonce/paidonce/signature"
)

// BenchmarkVerify compares package signature with the official libraries and
// with the least that any of them must do: one HMAC over the message with a key
// that is ready, one decoding, one comparison. They take turns, so that what else
// the machine does falls on all, and the quickest turn of each counts. It reports
// each as a multiple of the least.
func BenchmarkVerify(b *testing.B) {
	now := time.Now()
	for _, size := range []int{2 << 10, 64 << 10} {
		body := []byte(`{"id":"evt_1","filler":"` + strings.Repeat("x", size-30) + `"}`)
		for _, tt := range []struct {
			scheme, secret, header, cut string
			key                         []byte
			message                     string // in front of the body
			decode                      func(string) ([]byte, error)
			official                    func(http.Header) error
		}{
			{"stripe", "whsec_bench", "Stripe-Signature", "v1=", []byte("whsec_bench"), unix(now) + ".", hex.DecodeString, func(h http.Header) error {
				return stripe.ValidatePayload(body, h.Get("Stripe-Signature"), "whsec_bench")
			}},
			{"standard", whsec, "Webhook-Signature", "v1,", decoded(b, whsec), "msg_1." + unix(now) + ".", base64.StdEncoding.DecodeString, standardLibrary(b, body)},
		} {
			s, ok := signature.Lookup(tt.scheme)
			require.True(b, ok)
			signed, err := s.Sign(body, tt.secret, now, signature.SignOptions{ID: "msg_1"})
			require.NoError(b, err)
			r := signature.Request{Method: http.MethodPost, Header: signed.Header, Body: body}
			secrets := []string{tt.secret}
			_, text, ok := strings.Cut(signed.Header.Get(tt.header), tt.cut)
			require.True(b, ok)
			mac, prefix, sum := hmac.New(sha256.New, tt.key), []byte(tt.message), make([]byte, 0, sha256.Size)
			turns := []func() bool{
				func() bool {
					mac.Reset()
					mac.Write(prefix)
					mac.Write(body)
					got, err := tt.decode(text)
					return err == nil && hmac.Equal(mac.Sum(sum), got)
				},
				func() bool { return s.Verify(r, secrets, now) == nil },
				func() bool { return tt.official(signed.Header) == nil },
			}
			b.Run(fmt.Sprintf("%s/%dKB", tt.scheme, size>>10), func(b *testing.B) {
				const turn = 50
				least := make([]time.Duration, len(turns))
				for b.Loop() {
					for i, once := range turns {
						start := time.Now()
						for range turn {
							if !once() {
								b.Fatal("refused")
							}
						}
						if d := time.Since(start); least[i] == 0 || d < least[i] {
							least[i] = d
						}
					}
				}
				b.ReportMetric(float64(least[1])/float64(least[0]), "×floor/paidonce")
				b.ReportMetric(float64(least[2])/float64(least[0]), "×floor/library")
				b.ReportMetric(testing.AllocsPerRun(100, func() { turns[1]() }), "allocs/paidonce")
				b.ReportMetric(testing.AllocsPerRun(100, func() { turns[2]() }), "allocs/library")
			})
		}
	}
}

func decoded(b *testing.B, secret string) []byte {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	require.NoError(b, err)
	return key
}

func standardLibrary(b *testing.B, body []byte) func(http.Header) error {
	w, err := standardwebhooks.NewWebhook(whsec)
	require.NoError(b, err)
	return func(h http.Header) error { return w.Verify(body, h) }
}
