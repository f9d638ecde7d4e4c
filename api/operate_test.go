package api_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

var plenty = api.Options{Rate: 1 << 30, Burst: 1 << 30}

// settle has the effect that an order owes called, with that answer.
func (b *shopOnPostgres) settle(id string, answer store.Answer) {
	b.t.Helper()
	l, err := b.st.Look(b.t.Context(), "a", uuid.MustParse(id), 20*time.Second)
	require.NoError(b.t, err)
	require.NotNil(b.t, l.Claim)
	_, err = b.st.Settle(b.t.Context(), *l.Claim, answer, 0)
	require.NoError(b.t, err)
}

func (b *shopOnPostgres) operate(path, body string) map[string]any {
	b.t.Helper()
	w := b.do(http.MethodPost, path, operator, body)
	require.Equal(b.t, http.StatusOK, w.Code, w.Body.String())
	return data(b.t, w)
}

func TestRetryEffect(t *testing.T) {
	t.Parallel()
	b := world(t, plenty)
	id := b.id(keyA, "paid")
	key := id + ":2:fulfil"
	effect := func() map[string]any { return data(t, b.get("/v1/effects/"+key, readOnly)) }
	require.Equal(t, "open", effect()["state"])
	require.Equal(t, key, effect()["key"])

	b.settle(id, store.Answer{Wait: time.Hour, Err: "status 503"})
	require.Equal(t, "status 503", effect()["last_error"])
	got := b.operate("/v1/effects/"+key+"/retry", "")
	require.Equal(t, "retried", got["outcome"])
	require.Equal(t, "open", got["effect"].(map[string]any)["state"])

	b.settle(id, store.Answer{Dead: true, Err: "status 410"})
	require.Equal(t, "dead", effect()["state"])
	require.Equal(t, "retried", b.operate("/v1/effects/"+key+"/retry", "")["outcome"])
	require.EqualValues(t, 0, effect()["attempts"], "it has all its attempts again")
	require.Equal(t, "retried", b.operate("/v1/effects/"+key+"/retry", "")["outcome"], "a second retry changes nothing: it is due")

	// A dispute opens: it is not wanted now.
	b.settle(id, store.Answer{Dead: true, Err: "status 410"})
	_, err := b.st.Apply(t.Context(), []store.Event{{
		Event: order.Event{
			ID: "evt_d", Type: "dispute", At: now, Realm: "stripe:live", Payment: []string{"pi_1"},
			Facts: []order.Fact{{Kind: order.KindDisputed, Ref: "dp_1", Status: order.StatusOpen, Amount: 5000, Currency: "EUR"}},
		},
		Account: "a", Source: "stripe", Delivery: uuid.New(),
	}})
	require.NoError(t, err)
	require.Equal(t, "superseded", b.operate("/v1/effects/"+key+"/retry", "")["outcome"])
	require.Equal(t, "dead", effect()["state"])

	_, err = b.st.Apply(t.Context(), []store.Event{{
		Event: order.Event{
			ID: "evt_w", Type: "dispute", At: now, Realm: "stripe:live", Payment: []string{"pi_1"},
			Facts: []order.Fact{{Kind: order.KindDisputed, Ref: "dp_1", Status: order.StatusWon, Amount: 5000, Currency: "EUR"}},
		},
		Account: "a", Source: "stripe", Delivery: uuid.New(),
	}})
	require.NoError(t, err)
	require.Equal(t, "retried", b.operate("/v1/effects/"+key+"/retry", "")["outcome"])
	b.settle(id, store.Answer{Done: true})
	w := b.do(http.MethodPost, "/v1/effects/"+key+"/retry", operator, "")
	require.Equal(t, http.StatusConflict, w.Code)
	require.Equal(t, api.CodeEffectNotRetryable, problemOf(t, w).Code)

	for _, bad := range []string{
		id, id + ":2", id + ":2:hold", id + ":1:fulfil", id + ":02:fulfil", id + ":+2:fulfil", id + ":2:fulfil:", id + ":99999999999:fulfil", id + ":0:fulfil",
		uuid.NewString() + ":2:fulfil", "x:2:fulfil", "00000000-0000-0000-0000-000000000000:2:fulfil", "%00", "%ff:1:fulfil",
	} {
		w := b.get("/v1/effects/"+bad, keyA)
		require.Equal(t, http.StatusNotFound, w.Code, bad)
		require.Equal(t, api.CodeEffectNotFound, problemOf(t, w).Code, bad)
		require.Equal(t, http.StatusNotFound, b.do(http.MethodPost, "/v1/effects/"+bad+"/retry", operator, "").Code, bad)
	}
}

func TestRetryEffects(t *testing.T) {
	t.Parallel()
	b := world(t, plenty)
	id := b.id(keyA, "paid")
	b.settle(id, store.Answer{Dead: true, Err: "status 410"})
	key := id + ":2:fulfil"
	state := func() any { return data(t, b.get("/v1/effects/"+key, keyA))["state"] }

	for _, body := range []string{
		`{"data":{"filter":{}}}`, `{"data":{"dry_run":true,"filter":{}}}`, `{"data":{"filter":{"states":["dead","open"],"effects":["fulfil"],"external_ref":"paid"}}}`,
		`{"data":{"filter":{"order_id":"` + id + `","asked_from":"2000-01-01T00:00:00Z","asked_until":"2100-01-01T00:00:00Z"}}}`,
	} {
		require.Equal(t, map[string]any{"dry_run": true, "matching": 1.0}, b.operate("/v1/effects/retry", body), body)
		require.Equal(t, "dead", state(), "a dry run only counts")
	}
	for _, filter := range []string{`"states":["open"]`, `"effects":["hold"]`, `"external_ref":"stub"`, `"asked_until":"2000-01-01T00:00:00Z"`, `"asked_from":"2100-01-01T00:00:00+02:00"`} {
		require.Equal(t, map[string]any{"dry_run": false, "matching": 0.0, "retried": 0.0, "superseded": 0.0, "changed": 0.0},
			b.operate("/v1/effects/retry", `{"data":{"dry_run":false,"filter":{`+filter+`}}}`), filter)
	}
	require.Equal(t, "dead", state())
	require.Equal(t, map[string]any{"dry_run": false, "matching": 1.0, "retried": 1.0, "superseded": 0.0, "changed": 0.0},
		b.operate("/v1/effects/retry", `{"data":{"dry_run":false,"filter":{}}}`))
	require.Equal(t, "open", state())

	for body, at := range map[string]string{
		`{"data":{}}`:                                    "/data/filter required",
		`{"data":{"filter":null}}`:                       "/data/filter required",
		`{"data":{"filter":{},"dry_run":null}}`:          "/data/dry_run type",
		`{"data":{"filter":{},"dry_run":"false"}}`:       "/data/dry_run type",
		`{"data":{"filter":{},"dryrun":false}}`:          "/data/dryrun unknown_field",
		`{"data":{"filter":{"states":["done"]}}}`:        "/data/filter/states not_retryable",
		`{"data":{"filter":{"states":["nosuch"]}}}`:      "/data/filter/states/0 unknown_value",
		`{"data":{"filter":{"order_id":"1"}}}`:           "/data/filter/order_id invalid_uuid",
		`{"data":{"filter":{"asked_from":"yesterday"}}}`: "/data/filter/asked_from invalid_time",
		`{"data":{"filter":{"account":"b"}}}`:            "/data/filter/account unknown_field",
		`{"data":{"filter":{"states":[]}}}`:              "/data/filter/states too_few",
		`{"data":{"filter":{"effects":[]}}}`:             "/data/filter/effects too_few",
		`{"data":{"filter":{"external_ref":""}}}`:        "/data/filter/external_ref too_short",
	} {
		w := b.do(http.MethodPost, "/v1/effects/retry", operator, body)
		require.Equal(t, http.StatusUnprocessableEntity, w.Code, body)
		p := problemOf(t, w)
		require.Len(t, p.Errors, 1)
		require.Equal(t, at, p.Errors[0].Pointer+" "+p.Errors[0].Code, body)
	}
}

// rereading reads kept bytes as whatever mean says of the event today.
func rereading(st **store.Store, mean func(store.StoredDelivery) ([]store.Event, error)) func(context.Context, store.EventKey, bool) (store.Reevaluated, error) {
	return func(ctx context.Context, key store.EventKey, apply bool) (all store.Reevaluated, err error) {
		err = (*st).Reevaluate(ctx, store.ReevaluateOptions{
			Filter: store.ReevaluateFilter{Account: key.Account, Events: []store.EventKey{key}}, Read: mean, Apply: apply,
			Each: func(r store.Reevaluated) error {
				all.Events, all.Orders = append(all.Events, r.Events...), append(all.Orders, r.Orders...)
				all.Entered, all.Skipped = append(all.Entered, r.Entered...), append(all.Skipped, r.Skipped...)
				return nil
			},
		})
		return all, err
	}
}

func TestReplayEvent(t *testing.T) {
	t.Parallel()
	var st *store.Store
	amount := int64(5000)
	opts := plenty
	opts.Replay = rereading(&st, func(d store.StoredDelivery) ([]store.Event, error) {
		if amount == 0 {
			return nil, errors.New("not today")
		}
		return []store.Event{{
			Event: order.Event{
				ID: "evt_paid", Type: "payment.done", At: now, Realm: "stripe:live", Payment: []string{"pi_1"}, Reference: "paid", Strength: order.StrengthPayment,
				Facts: []order.Fact{{Kind: order.KindCaptured, Amount: amount, Currency: "EUR"}},
			},
			Account: d.Account, Source: d.Source, Delivery: d.Delivery, MappingVersion: 2,
		}}, nil
	})
	b := world(t, opts)
	st = b.st
	id := b.id(keyA, "paid")
	shown := func(member string) any { return data(t, b.get("/v1/orders/"+id, keyA))[member] }
	none := map[string]any{"dry_run": true, "events": []any{}, "entered": []any{}, "orders": []any{}, "skipped": []any{}}
	require.Equal(t, none, b.operate("/v1/events/evt_paid/replay", `{"data":{}}`), "it means today what it meant")

	amount = 300
	for _, body := range []string{`{"data":{}}`, `{"data":{"dry_run":true}}`} {
		d := b.operate("/v1/events/evt_paid/replay?source=stripe", body)
		require.Equal(t, true, d["dry_run"])
		change := d["orders"].([]any)[0].(map[string]any)
		require.Equal(t, id, change["id"])
		require.Equal(t, "paid", change["before"].(map[string]any)["state"])
		require.Equal(t, "partially_paid", change["after"].(map[string]any)["state"])
		ev := d["events"].([]any)[0].(map[string]any)
		require.EqualValues(t, 5000, ev["before"].(map[string]any)["facts"].([]any)[0].(map[string]any)["amount"])
		require.EqualValues(t, 300, ev["after"].(map[string]any)["facts"].([]any)[0].(map[string]any)["amount"])
		require.Equal(t, "paid", shown("state"), "a dry run writes nothing")
	}
	require.Equal(t, false, b.operate("/v1/events/evt_paid/replay", `{"data":{"dry_run":false}}`)["dry_run"])
	require.Equal(t, "partially_paid", shown("state"))
	version := shown("version")
	none["dry_run"] = false
	require.Equal(t, none, b.operate("/v1/events/evt_paid/replay", `{"data":{"dry_run":false}}`), "a second time finds nothing to replace")
	require.Equal(t, version, shown("version"))
	before := data(t, b.get("/v1/events/evt_paid", keyA))["meant_before"].([]any)
	require.Len(t, before, 1)
	require.EqualValues(t, 5000, before[0].(map[string]any)["meaning"].(map[string]any)["facts"].([]any)[0].(map[string]any)["amount"])

	amount = 0
	d := b.operate("/v1/events/evt_paid/replay", `{"data":{"dry_run":false}}`)
	require.Equal(t, "unreadable", d["skipped"].([]any)[0].(map[string]any)["code"])
	require.Equal(t, "partially_paid", shown("state"))

	for path, want := range map[string]api.Code{
		"evt_none": api.CodeEventNotFound, "evt_paid/replay?source=adyen": api.CodeEventNotFound, "evt_twin": api.CodeEventAmbiguous,
		"register:paid": api.CodeEventNotReplayable, "%00": api.CodeEventNotFound,
	} {
		if path != "evt_paid/replay?source=adyen" {
			path += "/replay"
		}
		w := b.do(http.MethodPost, "/v1/events/"+path, operator, `{"data":{"dry_run":false}}`)
		require.Equal(t, want, problemOf(t, w).Code, path)
	}
	without := world(t, plenty)
	w := without.do(http.MethodPost, "/v1/events/evt_paid/replay", operator, `{"data":{}}`)
	require.Equal(t, api.CodeEventNotReplayable, problemOf(t, w).Code)
}

// TestExempt: a key at a route that needs none is ignored, and the caller is told.
func TestExempt(t *testing.T) {
	t.Parallel()
	b := world(t, plenty)
	w := b.do(http.MethodPost, "/v1/effects/retry", operator, `{"data":{"filter":{}}}`, func(r *http.Request) { r.Header.Set("Idempotency-Key", "k") })
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "ignored", w.Header().Get("Idempotency-Status"))
	var n int
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_keys`).Scan(&n))
	require.Zero(t, n)
}
