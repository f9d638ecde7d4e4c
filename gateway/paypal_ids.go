package gateway

import (
	"regexp"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// PayPal's ids of orders, authorisations and captures look alike. So that they can be told apart later, when only the ids of a
// payment are at hand, a payment of version 2 is known under one more id, made here: where its root, the authorisation or else
// the capture, stands in the API, and in which order, if the payload tells:
//
//	orders/7OR22222DE000001S/authorizations/9AU11111TH000001S
//	captures/4TE57301CA000001S
//
// Such an id names one root. The order by itself is none, since an order may have several payments, of several merchants' orders.
const (
	paypalOrders         = "orders"
	paypalAuthorizations = "authorizations"
	paypalCaptures       = "captures"
)

// paypalID is what PayPal's ids look like.
// https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2, related_ids)
var paypalID = regexp.MustCompile(`^[0-9A-Z]{1,20}$`)

// paypalPlace is what a made id says.
type paypalPlace struct {
	order string // "": not told
	kind  string // of the root: paypalAuthorizations or paypalCaptures
	root  string
}

// id is the made id. It sorts after PayPal's own, which have no small letters, so that these keep naming the payment.
func (p paypalPlace) id() string {
	id := p.kind + "/" + p.root
	if p.order != "" {
		id = paypalOrders + "/" + p.order + "/" + id
	}
	return id
}

// paypalPlaceOf reads a made id.
func paypalPlaceOf(id string) (p paypalPlace, ok bool) {
	parts := strings.Split(id, "/")
	if len(parts) == 4 && parts[0] == paypalOrders {
		p.order, parts = parts[1], parts[2:]
	}
	if len(parts) != 2 || parts[0] != paypalAuthorizations && parts[0] != paypalCaptures {
		return paypalPlace{}, false
	}
	p.kind, p.root = parts[0], parts[1]
	return p, paypalID.MatchString(p.root) && (p.order == "" || paypalID.MatchString(p.order))
}

// known are the ids that a payment is known under by its root: the root's own, and the made one. What is of version 1 has no
// place in version 2 of the API.
func (e *paypalEvent) known(kind, root string) []string {
	if !paypalID.MatchString(root) || !e.o.get("state").absent() || strings.HasPrefix(e.Type, "PAYMENT.SALE.") {
		return []string{root}
	}
	p := paypalPlace{kind: kind, root: root, order: e.related("order_id", "up", "/v2/checkout/orders/")}
	if p.order == "" {
		p.order = e.order
	}
	return []string{root, p.id()}
}

// authorization is the authorisation that a capture took from; "": it is of none, or does not say.
func (e *paypalEvent) authorization() string {
	if id := e.related("authorization_id", "up", "/v2/payments/authorizations/"); id != "" {
		return id
	}
	if id := e.link("authorization", "/v1/payments/authorization/"); id != "" {
		return id
	}
	return e.from
}

// related is the id of another object that the resource is related to: the one that supplementary_data has, else the one that
// a link leads to.
func (e *paypalEvent) related(field, rel, path string) string {
	more := e.within(e.o.get("supplementary_data"), "resource.supplementary_data", "related_ids")
	ids := e.within(more.get("related_ids"), "resource.supplementary_data.related_ids", "order_id", "authorization_id")
	if id := ids.get(field).Str; paypalID.MatchString(id) {
		return id
	}
	return e.link(rel, path)
}

// within is members of what is only read if it is an object: no money stands there.
func (e *paypalEvent) within(v value, where string, names ...string) object {
	if !v.IsObject() {
		v = value{}
	}
	return e.optional(v, where, names...)
}

// link is the id at the end of the link of that relation whose path begins so; "": there is none.
func (e *paypalEvent) link(rel, path string) string {
	for _, link := range e.o.get("links").elements(maxListed) {
		l := e.members(link, "resource.links", "rel", "href")
		if _, id, ok := strings.Cut(l.get("href").Str, path); ok && l.get("rel").Str == rel && paypalID.MatchString(id) {
			return id
		}
	}
	return ""
}

// paypalAuthorizationOf is the authorisation of a movement's payment: the root that is none of its captures.
func paypalAuthorizationOf(m order.Movement) (string, error) {
	var roots []string
	for _, id := range m.Payment {
		if p, ok := paypalPlaceOf(id); ok && p.kind == paypalAuthorizations {
			roots = append(roots, p.root)
		}
	}
	slices.Sort(roots)
	switch roots = slices.Compact(roots); len(roots) {
	case 1:
		return roots[0], nil
	case 0:
		return "", callErrorf("no event has said which id of the payment is an authorisation of version 2 of PayPal's API")
	default:
		return "", callErrorf("the payment has %d authorisations, and which of them is meant cannot be told", len(roots))
	}
}

// paypalOrderOf is the order that a payment belongs to; "": it was not told, or there are several.
func paypalOrderOf(ids []string) string {
	found := ""
	for _, id := range ids {
		p, ok := paypalPlaceOf(id)
		switch {
		case !ok || p.order == "" || p.order == found:
		case found == "":
			found = p.order
		default:
			return ""
		}
	}
	return found
}
