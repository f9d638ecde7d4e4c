package outbound_test

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/signature"
)

// keyed is a gateway that signs as Plaid does, asked at https://example.com.
var keyed = &gateway.Gateway{Name: "keyed", Scheme: "plaid", Remote: &gateway.Remote{
	Test: "https://example.com",
	Key: func(_ gateway.Source, d gateway.Delivery) (gateway.KeyRef, error) {
		id, err := signature.PlaidKeyID(d.Header)
		return gateway.KeyRef{ID: id}, err
	},
	Secret: func(_ gateway.Source, key string) string { return key },
}}

// A key pair of RFC 7515, appendix A.3.
const (
	webKeyPublic = `"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"`
	webKeySecret = `"d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"`
)

func signedBy(t *testing.T, kid string, at time.Time) gateway.Delivery {
	t.Helper()
	s := gateway.Source{SigningKeys: []string{`{"kid":"` + kid + `",` + webKeyPublic + `,` + webKeySecret + `}`}}
	d, err := keyed.Deliver(s, []byte(`{"a":1}`), "", at)
	require.NoError(t, err)
	return d
}

func TestVerifyWebKey(t *testing.T) {
	t.Parallel()
	clock, expired := &hand{}, "null"
	h := newHost(t, nil)
	answer := func(w http.ResponseWriter, r *http.Request) {
		var ask map[string]string
		body, _ := io.ReadAll(r.Body)
		if json.Unmarshal(body, &ask) != nil || r.Method != http.MethodPost || r.URL.Path != "/webhook_verification_key/get" ||
			ask["client_id"] != "id" || ask["secret"] != "sk_secret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if ask["key_id"] == "other" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = io.WriteString(w, `{"key":{"kid":"k1","alg":"ES256","use":"sig","created_at":1,"expired_at":`+expired+`,`+webKeyPublic+`},"request_id":"r"}`)
	}
	h.now(answer)
	v := outbound.NewVerifier(h.client(t, clock, nil), outbound.VerifierOptions{})
	s := gateway.Source{ID: "p", Mode: gateway.Test, ClientID: "id", ClientSecret: "sk_secret"}
	verify := func(kid string) error {
		return v.Verify(t.Context(), keyed, s, signedBy(t, kid, clock.now()), clock.now())
	}
	require.NoError(t, verify("k1"))
	require.NoError(t, verify("k1"))
	require.EqualValues(t, 1, h.calls.Load())
	d := signedBy(t, "k1", noon)
	d.Body = []byte(`{"a":2}`)
	refused(t, v.Verify(t.Context(), keyed, s, d, noon))

	unknown(t, verify("other"))
	require.EqualValues(t, 2, h.calls.Load())
	unknown(t, verify("k2"), "the answer is another key")
	unknown(t, verify("k2"))
	require.EqualValues(t, 3, h.calls.Load())
	for i := range 100 {
		unknown(t, verify("x"+string(rune('a'+i%26))+string(rune('a'+i/26))))
	}
	require.EqualValues(t, 10, h.calls.Load(), "the budget")

	// After an hour it is looked at again; an API that does not answer changes
	// nothing for a day.
	h.now(status(500))
	clock.move(time.Hour)
	require.NoError(t, verify("k1"))
	require.EqualValues(t, 11, h.calls.Load())
	h.now(answer)
	clock.move(10 * time.Second)
	require.NoError(t, verify("k1"))
	require.EqualValues(t, 12, h.calls.Load())
	h.now(status(500))
	clock.move(day - time.Second)
	require.NoError(t, verify("k1"))
	clock.move(time.Second)
	unknown(t, verify("k1"))

	// Once it has expired, nothing that it signed is genuine.
	h.now(answer)
	clock.move(time.Minute)
	require.NoError(t, verify("k1"))
	expired = "1758456000"
	clock.move(time.Hour)
	refused(t, verify("k1"))
	h.now(status(500))
	clock.move(10 * time.Minute)
	unknown(t, verify("k1"), "it is not remembered as good")

	s.ClientSecret = "sk_wrong"
	s.ID = "q"
	h.now(answer)
	require.Equal(t, outbound.Denied, unknown(t, verify("k1")).kind)
}

func TestVerifyByAsking(t *testing.T) {
	t.Parallel()
	s := gateway.Source{
		ID: "pp", Account: "a", Gateway: "paypal", Mode: gateway.Live, WebhookID: "WH1", VerifyBy: "api",
		ClientID: "id", ClientSecret: "sk_secret", SigningKeys: []string{privatePEM(senderKey())},
	}
	d, err := gateway.PayPal.Deliver(s, []byte(`{"id":"WH-1"}`), "", noon)
	require.NoError(t, err)
	for answer, check := range map[string]func(error){
		`{"verification_status":"SUCCESS"}`: func(err error) { require.NoError(t, err) },
		`{"verification_status":"FAILURE"}`: func(err error) { refused(t, err) },
		`{}`:                                func(err error) { require.Error(t, err); require.Empty(t, signature.ReasonOf(err)) },
		"":                                  func(err error) { unknown(t, err) },
	} {
		h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
			_, _, basic := r.BasicAuth()
			switch {
			case r.URL.Path == "/v1/oauth2/token" && basic:
				_, _ = io.WriteString(w, `{"access_token":"sk_token","token_type":"Bearer","expires_in":32400}`)
			case r.URL.Path == "/v1/notifications/verify-webhook-signature" && r.Header.Get("Authorization") == "Bearer sk_token" && answer != "":
				_, _ = io.WriteString(w, answer)
			default:
				w.WriteHeader(http.StatusBadGateway)
			}
		})
		v := outbound.NewVerifier(h.client(t, &hand{}, nil), outbound.VerifierOptions{})
		check(v.Verify(t.Context(), gateway.PayPal, s, d, noon))
		require.EqualValues(t, 2, h.calls.Load())
	}

	// What cannot be genuine is not asked about.
	h := newHost(t, text("{}"))
	v := outbound.NewVerifier(h.client(t, &hand{}, nil), outbound.VerifierOptions{})
	d.Header.Set("Paypal-Cert-Url", "https://evil.example/x")
	refused(t, v.Verify(t.Context(), gateway.PayPal, s, d, noon))
	s.Basic = "a:b"
	refused(t, v.Verify(t.Context(), keyed, s, signedBy(t, "k1", noon), noon))
	require.Zero(t, h.dialled.Load())
}
