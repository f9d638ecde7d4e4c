package api_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store"
)

// TestOrderOfMiddlewares: authenticate, rate limit, idempotency, handler. Who is stopped by one of them leaves no trace in
// those behind it.
func TestOrderOfMiddlewares(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, api.Options{Rate: 1, Burst: 3})
	key := func(k string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Idempotency-Key", k) }
	}
	kept := func() (states []string) {
		rows, err := b.pool.Query(t.Context(), `SELECT idempotency_key || ' ' || status || ' ' || coalesce(response_code::text, '') FROM idempotency_keys ORDER BY 1`)
		require.NoError(t, err)
		states, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return states
	}

	for range 5 { // more than the burst
		read := &counting{}
		body := func(r *http.Request) { r.Body = read }
		require.Equal(t, http.StatusUnauthorized, b.post("nobody's", ordinary, key("k0"), body).Code)
		require.Equal(t, http.StatusForbidden, b.post(readOnly, ordinary, key("k0"), body).Code)
		require.Zero(t, read.n)
	}
	require.Empty(t, kept(), "who is not known, or may not, comes no further")

	require.Equal(t, http.StatusUnprocessableEntity, b.post(keyA, `{"data":{}}`, key("k1")).Code)
	require.Equal(t, []string{"k1 COMPLETED 422"}, kept(), "the handler judges the body, behind idempotency")
	first := b.post(keyA, ordinary, key("k2"))
	require.Equal(t, http.StatusCreated, first.Code, "strangers have used up nothing of the account's share")
	again := b.post(keyA, ordinary, key("k2"))
	require.Equal(t, http.StatusCreated, again.Code, "replayed: without the key it would be 200")
	require.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
	require.Equal(t, first.Body.String(), again.Body.String())

	read := &counting{}
	w := b.post(keyA, ordinary, key("k2"), func(r *http.Request) { r.Body = read })
	require.Equal(t, http.StatusTooManyRequests, w.Code, "a replay counts too")
	require.Equal(t, api.CodeRateLimited, problemOf(t, w).Code)
	require.Equal(t, "1", w.Header().Get("Retry-After"))
	require.Zero(t, read.n)
	require.Equal(t, http.StatusTooManyRequests, b.post(keyA, ordinary, key("k3")).Code)
	require.Len(t, kept(), 2, "who is limited comes no further")
	require.Equal(t, http.StatusCreated, b.post(keyB, ordinary, key("k2")).Code, "another account has its own share, and its own keys")
	require.Contains(t, b.log.String(), `"idempotency":"replayed"`)
}

// TestPolicyOfTheAccount: the account decides whether a key may be missing.
func TestPolicyOfTheAccount(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, api.Options{Policy: func(account string) idempotency.Policy {
		p := idempotency.Relaxed()
		p.Require = account == "a"
		return p
	}})
	w := b.post(keyA, ordinary)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Equal(t, api.Code("idempotency_key_missing"), problemOf(t, w).Code)
	require.Equal(t, http.StatusCreated, b.post(keyB, ordinary).Code)
	require.Equal(t, http.StatusOK, b.do(http.MethodGet, "/v1/orders", keyA, "").Code, "a GET needs none")
}

// TestUnitOfWork: under a key, order and answer are committed together or not at all, and what Postgres refused for the
// sake of another transaction is done again.
func TestUnitOfWork(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, api.Options{})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k1") }
	orders := func() (n int) {
		require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&n))
		return n
	}
	// The answer cannot be stored: no order either.
	_, err := b.pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF NEW.status = 'COMPLETED' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$;
		CREATE TRIGGER refuse BEFORE UPDATE ON idempotency_keys FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	require.GreaterOrEqual(t, b.post(keyA, ordinary, key).Code, 500)
	require.Zero(t, orders())
	// The order cannot be made: no answer that would be replayed.
	_, err = b.pool.Exec(t.Context(), `
		DROP TRIGGER refuse ON idempotency_keys;
		CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'secret'; END $$;
		CREATE TRIGGER fail BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION fail()`)
	require.NoError(t, err)
	w := b.post(keyA, ordinary, key)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotContains(t, w.Body.String(), "secret")
	// A deadlock is nobody's fault.
	_, err = b.pool.Exec(t.Context(), `
		CREATE SEQUENCE tries;
		CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
			IF nextval('tries') < 3 THEN RAISE EXCEPTION 'again' USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$`)
	require.NoError(t, err)
	w = b.post(keyA, ordinary, key)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Equal(t, 1, orders())
	_, err = b.pool.Exec(t.Context(), `ALTER SEQUENCE tries RESTART`)
	require.NoError(t, err)
	require.Equal(t, http.StatusCreated, b.post(keyB, ordinary).Code, "without a key too")
	require.Equal(t, 2, orders())
}

// TestRateRefills: after what Retry-After says there is room again.
func TestRateRefills(t *testing.T) {
	t.Parallel()
	at := now
	s := &shop{orders: map[string]*store.Order{}}
	a, err := api.New(s, keys, api.Options{Rate: 2, Burst: 3, Now: func() time.Time { return at }})
	require.NoError(t, err)
	b := &bench{t: t, API: a, shop: s}
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
	a, err := api.New(s, one, api.Options{Rate: 1, Burst: 2, Now: func() time.Time { return now }})
	require.NoError(t, err)
	b := &bench{t: t, API: a, shop: s}
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
	_, err := api.NewWithRoute(s, keys, api.Options{}, "", nil)
	require.EqualError(t, err, "api: POST /v1/tries declares no idempotency policy, and no reason to be exempt")
	for _, declared := range []string{"protected", "exempt"} {
		_, err = api.NewWithRoute(s, keys, api.Options{}, declared, nil)
		require.NoError(t, err)
	}
	// What package idempotency finds out by itself is an error too.
	b := onPostgres(t, api.Options{})
	_, err = api.NewWithRoute(s, keys, api.Options{Idempotency: b.once}, "protected", nil)
	require.NoError(t, err)
}

// TestKeyWithoutProtection: what cannot be promised is not done.
func TestKeyWithoutProtection(t *testing.T) {
	t.Parallel()
	b := setup(t, api.Options{})
	key := func(r *http.Request) { r.Header.Set("Idempotency-Key", "k1") }
	require.Equal(t, http.StatusServiceUnavailable, b.post(keyA, ordinary, key).Code)
	require.Empty(t, b.shop.events)
	require.Equal(t, http.StatusCreated, b.post(keyA, ordinary).Code)
	require.Equal(t, http.StatusNotFound, b.do(http.MethodGet, "/v1/orders/x", keyA, "", key).Code, "a GET ignores the header")
}
