// Package api is the merchant's own HTTP API, /v1: what a back end says about its orders, and asks about them.
//
// Everything that can move an order enters as an event of the account's source "api", through the same write path as the
// gateways' webhooks, and is answered only after it was committed. The account is that of the API key, never a part of
// the request. Every error is an RFC 9457 problem document (application/problem+json) with a code for programs and, for
// a body that was refused, the place as a JSON pointer (RFC 6901). No answer and no log line holds a key or a body.
//
// A route is an [endpoint]: the OpenAPI document is made of it, and what a request may say is checked against that very
// document. Middlewares come in one order: authenticate, rate limit, idempotency, handler.
//
// There is no CORS: the API is for servers, and a key in a browser would be everybody's. OPTIONS is answered 405.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

// Store is what the API reads and writes. A *[store.Store] is one. Every method sees the rows of the account alone that it is
// asked about.
type Store interface {
	// InTx runs a unit of work that is not part of another, see [API.unit]; Clock, Command and OrderTx belong to one.
	InTx(ctx context.Context, f func(store.Tx) error) error
	Clock(ctx context.Context, tx store.Tx) (time.Time, error)
	Command(ctx context.Context, tx store.Tx, e store.Event, cond store.Condition) (store.Result, error)
	OrderTx(ctx context.Context, tx store.Tx, account string, id uuid.UUID) (store.Order, error)
	PaymentsNamed(ctx context.Context, tx store.Tx, account string, realms []string, id string) ([]store.PaymentID, error)
	EventsByIDTx(ctx context.Context, tx store.Tx, account, id string) ([]store.StoredEvent, error)
	DismissEvent(ctx context.Context, tx store.Tx, key store.EventKey, dismissed bool) error

	CreateRecurrence(ctx context.Context, tx store.Tx, n store.NewRecurrence) (r store.Recurrence, created bool, err error)
	EndRecurrence(ctx context.Context, tx store.Tx, account string, id uuid.UUID, on period.Date) (store.Recurrence, error)
	GetRecurrence(ctx context.Context, account string, id uuid.UUID) (store.Recurrence, error)
	ListRecurrences(ctx context.Context, f store.RecurrenceFilter) ([]store.Recurrence, uuid.UUID, error)

	// GetOrder returns the order of that id of the account, or an error that is [store.ErrNotFound].
	GetOrder(ctx context.Context, account string, id uuid.UUID) (store.Order, error)
	ListOrders(ctx context.Context, f store.OrderFilter) ([]store.Order, uuid.UUID, error)
	Timeline(ctx context.Context, account string, id uuid.UUID) (store.Timeline, error)

	CreateIncome(ctx context.Context, tx store.Tx, n store.NewIncome) (store.EnteredIncome, error)
	VoidIncome(ctx context.Context, tx store.Tx, account string, id uuid.UUID) (store.Income, bool, error)
	GetIncome(ctx context.Context, account string, id uuid.UUID) (store.Income, error)
	ListIncomes(ctx context.Context, f store.IncomeFilter) ([]store.Income, uuid.UUID, error)

	CreateTransaction(ctx context.Context, tx store.Tx, n store.NewTransaction) (store.EnteredTransaction, error)
	ResolveTransaction(ctx context.Context, tx store.Tx, account string, id uuid.UUID, r store.MoveResolution) (store.Transaction, error)
	Reservations(ctx context.Context, tx store.Tx, account string, id uuid.UUID) ([]store.Reservation, error)
	OrderTransactions(ctx context.Context, tx store.Tx, account string, id uuid.UUID) ([]store.Transaction, error)
	GetTransaction(ctx context.Context, account string, id uuid.UUID) (store.Transaction, error)
	ListTransactions(ctx context.Context, f store.TransactionFilter) ([]store.Transaction, uuid.UUID, error)

	ListEvents(ctx context.Context, f store.EventFilter) ([]store.StoredEvent, store.EventCursor, error)
	EventsByID(ctx context.Context, account, id string) ([]store.StoredEvent, error)
	ReplacedMeanings(ctx context.Context, key store.EventKey) ([]store.ReplacedMeaning, error)
	Payload(ctx context.Context, key store.EventKey) (store.StoredPayload, error)

	ReconcileCursors(ctx context.Context, account string) ([]store.ReconcileCursor, error)
	ReconcileRuns(ctx context.Context, f store.ReconcileRunFilter) ([]store.ReconcileRun, uuid.UUID, error)

	Effects(ctx context.Context, f store.EffectFilter, after *store.Effect, limit int) ([]store.Effect, error)
	CountEffects(ctx context.Context, f store.EffectFilter) (int, error)
	RetryEffects(ctx context.Context, f store.EffectFilter, each func(store.Effect, store.RetryOutcome)) error

	Attention(ctx context.Context, f store.AttentionFilter) (store.Attention, error)
}

// Options are optional settings of an [API]. The zero value is ready to use.
type Options struct {
	// MaxBody is the largest accepted body in bytes. Default 1 MiB.
	MaxBody int64

	// BodyTimeout is how long a body may take to arrive. Default 10 s.
	BodyTimeout time.Duration

	// Timeout is how long a request may take once its body was read. Default 10 s.
	Timeout time.Duration

	// RetryAfter is what a 503 asks the caller to wait. Default 2 s.
	RetryAfter time.Duration

	// Rate is how many requests an account may send to this process in a second, over time. Default 100.
	Rate int

	// Burst is how many of them may come at once. Default 200.
	Burst int

	// Idempotency keeps the promise of the Idempotency-Key header; its Scope is [Scope]. Default: there is none, and a request
	// with the header is answered 503 rather than taken without it.
	Idempotency *idempotency.Middleware

	// Keys tells what became of a key. Default: none is known.
	Keys Keys

	// Policy is how an account's requests are protected. Default: [idempotency.Strict], and the header may be missing.
	Policy func(account string) idempotency.Policy

	// Sources returns the configured sources of an account, which confirmations and links are about, and whose gateways are asked to
	// move money; see [NewSource]. Default: there are none.
	Sources func(account string) []Source

	// TimeZone is the IANA name of the zone in which an account's recurrences begin. Default: UTC.
	TimeZone func(account string) string

	// Replay reads an event of a gateway again with the mapping and the options of today, and says what came of it; without
	// apply, what would. Default: events are not read again.
	Replay func(ctx context.Context, key store.EventKey, apply bool) (store.Reevaluated, error)

	// Now reports the current time, for rates and durations: events have the database's. Default time.Now.
	Now func() time.Time

	// Logger receives one line per request. Default: discard.
	Logger *slog.Logger

	// Registerer takes the metrics. Default: they are counted, and registered nowhere.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.BodyTimeout == 0 {
		o.BodyTimeout = 10 * time.Second
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 2 * time.Second
	}
	if o.Rate == 0 {
		o.Rate = 100
	}
	if o.Burst == 0 {
		o.Burst = 200
	}
	if o.Policy == nil {
		o.Policy = func(string) idempotency.Policy {
			p := idempotency.Strict()
			p.Require = false
			return p
		}
	}
	if o.Sources == nil {
		o.Sources = func(string) []Source { return nil }
	}
	if o.TimeZone == nil {
		o.TimeZone = func(string) string { return "UTC" }
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// API serves /v1; its own description is at /v1/openapi.json. It is safe for concurrent use.
type API struct {
	store   Store
	keys    KeysFunc
	opts    Options
	router  chi.Router
	huma    huma.API
	schemas *schemas
	buckets *buckets
	metrics *metrics
	wrong   []error // what is wrong with endpoints
}

// New returns an API whose callers are known by keys. The first two are required. It fails on a negative option, if
// Options.Registerer already has metrics of these names, or if an endpoint is not declared as it must be.
func New(st Store, keys KeysFunc, opts Options) (*API, error) {
	return newAPI(st, keys, opts, endpoints...)
}

// endpoints are the groups of all there are.
var endpoints = []func(*API){
	(*API).orderEndpoints,
	(*API).amendEndpoint,
	(*API).confirmEndpoint,
	(*API).cancelEndpoint,
	(*API).linkEndpoint,
	(*API).dismissEndpoints,
	(*API).orderListEndpoints,
	(*API).timelineEndpoints,
	(*API).eventEndpoints,
	(*API).replayEndpoints,
	(*API).effectEndpoints,
	(*API).attentionEndpoint,
	(*API).keyEndpoints,
	(*API).incomeEndpoints,
	(*API).recurrenceEndpoints,
	(*API).reconciliationEndpoints,
	(*API).transactionEndpoints,
}

func newAPI(st Store, keys KeysFunc, opts Options, groups ...func(*API)) (*API, error) {
	if st == nil || keys == nil {
		return nil, errors.New("api: nil Store or KeysFunc")
	}
	for name, v := range map[string]int64{
		"MaxBody": opts.MaxBody, "BodyTimeout": int64(opts.BodyTimeout), "Timeout": int64(opts.Timeout), "RetryAfter": int64(opts.RetryAfter),
		"Rate": int64(opts.Rate), "Burst": int64(opts.Burst),
	} {
		if v < 0 {
			return nil, fmt.Errorf("api: Options.%s is negative; it must be 0 (default) or more", name)
		}
	}
	a := &API{store: st, keys: keys, opts: opts.withDefaults(), router: chi.NewRouter(), metrics: newMetrics()}
	a.buckets = newBuckets(a.opts.Rate, a.opts.Burst)
	a.newDocument()
	for _, add := range groups {
		add(a)
	}
	if err := a.serveDocument(); err != nil {
		a.wrong = append(a.wrong, err)
	}
	a.router.NotFound(a.plain(func(w http.ResponseWriter, r *http.Request) {
		a.fail(w, r, problem(CodeNotFound, "There is nothing at this path."))
	}))
	a.router.MethodNotAllowed(a.plain(func(w http.ResponseWriter, r *http.Request) {
		p := problem(CodeMethodNotAllowed, "This path does not know this method.")
		p.allow = a.allowed(r)
		a.fail(w, r, p)
	}))
	if a.opts.Idempotency != nil {
		a.wrong = append(a.wrong, idempotency.Audit(a.router))
	}
	if err := errors.Join(a.wrong...); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if err := a.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	return a, nil
}

// ServeHTTP implements http.Handler.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.router.ServeHTTP(w, r) }

// plain is a handler outside of the document.
func (a *API) plain(h http.HandlerFunc) http.HandlerFunc { return a.observe("")(h).ServeHTTP }

// allowed finds out which methods a path knows, which a 405 must say.
func (a *API) allowed(r *http.Request) []string {
	var allow []string
	for _, m := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if a.router.Match(chi.NewRouteContext(), m, r.URL.EscapedPath()) {
			allow = append(allow, m)
		}
	}
	return allow
}
