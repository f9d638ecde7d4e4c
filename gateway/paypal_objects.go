package gateway

import (
	"net/http"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// paypalFetch asks how a payment stands. No delivery names an object to ask about, since PayPal's tell everything: it serves those
// who ask by themselves ([Fetch].About). What is answered is read by the mapping of the webhooks, and is told under the types of
// those that would say the same.
// https://developer.paypal.com/docs/api/orders/v2/#orders_get, https://developer.paypal.com/docs/api/payments/v2/
var paypalFetch = Fetch{
	Live: paypalLive, Test: paypalSandbox,
	About: paypalAbout, Call: paypalAsk, Parse: parsePayPalObject, Sample: samplePayPalObject,
}

// The kinds of objects.
const (
	paypalOrder         = "order"
	paypalAuthorization = "authorization"
	paypalCaptured      = "capture"
	paypalRefunded      = "refund" // stands in an order
)

var paypalPaths = map[string]string{
	paypalOrder: "/v2/checkout/orders/", paypalAuthorization: "/v2/payments/authorizations/", paypalCaptured: "/v2/payments/captures/",
}

// paypalAbout asks about the order, which lists all that became of the payment; where none is known, about what its events say
// that it began as.
func paypalAbout(s Source, ids []string) []Object {
	if paypalReady(s) != nil {
		return nil
	}
	var orders, roots []string
	for _, id := range ids {
		p, ok := paypalPlaceOf(id)
		switch {
		case !ok:
		case p.order != "":
			orders = append(orders, Object{paypalOrder, p.order}.String())
		case p.kind == paypalAuthorizations:
			roots = append(roots, Object{paypalAuthorization, p.root}.String())
		default:
			roots = append(roots, Object{paypalCaptured, p.root}.String())
		}
	}
	if len(orders) > 0 {
		roots = orders
	}
	var objects []Object
	for _, text := range distinct(roots) {
		o, _ := ParseObject(text)
		objects = append(objects, o)
	}
	return objects
}

func paypalAsk(s Source, o Object) (Call, error) {
	if paypalPaths[o.Kind] == "" || !paypalID.MatchString(o.ID) {
		return Call{}, errNoObject(o)
	}
	if err := paypalReady(s); err != nil {
		return Call{}, err
	}
	c := paypalGet(o)
	c.Grant = paypalGrant(s)
	return c, nil
}

// paypalGet is the call about an object, without credentials.
func paypalGet(o Object) Call {
	return Call{Path: paypalPaths[o.Kind] + escaped(o), Header: http.Header{"Accept": {"application/json"}}}
}

func parsePayPalObject(s Source, o Object, a Answer) ([]order.Event, error) {
	found, whole, err := paypalFind(s, o, a.Body)
	if err != nil {
		return nil, err
	}
	if whole.broken() || len(found) == 0 {
		return whole.done(), nil
	}
	return paypalEvents(found), nil
}

// paypalResource is one authorisation, capture or refund as PayPal's API answered it.
type paypalResource struct {
	*paypalEvent
	kind, status string
}

func paypalEvents(found []*paypalResource) []order.Event {
	var events []order.Event
	for _, r := range found {
		events = append(events, r.done()...)
	}
	return events
}

// paypalFind reads what the API answered about an object: every authorisation, capture and refund in it. Where there is none, or
// they cannot be told, the event that says so is whole.
func paypalFind(s Source, o Object, body []byte) (found []*paypalResource, whole *draft, err error) {
	doc, err := readAnswer(o, body)
	if err != nil {
		return nil, nil, err
	}
	whole = &draft{order.Event{Type: unreadableType}}
	switch o.Kind {
	case paypalOrder:
		found = paypalInOrder(s, o.ID, doc, whole)
		for i, r := range found {
			if paypalOf(found[:i], r.kind, r.id()) != nil {
				whole.fail("a %s stands in the order twice", r.kind)
			}
		}
		return found, whole, nil
	case paypalAuthorization, paypalCaptured:
		return []*paypalResource{paypalNow(s, o.Kind, doc, "", "")}, whole, nil
	}
	return nil, nil, errNoObject(o)
}

// paypalInOrder reads what stands in an order. A capture that does not say which authorisation it took from took from the only
// one that there is.
func paypalInOrder(s Source, id string, doc value, whole *draft) (found []*paypalResource) {
	o := whole.members(doc, "the order", "status", "purchase_units")
	if status, ok := o.get("status").kind(); ok {
		whole.Type = "CHECKOUT.ORDER." + status
	}
	for _, unit := range whole.list(o.get("purchase_units"), "purchase_units", maxPayments) {
		u := whole.members(unit, "a purchase unit", "payments")
		p := whole.optional(u.get("payments"), "payments", "authorizations", "captures", "refunds")
		authorizations := whole.list(p.get("authorizations"), "authorizations", maxPayments)
		from := ""
		for _, v := range authorizations {
			r := paypalNow(s, paypalAuthorization, v, id, "")
			found = append(found, r)
			if len(authorizations) == 1 {
				from = r.id()
			}
		}
		for _, v := range whole.list(p.get("captures"), "captures", maxPayments) {
			found = append(found, paypalNow(s, paypalCaptured, v, id, from))
		}
		for _, v := range whole.list(p.get("refunds"), "refunds", maxRefunds) {
			found = append(found, paypalNow(s, paypalRefunded, v, id, ""))
		}
	}
	return found
}

// paypalNowTypes are the types of the webhooks that say what a status says.
// https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2: authorization_status, capture_status, refund_status)
var paypalNowTypes = map[string]map[string]string{
	paypalAuthorization: {
		"CREATED": "PAYMENT.AUTHORIZATION.CREATED", "PENDING": "PAYMENT.AUTHORIZATION.CREATED", "DENIED": "PAYMENT.AUTHORIZATION.CREATED",
		"CAPTURED": "PAYMENT.AUTHORIZATION.CREATED", "PARTIALLY_CAPTURED": "PAYMENT.AUTHORIZATION.CREATED",
		"VOIDED": "PAYMENT.AUTHORIZATION.VOIDED",
	},
	paypalCaptured: {
		"COMPLETED": "PAYMENT.CAPTURE.COMPLETED", "PARTIALLY_REFUNDED": "PAYMENT.CAPTURE.COMPLETED", "REFUNDED": "PAYMENT.CAPTURE.COMPLETED",
		"PENDING": "PAYMENT.CAPTURE.PENDING", "DECLINED": "PAYMENT.CAPTURE.DECLINED", "FAILED": "PAYMENT.CAPTURE.DECLINED",
	},
	paypalRefunded: {
		"COMPLETED": "PAYMENT.CAPTURE.REFUNDED", "PENDING": "PAYMENT.REFUND.PENDING",
		"FAILED": "PAYMENT.REFUND.FAILED", "CANCELLED": "PAYMENT.REFUND.FAILED",
	},
}

// paypalNow reads an authorisation, capture or refund as it is now. inOrder and from are what is known about it besides.
func paypalNow(s Source, kind string, doc value, inOrder, from string) *paypalResource {
	e := &paypalEvent{order: inOrder, from: from}
	e.Type = unreadableType
	e.o = e.members(doc, "the "+kind, paypalFields...)
	e.At = rfc3339(e.first("update_time", "create_time"))
	status, ok := e.o.get("status").kind()
	if !ok {
		e.fail("status is missing or no plain text")
	}
	r := &paypalResource{e, kind, strings.ToUpper(status)}
	t := paypalTypeOf[paypalNowTypes[kind][r.status]]
	switch {
	case e.broken():
	case t == nil:
		e.Type, e.Ignored = "PAYMENT."+strings.ToUpper(kind)+"."+status, UnknownType
	default:
		e.Type = t.name
		t.facts(e)
		if kind == paypalCaptured && r.status == "REFUNDED" { // by at least what was captured, however that came about
			e.add(order.Fact{Kind: order.KindRefunded}, e.amount(e.o.get("amount"), "resource.amount", false))
		}
		if s.Reference != "" {
			e.Reference = e.referenceAt(s.Reference, doc)
		}
	}
	return r
}

// referenceAt is what a pointer into an event finds in the resource itself.
func (e *paypalEvent) referenceAt(pointer string, doc value) string {
	inside, ok := strings.CutPrefix(pointer, "/resource/")
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

// samplePayPalObject makes what the API answers about what the event of the type is about: a refund stands in its order.
func samplePayPalObject(r SampleRequest) (Object, []byte, error) {
	s, err := newPayPalSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	kind, resource := s.resource()
	o := Object{kind, s.payment}
	switch {
	case kind == paypalRefunded && strings.HasPrefix(r.Type, "PAYMENT.SALE."), kind != paypalRefunded && paypalPaths[kind] == "":
		return Object{}, nil, unknownSample("paypal", r.Type, paypalNames())
	case kind == paypalRefunded:
		o = Object{paypalOrder, s.order()}
		captured := s.payable("COMPLETED", paypalCaptured)
		resource = fields{"id": o.ID, "status": "COMPLETED", "intent": "CAPTURE", "purchase_units": []any{fields{
			"reference_id": "default", "payments": fields{"captures": []any{captured}, "refunds": []any{resource}},
		}}}
	case resource["status"] == "DENIED": // a word of webhooks
		resource["status"] = "DECLINED"
	}
	body, err := render(resource, r.Set, same)
	return o, body, err
}
