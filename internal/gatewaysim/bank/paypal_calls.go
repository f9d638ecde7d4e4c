package bank

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/order"
)

var paypalPaths = []struct {
	method string
	path   *regexp.Regexp
	kind   Kind
	do     func(c *call, id string) reply
}{
	{http.MethodPost, regexp.MustCompile(`^/v2/payments/authorizations/([^/]+)/capture$`), Capture, paypalCapture},
	{http.MethodPost, regexp.MustCompile(`^/v2/payments/authorizations/([^/]+)/void$`), Void, paypalVoid},
	{http.MethodPost, regexp.MustCompile(`^/v2/payments/captures/([^/]+)/refund$`), Refund, paypalRefund},
	{http.MethodGet, regexp.MustCompile(`^/v2/payments/authorizations/([^/]+)$`), Read, paypalShowAuthorization},
	{http.MethodGet, regexp.MustCompile(`^/v2/payments/captures/([^/]+)$`), Read, paypalShowCapture},
	{http.MethodGet, regexp.MustCompile(`^/v2/payments/refunds/([^/]+)$`), Read, paypalShowRefund},
	{http.MethodGet, regexp.MustCompile(`^/v2/checkout/orders/([^/]+)$`), Read, paypalShowOrder},
	{http.MethodGet, regexp.MustCompile(`^/v1/notifications/webhooks-events()$`), List, paypalListEvents},
}

func paypalFind(a *account, r *request) (*operation, *reply) {
	if r.path == paypalTokenPath && r.method == http.MethodPost {
		return &operation{kind: Token, do: paypalToken}, nil
	}
	for _, route := range paypalPaths {
		m := route.path.FindStringSubmatch(r.path)
		if m == nil || route.method != r.method {
			continue
		}
		if r.method == http.MethodPost && len(r.body) > 0 && !gjson.ValidBytes(r.body) {
			rep := paypalError(http.StatusBadRequest, "INVALID_REQUEST", "Request is not well-formed, syntactically incorrect, or violates schema.", "MALFORMED_REQUEST_JSON", "The request JSON is not well formed.")
			return nil, &rep
		}
		return &operation{kind: route.kind, about: a.paypalAbout(m[1]), do: func(c *call) reply { return route.do(c, m[1]) }}, nil
	}
	rep := paypalMissing()
	return nil, &rep
}

// paypalAbout is the payment that something belongs to.
func (a *account) paypalAbout(id string) *payment {
	if p := a.ids[id]; p != nil {
		return p
	}
	return stripeByRefund(a, nil, id)
}

// paypalAmount reads an amount that may be missing.
func paypalAmount(v gjson.Result, currency string, whole int64, mismatch string) (int64, *reply) {
	if !v.Exists() {
		return whole, nil
	}
	refuse := func(issue, description string) (int64, *reply) {
		rep := paypalIssue(issue, description)
		return 0, &rep
	}
	if v.Get("currency_code").String() != currency {
		return refuse(mismatch, "The currency must be the same as that of what is captured or refunded.")
	}
	text := v.Get("value").Str
	minor, err := order.ParseDecimal(text, currency)
	switch {
	case slices.Contains(paypalWhole, currency) && strings.Contains(text, "."):
		return refuse("DECIMALS_NOT_SUPPORTED", "Currency does not support decimals.")
	case err != nil:
		return refuse("DECIMAL_PRECISION", "If the currency supports decimals, only two decimal place precision is supported.")
	case minor <= 0:
		return refuse("CANNOT_BE_ZERO_OR_NEGATIVE", "Must be greater than zero. If the currency supports decimals, only two decimal place precision is supported.")
	}
	return minor, nil
}

// paypalGiven is the id of the caller among what a request carries: of a text that ends in a UUID only that.
func paypalGiven(p *payment, body gjson.Result) string {
	for _, name := range []string{"custom_id", "invoice_id"} {
		if text := body.Get(name).String(); text != "" && text != p.Reference {
			return cmp.Or(uuidAtEnd.FindString(text), text)
		}
	}
	return ""
}

var uuidAtEnd = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// paypalMade answers what was made, as much of it as the caller prefers; and when the call is repeated, how it stands then.
func (c *call) paypalMade(status int, show func() fields) reply {
	write := func() reply {
		o := show()
		if c.r.header.Get("Prefer") != "return=representation" {
			o = fields{"id": o["id"], "status": o["status"], "links": o["links"]}
		}
		return answer(status, o)
	}
	c.latest = write
	return write()
}

func paypalCapture(c *call, id string) reply {
	p := c.op.about
	if p == nil || p.auth != id {
		return paypalMissing()
	}
	body := gjson.ParseBytes(c.r.body)
	n, bad := paypalAmount(body.Get("amount"), p.Amount.Currency, p.Amount.Minor, "AUTH_CAPTURE_CURRENCY_MISMATCH")
	invoice := body.Get("invoice_id").String()
	switch _, err := p.capturable(); {
	case bad != nil:
		return *bad
	case errors.Is(err, errVoided):
		return paypalIssue("AUTHORIZATION_VOIDED", "A voided authorization cannot be captured or reauthorized.")
	case err != nil:
		return paypalIssue("AUTHORIZATION_ALREADY_CAPTURED", "Authorization has previously been captured.")
	case p.captured()+n > p.Amount.Minor+p.Amount.Minor*15/100:
		return paypalIssue("MAX_CAPTURE_AMOUNT_EXCEEDED", "Capture amount exceeds allowable limit.")
	case invoice != "" && c.a.paypalInvoice(invoice):
		return paypalIssue("DUPLICATE_INVOICE_ID", "Requested invoice_id has been previously captured. Possible duplicate transaction.")
	}
	m := c.enter(p, &move{custom: p.Reference, invoice: invoice, note: body.Get("note_to_payer").String(), Movement: Movement{
		Kind: order.MovementCapture, Amount: order.Amount{Minor: n}, Given: paypalGiven(p, body),
		Ref: derive(17, "capture", c.a.src.ID, p.id, c.key, fmt.Sprint(p.made(order.MovementCapture))),
	}})
	p.closed = body.Get("final_capture").Bool()
	c.a.paypalTell("PAYMENT.CAPTURE.COMPLETED", p, m)
	return c.paypalMade(http.StatusCreated, func() fields { return c.a.paypalCaptureObject(p, m) })
}

// paypalInvoice reports whether a capture has that invoice_id.
func (a *account) paypalInvoice(invoice string) bool {
	return slices.ContainsFunc(a.payments, func(p *payment) bool {
		return slices.ContainsFunc(p.moves, func(m *move) bool { return m.Kind == order.MovementCapture && m.invoice == invoice })
	})
}

func paypalVoid(c *call, id string) reply {
	p := c.op.about
	if p == nil || p.auth != id {
		return paypalMissing()
	}
	switch _, err := p.capturable(); {
	case errors.Is(err, errVoided):
		return paypalIssue("PREVIOUSLY_VOIDED", "Authorization has been previously voided and hence cannot be voided again.")
	case err != nil:
		return paypalIssue("PREVIOUSLY_CAPTURED", "Authorization has been previously captured and hence cannot be voided.")
	}
	c.enter(p, &move{Movement: Movement{Kind: order.MovementVoid, Amount: order.Amount{Minor: p.Amount.Minor - p.captured()}}})
	p.voided = true
	c.a.paypalTell("PAYMENT.AUTHORIZATION.VOIDED", p, nil)
	if c.r.header.Get("Prefer") != "return=representation" {
		return reply{status: http.StatusNoContent}
	}
	return c.paypalMade(http.StatusOK, func() fields { return c.a.paypalAuthorization(p) })
}

func paypalRefund(c *call, id string) reply {
	p := c.op.about
	var of *move
	if p != nil {
		of = p.find(order.MovementCapture, id)
	}
	if of == nil {
		return paypalMissing()
	}
	left, err := p.refundable(of)
	if err != nil {
		return paypalIssue("CAPTURE_FULLY_REFUNDED", "The capture has already been fully refunded.")
	}
	body := gjson.ParseBytes(c.r.body)
	n, bad := paypalAmount(body.Get("amount"), p.Amount.Currency, left, "REFUND_CAPTURE_CURRENCY_MISMATCH")
	switch {
	case bad != nil:
		return *bad
	case n > left:
		return paypalIssue("REFUND_AMOUNT_EXCEEDED", "The refund amount must be less than or equal to the capture amount that has not yet been refunded.")
	}
	m := &move{of: of, custom: body.Get("custom_id").String(), invoice: body.Get("invoice_id").String(), note: body.Get("note_to_payer").String(), Movement: Movement{
		Kind: order.MovementRefund, Amount: order.Amount{Minor: n}, Given: paypalGiven(p, body),
		Ref: derive(17, "refund", c.a.src.ID, id, c.key, fmt.Sprint(p.made(order.MovementRefund))),
	}}
	if m.custom == "" {
		m.custom = of.custom
	}
	tell := func() {
		c.a.paypalTell(map[order.Status]string{
			order.StatusOK: "PAYMENT.CAPTURE.REFUNDED", order.StatusPending: "PAYMENT.REFUND.PENDING", order.StatusFailed: "PAYMENT.REFUND.FAILED",
		}[m.Status], p, m)
	}
	c.refund(p, m, tell, tell)
	return c.paypalMade(http.StatusCreated, func() fields { return c.a.paypalRefundObject(p, m) })
}
