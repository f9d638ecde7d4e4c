package bank

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// paypalReach is how far back the list of webhook events goes: https://developer.paypal.com/api/rest/webhooks/events-dashboard
const paypalReach = 30 * 24 * time.Hour

func (a *account) paypalHost() string {
	if a.src.Mode == gateway.Live {
		return "https://api.paypal.com"
	}
	return "https://api.sandbox.paypal.com"
}

func (a *account) paypalLink(rel, method, path string) fields {
	return fields{"href": a.paypalHost() + path, "rel": rel, "method": method}
}

// paypalWhole are the currencies without decimals: https://developer.paypal.com/api/rest/reference/currency-codes/
var paypalWhole = []string{"HUF", "JPY", "TWD"}

func paypalMoney(minor int64, currency string) fields {
	value := major(minor, currency)
	if slices.Contains(paypalWhole, currency) {
		value, _, _ = strings.Cut(value, ".")
	}
	return fields{"currency_code": currency, "value": value}
}

// paypalObject has what authorizations, captures and refunds have in common.
func paypalObject(id, status, custom, invoice string, created, updated time.Time, amount fields) fields {
	o := fields{
		"id": id, "status": status, "amount": amount, "create_time": created.Format(time.RFC3339), "update_time": updated.Format(time.RFC3339),
	}
	if custom != "" {
		o["custom_id"] = custom
	}
	if invoice != "" {
		o["invoice_id"] = invoice
	}
	return o
}

func (p *payment) paypalRelated() fields {
	related := fields{"order_id": p.order}
	if p.auth != "" {
		related["authorization_id"] = p.auth
	}
	return fields{"related_ids": related}
}

func (a *account) paypalAuthorization(p *payment) fields {
	status := "CREATED"
	switch captured := p.captured(); {
	case p.voided:
		status = "VOIDED"
	case captured >= p.Amount.Minor || captured > 0 && p.closed:
		status = "CAPTURED"
	case captured > 0:
		status = "PARTIALLY_CAPTURED"
	}
	o := paypalObject(p.auth, status, p.Reference, "", p.created, p.updated, paypalMoney(p.Amount.Minor, p.Amount.Currency))
	at := "/v2/payments/authorizations/" + p.auth
	o["expiration_time"] = p.created.Add(29 * 24 * time.Hour).Format(time.RFC3339)
	o["supplementary_data"] = fields{"related_ids": fields{"order_id": p.order}}
	o["links"] = []any{
		a.paypalLink("self", "GET", at), a.paypalLink("capture", "POST", at+"/capture"), a.paypalLink("void", "POST", at+"/void"),
		a.paypalLink("up", "GET", "/v2/checkout/orders/"+p.order),
	}
	return o
}

func (a *account) paypalCaptureObject(p *payment, m *move) fields {
	status := "COMPLETED"
	switch refunded := p.refunded(m); {
	case refunded >= m.Amount.Minor:
		status = "REFUNDED"
	case refunded > 0:
		status = "PARTIALLY_REFUNDED"
	}
	o := paypalObject(m.Ref, status, m.custom, m.invoice, m.At, p.updated, paypalMoney(m.Amount.Minor, m.Amount.Currency))
	at, up := "/v2/payments/captures/"+m.Ref, "/v2/checkout/orders/"+p.order
	if p.auth != "" {
		up = "/v2/payments/authorizations/" + p.auth
	}
	o["final_capture"] = p.closed || p.auth == ""
	o["supplementary_data"] = p.paypalRelated()
	o["links"] = []any{a.paypalLink("self", "GET", at), a.paypalLink("refund", "POST", at+"/refund"), a.paypalLink("up", "GET", up)}
	return o
}

var paypalStatuses = map[order.Status]string{order.StatusOK: "COMPLETED", order.StatusPending: "PENDING", order.StatusFailed: "FAILED"}

func (a *account) paypalRefundObject(p *payment, m *move) fields {
	amount := paypalMoney(m.Amount.Minor, m.Amount.Currency)
	o := paypalObject(m.Ref, paypalStatuses[m.Status], m.custom, m.invoice, m.At, m.updated, amount)
	o["seller_payable_breakdown"] = fields{"gross_amount": amount, "net_amount": amount, "total_refunded_amount": paypalMoney(p.refunded(m.of), m.Amount.Currency)}
	if m.note != "" {
		o["note_to_payer"] = m.note
	}
	o["links"] = []any{a.paypalLink("self", "GET", "/v2/payments/refunds/"+m.Ref), a.paypalLink("up", "GET", "/v2/payments/captures/"+m.of.Ref)}
	return o
}

// paypalTell enters an event about the authorization, or about a capture or a refund.
func (a *account) paypalTell(typ string, p *payment, m *move) {
	kind, o := "authorization", fields(nil)
	switch {
	case m == nil:
		o = a.paypalAuthorization(p)
	case m.Kind == order.MovementCapture:
		kind, o = "capture", a.paypalCaptureObject(p, m)
	default:
		kind, o = "refund", a.paypalRefundObject(p, m)
	}
	a.emit(p, typ, func(id string, at time.Time) (body, listed []byte) {
		body = encode(fields{
			"id": "WH-" + id[:12] + "-" + id[12:], "event_version": "1.0", "create_time": at.Format("2006-01-02T15:04:05.000Z07:00"), "resource_type": kind,
			"resource_version": "2.0", "event_type": typ, "summary": "A payment: " + typ, "resource": o, "links": []any{},
		})
		return body, body
	})
}

func paypalShowAuthorization(c *call, id string) reply {
	if p := c.op.about; p != nil && p.auth == id {
		return answer(http.StatusOK, c.a.paypalAuthorization(p))
	}
	return paypalMissing()
}

func paypalShowCapture(c *call, id string) reply {
	if p := c.op.about; p != nil {
		if m := p.find(order.MovementCapture, id); m != nil {
			return answer(http.StatusOK, c.a.paypalCaptureObject(p, m))
		}
	}
	return paypalMissing()
}

func paypalShowRefund(c *call, id string) reply {
	if p := c.op.about; p != nil {
		if m := p.find(order.MovementRefund, id); m != nil {
			return answer(http.StatusOK, c.a.paypalRefundObject(p, m))
		}
	}
	return paypalMissing()
}

// paypalShowOrder: https://developer.paypal.com/docs/api/orders/v2/#orders_get
func paypalShowOrder(c *call, id string) reply {
	p := c.op.about
	if p == nil || p.order != id {
		return paypalMissing()
	}
	payments, intent := fields{}, "CAPTURE"
	if p.auth != "" {
		intent = "AUTHORIZE"
		payments["authorizations"] = []any{c.a.paypalAuthorization(p)}
	}
	var captures, refunds []any
	for _, m := range p.moves {
		switch m.Kind {
		case order.MovementCapture:
			captures = append(captures, c.a.paypalCaptureObject(p, m))
		case order.MovementRefund:
			refunds = append(refunds, c.a.paypalRefundObject(p, m))
		case order.MovementVoid: // shows in the authorization
		}
	}
	if captures != nil {
		payments["captures"] = captures
	}
	if refunds != nil {
		payments["refunds"] = refunds
	}
	unit := fields{"reference_id": "default", "amount": paypalMoney(p.Amount.Minor, p.Amount.Currency), "payments": payments}
	if p.Reference != "" {
		unit["custom_id"] = p.Reference
	}
	return answer(http.StatusOK, fields{
		"id": p.order, "intent": intent, "status": "COMPLETED", "purchase_units": []any{unit}, "create_time": p.created.Format(time.RFC3339), "update_time": p.updated.Format(time.RFC3339),
		"links": []any{c.a.paypalLink("self", "GET", "/v2/checkout/orders/"+p.order)},
	})
}

// paypalListEvents: https://developer.paypal.com/docs/api/webhooks/v1/#webhooks-events_list
func paypalListEvents(c *call, _ string) reply {
	q := c.r.query
	invalid := func(name string) reply {
		return paypalError(http.StatusBadRequest, "VALIDATION_ERROR", "Invalid data provided", "INVALID_PARAMETER_VALUE", name+" is invalid")
	}
	bounds := map[string]time.Time{}
	for _, name := range []string{"start_time", "end_time"} {
		if text := q.Get(name); text != "" {
			at, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return invalid(name)
			}
			bounds[name] = at
		}
	}
	size, from := 10, 0
	for name, into := range map[string]*int{"page_size": &size, "from": &from} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || name == "page_size" && (n < 1 || n > 300) {
				return invalid(name)
			}
			*into = n
		}
	}
	all := c.a.listed(paypalReach, func(e *event) bool {
		start, begins := bounds["start_time"]
		end, ends := bounds["end_time"]
		return (!begins || !e.at.Before(start)) && (!ends || !e.at.After(end)) && (q.Get("event_type") == "" || q.Get("event_type") == e.typ)
	})
	events := []any{}
	for i := from; i < min(len(all), from+size); i++ {
		events = append(events, raw(all[i].listed))
	}
	links := []any{c.a.paypalLink("self", "GET", c.r.path+"?"+c.r.rawQuery)}
	if from+size < len(all) {
		next, _ := url.ParseQuery(c.r.rawQuery)
		next.Set("from", fmt.Sprint(from+size))
		links = append(links, c.a.paypalLink("next", "GET", c.r.path+"?"+next.Encode()))
	}
	return answer(http.StatusOK, fields{"events": events, "count": len(events), "links": links})
}
