package signature_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// Verification needs no database and no server of ours: the request, the secrets
// that are live, and the time.
func ExampleVerify() {
	handler := func(now func() time.Time) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
			if err != nil {
				http.Error(w, "too big", http.StatusRequestEntityTooLarge)
				return
			}
			req := signature.Request{Method: r.Method, Header: r.Header, Body: body}
			if err := signature.Verify("stripe", req, []string{"whsec_new", "whsec_old"}, now()); err != nil {
				fmt.Println("refused:", signature.ReasonOf(err)) // for the log; the caller learns nothing
				http.Error(w, "unauthorized", http.StatusUnauthorized)
				return
			}
			fmt.Println("genuine:", string(body))
		}
	}
	clock := time.Unix(1_790_000_000, 0)
	serve := handler(func() time.Time { return clock })

	// The gateway signs with the secret from before the rotation.
	stripe, _ := signature.Lookup("stripe")
	signed, err := stripe.Sign([]byte(`{"id":"evt_1"}`), "whsec_old", clock, signature.SignOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func() {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", bytes.NewReader(signed.Body))
		r.Header = signed.Header
		serve(httptest.NewRecorder(), r)
	}
	send()
	clock = clock.Add(time.Hour)
	send()
	// Output:
	// genuine: {"id":"evt_1"}
	// refused: stale
}

// A secret is checked when it is configured, and never shown.
func ExampleScheme_CheckSecret() {
	stripe, _ := signature.Lookup("stripe")
	fmt.Println(stripe.CheckSecret("sk_live_1234"))
	var refused *signature.Error
	fmt.Println(errors.As(stripe.CheckSecret(""), &refused), refused.Reason)
	// Output:
	// signature: stripe: bad_secret: the signing secret of a Stripe endpoint begins with "whsec_"
	// true no_secret
}
