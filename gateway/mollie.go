package gateway

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Mollie asks Mollie's API about the payments that its signed (next-gen) webhooks
// are about. Its rules:
//
//   - An event says what happened to a payment, a refund, a chargeback, a capture
//     or a payment link. Which payment that is stands in entityId, in the embedded
//     entity (full payloads) or in the link to it. The payment is then asked about
//     as a whole: events have a time each, and their objects no version that would
//     order them against the state that [MollieClassic] reads.
//   - A payment link leads to the payments that were made with it.
//   - All else is as with [MollieClassic], with which it shares its payments.
var Mollie = &Gateway{
	Name:     "mollie",
	Title:    "Mollie",
	Docs:     "https://docs.mollie.com/reference/webhooks-new",
	Scheme:   "mollie",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Developers → Webhooks → the webhook → Signing secret. `access_token` is the API key (`live_…`, `test_…`) of the profile.",
		EventID:  "`id` (`event_…`), the same over all tries. What it leads to is known by the state of the payment.",
		Retries:  "Without a 2xx within 15 s, ten times within 26 hours, as with classic webhooks; not confirmed for these.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "Subscribe to `payment.*`, `refund.*`, `chargeback.*` and `capture.*`; both payloads do. A simple payload about a refund, a chargeback or a capture " +
			"names its payment only in `_links.entity`. Classic webhooks of the same payments may arrive too, at a source of `mollie-classic`.",
	},
	Covers:      Coverage{Of: "body"},
	Space:       "mollie",
	Deadline:    15 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Mollie-Signature"},
	Options:     append([]Option{optionSecrets, optionAccessToken}, optionsAPI...),
	CheckMore:   checkKey("live_", "test_"),
	Parse:       parseMollie,
	Fetch: &Fetch{
		Live: "https://api.mollie.com", Test: "https://api.mollie.com", Always: true,
		Objects: mollieObjects, Call: mollieCall, Parse: mollieAnswered, Sample: mollieAnswer,
	},
	Types:  func(Source) []Type { return mollieTypes },
	Sample: sampleMollie,
	Example: func(seed string) Source {
		return Source{
			Gateway: "mollie", Mode: Test, Secrets: []string{exampleSecret("mollie", seed)}, AccessToken: "test_" + exampleSecret("mollie token", seed),
		}
	},
}

// mollieAbout are the resources whose events move money.
var mollieAbout = []string{"payment", "refund", "chargeback", "capture", "dispute", "payment-link"}

// molliePaymentIn finds the payment in the link to an entity.
var molliePaymentIn = regexp.MustCompile(`/payments/(tr_[0-9A-Za-z]{1,60})(?:[/?]|$)`)

// parseMollie makes the event that waits until the API was asked.
func parseMollie(_ Source, d Delivery) ([]order.Event, error) {
	ev, _, err := mollieEvent(d.Body)
	if err != nil {
		return nil, err
	}
	return []order.Event{ev}, nil
}

func mollieObjects(_ Source, d Delivery) ([]Object, error) {
	_, objects, err := mollieEvent(d.Body)
	return objects, err
}

// mollieEvent reads an event, and which object it leads to.
func mollieEvent(body []byte) (order.Event, []Object, error) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return order.Event{}, nil, fault
	}
	var d draft
	top, err := doc.members([]string{"id", "type", "entityId", "createdAt", "_embedded", "_links"})
	if err != nil {
		return order.Event{}, nil, parseError("duplicate_key", "%v", err)
	}
	id, ok := top.get("id").text()
	if !ok {
		return order.Event{}, nil, parseError("no_event_id", "id is missing or no plain text")
	}
	d.ID, d.Type = id, unreadableType
	name, ok := top.get("type").kind()
	if !ok {
		d.fail("type is missing or no plain text")
		return d.Event, nil, nil
	}
	d.Type, d.At = name, rfc3339(top.get("createdAt"))
	resource, _, _ := strings.Cut(name, ".")
	if !slices.Contains(mollieAbout, resource) {
		d.Ignored = UnknownType
		return d.Event, nil, nil
	}
	o := mollieObject(&d, resource, top)
	if !d.broken() && !askable(o, mollieKinds) {
		d.fail("the event names no payment")
	}
	if d.broken() {
		return d.Event, nil, nil
	}
	d.Fetch = o.String()
	return d.Event, []Object{o}, nil
}

// mollieObject is what an event about that resource leads to.
func mollieObject(d *draft, resource string, top object) Object {
	entity, _ := top.get("entityId").text()
	if resource == "payment" || resource == "payment-link" {
		return Object{resource, entity}
	}
	embedded := d.optional(top.get("_embedded"), "_embedded", "entity")
	whole := d.optional(embedded.get("entity"), "_embedded.entity", "paymentId")
	if id, ok := whole.get("paymentId").text(); ok {
		return Object{"payment", id}
	}
	links := d.optional(top.get("_links"), "_links", "entity")
	link := d.optional(links.get("entity"), "_links.entity", "href")
	if found := molliePaymentIn.FindStringSubmatch(link.get("href").Str); found != nil {
		return Object{"payment", found[1]}
	}
	return Object{"payment", ""}
}

// sampleMollie makes a full payload about the payment.
func sampleMollie(r SampleRequest) ([]byte, error) {
	m, err := newMollieSample("mollie", r)
	if err != nil {
		return nil, err
	}
	id := m.ID
	if id == "" {
		id = "event_" + derive(22, "event", m.payment, r.Type, m.At.String(), m.value)
	}
	self := "https://api.mollie.com/v2/payments/" + m.payment
	return render(fields{
		"resource": "event", "id": id, "type": r.Type, "entityId": m.payment, "createdAt": m.At.Format(time.RFC3339),
		"_embedded": fields{"entity": m.object()},
		"_links":    fields{"entity": fields{"href": self, "type": "application/hal+json"}},
	}, r.Set, func(path string) string { return "_embedded.entity." + path })
}
