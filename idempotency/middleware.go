package idempotency

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// The response headers of the middleware.
const (
	// HeaderReplayed is "true" on an answer that an earlier call with the key has got, and absent otherwise.
	HeaderReplayed = "Idempotent-Replayed"

	// HeaderStatus says what the key has done: one of the Status constants.
	HeaderStatus = "Idempotency-Status"

	// HeaderWarning is "not-stored" on an answer that could not be stored, of a handler without a transaction. Repeating the call
	// may repeat the work, so the caller should look before it does.
	HeaderWarning = "Idempotency-Warning"
)

// The values of [HeaderStatus].
const (
	StatusExecuted   = "executed"    // the handler has run for this call
	StatusReplayed   = "replayed"    // it had run for an earlier one
	StatusIgnored    = "ignored"     // the route does not heed keys
	StatusInProgress = "in-progress" // it is running for another call
)

// CORSAllowHeaders returns the request headers that a browser must be allowed to send (Access-Control-Allow-Headers).
func CORSAllowHeaders() []string { return []string{HeaderKey} }

// CORSExposeHeaders returns the response headers that a script should be able to read (Access-Control-Expose-Headers).
func CORSExposeHeaders() []string {
	return []string{HeaderReplayed, HeaderStatus, HeaderWarning, "Retry-After"}
}

// Options are the settings of a [Middleware]. Scope is required.
type Options struct {
	// Scope says whose keys a request's are, from what authentication has left in its context. The caller hears 401 if it
	// returns [ErrUnauthenticated], and 500 if it returns another error or an invalid scope. Required.
	Scope func(*http.Request) (Scope, error)

	// Authorize is asked before a stored answer is given to a caller, who may have lost the right to see it since. An error
	// answers 403. It is not asked about calls that run. Default: what stands before the middleware decides.
	Authorize func(*http.Request, Record) error

	// ResourceURL returns where a resource that [SetResource] named is found, to link to it where its answer was not kept.
	ResourceURL func(typ string, id uuid.UUID) string

	// Cipher encrypts stored answers. Default: they are stored as they are.
	Cipher Cipher

	// DocsURL is the page that explains the codes of problems, to which "#" and the code are appended.
	// Default: the IETF's draft.
	DocsURL string

	// Logger receives what somebody should know of: takeovers, calls that lost their key, unknown outcomes. Keys are
	// named by a digest. Default: discard.
	Logger *slog.Logger

	// Registerer receives the counts of decisions. Default: none are kept.
	Registerer prometheus.Registerer
}

// Middleware makes handlers safe to repeat.
type Middleware struct {
	store   *Store
	opts    Options
	docs    string
	log     *slog.Logger
	metrics *metrics
}

// New returns a middleware that keeps its keys in store.
func New(store *Store, opts Options) (*Middleware, error) {
	if store == nil {
		return nil, errors.New("idempotency: nil Store")
	}
	if opts.Scope == nil {
		return nil, errors.New("idempotency: Options.Scope is required: without it all callers would share their keys")
	}
	m := &Middleware{store: store, opts: opts, docs: opts.DocsURL, log: opts.Logger}
	if m.docs == "" {
		m.docs = docs
	}
	if m.log == nil {
		m.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if m.metrics, err = newMetrics(opts.Registerer); err != nil {
		return nil, err
	}
	return m, nil
}

// Protect returns the middleware of a route, or of a group of them, with one policy. An invalid policy panics: it is a mistake
// in the program, and this is its start.
//
// POST, PUT and PATCH are protected. Other methods pass, and are told that their key is ignored. Mount it inside of
// authentication and rate limiting, and next to the handler: what stands outside runs for replays too, and what it answers by itself
// is never stored.
func (m *Middleware) Protect(p Policy) func(http.Handler) http.Handler {
	p = p.withDefaults()
	if err := p.validate(); err != nil {
		panic(err)
	}
	return func(next http.Handler) http.Handler {
		return &protected{m: m, declared: p.Name, choose: func(*http.Request) (*Policy, error) { return &p, nil }, next: next}
	}
}

// ProtectFunc is [Middleware.Protect] where the policy depends on the request: on the account that authentication found, say.
// declared says so in the words that [Audit] repeats. A request whose policy is invalid is answered 500.
func (m *Middleware) ProtectFunc(declared string, choose func(*http.Request) Policy) func(http.Handler) http.Handler {
	if declared == "" || choose == nil {
		panic("idempotency: ProtectFunc needs a declaration and a function")
	}
	return func(next http.Handler) http.Handler {
		return &protected{m: m, declared: declared, next: next, choose: func(r *http.Request) (*Policy, error) {
			p := choose(r).withDefaults()
			return &p, p.validate()
		}}
	}
}

// protected is a handler that heeds keys.
type protected struct {
	m        *Middleware
	declared string
	choose   func(*http.Request) (*Policy, error)
	next     http.Handler
}

func (h *protected) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values := r.Header.Values(HeaderKey)
	if !heeds(r.Method) || unitOf(r.Context()) != nil { // one key guards a call once
		if len(values) > 0 && unitOf(r.Context()) == nil {
			w.Header().Set(HeaderStatus, StatusIgnored)
		}
		h.next.ServeHTTP(w, r)
		return
	}
	m := h.m
	p, err := h.choose(r)
	if err != nil {
		m.log.ErrorContext(r.Context(), "idempotency policy is invalid", "declared", h.declared, "err", err)
		m.refuse(w, nil, newProblem(http.StatusInternalServerError, CodeMisconfigured, "the route has no valid policy"))
		return
	}
	if len(values) == 0 {
		if !p.Require {
			m.metrics.count(unprotected, p)
			h.next.ServeHTTP(w, r)
			return
		}
		m.refuse(w, p, newProblem(http.StatusBadRequest, CodeKeyMissing, "this operation requires the header Idempotency-Key"))
		return
	}
	key, err := parseKey(values)
	if err != nil {
		m.refuse(w, p, newProblem(http.StatusBadRequest, CodeKeyInvalid, err.Error()))
		return
	}
	scope, problem := m.scope(r)
	if problem != nil {
		m.refuse(w, p, problem)
		return
	}
	c := &call{m: m, w: w, r: r, next: h.next, q: request{
		scope: scope, key: key, method: r.Method, target: target(r), policy: p,
	}}
	if problem := c.readBody(); problem != nil {
		m.refuse(w, p, problem)
		return
	}
	c.serve()
}

func heeds(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

func (m *Middleware) scope(r *http.Request) (Scope, *problem) {
	s, err := m.opts.Scope(r)
	if errors.Is(err, ErrUnauthenticated) {
		return s, newProblem(http.StatusUnauthorized, CodeUnauthenticated, "a key belongs to somebody who is known")
	}
	if err == nil {
		s = s.withDefaults()
		err = s.validate()
	}
	if err != nil {
		m.log.ErrorContext(r.Context(), "idempotency scope is not known", "err", err)
		return s, newProblem(http.StatusInternalServerError, CodeMisconfigured, "whose key it is could not be found out")
	}
	return s, nil
}

// refuse answers without having touched the key. Such answers are never stored. p may be nil.
func (m *Middleware) refuse(w http.ResponseWriter, p *Policy, pr *problem) {
	if d, ok := refusals[pr.Code]; ok {
		m.metrics.count(d, p)
	}
	m.write(w, pr)
}
