package order

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Amount is money: minor units of an ISO 4217 currency.
type Amount struct {
	Minor    int64  `json:"minor"`
	Currency string `json:"currency"`
}

// compare orders amounts by number, then currency: any total order makes the greatest one a join.
func (a Amount) compare(b Amount) int {
	return cmp.Or(cmp.Compare(a.Minor, b.Minor), cmp.Compare(a.Currency, b.Currency))
}

// Event is one thing that somebody says happened, in our terms. A gateway fills it from bytes that its signature
// covers, and from nothing else.
type Event struct {
	ID   string `json:"id"` // never changes, also not over retries
	Type string `json:"type,omitempty"`

	// At is the sender's own time; events of one time are ordered by ID. Zero: unknown.
	At time.Time `json:"at,omitzero"`

	// Realm is the name space of payment ids: "stripe:live", "stripe:acct_1:live", "adyen:test".
	Realm string `json:"realm,omitempty"`

	// Payment is every id under which the event knows its one payment, the main one first. Empty: it is about none.
	Payment []string `json:"payment,omitempty"`

	// Reference is the merchant's name of the order, if the event carries one, and Strength how far it is to be believed.
	Reference string   `json:"reference,omitempty"`
	Strength  Strength `json:"strength,omitempty"`

	// Renewal, if not nil, says of which period of which subscription the payment is. The order of that period takes the
	// place of Reference where the merchant has set up what comes back.
	Renewal *Renewal `json:"renewal,omitempty"`

	Facts []Fact `json:"facts,omitempty"` // all about that one payment

	// Own is the payment's own amount (of the intent, of the authorisation), never that of a capture or a refund.
	Own *Amount `json:"own,omitempty"`

	Command *Command `json:"command,omitempty"`

	// Ignored says in a code word why the event carries no fact: unknown_type, no_money, …
	Ignored string `json:"ignored,omitempty"`

	// Fetch names what has to be asked about at the gateway before anything is known ("payment/123"): the event itself
	// carries no fact.
	Fetch string `json:"fetch,omitempty"`

	// Broken says in a short sentence why the facts of a signed event cannot be read.
	Broken string `json:"broken,omitempty"`
}

// Validate returns what is wrong with e, or nil: a fact that [Fact.Validate] refuses, facts without a payment, an id or
// a reference that is not text, an amount or a time that none can be.
func (e Event) Validate() error {
	errs := make([]error, 0, len(e.Facts)+1)
	for _, f := range e.Facts {
		errs = append(errs, f.Validate())
	}
	switch {
	case e.ID == "" || !isText(e.ID):
		errs = append(errs, errors.New("order: event without a readable id"))
	case len(e.Facts) > 0 && len(e.Payment) == 0:
		errs = append(errs, errors.New("order: facts about no payment"))
	case e.Fetch != "" && len(e.Facts) > 0:
		errs = append(errs, errors.New("order: facts of an event that only points at them"))
	case !e.At.IsZero() && (e.At.Year() < 1970 || e.At.Year() > 9999):
		errs = append(errs, fmt.Errorf("order: event of the year %d", e.At.Year()))
	case !isText(e.Reference):
		errs = append(errs, errors.New("order: reference is not text"))
	case e.Strength > StrengthPerson:
		errs = append(errs, fmt.Errorf("order: unknown strength %d", e.Strength))
	case e.Command != nil && e.Command.Validate() != nil:
		errs = append(errs, e.Command.Validate())
	case e.Own != nil && !e.Own.countable():
		errs = append(errs, fmt.Errorf("order: own amount %d %s", e.Own.Minor, e.Own.Currency))
	}
	if e.Renewal != nil {
		errs = append(errs, e.Renewal.validate())
	}
	for _, id := range e.Payment {
		if id == "" || !isText(id) {
			errs = append(errs, fmt.Errorf("order: payment id %q", id))
		}
	}
	return errors.Join(errs...)
}

// countable reports whether a is an amount of money that a payment or an order can be about.
func (a Amount) countable() bool { return a.Minor >= 0 && a.Minor < All && isCurrency(a.Currency) }

// Strength is how far a reference is to be believed. The zero value is no reference.
type Strength uint8

// The strengths, rising.
const (
	StrengthModification Strength = iota + 1 // of a capture, refund or dispute
	StrengthPayment                          // of the payment's own event: creation, authorisation
	StrengthPerson                           // a person linked it
)

var strengthNames = [...]string{"", "modification", "payment", "person"}

// String returns the strength's name; "" for no strength.
func (s Strength) String() string {
	if int(s) < len(strengthNames) {
		return strengthNames[s]
	}
	return fmt.Sprintf("strength(%d)", uint8(s))
}

// MarshalText returns the strength's name.
func (s Strength) MarshalText() ([]byte, error) {
	if int(s) >= len(strengthNames) {
		return nil, fmt.Errorf("order: unknown strength %d", uint8(s))
	}
	return []byte(strengthNames[s]), nil
}

// UnmarshalText reads what MarshalText writes, and refuses everything else.
func (s *Strength) UnmarshalText(text []byte) error {
	for i, name := range strengthNames {
		if string(text) == name {
			*s = Strength(i)
			return nil
		}
	}
	return fmt.Errorf("order: unknown strength %q", text)
}

// BaseID returns the event id as its sender gave it. An id that came again with other facts is stored as "{id}#{hash}",
// the hash in hexadecimal; which of the two got the suffix depends on arrival, so nothing that joins may look at it.
func BaseID(id string) string {
	i := strings.LastIndexByte(id, '#')
	if i <= 0 || len(id)-i <= 8 || strings.Trim(id[i+1:], "0123456789abcdef") != "" {
		return id
	}
	return id[:i]
}
