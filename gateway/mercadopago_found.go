package gateway

import (
	"bytes"
	"net/http"
	"slices"

	"github.com/paidonce/paidonce/order"
)

// lookMercado asks for the payment's refunds, also those under way, or how the payment stands.
// https://www.mercadopago.com.br/developers/en/reference/chargebacks/_payments_id_refunds/get
func lookMercado(_ Source, m order.Movement) (Call, error) {
	id, err := mercadoPaid(m)
	if err != nil {
		return Call{}, err
	}
	c := Call{Path: "/v1/payments/" + id, Header: http.Header{"Accept": {"application/json"}}}
	if m.Kind == order.MovementRefund {
		c.Path += "/refunds"
		c.Header.Set(mercadoRender, "true")
	}
	return c, nil
}

func foundMercado(s Source, m order.Movement, r Reply) Verdict {
	if v, ok := statusVerdict(r); ok {
		return v
	}
	id, err := mercadoPaid(m)
	switch {
	case err != nil || r.Status != http.StatusOK:
		return unsure(r, "does not show what it was asked about")
	case m.Kind == order.MovementRefund:
		return mercadoRefundFound(m, id, r)
	}
	return mercadoStands(s, m, id, r)
}

// mercadoRefundFound: a refund of ours has our id in its metadata. It is absent if there is none that could be ours: of its amount,
// not rejected, and without the id of another movement.
func mercadoRefundFound(m order.Movement, id string, r Reply) Verdict {
	list, ok := mercadoList(r.Body)
	if !ok || len(list) > maxRefunds {
		return unsure(r, "the refunds that it shows cannot be read")
	}
	var ours []*mercadoRefundNow
	open := false
	for _, v := range list {
		made := mercadoMade(v, m, id)
		switch {
		case made.broken() || made.of != id:
			return unsure(r, "a refund that it shows cannot be read, or is of another payment")
		case made.marked == m.ID:
			ours = append(ours, made)
		case made.marked == "" && made.ours(m, id, true) && made.status != order.StatusFailed:
			open = true
		}
	}
	switch {
	case len(ours) > 1:
		return unsure(r, "several refunds have the movement's id")
	case len(ours) == 1 && ours[0].ours(m, id, false):
		return ours[0].verdict()
	case len(ours) == 1:
		return unsure(r, "the refund with the movement's id is another than was asked for")
	case open:
		return unsure(r, "there is a refund of that amount that does not say whose it is")
	}
	return absent("the payment has no such refund")
}

// mercadoList reads an answer that is an array; ok is false if it is none.
func mercadoList(body []byte) (list []value, ok bool) {
	body = bytes.TrimSpace(body)
	doc, fault := parseJSON(slices.Concat([]byte(`{"list":`), body, []byte("}")))
	if fault != nil {
		return nil, false
	}
	top, err := doc.members([]string{"list"})
	if err != nil || !top.get("list").IsArray() || top.get("list").Raw != string(body) {
		return nil, false
	}
	return top.get("list").elements(maxRefunds + 1), true
}

// mercadoStands is what the payment itself says of a capture or a void. It can be captured once and canceled once, so that where it
// stands as was asked for, that is done, whoever did it; and where it stands otherwise for good, or as before, it is not.
func mercadoStands(s Source, m order.Movement, id string, r Reply) Verdict {
	events, err := parseMercado(s, Object{"payment", id}, Answer{Body: r.Body, Started: r.Started})
	if err != nil || len(events) != 1 || events[0].Broken != "" || events[0].Ignored != "" {
		return unsure(r, "the payment in the answer cannot be read")
	}
	state, of := events[0].Type, mercadoOwn(events[0])
	v := Verdict{Ruling: Absent, Events: events, Detail: "it is " + state}
	captured := slices.Contains([]string{"payment.approved", "payment.refunded", "payment.in_mediation", "payment.charged_back"}, state)
	switch {
	case state == "payment.pending" || state == "payment.in_process":
		v.Ruling = Unsure
	case m.Kind == order.MovementVoid && state == "payment.cancelled",
		m.Kind == order.MovementCapture && captured && of == m.Amount:
		v.Ruling, v.Detail = Done, ""
	case m.Kind == order.MovementCapture && captured:
		v.Detail += ", of another amount"
	}
	return v
}

// mercadoOwn is the payment's amount, also where it must not count.
func mercadoOwn(ev order.Event) order.Amount {
	if ev.Own != nil {
		return *ev.Own
	}
	for _, f := range ev.Facts {
		if f.Kind == order.KindCaptured {
			return order.Amount{Minor: f.Amount, Currency: f.Currency}
		}
	}
	return order.Amount{}
}
