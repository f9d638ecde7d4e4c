package gateway

import (
	"regexp"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Clip asks Clip's API about the checkouts (payment links) that its webhooks name;
// they are not signed. Its rules:
//
//   - Of a body only payment_request_id is read.
//   - A checkout is a snapshot without a version: the call that began last is the
//     newest.
//   - The merchant's reference is metadata.external_reference, else
//     metadata.me_reference_id.
//   - How the API tells of refunds and chargebacks could not be confirmed; a
//     checkout that says nothing of them stays paid.
var Clip = &Gateway{
	Name:     "clip",
	Title:    "Clip",
	Docs:     "https://developer.clip.mx/reference/checkout-webhook",
	Evidence: Unsigned,
	Manual: Manual{
		EventID:  "None that is proved: `id` and `attempts` stand in a body that nobody signs. An event is a state of the checkout, as the API tells it.",
		Retries:  "Not documented; `attempts` in the body counts them.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "`access_token` is `api_key:secret_key`. Put your reference into the checkout's `metadata` as `external_reference`. " +
			"**Refunds and chargebacks are not told**: how the API shows them could not be confirmed, so a notification of a refund only leads to the checkout being asked about again. " +
			"Only webhooks of the Checkout API are understood (not the Postback of terminals).",
	},
	Covers: Coverage{Of: "nothing"},
	// Not documented; as short as that of others.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options:     append([]Option{optionAccessToken}, optionsAPI...),
	CheckMore: func(c *Checker) {
		if s := c.s.AccessToken; s != "" && !strings.Contains(s, ":") {
			c.add("access_token", "must be the API key and the secret key, with a colon between")
		}
	},
	Fetch: &Fetch{
		Live: "https://api.payclip.com", Test: "https://api.payclip.com", Always: true,
		Objects: clipObjects, Call: clipCall, Parse: clipAnswered, Sample: clipAnswer,
	},
	Types:  func(Source) []Type { return clipStates.types("checkout.") },
	Sample: sampleClip,
	Example: func(seed string) Source {
		return Source{Gateway: "clip", Mode: Test, AccessToken: exampleSecret("clip", seed) + ":" + exampleSecret("clip secret", seed)}
	},
}

var clipKinds = map[string]*regexp.Regexp{"checkout": regexp.MustCompile(`^[0-9A-Za-z-]{8,64}$`)}

// clipStates: https://developer.clip.mx/reference/checkout-webhook. The API writes
// them with CHECKOUT_ before.
var clipStates = askedStates{
	{status: "CHECKOUT_CREATED", meaning: "the link waits for the shopper", phase: order.StatusProcessing},
	{status: "CHECKOUT_PENDING", meaning: "the payment is under way", phase: order.StatusProcessing},
	{status: "CHECKOUT_COMPLETED", meaning: "the money was captured", phase: order.StatusAuthorized, captured: true},
	{status: "CHECKOUT_CANCELLED", meaning: "the link was canceled", phase: order.StatusCanceled},
	{status: "CHECKOUT_EXPIRED", meaning: "the link was not paid in time", phase: order.StatusExpired},
}

var clipUUID = regexp.MustCompile(`^[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

// clipID is the one spelling of an id. Anybody may announce one, and what looks up
// a UUID takes it in any case of its letters: without this, the money of one
// checkout would count once for every spelling.
func clipID(id string) string {
	if clipUUID.MatchString(id) {
		return strings.ToLower(id)
	}
	return id
}

func clipObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"payment_request_id"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	o := Object{"checkout", clipID(top.get("payment_request_id").Str)}
	if !askable(o, clipKinds) {
		return nil, parseError("no_event_id", "payment_request_id is none of Clip's")
	}
	return []Object{o}, nil
}

func clipCall(s Source, o Object) (Call, error) {
	if !askable(o, clipKinds) {
		return Call{}, errNoObject(o)
	}
	return basicCall(s, "/v2/checkout/"+escaped(o)), nil
}

func clipAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	var d draft
	f := d.members(doc, "the checkout", "payment_request_id", "status", "amount", "currency", "metadata")
	if clipID(f.get("payment_request_id").Str) != o.ID {
		return nil, parseError("shape", "the answer is not about the %s that was asked about", o.Kind)
	}
	d.Payment, d.Strength = []string{o.ID}, order.StrengthPayment
	metadata := d.optional(f.get("metadata"), "metadata", "external_reference", "me_reference_id")
	for _, name := range []string{"me_reference_id", "external_reference"} {
		if ref, ok := metadata.get(name).name(); ok {
			d.Reference = ref
		}
	}
	d.refer(s, doc)
	// One L or two: documentation and API differ.
	status := textValue(strings.Replace(f.get("status").Str, "_CANCELED", "_CANCELLED", 1))
	state, ok := d.state("checkout.", clipStates, status)
	if !ok {
		return d.done(), nil
	}
	d.snapshot(o.ID, registers{
		phase: state.phase, captured: state.captured, untold: true, amount: d.decimal(f.get("amount"), f.get("currency"), "amount"),
	}, updated(time.Time{}, a))
	return d.done(), nil
}

// clipSample is the id and the amount of a sample.
func clipSample(r *SampleRequest) (id, status string, amount any, err error) {
	if !knownType(clipStates.types("checkout."), r.Type) {
		return "", "", nil, unknownSample("clip", r.Type, clipStates.types("checkout."))
	}
	status = strings.TrimPrefix(r.Type, "checkout.")
	*r = r.withDefaults()
	if id = r.Payment; id == "" {
		id = uuidOf("payment", r.Reference, r.Mode)
	}
	amount, err = majorNumber(r.Amount.Minor, r.Amount.Currency)
	return id, status, amount, err
}

// sampleClip makes the webhook about the checkout.
func sampleClip(r SampleRequest) ([]byte, error) {
	id, status, _, err := clipSample(&r)
	if err != nil {
		return nil, err
	}
	event := r.ID
	if event == "" {
		event = strings.ToLower(derive(32, "event", id, r.Type, r.At.String()))
	}
	return render(fields{
		"id": event, "api_version": "1.0", "payment_request_id": id, "transaction_id": strings.ToLower(derive(32, "transaction", id)),
		"resource": "CHECKOUT", "resource_status": strings.TrimPrefix(status, "CHECKOUT_"), "attempts": 1,
		"sent_date": r.At.Format(time.RFC3339), "me_reference_id": r.Reference,
	}, r.Set, same)
}

// clipAnswer makes what the API answers about the checkout.
func clipAnswer(r SampleRequest) (Object, []byte, error) {
	id, status, amount, err := clipSample(&r)
	if err != nil {
		return Object{}, nil, err
	}
	metadata := fields{}
	if r.Reference != "" {
		metadata["external_reference"] = r.Reference
	}
	body, err := render(fields{
		"payment_request_id": id, "object_type": "checkout", "status": status, "amount": amount, "currency": r.Amount.Currency,
		"purchase_description": "An order", "metadata": metadata, "created_at": r.At.Format(time.RFC3339),
		"payment_request_url": "https://pago.clip.mx/" + id,
	}, r.Set, same)
	return Object{"checkout", id}, body, err
}
