package api_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/store"
)

// protector notes who came as far as the middleware of idempotency, and whether its body had been read by then.
type protector struct {
	mu       sync.Mutex
	declared []string
	came     []string
}

func (p *protector) Protect(declared string) func(http.Handler) http.Handler {
	return p.middleware("protect " + declared)
}

func (p *protector) Exempt(reason string) func(http.Handler) http.Handler {
	return p.middleware("exempt " + reason)
}

func (p *protector) middleware(declared string) func(http.Handler) http.Handler {
	p.declared = append(p.declared, declared)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			p.mu.Lock()
			p.came = append(p.came, fmt.Sprintf("%s: %d bytes, err %v", declared, len(body), err))
			p.mu.Unlock()
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, r)
		})
	}
}

// TestOrderOfMiddlewares: authenticate, rate limit, idempotency, handler. Who is stopped by one of them is not seen by
// those behind it.
func TestOrderOfMiddlewares(t *testing.T) {
	t.Parallel()
	p := &protector{}
	b := setup(t, api.Options{Protector: p, Rate: 1, Burst: 2})

	for range 3 { // more than the burst
		require.Equal(t, http.StatusUnauthorized, b.post("nobody's", ordinary).Code)
		require.Equal(t, http.StatusForbidden, b.post(readOnly, ordinary).Code)
	}
	require.Empty(t, p.came, "who is not known, or may not, comes no further")

	require.Equal(t, http.StatusUnprocessableEntity, b.post(keyA, `{"data":{}}`).Code)
	require.Equal(t, []string{"protect account: 11 bytes, err <nil>"}, p.came, "the handler judges the body, behind idempotency")
	require.Equal(t, http.StatusCreated, b.post(keyA, ordinary).Code, "strangers have used up nothing of the account's share")
	require.Len(t, p.came, 2)
	read := &counting{}
	w := b.post(keyA, ordinary, func(r *http.Request) { r.Body = read })
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, api.CodeRateLimited, problemOf(t, w).Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Zero(t, read.n)
	require.Len(t, p.came, 2, "who is limited comes no further")
	require.Equal(t, http.StatusCreated, b.post(keyB, ordinary).Code, "another account has its own share")
}

// TestRateRefills: after what Retry-After says there is room again.
func TestRateRefills(t *testing.T) {
	t.Parallel()
	at := now
	s := &shop{orders: map[string]*store.Order{}}
	a, err := api.New(s, s, keys, api.Options{Rate: 2, Burst: 3, Now: func() time.Time { return at }})
	require.NoError(t, err)
	b := &bench{API: a, shop: s}
	codes := func(n int) (got []int) {
		for range n {
			got = append(got, b.do(http.MethodGet, "/v1/orders/x", keyA, "").Code)
		}
		return got
	}
	require.Equal(t, []int{404, 404, 404, 429, 429, 429}, codes(6))
	at = at.Add(500 * time.Millisecond)
	require.Equal(t, []int{404, 429}, codes(2), "who is refused uses up nothing")
	at = at.Add(time.Hour)
	require.Equal(t, []int{404, 404, 404, 429}, codes(4), "no more than the burst")
}

// TestBucketsAreBounded: ever new accounts do not fill the memory, and do not give an account its share anew.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	account := "first"
	s := &shop{orders: map[string]*store.Order{}}
	one := func() []api.Key {
		return []api.Key{{Account: account, SHA256: sha256.Sum256([]byte(keyA)), Read: true}}
	}
	a, err := api.New(s, s, one, api.Options{Rate: 1, Burst: 2, Now: func() time.Time { return now }})
	require.NoError(t, err)
	b := &bench{API: a, shop: s}
	get := func() int { return b.do(http.MethodGet, "/v1/orders/x", keyA, "").Code }
	require.Equal(t, []int{404, 404, 429}, []int{get(), get(), get()})
	for i := range api.MaxBuckets + 10 {
		account = fmt.Sprint("other", i)
		require.Equal(t, 404, get())
	}
	account = "first"
	require.Equal(t, 429, get())
	require.LessOrEqual(t, a.Buckets(), api.MaxBuckets)
}

// TestUndeclaredRoute (N11): there is no API with a route that changes something and does not say what a repeat does.
func TestUndeclaredRoute(t *testing.T) {
	t.Parallel()
	s := &shop{orders: map[string]*store.Order{}}
	_, err := api.NewWithRoute(s, s, keys, api.Options{}, "", nil)
	require.EqualError(t, err, "api: POST /v1/tries declares no idempotency policy, and no reason to be exempt")
	for declared, want := range map[string]string{"protected": "protect account", "exempt": "exempt it changes nothing"} {
		p := &protector{}
		_, err = api.NewWithRoute(s, s, keys, api.Options{Protector: p}, declared, func(context.Context) error { return nil })
		require.NoError(t, err)
		require.Equal(t, []string{"protect account", want}, p.declared)
	}
}

// TestKeyWithoutProtector: what cannot be promised is not done.
func TestKeyWithoutProtector(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k1") }
	require.Equal(t, http.StatusServiceUnavailable, b.post(keyA, ordinary, key).Code)
	require.Empty(t, b.shop.events)
	require.Equal(t, http.StatusCreated, b.post(keyA, ordinary).Code)
	require.Equal(t, http.StatusNotFound, b.do(http.MethodGet, "/v1/orders/x", keyA, "", key).Code, "a GET ignores the header")
}
