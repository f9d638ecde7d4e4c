package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
)

// policy says what the Idempotency-Key header does at a route.
type policy struct {
	name   string
	exempt string // why the route needs no protection
}

// protected: a request that carries the header takes effect once, and a repeat is answered as the first was. What that
// means in detail, and whether the header may be missing, is the account's profile.
var protected = policy{name: "account"}

// protected reports whether the endpoint heeds keys.
func (e *endpoint) protected() bool { return e.Idempotency.name != "" }

// exempt declares that a route needs no protection, and why.
func exempt(why string) policy { return policy{exempt: why} }

// keyScopes is the name space of the ids that accounts have in the table of idempotency keys, which wants UUIDs. It never
// changes: with another one, every key would be forgotten.
var keyScopes = uuid.MustParse("6a2d44a1-1d5c-4c0e-9f0b-70a1d0c5e004")

// KeyScope is whose an account's idempotency keys are: all API keys of the account share them.
func KeyScope(account string) idempotency.Scope {
	return idempotency.Scope{Account: account, Kind: "account", ID: uuid.NewSHA1(keyScopes, []byte(account))}
}

// Caller returns the account that a request's API key belongs to, to those whom the API hands the request on to. It
// reports false if nobody was authenticated.
func Caller(ctx context.Context) (account string, ok bool) {
	account = callOf(ctx).key.Account
	return account, account != ""
}

// Protector makes the middlewares that routes declare. Package idempotency has what they need.
type Protector interface {
	// Protect is the middleware of a protected route; declared is the name of its policy.
	Protect(declared string) func(http.Handler) http.Handler

	// Exempt is the middleware of a route that needs no protection, for the reason given.
	Exempt(reason string) func(http.Handler) http.Handler
}

// protection is the middleware that an endpoint's policy asks for; nil for methods that change nothing.
func (a *API) protection(e *endpoint) (func(http.Handler) http.Handler, error) {
	switch e.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil, nil
	}
	switch {
	case e.Idempotency == policy{}:
		return nil, fmt.Errorf("%s %s declares no idempotency policy, and no reason to be exempt", e.Method, e.Path)
	case a.opts.Protector == nil:
		return a.unprotected, nil
	case e.Idempotency.exempt != "":
		return a.opts.Protector.Exempt(e.Idempotency.exempt), nil
	default:
		return a.opts.Protector.Protect(e.Idempotency.name), nil
	}
}

var errUnprotected = errors.New("this API was made without Options.Protector, and a request has an Idempotency-Key")

// unprotected stands where an API has no Protector. A caller who sends a key expects what cannot be had, and is told.
func (a *API) unprotected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values("Idempotency-Key")) > 0 {
			a.fail(w, r, errUnprotected)
			return
		}
		next.ServeHTTP(w, r)
	})
}
