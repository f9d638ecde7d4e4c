package api

import (
	"context"
	"net/http"
)

// NewWithRoute makes an API with one more route, POST /v1/tries, that declares the policy named, or none at all.
func NewWithRoute(st Store, keys KeysFunc, opts Options, declared string, do func(context.Context) error) (*API, error) {
	type tryIn struct {
		Body dataOf[newOrderDoc]
	}
	return newAPI(st, keys, opts, (*API).orderEndpoints, func(a *API) {
		e := endpoint{ID: "try", Method: http.MethodPost, Path: "/v1/tries", Tag: tagOrders, Role: roleWrite, Summary: "Try"}
		switch declared {
		case "protected":
			e.Idempotency = protected
		case "exempt":
			e.Idempotency = exempt("it changes nothing")
		}
		add(a, e, func(ctx context.Context, _ *call, _ *tryIn) (*struct{ Body dataOf[string] }, error) {
			if err := do(ctx); err != nil {
				return nil, err
			}
			return &struct{ Body dataOf[string] }{dataOf[string]{"done"}}, nil
		})
	})
}

// MaxBuckets is how many accounts' buckets are remembered.
const MaxBuckets = maxBuckets

// Buckets is how many accounts' buckets are remembered now.
func (a *API) Buckets() int {
	a.buckets.mu.Lock()
	defer a.buckets.mu.Unlock()
	return len(a.buckets.of)
}
