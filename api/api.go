// Package api is the merchant's own HTTP API, /v1: what a back end says about its orders, and asks about them.
//
// Everything that can move an order enters as an event of the account's source "api", through the same ingest as the
// gateways' webhooks, and is answered only after it was committed. The account is that of the API key, never a part of
// the request. Every error is an RFC 9457 problem document (application/problem+json) with a code for programs and, for
// a body that was refused, the place as a JSON pointer (RFC 6901). No answer and no log line holds a key or a body.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// Ingester commits events. It returns one result per event, in the order of events, after they were committed, and
// an error if any of them was not, or if nobody knows.
type Ingester interface {
	Ingest(ctx context.Context, events []store.Event) ([]store.Result, error)
}

// Orders reads orders. A *[store.Store] is one.
type Orders interface {
	// GetOrder returns the order of that id of the account, or an error that is [store.ErrNotFound].
	GetOrder(ctx context.Context, account string, id uuid.UUID) (store.Order, error)
}

// Options are optional settings of an [API]. The zero value is ready to use.
type Options struct {
	// MaxBody is the largest accepted body in bytes. Default 1 MiB.
	MaxBody int64

	// Timeout is how long a request may take once its body was read. Default 10 s.
	Timeout time.Duration

	// RetryAfter is what a 503 asks the caller to wait. Default 2 s.
	RetryAfter time.Duration

	// Now reports the current time: the time of the events that are made. Default time.Now.
	Now func() time.Time

	// Logger receives one line per request. Default: discard.
	Logger *slog.Logger

	// Registerer takes the metrics. Default: they are counted, and registered nowhere.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 2 * time.Second
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// API serves /v1:
//
//	POST /v1/orders        registers an order (role write)
//	GET  /v1/orders/{id}   an order as it stands (role read)
//
// It is safe for concurrent use.
type API struct {
	ingest  Ingester
	orders  Orders
	keys    KeysFunc
	opts    Options
	router  chi.Router
	metrics *metrics
}

// New returns an API whose callers are known by keys. The first three are required. It fails on a negative option, or
// if Options.Registerer already has metrics of these names.
func New(ing Ingester, orders Orders, keys KeysFunc, opts Options) (*API, error) {
	if ing == nil || orders == nil || keys == nil {
		return nil, errors.New("api: nil Ingester, Orders or KeysFunc")
	}
	for name, v := range map[string]int64{"MaxBody": opts.MaxBody, "Timeout": int64(opts.Timeout), "RetryAfter": int64(opts.RetryAfter)} {
		if v < 0 {
			return nil, fmt.Errorf("api: Options.%s is negative; it must be 0 (default) or more", name)
		}
	}
	a := &API{ingest: ing, orders: orders, keys: keys, opts: opts.withDefaults(), metrics: newMetrics()}
	if err := a.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	r := chi.NewRouter()
	a.handle(r, http.MethodPost, "/v1/orders", roleWrite, a.registerOrder)
	a.handle(r, http.MethodGet, "/v1/orders/{id}", roleRead, a.readOrder)
	r.NotFound(a.serve("", func(*http.Request, *record) (*response, error) {
		return nil, problem(http.StatusNotFound, "not_found", "There is nothing at this path.")
	}))
	r.MethodNotAllowed(func(w http.ResponseWriter, r *http.Request) {
		a.serve("", func(*http.Request, *record) (*response, error) {
			return nil, a.methodNotAllowed(r)
		})(w, r)
	})
	a.router = r
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// handle mounts an endpoint. Whoever has not shown a key with the role learns nothing else, and its body is not read.
func (a *API) handle(r chi.Router, method, pattern string, need role, do endpoint) {
	r.Method(method, pattern, a.serve(pattern, func(req *http.Request, l *record) (*response, error) {
		key, err := a.authenticate(req)
		if err != nil {
			return nil, err
		}
		l.account = key.Account
		if !key.has(need) {
			return nil, problem(http.StatusForbidden, "forbidden", "This API key lacks the role "+string(need)+".")
		}
		return do(req, l)
	}))
}

// methodNotAllowed finds out what would have been allowed, which a 405 must say.
func (a *API) methodNotAllowed(r *http.Request) *Problem {
	p := problem(http.StatusMethodNotAllowed, "method_not_allowed", "This path does not know this method.")
	for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete} {
		if a.router.Match(chi.NewRouteContext(), m, r.URL.EscapedPath()) {
			p.allow = append(p.allow, m)
		}
	}
	return p
}

// endpoint handles an authenticated request. Its error is a [*Problem], or anything else, which becomes a 503.
type endpoint func(r *http.Request, l *record) (*response, error)

// response is what an endpoint answers: data is the value of "data" in the body.
type response struct {
	status int
	header map[string]string
	data   any
}

// seconds is d as Retry-After wants it: whole, rounded up, at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}
