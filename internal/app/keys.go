package app

import (
	"net/http"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store"
)

// protector keeps the promise of the Idempotency-Key header for the API, as each account has configured it.
type protector struct {
	middleware *idempotency.Middleware
	live       *live
}

var _ api.Protector = (*protector)(nil)

func (p *program) newProtector(st *store.Store) (*protector, error) {
	keys, err := idempotency.NewStore(st.Pool(), idempotency.StoreOptions{})
	if err != nil {
		return nil, err
	}
	mw, err := idempotency.New(keys, idempotency.Options{
		Scope:       scopeOf,
		ResourceURL: api.ResourceURL,
		Logger:      p.log, Registerer: p.registry,
	})
	if err != nil {
		return nil, err
	}
	return &protector{mw, p.live}, nil
}

// scopeOf says whose a request's key is: its account's, whichever of the account's API keys it shows.
func scopeOf(r *http.Request) (idempotency.Scope, error) {
	account, ok := api.Caller(r.Context())
	if !ok {
		return idempotency.Scope{}, idempotency.ErrUnauthenticated
	}
	return api.KeyScope(account), nil
}

// Protect implements [api.Protector]. A reload of the configuration takes effect with the next request.
func (p *protector) Protect(declared string) func(http.Handler) http.Handler {
	return p.middleware.ProtectFunc(declared, func(r *http.Request) idempotency.Policy {
		account, _ := api.Caller(r.Context())
		return policyOf(p.live.config().Accounts[account].Idempotency)
	})
}

// Exempt implements [api.Protector].
func (p *protector) Exempt(reason string) func(http.Handler) http.Handler {
	return idempotency.Exempt(reason)
}

// policyOf is how an account's keys are treated.
func policyOf(c config.Idempotency) idempotency.Policy {
	policy := idempotency.Strict()
	if c.Profile == config.ProfileRelaxed {
		policy = idempotency.Relaxed()
	}
	policy.Require = c.Require
	return policy
}
