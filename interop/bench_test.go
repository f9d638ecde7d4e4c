package interop_test

import (
	"crypto/hmac"
	"crypto/sha256"
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

// BenchmarkVerify compares package signature with the libraries and with the
// least that any of them must do: one HMAC over the message with a key that is
// ready, one decoding, one comparison.
func BenchmarkVerify(b *testing.B) {
	now := time.Now()
	for _, size := range []int{2 << 10, 64 << 10} {
		body := []byte(`{"id":"evt_1","filler":"` + strings.Repeat("x", size-30) + `"}`)
		name := fmt.Sprintf("%dKB", size>>10)
		secrets := []string{"whsec_bench"}
		for _, scheme := range []string{"stripe", "standard"} {
			s, ok := signature.Lookup(scheme)
			require.True(b, ok)
			if scheme == "standard" {
				secrets = []string{whsec}
			}
			signed, err := s.Sign(body, secrets[0], now, signature.SignOptions{ID: "msg_1"})
			require.NoError(b, err)
			r := signature.Request{Method: http.MethodPost, Header: signed.Header, Body: body}
			b.Run(name+"/"+scheme+"/paidonce", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				for b.Loop() {
					if s.Verify(r, secrets, now) != nil {
						b.Fatal("refused")
					}
				}
			})
			b.Run(name+"/"+scheme+"/library", func(b *testing.B) {
				b.SetBytes(int64(size))
				b.ReportAllocs()
				w, err := standardwebhooks.NewWebhook(whsec)
				require.NoError(b, err)
				for b.Loop() {
					if scheme == "stripe" {
						err = stripe.ValidatePayload(body, r.Header.Get("Stripe-Signature"), secrets[0])
					} else {
						err = w.Verify(body, r.Header)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(name+"/floor", func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			m := hmac.New(sha256.New, []byte("whsec_bench"))
			prefix := []byte(unix(now) + ".")
			m.Write(prefix)
			m.Write(body)
			want := hex.EncodeToString(m.Sum(nil))
			got, sum := make([]byte, sha256.Size), make([]byte, 0, sha256.Size)
			text := []byte(want)
			for b.Loop() {
				m.Reset()
				m.Write(prefix)
				m.Write(body)
				if _, err := hex.Decode(got, text); err != nil || !hmac.Equal(m.Sum(sum), got) {
					b.Fatal("refused")
				}
			}
		})
	}
}
