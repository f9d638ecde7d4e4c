package outbound_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/signature"
)

// payPal is a live source of PayPal and the host that has its certificate.
type payPal struct {
	*host
	*hand
	t      *testing.T
	source gateway.Source
	v      *outbound.Verifier
	root   *authority
}

func newPayPal(t *testing.T, answer http.HandlerFunc) *payPal {
	t.Helper()
	p := &payPal{host: newHost(t, answer), hand: &hand{}, t: t, root: newAuthority(t)}
	p.source = gateway.Source{
		ID: "pp", Account: "a", Gateway: "paypal", Mode: gateway.Live, WebhookID: "WH1",
		RootPEM: string(pemOf(p.root.cert)), SigningKeys: []string{privatePEM(senderKey())},
	}
	p.v = outbound.NewVerifier(p.client(t, p.hand, nil), outbound.VerifierOptions{})
	return p
}

// genuine makes a delivery that names the certificate of an id.
func (p *payPal) genuine(id string) gateway.Delivery {
	p.t.Helper()
	d, err := gateway.PayPal.Deliver(p.source, []byte(`{"id":"WH-1"}`), "", p.hand.now())
	require.NoError(p.t, err)
	d.Header.Set("Paypal-Cert-Url", "https://api.paypal.com/v1/notifications/certs/"+id)
	return d
}

func (p *payPal) verify(d gateway.Delivery) error {
	return p.v.Verify(p.t.Context(), gateway.PayPal, p.source, d, p.hand.now())
}

// unknown is an error that is answered 503.
func unknown(t *testing.T, err error, msg ...any) failed {
	t.Helper()
	var e *outbound.Error
	require.ErrorAs(t, err, &e, msg...)
	require.Empty(t, signature.ReasonOf(err))
	return failed{e.Kind, e.After, e.Status, e}
}

// refused is an error that is answered 401.
func refused(t *testing.T, err error, msg ...any) {
	t.Helper()
	require.NotEmpty(t, signature.ReasonOf(err), msg...)
}

func TestVerifyCertificate(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, nil)
	p.host.now(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != "api.paypal.com" || r.RequestURI != "/v1/notifications/certs/CERT-1" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = w.Write(p.root.messageCertificate(t, nil))
	})
	d := p.genuine("CERT-1")
	require.NoError(t, p.verify(d))
	require.NoError(t, p.verify(d))
	d.Body = []byte(`{"id":"WH-2"}`)
	require.Equal(t, signature.Mismatch, signature.ReasonOf(p.verify(d)))
	require.EqualValues(t, 1, p.calls.Load(), "kept")
	p.move(day - time.Second)
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	require.EqualValues(t, 1, p.calls.Load(), "for a day")
	p.move(time.Second)
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	require.EqualValues(t, 2, p.calls.Load())

	// Another root of the same source's configuration is another question.
	p.source.RootPEM = string(pemOf(newAuthority(t).cert))
	refused(t, p.verify(p.genuine("CERT-1")))
	require.EqualValues(t, 3, p.calls.Load())

	// Gateways without a Remote are verified as ever.
	s := gateway.Stripe.Example("x")
	d, err := gateway.Stripe.Deliver(s, []byte(`{}`), "", p.hand.now())
	require.NoError(t, err)
	require.NoError(t, p.v.Verify(t.Context(), gateway.Stripe, s, d, p.hand.now()))
	d.Body = []byte(`{ }`)
	refused(t, p.v.Verify(t.Context(), gateway.Stripe, s, d, p.hand.now()))
}

// TestVerifyWrongCertificates: what is known to be wrong is 401, and is not
// asked for again for ten minutes.
func TestVerifyWrongCertificates(t *testing.T) {
	t.Parallel()
	other := newAuthority(t)
	for name, row := range map[string]struct {
		change func(*x509.Certificate)
		make   func(*authority) []byte
		good   bool
	}{
		"right":               {good: true},
		"only a common name":  {change: func(c *x509.Certificate) { c.DNSNames = nil }, good: true},
		"only a DNS name":     {change: func(c *x509.Certificate) { c.Subject = pkix.Name{} }, good: true},
		"another name beside": {change: func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "a.example") }, good: true},
		"no usage":            {change: func(c *x509.Certificate) { c.KeyUsage, c.ExtKeyUsage = 0, nil }, good: true},
		"not valid yet":       {change: func(c *x509.Certificate) { c.NotBefore = noon.Add(time.Second) }},
		"expired":             {change: func(c *x509.Certificate) { c.NotAfter = noon.Add(-time.Second) }},
		"last second":         {change: func(c *x509.Certificate) { c.NotAfter = noon }, good: true},
		"common name":         {change: func(c *x509.Certificate) { c.Subject.CommonName = "paypal.com.evil.example" }},
		"name without a dot":  {change: func(c *x509.Certificate) { c.Subject.CommonName = "evilpaypal.com" }},
		"bare suffix":         {change: func(c *x509.Certificate) { c.Subject.CommonName = ".paypal.com" }},
		"DNS name":            {change: func(c *x509.Certificate) { c.DNSNames = []string{"evil.example"} }},
		"no name":             {change: func(c *x509.Certificate) { c.DNSNames, c.Subject = nil, pkix.Name{} }},
		"an authority's":      {change: func(c *x509.Certificate) { c.IsCA = true }},
		"for encryption":      {change: func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment }},
		"for code":            {change: func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageCodeSigning} }},
		"of another root":     {make: func(*authority) []byte { return other.messageCertificate(t, nil) }},
		"of another root, which comes along": {make: func(*authority) []byte {
			return append(other.messageCertificate(t, nil), pemOf(other.cert)...)
		}},
		"signed by itself": {make: func(*authority) []byte {
			template := messageTemplate(nil)
			template.SerialNumber = big.NewInt(1)
			der, err := x509.CreateCertificate(rand.Reader, template, template, senderKey().Public(), senderKey())
			require.NoError(t, err)
			cert, err := x509.ParseCertificate(der)
			require.NoError(t, err)
			return pemOf(cert)
		}},
		"short key": {make: func(a *authority) []byte { return pemOf(a.sign(t, messageTemplate(nil), newRSA(1024).Public())) }},
		"not RSA": {make: func(a *authority) []byte {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			require.NoError(t, err)
			return pemOf(a.sign(t, messageTemplate(nil), key.Public()))
		}},
		"by an authority in between": {good: true, make: func(a *authority) []byte {
			between := &authority{key: other.key}
			between.cert = a.sign(t, &x509.Certificate{
				Subject: pkix.Name{CommonName: "between"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
				NotBefore: noon.AddDate(-1, 0, 0), NotAfter: noon.AddDate(1, 0, 0),
			}, other.key.Public())
			return append(between.messageCertificate(t, nil), pemOf(between.cert)...)
		}},
	} {
		p := newPayPal(t, nil)
		body := p.root.messageCertificate(t, row.change)
		if row.make != nil {
			body = row.make(p.root)
		}
		p.host.now(text(string(body)))
		if row.good {
			require.NoError(t, p.verify(p.genuine("CERT-1")), name)
			continue
		}
		refused(t, p.verify(p.genuine("CERT-1")), name)
		p.move(10*time.Minute - 1)
		refused(t, p.verify(p.genuine("CERT-1")), name)
		require.EqualValues(t, 1, p.calls.Load(), name)
		p.move(1)
		p.host.now(text(string(p.root.messageCertificate(t, nil))))
		require.NoError(t, p.verify(p.genuine("CERT-1")), name)
	}
}

// TestVerifyWithoutAnAnswer: what says nothing about the certificate is 503, and
// soon asked for again.
func TestVerifyWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"502":       status(502, "Content-Type", "text/html"),
		"404":       status(404),
		"redirect":  status(302, "Location", "https://api.paypal.com/v1/notifications/certs/CERT-2"),
		"a page":    text("<html>It works!</html>"),
		"empty":     text(""),
		"a key":     text(privatePEM(senderKey())),
		"torn":      text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
		"endless":   func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) },
		"hangs up":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"wrong use": status(204),
	} {
		p := newPayPal(t, answer)
		require.LessOrEqual(t, unknown(t, p.verify(p.genuine("CERT-1")), name).after, 10*time.Second, name)
		made := p.calls.Load()
		p.move(10*time.Second - 1)
		unknown(t, p.verify(p.genuine("CERT-1")), name)
		require.Equal(t, made, p.calls.Load(), name)
		p.move(1)
		p.host.now(text(string(p.root.messageCertificate(t, nil))))
		require.NoError(t, p.verify(p.genuine("CERT-1")), name)
	}

	p := newPayPal(t, nil)
	p.host.now(text(string(p.root.messageCertificate(t, nil)) + strings.Repeat("\n", 64<<10)))
	require.Contains(t, unknown(t, p.verify(p.genuine("CERT-1"))).err.Error(), "larger than")
}

// TestVerifyWhenTheHostIsDown: one that was good outlives its host for as long as
// it is valid, and not longer.
func TestVerifyWhenTheHostIsDown(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, nil)
	p.host.now(text(string(p.root.messageCertificate(t, func(c *x509.Certificate) { c.NotAfter = noon.Add(time.Hour) }))))
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	p.host.now(status(502))
	p.move(time.Hour)
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	p.move(time.Second)
	unknown(t, p.verify(p.genuine("CERT-1")))
}

// TestVerifyChecksTheURLAgain: whatever a gateway file lets pass.
func TestVerifyChecksTheURLAgain(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, text("x"))
	for _, url := range []string{
		"http://api.paypal.com/v1/notifications/certs/CERT-1", "https://api.paypal.com:443/c", "https://api.paypal.com:/c", "https://a@api.paypal.com/c",
		"https://api.paypal.com/c?", "https://api.paypal.com/c?a=b", "https://api.paypal.com/c#", "https://api.paypal.com/c#a",
		"https://evil.example/c", "https://paypal.com/c", "https://evilpaypal.com/c", "https://api.paypal.com.evil.example/c", "https://.paypal.com/c",
		"https://api.paypal.com/v1/notifications/certs/../../x", "https://api.paypal.com/v1/notifications/certs/%2e%2e/x",
		"https://api.paypal.com/a//b", "https://api.paypal.com/a/", "https://api.paypal.com", "https://api.paypal.com/a%2fb", `https://api.paypal.com\c`,
		"https://127.0.0.1/c", "https://[::1]/c", "https:api.paypal.com/c", "//api.paypal.com/c", "", "https://api.paypal.com/" + strings.Repeat("a", 1024),
	} {
		g := *gateway.PayPal
		g.Remote = &gateway.Remote{
			Key: func(gateway.Source, gateway.Delivery) (gateway.KeyRef, error) {
				return gateway.KeyRef{URL: url, CommonName: ".paypal.com"}, nil
			},
			Secret: gateway.PayPal.Remote.Secret,
		}
		refused(t, p.v.Verify(t.Context(), &g, p.source, p.genuine("CERT-1"), noon), url)
	}
	d := p.genuine("CERT-1")
	d.Header.Set("Paypal-Cert-Url", "https://evil.example/v1/notifications/certs/CERT-1")
	refused(t, p.verify(d))
	require.Zero(t, p.dialled.Load())
}

func TestVerifyOneFlight(t *testing.T) {
	t.Parallel()
	arrived, free := make(chan struct{}), make(chan struct{})
	p := newPayPal(t, nil)
	cert := p.root.messageCertificate(t, nil)
	p.host.now(func(w http.ResponseWriter, _ *http.Request) { close(arrived); <-free; _, _ = w.Write(cert) })
	d := p.genuine("CERT-1")

	// The first goes away while the host is being asked: the others do not.
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	go func() { first <- p.v.Verify(ctx, gateway.PayPal, p.source, d, noon) }()
	<-arrived
	cancel()
	require.ErrorIs(t, <-first, context.Canceled)
	var wg sync.WaitGroup
	errs := make([]error, 100)
	for i := range errs {
		wg.Go(func() { errs[i] = p.verify(d) })
	}
	close(free)
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, 1, p.calls.Load())
}

// TestVerifyFlood: ids that a stranger makes up cost a bounded number of calls,
// and never the certificate that is in use.
func TestVerifyFlood(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, nil)
	cert := p.root.messageCertificate(t, nil)
	p.host.now(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/CERT-1") {
			_, _ = w.Write(cert)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	flood := func(minute int) {
		for i := range 500 {
			unknown(t, p.verify(p.genuine(fmt.Sprintf("CERT-x%d-%d", minute, i))))
		}
	}
	flood(0)
	require.EqualValues(t, 10, p.calls.Load(), "the budget, of which the first took one")
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	p.move(time.Minute)
	flood(1)
	require.EqualValues(t, 20, p.calls.Load())
	other := p.source
	other.ID = "other"
	unknown(t, p.v.Verify(t.Context(), gateway.PayPal, other, p.genuine("CERT-y"), p.hand.now()))
	require.EqualValues(t, 21, p.calls.Load(), "another source has its own")

	// The one in use is looked at again in the middle of a flood.
	p.move(day)
	flood(2)
	require.EqualValues(t, 31, p.calls.Load())
	require.NoError(t, p.verify(p.genuine("CERT-1")))
	require.EqualValues(t, 32, p.calls.Load())
}

// TestVerifyKeepsSoMany: good keys are bounded too, and the one used last stays.
func TestVerifyKeepsSoMany(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, nil)
	p.host.now(text(string(p.root.messageCertificate(t, nil))))
	p.v = outbound.NewVerifier(p.client(t, p.hand, nil), outbound.VerifierOptions{Keys: 2})
	for _, row := range []struct {
		id    string
		calls int64
	}{{"CERT-1", 1}, {"CERT-2", 2}, {"CERT-1", 2}, {"CERT-3", 3}, {"CERT-1", 3}, {"CERT-2", 4}} {
		require.NoError(t, p.verify(p.genuine(row.id)))
		require.Equal(t, row.calls, p.calls.Load(), row)
	}
}

// TestVerifyAfterASilentHost is a user's report: the host answers a page with
// status 502, and the certificate a minute later.
// https://github.com/paypal/PayPal-Python-SDK/issues/130
func TestVerifyAfterASilentHost(t *testing.T) {
	t.Parallel()
	p := newPayPal(t, status(502))
	unknown(t, p.verify(p.genuine("CERT-1")))
	p.host.now(text(string(p.root.messageCertificate(t, nil))))
	p.move(time.Minute)
	require.NoError(t, p.verify(p.genuine("CERT-1")))
}
