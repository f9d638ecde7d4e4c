package bank

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var mercadoStatuses = map[order.Status]string{order.StatusOK: "approved", order.StatusPending: "in_process", order.StatusFailed: "rejected"}

// mercadoTime is how Mercado Pago writes times.
const mercadoTime = "2006-01-02T15:04:05.000Z07:00"

// hidden reports whether a refund is under way, and the call did not ask for such.
func (m *move) hidden(r *request) bool {
	return m.Status == order.StatusPending && r.header.Get("X-Render-In-Process-Refunds") != "true"
}

func mercadoRefundObject(p *payment, m *move) fields {
	o := fields{
		"id": json.Number(m.Ref), "payment_id": json.Number(p.id), "amount": json.Number(major(m.Amount.Minor, p.Amount.Currency)),
		"metadata": texts(m.metadata), "source": fields{"id": "44444001", "name": "Example", "type": "collector"}, "date_created": m.At.Format(mercadoTime),
		"unique_sequence_number": nil, "refund_mode": "standard", "adjustment_amount": 0, "status": mercadoStatuses[m.Status], "reason": nil, "labels": []any{},
	}
	if p.Unmarked {
		o["metadata"] = fields{}
	}
	return o
}

func (a *account) mercadoPayment(p *payment) fields {
	amount, captured, refunded, refunds := p.Amount.Minor, p.captured(), p.returned(), []any{}
	for _, m := range p.moves {
		if m.Kind == order.MovementRefund {
			refunds = append(refunds, mercadoRefundObject(p, m))
		}
	}
	status, detail := "authorized", "pending_capture"
	switch {
	case p.voided:
		status, detail = "cancelled", "by_collector"
	case captured == 0:
	default:
		amount, status, detail = captured, "approved", "accredited"
		switch {
		case refunded == captured:
			status, detail = "refunded", "refunded"
		case refunded > 0:
			detail = "partially_refunded"
		}
	}
	return fields{
		"id": json.Number(p.id), "status": status, "status_detail": detail, "live_mode": a.src.Mode == gateway.Live, "captured": captured > 0,
		"date_created": p.created.Format(mercadoTime), "date_last_updated": p.updated.Format(mercadoTime), "currency_id": p.Amount.Currency,
		"transaction_amount": json.Number(major(amount, p.Amount.Currency)), "transaction_amount_refunded": json.Number(major(refunded, p.Amount.Currency)),
		"refunds": refunds, "external_reference": or(p.Reference), "payment_type_id": "credit_card", "payment_method_id": "visa", "metadata": fields{},
	}
}

// mercadoTell enters a notification, which only names the payment.
func (a *account) mercadoTell(action string, p *payment) {
	a.emit(p, action, func(id string, at time.Time) (body, listed []byte) {
		return encode(fields{
			"id": json.Number(digits(12, id)), "live_mode": a.src.Mode == gateway.Live, "type": "payment", "date_created": at.Format(mercadoTime),
			"user_id": 44444001, "api_version": "v1", "action": action, "data": fields{"id": p.id},
		}), nil
	})
}

func mercadoShow(c *call, _ string) reply {
	return answer(http.StatusOK, c.a.mercadoPayment(c.op.about))
}

func mercadoRefunds(c *call, _ string) reply {
	refunds := []any{}
	for _, m := range c.op.about.moves {
		if m.Kind == order.MovementRefund && !m.hidden(c.r) {
			refunds = append(refunds, mercadoRefundObject(c.op.about, m))
		}
	}
	return answer(http.StatusOK, refunds)
}

func mercadoShowRefund(c *call, _ string) reply {
	_, id, _ := strings.Cut(c.r.path, "/refunds/")
	if m := c.op.about.find(order.MovementRefund, id); m != nil && !m.hidden(c.r) {
		return answer(http.StatusOK, mercadoRefundObject(c.op.about, m))
	}
	return mercadoError(http.StatusNotFound, "not_found", 2032, "Refund not found")
}

// mercadoSearch: …/reference/payments/_payments_search/get. Without a range it is about date_created.
func mercadoSearch(c *call, _ string) reply {
	q := c.r.query
	invalid := func() reply { return mercadoError(http.StatusBadRequest, "bad_request", 1, "Params Error") }
	field := cmp.Or(q.Get("range"), "date_created")
	at := func(p *payment) time.Time {
		if field == "date_last_updated" {
			return p.updated
		}
		return p.created
	}
	bounds := map[string]time.Time{}
	for _, name := range []string{"begin_date", "end_date"} {
		if text := q.Get(name); text != "" {
			when, err := time.Parse(time.RFC3339, text)
			if err != nil {
				return invalid()
			}
			bounds[name] = when
		}
	}
	limit, offset := 30, 0
	for name, into := range map[string]*int{"limit": &limit, "offset": &offset} {
		if text := q.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 || name == "limit" && n > 1000 {
				return invalid()
			}
			*into = n
		}
	}
	var all []*payment
	for _, p := range c.a.payments {
		begin, begins := bounds["begin_date"]
		end, ends := bounds["end_date"]
		switch {
		case begins && at(p).Before(begin), ends && at(p).After(end), c.a.bank.now().Sub(p.updated) < c.a.bank.opts.ListLag:
		case q.Get("external_reference") != "" && q.Get("external_reference") != p.Reference:
		default:
			all = append(all, p)
		}
	}
	slices.SortStableFunc(all, func(x, y *payment) int { return at(x).Compare(at(y)) })
	if q.Get("criteria") == "desc" {
		slices.Reverse(all)
	}
	results := []any{}
	for i := offset; i < min(len(all), offset+limit); i++ {
		results = append(results, c.a.mercadoPayment(all[i]))
	}
	return answer(http.StatusOK, fields{"paging": fields{"total": len(all), "limit": limit, "offset": offset}, "results": results})
}
