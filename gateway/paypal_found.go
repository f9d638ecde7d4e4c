package gateway

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/paidonce/paidonce/order"
)

// paypalAsked is what PayPal is asked about to learn what became of a movement: of a void the authorisation, whose status says it;
// of a capture and of a refund the order, which lists them all, or where no order is known the authorisation or the capture itself.
func paypalAsked(m order.Movement) (Object, error) {
	root, err := paypalRootOf(m)
	if err != nil {
		return Object{}, err
	}
	if id := paypalOrderOf(m.Payment); id != "" && m.Kind != order.MovementVoid {
		return Object{paypalOrder, id}, nil
	}
	if m.Kind == order.MovementRefund {
		return Object{paypalCaptured, root}, nil
	}
	return Object{paypalAuthorization, root}, nil
}

func lookPayPal(_ Source, m order.Movement) (Call, error) {
	o, err := paypalAsked(m)
	if err != nil {
		return Call{}, err
	}
	return paypalGet(o), nil
}

// foundPayPal reads what it was asked. What is proven, and by what, stands beside each kind of movement.
func foundPayPal(s Source, m order.Movement, r Reply) Verdict {
	if v, ok := statusVerdict(r); ok {
		return v
	}
	o, err := paypalAsked(m)
	if r.Status != http.StatusOK || err != nil {
		return unsure(r, "does not show what it was asked about")
	}
	found, whole, err := paypalFind(s, o, r.Body)
	if err != nil || whole.broken() {
		return unsure(r, "what it shows of the "+o.Kind+" cannot be read")
	}
	for _, one := range found {
		if one.broken() || one.Ignored != "" {
			return unsure(r, "a "+one.kind+" in what it shows cannot be read")
		}
	}
	root, _ := paypalRootOf(m)
	var v Verdict
	switch m.Kind {
	case order.MovementVoid:
		v = paypalVoidFound(m, root, found, r)
	default:
		v = paypalMoneyFound(m, root, o, found, r)
	}
	v.Events = nil
	for _, ev := range paypalEvents(found) { // an order may have payments of others
		if slices.ContainsFunc(ev.Payment, func(id string) bool { return slices.Contains(m.Payment, id) }) {
			v.Events = append(v.Events, ev)
		}
	}
	return v
}

// paypalOf finds a resource by its id.
func paypalOf(found []*paypalResource, kind, id string) *paypalResource {
	for _, r := range found {
		if r.kind == kind && r.id() == id {
			return r
		}
	}
	return nil
}

// paypalMoneyFound: a capture or refund of ours has our mark. It is absent if its root says that there can be none, or if the order
// has the root, and every capture (refund) of it of that amount with the mark or the invoice_id (custom_id) of somebody else. One
// without any could be ours, should PayPal leave them out. A root alone does not list what was made of it.
func paypalMoneyFound(m order.Movement, root string, o Object, found []*paypalResource, reply Reply) Verdict {
	kind, rootKind := paypalCaptured, paypalAuthorization
	if m.Kind == order.MovementRefund {
		kind, rootKind = paypalRefunded, paypalCaptured
	}
	from := paypalOf(found, rootKind, root)
	var ours []*paypalResource
	open := false
	for _, r := range found {
		switch {
		case r.kind != kind:
		case r.movement() == m.ID:
			ours = append(ours, r)
		case r.o.get(r.markField()).absent() && r.moved() == m.Amount && (r.root() == root || r.root() == ""):
			open = true
		}
	}
	switch {
	case len(ours) > 1:
		return unsure(reply, fmt.Sprintf("there are %d with the movement's id", len(ours)))
	case len(ours) == 1 && ours[0].answers(m, root):
		return ours[0].verdict(m, reply)
	case len(ours) == 1:
		return unsure(reply, "the "+kind+" with the movement's id is another than was asked for")
	case from == nil:
		return unsure(reply, "the "+o.Kind+" does not have the "+rootKind)
	case from.barren():
		return absent("by its status nothing was made of the " + rootKind)
	case o.Kind != paypalOrder:
		return unsure(reply, "the "+rootKind+" does not tell what was made of it, nor has an event said of which order it is")
	case open:
		return unsure(reply, "there is a "+kind+" of that amount that does not say whose it is")
	}
	return absent("the order has no such " + kind)
}

// barren reports whether an authorisation says that nothing was captured of it (CREATED: "No captured payments have been made"), or
// a capture that it brought no money which could be refunded.
func (r *paypalResource) barren() bool {
	switch r.status {
	case "CREATED", "DENIED":
		return r.kind == paypalAuthorization
	case "DECLINED", "FAILED":
		return r.kind == paypalCaptured
	case "PENDING":
		return true
	}
	return false
}

// paypalVoidFound: what is voided is let go, whoever did it. What is not, was not voided; only of an authorisation that was
// captured in part the status does not tell whether its rest was.
func paypalVoidFound(m order.Movement, root string, found []*paypalResource, r Reply) Verdict {
	held := paypalOf(found, paypalAuthorization, root)
	switch {
	case held == nil:
		return unsure(r, "the authorization is not there")
	case held.status == "VOIDED":
		return held.verdict(m, r)
	case held.status == "PARTIALLY_CAPTURED":
		return unsure(r, "the authorization was captured in part")
	}
	return absent("the authorization is not voided")
}
