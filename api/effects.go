package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const tagEffects = "effects"

func (a *API) effectEndpoints() {
	again := exempt("a retry makes due what is still owed: a second one finds it due, done, or not wanted any more")
	add(a, endpoint{
		ID: "listEffects", Method: http.MethodGet, Path: "/v1/effects", Tag: tagEffects, Role: roleRead,
		Summary:     "List what you were told or must be told, by order",
		Description: "An effect is what your callback is called with: fulfil, hold, release or revoke an order. The oldest order comes first. All filters must hold.",
		Codes:       []Code{CodeInvalidCursor}, Response: pageExample(effectExample),
	}, a.listEffects)
	add(a, endpoint{
		ID: "getEffect", Method: http.MethodGet, Path: "/v1/effects/{key}", Tag: tagEffects, Role: roleRead,
		Summary: "Show an effect", Description: "Its key is the Idempotency-Key that your callback gets.",
		Codes: []Code{CodeEffectNotFound}, Response: effectExample,
	}, a.getEffect)
	add(a, endpoint{
		ID: "retryEffect", Method: http.MethodPost, Path: "/v1/effects/{key}/retry", Tag: tagEffects, Role: roleOperate,
		Summary: "Make an effect due now",
		Description: "One that was given up has all its attempts again. Whether it is still wanted is computed anew: the outcome is retried, superseded (the " +
			"order does not want it any more), or changed (it was called or ended while we looked).",
		Idempotency: again, Codes: []Code{CodeEffectNotFound, CodeEffectNotRetryable},
		Response: `{"data": {"outcome": "retried", "effect": ` + inner(effectExample) + `}}`,
	}, a.retryEffect)
	add(a, endpoint{
		ID: "retryEffects", Method: http.MethodPost, Path: "/v1/effects/retry", Tag: tagEffects, Role: roleOperate,
		Summary:     "Make all effects of a filter due now",
		Description: "A dry run, the default, counts those that match. Without states, those that are dead. Up to 64 orders commit together.",
		Idempotency: again,
		Request:     `{"data": {"dry_run": true, "filter": {"effects": ["fulfil"], "asked_from": "2026-10-01T00:00:00Z"}}}`,
		Response:    `{"data": {"dry_run": true, "matching": 12}}`,
	}, a.retryEffects)
}

// effectDoc is an effect that an order owes or owed.
type effectDoc struct {
	_ struct{} `additionalProperties:"true"`

	Key          string            `json:"key" doc:"The Idempotency-Key that your callback gets."`
	OrderID      uuid.UUID         `json:"order_id" format:"uuid"`
	ExternalRef  string            `json:"external_ref"`
	Version      int               `json:"version" doc:"Of the order, that asked for it."`
	Effect       order.Effect      `json:"effect"`
	State        order.EffectState `json:"state" doc:"open, claimed: a call is out, done, canceled: never tried and not wanted any more, assumed: tried, never confirmed, and its opposite is owed, dead: given up until somebody retries it."`
	After        order.Told        `json:"after,omitempty" doc:"What you have been told once it is done. Not in timelines."`
	Attempts     int               `json:"attempts"`
	AskedAt      time.Time         `json:"asked_at"`
	NextAt       *time.Time        `json:"next_at,omitempty" doc:"When it is tried, of an open one."`
	ClaimedUntil *time.Time        `json:"claimed_until,omitempty" doc:"Until when the call that is out may take."`
	SettledAt    *time.Time        `json:"settled_at,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Why          string            `json:"why,omitempty" doc:"Why it was canceled or assumed."`
	OrderState   order.State       `json:"order_state" doc:"As it is now."`
	Parked       bool              `json:"parked,omitempty" doc:"It was tried, is not wanted at present, and waits for the order to change."`
}

func effectOf(e store.Effect) effectDoc {
	return effectDoc{
		Key: e.Key(), OrderID: e.Order, ExternalRef: e.Ref, Version: e.Version, Effect: e.Effect, State: e.State, After: e.After,
		Attempts: e.Attempts, AskedAt: e.AskedAt, NextAt: e.NextAt, ClaimedUntil: e.ClaimedUntil, SettledAt: e.SettledAt,
		LastError: e.LastError, Why: e.Why, OrderState: e.OrderState, Parked: e.Parked,
	}
}

type listEffectsIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	OrderID     string              `query:"order_id" format:"uuid" doc:"Only of this order."`
	ExternalRef string              `query:"external_ref" maxLength:"255" doc:"Only of the order of this name."`
	State       []order.EffectState `query:"state" maxItems:"6" nullable:"false" doc:"Only in one of these states, with commas between."`
	Effect      []order.Effect      `query:"effect" maxItems:"4" nullable:"false" doc:"Only these effects, with commas between."`
	AskedFrom   time.Time           `query:"asked_from" doc:"Only those that became owed at or after this time."`
	AskedUntil  time.Time           `query:"asked_until" doc:"Only those that became owed before this time."`
}

type listEffectsOut struct {
	Body pageOf[effectDoc]
}

func (a *API) listEffects(ctx context.Context, c *call, in *listEffectsIn) (*listEffectsOut, error) {
	at, err := cursorOf(listEffects, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.EffectFilter{
		Account: c.key.Account, Ref: in.ExternalRef, States: in.State, Effects: in.Effect, AskedFrom: in.AskedFrom, AskedUntil: in.AskedUntil,
	}
	if in.OrderID != "" {
		f.Order = uuid.MustParse(in.OrderID)
	}
	var after *store.Effect
	if in.Cursor != "" {
		after = &store.Effect{Account: c.key.Account, Order: at.ID, Version: int(at.Order)}
	}
	found, err := a.store.Effects(ctx, f, after, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &listEffectsOut{}
	if len(found) > in.Limit {
		found = found[:in.Limit]
		last := found[in.Limit-1]
		if out.Body.Next, err = (cursor{List: listEffects, ID: last.Order, Order: int32(last.Version)}).next(); err != nil { //nolint:gosec // an integer of Postgres
			return nil, err
		}
	}
	for _, e := range found {
		out.Body.Data = append(out.Body.Data, effectOf(e))
	}
	return out, nil
}

// findEffect returns the effect of a key, which is {order}:{version}:{effect}.
func (a *API) findEffect(ctx context.Context, c *call, key string) (store.Effect, error) {
	notFound := problem(CodeEffectNotFound, "This account has no effect of that key.")
	f, ok := effectKey(c.key.Account, key)
	if !ok {
		return store.Effect{}, notFound
	}
	found, err := a.store.Effects(ctx, f, nil, 1)
	if err != nil {
		return store.Effect{}, err
	}
	if len(found) == 0 || found[0].Key() != key {
		return store.Effect{}, notFound
	}
	c.order = found[0].Order.String()
	return found[0], nil
}

func effectKey(account, key string) (store.EffectFilter, bool) {
	parts := strings.Split(key, ":")
	if len(parts) != 3 {
		return store.EffectFilter{}, false
	}
	id, err := uuid.Parse(parts[0])
	if err != nil || id == uuid.Nil {
		return store.EffectFilter{}, false
	}
	version, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || version < 1 {
		return store.EffectFilter{}, false
	}
	return store.EffectFilter{Account: account, Order: id, Version: int(version)}, true
}

type effectIn struct {
	Key string `path:"key" doc:"The effect's key: order, version and effect, with colons between."`
}

type getEffectOut struct {
	Body dataOf[effectDoc]
}

func (a *API) getEffect(ctx context.Context, c *call, in *effectIn) (*getEffectOut, error) {
	e, err := a.findEffect(ctx, c, in.Key)
	if err != nil {
		return nil, err
	}
	return &getEffectOut{Body: dataOf[effectDoc]{effectOf(e)}}, nil
}

type retriedDoc struct {
	_ struct{} `additionalProperties:"true"`

	Outcome store.RetryOutcome `json:"outcome" enum:"retried,superseded,changed"`
	Effect  effectDoc          `json:"effect" doc:"As it is now."`
}

type retryEffectOut struct {
	Body dataOf[retriedDoc]
}

func (a *API) retryEffect(ctx context.Context, c *call, in *effectIn) (*retryEffectOut, error) {
	e, err := a.findEffect(ctx, c, in.Key)
	if err != nil {
		return nil, err
	}
	if e.State != order.EffectOpen && e.State != order.EffectDead {
		return nil, problemf(CodeEffectNotRetryable, "The effect is %s; only one that is open or dead can be retried.", e.State)
	}
	f, _ := effectKey(c.key.Account, in.Key)
	f.States = []order.EffectState{order.EffectOpen, order.EffectDead}
	outcome := store.RetryChanged
	if err := a.store.RetryEffects(ctx, f, func(_ store.Effect, o store.RetryOutcome) { outcome = o }); err != nil {
		return nil, err
	}
	if e, err = a.findEffect(ctx, c, in.Key); err != nil {
		return nil, err
	}
	return &retryEffectOut{Body: dataOf[retriedDoc]{retriedDoc{Outcome: outcome, Effect: effectOf(e)}}}, nil
}

type retryEffectsIn struct {
	Body dataOf[retryDoc]
}

type retryDoc struct {
	DryRun *bool          `json:"dry_run,omitempty" nullable:"false" doc:"False does it; true, the default, only counts."`
	Filter retryFilterDoc `json:"filter" doc:"All of it must hold."`
}

type retryFilterDoc struct {
	OrderID     string              `json:"order_id,omitempty" format:"uuid" doc:"Only of this order."`
	ExternalRef string              `json:"external_ref,omitempty" minLength:"1" maxLength:"255" doc:"Only of the order of this name."`
	States      []order.EffectState `json:"states,omitempty" nullable:"false" minItems:"1" maxItems:"2" doc:"open, dead, or both. Default: dead."`
	Effects     []order.Effect      `json:"effects,omitempty" nullable:"false" minItems:"1" maxItems:"4" doc:"Only these effects."`
	AskedFrom   time.Time           `json:"asked_from,omitzero" doc:"Only those that became owed at or after this time."`
	AskedUntil  time.Time           `json:"asked_until,omitzero" doc:"Only those that became owed before this time."`
}

type retryEffectsOut struct {
	Body dataOf[retriesDoc]
}

type retriesDoc struct {
	_ struct{} `additionalProperties:"true"`

	DryRun     bool `json:"dry_run"`
	Matching   int  `json:"matching" doc:"How many matched when they were counted."`
	Retried    *int `json:"retried,omitempty" doc:"Due now. Absent in a dry run, as the others."`
	Superseded *int `json:"superseded,omitempty" doc:"Not wanted by their orders any more."`
	Changed    *int `json:"changed,omitempty" doc:"Called or ended while we looked."`
}

func (a *API) retryEffects(ctx context.Context, c *call, in *retryEffectsIn) (*retryEffectsOut, error) {
	said := in.Body.Data
	f := store.EffectFilter{
		Account: c.key.Account, Ref: said.Filter.ExternalRef, States: said.Filter.States, Effects: said.Filter.Effects,
		AskedFrom: said.Filter.AskedFrom, AskedUntil: said.Filter.AskedUntil,
	}
	if said.Filter.OrderID != "" {
		f.Order = uuid.MustParse(said.Filter.OrderID)
	}
	f, err := store.RetryFilter(f)
	if errors.Is(err, store.ErrNotRetryable) {
		return nil, invalid([]FieldError{{Pointer: "/data/filter/states", Code: "not_retryable", Detail: "only effects that are open or dead can be retried"}})
	}
	if err != nil {
		return nil, err
	}
	out := &retryEffectsOut{}
	doc := &out.Body.Data
	if doc.Matching, err = a.store.CountEffects(ctx, f); err != nil {
		return nil, err
	}
	if doc.DryRun = said.DryRun == nil || *said.DryRun; doc.DryRun {
		return out, nil
	}
	counts := map[store.RetryOutcome]int{}
	if err := a.store.RetryEffects(ctx, f, func(_ store.Effect, o store.RetryOutcome) { counts[o]++ }); err != nil {
		return nil, fmt.Errorf("after %d effects: %w", counts[store.RetryRetried]+counts[store.RetrySuperseded]+counts[store.RetryChanged], err)
	}
	retried, superseded, changed := counts[store.RetryRetried], counts[store.RetrySuperseded], counts[store.RetryChanged]
	doc.Retried, doc.Superseded, doc.Changed = &retried, &superseded, &changed
	return out, nil
}

const effectExample = `{"data": {
  "key": "0199a1b2-0000-7000-8000-000000000001:2:fulfil", "order_id": "0199a1b2-0000-7000-8000-000000000001", "external_ref": "ord_123",
  "version": 2, "effect": "fulfil", "state": "open", "after": "fulfilled", "attempts": 1, "asked_at": "2026-10-01T09:00:03Z",
  "next_at": "2026-10-01T09:00:33Z", "last_error": "status 500", "order_state": "paid"}}`
