package gateway

import (
	"github.com/paidonce/paidonce/order"
)

// stripeSeen is an object that Stripe answered a call with: a refund, or the payment itself. It is read as the events of Stripe
// are, so that what both tell is one entry of the ledger: refunds by their id, captures as running totals.
type stripeSeen struct {
	*stripeEvent

	// Of payments: the status, which of a charge is "uncaptured", "succeeded" once captured, or its own; what was captured in all;
	// and our id of the movement that captured it, if it carries one.
	status   string
	captured order.Amount
	mark     string
}

// stripeSee reads an object that must be of a kind; what says why it is not, or is "".
func stripeSee(s Source, name string, doc value, r Reply) (o *stripeSeen, what string) {
	kind := stripeThinKinds[name]
	o = &stripeSeen{stripeEvent: stripeObject(s, kind, doc, stripeMoment(doc, r))}
	if !o.broken() && (o.o.get("object").Str != kind.kind.object || !kind.id.MatchString(o.id())) {
		o.fail("another object")
	}
	if !o.broken() {
		switch name {
		case "payment_intent":
			o.readIntent()
		case "charge":
			o.readCharge()
		default:
			kind.facts(o.stripeEvent)
		}
	}
	mark, err := stripeMarkOf(doc)
	if o.broken() || err != nil {
		return nil, "the answer is no " + kind.related
	}
	if other, err := stripeOtherMode(s, doc); other || err != nil {
		return nil, "the answer is of the other mode"
	}
	o.mark = mark
	return o, ""
}

// stripeMoment is when an object became what it is, by Stripe's clock where it says so: a PaymentIntent that was canceled. Else
// when the call began.
func stripeMoment(doc value, r Reply) int64 {
	if o, err := doc.members([]string{"canceled_at"}); err == nil {
		if at, ok := unixTime(o.get("canceled_at")); ok {
			return at.Unix()
		}
	}
	return r.Started.Unix()
}

// readIntent reads what is settled of a PaymentIntent. Phases that it goes through have no time of Stripe's in it, and are left
// to the events.
func (o *stripeSeen) readIntent() {
	o.status, _ = o.o.get("status").text()
	if o.captured = o.money("amount_received"); o.captured.Minor > 0 {
		o.received()
	}
	if o.status == "canceled" {
		stripePhase(order.StatusCanceled)(o.stripeEvent)
	}
}

func (o *stripeSeen) readCharge() {
	o.status, _ = o.o.get("status").text()
	switch {
	case o.status != "succeeded":
	case o.o.get("captured").isTrue():
		o.captured = o.money("amount_captured")
		o.charge()
	case o.o.get("captured").isFalse():
		o.status = "uncaptured"
	default:
		o.fail("captured is no boolean")
	}
}

// has reports whether so much was captured, or more.
func (o *stripeSeen) has(m order.Amount) bool {
	return o.captured.Currency == m.Currency && o.captured.Minor >= m.Minor
}

// told are the events of what the object says that the ledger can hold.
func (o *stripeSeen) told() []order.Event {
	if len(o.Facts) == 0 {
		return nil
	}
	return []order.Event{*o.Event}
}

func (o *stripeSeen) done() Verdict { return Verdict{Ruling: Done, Events: o.told()} }

// declined is what went another way: its facts are told all the same, where it was asked about.
func (o *stripeSeen) declined(detail string) Verdict {
	return Verdict{Ruling: Declined, Code: codeWord(o.status), Detail: detail, Events: o.told()}
}

// stripeMarkOf is our id of the movement that made an object, from its metadata; "" if it has none.
func stripeMarkOf(v value) (string, error) {
	o, err := v.members([]string{"metadata"})
	if err != nil || o.get("metadata").absent() {
		return "", err
	}
	marks, err := o.get("metadata").members([]string{stripeMark})
	if err != nil {
		return "", err
	}
	return marks.get(stripeMark).Str, nil
}
