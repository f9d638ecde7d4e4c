package signature

import (
	"net/http"
	"time"
)

// MaxElements is the most elements that a list of signatures in a header may
// have, so that a request cannot buy unbounded work. Senders use one per live
// secret, plus a timestamp.
const MaxElements = 32

// Request is what was received, exactly. Verification reads it and changes
// nothing.
type Request struct {
	// Method is the HTTP method.
	Method string

	// URL is the public URL of the endpoint as configured at the gateway, for
	// schemes that sign it. Never rebuild it from the request: behind a proxy
	// that is another one.
	URL string

	// Path is the path of the endpoint as configured at the gateway, for schemes
	// that sign it (midtrans-snap).
	Path string

	// Query is the query string of the request as received, without the question
	// mark, for schemes that sign a part of it (mercadopago).
	Query string

	// Header holds the request's headers. Names are found in any spelling, the
	// canonical one of [http.Header] first.
	Header http.Header

	// Body is the raw body: never decoded, decompressed or encoded again.
	Body []byte

	// Tolerance replaces the scheme's own, and makes the schemes check a time
	// that sign one and have no tolerance of their own. Zero: the scheme's.
	Tolerance time.Duration
}

// SignOptions are what a sender chooses. The zero value is ready to use.
type SignOptions struct {
	// ID is the id of the message, where the scheme signs one (standard).
	// Default: "msg_" and 32 hexadecimal digits derived from the body.
	ID string

	// URL is the URL the message is sent to, where the scheme signs it or its
	// path.
	URL string

	// Query is the raw query of that URL, where the scheme signs a part of it
	// (mercadopago: data.id). Default: made of the body.
	Query string

	// CertURL is where the receiver finds the certificate (paypal). Default: a
	// place on PayPal's sandbox that holds nothing.
	CertURL string

	// KeyID names the key, where a header does (klarna, worldpay). Default: none,
	// or "1" where there must be one.
	KeyID string
}

// Signed is what to send so that the receiver believes it.
type Signed struct {
	// Header holds the headers to add; empty if the scheme signs inside the body.
	Header http.Header

	// Body is what to send: the body given, or for schemes that sign inside the
	// body (adyen, redsys …) a changed copy of it.
	Body []byte

	// Query is the raw query that the URL must have, "" if any will do.
	Query string
}

// Scheme is one row of the table. It is safe for concurrent use, and shared:
// its fields are for reading.
type Scheme struct {
	// Name is what configuration and metrics call it: "stripe".
	Name string

	// Spec is the URL of the document the rules come from.
	Spec string

	// Tolerance is how far the signed time may be from now, in either
	// direction, unless the request says otherwise. Zero: the scheme signs no
	// time, or one that says too little of when the request was sent, and only
	// the deduplication of events stands against a replay.
	Tolerance time.Duration

	family family
}

// family is one way of signing, filled in by a row. Its errors carry everything
// but the name of the scheme.
type family interface {
	verify(req Request, secrets []string, now time.Time, tolerance time.Duration) *Error
	sign(body []byte, secret string, now time.Time, opt SignOptions) (Signed, *Error)
	checkSecret(secret string) *Error
}

// Lookup returns the scheme called name, and reports whether there is one.
func Lookup(name string) (*Scheme, bool) {
	for _, s := range table {
		if s.Name == name {
			return s, true
		}
	}
	return nil, false
}

// Schemes returns all schemes, in the order of the table.
func Schemes() []*Scheme {
	return append([]*Scheme(nil), table...)
}

// Verify checks req by the scheme of that name: see [Scheme.Verify]. A name that
// is not in the table is an [UnknownScheme].
func Verify(scheme string, req Request, secrets []string, now time.Time) error {
	s, ok := Lookup(scheme)
	if !ok {
		return &Error{Scheme: scheme, Reason: UnknownScheme}
	}
	return s.Verify(req, secrets, now)
}

// Verify reports whether req was signed with one of secrets: nil if it was, else
// an [*Error]. All secrets are tried, so during a rotation both the new and the
// old one are passed. Empty ones are passed over.
func (s *Scheme) Verify(req Request, secrets []string, now time.Time) error {
	tolerance := s.Tolerance
	if req.Tolerance > 0 {
		tolerance = req.Tolerance
	}
	return s.named(s.family.verify(req, secrets, now, tolerance))
}

// Sign signs body with secret, as the gateway would at the time now. What it
// returns is accepted by [Scheme.Verify] until the tolerance has passed. Body is
// not changed. It fails with [NoSecret] or [BadSecret], and with [Malformed] or
// [Ambiguous] if such a message could not be verified (adyen: a body that is no
// notification; standard: an ID with a space).
func (s *Scheme) Sign(body []byte, secret string, now time.Time, opt SignOptions) (Signed, error) {
	signed, err := s.family.sign(body, secret, now, opt)
	return signed, s.named(err)
}

// CheckSecret reports whether secret is well formed for verification: nil, or an
// [*Error] that says what is wrong without showing it. It is for configuration,
// and asks for more than [Scheme.Verify] needs: a Stripe secret must look like
// one, because what else people paste there is an API key.
func (s *Scheme) CheckSecret(secret string) error {
	if secret == "" {
		return s.named(refuse(NoSecret, "the secret is empty"))
	}
	return s.named(s.family.checkSecret(secret))
}

// named completes the error of a family. It returns a nil interface for nil.
func (s *Scheme) named(err *Error) error {
	if err == nil {
		return nil
	}
	err.Scheme = s.Name
	return err
}
