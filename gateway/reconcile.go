package gateway

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// HeaderListed marks the bytes of an event that no webhook had brought: when it stood in the gateway's list, RFC 3339.
const HeaderListed = "Paidonce-Listed"

// CanList returns why a source's gateway cannot be asked what happened, as a sentence; nil: it can.
func (g *Gateway) CanList(s Source) error {
	if g.Listing == nil {
		return errors.New(g.Title + " has no list of what happened that could be read")
	}
	if g.Listing.Ready != nil {
		if err := g.Listing.Ready(s); err != nil {
			text := err.Error()
			if strings.HasPrefix(text, "has ") {
				text = "the source " + text
			}
			return fmt.Errorf("%s's list is not read: %s", g.Title, text)
		}
	}
	return nil
}

// CanAsk returns why a source's gateway cannot be asked how a payment stands, as a sentence; nil: it can, if the payment is known under
// an id that can be asked about.
func (g *Gateway) CanAsk(Source) error {
	if g.Fetch == nil {
		return errors.New(g.Title + " cannot be asked how a payment stands")
	}
	return nil
}

// Listed are the headers that an event of a list is stored with: those that a webhook's would be, and when it was listed.
func (g *Gateway) Listed(d Delivery, at time.Time) map[string]string {
	kept := g.Keep(d.Header)
	kept[HeaderListed] = at.UTC().Format(time.RFC3339)
	return kept
}

// AboutPayment returns what to ask about to learn how a payment stands that is known under these ids, and of which objects have told
// before: those that [Fetch].About names, or where it names none, the ones that have told. What the source cannot call about is left out.
func (g *Gateway) AboutPayment(s Source, ids []string, told []Object) []Object {
	if g.Fetch == nil {
		return nil
	}
	var objects []Object
	if g.Fetch.About != nil {
		objects = g.Fetch.About(s, ids)
	}
	if len(objects) == 0 {
		objects = told
	}
	var ready []Object
	for _, o := range objects {
		if _, err := g.Fetch.Call(s, o); err == nil {
			ready = append(ready, o)
		}
	}
	return ready
}
