package signature

import (
	"crypto"
	"net/http"
	"strings"
)

// publicKeyTable are the schemes that sign with a private key. How the keys are
// written is in pem.go and plaid.go.
var publicKeyTable = []*Scheme{
	// The body is signed by its CRC-32 alone, and a CRC is no secret: who has seen
	// one transmission can make another body for it. The time is that of the first
	// attempt for all we know, and PayPal repeats for three days: no tolerance.
	{
		Name: "paypal",
		Spec: "https://developer.paypal.com/api/rest/webhooks/rest/#verify-webhook-signature",
		family: &inHeader{
			header:   field{name: "Paypal-Transmission-Sig"},
			encoding: base64Text,
			message: []part{
				{from: fromHeader, head: field{name: "Paypal-Transmission-Id"}, role: roleBarID},
				{from: fromRow, name: "|"},
				{from: fromHeader, head: field{name: "Paypal-Transmission-Time"}, role: roleDate, name: "2006-01-02T15:04:05Z"},
				{from: fromRow, name: "|"},
				{from: fromKey},
				{from: fromRow, name: "|"},
				{from: fromChecksum},
			},
			guard: guardPayPal,
			also:  alsoPayPal,
			keys:  &keyring{parse: paypalKey},
		},
	},
	ofPublicKey("conekta", "https://developers.conekta.com/docs/autenticación-webhooks", field{name: "Digest"}, crypto.SHA256),
	ofPublicKey("wise", "https://docs.wise.com/guides/developer/webhooks/event-handling", field{name: "X-Signature-Sha256"}, crypto.SHA256),
	// SHA-1 is weak, and the only thing EBANX offers: it keeps strangers out, and
	// what grants money is better fetched.
	// Older documents write the names without the second hyphen.
	{
		Name: "ebanx",
		Spec: "https://docs.ebanx.com/docs/payments/guides/features/payment-notifications",
		family: &inHeader{
			header:   field{name: "X-Signature-Content", alt: "X-Signaturecontent"},
			names:    field{name: "X-Signature-Fingerprint", alt: "X-Signaturefingerprint"},
			encoding: base64Text,
			message:  []part{{from: fromBody}},
			guard:    guardEBANX,
			also:     func(h http.Header, _ SignOptions) { h.Set(ebanxType.name, ebanxAlgorithm) },
			keys:     &keyring{parse: rsaKey(crypto.SHA1)},
		},
	},
	// The notifications of Midtrans's SNAP BI. The path is the one of the URL that
	// Midtrans was given.
	{
		Name: "midtrans-snap",
		Spec: "https://docs.midtrans.com/reference/core-api-snap-open-api-overview",
		family: &inHeader{
			header:   field{name: "X-Signature"},
			encoding: base64Text,
			message: []part{
				{from: fromRow, name: http.MethodPost + ":"},
				{from: fromPath},
				{from: fromRow, name: ":"},
				{from: fromMinified},
				{from: fromRow, name: ":"},
				{from: fromHeader, head: field{name: "X-Timestamp"}, role: roleDate, name: "2006-01-02T15:04:05Z"},
			},
			keys: &keyring{parse: rsaKey(crypto.SHA256)},
		},
	},
	// A JSON web signature over the digest of the body.
	{
		Name:      "plaid",
		Spec:      "https://plaid.com/docs/api/webhooks/webhook-verification/",
		Tolerance: fiveMinutes,
		family:    &plaid{keys: &keyring{parse: jwkKey}},
	},
}

// ofPublicKey is a scheme with the RSA signature of the body in one header.
func ofPublicKey(name, spec string, header field, h crypto.Hash) *Scheme {
	return &Scheme{Name: name, Spec: spec, family: &inHeader{
		header: header, encoding: base64Text, message: []part{{from: fromBody}},
		keys: &keyring{parse: rsaKey(h)},
	}}
}

var (
	paypalAlgorithm = field{name: "Paypal-Auth-Algo"}
	paypalCertURL   = field{name: "Paypal-Cert-Url"}
	ebanxType       = field{name: "X-Signature-Type", alt: "X-Signaturetype"}
)

const (
	// paypalRSA is the algorithm we take. PayPal's Python library knows SHA-1 too.
	paypalRSA      = "SHA256withRSA"
	ebanxAlgorithm = "rsa,sha1"
	paypalNowhere  = "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-none"
)

// paypalCerts are where PayPal keeps its certificates.
var paypalCerts = [...]string{
	"https://api.paypal.com/v1/notifications/certs/",
	"https://api.sandbox.paypal.com/v1/notifications/certs/",
}

// PayPalCertURL returns where the certificate of a transmission is to be had. A
// URL that is not exactly one of PayPal's own (https, host, path, a plain name; no
// port, user, query) is Malformed, and so it is for [Scheme.Verify]: a sender that
// may choose the certificate may sign anything. The caller follows no redirect.
func PayPalCertURL(h http.Header) (string, error) {
	v, err := paypalCert(h)
	if err != nil {
		err.Scheme = "paypal"
		return "", err
	}
	return v, nil
}

func paypalCert(h http.Header) (string, *Error) {
	v, err := paypalCertURL.get(h)
	if err != nil {
		return "", err
	}
	for _, prefix := range paypalCerts {
		if name, found := strings.CutPrefix(v, prefix); found && name != "" && len(name) <= 128 && plainName(name) {
			return v, nil
		}
	}
	return "", refuse(Malformed, "the certificate's URL is not one of PayPal's")
}

// plainName reports whether s is made of letters, digits, hyphens and underscores.
func plainName(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// guardPayPal refuses other algorithms, and certificates of others.
func guardPayPal(req Request) *Error {
	v, err := paypalAlgorithm.get(req.Header)
	if err != nil {
		return err
	}
	if v != paypalRSA {
		return refuse(Malformed, "the algorithm is not "+paypalRSA)
	}
	_, err = paypalCert(req.Header)
	return err
}

func alsoPayPal(h http.Header, opt SignOptions) {
	address := opt.CertURL
	if address == "" {
		address = paypalNowhere
	}
	h.Set(paypalAlgorithm.name, paypalRSA)
	h.Set(paypalCertURL.name, address)
	h.Set("Paypal-Auth-Version", "v2")
}

// guardEBANX refuses a request that says it was signed in another way.
func guardEBANX(req Request) *Error {
	v, err := ebanxType.optional(req.Header)
	if err == nil && v != "" && v != ebanxAlgorithm {
		err = refuse(Malformed, "the algorithm is not "+ebanxAlgorithm)
	}
	return err
}
