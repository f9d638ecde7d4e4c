package signature_test

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/signature"
)

// example is what it takes to sign and verify by one scheme.
type example struct {
	secret string // that signs
	public string // that verifies; "": secret
	other  string // another one that verifies, but not this
	body   string // default: event
	opt    signature.SignOptions
	covers bool // every byte of the body
}

func (e example) verifier() string {
	if e.public != "" {
		return e.public
	}
	return e.secret
}

// request is what arrives of what was signed.
func (e example) request(signed signature.Signed) signature.Request {
	return signature.Request{
		Method: http.MethodPost, URL: e.opt.URL, Path: "/hooks/x", Query: signed.Query,
		Header: signed.Header, Body: signed.Body,
	}
}

// examples has one of each scheme, by name.
var examples = sync.OnceValue(func() map[string]example {
	const address = "https://merchant.example/hooks/x"
	k := testKeys()
	public, private, _ := jwkPair("kid-1")
	otherJWK, _, _ := jwkPair("kid-2")
	list := map[string]example{
		"stripe":   {secret: stripeSecret, other: "whsec_other", covers: true},
		"standard": {secret: privateSecret, public: publicSecret, other: standardSecret, covers: true},
		"paddle":   {secret: "pdl_ntfset_test_only", other: "other", covers: true},
		"square":   {secret: "sq-test-only-key", other: "other", covers: true, opt: signature.SignOptions{URL: address}},
		"mercadopago": {
			secret: "mp-test-only-secret", other: "other", body: `{"data":{"id":"ORD01"}}`,
		},
		"dlocal":        {secret: "login:key", other: "login:other", covers: true},
		"kushki":        {secret: "20000000105986396000", other: "other", covers: true},
		"adyen":         {secret: adyenSecret, other: strings.Repeat("00", 32), body: adyenBody},
		"braintree":     {secret: "public:private", other: "public:other", body: "<notification/>"},
		"midtrans":      {secret: "SB-Mid-server-x", other: "other", body: `{"order_id":"a","status_code":"200","gross_amount":"1.00"}`},
		"wompi":         {secret: "test_events_x", other: "other", body: `{"data":{"transaction":{"id":"1","status":"APPROVED","amount_in_cents":1}},"timestamp":1790000000}`},
		"payu-latam":    {secret: "HMAC-SHA256:api:own", other: "SHA256:api", body: "merchant_id=1&reference_sale=a&value=1.00&currency=USD&state_pol=4"},
		"redsys":        {secret: redsysSecret, other: strings.Repeat("B", 32), body: `{"Ds_Order":"0069"}`},
		"paypal":        {secret: "WH1:" + k.pkcs8, public: "WH1:" + k.public, other: "WH2:" + k.public, covers: true},
		"conekta":       {secret: k.pkcs8, public: k.public, other: k.other, covers: true},
		"wise":          {secret: k.rsaPrivate, public: k.pkcs1, other: k.other, covers: true},
		"ebanx":         {secret: k.pkcs8, public: k.certificate, other: k.otherCertificate, covers: true},
		"midtrans-snap": {secret: k.pkcs8, public: k.public, other: k.other, covers: true, opt: signature.SignOptions{URL: address}},
		"plaid":         {secret: private, public: public, other: otherJWK, covers: true},
		"xendit":        {secret: "token", other: "other"},
		"flutterwave-v3": {
			secret: "hash", other: "other",
		},
	}
	for _, r := range bodyRows {
		other := "another-secret"
		if r.key != "" {
			other = strings.Repeat("00", 32)
		}
		list[r.scheme] = example{secret: r.secret, other: other, covers: true}
	}
	for name, e := range list {
		if e.body == "" {
			e.body = event
			list[name] = e
		}
	}
	return list
})

// TestEveryScheme: what Sign makes is accepted with its secret and with no other,
// and not when anything that it covers is changed; a secret that is fine is said to
// be, and no error tells anything.
func TestEveryScheme(t *testing.T) {
	t.Parallel()
	names := []string{}
	for _, s := range signature.Schemes() {
		names = append(names, s.Name)
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			e, ok := examples()[s.Name]
			require.True(t, ok, "there is no example of this scheme: it needs one above, or a row of bodyRows if it signs the body alone")
			require.NotEmpty(t, s.Spec)
			require.NoError(t, s.CheckSecret(e.verifier()))
			require.Equal(t, signature.NoSecret, signature.ReasonOf(s.CheckSecret("")))

			body := []byte(e.body)
			signed, err := s.Sign(body, e.secret, now, e.opt)
			require.NoError(t, err)
			require.Equal(t, e.body, string(body), "the body was changed")
			req := e.request(signed)
			before, header := bytes.Clone(req.Body), req.Header.Clone()
			require.NoError(t, s.Verify(req, []string{e.verifier()}, now))
			require.NoError(t, s.Verify(req, []string{"", e.other, e.verifier()}, now))
			require.Equal(t, string(before), string(req.Body), "the body was changed")
			require.Equal(t, header, req.Header)

			refused := func(req signature.Request, secrets ...string) signature.Reason {
				err := s.Verify(req, secrets, now)
				require.Error(t, err)
				requireDiscreet(t, err, attempt{header: req.Header, secrets: secrets})
				return signature.ReasonOf(err)
			}
			require.Contains(t, []signature.Reason{signature.Mismatch, signature.Missing}, refused(req, e.other))
			require.Equal(t, signature.NoSecret, refused(req))
			require.Equal(t, signature.NoSecret, refused(req, "", ""))
			refused(signature.Request{})
			refused(signature.Request{Body: []byte("{}")}, e.verifier())
			if e.public != "" {
				require.Equal(t, signature.BadSecret, refused(req, e.secret))
				err := s.CheckSecret(e.secret)
				require.Equal(t, signature.BadSecret, signature.ReasonOf(err))
				require.Contains(t, err.Error(), "private key")
			}
			if e.covers {
				for i := 0; i < len(req.Body); i += 1 + len(req.Body)/50 {
					changed := req
					changed.Body = bytes.Clone(req.Body)
					changed.Body[i] ^= 1
					refused(changed, e.verifier())
				}
			}

			again, err := s.Sign(signed.Body, e.secret, now, e.opt)
			require.NoError(t, err)
			require.NoError(t, s.Verify(e.request(again), []string{e.verifier()}, now), "what is signed already is signed anew")

			_, err = s.Sign(body, "", now, e.opt)
			require.Equal(t, signature.NoSecret, signature.ReasonOf(err))
			if e.public != "" && s.Name != "standard" {
				_, err = s.Sign(body, e.public, now, e.opt)
				require.Equal(t, signature.BadSecret, signature.ReasonOf(err))
			}
		})
	}
	for name := range examples() {
		require.Contains(t, names, name)
	}
	require.GreaterOrEqual(t, len(names), 35)
}

// TestConcurrent: schemes are shared, and their states are used again.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	var wg sync.WaitGroup
	list := examples()
	for g := range 8 {
		wg.Go(func() {
			for i := range 30 {
				for _, s := range signature.Schemes() {
					e := list[s.Name]
					body := e.body
					if e.covers {
						body = strings.Replace(body, "evt_1", strings.Repeat("x", 1+g*i), 1)
					}
					signed, err := s.Sign([]byte(body), e.secret, now, e.opt)
					if err == nil {
						err = s.Verify(e.request(signed), []string{e.other, e.verifier()}, now)
					}
					if err != nil {
						t.Errorf("%s: %v", s.Name, err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

// TestNames: a scheme is called like its gateway, and all that are promised exist.
func TestNames(t *testing.T) {
	t.Parallel()
	var names []string
	for _, s := range signature.Schemes() {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	require.Equal(t, strings.Fields(`adyen adyen-platform braintree checkout coinbase-commerce conekta dlocal ebanx
		flutterwave-v3 flutterwave-v4 gocardless klarna kushki lemonsqueezy mercadopago midtrans midtrans-snap mollie
		paddle pagbank paypal paystack payu-latam plaid primer razorpay redsys shopify square standard stripe wise
		wompi worldpay xendit`), names)
}

// TestSecretsThatMustPass: the text of a secret is seldom known to be wrong.
func TestSecretsThatMustPass(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"square", "shopify", "razorpay", "gocardless", "coinbase-commerce", "paddle", "mollie", "mercadopago", "checkout",
		"primer", "kushki", "pagbank", "midtrans", "wompi", "xendit", "flutterwave-v3", "flutterwave-v4", "klarna",
		"lemonsqueezy", "paystack", "worldpay",
	} {
		s, _ := signature.Lookup(name)
		for _, secret := range []string{"123456", "mp-test-only-secret", "shopify-test-only", "sq-test-only-key", "with a space", "ключ", "a:b"} {
			require.NoError(t, s.CheckSecret(secret), "%s %q", name, secret)
		}
		for _, secret := range []string{" a", "a\n", `"quoted"`, "'quoted'"} {
			require.Equal(t, signature.BadSecret, signature.ReasonOf(s.CheckSecret(secret)), "%s %q", name, secret)
		}
	}
	for _, v := range ownVectors(t) {
		s, ok := v.scheme()
		if !ok || !v.Valid {
			continue
		}
		if s.Name == "stripe" || s.Name == "standard" || s.Name == "adyen" {
			continue // they are held to their form
		}
		require.NoError(t, s.CheckSecret(v.secrets()[0]), "%s: %s", v.Provider, v.Name)
	}
}
