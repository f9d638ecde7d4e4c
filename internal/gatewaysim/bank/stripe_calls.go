package bank

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// stripeRoutes are the endpoints that are here.
var stripeRoutes = []struct {
	method  string
	path    *regexp.Regexp
	kind    Kind
	params  []string // of a POST; what they begin with, where they end in [
	about   func(a *account, r *request, id string) *payment
	missing string
	do      func(c *call, id string, params url.Values) reply
}{
	{http.MethodGet, regexp.MustCompile(`^/v1/payment_intents/([^/]+)$`), Read, nil, stripeByID, "payment_intent", stripeShow},
	{http.MethodGet, regexp.MustCompile(`^/v1/charges/([^/]+)$`), Read, nil, stripeByID, "charge", stripeShow},
	{http.MethodGet, regexp.MustCompile(`^/v1/refunds/([^/]+)$`), Read, nil, stripeByRefund, "refund", stripeShowRefund},
	{http.MethodGet, regexp.MustCompile(`^/v1/refunds()$`), List, nil, stripeByFilter, "", stripeListRefunds},
	{http.MethodGet, regexp.MustCompile(`^/v1/events/([^/]+)$`), Read, nil, nil, "", stripeShowEvent},
	{http.MethodGet, regexp.MustCompile(`^/v1/events()$`), List, nil, nil, "", stripeListEvents},
	{http.MethodPost, regexp.MustCompile(`^/v1/payment_intents/([^/]+)/capture$`), Capture, []string{
		"amount_to_capture", "application_fee_amount", "final_capture", "metadata[", "statement_descriptor", "statement_descriptor_suffix", "transfer_data[", "expand[",
	}, stripeByID, "payment_intent", stripeCapture},
	{http.MethodPost, regexp.MustCompile(`^/v1/charges/([^/]+)/capture$`), Capture, []string{
		"amount", "application_fee_amount", "receipt_email", "statement_descriptor", "statement_descriptor_suffix", "transfer_data[", "transfer_group", "expand[",
	}, stripeByID, "charge", stripeCapture},
	{http.MethodPost, regexp.MustCompile(`^/v1/payment_intents/([^/]+)/cancel$`), Void, []string{"cancellation_reason", "expand["}, stripeByID, "payment_intent", stripeCancel},
	{http.MethodPost, regexp.MustCompile(`^/v1/refunds()$`), Refund, []string{
		"amount", "charge", "currency", "customer", "expand[", "instructions_email", "metadata[", "origin", "payment_intent", "reason", "refund_application_fee", "reverse_transfer",
	}, stripeByBody, "", stripeRefund},
}

func stripeFind(a *account, r *request) (*operation, *reply) {
	for _, route := range stripeRoutes {
		m := route.path.FindStringSubmatch(r.path)
		if m == nil || route.method != r.method {
			continue
		}
		params := r.query
		if r.method == http.MethodPost {
			var err error
			if params, err = url.ParseQuery(string(r.body)); err != nil || r.rawQuery != "" {
				return nil, stripeInvalid("", "", "Invalid request: the body is no form, or the URL has a query")
			}
			for name := range params {
				if !slices.ContainsFunc(route.params, func(p string) bool { return name == p || strings.HasSuffix(p, "[") && strings.HasPrefix(name, p) }) {
					return nil, stripeInvalid("parameter_unknown", name, "Received unknown parameter: %s", name)
				}
			}
		}
		op := &operation{kind: route.kind}
		if route.about != nil {
			op.about = route.about(a, r, m[1])
		}
		op.do = func(c *call) reply {
			if route.missing != "" && (op.about == nil || !strings.HasPrefix(m[1], stripePrefix[route.missing])) {
				return *stripeMissing(route.missing, m[1])
			}
			return route.do(c, m[1], params)
		}
		return op, nil
	}
	rep := stripeError(http.StatusNotFound, fields{
		"type": "invalid_request_error", "message": fmt.Sprintf("Unrecognized request URL (%s: %s).", r.method, r.path),
	})
	return nil, &rep
}

var stripePrefix = map[string]string{"payment_intent": "pi_", "charge": "ch_", "refund": "re_"}

func stripeByID(a *account, _ *request, id string) *payment { return a.ids[id] }

func stripeByRefund(a *account, _ *request, id string) *payment {
	for _, p := range a.payments {
		if p.find(order.MovementRefund, id) != nil {
			return p
		}
	}
	return nil
}

func stripeByFilter(a *account, r *request, _ string) *payment {
	return a.ids[cmp.Or(r.query.Get("payment_intent"), r.query.Get("charge"))]
}

func stripeByBody(a *account, r *request, _ string) *payment {
	params, _ := url.ParseQuery(string(r.body))
	return a.ids[cmp.Or(params.Get("payment_intent"), params.Get("charge"))]
}

// stripeAmount reads an amount that may be missing.
func stripeAmount(p *payment, params url.Values, name string, whole int64) (int64, *reply) {
	if !params.Has(name) {
		return whole, nil
	}
	n, err := strconv.ParseInt(params.Get(name), 10, 64)
	minor, ok := ours(stripeExponents, n, p.Amount.Currency)
	if err != nil || n < 1 || !ok {
		return 0, stripeInvalid("parameter_invalid_integer", name, "Invalid positive integer")
	}
	return minor, nil
}

func stripeMetadata(params url.Values, into map[string]string) {
	for name := range params {
		if inner, ok := strings.CutPrefix(name, "metadata["); ok && strings.HasSuffix(inner, "]") {
			into[strings.TrimSuffix(inner, "]")] = params.Get(name)
		}
	}
}

func stripeCapture(c *call, id string, params url.Values) reply {
	p := c.op.about
	left, err := p.capturable()
	param := "amount_to_capture"
	if strings.HasPrefix(id, "ch_") {
		param = "amount"
	}
	switch {
	case err != nil && param == "amount" && errors.Is(err, errVoided):
		return *stripeInvalid("charge_expired_for_capture", "", "Charge %s could not be captured because it has been canceled.", id)
	case err != nil && param == "amount":
		return *stripeInvalid("charge_already_captured", "", "Charge %s has already been captured.", id)
	case err != nil:
		return stripeUnexpected(c, "This PaymentIntent could not be captured because it has a status of %s. Only a PaymentIntent with one of the following statuses may be captured: requires_capture.")
	}
	n, bad := stripeAmount(p, params, param, left)
	switch {
	case bad != nil:
		return *bad
	case n > left:
		return *stripeInvalid("amount_too_large", param, "The requested capture amount is greater than the authorized amount.")
	}
	stripeMetadata(params, p.metadata)
	c.enter(p, &move{Movement: Movement{Kind: order.MovementCapture, Amount: order.Amount{Minor: n}, Given: params.Get("metadata[" + stripeGiven + "]")}})
	p.closed = true
	c.a.stripeTell("charge.captured", p, nil)
	if !p.ChargeOnly {
		c.a.stripeTell("payment_intent.succeeded", p, nil)
	}
	return stripeShow(c, id, nil)
}

// stripeUnexpected refuses what the status of the payment intent does not allow.
func stripeUnexpected(c *call, format string) reply {
	intent := c.a.stripeIntent(c.op.about)
	return stripeError(http.StatusBadRequest, fields{
		"type": "invalid_request_error", "code": "payment_intent_unexpected_state", "message": fmt.Sprintf(format, intent["status"]), "payment_intent": intent,
	})
}

func stripeCancel(c *call, id string, params url.Values) reply {
	p := c.op.about
	if reason := params.Get("cancellation_reason"); reason != "" && !slices.Contains([]string{"duplicate", "fraudulent", "requested_by_customer", "abandoned"}, reason) {
		return *stripeInvalid("", "cancellation_reason", "Invalid cancellation_reason: must be one of duplicate, fraudulent, requested_by_customer, or abandoned")
	}
	if _, err := p.capturable(); err != nil {
		return stripeUnexpected(c, "You cannot cancel this PaymentIntent because it has a status of %s. Only a PaymentIntent with one of the following statuses may be canceled: requires_payment_method, requires_capture, requires_confirmation, requires_action, processing.")
	}
	c.enter(p, &move{Movement: Movement{Kind: order.MovementVoid, Amount: p.Amount}, reason: params.Get("cancellation_reason")})
	p.voided = true
	c.a.stripeTell("payment_intent.canceled", p, nil)
	return stripeShow(c, id, nil)
}

func stripeRefund(c *call, _ string, params url.Values) reply {
	intent, charge := params.Get("payment_intent"), params.Get("charge")
	p := c.op.about
	switch {
	case intent == "" && charge == "":
		return *stripeInvalid("parameter_missing", "payment_intent", "One of the following params should be provided for this request: payment_intent or charge.")
	case p == nil && intent != "":
		return *stripeMissing("payment_intent", intent)
	case p == nil:
		return *stripeMissing("charge", charge)
	}
	if reason := params.Get("reason"); reason != "" && !slices.Contains([]string{"duplicate", "fraudulent", "requested_by_customer"}, reason) {
		return *stripeInvalid("", "reason", "Invalid reason: must be one of duplicate, fraudulent, or requested_by_customer")
	}
	left, err := p.refundable(nil)
	switch {
	case errors.Is(err, errUncapture):
		return *stripeInvalid("charge_not_refundable", "", "Charge %s cannot be refunded: it was not captured.", p.charge)
	case err != nil:
		return *stripeInvalid("charge_already_refunded", "", "Charge %s has already been refunded.", p.charge)
	}
	n, bad := stripeAmount(p, params, "amount", left)
	switch {
	case bad != nil:
		return *bad
	case n > left:
		return *stripeInvalid("", "amount", "Refund amount (%s) is greater than unrefunded amount on charge (%s)", major(n, p.Amount.Currency), major(left, p.Amount.Currency))
	}
	m := &move{Movement: Movement{Kind: order.MovementRefund, Amount: order.Amount{Minor: n}, Given: params.Get("metadata[" + stripeGiven + "]")}, reason: params.Get("reason"), metadata: map[string]string{}}
	stripeMetadata(params, m.metadata)
	m.Ref = "re_" + derive(24, "refund", c.a.src.ID, p.id, m.Given, c.key, fmt.Sprint(p.made(order.MovementRefund)))
	c.refund(p, m, func() {
		c.a.stripeTell("refund.created", p, m)
		c.a.stripeTell("charge.refunded", p, m)
	}, func() {
		if m.Status == order.StatusFailed {
			c.a.stripeTell("refund.failed", p, m)
		}
		c.a.stripeTell("refund.updated", p, m)
		c.a.stripeTell("charge.refund.updated", p, m)
	})
	return answer(http.StatusOK, stripeRefundObject(p, m))
}
