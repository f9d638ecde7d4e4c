package bank

import (
	"fmt"
	"net/http"
	"regexp"
	"time"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// mercadoAPI is the payments of Mercado Pago's API: https://www.mercadopago.com.br/developers/en/reference
//
//   - Refunds (…/reference/chargebacks/_payments_id_refunds/post) demand X-Idempotency-Key. A call that is repeated is answered
//     with what was made. How long keys are known, and what another body gets, is documented for orders only
//     (…/docs/qr-code/resources/refund-errors, …/docs/order/status-errors/integration-errors: 24 hours, 409
//     idempotency_key_already_used, 409 refund_in_progress, 423 resource_locked): here the same, the last two by the key.
//   - A refund that is under way is answered 400, unless X-Render-In-Process-Refunds asks for it
//     (…/docs/checkout-api/payment-management/cancellations-and-refunds/refund-pix). It is made all the same, and its key known.
//     That it is not shown without that header either, is what the page leaves open; the payment itself shows it.
//   - Captures and cancellations (…/reference/payments/_payments_id/put) have no key: a repeated one is refused by the payment's
//     state, error 2018. A capture of less changes transaction_amount, and lets go of the rest.
//   - A refund that the payment's state or amount does not allow is error 2063.
//   - The id that the caller gives is metadata.paidonce_transaction of a refund. Nothing else takes one.
var mercadoAPI = api{
	needs: func(s gateway.Source) string {
		if s.AccessToken == "" {
			return "access_token"
		}
		return ""
	},
	open: mercadoOpen, refuse: mercadoRefuse, find: mercadoFind,
	keyHeader: "X-Idempotency-Key", keyLife: 24 * time.Hour,
	keyed: func(r *request) bool { return r.method == http.MethodPost },
	print: func(r *request) string { return r.path + "\n" + string(r.body) },
	keeps: func(rep reply) bool { return rep.status/100 == 2 },
	fresh: true,
	replayed: func(_ *call, rep reply) reply {
		if rep.status == http.StatusCreated {
			rep.status = http.StatusOK
		}
		return rep
	},
	busy: func(c *call) reply {
		if c.a.bank.draw("status", c.key)%2 == 0 {
			return mercadoError(http.StatusLocked, "resource_locked", 0, "The key is in use.")
		}
		return mercadoError(http.StatusConflict, "refund_in_progress", 0, "A refund is already being processed for this payment.")
	},
	reused: func(*call, *entry) reply {
		return mercadoError(http.StatusConflict, "idempotency_key_already_used", 0, "The X-Idempotency-Key sent has already been used with a different body in the last 24 hours.")
	},
	denied: func(*call) reply { return mercadoStranger() },
	tooMany: func(*call) reply {
		return mercadoError(http.StatusTooManyRequests, "too_many_requests", 0, "Rate limit exceeded. Retry after the indicated number of seconds.").with("Retry-After", "2")
	},
	failed: func(*call) reply { return mercadoFailure(http.StatusServiceUnavailable) },
	kept:   func(*call) reply { return mercadoFailure(http.StatusInternalServerError) },
}

func mercadoError(status int, word string, code int, message string) reply {
	cause := []any{}
	if code != 0 {
		cause = append(cause, fields{"code": code, "description": message, "data": nil})
	}
	return answer(status, fields{"message": message, "error": word, "status": status, "cause": cause})
}

func mercadoFailure(status int) reply {
	return mercadoError(status, "internal_server_error", 0, "internal server error")
}

func mercadoStranger() reply {
	return mercadoError(http.StatusUnauthorized, "unauthorized", 0, "invalid access token")
}

func mercadoMissing() reply {
	return mercadoError(http.StatusNotFound, "not_found", 2000, "Payment not found")
}

func mercadoState(code int) reply {
	return mercadoError(http.StatusBadRequest, "bad_request", code, "The action requested is not valid for the current payment state")
}

func mercadoRefuse(a *account, r *request) *reply {
	if r.header.Get("Authorization") == "Bearer "+a.src.AccessToken {
		return nil
	}
	rep := mercadoStranger()
	return &rep
}

func mercadoOpen(a *account, p *payment, n string) error {
	p.id = digits(11, "payment", a.src.ID, p.Reference, n)
	if p.Captured {
		p.moves = append(p.moves, &move{Movement: Movement{
			Kind: order.MovementCapture, Amount: p.Amount, Status: order.StatusOK, Opening: true, At: p.created,
		}})
	}
	a.mercadoTell("payment.created", p)
	return nil
}

var mercadoPaths = []struct {
	method string
	path   *regexp.Regexp
	kind   Kind
	do     func(c *call, id string) reply
}{
	{http.MethodGet, regexp.MustCompile(`^/v1/payments/(search)$`), List, mercadoSearch},
	{http.MethodGet, regexp.MustCompile(`^/v1/payments/([0-9]+)$`), Read, mercadoShow},
	{http.MethodPut, regexp.MustCompile(`^/v1/payments/([0-9]+)$`), Capture, mercadoUpdate},
	{http.MethodPost, regexp.MustCompile(`^/v1/payments/([0-9]+)/refunds$`), Refund, mercadoRefund},
	{http.MethodGet, regexp.MustCompile(`^/v1/payments/([0-9]+)/refunds$`), List, mercadoRefunds},
	{http.MethodGet, regexp.MustCompile(`^/v1/payments/([0-9]+)/refunds/[0-9]+$`), Read, mercadoShowRefund},
}

func mercadoFind(a *account, r *request) (*operation, *reply) {
	refuse := func(rep reply) (*operation, *reply) { return nil, &rep }
	for _, route := range mercadoPaths {
		m := route.path.FindStringSubmatch(r.path)
		if m == nil || route.method != r.method {
			continue
		}
		op := &operation{kind: route.kind, about: a.ids[m[1]]}
		switch {
		case r.method != http.MethodGet && len(r.body) > 0 && !gjson.ValidBytes(r.body):
			return refuse(mercadoError(http.StatusBadRequest, "bad_request", 1, "Params Error"))
		case r.method == http.MethodPost && r.key == "":
			return refuse(mercadoError(http.StatusBadRequest, "bad_request", 4292, "Header X-Idempotency-Key can't be null"))
		case r.method == http.MethodPut && gjson.GetBytes(r.body, "status").Exists():
			op.kind = Void
		}
		op.do = func(c *call) reply {
			if op.about == nil && m[1] != "search" {
				return mercadoMissing()
			}
			return route.do(c, m[1])
		}
		return op, nil
	}
	return refuse(mercadoError(http.StatusNotFound, "not_found", 0, "resource not found"))
}

// mercadoAmount reads a JSON number of major units that may be missing.
func mercadoAmount(v gjson.Result, currency string, whole int64) (int64, *reply) {
	if !v.Exists() {
		return whole, nil
	}
	minor, err := order.ParseDecimal(v.Raw, currency)
	switch {
	case v.Type != gjson.Number || err != nil:
		rep := mercadoError(http.StatusBadRequest, "bad_request", 4041, "amount attribute must be numeric")
		return 0, &rep
	case minor <= 0:
		rep := mercadoError(http.StatusBadRequest, "bad_request", 4040, "amount attribute must be positive")
		return 0, &rep
	}
	return minor, nil
}

// mercadoUpdate captures or cancels.
func mercadoUpdate(c *call, _ string) reply {
	p, body := c.op.about, gjson.ParseBytes(c.r.body)
	left, err := p.capturable()
	if c.op.kind == Void {
		switch {
		case body.Get("status").String() != "cancelled":
			return mercadoState(2016)
		case err != nil:
			return mercadoState(2018)
		}
		c.enter(p, &move{Movement: Movement{Kind: order.MovementVoid, Amount: p.Amount}})
		p.voided = true
		c.a.mercadoTell("payment.updated", p)
		return answer(http.StatusOK, c.a.mercadoPayment(p))
	}
	n, bad := mercadoAmount(body.Get("transaction_amount"), p.Amount.Currency, left)
	switch {
	case !body.Get("capture").Bool():
		return mercadoError(http.StatusBadRequest, "bad_request", 2079, "Invalid value for capture attribute")
	case err != nil:
		return mercadoState(2018)
	case bad != nil:
		return *bad
	case n > left:
		return mercadoError(http.StatusBadRequest, "bad_request", 4037, "Invalid transaction_amount")
	}
	c.enter(p, &move{Movement: Movement{Kind: order.MovementCapture, Amount: order.Amount{Minor: n}}})
	p.closed = true
	c.a.mercadoTell("payment.updated", p)
	return answer(http.StatusOK, c.a.mercadoPayment(p))
}

func mercadoRefund(c *call, _ string) reply {
	p, body := c.op.about, gjson.ParseBytes(c.r.body)
	left, err := p.refundable(nil)
	n, bad := mercadoAmount(body.Get("amount"), p.Amount.Currency, left)
	switch {
	case bad != nil:
		return *bad
	case err != nil || n > left:
		return mercadoState(2063)
	}
	m := &move{metadata: map[string]string{}, Movement: Movement{
		Kind: order.MovementRefund, Amount: order.Amount{Minor: n}, Given: body.Get("metadata." + stripeGiven).String(),
		Ref: digits(10, "refund", c.a.src.ID, p.id, c.key, fmt.Sprint(p.made(order.MovementRefund))),
	}}
	for name, value := range body.Get("metadata").Map() {
		m.metadata[name] = value.String()
	}
	told := func() { c.a.mercadoTell("payment.updated", p) }
	c.refund(p, m, told, told)
	c.latest = func() reply {
		if m.hidden(c.r) {
			return mercadoError(http.StatusBadRequest, "bad_request", 0, "The refund could not be processed")
		}
		return answer(http.StatusCreated, mercadoRefundObject(p, m))
	}
	return c.latest()
}
