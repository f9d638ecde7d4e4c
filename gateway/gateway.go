// Package gateway turns what a payment gateway sends into what it means.
//
// Each gateway is one file and one exported value, a [Gateway]: how its
// deliveries are signed, what that signature covers, how its payloads become
// [order.Event]s, and what answer it wants. The package guarantees:
//
//   - mapping is pure: the same source and the same delivery give the same
//     events, whatever the time, the network or the order of arrival;
//   - event id, type and facts come only from what the signature covers (see
//     [Coverage]). Other bytes can only make us more careful: they mark facts
//     as a misfit, which is flagged and never counted;
//   - the id of an event stays the same however often the gateway repeats it;
//   - amounts are integers of minor units with the exponent of ISO 4217, read
//     from the digits of the payload and never through a float; what is
//     negative, fractional, too great or of an unknown currency is not guessed
//     at: the event is [order.Event].Broken;
//   - a JSON key that occurs twice in an object that is read is refused, since
//     another reader (the verifier of a signature) may have taken the other.
//
// Nothing here does I/O or reads a clock.
package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

// MappingVersion numbers the mapping of this package. It is stored with every
// event's facts, and grows when a payload gives other facts than before.
const MappingVersion = 1

// Reasons of events that carry no fact ([order.Event].Ignored).
const (
	// UnknownType: the gateway file has no mapping for events of this type.
	UnknownType = "unknown_type"

	// NoFact: the type is known, and this event of it moves nothing (an
	// authorised charge, a cancellation that was refused).
	NoFact = "no_fact"

	// NeedsFetch: the event is only a pointer to an object at the gateway
	// (Stripe's thin events).
	NeedsFetch = "needs_fetch"
)

// Coverage says which bytes of a delivery its signature vouches for.
type Coverage struct {
	// Of is "body", "fields", "sender" or "nothing".
	Of string

	// Fields are what is covered where Of is "fields"; for "body", the headers
	// that are covered too.
	Fields []string

	// Sender are the fields that are believed in addition where the source has
	// credentials for its sender ([Source].Basic) and they were right.
	Sender []string
}

// String describes the coverage in one line, like "fields(pspReference, …)".
func (c Coverage) String() string {
	s := c.Of
	if len(c.Fields) > 0 {
		s += "(" + strings.Join(c.Fields, ", ") + ")"
	}
	if len(c.Sender) > 0 {
		s += ", with credentials of the sender also " + strings.Join(c.Sender, ", ")
	}
	return s
}

// Type is a type of event that a gateway file understands.
type Type struct {
	Name    string // as the gateway writes it: "payment_intent.succeeded"
	Meaning string // one line, for people
}

// Delivery is one HTTP request of a gateway, as received.
type Delivery struct {
	Method     string
	Header     http.Header
	Body       []byte    // raw bytes: never decoded or encoded again
	ReceivedAt time.Time // never looked at by a mapping
}

// Gateway is one payment gateway. Its fields are for reading; it is safe for
// concurrent use.
type Gateway struct {
	Name   string // in configuration, metrics and realms: "stripe"
	Title  string // for people: "Stripe"
	Docs   string // URL of the gateway's own documentation of webhooks
	Scheme string // name of its row in package signature

	// Covers is what the signature vouches for.
	Covers Coverage

	// AckBody is the body of the answer 200 that this gateway wants, and
	// AckType its Content-Type; both may be empty.
	AckBody, AckType string

	// Deadline is how long the gateway waits for an answer before it counts
	// the delivery as failed; the gateway file says where the number is from.
	Deadline time.Duration

	// QuarantineUnreadable: a signed body that gives a [*ParseError] is kept in
	// quarantine and answered with 200, because this gateway holds back all
	// later events of an endpoint that refuses one.
	QuarantineUnreadable bool

	// KeepHeaders are the names of the headers worth keeping with the body, in
	// canonical form: what is signed, and what a mapping reads. Credentials are
	// never among them.
	KeepHeaders []string

	// Check reports everything that is wrong with a source of this gateway, as
	// sentences that name the option and show no secret.
	Check func(Source) error

	// Secrets returns what the source's deliveries may be signed with; the
	// first is what [Gateway.Sign] uses.
	Secrets func(Source) []string

	// Parse maps a verified delivery. Callers use [Gateway.Events], which
	// completes what Parse returns.
	Parse func(Source, Delivery) ([]order.Event, error)

	// Types lists the types that are understood, in the order of the gateway
	// file (of a source: for standard they are configured).
	Types func(Source) []Type

	// Sample makes the body of one event in the gateway's real shape, unsigned.
	// The same request gives the same bytes.
	Sample func(SampleRequest) ([]byte, error)
}

// Verify reports whether the delivery was signed with one of the source's live
// secrets and, where the source has credentials, sent by their holder: nil, or
// a *signature.Error. Nothing may look at the body before.
func (g *Gateway) Verify(s Source, d Delivery, now time.Time) error {
	scheme, ok := signature.Lookup(g.Scheme)
	if !ok {
		return fmt.Errorf("gateway %s: no signature scheme %q", g.Name, g.Scheme)
	}
	if s.Basic != "" {
		// First: it is cheap, and guards against work for strangers.
		if err := signature.CheckBasic(d.Header, s.Basic); err != nil {
			return err
		}
	}
	req := signature.Request{Method: d.Method, Header: d.Header, Body: d.Body}
	return scheme.Verify(req, g.Secrets(s), now)
}

// Sign makes a delivery of body as the gateway would send it to this source at
// the time now: its headers, and the body to send (adyen signs inside it). It
// serves offline sending, replay and tests.
func (g *Gateway) Sign(s Source, body []byte, now time.Time) (http.Header, []byte, error) {
	return g.SignID(s, body, "", now)
}

// SignID is [Gateway.Sign] with the id of the message, for gateways that sign
// one in a header (standard). Empty: derived from the body, so that the same
// body is the same event.
func (g *Gateway) SignID(s Source, body []byte, id string, now time.Time) (http.Header, []byte, error) {
	scheme, ok := signature.Lookup(g.Scheme)
	if !ok {
		return nil, nil, fmt.Errorf("gateway %s: no signature scheme %q", g.Name, g.Scheme)
	}
	secrets := g.Secrets(s)
	if len(secrets) == 0 {
		return nil, nil, fmt.Errorf("source %s: no secret to sign with", s.ID)
	}
	signed, err := scheme.Sign(body, secrets[0], now, signature.SignOptions{ID: id})
	if err != nil {
		return nil, nil, fmt.Errorf("sign for source %s: %w", s.ID, err)
	}
	h := http.Header{"Content-Type": {"application/json; charset=utf-8"}}
	for name, values := range signed.Header {
		h[name] = values
	}
	if s.Basic != "" {
		h.Set("Authorization", basicHeader(s.Basic))
	}
	return h, signed.Body, nil
}

// Events maps a verified delivery to its events, in the order of the payload.
// There is at least one. The error is a [*ParseError]: the bytes are not what
// the gateway documents, or an event has no id.
//
// Every event returned has an id, a type and a realm and is either Ignored,
// Broken, or carries facts that are valid.
func (g *Gateway) Events(s Source, d Delivery) ([]order.Event, error) {
	events, err := g.Parse(s, d)
	if err != nil {
		return nil, err
	}
	realm := g.Realm(s)
	for i := range events {
		if err := finish(&events[i], s, realm); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// Realm returns the name space of the ids that this source's payments have:
// "stripe:live", "stripe:acct_1:live", "adyen:test". The mode is the source's,
// so that an event of the other mode flags the payment it names and touches
// nothing else.
func (g *Gateway) Realm(s Source) string {
	if s.StripeAccount != "" {
		return g.Name + ":" + s.StripeAccount + ":" + s.Mode
	}
	return g.Name + ":" + s.Mode
}

// Keep returns the headers of a delivery that are stored with its body: those
// of KeepHeaders, each with its values joined by ", ".
func (g *Gateway) Keep(h http.Header) map[string]string {
	kept := map[string]string{}
	for name, values := range h {
		if c := http.CanonicalHeaderKey(name); slices.Contains(g.KeepHeaders, c) {
			kept[c] = strings.Join(values, ", ")
		}
	}
	return kept
}
