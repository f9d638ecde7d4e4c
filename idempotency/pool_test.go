package idempotency_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// slowReader is a caller that is written to only while the pool has all of its connections back.
type slowReader struct {
	*httptest.ResponseRecorder
	pool *pgxpool.Pool
	held int32
}

func (w *slowReader) WriteHeader(code int) {
	w.held += w.pool.Stat().AcquiredConns()
	w.ResponseRecorder.WriteHeader(code)
}

func (w *slowReader) Write(p []byte) (int, error) {
	w.held += w.pool.Stat().AcquiredConns()
	return w.ResponseRecorder.Write(p)
}

// A pool of one connection is enough for every way through, and nobody who reads slowly keeps it.
func TestAnswersAreWrittenWithoutAConnection(t *testing.T) {
	t.Parallel()
	pool := poolWith(t, func(cfg *pgxpool.Config) { cfg.MaxConns = 1 })
	b := benchOn(t, pool, func(o *idempotency.Options) {
		o.Authorize = func(r *http.Request, _ idempotency.Record) error {
			if r.Header.Get("Authorization") == "revoked" {
				return errors.New("no")
			}
			return nil
		}
	})
	p := idempotency.Strict()
	p.MaxResponse = 500
	alone := p
	alone.NoTx = true
	send := func(h http.Handler, c call, status int) {
		t.Helper()
		w := &slowReader{ResponseRecorder: httptest.NewRecorder(), pool: pool}
		h.ServeHTTP(w, c.request())
		require.Equal(t, status, w.Code, w.Body.String())
		require.Zero(t, w.held)
	}
	send(b.with(p, b.effect), post("k", `{}`), 201)
	send(b.with(p, b.effect), post("k", `{}`), 201)
	send(b.with(p, b.effect), post("k", `[]`), 422)
	send(b.with(p, b.effect), post("k", `{}`).set("Authorization", "revoked"), 403)
	send(b.with(p, b.status(409)), post("4xx", `{}`), 409)
	send(b.with(p, b.status(500)), post("5xx", `{}`), 500)
	send(b.with(alone, answering(200, "", "")), post("alone", `{}`), 200)
	send(b.with(alone, answering(500, "", "no")), post("alone 5xx", `{}`), 500)
	send(b.with(p, func(w http.ResponseWriter, r *http.Request) { breakTx(r.Context()); w.WriteHeader(201) }), post("broken", `{}`), 500)
	b.crash("crashed", `{}`)
	send(b.with(p, b.effect), post("crashed", `{}`), 409)
	b.shift(31 * time.Second)
	send(b.with(p, b.effect), post("crashed", `{}`), 201)
	long := answering(200, "text/plain", string(make([]byte, 501)))
	send(b.with(p, long), post("long", `{}`), 200)
	send(b.with(p, long), post("long", `{}`), 409)
	// The session that dies takes the only connection with it, and a new one is there to settle.
	h := b.with(p, func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		_, _ = tx.Exec(r.Context(), `SELECT pg_terminate_backend(pg_backend_pid())`)
		w.WriteHeader(201)
	})
	w := post("dead", `{}`).to(h)
	require.Contains(t, []int{500, 503}, w.Code)
	require.Equal(t, "FAILED", b.record("dead").State)
}

func TestRowsThatTheHandlerLeavesOpen(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		rows, err := tx.Query(r.Context(), `SELECT generate_series(1, 10)`)
		if err != nil || !rows.Next() {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	refused(t, post("k", `{}`).to(h), http.StatusInternalServerError, "idempotency_not_committed")
	require.Equal(t, "FAILED", b.record("k").State)
}

// Where sessions are serializable by default, losing a race is no error either.
func TestSerializableByDefault(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"serializable", "repeatable read"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			b := benchOn(t, poolWith(t, func(cfg *pgxpool.Config) {
				cfg.MaxConns = 10
				cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
			}), nil)
			h := b.strict(b.effect)
			for _, key := range []string{"a", "b", "c", "d", "e"} {
				if key > "c" {
					b.crash(key, `{}`)
					b.exec(`UPDATE idempotency_keys SET locked_at = now() - interval '1 minute' WHERE status = 'PROCESSING'`)
				}
				b.runs.Store(0)
				got := make([]*httptest.ResponseRecorder, 20)
				var wg sync.WaitGroup
				for i := range got {
					wg.Go(func() { got[i] = post(key, `{}`).to(h) })
				}
				wg.Wait()
				for _, w := range got {
					require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, w.Code, w.Body.String())
				}
				require.EqualValues(t, 1, b.runs.Load())
			}
		})
	}
}
