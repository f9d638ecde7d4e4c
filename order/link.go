package order

import "cmp"

// Link says which order a payment belongs to, and who said so. The zero value is no link.
type Link struct {
	Ref      string   `json:"ref,omitempty"` // the merchant's reference; of a person's link empty: it is withdrawn
	Strength Strength `json:"strength,omitempty"`
	At       int64    `json:"at,omitempty"`    // of the event, in microseconds since the Unix epoch; 0: unknown, later than every known time
	Event    string   `json:"event,omitempty"` // its id, as the gateway gave it
}

// Join returns the link that holds of the two: the stronger, among equals the earlier, then the lesser event id. Of what
// persons said the last word holds instead, the greater event id at one time, so that a link can be taken back.
func (l Link) Join(m Link) Link {
	if m.compare(l) > 0 {
		return m
	}
	return l
}

// compare orders links by how much they hold. The reference comes last: one event id may have been used for two
// references, and then arrival must not decide either.
func (l Link) compare(m Link) int {
	if c := cmp.Compare(l.Strength, m.Strength); c != 0 {
		return c
	}
	if l.Strength == StrengthPerson {
		return cmp.Or(cmp.Compare(l.At, m.At), cmp.Compare(l.Event, m.Event), cmp.Compare(l.Ref, m.Ref))
	}
	known := func(at int64) int {
		if at == 0 {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(known(l.At), known(m.At)),
		cmp.Compare(m.At, l.At),
		cmp.Compare(m.Event, l.Event),
		cmp.Compare(m.Ref, l.Ref),
	)
}

// Links are the two links of a payment: what the gateways' events say, and what a person said.
type Links struct{ Gateway, Person Link }

// Join joins each of the two.
func (l Links) Join(m Links) Links { return Links{l.Gateway.Join(m.Gateway), l.Person.Join(m.Person)} }

// Best returns the link that holds: the person's, unless there is none or it was withdrawn.
func (l Links) Best() Link {
	if l.Person.Ref != "" {
		return l.Person
	}
	return l.Gateway
}

// Links returns what e says about the order of its payment.
func (e Event) Links() Links {
	withdrawn := e.Command != nil && e.Command.Link && e.Reference == ""
	if e.Reference == "" && !withdrawn || !isText(e.Reference) {
		return Links{}
	}
	l := Link{Ref: e.Reference, Strength: max(e.Strength, StrengthModification), Event: BaseID(e.ID)}
	if !e.At.IsZero() {
		l.At = e.At.UnixMicro()
	}
	if withdrawn || l.Strength == StrengthPerson {
		l.Strength = StrengthPerson
		return Links{Person: l}
	}
	return Links{Gateway: l}
}
