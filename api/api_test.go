package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func TestRegister(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	w := b.post(keyA, ordinary)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, "application/json", w.Header().Get("Content-Type"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, `"1"`, w.Header().Get("ETag"))
	got := data(t, w)
	require.Equal(t, "/v1/orders/"+got["id"].(string), w.Header().Get("Location"))
	require.Equal(t, "ord_1", got["external_ref"])
	require.Equal(t, "pending", got["state"])
	require.EqualValues(t, 5000, got["amount"])
	require.Equal(t, "EUR", got["currency"])
	require.Equal(t, "nothing", got["told"])
	require.Equal(t, []any{}, got["flags"])
	require.EqualValues(t, 1, got["version"])
	require.Equal(t, []any{map[string]any{"sku": "A", "qty": float64(1)}}, got["items"])
	require.Equal(t, map[string]any{"external_ref": "ord_1", "note": "<x>"}, got["metadata"])

	e := b.shop.events[0]
	require.Equal(t, "a", e.Account)
	require.Equal(t, store.APISource, e.Source)
	require.Equal(t, order.Event{
		ID: "register:ord_1", Type: "order.registered", At: now, Reference: "ord_1", Strength: order.StrengthPerson,
		Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}, Details: e.Command.Details},
	}, e.Event)
	require.NoError(t, e.Event.Validate())
	require.True(t, bytes.Equal([]byte(ordinary), e.Payload), "the bytes as they came")
	require.EqualValues(t, 7, e.Delivery.Version())
	require.Empty(t, e.Header, "the key is in none of them")

	w = b.do(http.MethodGet, w.Header().Get("Location"), readOnly, "")
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, `"1"`, w.Header().Get("ETag"))
	require.Equal(t, got, data(t, w))
}

// TestRepeat: the reference alone says which order is meant. A repeat is answered with the order as it stands.
func TestRepeat(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	first := b.post(keyA, ordinary)
	require.Equal(t, http.StatusCreated, first.Code)
	again := b.post(keyA, ordinary)
	require.Equal(t, http.StatusOK, again.Code)
	require.Equal(t, data(t, first), data(t, again))
	require.NotContains(t, b.log.String(), "external_ref_body_differs")

	other := b.post(keyA, strings.Replace(ordinary, "5000", "9900", 1))
	require.Equal(t, http.StatusOK, other.Code)
	require.Equal(t, data(t, first), data(t, other), "the first registration stands")
	require.Contains(t, b.log.String(), `"note":"external_ref_body_differs"`)
	require.NoError(t, testutil.GatherAndCompare(b.reg, strings.NewReader(`
# HELP paidonce_api_external_ref_body_differs_total Requests that named an external_ref which had come with another body before, by account. They were answered with what it stood for.
# TYPE paidonce_api_external_ref_body_differs_total counter
paidonce_api_external_ref_body_differs_total{account="a"} 1
`), "paidonce_api_external_ref_body_differs_total"))

	theirs := b.post(keyB, ordinary)
	require.Equal(t, http.StatusCreated, theirs.Code, "another account's reference is another order")
	require.NotEqual(t, data(t, first)["id"], data(t, theirs)["id"])
}

// TestStub: an order that a webhook made is registered like a new one.
func TestStub(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	b.shop.orders["a/ord_1"] = &store.Order{ID: uuid.New(), Ref: "ord_1", State: order.StatePending, Told: order.ToldNothing, Flags: []string{"unregistered"}, Version: 3}
	w := b.post(keyA, ordinary)
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, `"4"`, w.Header().Get("ETag"))
	require.Equal(t, true, data(t, w)["registered"])

	amount, currency := int64(7000), "EUR"
	b.shop.orders["a/ord_2"] = &store.Order{ID: uuid.New(), Ref: "ord_2", State: order.StatePaid, Told: order.ToldNothing, Total: &amount, Currency: &currency}
	w = b.post(keyA, strings.Replace(ordinary, "ord_1", "ord_2", 1))
	require.Equal(t, http.StatusOK, w.Code, "a gateway's amount had made it, with another total")
	require.EqualValues(t, 5000, data(t, w)["amount"], "the registered total wins")
	require.Equal(t, []any{"total_differs"}, data(t, w)["flags"])
}

// TestNoReference: an order without a reference gets one, to be handed to the gateway; no two are the same.
func TestNoReference(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	refs := map[any]bool{}
	for _, body := range []string{
		`{"data":{"amount":5000,"currency":"EUR"}}`,
		`{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":""}}}`,
		`{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":null},"items":null}}`,
		`{"data":{"amount":5000,"currency":"EUR","metadata":null}}`,
		`{"data":{"amount":5000,"currency":"EUR","items":[]}}`,
	} {
		w := b.post(keyA, body)
		require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		refs[data(t, w)["external_ref"]] = true
	}
	require.Len(t, refs, 5)
	require.NotContains(t, refs, "")
}

// TestReferences: every reference that is accepted makes an event whose id the store takes.
func TestReferences(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, ref := range []string{
		"1", "ord 1", "Bestellung-№1", strings.Repeat("x", 255), "a#~b", "a#deadbeefdeadbeef", "register:1", "ord/1?x=%23", `"`,
	} {
		b := setup(t, api.Options{})
		doc, err := json.Marshal(map[string]any{"data": map[string]any{"amount": 1, "currency": "JPY", "metadata": map[string]any{"external_ref": ref}}})
		require.NoError(t, err)
		w := b.post(keyA, string(doc))
		require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
		e := b.shop.events[0]
		require.Equal(t, ref, e.Reference)
		require.NotContains(t, e.ID, "#")
		require.Empty(t, seen[e.ID], "two references have the id %s", e.ID)
		seen[e.ID] = ref
	}
}

func TestUnauthorized(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	var bodies []string
	for name, change := range map[string]func(*http.Request){
		"NoHeader":   func(r *http.Request) { r.Header.Del("Authorization") },
		"Empty":      func(r *http.Request) { r.Header.Set("Authorization", "") },
		"NoToken":    func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") },
		"WrongToken": func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+keyA+"x") },
		"HashAsKey": func(r *http.Request) {
			r.Header.Set("Authorization", fmt.Sprintf("Bearer %x", sha256.Sum256([]byte(keyA))))
		},
		"Basic":   func(r *http.Request) { r.SetBasicAuth(keyA, "") },
		"Twice":   func(r *http.Request) { r.Header["Authorization"] = []string{"Bearer " + keyA, "Bearer " + keyB} },
		"InQuery": func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "api_key=" + keyA },
	} {
		read := &counting{}
		w := b.post(keyA, ordinary, change, func(r *http.Request) { r.Body = read })
		require.Equal(t, http.StatusUnauthorized, w.Code, name)
		require.Contains(t, w.Header().Get("WWW-Authenticate"), "Bearer")
		require.Equal(t, api.CodeUnauthorized, problemOf(t, w).Code)
		require.Zero(t, read.n, "a stranger's body is not read")
		bodies = append(bodies, w.Body.String())
	}
	for _, s := range bodies {
		require.Equal(t, bodies[0], s)
	}
	require.Empty(t, b.shop.events)
	require.Equal(t, http.StatusCreated, b.post("", ordinary, func(r *http.Request) { r.Header.Set("Authorization", "bearer  "+keyA) }).Code)

	w := b.post(readOnly, ordinary)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Equal(t, api.CodeForbidden, problemOf(t, w).Code)
}

// counting counts the reads of a body.
type counting struct{ n int }

func (c *counting) Read([]byte) (int, error) { c.n++; return 0, io.EOF }
func (*counting) Close() error               { return nil }

// TestKeysAreSwapped: a reload takes effect with the next request.
func TestKeysAreSwapped(t *testing.T) {
	t.Parallel()
	live := keys()
	s := &shop{orders: map[string]*store.Order{}}
	a, err := api.New(s, func() []api.Key { return live }, api.Options{})
	require.NoError(t, err)
	b := &bench{t: t, API: a, shop: s}
	require.Equal(t, http.StatusCreated, b.post(keyA, ordinary).Code)
	live = nil
	require.Equal(t, http.StatusUnauthorized, b.post(keyA, ordinary).Code)
}

// TestAnotherAccountsOrder does not exist.
func TestAnotherAccountsOrder(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	at := b.post(keyA, ordinary).Header().Get("Location")
	require.Equal(t, http.StatusOK, b.do(http.MethodGet, at, keyA, "").Code)
	for _, path := range []string{at, "/v1/orders/" + uuid.NewString(), "/v1/orders/ord_1", "/v1/orders/%00"} {
		w := b.do(http.MethodGet, path, keyB, "")
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, api.CodeOrderNotFound, problemOf(t, w).Code)
	}
}

func TestTransport(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{MaxBody: 1000})
	pad := func(n int) string {
		s := `{"data":{"amount":1,"currency":"EUR","metadata":{"pad":""}}}`
		return strings.Replace(s, `""`, `"`+strings.Repeat("x", n-len(s))+`"`, 1)
	}
	require.Equal(t, http.StatusCreated, b.post(keyA, pad(1000)).Code)
	w := b.post(keyA, pad(1001))
	require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
	require.Equal(t, api.CodeBodyTooLarge, problemOf(t, w).Code)
	require.Equal(t, "close", w.Header().Get("Connection"))

	for ct, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON": 201, "application/merge-patch+json": 201, "": 201,
		"application/x-www-form-urlencoded": 415, "text/plain": 415, "multipart/form-data": 415, "json": 415, ";": 415,
	} {
		w := b.post(keyA, `{"data":{"amount":1,"currency":"EUR"}}`, func(r *http.Request) { r.Header.Set("Content-Type", ct) })
		require.Equal(t, want, w.Code, "%q", ct)
	}

	w = b.do(http.MethodPut, "/v1/orders", keyA, "{}")
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
	require.Equal(t, "GET, HEAD, POST", w.Header().Get("Allow"))
	require.Equal(t, api.CodeMethodNotAllowed, problemOf(t, w).Code)
	for _, method := range []string{http.MethodDelete, http.MethodOptions, http.MethodPost} {
		w := b.do(method, "/v1/orders/x", keyA, "")
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "GET, HEAD, PATCH", w.Header().Get("Allow"))
	}
	for _, path := range []string{"/v1/orders/", "/v1", "/", "//v1/orders", "/v1/orders/x/y", "/V1/orders"} {
		w := b.post(keyA, ordinary, func(r *http.Request) { r.URL.Path = path })
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Empty(t, w.Header().Get("Location"))
		require.Equal(t, api.CodeNotFound, problemOf(t, w).Code)
	}
}

// TestUnavailable: nothing is said to be done before it was committed, and asking again finds out.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*shop){
		"NotCommitted": func(s *shop) { s.fail = errors.New("secret host is down") },
		"NotRead":      func(s *shop) { s.lost = errors.New("secret host is down") },
		"Vanished":     func(s *shop) { s.lost = store.ErrNotFound },
	} {
		b := setup(t, api.Options{})
		set(b.shop)
		w := b.post(keyA, ordinary)
		require.Equal(t, http.StatusServiceUnavailable, w.Code, name)
		require.Equal(t, "2", w.Header().Get("Retry-After"))
		require.NotContains(t, w.Body.String(), "secret host")
		require.Contains(t, b.log.String(), `"err":`)
		require.Contains(t, []int{http.StatusOK, http.StatusCreated}, b.post(keyA, ordinary).Code)
	}
	b := setup(t, api.Options{})
	at := b.post(keyA, ordinary).Header().Get("Location")
	b.shop.lost = errors.New("secret host is down")
	require.Equal(t, http.StatusServiceUnavailable, b.do(http.MethodGet, at, keyA, "").Code)
}

type hasty struct {
	*shop
	do func(ctx context.Context)
}

func (h hasty) Command(ctx context.Context, tx store.Tx, e store.Event, cond store.Condition) (store.Result, error) {
	h.do(ctx)
	return h.shop.Command(ctx, tx, e, cond)
}

// TestHangingUpDoesNotUndo: a caller that hangs up finds its order at its next try.
func TestHangingUpDoesNotUndo(t *testing.T) {
	t.Parallel()
	ctx, hangUp := context.WithCancel(t.Context())
	s := &shop{orders: map[string]*store.Order{}}
	var seen error
	a, err := api.New(hasty{s, func(in context.Context) { hangUp(); seen = in.Err() }}, keys, api.Options{})
	require.NoError(t, err)
	b := &bench{t: t, API: a, shop: s}
	w := b.post(keyA, ordinary, func(r *http.Request) { *r = *r.WithContext(ctx) })
	require.NoError(t, seen)
	require.Equal(t, http.StatusCreated, w.Code)
}

func TestPanic(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	a, err := api.New(hasty{b.shop, func(context.Context) { panic("CANARY") }}, keys,
		api.Options{Logger: slog.New(slog.NewJSONHandler(b.log, nil))})
	require.NoError(t, err)
	b.API = a
	require.Equal(t, http.StatusServiceUnavailable, b.post(keyA, ordinary).Code)
	require.Contains(t, b.log.String(), `"level":"ERROR"`)
	require.Contains(t, b.log.String(), "api_test.")
	require.NotContains(t, b.log.String(), "CANARY")
}

// TestNothingSecretIsSaid: no key and no body in a log line, whatever the end.
func TestNothingSecretIsSaid(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	body := strings.Replace(ordinary, "<x>", "CANARY-BODY", 1)
	at := b.post(keyA, body).Header().Get("Location")
	b.post(keyA, body+"x")
	b.post(keyA, strings.Replace(body, "amount", "CANARY-BODY", 1))
	b.post(keyA+"x", body)
	b.post(readOnly, body)
	b.do(http.MethodGet, at, keyA, "")
	b.do(http.MethodGet, at+"?key="+keyA, keyA, "")
	b.do(http.MethodGet, "/CANARY-PATH", keyA, "")
	b.do("CANARY-METHOD", "/v1/orders", keyA, "")
	b.shop.fail = errors.New("no database")
	b.post(keyA, body)
	require.Equal(t, 10, strings.Count(b.log.String(), "\n"), "one line per request")
	for _, word := range []string{"TESTONLY", "CANARY", "Bearer", "?key"} {
		require.NotContains(t, b.log.String(), word)
	}
	require.Contains(t, b.log.String(), `"route":"/v1/orders/{id}","status":200`)
	require.Contains(t, b.log.String(), `"account":"a"`)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	b.post(keyA, ordinary)
	b.post(keyA, ordinary)
	for i := range 50 {
		b.do(http.MethodGet, fmt.Sprintf("/v1/orders/%d", i), keyA, "")
		b.do(http.MethodGet, fmt.Sprintf("/%d", i), keyA, "")
	}
	require.NoError(t, testutil.GatherAndCompare(b.reg, strings.NewReader(`
# HELP paidonce_api_requests_total Requests to the API, by route and answer.
# TYPE paidonce_api_requests_total counter
paidonce_api_requests_total{route="",status="404"} 50
paidonce_api_requests_total{route="/v1/orders",status="200"} 1
paidonce_api_requests_total{route="/v1/orders",status="201"} 1
paidonce_api_requests_total{route="/v1/orders/{id}",status="404"} 50
`), "paidonce_api_requests_total"))
	problems, err := testutil.GatherAndLint(b.reg)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	s := &shop{}
	_, err := api.New(nil, keys, api.Options{})
	require.Error(t, err)
	_, err = api.New(s, nil, api.Options{})
	require.Error(t, err)
	_, err = api.New(s, keys, api.Options{MaxBody: -1})
	require.ErrorContains(t, err, "Options.MaxBody")
}
