package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
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

// NewWithBody makes an API with one more route, POST /v1/tries, whose body's data are of a type that is named.
func NewWithBody(st Store, keys KeysFunc, name string) (*API, error) {
	switch name {
	case "multipleOf":
		return newWithBody[struct {
			Data int `json:"data" multipleOf:"5"`
		}](st, keys)
	case "float":
		return newWithBody[struct {
			Data float32 `json:"data"`
		}](st, keys)
	case "format":
		return newWithBody[struct {
			Data string `json:"data" format:"ipv4"`
		}](st, keys)
	case "enum":
		return newWithBody[struct {
			Data *string `json:"data" enum:"a,b"`
		}](st, keys)
	case "oneOf":
		return newWithBody[struct {
			Data []oneOf `json:"data"`
		}](st, keys)
	default:
		return newWithBody[struct {
			Data string `json:"data" pattern:"^a+$"`
		}](st, keys)
	}
}

type oneOf struct{}

func (oneOf) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{{Type: huma.TypeString}, {Type: huma.TypeBoolean}}}
}

func newWithBody[T any](st Store, keys KeysFunc) (*API, error) {
	type in struct{ Body T }
	return newAPI(st, keys, Options{}, func(a *API) {
		e := endpoint{ID: "try", Method: http.MethodPost, Path: "/v1/tries", Tag: tagOrders, Role: roleWrite, Summary: "Try", Idempotency: exempt("it does nothing")}
		add(a, e, func(context.Context, *call, *in) (*struct{ Body dataOf[string] }, error) {
			return &struct{ Body dataOf[string] }{dataOf[string]{"done"}}, nil
		})
	})
}
