package gateway

import (
	"net/http"
	"net/url"

	"github.com/paidonce/paidonce/order"
)

// stripeLook asks for the refunds of the payment, or for the payment itself. Lists of Stripe are consistent, unlike its search:
// https://docs.stripe.com/search#data-freshness
func stripeLook(s Source, m order.Movement) (Call, error) {
	p, err := stripePaymentOf(m)
	if err != nil {
		return Call{}, err
	}
	call := Call{Header: stripeHeader(s), Path: p.path()}
	if m.Kind == order.MovementRefund {
		call.Path = "/v1/refunds?" + url.Values{p.name: {p.id}, "limit": {"100"}}.Encode()
	} else if !p.intent() {
		call.Header.Set("Stripe-Version", stripeSampleVersion)
	}
	return call, nil
}

// stripeFound reads what became of a movement. What proves that it was not done:
//
//   - a refund: the list of the payment's refunds is whole (has_more is false), and none of them has our id in its metadata, which
//     went with the request that would have made it;
//   - a capture: the PaymentIntent still requires its capture (captured of the charge is false): one of ours would have been the
//     only one, and the last;
//   - a void: the PaymentIntent is not canceled, and can still be. Once canceled it stays so.
//
// It is declined where the payment has gone another way, so that it can never be done: canceled, captured by another in another
// amount. A capture of the very amount that does not carry our id is neither proven to be ours nor another's: a person must look.
//
// What is only on its way, or as it was, is told without facts: their Seq would be of our clock, and could outdo what Stripe's
// own events tell a moment later.
func stripeFound(s Source, m order.Movement, r Reply) Verdict {
	if v, ok := statusVerdict(r); ok {
		return v
	}
	p, err := stripePaymentOf(m)
	if err != nil {
		return unsure(r, "the payment cannot be told any more")
	}
	if r.Status == http.StatusConflict {
		return laterVerdict(r, "it answered %d", r.Status)
	}
	if r.Status/100 != 2 {
		return unsure(r, "that tells nothing of what was asked about")
	}
	doc, fault := parseJSON(r.Body)
	if fault != nil {
		return unsure(r, "what is no answer of Stripe's")
	}
	if m.Kind == order.MovementRefund {
		return stripeRefundFound(s, m, p, doc, r)
	}
	o, what := stripePaymentSeen(s, p, doc, r)
	if what != "" {
		return unsure(r, what)
	}
	if m.Kind == order.MovementVoid {
		return o.voidFound(r)
	}
	if !p.intent() {
		return o.chargeFound(m, r)
	}
	return o.captureFound(m, r)
}

func (o *stripeSeen) voidFound(r Reply) Verdict {
	switch o.status {
	case "canceled":
		return o.done()
	case "requires_capture", "requires_payment_method", "requires_confirmation", "requires_action":
		return absent("the PaymentIntent is not canceled")
	case "succeeded":
		return o.declined("the PaymentIntent was captured")
	case "processing":
		return laterVerdict(r, "the PaymentIntent is under way")
	}
	return unsure(r, "the PaymentIntent is in a state that is not known")
}

func (o *stripeSeen) captureFound(m order.Movement, r Reply) Verdict {
	ours, marked := o.mark == m.ID, o.mark != ""
	switch nothing := o.captured.Minor == 0; o.status {
	case "requires_capture":
		return absent("the PaymentIntent still requires its capture")
	case "succeeded":
		switch {
		case ours && o.captured == m.Amount:
			return o.done()
		case !ours && (marked || o.captured != m.Amount):
			return o.declined("the PaymentIntent was captured by another")
		}
		return unsure(r, "the PaymentIntent was captured, by whom cannot be told")
	case "canceled", "requires_payment_method", "requires_confirmation", "requires_action":
		if nothing {
			return o.declined("nothing was captured, and nothing is left to capture")
		}
	case "processing":
		if ours {
			return Verdict{Ruling: Done}
		}
		return laterVerdict(r, "the PaymentIntent is under way")
	}
	return unsure(r, "the PaymentIntent is in a state that is not known")
}

func (o *stripeSeen) chargeFound(m order.Movement, r Reply) Verdict {
	switch {
	case o.status == "uncaptured":
		return absent("the charge is not captured")
	case o.status == "succeeded" && o.captured != m.Amount:
		return o.declined("the charge was captured by another")
	}
	return unsure(r, "by whom the charge was captured cannot be told")
}

// stripeRefundFound looks for the movement's refund among those of the payment.
func stripeRefundFound(s Source, m order.Movement, p stripePayment, doc value, r Reply) Verdict {
	list, err := doc.members([]string{"object", "data", "has_more"})
	if err != nil || list.get("object").Str != "list" || !list.get("data").IsArray() ||
		!list.get("has_more").isTrue() && !list.get("has_more").isFalse() {
		return unsure(r, "what is no list of Stripe's")
	}
	var found []Verdict
	for _, item := range list.get("data").elements(len(r.Body)) {
		o, what := stripeSee(s, "refund", item, r)
		if what != "" || o.idOf(p.name) != p.id {
			return unsure(r, "a refund in the list cannot be read, or is of another payment")
		}
		if o.mark == m.ID {
			v := o.refunded(m, p, item, r)
			v.Events = o.told()
			found = append(found, v)
		}
	}
	switch len(found) {
	case 1:
		return found[0]
	case 0:
		if list.get("has_more").isTrue() {
			return unsure(r, "there are more refunds than the list shows")
		}
		return absent("no refund of the payment carries our id")
	}
	v := unsure(r, "more than one refund carries our id")
	for _, one := range found {
		v.Events = append(v.Events, one.Events...)
	}
	return v
}
