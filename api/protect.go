package api

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
)

// policy says what the Idempotency-Key header does at a route.
type policy struct {
	protected bool
	exempt    string // why the route needs no protection
}

// protected: a request that carries the header takes effect once, and a repeat is answered as the first was. What that
// means in detail, and whether the header may be missing, is the account's policy (Options.Policy).
var protected = policy{protected: true}

// exempt declares that a route needs no protection, and why.
func exempt(why string) policy { return policy{exempt: why} }

// declared is how protected routes call their policy, which depends on the account.
const declared = "of the account"

// protection is the middleware that an endpoint's policy asks for; nil for methods that change nothing.
func (a *API) protection(e *endpoint) (func(http.Handler) http.Handler, error) {
	switch e.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch:
	default:
		return nil, nil
	}
	switch {
	case e.Idempotency.exempt != "":
		return idempotency.Exempt(e.Idempotency.exempt), nil
	case !e.Idempotency.protected:
		return nil, fmt.Errorf("%s %s declares no idempotency policy, and no reason to be exempt", e.Method, e.Path)
	case a.opts.Idempotency == nil:
		return a.unprotected, nil
	default:
		return a.opts.Idempotency.ProtectFunc(declared, func(r *http.Request) idempotency.Policy {
			return a.opts.Policy(callOf(r.Context()).key.Account)
		}), nil
	}
}

var errUnprotected = errors.New("this API was made without Options.Idempotency, and a request has an Idempotency-Key")

// unprotected stands where there is no protection to be had. A caller who sends a key expects it, and is told.
func (a *API) unprotected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header.Values(idempotency.HeaderKey)) > 0 {
			a.fail(w, r, errUnprotected)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// accounts is the name space of accounts among the ids that own keys.
var accounts = uuid.NewSHA1(uuid.NameSpaceURL, []byte("https://paidonce.dev/accounts"))

// ScopeOf is whose keys an account's are.
func ScopeOf(account string) idempotency.Scope {
	return idempotency.Scope{Account: account, Kind: "account", ID: uuid.NewSHA1(accounts, []byte(account))}
}

// Scope is the [idempotency.Options.Scope] of the API: keys belong to the account that authentication has found.
func Scope(r *http.Request) (idempotency.Scope, error) {
	account := callOf(r.Context()).key.Account
	if account == "" {
		return idempotency.Scope{}, idempotency.ErrUnauthenticated
	}
	return ScopeOf(account), nil
}

// ResourceURL is the [idempotency.Options.ResourceURL] of the API.
func ResourceURL(typ string, id uuid.UUID) string {
	switch typ {
	case resourceOrder:
		return orderPath(id)
	case resourceIncome:
		return incomePath(id)
	case resourceTransaction:
		return transactionPath(id)
	case resourceRecurrence:
		return recurrencePath(id)
	default:
		return ""
	}
}

const resourceOrder = "order"
