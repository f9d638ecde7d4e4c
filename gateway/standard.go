package gateway

import (
	"encoding/base64"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Standard maps the events of any sender that signs by Standard Webhooks (and
// Svix), as the source's Map says where things are. Its rules:
//
//   - The event id is the webhook-id header, which is signed and stays the same
//     over retries; the event's time is webhook-timestamp, which is signed too
//     and is of the attempt.
//   - A mapped type says how much of the payment is authorized, captured or
//     refunded by now: a running total. A sender that tells single captures of
//     one payment would be understood as if each replaced the one before, the
//     greatest counting.
//   - authorized and captured are the payment's own events, and their reference
//     may make an order; that of a refund only finds one.
//   - The specification has no mode: every event is of the source's mode.
//
// https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
var Standard = &Gateway{
	Name:     "standard",
	Title:    "Standard Webhooks",
	Docs:     "https://www.standardwebhooks.com",
	Scheme:   "standard",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "From the sender: `whsec_` and base64 (HMAC), or `whpk_` and base64 (the public key of an Ed25519 pair).",
		EventID:  "The webhook-id header, which is signed and stays the same over all tries.",
		Retries:  "As the sender likes; the specification suggests ten tries in about three days.",
		Ordering: "None is promised.",
		Notes:    "Svix and Lithic sign this way too: use this gateway for them, with a `map` of their payloads.",
	},
	Covers: Coverage{Of: "body", Fields: []string{"Webhook-Id", "Webhook-Timestamp"}},
	// The specification asks senders to wait 15 to 30 s.
	Deadline: 15 * time.Second,
	KeepHeaders: []string{
		"Content-Type", "User-Agent",
		"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "Svix-Id", "Svix-Timestamp", "Svix-Signature",
	},
	Options: []Option{
		optionSecrets,
		optionSigningKeys,
		{"map", true, "it says where type, payment, amount and currency stand in a payload"},
	},
	CheckMore: checkStandard,
	Parse:     parseStandard,
	Types:     standardNames,
	Sample:    sampleStandard,
	Example: func(seed string) Source {
		return Source{
			Gateway: "standard", Mode: Test,
			Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte(exampleSecret("standard", seed)))},
			Map: &Map{
				Type: "/type", Payment: "/data/payment_id", Reference: "/data/order_id", Amount: "/data/amount", Currency: "/data/currency",
				Facts: map[string]string{
					"payment.authorized": "authorized", "payment.succeeded": "captured", "refund.succeeded": "refunded",
				},
			},
		}
	},
}

// standardKinds are what a type may be mapped to.
var standardKinds = map[string]order.Kind{
	"authorized": order.KindAuthorized,
	"captured":   order.KindCaptured,
	"refunded":   order.KindRefunded,
}

func parseStandard(s Source, d Delivery) ([]order.Event, error) {
	if s.Map == nil {
		return nil, parseError("shape", "the source has no map")
	}
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	ev := order.Event{ID: headerOf(d.Header, "Webhook-Id", "Svix-Id"), Type: unreadableType}
	if !isName(ev.ID) {
		return nil, parseError("no_event_id", "the webhook-id header is missing or no plain text")
	}
	if n, err := strconv.ParseInt(headerOf(d.Header, "Webhook-Timestamp", "Svix-Timestamp"), 10, 64); err == nil && n > 0 && n <= lastUnix {
		ev.At = time.Unix(n, 0).UTC()
	}
	if text, ok := pointed(doc, s.Map.Type, &ev).kind(); ok {
		ev.Type = text
	} else if ev.Broken == "" {
		ev.Broken = "no type at " + s.Map.Type
	}
	if ev.Broken != "" {
		return []order.Event{ev}, nil
	}
	kind, known := standardKinds[s.Map.Facts[ev.Type]]
	if !known {
		ev.Ignored = UnknownType
		return []order.Event{ev}, nil
	}
	readStandard(s, doc, kind, &ev)
	return []order.Event{ev}, nil
}

// readStandard fills ev from the places that the map names.
func readStandard(s Source, doc value, kind order.Kind, ev *order.Event) {
	ev.Strength = order.StrengthPayment
	if kind == order.KindRefunded {
		ev.Strength = order.StrengthModification
	}
	at := s.Map.Reference
	if s.Reference != "" {
		at = s.Reference
	}
	if at != "" {
		ev.Reference, _ = pointed(doc, at, ev).name()
	}
	payment, ok := pointed(doc, s.Map.Payment, ev).name()
	if !ok {
		breakAt(ev, s.Map.Payment, "no id of the payment")
		return
	}
	ev.Payment = []string{payment}

	cur, err := currency(pointed(doc, s.Map.Currency, ev))
	if err != nil {
		breakAt(ev, s.Map.Currency, err.Error())
		return
	}
	n, err := exponents(nil).amount(pointed(doc, s.Map.Amount, ev), cur)
	if err != nil {
		breakAt(ev, s.Map.Amount, err.Error())
		return
	}
	ev.Facts = []order.Fact{{Kind: kind, Amount: n, Currency: cur}}
	if kind == order.KindAuthorized {
		ev.Own = &order.Amount{Minor: n, Currency: cur}
	}
}

// pointed follows a pointer; an ambiguous way breaks the event.
func pointed(doc value, pointer string, ev *order.Event) value {
	v, err := doc.at(pointer)
	if err != nil && ev.Broken == "" {
		ev.Broken = err.Error()
	}
	return v
}

func breakAt(ev *order.Event, pointer, what string) {
	if ev.Broken == "" {
		ev.Broken = pointer + ": " + what
	}
}

// headerOf returns the value of the first of the names that is there, however
// it is spelt. The signature saw to it that there are no two.
func headerOf(h http.Header, names ...string) string {
	for _, name := range names {
		if v := h.Get(name); v != "" {
			return v
		}
		for key, values := range h {
			if strings.EqualFold(key, name) && len(values) > 0 && values[0] != "" {
				return values[0]
			}
		}
	}
	return ""
}

func standardNames(s Source) []Type {
	if s.Map == nil {
		return nil
	}
	var types []Type
	for _, name := range slices.Sorted(maps.Keys(s.Map.Facts)) {
		types = append(types, Type{name, "so much of the payment is " + s.Map.Facts[name]})
	}
	return types
}

func checkStandard(c *Checker) {
	s := c.s
	if s.Map == nil {
		return
	}
	for _, p := range []struct {
		name, pointer string
		optional      bool
	}{
		{"type", s.Map.Type, false},
		{"payment", s.Map.Payment, false},
		{"reference", s.Map.Reference, true},
		{"amount", s.Map.Amount, false},
		{"currency", s.Map.Currency, false},
	} {
		if p.pointer == "" {
			if !p.optional {
				c.add("map."+p.name, "is missing")
			}
		} else if err := checkPointer(p.pointer); err != nil {
			c.add("map."+p.name, "%v", err)
		}
	}
	if len(s.Map.Facts) == 0 {
		c.add("map.facts", "is missing: it says what types of event mean, like payment.succeeded: captured")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Map.Facts)) {
		if _, ok := standardKinds[s.Map.Facts[name]]; !ok {
			c.add("map.facts."+name, "must be authorized, captured or refunded")
		}
	}
}
