package signature_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// The sizes are those of a usual event and of a large one, in bytes.
var benchSizes = []int{2147, 65545}

// BenchmarkFloor is what cannot be saved: the HMAC of the message with a state
// that is keyed already, and the comparison.
func BenchmarkFloor(b *testing.B) {
	for _, n := range benchSizes {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			body := bytes.Repeat([]byte("a"), n)
			mac := hmac.New(sha256.New, []byte(stripeSecret))
			var sum [sha256.Size]byte
			want := make([]byte, sha256.Size)
			prefix := []byte("1700000000.")
			b.SetBytes(int64(n))
			b.ReportAllocs()
			for b.Loop() {
				mac.Reset()
				mac.Write(prefix)
				mac.Write(body)
				if hmac.Equal(mac.Sum(sum[:0]), want) {
					b.Fatal("equal")
				}
			}
		})
	}
}

// BenchmarkVerify is a genuine request of each scheme. Stripe's is to stay below
// 1.2 times the floor at 2 kB, without an allocation.
func BenchmarkVerify(b *testing.B) {
	now := time.Unix(1_700_000_000, 0)
	for _, tt := range []struct{ scheme, secret, public string }{
		{"stripe", stripeSecret, stripeSecret},
		{"standard", standardSecret, standardSecret},
		{"standard", privateSecret, publicSecret},
	} {
		s, ok := signature.Lookup(tt.scheme)
		require.True(b, ok)
		for _, n := range benchSizes {
			b.Run(tt.scheme+tt.public[:5]+"/"+strconv.Itoa(n), func(b *testing.B) {
				signed, err := s.Sign(bytes.Repeat([]byte("a"), n), tt.secret, now, signature.SignOptions{})
				require.NoError(b, err)
				req := signature.Request{Method: http.MethodPost, Header: signed.Header, Body: signed.Body}
				secrets := []string{tt.public}
				b.SetBytes(int64(n))
				b.ReportAllocs()
				for b.Loop() {
					if err := s.Verify(req, secrets, now); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
	b.Run("adyen", func(b *testing.B) {
		s, _ := signature.Lookup("adyen")
		signed, err := s.Sign([]byte(adyenBody), adyenSecret, now, signature.SignOptions{})
		require.NoError(b, err)
		req := signature.Request{Body: signed.Body}
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Verify(req, []string{adyenSecret}, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
