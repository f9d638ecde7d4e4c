package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
)

const tagKeys = "idempotency keys"

// Keys tells what is known of an Idempotency-Key. A *[idempotency.Store] is one.
type Keys interface {
	// Inspect returns an error that is [idempotency.ErrNotFound] for a key of anybody else.
	Inspect(ctx context.Context, sc idempotency.Scope, key string) (idempotency.Record, error)
}

func (a *API) keyEndpoints() {
	add(a, endpoint{
		ID: "getIdempotencyKey", Method: http.MethodGet, Path: "/v1/idempotency-keys/{key}", Tag: tagKeys, Role: roleRead,
		Summary: "Say what became of an Idempotency-Key",
		Description: "Whether the request was done, what it made, and what the next call with the key would get. Nothing of its body or answer is shown. " +
			"The key is escaped in the path.",
		Codes: []Code{CodeKeyNotFound},
		Response: `{"data": {"state": "COMPLETED", "method": "POST", "path": "/v1/orders", "policy": "strict", "attempts": 1, "created_at": "2026-10-01T09:00:00Z",
  "completed_at": "2026-10-01T09:00:00Z", "expires_at": "2026-10-03T09:00:00Z", "expired": false, "response_code": 201,
  "resource": {"type": "order", "id": "0199a1b2-0000-7000-8000-000000000001", "href": "/v1/orders/0199a1b2-0000-7000-8000-000000000001"},
  "next": "replay", "next_other": "key_reused"}}`,
	}, a.getKey)
}

type getKeyIn struct {
	Key string `path:"key" doc:"The key, as it was sent, without quotation marks around it."`
}

type getKeyOut struct {
	Body dataOf[KeyDoc]
}

// KeyDoc is what is known of an Idempotency-Key, as JSON.
type KeyDoc struct {
	_ struct{} `additionalProperties:"true"`

	State        string       `json:"state" enum:"PROCESSING,COMPLETED,FAILED" doc:"PROCESSING: a call is being executed, or has died and will be taken over; COMPLETED: it was done and answered; FAILED: nothing of it was kept, and it may be sent again."`
	Method       string       `json:"method"`
	Path         string       `json:"path" doc:"With its query; or a digest, if it is long."`
	Policy       string       `json:"policy"`
	Attempts     int          `json:"attempts" doc:"How often the request was begun."`
	LockAge      *int64       `json:"lock_age_seconds,omitempty" doc:"How long ago the call that is being executed last said that it lives."`
	LockTimeout  *int64       `json:"lock_timeout_seconds,omitempty" doc:"After which it is taken to be dead."`
	CreatedAt    time.Time    `json:"created_at" doc:"The first use."`
	CompletedAt  *time.Time   `json:"completed_at,omitempty"`
	ExpiresAt    time.Time    `json:"expires_at" doc:"After that the key may be used for something else."`
	Expired      bool         `json:"expired"`
	ResponseCode int          `json:"response_code,omitempty" doc:"HTTP status of the answer, once there is one."`
	Resource     *resourceDoc `json:"resource,omitempty" doc:"What the request made."`
	LastError    string       `json:"last_error,omitempty" doc:"Why the last attempt failed, in a word."`
	Next         string       `json:"next" enum:"replay,result_unavailable,in_progress,execute" doc:"What the next call of the same request would get."`
	NextOther    string       `json:"next_other" enum:"key_reused,in_progress,execute" doc:"What another request with this key would get."`
}

func (a *API) getKey(ctx context.Context, c *call, in *getKeyIn) (*getKeyOut, error) {
	notFound := problem(CodeKeyNotFound, "This account has used no such Idempotency-Key, or it has expired.")
	if a.opts.Keys == nil {
		return nil, notFound
	}
	r, err := a.opts.Keys.Inspect(ctx, ScopeOf(c.key.Account), in.Key)
	if errors.Is(err, idempotency.ErrNotFound) {
		return nil, notFound
	}
	if err != nil {
		return nil, err
	}
	return &getKeyOut{Body: dataOf[KeyDoc]{KeyOf(r)}}, nil
}

// KeyOf is a record of a key as the API shows it.
func KeyOf(r idempotency.Record) KeyDoc {
	doc := KeyDoc{
		State: r.State, Method: r.Method, Path: r.Path, Policy: r.Policy, Attempts: r.Attempts, CreatedAt: r.CreatedAt,
		ExpiresAt: r.ExpiresAt, Expired: r.Expired, ResponseCode: r.ResponseCode, LastError: r.LastError, Next: r.Next, NextOther: r.NextOther,
	}
	if !r.CompletedAt.IsZero() {
		doc.CompletedAt = &r.CompletedAt
	}
	if r.LockTimeout > 0 && r.State == "PROCESSING" {
		age, timeout := int64(r.LockAge/time.Second), int64(r.LockTimeout/time.Second)
		doc.LockAge, doc.LockTimeout = &age, &timeout
	}
	if r.ResourceID != uuid.Nil {
		doc.Resource = &resourceDoc{Type: r.ResourceType, ID: r.ResourceID.String(), Href: ResourceURL(r.ResourceType, r.ResourceID)}
	}
	return doc
}
