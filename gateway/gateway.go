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
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
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

	// NeedsFetch: the event is only a pointer to an object at the gateway that
	// is not asked for (a Stripe source without access_token).
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

// Type is a type of event that a gateway file understands. Of a gateway that is
// asked ([Fetch]) it is a state in which the object can be.
type Type struct {
	Name    string // as the gateway writes it: "payment_intent.succeeded"
	Meaning string // one line, for people
}

// Evidence is how well what we know of a gateway is founded.
type Evidence string

// The levels of evidence.
const (
	// Solid: the scheme was confirmed by the gateway's own code or documentation,
	// and by a published signature or an official library.
	Solid Evidence = "solid"

	// Usable: confirmed by documentation alone, one detail inferred.
	Usable Evidence = "usable"

	// Unconfirmed: sources differ or leave a detail open. Such a gateway works
	// only with the option unconfirmed: true, after a check in its sandbox.
	Unconfirmed Evidence = "unconfirmed"

	// Unsigned: the gateway signs nothing. Its deliveries are never believed,
	// only taken as a reason to ask its API.
	Unsigned Evidence = "unsigned"
)

// Manual is what people read about a gateway: docs/gateways.md is written from
// it. Each is a sentence or two of Markdown, and may be empty.
type Manual struct {
	Secret   string // where the merchant finds or makes the secret
	EventID  string // what tells an event from another, and why that
	Retries  string // how often and how long the gateway tries again
	Ordering string // what it promises about the order of events
	Calls    string // which calls move money, what they need, and how one is settled whose answer is not known
	Notes    string // what else one has to know; what could not be confirmed
}

// Gateway is one payment gateway. Its fields are for reading; it is safe for
// concurrent use.
type Gateway struct {
	Name   string // in configuration, metrics and realms: "stripe"
	Title  string // for people: "Stripe"
	Docs   string // URL of the gateway's own documentation of webhooks
	Scheme string // name of its row in package signature; "": it signs nothing

	// Space names the name space of the ids of payments, for gateways whose
	// deliveries come in two forms about the same payments. "": Name.
	Space string

	Evidence Evidence
	Manual   Manual

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

	// ContentType is what the gateway sends, "" for JSON.
	ContentType string

	// KeepHeaders are the names of the headers worth keeping with the body, in
	// canonical form: what is signed, and what a mapping reads. Credentials are
	// never among them.
	KeepHeaders []string

	// Options are the options that a source of this gateway takes besides those
	// of every source.
	Options []Option

	// Check reports what else is wrong with a source, beyond Options and secrets
	// ([Gateway.Check] does those). nil: nothing.
	CheckMore func(*Checker)

	// Secrets returns what the source's deliveries may be signed with. nil: its
	// option secrets.
	Secrets func(Source) []string

	// Parse maps a verified delivery. Callers use [Gateway.Events], which
	// completes what Parse returns. nil: all is learned by asking ([Fetch]).
	Parse func(Source, Delivery) ([]order.Event, error)

	// Fetch says how the gateway's API is asked about what its deliveries only
	// name, or about what somebody else names. nil: it is not asked.
	Fetch *Fetch

	// Calls says how the gateway is asked to move money. nil: it is not.
	Calls *Calls

	// Listing says how the gateway is asked what happened in a span of time.
	// nil: it has no such list.
	Listing *Listing

	// Remote says what is needed from the network to verify a delivery. nil:
	// the source's secrets are enough.
	Remote *Remote

	// Probe answers what a gateway sends to find out whether an endpoint is
	// ours, before any event: nil, or a function that says whether the delivery
	// is one. A probe is answered before anything is verified, so it must
	// reveal nothing that a stranger could use, and changes nothing.
	Probe func(Source, Delivery) (Probe, bool)

	// SignQuery returns the query string of the delivery of a body, for gateways
	// that sign a part of it. nil: there is none.
	SignQuery func(Source, []byte) (string, error)

	// Types lists the types that are understood, in the order of the gateway
	// file (of a source: for standard they are configured).
	Types func(Source) []Type

	// Sample makes the body of one delivery in the gateway's real shape,
	// unsigned. The same request gives the same bytes.
	Sample func(SampleRequest) ([]byte, error)

	// Example is a source that works, in mode test, with everything the gateway
	// needs and secrets made from seed: what tests, scenarios and the
	// documentation use. Another seed gives other secrets.
	Example func(seed string) Source
}

// Events maps a verified delivery to its events, in the order of the payload.
// There is at least one, unless the gateway's deliveries are only a reason to ask
// ([Gateway.Objects]). The error is a [*ParseError]: the bytes are not what
// the gateway documents, or an event has no id.
//
// Every event returned has an id, a type and a realm and is either Ignored,
// Broken, waits for a Fetch, or carries facts that are valid.
func (g *Gateway) Events(s Source, d Delivery) ([]order.Event, error) {
	if g.Parse == nil {
		return nil, nil
	}
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
	space := cmp.Or(g.Space, g.Name)
	if s.StripeAccount != "" {
		return space + ":" + s.StripeAccount + ":" + s.Mode
	}
	return space + ":" + s.Mode
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
