package bank

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// stripeAPI is Stripe's API v1, as of version 2025-03-31.basil.
//
//   - Keys: https://docs.stripe.com/api/idempotent_requests and https://docs.stripe.com/error-low-level. What was answered since
//     the endpoint began is kept, failures too, and repeated with Idempotent-Replayed; parameters that are none, 401 and 429 come
//     before. Parameters and endpoint are compared. A key is known for at least 24 hours: here for no longer.
//   - Errors: https://docs.stripe.com/error-codes. That a refund of more than is left has no code but a param is what Stripe was
//     seen to answer; the documentation does not say it.
//   - The id that the caller gives is metadata[paidonce_transaction], of a refund or a capture. A cancellation takes none.
//   - What a capture leaves over is let go of.
var stripeAPI = api{
	needs: func(s gateway.Source) string {
		if s.AccessToken == "" {
			return "access_token"
		}
		return ""
	},
	open: stripeOpen, refuse: stripeRefuse, find: stripeFind,
	keyHeader: "Idempotency-Key", keyLife: 24 * time.Hour,
	keyed: func(r *request) bool { return r.method == http.MethodPost },
	print: func(r *request) string {
		params, err := url.ParseQuery(string(r.body))
		if err != nil {
			return r.path + "\n" + string(r.body)
		}
		return r.path + "\n" + params.Encode() // sorted
	},
	keeps: func(reply) bool { return true },
	replayed: func(c *call, rep reply) reply {
		return rep.with("Idempotent-Replayed", "true").with("Original-Request", "req_"+derive(14, c.key))
	},
	busy: func(c *call) reply {
		return stripeError(http.StatusConflict, fields{
			"type": "idempotency_error", "code": "idempotency_key_in_use",
			"message": "There is currently another in-progress request using this Idempotent Key (that probably means you submitted twice, and the other request is still going through): " + c.key,
		}).with("Stripe-Should-Retry", "true")
	},
	reused: func(c *call, e *entry) reply {
		same := "with the same parameters they were first used with"
		if e.path != c.r.path {
			same = "for the same endpoint they were first used for ('" + e.path + "')"
		}
		return stripeError(http.StatusBadRequest, fields{
			"type":    "idempotency_error",
			"message": "Keys for idempotent requests can only be used " + same + ". Try using a key other than '" + c.key + "' if you meant to execute a different request.",
		})
	},
	denied: func(*call) reply { return stripeStranger() },
	tooMany: func(*call) reply {
		return stripeError(http.StatusTooManyRequests, fields{"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests hit the API too quickly."}).with("Retry-After", "2")
	},
	failed: func(*call) reply { return stripeFailure(http.StatusServiceUnavailable) },
	kept: func(*call) reply {
		return stripeFailure(http.StatusInternalServerError).with("Stripe-Should-Retry", "false")
	},
}

// stripeGiven is the key of the metadata under which the caller's id stands.
const stripeGiven = "paidonce_transaction"

// stripeExponents: https://docs.stripe.com/currencies, where they differ from ISO 4217.
var stripeExponents = map[string]int{"ISK": 2, "UGX": 2, "MGA": 0}

func stripeError(status int, e fields) reply {
	if code, ok := e["code"].(string); ok {
		e["doc_url"] = "https://stripe.com/docs/error-codes/" + strings.ReplaceAll(code, "_", "-")
	}
	return answer(status, fields{"error": e})
}

func stripeInvalid(code, param, format string, args ...any) *reply {
	e := fields{"type": "invalid_request_error", "message": fmt.Sprintf(format, args...)}
	if code != "" {
		e["code"] = code
	}
	if param != "" {
		e["param"] = param
	}
	rep := stripeError(http.StatusBadRequest, e)
	return &rep
}

func stripeMissing(what, id string) *reply {
	rep := stripeError(http.StatusNotFound, fields{
		"type": "invalid_request_error", "code": "resource_missing", "param": what, "message": fmt.Sprintf("No such %s: '%s'", what, id),
	})
	return &rep
}

func stripeFailure(status int) reply {
	return stripeError(status, fields{"type": "api_error", "message": "An error occurred while processing your request. Please retry, and contact us if the problem persists."})
}

func stripeStranger() reply {
	return stripeError(http.StatusUnauthorized, fields{"type": "invalid_request_error", "message": "Invalid API Key provided: ****"})
}

func stripeRefuse(a *account, r *request) *reply {
	user, _, basic := (&http.Request{Header: r.header}).BasicAuth()
	if r.header.Get("Authorization") != "Bearer "+a.src.AccessToken && (!basic || user != a.src.AccessToken) {
		rep := stripeStranger()
		return &rep
	}
	if got := r.header.Get("Stripe-Account"); got != a.src.StripeAccount {
		rep := stripeError(http.StatusForbidden, fields{
			"type": "invalid_request_error", "code": "account_invalid",
			"message": "The provided key does not have access to account '" + got + "' (or that account does not exist). Application access may have been revoked.",
		})
		return &rep
	}
	return nil
}

func stripeOpen(a *account, p *payment, n string) error {
	p.charge = "ch_" + derive(24, "charge", a.src.ID, p.Reference, n)
	p.id = p.charge
	if !p.ChargeOnly {
		p.id = "pi_" + derive(24, "intent", a.src.ID, p.Reference, n)
	}
	if p.Reference != "" {
		p.metadata["order_id"] = p.Reference
	}
	if p.Captured {
		p.moves = append(p.moves, &move{Movement: Movement{
			Kind: order.MovementCapture, Amount: p.Amount, Status: order.StatusOK, Opening: true, At: p.created,
		}})
	}
	a.stripeTell("charge.succeeded", p, nil)
	switch {
	case p.ChargeOnly:
	case p.Captured:
		a.stripeTell("payment_intent.succeeded", p, nil)
	default:
		a.stripeTell("payment_intent.amount_capturable_updated", p, nil)
	}
	return nil
}
