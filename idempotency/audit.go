package idempotency

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

// Exempt declares that a route which changes something needs no keys, and why: because it is idempotent by itself, say. A key that
// is sent all the same is ignored, and the caller is told so. An empty reason panics.
func Exempt(reason string) func(http.Handler) http.Handler {
	if reason == "" {
		panic("idempotency: Exempt needs a reason")
	}
	return func(next http.Handler) http.Handler { return &exempt{reason: reason, next: next} }
}

type exempt struct {
	reason string
	next   http.Handler
}

func (h *exempt) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if heeds(r.Method) && len(r.Header.Values(HeaderKey)) > 0 && unitOf(r.Context()) == nil {
		w.Header().Set(HeaderStatus, StatusIgnored)
	}
	h.next.ServeHTTP(w, r)
}

// Audit walks the routes of a chi router, and returns an error for every POST, PUT and PATCH that declares neither a policy
// ([Middleware.Protect], [Middleware.ProtectFunc]) nor an exemption ([Exempt]), and for every one that declares two things. Call it when
// the program starts, and in a test: a route that somebody forgot is then found before it is called twice.
//
// Declarations are found by applying each middleware to a handler that is never called, so a middleware must not hide what it
// was given in a declaration of ours inside of its own.
func Audit(r chi.Routes) error {
	var errs []error
	err := chi.Walk(r, func(method, route string, h http.Handler, mws ...func(http.Handler) http.Handler) error {
		if !heeds(method) {
			return nil
		}
		var found []string
		for _, mw := range mws {
			if d := declaration(mw(probe{})); d != "" {
				found = append(found, d)
			}
		}
		if d := declaration(h); d != "" {
			found = append(found, d)
		}
		switch {
		case len(found) == 0:
			errs = append(errs, fmt.Errorf("idempotency: %s %s declares no policy and no exemption", method, route))
		case len(found) > 1:
			errs = append(errs, fmt.Errorf("idempotency: %s %s declares %d things: %q", method, route, len(found), found))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// probe stands where a handler would.
type probe struct{}

func (probe) ServeHTTP(http.ResponseWriter, *http.Request) {}

// declaration is what h says of itself, or "".
func declaration(h http.Handler) string {
	switch h := h.(type) {
	case *protected:
		return "policy " + h.declared
	case *exempt:
		return "exempt: " + h.reason
	}
	return ""
}
