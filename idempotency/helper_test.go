package idempotency_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// patience bounds waiting for what must happen soon.
const patience = 20 * time.Second

// bench is one database with a middleware on it, and a table in which handlers leave their effects.
type bench struct {
	t     testing.TB
	pool  *pgxpool.Pool
	store *idempotency.Store
	mw    *idempotency.Middleware
	runs  atomic.Int64 // of the handlers below
}

// newBench opens a database. change may be nil.
func newBench(t testing.TB, change func(*idempotency.Options)) *bench {
	t.Helper()
	return benchOn(t, storetest.Open(t), change)
}

func benchOn(t testing.TB, pool *pgxpool.Pool, change func(*idempotency.Options)) *bench {
	t.Helper()
	b := &bench{t: t, pool: pool}
	_, err := pool.Exec(t.Context(), `CREATE TABLE IF NOT EXISTS effects (id uuid PRIMARY KEY, note text NOT NULL)`)
	require.NoError(t, err)
	b.store, err = idempotency.NewStore(pool, idempotency.StoreOptions{})
	require.NoError(t, err)
	opts := idempotency.Options{Scope: scopeOf}
	if change != nil {
		change(&opts)
	}
	b.mw, err = idempotency.New(b.store, opts)
	require.NoError(t, err)
	return b
}

// scopeOf stands for authentication: tests say who they are in a header.
func scopeOf(r *http.Request) (idempotency.Scope, error) {
	kind, id, ok := strings.Cut(r.Header.Get("Test-Caller"), "/")
	if !ok {
		return idempotency.Scope{}, idempotency.ErrUnauthenticated
	}
	n, err := strconv.Atoi(id)
	if err != nil {
		return idempotency.Scope{}, err
	}
	return caller(kind, n), nil
}

func caller(kind string, n int) idempotency.Scope {
	return idempotency.Scope{Kind: kind, ID: uuid.UUID{15: byte(n)}}
}

// alice is the caller of most tests.
var alice = caller("user", 7)

// effect inserts a row through the unit of work, and answers 201 with its id.
func (b *bench) effect(w http.ResponseWriter, r *http.Request) {
	b.runs.Add(1)
	id, err := write(r.Context())
	if err != nil {
		idempotency.Fail(r.Context(), err)
		http.Error(w, "no", http.StatusInternalServerError)
		return
	}
	idempotency.SetResource(r.Context(), "effect", id)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Location", "/effects/"+id.String())
	w.WriteHeader(http.StatusCreated)
	_, _ = io.WriteString(w, `{"id":"`+id.String()+`"}`+"\n")
}

// write leaves an effect in the unit of work.
func write(ctx context.Context) (uuid.UUID, error) {
	tx, ok := idempotency.Tx(ctx)
	if !ok {
		return uuid.Nil, errors.New("no unit of work")
	}
	id := uuid.New()
	_, err := tx.Exec(ctx, `INSERT INTO effects (id, note) VALUES ($1, $2)`, id.String(), "test")
	return id, err
}

// status answers with one status after having left an effect.
func (b *bench) status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.runs.Add(1)
		if _, err := write(r.Context()); err != nil {
			b.t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"run":`+strconv.FormatInt(b.runs.Load(), 10)+`}`)
	}
}

// effects is how many rows handlers have left.
func (b *bench) effects() int {
	b.t.Helper()
	return count(b.t, b.pool, `SELECT count(*) FROM effects`)
}

func (b *bench) keys() int {
	b.t.Helper()
	return count(b.t, b.pool, `SELECT count(*) FROM idempotency_keys`)
}

func (b *bench) exec(sql string, args ...any) {
	b.t.Helper()
	_, err := b.pool.Exec(context.Background(), sql, args...)
	require.NoError(b.t, err)
}

// shift moves all times of the table back: time passes.
func (b *bench) shift(d time.Duration) {
	b.t.Helper()
	b.exec(`UPDATE idempotency_keys SET created_at = created_at - $1::interval, locked_at = locked_at - $1::interval,
		expires_at = expires_at - $1::interval, completed_at = completed_at - $1::interval`, d)
}

// record is what the store knows of alice's key.
func (b *bench) record(key string) idempotency.Record {
	b.t.Helper()
	r, err := b.store.Inspect(context.Background(), alice, key)
	require.NoError(b.t, err)
	return r
}

func count(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

// wait polls the database for what must come true.
func (b *bench) wait(sql string, args ...any) {
	b.t.Helper()
	waitFor(b.t, b.pool, sql, args...)
}

func waitFor(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool {
		var is bool
		return pool.QueryRow(context.Background(), sql, args...).Scan(&is) == nil && is
	}, patience, 5*time.Millisecond, sql)
}

// strict and relaxed wrap a handler.
func (b *bench) strict(h http.HandlerFunc) http.Handler { return b.mw.Protect(idempotency.Strict())(h) }

func (b *bench) relaxed(h http.HandlerFunc) http.Handler {
	return b.mw.Protect(idempotency.Relaxed())(h)
}

func (b *bench) with(p idempotency.Policy, h http.HandlerFunc) http.Handler {
	return b.mw.Protect(p)(h)
}

// call is a request in the making; the zero value is a POST of alice's.
type call struct {
	method, target, body, contentType, caller string
	header                                    http.Header
}

// post is a call with a key and a JSON body.
func post(key, body string) call {
	return call{body: body, header: http.Header{"Idempotency-Key": {key}}}
}

func (c call) as(caller string) call { c.caller = caller; return c }

func (c call) at(method, target string) call {
	c.method, c.target = method, target
	return c
}

func (c call) set(name, value string) call {
	c.header = c.header.Clone()
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(name, value)
	return c
}

func (c call) request() *http.Request {
	or := func(s, d string) string {
		if s == "" {
			return d
		}
		return s
	}
	r := httptest.NewRequest(or(c.method, "POST"), or(c.target, "/v1/effects"), strings.NewReader(c.body))
	for name, values := range c.header {
		r.Header[name] = values
	}
	if r.Header.Get("Content-Type") == "" {
		r.Header.Set("Content-Type", or(c.contentType, "application/json"))
	}
	r.Header.Set("Test-Caller", or(c.caller, "user/7"))
	return r
}

// to sends the call, and returns the answer.
func (c call) to(h http.Handler) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, c.request())
	return w
}

// problemOf reads a problem.
func problemOf(t testing.TB, w *httptest.ResponseRecorder) (p struct {
	Type, Title, Code, Detail string
	Status                    int
	DiffersAt                 []string `json:"differs_at"`
	Errors                    []struct{ Pointer, Code, Detail string }
	Resource                  struct{ Type, ID, Href string }
},
) {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), w.Body.String())
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p), w.Body.String())
	require.Equal(t, w.Code, p.Status)
	return p
}

// refused asserts a problem of the middleware's.
func refused(t testing.TB, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	p := problemOf(t, w)
	require.Equal(t, code, p.Code)
	require.NotEmpty(t, p.Title)
	require.NotEmpty(t, p.Detail)
	require.Contains(t, p.Type, "#"+code)
	require.Empty(t, w.Header().Get("Idempotent-Replayed"))
}

// executed asserts a first answer.
func executed(t testing.TB, w *httptest.ResponseRecorder, status int) {
	t.Helper()
	require.Equal(t, status, w.Code, w.Body.String())
	require.Empty(t, w.Header().Values("Idempotent-Replayed"))
	require.Equal(t, "executed", w.Header().Get("Idempotency-Status"), w.Body.String())
}

// replays asserts that w repeats first, to the byte.
func replays(t testing.TB, w, first *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, first.Code, w.Code, w.Body.String())
	require.Equal(t, []string{"true"}, w.Header().Values("Idempotent-Replayed"))
	require.Equal(t, "replayed", w.Header().Get("Idempotency-Status"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, first.Body.Bytes(), w.Body.Bytes())
	require.Equal(t, first.Header().Values("Content-Type"), w.Header().Values("Content-Type"))
	require.Equal(t, first.Header().Values("Location"), w.Header().Values("Location"))
}
