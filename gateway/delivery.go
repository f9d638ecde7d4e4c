package gateway

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/paidonce/paidonce/signature"
)

// Delivery is one HTTP request of a gateway, as received or as it would be sent.
type Delivery struct {
	Method     string
	Query      string // raw, without the question mark; signed by few
	Header     http.Header
	Body       []byte    // raw bytes: never decoded or encoded again
	ReceivedAt time.Time // never looked at by a mapping
}

// Verify reports whether the delivery was signed with one of the source's live
// secrets and, where the source has credentials, sent by their holder: nil, or
// a *signature.Error. Nothing may look at the body before.
//
// keys are public keys that were found on the network for this delivery, for
// gateways with a [Remote]. A gateway that signs nothing verifies nothing: nil,
// and nothing that the delivery says may be believed.
func (g *Gateway) Verify(s Source, d Delivery, now time.Time, keys ...string) error {
	// First: it is cheap, and guards against work for strangers.
	if err := s.CheckSender(d.Header); err != nil {
		return err
	}
	if g.Scheme == "" {
		return nil
	}
	scheme, ok := signature.Lookup(g.Scheme)
	if !ok {
		return fmt.Errorf("gateway %s: no signature scheme %q", g.Name, g.Scheme)
	}
	secrets := g.secrets(s)
	if g.Remote != nil && len(keys) > 0 {
		secrets = nil
		for _, key := range keys {
			secrets = append(secrets, g.Remote.Secret(s, key))
		}
	}
	return scheme.Verify(g.SignatureRequest(s, d), secrets, now)
}

// SignatureRequest is what a scheme sees of a delivery to a source.
func (g *Gateway) SignatureRequest(s Source, d Delivery) signature.Request {
	return signature.Request{
		Method: d.Method, URL: s.PublicURL, Query: d.Query, Header: d.Header, Body: d.Body, Tolerance: s.Tolerance,
	}
}

// CheckSender checks the credentials that the source has for its sender (basic,
// authorization): nil, also where it has none, or a *signature.Error.
func (s Source) CheckSender(h http.Header) error {
	switch {
	case s.Basic != "":
		return signature.CheckBasic(h, s.Basic)
	case s.Authorization != "":
		return signature.CheckAuthorization(h, s.Authorization)
	}
	return nil
}

// secrets returns what deliveries may be signed with.
func (g *Gateway) secrets(s Source) []string {
	if g.Secrets != nil {
		return g.Secrets(s)
	}
	return s.Secrets
}

// LiveSecrets returns what the source's deliveries may be signed with: nothing
// for a gateway that signs nothing or whose keys are found on the network.
func (g *Gateway) LiveSecrets(s Source) []string { return g.secrets(s) }

// Deliver makes a delivery of body as the gateway would send it to this source
// at the time now: its method, query and headers, and the body to send (adyen
// signs inside it). id is the id of the message, for gateways that sign one in a
// header (standard); empty: derived from the body, so that the same body is the
// same event. It serves offline sending, replay and tests.
//
// It signs with the first of the source's signing_keys, else with its first
// secret.
func (g *Gateway) Deliver(s Source, body []byte, id string, now time.Time) (Delivery, error) {
	d := Delivery{Method: http.MethodPost, Body: body, ReceivedAt: now, Header: http.Header{
		"Content-Type": {cmp.Or(g.ContentType, "application/json; charset=utf-8")},
	}}
	if s.Basic != "" {
		d.Header.Set("Authorization", basicHeader(s.Basic))
	}
	if s.Authorization != "" {
		d.Header.Set("Authorization", s.Authorization)
	}
	if g.Scheme == "" {
		return d, nil
	}
	scheme, ok := signature.Lookup(g.Scheme)
	if !ok {
		return Delivery{}, fmt.Errorf("gateway %s: no signature scheme %q", g.Name, g.Scheme)
	}
	secrets := s.SigningKeys
	if len(secrets) == 0 {
		secrets = g.secrets(s)
	}
	if len(secrets) == 0 {
		if g.Remote != nil {
			return Delivery{}, fmt.Errorf("source %s: no key to sign with: %s signs with keys of its own, which are found on the network; try the source in its sandbox", s.ID, g.Title)
		}
		return Delivery{}, fmt.Errorf("source %s: no secret to sign with", s.ID)
	}
	secret := secrets[0]
	if g.Remote != nil && len(s.SigningKeys) > 0 {
		secret = g.Remote.Secret(s, secret)
	}
	opt := signature.SignOptions{ID: id, URL: s.PublicURL}
	if g.Remote != nil && g.Remote.Example != nil {
		ref, _ := g.Remote.Example(s)
		opt.CertURL, opt.KeyID = ref.URL, ref.ID
	}
	if g.SignQuery != nil {
		query, err := g.SignQuery(s, body)
		if err != nil {
			return Delivery{}, fmt.Errorf("sign for source %s: %w", s.ID, err)
		}
		opt.Query = query
	}
	signed, err := scheme.Sign(body, secret, now, opt)
	if err != nil {
		var bad *signature.Error
		if errors.As(err, &bad) && bad.Reason == signature.BadSecret && len(s.SigningKeys) == 0 {
			return Delivery{}, fmt.Errorf("sign for source %s: %w (its secrets verify only; give it signing_keys)", s.ID, err)
		}
		return Delivery{}, fmt.Errorf("sign for source %s: %w", s.ID, err)
	}
	for name, values := range signed.Header {
		d.Header[name] = values
	}
	d.Body, d.Query = signed.Body, signed.Query
	return d, nil
}

// Sign is [Gateway.Deliver] without an id, for callers that need no query: the
// headers, and the body to send.
func (g *Gateway) Sign(s Source, body []byte, now time.Time) (http.Header, []byte, error) {
	return g.SignID(s, body, "", now)
}

// SignID is [Gateway.Sign] with the id of the message.
func (g *Gateway) SignID(s Source, body []byte, id string, now time.Time) (http.Header, []byte, error) {
	d, err := g.Deliver(s, body, id, now)
	return d.Header, d.Body, err
}

// Probe is how a probe of a gateway is answered.
type Probe struct {
	Body string // of the answer 200
	Type string // its Content-Type
	Note string // one line for the log; it may quote at most what isName accepts
}
