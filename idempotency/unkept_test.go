package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// KeepWrites holds for refusals that are not stored, too: the attempt that is counted must not be forgotten with its answer.
func TestWritesOfAnAnswerThatIsNotStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	counting := func(p idempotency.Policy) idempotency.Policy { p.KeepWrites = true; return p }
	for name, tt := range map[string]struct {
		policy idempotency.Policy
		status int
		kept   int
		bound  bool
	}{
		"relaxed redirect":          {counting(idempotency.Relaxed()), http.StatusSeeOther, 0, false},
		"relaxed refusal":           {idempotency.Relaxed(), http.StatusUnprocessableEntity, 0, false},
		"relaxed refusal counted":   {counting(idempotency.Relaxed()), http.StatusUnprocessableEntity, 1, false},
		"strict later counted":      {counting(idempotency.Strict()), http.StatusTooManyRequests, 1, true},
		"strict later":              {idempotency.Strict(), http.StatusTooManyRequests, 0, true},
		"strict failure not kept":   {counting(idempotency.Strict()), http.StatusInternalServerError, 0, true},
		"relaxed failure not kept":  {counting(idempotency.Relaxed()), http.StatusBadGateway, 0, false},
		"relaxed refusal this call": {idempotency.Relaxed(), http.StatusConflict, 1, false},
	} {
		before := b.effects()
		h := b.with(tt.policy, func(w http.ResponseWriter, r *http.Request) {
			if name == "relaxed refusal this call" {
				idempotency.KeepWrites(r.Context())
			}
			b.status(tt.status)(w, r)
		})
		executed(t, post(name, `{}`).to(h), tt.status)
		require.Equal(t, tt.kept, b.effects()-before, name)
		r := b.record(name)
		require.Equal(t, "FAILED", r.State, name)
		require.Equal(t, tt.bound, r.Bound, name)
		require.Equal(t, "execute", r.Next, name)
		executed(t, post(name, `{}`).to(b.with(tt.policy, b.effect)), http.StatusCreated)
	}
	require.Zero(t, b.pool.Stat().AcquiredConns())
}

// Writes that stay although the answer is not stored are committed under the fence, as all are.
func TestWritesOfAnAnswerThatIsNotStoredNeedTheKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, spoil := range map[string]func(context.Context, pgx.Tx) error{
		"fence": func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE idempotency_keys SET fence = fence + 1`)
			return err
		},
		"failed": func(ctx context.Context, tx pgx.Tx) error {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
			return nil
		},
	} {
		h := b.relaxed(func(w http.ResponseWriter, r *http.Request) {
			idempotency.KeepWrites(r.Context())
			b.status(http.StatusUnprocessableEntity)(w, r)
			tx, _ := idempotency.Tx(r.Context())
			if err := spoil(r.Context(), tx); err != nil {
				t.Error(err)
			}
		})
		refused(t, post(name, `{}`).to(h), http.StatusInternalServerError, "idempotency_not_committed")
		require.Zero(t, b.effects())
		require.Equal(t, "FAILED", b.record(name).State)
	}
}

// A handler that says that it failed is not believed when it answers success: nothing of it is kept.
func TestSuccessOfAHandlerThatFailed(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		b.status(http.StatusCreated)(w, r)
		idempotency.Fail(r.Context(), errors.New("the printer is on fire"))
	})
	w := post("k", `{}`).to(h)
	refused(t, w, http.StatusInternalServerError, "idempotency_not_committed")
	require.NotContains(t, w.Body.String(), "printer")
	require.Zero(t, b.effects())
	require.Equal(t, "FAILED", b.record("k").State)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusCreated)
}

// net/http panics at a status that there is not. Here that must happen before the COMMIT and not behind it.
func TestStatusThatThereIsNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, code := range []int{-1, 0, 99, 1000} {
		key := fmt.Sprint("status ", code)
		require.Panics(t, func() { post(key, `{}`).to(b.strict(b.status(code))) }, key)
		require.Equal(t, "FAILED", b.record(key).State)
		require.Zero(t, b.effects())
	}
	require.Zero(t, b.pool.Stat().AcquiredConns())
}

// refuser is a connection that breaks where a unit of work begins.
type refuser struct {
	net.Conn
	armed *atomic.Bool
}

func (c *refuser) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("BEGIN ISOLATION")) && c.armed.CompareAndSwap(true, false) {
		_ = c.Conn.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(p)
}

// A handler that was not run has answered nothing that would hold the key: in the relaxed profile the next call may bring
// another body, as after any failure.
func TestKeyOfWorkThatCouldNotBegin(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool
	b := benchOn(t, poolWith(t, func(cfg *pgxpool.Config) {
		cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // statements go over the wire in words
		dial := cfg.ConnConfig.DialFunc
		cfg.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &refuser{Conn: conn, armed: &armed}, err
		}
	}), nil)
	for name, h := range map[string]http.Handler{"strict": b.strict(b.effect), "relaxed": b.relaxed(b.effect)} {
		before := b.effects()
		armed.Store(true)
		refused(t, post(name, `{"a":1}`).to(h), http.StatusServiceUnavailable, "idempotency_unavailable")
		require.False(t, armed.Load())
		require.Equal(t, "FAILED", b.record(name).State)
		other := post(name, `{"a":2}`).to(h)
		if name == "strict" {
			refused(t, other, http.StatusUnprocessableEntity, "idempotency_key_reused")
			other = post(name, `{"a":1}`).to(h)
		}
		executed(t, other, http.StatusCreated)
		require.Equal(t, 1, b.effects()-before, name)
	}
}
