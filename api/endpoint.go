package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"github.com/paidonce/paidonce/idempotency"
)

// endpoint is everything about a route that is not its code: who may call it, what a second call does, what it may
// answer. The document is made of it.
type endpoint struct {
	ID           string // of the operation: a verb and a noun, for generated clients
	Method, Path string
	Tag          string
	Summary      string // a few words
	Description  string
	Role         role

	// Idempotency says what the Idempotency-Key header does here. POST, PUT and PATCH must say it.
	Idempotency policy

	// Status is that of a success. Default 200. Also are others, with the same body.
	Status int
	Also   []int

	// Codes are the errors beside those that the kind of route has by itself.
	Codes []Code

	// Request and Response are examples of the bodies, in JSON.
	Request, Response string
}

// handler does the work. ctx lives on when the caller hangs up. Its error is a [*Problem], or anything else, which
// becomes a 503.
type handler[I, O any] func(ctx context.Context, c *call, in *I) (*O, error)

// add mounts an endpoint. In has fields tagged path, query and header, and a field Body; out has fields tagged header, a
// field Status if there are several, and a field Body (see huma).
func add[I, O any](a *API, e endpoint, do handler[I, O]) {
	e.Status = cmp.Or(e.Status, http.StatusOK)
	op := huma.Operation{
		OperationID: e.ID, Method: e.Method, Path: e.Path, Tags: []string{e.Tag}, Summary: e.Summary, Description: e.Description,
		DefaultStatus: e.Status, Responses: map[string]*huma.Response{"default": {}}, // ours are added below
		SkipValidateParams: true, SkipValidateBody: true, MaxBodyBytes: -1, BodyReadTimeout: -1, // see check
		Security: []map[string][]string{{bearer: {string(e.Role)}}},
		Metadata: map[string]any{metaEndpoint: &e},
	}
	huma.Register(a.huma, op, func(ctx context.Context, in *I) (*O, error) {
		c := callOf(ctx)
		out, err := do(ctx, c, in)
		if err != nil {
			c.failure = err
			return nil, handled
		}
		if out == nil {
			c.failure = errors.New("a handler that answers nothing")
			return nil, handled
		}
		return out, nil
	})
}

// handled is what huma is told of an error that fail will answer.
var handled = problem(CodeUnavailable, "")

const metaEndpoint = "endpoint"

// adapter mounts what huma registers.
type adapter struct {
	*API
	router chi.Router
}

// ServeHTTP implements huma.Adapter.
func (ad adapter) ServeHTTP(w http.ResponseWriter, r *http.Request) { ad.router.ServeHTTP(w, r) }

// Handle mounts an operation behind the middlewares of every route, in this order: observe, authenticate, limit, and
// what the endpoint says of idempotency.
func (ad adapter) Handle(op *huma.Operation, do func(huma.Context)) {
	e := op.Metadata[metaEndpoint].(*endpoint)
	ck, err := ad.checkOf(op)
	if err != nil {
		ad.wrong = append(ad.wrong, err)
		return
	}
	mws := []func(http.Handler) http.Handler{ad.observe(e.Path), ad.authenticate(e.Role), ad.limit}
	protect, err := ad.protection(e)
	if err != nil {
		ad.wrong = append(ad.wrong, err)
		return
	}
	if protect != nil {
		mws = append(mws, protect)
	}
	r := ad.router.With(mws...)
	h := ad.run(op, ck, do)
	r.Method(op.Method, op.Path, h)
	if op.Method == http.MethodGet {
		r.Method(http.MethodHead, op.Path, h)
	}
	ad.document(op, e)
}

// run is the innermost handler of a route: it checks the request, has huma read it and call the endpoint, and answers.
func (a *API) run(op *huma.Operation, ck *check, do func(huma.Context)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := callOf(r.Context())
		c.begin()
		var x *exchange
		err := caught(c, func() error {
			if err := ck.request(r, c); err != nil {
				return err
			}
			ctx, cancel := a.handling(r.Context())
			defer cancel()
			x = &exchange{humaContext: humachi.NewContext(op, r.WithContext(ctx), w), lines: r.Header, body: c.body, header: http.Header{}}
			do(x)
			switch {
			case c.failure != nil:
				return c.failure
			case x.status >= http.StatusBadRequest || x.status == 0:
				return fmt.Errorf("huma refused with status %d what was found in order", x.status)
			}
			return nil
		})
		if err != nil {
			a.fail(w, r, err)
			idempotency.Fail(r.Context(), c.err)
			return
		}
		x.flush(w)
	}
}

// handling is the context of a handler. What was asked for is finished though the caller hangs up: its next try finds it
// done. Under an Idempotency-Key that is settled already.
func (a *API) handling(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := idempotency.Tx(ctx); !ok {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, a.opts.Timeout)
}
