package gateway

import (
	"regexp"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// stripeFetch asks for what thin events (v2.core.event) name in related_object:
// an object of API v1, at its own address. What is answered is the object as it is
// now, so phases and disputes are of the time when the call began; totals are
// running totals as in snapshot events.
// https://docs.stripe.com/event-destinations#thin-events
var stripeFetch = &Fetch{
	Live: "https://api.stripe.com", Test: "https://api.stripe.com",
	Objects: stripeThinObjects, About: stripeAbout, Call: stripeCall, Parse: stripeAnswered, Sample: stripeAnswer,
}

// stripeThinKind is a kind of object that thin events name.
type stripeThinKind struct {
	related string // related_object.type
	path    string // of the API
	id      *regexp.Regexp
	kind    *stripeKind
	facts   func(*stripeEvent)
}

// stripeThinKinds are keyed by the kind of [Object].
var stripeThinKinds = map[string]*stripeThinKind{
	"payment_intent":   {"payment_intent", "/v1/payment_intents/", stripeID("pi_"), &stripeIntent, (*stripeEvent).intentNow},
	"charge":           {"charge", "/v1/charges/", stripeID("(?:ch|py)_"), &stripeCharge, (*stripeEvent).chargeNow},
	"checkout_session": {"checkout.session", "/v1/checkout/sessions/", stripeID("cs_(?:live|test)_"), &stripeSession, (*stripeEvent).sessionNow},
	"refund":           {"refund", "/v1/refunds/", stripeID("(?:re|pyr)_"), &stripeRefund, (*stripeEvent).refund},
	"dispute":          {"dispute", "/v1/disputes/", stripeID("(?:dp|du)_"), &stripeDispute, (*stripeEvent).dispute},
	"invoice":          {"invoice", "/v1/invoices/", stripeID("in_"), &stripeInvoice, (*stripeEvent).invoice},
	"invoice_payment":  {"invoice_payment", "/v1/invoice_payments/", stripeID("inpay_"), &stripeInvoicePayment, (*stripeEvent).invoicePaymentNow},
}

func stripeID(prefix string) *regexp.Regexp {
	return regexp.MustCompile("^" + prefix + "[0-9A-Za-z_]{1,200}$")
}

// stripeThin returns the object that a thin event names; ok is false if the event
// is none, the source may not ask, or the object is of a kind that is not asked
// about.
func stripeThin(s Source, top object) (o Object, ok bool, err error) {
	if s.AccessToken == "" || !strings.HasPrefix(top.get("object").Str, "v2.") || top.get("related_object").absent() {
		return Object{}, false, nil
	}
	related, err := top.get("related_object").members([]string{"id", "type"})
	if err != nil {
		return Object{}, false, err
	}
	name, _ := related.get("type").text()
	o = Object{strings.ReplaceAll(name, ".", "_"), related.get("id").Str}
	kind := stripeThinKinds[o.Kind]
	return o, kind != nil && kind.related == name && kind.id.MatchString(o.ID), nil
}

func stripeThinObjects(s Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members(stripeTop)
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	o, ok, err := stripeThin(s, top)
	if err != nil || !ok {
		return nil, nil //nolint:nilerr // Parse says what is wrong with the event
	}
	return []Object{o}, nil
}

// stripeAbout names the PaymentIntents of a payment, which tell how far it is, and its charges, which tell what was captured and
// refunded of them in all: a source without access_token may not ask.
func stripeAbout(s Source, ids []string) []Object {
	if s.AccessToken == "" {
		return nil
	}
	var objects []Object
	for _, name := range []string{"payment_intent", "charge"} {
		for _, id := range distinct(stripeIDs(name, ids)) {
			if len(objects) < maxListed {
				objects = append(objects, Object{name, id})
			}
		}
	}
	return objects
}

func stripeCall(s Source, o Object) (Call, error) {
	kind := stripeThinKinds[o.Kind]
	if kind == nil || !kind.id.MatchString(o.ID) {
		return Call{}, errNoObject(o)
	}
	call := bearerCall(s, kind.path+escaped(o))
	// In the version that says what amount_refunded means, whatever the account's
	// own is.
	call.Header.Set("Stripe-Version", stripeSampleVersion)
	if s.StripeAccount != "" {
		call.Header.Set("Stripe-Account", s.StripeAccount)
	}
	return call, nil
}

// stripeAnswered reads an object as if an event had carried it.
func stripeAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	kind := stripeThinKinds[o.Kind]
	if kind == nil {
		return nil, errNoObject(o)
	}
	doc, err := readAnswer(o, a.Body)
	if err != nil {
		return nil, err
	}
	e := stripeObject(s, kind, doc, a.Started.Unix())
	if !e.broken() {
		kind.facts(e)
	}
	ev := e.Event
	if e.broken() {
		return []order.Event{*ev}, nil
	}
	if len(ev.Facts) == 0 && !e.connects() {
		ev.Ignored = NoFact
		return []order.Event{*ev}, nil
	}
	other, err := stripeOtherMode(s, doc)
	if err != nil {
		return nil, err
	}
	if other {
		misfit(ev, order.MisfitMode)
	}
	return []order.Event{*ev}, nil
}

// stripeObject reads what an object of API v1 says about its payment, but for the facts; it is as it was at that time, in seconds
// since the Unix epoch.
func stripeObject(s Source, kind *stripeThinKind, doc value, at int64) *stripeEvent {
	e := &stripeEvent{Event: &order.Event{Type: kind.related}, kind: kind.kind, created: integerValue(at), version: stripeSampleVersion}
	e.readObject(doc)
	if !e.broken() {
		e.Payment, e.Strength, e.Reference = distinct(kind.kind.ids(e)), kind.kind.strength, e.reference()
		e.Renewal = e.renewal(s)
	}
	if s.Reference != "" {
		e.Reference = e.referenceAt(s.Reference, doc)
	}
	if !e.broken() {
		e.ownAmount()
	}
	return e
}

// referenceAt is what a pointer into an event finds in the object itself.
func (e *stripeEvent) referenceAt(pointer string, doc value) string {
	inside, ok := strings.CutPrefix(pointer, "/data/object/")
	if !ok {
		return ""
	}
	ref, err := doc.at("/" + inside)
	if err != nil {
		e.fail("%v", err)
	}
	text, _ := ref.name()
	return text
}

// stripeOtherMode reports whether an object is of the other mode than the source. One without livemode (a refund, an
// invoice_payment before 2025) is of the mode of the key that read it.
func stripeOtherMode(s Source, doc value) (bool, error) {
	live, err := doc.members([]string{"livemode"})
	if err != nil {
		return false, parseError("duplicate_key", "%v", err)
	}
	v := live.get("livemode")
	return !v.absent() && (s.Mode == Live && !v.isTrue() || s.Mode != Live && !v.isFalse()), nil
}

// intentNow reads a PaymentIntent by its status.
func (e *stripeEvent) intentNow() {
	status, ok := e.o.get("status").text()
	if !ok {
		e.fail("status is missing or no plain text")
		return
	}
	switch status {
	case "processing":
		stripePhase(order.StatusProcessing)(e)
	case "requires_payment_method":
		if !e.o.get("last_payment_error").absent() {
			stripePhase(order.StatusFailed)(e)
		}
	case "canceled":
		stripePhase(order.StatusCanceled)(e)
	case "requires_capture":
		e.authorized()
	}
	if got := e.money("amount_received"); got.Minor > 0 {
		e.add(order.Fact{Kind: order.KindCaptured}, got)
	}
}

// chargeNow reads a charge by its status.
func (e *stripeEvent) chargeNow() {
	switch e.o.get("status").Str {
	case "failed":
		e.denied()
	case "pending":
		stripePhase(order.StatusProcessing)(e)
	default:
		e.charge()
	}
}

// sessionNow reads a Checkout session. That a delayed method failed, the session
// itself does not tell; its PaymentIntent does.
func (e *stripeEvent) sessionNow() {
	if e.o.get("status").Str == "expired" {
		stripePhase(order.StatusExpired)(e)
	}
	e.session()
}

// invoicePaymentNow reads what a payment gave to an invoice, once it has.
func (e *stripeEvent) invoicePaymentNow() {
	if e.o.get("status").Str == "paid" {
		e.invoice()
	}
}

// stripeAnswer makes the object that the event of the type carries.
func stripeAnswer(r SampleRequest) (Object, []byte, error) {
	t, ok := stripeTypeOf[r.Type]
	if !ok {
		return Object{}, nil, unknownSample("stripe", r.Type, stripeNames())
	}
	s, err := newStripeSample(r.withDefaults())
	if err != nil {
		return Object{}, nil, err
	}
	o := s.object(t)
	o["object"] = t.kind.object
	id, _ := o["id"].(string)
	body, err := render(o, r.Set, same)
	return Object{strings.ReplaceAll(t.kind.object, ".", "_"), id}, body, err
}
