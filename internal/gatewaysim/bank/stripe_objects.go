package bank

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const stripeVersion = "2025-03-31.basil"

// stripeReach is how far back the list of events goes: https://docs.stripe.com/api/events
const stripeReach = 30 * 24 * time.Hour

func stripeMinor(p *payment, minor int64) int64 {
	return theirs(stripeExponents, order.Amount{Minor: minor, Currency: p.Amount.Currency})
}

func texts(m map[string]string) fields {
	all := fields{}
	for k, v := range m {
		all[k] = v
	}
	return all
}

func (a *account) stripeIntent(p *payment) fields {
	o := fields{
		"id": p.id, "object": "payment_intent", "amount": stripeMinor(p, p.Amount.Minor), "amount_capturable": 0,
		"amount_received": stripeMinor(p, p.captured()), "canceled_at": nil, "cancellation_reason": nil, "capture_method": "automatic",
		"created": p.created.Unix(), "currency": strings.ToLower(p.Amount.Currency), "description": nil, "invoice": nil,
		"latest_charge": p.charge, "livemode": a.src.Mode == gateway.Live, "metadata": texts(p.metadata), "payment_method_types": []string{"card"},
		"status": "succeeded",
	}
	if !p.Captured {
		o["capture_method"] = "manual"
	}
	left, err := p.capturable()
	switch {
	case p.voided:
		void := p.moves[len(p.moves)-1]
		o["status"], o["canceled_at"], o["cancellation_reason"] = "canceled", void.At.Unix(), or(void.reason)
	case err == nil:
		o["status"], o["amount_capturable"] = "requires_capture", stripeMinor(p, left)
	}
	return o
}

func (a *account) stripeCharge(p *payment) fields {
	refunded, captured := p.refunded(nil), p.captured()
	o := fields{
		"id": p.charge, "object": "charge", "amount": stripeMinor(p, p.Amount.Minor), "amount_captured": stripeMinor(p, captured),
		"amount_refunded": stripeMinor(p, refunded), "captured": captured > 0, "created": p.created.Unix(),
		"currency": strings.ToLower(p.Amount.Currency), "description": nil, "disputed": false, "invoice": nil,
		"livemode": a.src.Mode == gateway.Live, "metadata": texts(p.metadata), "paid": true, "payment_intent": or(p.id),
		"payment_method_details": fields{"type": "card"}, "refunded": captured > 0 && refunded == captured, "status": "succeeded",
	}
	if p.ChargeOnly {
		o["payment_intent"] = nil
	}
	return o
}

var stripeStatuses = map[order.Status]string{order.StatusOK: "succeeded", order.StatusPending: "pending", order.StatusFailed: "failed"}

func stripeRefundObject(p *payment, m *move) fields {
	o := fields{
		"id": m.Ref, "object": "refund", "amount": stripeMinor(p, m.Amount.Minor), "balance_transaction": nil, "charge": p.charge,
		"created": m.At.Unix(), "currency": strings.ToLower(p.Amount.Currency), "metadata": texts(m.metadata), "payment_intent": or(p.id),
		"reason": or(m.reason), "receipt_number": nil, "status": stripeStatuses[m.Status],
	}
	if p.ChargeOnly {
		o["payment_intent"] = nil
	}
	if m.Status == order.StatusFailed {
		o["failure_reason"] = "expired_or_canceled_card"
	}
	return o
}

// stripeTell enters an event about the payment, or about a refund of it. A webhook and the list differ in pending_webhooks.
func (a *account) stripeTell(typ string, p *payment, m *move) {
	var o fields
	switch {
	case strings.HasPrefix(typ, "payment_intent."):
		o = a.stripeIntent(p)
	case strings.HasPrefix(typ, "refund."), typ == "charge.refund.updated":
		o = stripeRefundObject(p, m)
	default:
		o = a.stripeCharge(p)
	}
	a.emit(p, typ, func(id string, at time.Time) (body, listed []byte) {
		e := fields{
			"id": "evt_" + id, "object": "event", "api_version": stripeVersion, "created": at.Unix(), "data": fields{"object": o},
			"livemode": a.src.Mode == gateway.Live, "pending_webhooks": 1, "request": fields{"id": nil, "idempotency_key": nil}, "type": typ,
		}
		if a.src.StripeAccount != "" {
			e["account"] = a.src.StripeAccount
		}
		body = encode(e)
		e["pending_webhooks"] = 0
		return body, encode(e)
	})
}

func stripeShow(c *call, id string, _ url.Values) reply {
	if strings.HasPrefix(id, "ch_") {
		return answer(http.StatusOK, c.a.stripeCharge(c.op.about))
	}
	return answer(http.StatusOK, c.a.stripeIntent(c.op.about))
}

func stripeShowRefund(c *call, id string, _ url.Values) reply {
	return answer(http.StatusOK, stripeRefundObject(c.op.about, c.op.about.find(order.MovementRefund, id)))
}

// stripeList answers a list of what the ids name, newest first, in pages: https://docs.stripe.com/api/pagination
func stripeList(path string, params url.Values, ids []string, show func(i int) any) reply {
	limit := 10
	if params.Has("limit") {
		n, err := strconv.Atoi(params.Get("limit"))
		if err != nil || n < 1 || n > 100 {
			return *stripeInvalid("parameter_invalid_integer", "limit", "This value must be between 1 and 100.")
		}
		limit = n
	}
	from, until := 0, len(ids)
	for _, end := range []string{"starting_after", "ending_before"} {
		at := slices.Index(ids, params.Get(end))
		switch {
		case !params.Has(end):
		case at < 0:
			return *stripeInvalid("resource_missing", end, "No such object: '%s'", params.Get(end))
		case end == "starting_after":
			from = at + 1
		default:
			until = at
		}
	}
	more := until-from > limit
	if more && params.Has("ending_before") {
		from = until - limit
	}
	data := []any{}
	for i := from; i < min(until, from+limit); i++ {
		data = append(data, show(i))
	}
	return answer(http.StatusOK, fields{"object": "list", "url": path, "has_more": more, "data": data})
}

func stripeListRefunds(c *call, _ string, params url.Values) reply {
	type one struct {
		p *payment
		m *move
	}
	var all []one
	for _, p := range c.a.payments {
		if (params.Has("payment_intent") || params.Has("charge")) && p != c.op.about {
			continue
		}
		for _, m := range p.moves {
			if m.Kind == order.MovementRefund {
				all = append(all, one{p, m})
			}
		}
	}
	slices.Reverse(all)
	slices.SortStableFunc(all, func(x, y one) int { return y.m.At.Compare(x.m.At) })
	ids := make([]string, len(all))
	for i, x := range all {
		ids[i] = x.m.Ref
	}
	return stripeList("/v1/refunds", params, ids, func(i int) any { return stripeRefundObject(all[i].p, all[i].m) })
}

// listed are the events that a list shows, newest first: not older than the reach, and not younger than the lag.
func (a *account) listed(reach time.Duration, fits func(*event) bool) []*event {
	now := a.bank.now()
	var all []*event
	for _, e := range a.events {
		if age := now.Sub(e.at); age <= reach && age >= a.bank.opts.ListLag && fits(e) {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(x, y *event) int { return cmp.Or(y.at.Compare(x.at), cmp.Compare(y.serial, x.serial)) })
	return all
}

func stripeListEvents(c *call, _ string, params url.Values) reply {
	bounds := map[string]int64{}
	for _, name := range []string{"gt", "gte", "lt", "lte"} {
		if text := params.Get("created[" + name + "]"); text != "" {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return *stripeInvalid("parameter_invalid_integer", "created["+name+"]", "Invalid integer: %s", text)
			}
			bounds[name] = n
		}
	}
	within := func(name string, holds func(at, bound int64) bool, at int64) bool {
		bound, there := bounds[name]
		return !there || holds(at, bound)
	}
	types := params["types[]"]
	if params.Has("type") {
		types = append(types, params.Get("type"))
	}
	all := c.a.listed(stripeReach, func(e *event) bool {
		at := e.at.Unix()
		return within("gt", func(at, b int64) bool { return at > b }, at) && within("gte", func(at, b int64) bool { return at >= b }, at) &&
			within("lt", func(at, b int64) bool { return at < b }, at) && within("lte", func(at, b int64) bool { return at <= b }, at) &&
			(len(types) == 0 || slices.Contains(types, e.typ))
	})
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = "evt_" + e.id
	}
	return stripeList("/v1/events", params, ids, func(i int) any { return raw(all[i].listed) })
}

func stripeShowEvent(c *call, id string, _ url.Values) reply {
	for _, e := range c.a.events {
		if "evt_"+e.id == id {
			return reply{status: http.StatusOK, body: e.listed}
		}
	}
	return *stripeMissing("event", id)
}
