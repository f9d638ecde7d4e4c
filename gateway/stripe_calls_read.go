package gateway

import (
	"cmp"
	"fmt"
	"net/http"

	"github.com/paidonce/paidonce/order"
)

// stripeRead reads what Stripe answers to a movement.
//
// Stripe keeps an answer under the key once the endpoint has begun to execute, failures included, and says Idempotent-Replayed
// when it gives it again: a failure that is kept must be looked up, since asking again brings the same. What ends before that, a
// conflict, a rate limit, wrong credentials, is not kept. https://docs.stripe.com/api/idempotent_requests,
// https://docs.stripe.com/error-low-level
func stripeRead(s Source, m order.Movement, r Reply) Verdict {
	if r.Status/100 == 2 {
		return stripeMade(s, m, r)
	}
	v := stripeRefused(m, r)
	kept := r.Header.Get("Idempotent-Replayed") == "true" && (v.Ruling == Later || v.Ruling == Denied)
	if kept || r.Status >= 500 && r.Header.Get("Stripe-Should-Retry") == "false" {
		return Verdict{Ruling: Unsure, Detail: v.Detail + ", and will answer the same again"}
	}
	return v
}

// stripeError is what Stripe says about a request that it refuses: https://docs.stripe.com/api/errors
type stripeError struct{ typ, code, decline, param string }

func stripeErrorOf(body []byte) (e stripeError, ok bool) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return e, false
	}
	top, err := doc.members([]string{"error"})
	if err != nil {
		return e, false
	}
	o, err := top.get("error").members([]string{"type", "code", "decline_code", "param"})
	if err != nil {
		return e, false
	}
	e = stripeError{
		codeWord(o.get("type").Str), codeWord(o.get("code").Str), codeWord(o.get("decline_code").Str), codeWord(o.get("param").Str),
	}
	return e, e.typ != ""
}

// stripeRulings are the error codes that are no plain refusals. The unsure ones can mean that an earlier try of the movement did
// it: they are looked up. https://docs.stripe.com/error-codes
var stripeRulings = map[string]Ruling{
	"idempotency_key_in_use":          Later,
	"lock_timeout":                    Later,
	"rate_limit":                      Later,
	"charge_already_captured":         Unsure,
	"charge_already_refunded":         Unsure,
	"payment_intent_unexpected_state": Unsure,
}

// stripeTooLarge is the code of a refund that is greater than what is left of the charge. Stripe gives it none; the parameter tells.
const stripeTooLarge = "amount_too_large"

func stripeRefused(m order.Movement, r Reply) Verdict {
	e, ok := stripeErrorOf(r.Body)
	ruling, named := stripeRulings[e.code]
	said := fmt.Sprintf("it answered %d", r.Status) + coded("type", e.typ) + coded("code", e.code) + coded("decline_code", e.decline) + coded("param", e.param)
	switch v, byStatus := statusVerdict(r); {
	case ok && e.typ == "idempotency_error" && !named:
		return Verdict{Ruling: Reused, Code: cmp.Or(e.code, e.typ), Detail: said}
	case byStatus:
		v.Detail = said
		return v
	case r.Status == http.StatusConflict, ruling == Later:
		return laterVerdict(r, "%s", said)
	case r.Status == http.StatusFailedDependency:
		return Verdict{Ruling: Unsure, Detail: said + ": something that Stripe depends on failed"}
	case !ok:
		return laterVerdict(r, "it answered %d with what is no error of Stripe's", r.Status)
	case named:
		return Verdict{Ruling: ruling, Code: e.code, Detail: said + ": an earlier try may have done it"}
	case m.Kind == order.MovementRefund && e.param == "amount" && (e.code == "" || e.code == stripeTooLarge):
		return Verdict{Ruling: Unsure, Code: stripeTooLarge, Detail: said + ": an earlier try may have done it"}
	}
	return Verdict{Ruling: Declined, Code: cmp.Or(e.code, e.typ), Detail: said}
}

// stripeMade reads the object that a movement made or changed.
func stripeMade(s Source, m order.Movement, r Reply) Verdict {
	p, err := stripePaymentOf(m)
	if err != nil {
		return unsure(r, "the payment cannot be told any more")
	}
	doc, fault := parseJSON(r.Body)
	if fault != nil {
		return unsure(r, "what is no answer of Stripe's")
	}
	if m.Kind == order.MovementRefund {
		o, what := stripeSee(s, "refund", doc, r)
		if what != "" {
			return unsure(r, what)
		}
		return o.refunded(m, p, doc, r)
	}
	o, what := stripePaymentSeen(s, p, doc, r)
	switch {
	case what != "":
		return unsure(r, what)
	case m.Kind == order.MovementVoid && o.status == "canceled",
		m.Kind == order.MovementCapture && o.status == "succeeded" && o.has(m.Amount):
		return o.done()
	case m.Kind == order.MovementCapture && o.status == "processing":
		return Verdict{Ruling: Done} // its events tell when it is there
	}
	return unsure(r, "the payment is not as it would be then")
}

// stripePaymentSeen reads the payment itself.
func stripePaymentSeen(s Source, p stripePayment, doc value, r Reply) (*stripeSeen, string) {
	o, what := stripeSee(s, p.name, doc, r)
	if what == "" && o.id() != p.id {
		what = "the answer is about another payment"
	}
	return o, what
}

// refunded is what a refund says of the movement that it must be of.
func (o *stripeSeen) refunded(m order.Movement, p stripePayment, doc value, r Reply) Verdict {
	switch {
	case o.idOf(p.name) != p.id:
		return unsure(r, "the refund is of another payment")
	case o.money("amount") != m.Amount:
		return unsure(r, "the refund is of another amount")
	}
	status := o.o.get("status").Str
	if stripeRefundStatus[status] == order.StatusFailed {
		reason, _ := doc.at("/failure_reason")
		code := codeWord(reason.Str)
		return Verdict{
			Ruling: Declined, Code: cmp.Or(code, status),
			Detail: "the refund was made and came to nothing" + coded("failure_reason", code),
		}
	}
	v := o.done()
	v.Ref = o.id()
	return v
}
