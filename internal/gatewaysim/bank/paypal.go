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

// paypalAPI is PayPal's Payments API v2, the orders that payments belong to, and the list of webhook events.
//
//   - Requests, answers and issues: https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2).
//   - Keys: PayPal-Request-Id is stored for 45 days (same place). A call that is repeated is answered 200 with how things stand
//     now (https://developer.paypal.com/reference/guidelines/idempotency): so only what was done is kept, and a failure is not. What
//     another body under a known key gets is not documented for version 2: here 400 DUPLICATE_REQUEST_ID, as version 1 has it.
//   - Captures may add up to 115 % of the authorization (MAX_CAPTURE_AMOUNT_EXCEEDED). A voided rest leaves the captures as they are.
//   - The id that the caller gives is custom_id, else invoice_id: of these the first that is not the order's reference, and
//     of a text that ends in a UUID only that. A capture takes no custom_id, a void nothing. One invoice_id is captured once (DUPLICATE_INVOICE_ID).
//   - Without Prefer: return=representation only id, status and links are answered.
var paypalAPI = api{
	needs: func(s gateway.Source) string {
		switch {
		case s.ClientID == "":
			return "client_id"
		case s.ClientSecret == "":
			return "client_secret"
		}
		return ""
	},
	open: paypalOpen, refuse: paypalRefuse, find: paypalFind,
	keyHeader: "Paypal-Request-Id", keyLife: 45 * 24 * time.Hour,
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
	busy: func(*call) reply {
		return paypalError(http.StatusConflict, "RESOURCE_CONFLICT", "The server has detected a conflict while processing this request.", "PREVIOUS_REQUEST_IN_PROGRESS",
			"A previous request on this resource is currently in progress. Please wait for sometime and try again. It is best to space out the initial and the subsequent request(s) to avoid receiving this error.")
	},
	reused: func(*call, *entry) reply {
		return paypalError(http.StatusBadRequest, "DUPLICATE_REQUEST_ID", "The value of PayPal-Request-Id header has already been used", "", "")
	},
	denied: func(*call) reply { return paypalStranger() },
	tooMany: func(*call) reply {
		return paypalError(http.StatusTooManyRequests, "RATE_LIMIT_REACHED", "Too many requests. Blocked due to rate limiting.", "", "").with("Retry-After", "2")
	},
	failed: func(*call) reply { return paypalFailure(http.StatusServiceUnavailable) },
	kept:   func(*call) reply { return paypalFailure(http.StatusInternalServerError) },
}

func paypalError(status int, name, message, issue, description string) reply {
	e := fields{"name": name, "message": message, "debug_id": strings.ToLower(derive(13, name, issue)), "links": []any{}}
	if issue != "" {
		e["details"] = []any{fields{"issue": issue, "description": description}}
	}
	return answer(status, e)
}

func paypalFailure(status int) reply {
	return paypalError(status, "INTERNAL_SERVER_ERROR", "An internal server error has occurred.", "", "")
}

func paypalIssue(issue, description string) reply {
	return paypalError(http.StatusUnprocessableEntity, "UNPROCESSABLE_ENTITY",
		"The requested action could not be performed, semantically incorrect, or failed business validation.", issue, description)
}

func paypalMissing() reply {
	return paypalError(http.StatusNotFound, "RESOURCE_NOT_FOUND", "The specified resource does not exist.", "INVALID_RESOURCE_ID",
		"Specified resource ID does not exist. Please check the resource ID and try again.")
}

func paypalStranger() reply {
	return answer(http.StatusUnauthorized, fields{"error": "invalid_token", "error_description": "Token signature verification failed"})
}

const (
	paypalTokenPath = "/v1/oauth2/token"
	paypalTokenLife = 9 * time.Hour
)

func paypalRefuse(a *account, r *request) *reply {
	if r.path == paypalTokenPath {
		if id, secret, _ := (&http.Request{Header: r.header}).BasicAuth(); id == a.src.ClientID && secret == a.src.ClientSecret {
			return nil
		}
		rep := answer(http.StatusUnauthorized, fields{"error": "invalid_client", "error_description": "Client Authentication failed"})
		return &rep
	}
	token, _ := strings.CutPrefix(r.header.Get("Authorization"), "Bearer ")
	if until, known := a.tokens[token]; known && a.bank.now().Before(until) {
		return nil
	}
	rep := paypalStranger()
	return &rep
}

// paypalToken: https://developer.paypal.com/api/rest/authentication/
func paypalToken(c *call) reply {
	if form, err := url.ParseQuery(string(c.r.body)); err != nil || form.Get("grant_type") != "client_credentials" {
		return answer(http.StatusBadRequest, fields{"error": "unsupported_grant_type", "error_description": "Grant Type is NULL"})
	}
	token := "A21AA" + derive(40, "token", c.a.src.ID, fmt.Sprint(len(c.a.tokens)))
	c.a.tokens[token] = c.a.bank.now().Add(paypalTokenLife)
	return answer(http.StatusOK, fields{
		"access_token": token, "token_type": "Bearer", "expires_in": int(paypalTokenLife.Seconds()), "app_id": "APP-80W284485P519543T", "scope": "https://uri.paypal.com/services/payments/refund",
	})
}

func paypalOpen(a *account, p *payment, n string) error {
	p.order = derive(17, "order", a.src.ID, p.Reference, n)
	if !p.Captured {
		p.auth = derive(17, "authorization", a.src.ID, p.Reference, n)
		p.id = p.auth
		a.paypalTell("PAYMENT.AUTHORIZATION.CREATED", p, nil)
		return nil
	}
	p.id = derive(17, "capture", a.src.ID, p.Reference, n)
	m := &move{custom: p.Reference, updated: p.created, Movement: Movement{
		Kind: order.MovementCapture, Amount: p.Amount, Ref: p.id, Status: order.StatusOK, Opening: true, At: p.created,
	}}
	p.moves = append(p.moves, m)
	a.paypalTell("PAYMENT.CAPTURE.COMPLETED", p, m)
	return nil
}
