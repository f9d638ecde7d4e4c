package receiver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
)

// TestDiagnosis: the log of a refused delivery says what to change, the caller
// hears what every caller hears, and a flood is not looked into.
func TestDiagnosis(t *testing.T) {
	t.Parallel()
	at := now
	b := setup(t, receiver.Options{Now: func() time.Time { return at }})
	spoilt := func(source string) *http.Request {
		r := request(t, "/webhooks/"+source, paid+"\n") // the signature is of the body with its line break
		r.Body = http.NoBody
		s := request(t, "/webhooks/"+source, paid)
		s.Header.Set("Stripe-Signature", r.Header.Get("Stripe-Signature"))
		return s
	}
	said := func() []any {
		var all []any
		for _, line := range b.log.lines(t) {
			if d := line["diagnosis"]; d != nil {
				all = append(all, d)
			}
		}
		return all
	}
	w := b.do(spoilt("strict"))
	require.Equal(t, http.StatusUnauthorized, w.Code)
	require.NotContains(t, w.Body.String(), "line break")
	require.Equal(t, []any{"The line break at the end of the body was lost. Verify the raw bytes of the request, before anything reads, trims or converts them."}, said())

	for range 50 {
		b.do(spoilt("strict"))
		b.do(spoilt("mall"))
	}
	require.Len(t, said(), 1, "a flood is looked into")

	at = at.Add(5 * time.Second)
	b.do(spoilt("strict"))
	require.Len(t, said(), 1, "the source had its turn")
	b.do(spoilt("mall"))
	require.Len(t, said(), 2, "another source has its own")

	at = at.Add(10 * time.Second)
	b.do(spoilt("strict"))
	require.Len(t, said(), 3)

	// What costs too much is not looked into, and what is said stays short.
	at = at.Add(time.Hour)
	big := request(t, "/webhooks/strict", `{"x":"`+strings.Repeat("x", 70<<10)+`"}`)
	big.Header.Set("Stripe-Signature", "t=1790000000,v1="+strings.Repeat("0", 64))
	b.do(big)
	require.Len(t, said(), 3)
	long := request(t, "/webhooks/strict", paid)
	long.Header = http.Header{"X-" + strings.Repeat("Signature", 1000): {strings.Repeat("0a", 17)}, "Stripe-Signature": {"t=" + strings.Repeat("1", 40)}}
	b.do(long)
	for _, d := range said() {
		require.LessOrEqual(t, len(d.(string)), 512) //nolint:forcetypeassert // it is text
	}
}

// TestDiagnosisOfTheSender: a genuine signature is not blamed where the sender's
// credentials are missing.
func TestDiagnosisOfTheSender(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	require.Equal(t, http.StatusUnauthorized, b.do(request(t, "/webhooks/basic", paid)).Code)
	require.Contains(t, b.log.lines(t)[0]["diagnosis"], "The signature verifies, and the credentials in the Authorization header are missing")
}
