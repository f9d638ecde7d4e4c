package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// pageOf reads a list: its rows, and the cursor of the next page.
func pageOf(t testing.TB, w *httptest.ResponseRecorder) (rows []map[string]any, next string) {
	t.Helper()
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	var doc struct {
		Data []map[string]any
		Next *string
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &doc))
	require.NotNil(t, doc.Data, "never null")
	if doc.Next != nil {
		next = *doc.Next
	}
	return doc.Data, next
}

func (b *bench) get(path, key string) *httptest.ResponseRecorder {
	return b.do(http.MethodGet, path, key, "")
}

// list reads a list with filters, all of its pages, so many rows at a time; and returns one member of each row.
func (b *bench) list(path, key, member string, limit string) (got []any) {
	next := ""
	for {
		u, err := url.Parse(path)
		require.NoError(b.t, err)
		q := u.Query()
		q.Set("limit", limit)
		if next != "" {
			q.Set("cursor", next)
		}
		u.RawQuery = q.Encode()
		var rows []map[string]any
		rows, next = pageOf(b.t, b.get(u.String(), key))
		for _, r := range rows {
			got = append(got, r[member])
		}
		if next == "" {
			return got
		}
		require.NotEmpty(b.t, rows, "a page that promises another has rows")
	}
}

// world is an API on Postgres in which both accounts have the same orders and events, so that whatever is mixed up shows:
//
//	paid      registered over 5000 EUR, captured 5000: fulfil is owed
//	unpaid    registered
//	stub      captured 700, registered by nobody
//	evt_twin  an event of that id in two sources
//	evt_bad   quarantined
func world(t *testing.T, opts api.Options) *shopOnPostgres {
	t.Helper()
	b := onPostgres(t, opts)
	for account, key := range map[string]string{"a": keyA, "b": keyB} {
		for _, ref := range []string{"paid", "unpaid"} {
			require.Equal(t, http.StatusCreated, b.post(key, strings.Replace(ordinary, "ord_1", ref, 1)).Code)
		}
		event := func(source, id string, more order.Event) store.Event {
			more.ID, more.Type, more.At, more.Realm = id, "payment.done", now, source+":live"
			return store.Event{
				Event: more, Account: account, Source: source, Delivery: uuid.New(), Payload: []byte("SIGNED BYTES " + account), Header: map[string]string{"Content-Type": "x/y"},
			}
		}
		captured := func(payment, ref string, minor int64) order.Event {
			return order.Event{
				Payment: []string{payment}, Reference: ref, Strength: order.StrengthPayment,
				Facts: []order.Fact{{Kind: order.KindCaptured, Amount: minor, Currency: "EUR"}},
			}
		}
		for _, e := range []store.Event{
			event("stripe", "evt_paid", captured("pi_1", "paid", 5000)),
			event("stripe", "evt_stub", captured("pi_2", "stub", 700)),
			event("stripe", "evt_twin", order.Event{Ignored: "unknown_type"}),
			event("adyen", "evt_twin", order.Event{Ignored: "unknown_type"}),
			event("stripe", "evt_bad", order.Event{Broken: "the amount is no integer"}),
			event("stripe", "payment/tr_1:é#", captured("pi_3", "", 1)),
		} {
			_, err := b.st.Apply(t.Context(), []store.Event{e})
			require.NoError(t, err)
		}
	}
	return b
}

// id is the id of an account's order.
func (b *shopOnPostgres) id(key, ref string) string {
	rows, _ := pageOf(b.t, b.get("/v1/orders?external_ref="+ref, key))
	require.Len(b.t, rows, 1)
	return rows[0]["id"].(string)
}

func TestListOrders(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	for query, want := range map[string][]any{
		"":                                   {"stub", "unpaid", "paid"},
		"state=paid":                         {"paid"},
		"state=pending":                      {"unpaid"},
		"state=partially_paid":               {"stub"},
		"state=disputed":                     nil,
		"flag=unregistered":                  {"stub"},
		"flag=overpaid":                      nil,
		"stubs=true":                         {"stub"},
		"stubs=false":                        {"stub", "unpaid", "paid"},
		"external_ref=unpaid":                {"unpaid"},
		"external_ref=nobody":                nil,
		"external_ref=unpaid&state=paid":     nil,
		"created_from=2000-01-01T00:00:00Z":  {"stub", "unpaid", "paid"},
		"created_from=2100-01-01T00:00:00Z":  nil,
		"created_until=2000-01-01T00:00:00Z": nil,
		"created_until=2100-01-01T00:00:00Z": {"stub", "unpaid", "paid"},
		"created_until=2100-01-01T00:00:00.5%2B02:00&state=paid": {"paid"},
	} {
		for _, limit := range []string{"1", "2", "1000"} {
			require.ElementsMatch(t, want, b.list("/v1/orders?"+query, keyA, "external_ref", limit), "%s, %s a page", query, limit)
		}
	}
	require.Equal(t, []any{"unpaid", "paid"}, b.list("/v1/orders?stubs=false", keyA, "external_ref", "50")[1:], "the newest first")
}

func TestListEvents(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	for query, want := range map[string][]any{
		"":                                    {"payment/tr_1:é#", "evt_bad", "evt_twin", "evt_twin", "evt_stub", "evt_paid", "register:unpaid", "register:paid"},
		"source=api":                          {"register:unpaid", "register:paid"},
		"source=adyen":                        {"evt_twin"},
		"source=nobody":                       nil,
		"outcome=quarantined":                 {"evt_bad"},
		"outcome=ignored":                     {"evt_twin", "evt_twin"},
		"outcome=applied":                     {"evt_paid", "register:unpaid", "register:paid"},
		"reason=unreadable":                   {"evt_bad"},
		"reason=unknown_type&source=stripe":   {"evt_twin"},
		"type=order.registered":               {"register:unpaid", "register:paid"},
		"received_from=2100-01-01T00:00:00Z":  nil,
		"received_until=2000-01-01T00:00:00Z": nil,
		"received_from=2000-01-01T00:00:00Z&received_until=2100-01-01T00:00:00Z&type=payment.done&outcome=waiting": {"payment/tr_1:é#", "evt_stub"},
	} {
		for _, limit := range []string{"1", "3", "1000"} {
			require.Equal(t, want, b.list("/v1/events?"+query, keyA, "id", limit), "%s, %s a page", query, limit)
		}
	}
}

func TestListEffects(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	id := b.id(keyA, "paid")
	for query, want := range map[string][]any{
		"":                                 {"paid"},
		"order_id=" + id:                   {"paid"},
		"order_id=" + b.id(keyA, "unpaid"): nil,
		"order_id=" + b.id(keyB, "paid"):   nil,
		"external_ref=paid":                {"paid"},
		"external_ref=unpaid":              nil,
		"state=open":                       {"paid"},
		"state=dead,open":                  {"paid"},
		"state=dead":                       nil,
		"effect=fulfil":                    {"paid"},
		"effect=hold,revoke":               nil,
		"asked_from=2100-01-01T00:00:00Z":  nil,
		"asked_until=2100-01-01T00:00:00Z": {"paid"},
	} {
		require.Equal(t, want, b.list("/v1/effects?"+query, keyA, "external_ref", "1"), query)
	}
	for i := range 5 {
		_, err := b.st.Apply(t.Context(), []store.Event{{
			Event: order.Event{
				ID: "evt_more" + string(rune('a'+i)), Type: "paid", At: now, Realm: "stripe:live", Payment: []string{"pi_more" + string(rune('a'+i))},
				Reference: "more" + string(rune('a'+i)), Strength: order.StrengthPayment, Own: &order.Amount{Minor: 5, Currency: "EUR"},
				Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5, Currency: "EUR"}},
			},
			Account: "a", Source: "stripe", Delivery: uuid.New(), OnUnknown: store.OnUnknownCreate,
		}})
		require.NoError(t, err)
	}
	want := []any{"paid", "morea", "moreb", "morec", "mored", "moree"}
	for _, limit := range []string{"1", "2", "3", "5", "6", "7"} {
		require.Equal(t, want, b.list("/v1/effects", keyA, "external_ref", limit), "%s a page", limit)
	}
}

// TestCursors: a cursor is of one list, and what is none is refused as such.
func TestCursors(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	cursors := map[string]string{}
	for _, list := range []string{"/v1/orders", "/v1/events"} {
		_, next := pageOf(t, b.get(list+"?limit=1", keyA))
		require.NotEmpty(t, next)
		require.Regexp(t, `^[A-Za-z0-9_-]+$`, next, "it needs no escaping")
		cursors[list] = next
	}
	// The same cursor in another account's hands leads to that account's own rows.
	mine := b.list("/v1/orders?cursor="+cursors["/v1/orders"], keyB, "id", "10")
	for _, id := range mine {
		require.Equal(t, http.StatusOK, b.get("/v1/orders/"+id.(string), keyB).Code)
	}
	enc := base64.RawURLEncoding.EncodeToString
	for name, bad := range map[string]string{
		"NoBase64": "!", "Padded": cursors["/v1/orders"] + "=", "Text": enc([]byte("hello")), "Null": enc([]byte("null")), "Empty": enc([]byte("{}")),
		"OtherVersion": enc([]byte(`{"v":2,"l":"orders","o":"0199a1b2-0000-7000-8000-000000000001"}`)),
		"OtherList":    cursors["/v1/events"],
		"Strange":      enc([]byte(`{"v":1,"l":"orders","o":"0199a1b2-0000-7000-8000-000000000001","x":1}`)),
		"Spaced":       enc([]byte(`{"v":1, "l":"orders"}`)),
		"NotAnID":      enc([]byte(`{"v":1,"l":"orders","o":"1 OR true"}`)),
		"CutShort":     cursors["/v1/orders"][:10],
		"NULInside":    enc([]byte(`{"v":1,"l":"orders","s":"\u0000"}`)),
	} {
		w := b.get("/v1/orders?cursor="+url.QueryEscape(bad), keyA)
		require.Equal(t, http.StatusBadRequest, w.Code, "%s: %s", name, w.Body.String())
		require.Equal(t, api.CodeInvalidCursor, problemOf(t, w).Code, name)
	}
	require.Equal(t, http.StatusBadRequest, b.get("/v1/events?cursor="+cursors["/v1/orders"], keyA).Code)
	require.Equal(t, http.StatusBadRequest, b.get("/v1/effects?cursor="+cursors["/v1/orders"], keyA).Code)
}

// TestRowsMadeMeanwhile: turning pages neither repeats a row nor loses one that was there.
func TestRowsMadeMeanwhile(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	before := b.list("/v1/orders", keyA, "external_ref", "1000")
	var seen []any
	for i, next := 0, ""; ; i++ {
		var rows []map[string]any
		path := "/v1/orders?limit=1"
		if next != "" {
			path += "&cursor=" + next
		}
		rows, next = pageOf(t, b.get(path, keyA))
		for _, r := range rows {
			seen = append(seen, r["external_ref"])
		}
		require.Equal(t, http.StatusCreated, b.post(keyA, strings.Replace(ordinary, "ord_1", "late"+string(rune('a'+i)), 1)).Code)
		if next == "" {
			break
		}
	}
	require.Equal(t, before, seen)
}

// TestParametersRefused: every list, every way a parameter can be wrong.
func TestParametersRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	for _, tt := range []struct{ path, at string }{
		{"/v1/orders?limit=0", "limit too_small"},
		{"/v1/orders?limit=-1", "limit too_small"},
		{"/v1/orders?limit=1001", "limit too_large"},
		{"/v1/orders?limit=99999999999999999999", "limit too_large"},
		{"/v1/orders?limit=5.0", "limit not_integer"},
		{"/v1/orders?limit=5e1", "limit not_integer"},
		{"/v1/orders?limit=%2B5", "limit not_integer"},
		{"/v1/orders?limit=ten", "limit not_integer"},
		{"/v1/orders?limit=", "limit empty"},
		{"/v1/orders?limit=1&limit=2", "limit duplicate"},
		{"/v1/orders?Limit=1", "Limit unknown_parameter"},
		{"/v1/orders?sate=paid", "sate unknown_parameter"},
		{"/v1/orders?state=payed", "state unknown_value"},
		{"/v1/orders?flag=nosuch", "flag unknown_value"},
		{"/v1/orders?stubs=1", "stubs type"},
		{"/v1/orders?stubs=TRUE", "stubs type"},
		{"/v1/orders?external_ref=%00", "external_ref invalid_text"},
		{"/v1/orders?external_ref=%ff", "external_ref invalid_text"},
		{"/v1/orders?external_ref=" + strings.Repeat("x", 256), "external_ref too_long"},
		{"/v1/orders?created_from=yesterday", "created_from invalid_time"},
		{"/v1/orders?created_from=2026-01-31", "created_from invalid_time"},
		{"/v1/orders?created_from=2026-01-31T12:00:00", "created_from invalid_time"},
		{"/v1/orders?created_from=2026-02-30T12:00:00Z", "created_from invalid_time"},
		{"/v1/orders?a=%zz", "? invalid_query"},
		{"/v1/orders?a;b", "? invalid_query"},
		{"/v1/events?outcome=duplicate", "outcome unknown_value"},
		{"/v1/events?received_until=0", "received_until invalid_time"},
		{"/v1/events/evt_1?payload=yes", "payload type"},
		{"/v1/effects?state=open,closed", "state unknown_value"},
		{"/v1/effects?state=open,", "state unknown_value"},
		{"/v1/effects?state=,", "state unknown_value"},
		{"/v1/effects?state=open,open,open,open,open,open,open", "state too_many"},
		{"/v1/effects?effect=refund", "effect unknown_value"},
		{"/v1/effects?order_id=1", "order_id invalid_uuid"},
		{"/v1/effects?order_id=00000000-0000-0000-0000-000000000000", "order_id invalid_uuid"},
		{"/v1/effects?order_id=%7B0199a1b2-0000-7000-8000-000000000001%7D", "order_id invalid_uuid"},
	} {
		w := b.get(tt.path, keyA)
		require.Equal(t, http.StatusBadRequest, w.Code, tt.path)
		p := problemOf(t, w)
		require.Equal(t, api.CodeInvalidParameter, p.Code, tt.path)
		require.NotEmpty(t, p.Errors, tt.path)
		require.Equal(t, tt.at, p.Errors[0].Parameter+" "+p.Errors[0].Code, tt.path)
		require.NotEmpty(t, p.Errors[0].Detail)
	}
	// All faults are told at once.
	p := problemOf(t, b.get("/v1/orders?limit=0&state=x&nosuch=1", keyA))
	require.Len(t, p.Errors, 3)
}

func TestGetEvent(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})

	d := data(t, b.get("/v1/events/evt_paid", readOnly))
	require.Equal(t, "applied", d["outcome"])
	require.Equal(t, b.id(keyA, "paid"), d["order_id"])
	require.Equal(t, []any{map[string]any{"kind": "captured", "amount": 5000.0, "currency": "EUR"}}, d["facts"])
	require.Contains(t, d["explanation"].(map[string]any)["answer"], "was applied")
	require.NotContains(t, d, "payload")

	require.Equal(t, "unreadable: the amount is no integer", data(t, b.get("/v1/events/evt_bad", keyA))["reason"])
	d = data(t, b.get("/v1/events/register:paid", keyA))
	require.Equal(t, "api", d["source"])
	require.NotEmpty(t, d["command"])
	require.Equal(t, "waiting", data(t, b.get("/v1/events/"+url.PathEscape("payment/tr_1:é#"), keyA))["outcome"], "an id is escaped in the path")

	// One id of two sources.
	w := b.get("/v1/events/evt_twin", keyA)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Equal(t, api.CodeEventAmbiguous, problemOf(t, w).Code)
	require.Contains(t, problemOf(t, w).Detail, "adyen, stripe")
	for _, source := range []string{"adyen", "stripe"} {
		require.Equal(t, source, data(t, b.get("/v1/events/evt_twin?source="+source, keyA))["source"])
	}
	for _, path := range []string{"evt_twin?source=api", "evt_none", "evt_none?source=stripe", "%00", "%ff", "evt_paid%23", "EVT_PAID"} {
		w := b.get("/v1/events/"+path, keyA)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, api.CodeEventNotFound, problemOf(t, w).Code, path)
	}

	// The bytes are for operators who may read.
	for _, key := range []string{readOnly, keyA} {
		w := b.get("/v1/events/evt_paid?payload=true", key)
		require.Equal(t, http.StatusForbidden, w.Code)
		require.NotContains(t, w.Body.String(), base64.StdEncoding.EncodeToString([]byte("SIGNED")))
	}
	require.Equal(t, http.StatusForbidden, b.get("/v1/events/evt_paid?payload=true", operator).Code, "operate does not imply read")
	d = data(t, b.get("/v1/events/evt_paid?payload=true", auditor))
	payload := d["payload"].(map[string]any)
	require.Equal(t, base64.StdEncoding.EncodeToString([]byte("SIGNED BYTES a")), payload["body"])
	require.Equal(t, map[string]any{"Content-Type": "x/y"}, payload["header"])
	_, err := b.pool.Exec(t.Context(), `TRUNCATE event_payloads, event_payloads_kept`)
	require.NoError(t, err)
	w = b.get("/v1/events/evt_paid?payload=true", auditor)
	require.Equal(t, http.StatusOK, w.Code)
	require.NotContains(t, data(t, w), "payload", "retention has dropped it")
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	d := data(t, b.get("/v1/orders/"+b.id(keyA, "paid")+"/timeline", readOnly))
	require.Equal(t, "paid", d["order"].(map[string]any)["external_ref"])
	require.Contains(t, d["explanation"].(map[string]any)["answer"], "Order paid is paid")
	var kinds []string
	for _, e := range d["entries"].([]any) {
		entry := e.(map[string]any)
		kind := entry["kind"].(string)
		require.NotEmpty(t, entry["text"])
		require.Contains(t, entry, kind, "the data beside the sentence")
		switch kind {
		case "event":
			id := entry["event"].(map[string]any)["id"].(string)
			require.Contains(t, entry["text"], id)
			kinds = append(kinds, "event "+id+" "+entry["event"].(map[string]any)["outcome"].(string))
		case "version":
			v := entry["version"].(map[string]any)
			kinds = append(kinds, "version "+v["to"].(string)+" "+v["event_id"].(string))
		case "effect":
			kinds = append(kinds, "effect "+entry["effect"].(map[string]any)["effect"].(string)+" "+entry["effect"].(map[string]any)["state"].(string))
		}
	}
	require.Equal(t, []string{
		"event register:paid applied", "version pending register:paid",
		"event evt_paid applied", "version paid evt_paid", "effect fulfil open",
	}, kinds)
	for _, id := range []string{b.id(keyB, "paid"), uuid.NewString(), "paid", "%00"} {
		w := b.get("/v1/orders/"+id+"/timeline", keyA)
		require.Equal(t, http.StatusNotFound, w.Code, id)
		require.Equal(t, api.CodeOrderNotFound, problemOf(t, w).Code)
	}
}

// TestEveryVersionIsInTheTimeline: also one that moved no state and owes nothing, about which nothing is said elsewhere.
func TestEveryVersionIsInTheTimeline(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	id := b.id(keyA, "unpaid")
	_, err := b.st.Apply(t.Context(), []store.Event{{
		Event: order.Event{
			ID: "evt_little", Type: "authorized", At: now, Realm: "stripe:live", Payment: []string{"pi_9"}, Reference: "unpaid", Strength: order.StrengthPayment,
			Facts: []order.Fact{{Kind: order.KindAuthorized, Amount: 10, Currency: "EUR"}},
		},
		Account: "a", Source: "stripe", Delivery: uuid.New(),
	}})
	require.NoError(t, err)
	d := data(t, b.get("/v1/orders/"+id+"/timeline", keyA))
	var versions []any
	for _, e := range d["entries"].([]any) {
		if v, ok := e.(map[string]any)["version"].(map[string]any); ok {
			versions = append(versions, v["version"])
		}
	}
	require.Equal(t, []any{1.0, 2.0}, versions)
	require.EqualValues(t, 2, d["order"].(map[string]any)["version"])
}

// TestAccountsAreApart: whatever account b asks for that is a's, by any endpoint, does not exist.
func TestAccountsAreApart(t *testing.T) {
	t.Parallel()
	replayed := 0
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000, Replay: func(_ context.Context, key store.EventKey, _ bool) (store.Reevaluated, error) {
		replayed++
		require.Equal(t, "b", key.Account)
		return store.Reevaluated{}, nil
	}})
	// a has one of each that b has not.
	require.Equal(t, http.StatusCreated, b.post(keyA, strings.Replace(ordinary, "ord_1", "SECRET", 1)).Code)
	_, err := b.st.Apply(t.Context(), []store.Event{{
		Event: order.Event{
			ID: "evt_SECRET", Type: "paid", At: now, Realm: "stripe:live", Payment: []string{"pi_SECRET"}, Reference: "SECRET", Strength: order.StrengthPayment,
			Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}},
		},
		Account: "a", Source: "stripe", Delivery: uuid.New(),
	}})
	require.NoError(t, err)
	id := b.id(keyA, "SECRET")
	effects := b.list("/v1/effects?external_ref=SECRET", keyA, "key", "1")
	require.Len(t, effects, 1)
	effect := effects[0].(string)
	for _, path := range []string{
		"/v1/orders", "/v1/orders?external_ref=SECRET", "/v1/orders?state=paid", "/v1/events", "/v1/events?source=stripe", "/v1/events?outcome=applied",
		"/v1/effects", "/v1/effects?order_id=" + id, "/v1/effects?external_ref=SECRET",
	} {
		for _, key := range []string{keyB} {
			w := b.get(path+map[bool]string{true: "&", false: "?"}[strings.Contains(path, "?")]+"limit=1000", key)
			require.Equal(t, http.StatusOK, w.Code)
			require.NotContains(t, w.Body.String(), "SECRET", path)
			require.NotContains(t, w.Body.String(), id, path)
		}
	}
	for _, path := range []string{
		"/v1/orders/" + id, "/v1/orders/" + id + "/timeline", "/v1/events/evt_SECRET", "/v1/events/evt_SECRET?source=stripe", "/v1/effects/" + effect,
	} {
		require.Equal(t, http.StatusOK, b.get(path, keyA).Code, path)
		w := b.get(path, keyB)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.NotContains(t, w.Body.String(), "SECRET", path)
	}
	for _, path := range []string{"/v1/events/evt_SECRET/replay", "/v1/effects/" + effect + "/retry"} {
		require.Equal(t, http.StatusNotFound, b.do(http.MethodPost, path, operatorB, `{"data":{}}`).Code, path)
	}
	require.Zero(t, replayed)
	w := b.do(http.MethodPost, "/v1/effects/retry", operatorB, `{"data":{"filter":{"external_ref":"SECRET","states":["open","dead"]}}}`)
	require.EqualValues(t, 0, data(t, w)["matching"])
	w = b.do(http.MethodPost, "/v1/effects/retry", operatorB, `{"data":{"dry_run":false,"filter":{"order_id":"`+id+`","states":["open","dead"]}}}`)
	require.EqualValues(t, 0, data(t, w)["matching"])
	require.EqualValues(t, 0, data(t, w)["retried"])
}

// TestRoles: every operation of the document refuses every role but its own, before it looks at anything.
func TestRoles(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{Rate: 10_000, Burst: 10_000}) // its store has nothing: whoever is let on would panic
	holder := map[string]string{"read": readOnly, "write": writeOnly, "operate": operator}
	n := 0
	oracleOf(t).operations(func(pattern, method string, op map[string]any) {
		need := op["security"].([]any)[0].(map[string]any)["api_key"].([]any)[0].(string)
		path := strings.NewReplacer("{id}", uuid.NewString(), "{key}", "k").Replace(pattern)
		for role, key := range holder {
			read := &counting{}
			w := b.do(strings.ToUpper(method), path, key, "", func(r *http.Request) { r.Body = read; r.ContentLength = 5 })
			if role == need {
				require.NotEqual(t, http.StatusForbidden, w.Code, "%s %s as %s", method, path, role)
				continue
			}
			n++
			require.Equal(t, http.StatusForbidden, w.Code, "%s %s as %s", method, path, role)
			require.Zero(t, read.n)
			require.Equal(t, "close", w.Header().Get("Connection"))
		}
		require.Equal(t, http.StatusUnauthorized, b.do(strings.ToUpper(method), path, "", "").Code)
	})
	require.Greater(t, n, 20)
}

// TestMethods: HEAD is GET without a body, others are 405 and say what there is, and there is no CORS.
func TestMethods(t *testing.T) {
	t.Parallel()
	b := world(t, api.Options{Rate: 10_000, Burst: 10_000})
	id := b.id(keyA, "paid")
	for path, allow := range map[string]string{
		"/v1/orders": "GET, HEAD, POST", "/v1/orders/" + id: "GET, HEAD, PATCH", "/v1/orders/" + id + "/timeline": "GET, HEAD",
		"/v1/events": "GET, HEAD", "/v1/events/evt_paid": "GET, HEAD", "/v1/effects": "GET, HEAD", "/v1/openapi.json": "GET, HEAD",
		"/v1/events/evt_paid/replay": "POST",
	} {
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace, "SEARCH"} {
			w := b.do(method, path, keyA, "", func(r *http.Request) { r.Header.Set("Origin", "https://shop.example") })
			require.Equal(t, http.StatusMethodNotAllowed, w.Code, "%s %s", method, path)
			require.Equal(t, allow, w.Header().Get("Allow"), "%s %s", method, path)
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
		}
		if strings.HasPrefix(allow, "GET") {
			get := b.get(path, keyA)
			head := b.do(http.MethodHead, path, keyA, "")
			require.Equal(t, http.StatusOK, head.Code, path)
			require.Equal(t, get.Header().Get("Content-Length"), head.Header().Get("Content-Length"))
			require.Equal(t, get.Header().Get("ETag"), head.Header().Get("ETag"))
		}
	}
	for _, path := range []string{"/v1/order", "/v1/orders/" + id + "/", "/v1/orders/" + id + "/x", "/v1/events/a/b", "/v1/effects/a/b"} {
		require.Equal(t, api.CodeNotFound, problemOf(t, b.get(path, keyA)).Code, path)
	}
}
