package outbound

import (
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

const (
	// maxCertificates is the size of the largest file of certificates, in bytes.
	maxCertificates = 64 << 10

	// maxChain is how many certificates of a file are looked at.
	maxChain = 8

	// keepCertificate is how long a certificate is kept that is valid for longer:
	// the vendor may withdraw it.
	keepCertificate = 24 * time.Hour

	minRSA, maxRSA = 2048, 8192 // bits
)

// certificate describes how the certificate at a URL is found. What the gateway
// pins is checked once more: nothing but a plain https URL on a host of the name
// that the certificate must have.
func (v *Verifier) certificate(g *gateway.Gateway, s gateway.Source, ref gateway.KeyRef) (wanted, error) {
	refuse := func(detail string) error {
		return &signature.Error{Scheme: g.Scheme, Reason: signature.Malformed, Detail: detail}
	}
	u, err := url.Parse(ref.URL)
	switch {
	case err != nil || len(ref.URL) > 1024:
		return wanted{}, refuse("the URL of the certificate cannot be read")
	case u.Scheme != "https" || u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || u.Opaque != "" ||
		strings.Contains(ref.URL, "#"):
		return wanted{}, refuse("the URL of the certificate is more than https, a host and a path")
	case !fits(u.Host, ref.CommonName): // nor does one with a port
		return wanted{}, refuse("the certificate is on a strange host")
	case !plainPath(u.EscapedPath()):
		return wanted{}, refuse("the path of the certificate is not plain")
	}
	roots := sha256.Sum256([]byte(s.RootPEM))
	t := target{gateway: g.Name}
	return wanted{
		gateway: g.Name,
		name:    strings.Join([]string{g.Name, u.String(), ref.CommonName, string(roots[:])}, "\n"),
		find: func(ctx context.Context, now time.Time) (found, error) {
			body, bad := v.get(ctx, t, u)
			if bad != nil {
				return found{}, bad
			}
			chain := certificatesOf(body)
			if len(chain) == 0 {
				return found{}, &Error{Kind: Retry, Status: http.StatusOK, gateway: t.gateway, text: "what its host answered is no certificate"}
			}
			return judge(g, s, chain, ref.CommonName, now)
		},
	}, nil
}

// get asks a pinned host for a file. No credential goes with it, and no source's
// pace holds it up.
func (v *Verifier) get(ctx context.Context, t target, u *url.URL) ([]byte, *Error) {
	c := v.client
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, &Error{Kind: Refused, gateway: t.gateway, text: "the certificate cannot be asked for"}
	}
	req.Header.Set("User-Agent", userAgent)
	endpoint := "certificates " + u.Host
	pass := c.circuits.Enter(endpoint)
	if pass == nil {
		c.metrics.turnedAway(t.gateway)
		return nil, &Error{Kind: Retry, After: max(c.circuits.Wait(endpoint), time.Second), gateway: t.gateway, text: "its host is left alone because it did not answer"}
	}
	defer c.circuits.Leave(pass)
	began := c.opts.Elapsed()
	a, bad := c.exchange(ctx, c.public, req, t, maxCertificates)
	c.metrics.took(t.gateway, c.opts.Elapsed()-began)
	c.metrics.done(t.gateway, bad)
	// Only silence counts: an answer of 5xx ends quickly, and the next may be right.
	c.circuits.Report(endpoint, bad != nil && bad.Status == 0 && bad.Kind == Retry)
	if bad != nil {
		return nil, bad
	}
	return a.body, nil
}

// plainPath reports whether an escaped path is nothing but names.
func plainPath(path string) bool {
	parts := strings.Split(path, "/")
	for _, part := range parts[1:] {
		if strings.Trim(part, ".") == "" ||
			strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~") != "" {
			return false
		}
	}
	return parts[0] == "" && len(parts) > 1
}

// fits reports whether a name is want, or ends with it if it begins with a dot.
func fits(name, want string) bool {
	name, want = strings.ToLower(name), strings.ToLower(want)
	if strings.HasPrefix(want, ".") {
		return len(name) > len(want) && strings.HasSuffix(name, want)
	}
	return want != "" && name == want
}

// certificatesOf reads a PEM file of certificates, the signer's first; nil if it
// is none.
func certificatesOf(data []byte) []*x509.Certificate {
	var chain []*x509.Certificate
	for len(chain) < maxChain {
		var block *pem.Block
		if block, data = pem.Decode(data); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil
		}
		chain = append(chain, cert)
	}
	return chain
}

// judge decides whether a certificate may vouch for deliveries at now.
func judge(g *gateway.Gateway, s gateway.Source, chain []*x509.Certificate, name string, now time.Time) (found, error) {
	refuse := func(detail string) (found, error) {
		return found{}, &signature.Error{Scheme: g.Scheme, Reason: signature.Mismatch, Detail: detail}
	}
	leaf := chain[0]
	key, isRSA := leaf.PublicKey.(*rsa.PublicKey)
	switch {
	case !isRSA || key.N.BitLen() < minRSA || key.N.BitLen() > maxRSA:
		return refuse("the certificate's key is not RSA of 2048 to 8192 bits")
	case leaf.IsCA:
		return refuse("the certificate is an authority's")
	case leaf.KeyUsage != 0 && leaf.KeyUsage&x509.KeyUsageDigitalSignature == 0:
		return refuse("the certificate is not for signatures")
	case !named(leaf, name):
		return refuse("the certificate is for another name")
	}
	opts := x509.VerifyOptions{
		CurrentTime: now, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, cert := range chain[1:] {
		opts.Intermediates.AddCert(cert)
	}
	if s.RootPEM != "" {
		opts.Roots = x509.NewCertPool()
		if !opts.Roots.AppendCertsFromPEM([]byte(s.RootPEM)) {
			return found{}, &Error{Kind: Refused, gateway: g.Name, text: "root_pem holds no certificate"}
		}
	}
	paths, err := leaf.Verify(opts)
	if err != nil {
		return refuse(whyNot(err))
	}
	f := found{
		key:   string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})),
		until: now.Add(keepCertificate), fresh: keepCertificate,
	}
	for _, cert := range paths[0] {
		if cert.NotBefore.After(f.from) {
			f.from = cert.NotBefore
		}
		if end := cert.NotAfter.Add(time.Second); end.Before(f.until) { // the last second is valid
			f.until = end
		}
	}
	return f, nil
}

// named reports whether the names of a certificate fit: its common name, and of
// its DNS names at least one.
func named(leaf *x509.Certificate, want string) bool {
	common := leaf.Subject.CommonName
	if common != "" && !fits(common, want) {
		return false
	}
	for _, name := range leaf.DNSNames {
		if fits(name, want) {
			return true
		}
	}
	return common != "" && len(leaf.DNSNames) == 0
}

// whyNot says in words of our own why a chain does not verify.
func whyNot(err error) string {
	var invalid x509.CertificateInvalidError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not valid yet"
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return "the certificate is for another use"
	case errors.As(err, &unknown):
		return "the certificate does not chain to a trusted root"
	default:
		return "the certificate's chain does not verify"
	}
}
