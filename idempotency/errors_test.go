package idempotency_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestT43_StrictKeepsARefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.status(http.StatusUnprocessableEntity))
	first := post("k", `{"a":1}`).to(h)
	executed(t, first, http.StatusUnprocessableEntity)
	replays(t, post("k", `{"a":1}`).to(h), first)
	require.EqualValues(t, 1, b.runs.Load())
	require.Zero(t, b.effects(), "what the handler wrote is rolled back")
	require.Equal(t, "COMPLETED", b.record("k").State)
	refused(t, post("k", `{"a":2}`).to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
}

func TestT43b_RelaxedForgetsARefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if string(body) == `{"wrong":1}` {
			b.status(http.StatusUnprocessableEntity)(w, r)
			return
		}
		b.effect(w, r)
	})
	executed(t, post("k", `{"wrong":1}`).to(h), http.StatusUnprocessableEntity)
	b.shift(time.Hour)
	first := post("k", `{"right":1}`).to(h)
	executed(t, first, http.StatusCreated)
	replays(t, post("k", `{"right":1}`).to(h), first)
	refused(t, post("k", `{"wrong":1}`).to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.EqualValues(t, 2, b.runs.Load())
	require.Equal(t, 1, b.effects())
	require.Equal(t, 1, count(t, b.pool, `
		SELECT count(*) FROM idempotency_keys
		WHERE hash_bound AND created_at > now() - interval '1 minute' AND expires_at = created_at + interval '24 hours'`),
		"the corrected request is the first use of the key")
}

func TestT44_ServerErrors(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	failing := b.status(http.StatusInternalServerError)

	executed(t, post("a", `{"a":1}`).to(b.strict(failing)), http.StatusInternalServerError)
	failed := b.record("a")
	require.Equal(t, "FAILED", failed.State)
	require.Equal(t, "status 500", failed.LastError)
	require.Equal(t, "execute", failed.Next)
	require.Equal(t, "key_reused", failed.NextOther)
	require.Zero(t, b.effects())
	refused(t, post("a", `{"a":2}`).to(b.strict(b.effect)), http.StatusUnprocessableEntity, "idempotency_key_reused")
	b.shift(time.Hour)
	first := post("a", `{"a":1}`).to(b.strict(b.effect))
	executed(t, first, http.StatusCreated)
	replays(t, post("a", `{"a":1}`).to(b.strict(b.effect)), first)
	after := b.record("a")
	require.Equal(t, failed.Fence+1, after.Fence)
	require.Equal(t, 2, after.Attempts)
	require.Equal(t, failed.ExpiresAt.Add(-time.Hour), after.ExpiresAt, "counted from the first use")

	executed(t, post("b", `{"a":1}`).to(b.relaxed(failing)), http.StatusInternalServerError)
	require.Equal(t, "execute", b.record("b").NextOther)
	executed(t, post("b", `{"a":2}`).to(b.relaxed(b.effect)), http.StatusCreated)
	require.Equal(t, 2, b.effects())
}

func TestT45_TemporaryRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, code := range []int{408, 425, 429, 500, 502, 503, 504} {
		key := http.StatusText(code)
		executed(t, post(key, `{}`).to(b.strict(b.status(code))), code)
		require.Equal(t, "FAILED", b.record(key).State)
		executed(t, post(key, `{}`).to(b.strict(b.effect)), http.StatusCreated)
	}
	for _, code := range []int{400, 401, 402, 403, 404, 409, 410, 418, 422, 451} {
		key := http.StatusText(code)
		first := post(key, `{}`).to(b.strict(b.status(code)))
		executed(t, first, code)
		replays(t, post(key, `{}`).to(b.strict(b.effect)), first)
	}
}

func TestT46_HandlersThatDoNotReturn(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, noTx := range []bool{false, true} {
		p := idempotency.Strict()
		p.NoTx = noTx
		for name, leave := range map[string]func(){
			"panic":  func() { panic("boom") },
			"abort":  func() { panic(http.ErrAbortHandler) },
			"goexit": runtime.Goexit,
		} {
			if noTx {
				name += " without tx"
			}
			h := b.with(p, func(w http.ResponseWriter, r *http.Request) {
				if !noTx {
					if _, err := write(r.Context()); err != nil {
						t.Error(err)
					}
				}
				w.WriteHeader(http.StatusCreated)
				leave()
			})
			w := httptest.NewRecorder()
			var value any
			var wg sync.WaitGroup
			wg.Go(func() {
				defer func() { value = recover() }()
				h.ServeHTTP(w, post(name, `{}`).request())
			})
			wg.Wait()
			switch name[:5] {
			case "panic":
				require.Equal(t, "boom", value, "it goes on to whoever recovers outside")
			case "abort":
				require.Equal(t, http.ErrAbortHandler, value)
			}
			require.Empty(t, w.Body.String())
			r := b.record(name)
			require.Equal(t, "FAILED", r.State)
			require.Equal(t, "panic", r.LastError)
			require.Zero(t, b.effects())
			executed(t, post(name, `{}`).to(b.with(p, answering(201, "", ""))), http.StatusCreated)
		}
	}
	require.Zero(t, b.pool.Stat().AcquiredConns())
}

func TestT47_DeadlineOfTheHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.Deadline = 50 * time.Millisecond
	for key, status := range map[string]int{"answers success": 201, "answers an error": 500} {
		w := post(key, `{}`).to(b.with(p, func(w http.ResponseWriter, r *http.Request) {
			if _, err := write(r.Context()); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
			w.WriteHeader(status)
		}))
		if status == 201 {
			refused(t, w, http.StatusServiceUnavailable, "idempotency_deadline_exceeded")
			require.Equal(t, "1", w.Header().Get("Retry-After"))
		} else {
			executed(t, w, status)
		}
		require.Zero(t, b.effects())
		require.Equal(t, "FAILED", b.record(key).State)
		require.Equal(t, "deadline exceeded", b.record(key).LastError)
		executed(t, post(key, `{}`).to(b.with(p, answering(201, "", ""))), http.StatusCreated)
	}
	// A query that the deadline cuts off takes the connection with it.
	w := post("query", `{}`).to(b.with(p, func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		_, err := tx.Exec(r.Context(), `SELECT pg_sleep(60)`)
		idempotency.Fail(r.Context(), err)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	executed(t, w, http.StatusInternalServerError)
	require.Equal(t, "FAILED", b.record("query").State)
}

func TestT48_RefusalsAreNeverStored(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(b.effect)
	post("k", `{`).to(h)
	first := post("k", `{}`).to(h)
	executed(t, first, http.StatusCreated)
	refused(t, post("k", `[]`).to(h), http.StatusUnprocessableEntity, "idempotency_key_reused")
	replays(t, post("k", `{}`).to(h), first)
}

func TestT50_RefusalsOutsideLeaveNoRow(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	inner := b.strict(b.effect)
	outer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	require.Equal(t, http.StatusUnauthorized, post("k", `{}`).to(outer).Code)
	require.Zero(t, b.keys())
	executed(t, post("k", `{}`).set("Authorization", "x").to(outer), http.StatusCreated)
}

func TestWritesOfARefusalCanBeKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	p.KeepWrites = true
	executed(t, post("route", `{}`).to(b.with(p, b.status(http.StatusConflict))), http.StatusConflict)
	require.Equal(t, 1, b.effects())
	executed(t, post("call", `{}`).to(b.strict(func(w http.ResponseWriter, r *http.Request) {
		idempotency.KeepWrites(r.Context())
		b.status(http.StatusConflict)(w, r)
	})), http.StatusConflict)
	require.Equal(t, 2, b.effects())
	executed(t, post("not", `{}`).to(b.strict(b.status(http.StatusConflict))), http.StatusConflict)
	require.Equal(t, 2, b.effects())
}

// breakTx leaves a transaction in which nothing but ROLLBACK is possible.
func breakTx(ctx context.Context) {
	tx, _ := idempotency.Tx(ctx)
	_, _ = tx.Exec(ctx, `SELECT 1/0`)
}

func TestFailedStatementThatTheHandlerPassesOver(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		breakTx(r.Context())
		w.WriteHeader(http.StatusCreated)
	})
	refused(t, post("success", `{}`).to(h), http.StatusInternalServerError, "idempotency_not_committed")
	require.Equal(t, "FAILED", b.record("success").State)

	h = b.strict(func(w http.ResponseWriter, r *http.Request) {
		breakTx(r.Context())
		b.statusOnly(w, http.StatusConflict)
	})
	first := post("refusal", `{}`).to(h)
	executed(t, first, http.StatusConflict)
	replays(t, post("refusal", `{}`).to(h), first)

	h = b.strict(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		_, err := tx.Exec(r.Context(), `ROLLBACK`) // behind our back: the row's lock is gone
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	refused(t, post("rollback", `{}`).to(h), http.StatusInternalServerError, "idempotency_not_committed")
	require.Equal(t, "FAILED", b.record("rollback").State)
}

func (b *bench) statusOnly(w http.ResponseWriter, code int) {
	b.runs.Add(1)
	w.WriteHeader(code)
}

func TestT62_ConflictsAreRunAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.exec(`CREATE TABLE counter (n int NOT NULL)`)
	b.exec(`INSERT INTO counter VALUES (0)`)
	p := idempotency.Strict()
	p.Isolation = pgx.RepeatableRead
	var bodies []string
	h := b.with(p, func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		tx, _ := idempotency.Tx(ctx)
		if _, err := write(ctx); err != nil { // takes the snapshot
			t.Error(err)
		}
		if b.runs.Add(1) <= 2 {
			b.exec(`UPDATE counter SET n = n + 1`) // somebody else is faster
		}
		if _, err := tx.Exec(ctx, `UPDATE counter SET n = n + 1`); err != nil {
			idempotency.Fail(ctx, err)
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	first := post("k", `{"a":1}`).to(h)
	executed(t, first, http.StatusCreated)
	require.EqualValues(t, 3, b.runs.Load())
	require.Equal(t, []string{`{"a":1}`, `{"a":1}`, `{"a":1}`}, bodies)
	require.Equal(t, 1, b.effects())
	require.Equal(t, 3, count(t, b.pool, `SELECT n FROM counter`))
	require.EqualValues(t, 1, b.record("k").Fence)
	replays(t, post("k", `{"a":1}`).to(h), first)
}

func TestT62_ConflictsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for _, code := range []string{"40P01", "40001", "55P03"} {
		b.runs.Store(0)
		h := b.strict(func(w http.ResponseWriter, r *http.Request) {
			b.runs.Add(1)
			if _, err := write(r.Context()); err != nil {
				t.Error(err)
			}
			idempotency.Fail(r.Context(), &pgconn.PgError{Code: code})
			http.Error(w, "deadlock detected", http.StatusInternalServerError)
		})
		w := post(code, `{}`).to(h)
		refused(t, w, http.StatusServiceUnavailable, "idempotency_not_committed")
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.EqualValues(t, 4, b.runs.Load())
		require.Zero(t, b.effects())
		require.Equal(t, "SQLSTATE "+code, b.record(code).LastError)
	}
}

func TestT62_CommitThatIsRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.exec(`CREATE SEQUENCE commits`)
	b.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('commits') <= 2 THEN RAISE EXCEPTION 'later' USING ERRCODE = '40001'; END IF;
		IF NEW.note = 'never' THEN RAISE EXCEPTION 'never' USING ERRCODE = '23514'; END IF;
		RETURN NULL; END $$`)
	b.exec(`CREATE CONSTRAINT TRIGGER refuse AFTER INSERT OR UPDATE ON effects DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`)
	executed(t, post("later", `{}`).to(b.strict(b.effect)), http.StatusCreated)
	require.EqualValues(t, 3, b.runs.Load())
	require.Equal(t, 1, b.effects())

	never := b.strict(func(w http.ResponseWriter, r *http.Request) {
		b.effect(w, r)
		tx, _ := idempotency.Tx(r.Context())
		if _, err := tx.Exec(r.Context(), `UPDATE effects SET note = 'never'`); err != nil {
			t.Error(err)
		}
	})
	refused(t, post("never", `{}`).to(never), http.StatusInternalServerError, "idempotency_not_committed")
	require.Equal(t, 1, b.effects())
	require.Equal(t, "FAILED", b.record("never").State)
	require.Equal(t, "SQLSTATE 23514", b.record("never").LastError)
	executed(t, post("never", `{}`).to(b.strict(b.effect)), http.StatusCreated)
}

func TestT63_OneReferenceUnderTwoKeys(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.exec(`CREATE TABLE carts (ref text PRIMARY KEY, id uuid NOT NULL DEFAULT gen_random_uuid())`)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		var id string
		err := tx.QueryRow(r.Context(), `INSERT INTO carts (ref) VALUES ('c') ON CONFLICT DO NOTHING RETURNING id::text`).Scan(&id)
		status := http.StatusCreated
		if errors.Is(err, pgx.ErrNoRows) {
			status = http.StatusOK
			err = tx.QueryRow(r.Context(), `SELECT id::text FROM carts WHERE ref = 'c'`).Scan(&id)
		}
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, id)
	})
	got := make([]*httptest.ResponseRecorder, 8)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = post(string(rune('a'+i)), `{}`).to(h) })
	}
	wg.Wait()
	created := 0
	for _, w := range got {
		require.Equal(t, got[0].Body.String(), w.Body.String())
		if w.Code == http.StatusCreated {
			created++
		} else {
			require.Equal(t, http.StatusOK, w.Code)
		}
	}
	require.Equal(t, 1, created)
}

// That the answer is stored is what the COMMIT, which is already on its way behind it, depends on.
func TestAnswerThatCannotBeStoredCommitsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		b.effect(w, r)
		tx, _ := idempotency.Tx(r.Context())
		if _, err := tx.Exec(r.Context(), `UPDATE idempotency_keys SET fence = fence + 1`); err != nil {
			t.Error(err)
		}
	})
	refused(t, post("k", `{}`).to(h), http.StatusInternalServerError, "idempotency_not_committed")
	require.Zero(t, b.effects())
	require.Equal(t, "FAILED", b.record("k").State)
}
