package idempotency_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// owner is a call whose handler is held until it is let go.
type owner struct {
	began chan context.Context // its handler's, with the effect written
	let   chan struct{}        // close it
	done  chan struct{}
	w     *httptest.ResponseRecorder
}

// hold starts a call in the background, and returns when its handler runs. after may be nil.
func (b *bench) hold(p idempotency.Policy, c call, after http.HandlerFunc) *owner {
	b.t.Helper()
	o := &owner{began: make(chan context.Context, 1), let: make(chan struct{}), done: make(chan struct{}), w: httptest.NewRecorder()}
	if after == nil {
		after = answering(http.StatusCreated, "text/plain", "done")
	}
	h := b.with(p, func(w http.ResponseWriter, r *http.Request) {
		b.runs.Add(1)
		if _, ok := idempotency.Tx(r.Context()); ok {
			if _, err := write(r.Context()); err != nil {
				b.t.Error(err)
			}
		}
		o.began <- r.Context()
		<-o.let
		after(w, r)
	})
	go func() {
		defer close(o.done)
		h.ServeHTTP(o.w, c.request())
	}()
	return o
}

// run waits until the handler runs.
func (o *owner) run(t testing.TB) context.Context {
	t.Helper()
	select {
	case ctx := <-o.began:
		return ctx
	case <-time.After(patience):
		t.Fatal("the handler does not run")
		return nil
	}
}

// finish lets the handler go, and returns the answer.
func (o *owner) finish(t testing.TB) *httptest.ResponseRecorder {
	t.Helper()
	close(o.let)
	select {
	case <-o.done:
	case <-time.After(patience):
		t.Fatal("the call does not end")
	}
	return o.w
}

// quick is a policy whose locks are soon old.
func quick() idempotency.Policy {
	p := idempotency.Strict()
	p.LockTimeout = 100 * time.Millisecond
	p.Deadline = time.Minute
	return p
}

const sqlLockIsOld = `SELECT bool_and(locked_at + lock_timeout < clock_timestamp()) FROM idempotency_keys`

// crash leaves a key as a call does whose process was killed: claimed, and nobody there.
func (b *bench) crash(key, body string) {
	b.t.Helper()
	executed(b.t, post(key, body).to(b.strict(answering(500, "", ""))), 500)
	b.exec(`UPDATE idempotency_keys SET status = 'PROCESSING', locked_at = clock_timestamp() WHERE idempotency_key = $1`, key)
}

func TestT51_AHundredAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	const n = 100
	var rejected atomic.Int64
	others := make(chan struct{})
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		<-others // all others have been answered while this one runs
		b.effect(w, r)
	})
	got := make([]*httptest.ResponseRecorder, n)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			got[i] = post("k", `{"a":1}`).to(h)
			if got[i].Code == http.StatusConflict && rejected.Add(1) == n-1 {
				close(others)
			}
		})
	}
	wg.Wait()
	var first *httptest.ResponseRecorder
	for _, w := range got {
		if w.Code == http.StatusCreated {
			require.Nil(t, first, "one winner")
			first = w
			continue
		}
		refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
		require.Equal(t, "in-progress", w.Header().Get("Idempotency-Status"))
		require.Contains(t, []string{"29", "30"}, w.Header().Get("Retry-After"))
	}
	executed(t, first, http.StatusCreated)
	require.EqualValues(t, 1, b.runs.Load())
	require.Equal(t, 1, b.effects())
	for range 5 {
		replays(t, post("k", `{"a":1}`).to(h), first)
	}
}

func TestT52_WaitersGetTheAnswer(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b := newBench(t, func(o *idempotency.Options) { o.Registerer = reg })
	p := idempotency.Strict()
	p.InFlight = idempotency.Wait(30 * time.Second)
	o := b.hold(p, post("k", `{}`), nil)
	o.run(t)

	h := b.with(p, b.effect)
	const n = 99
	got := make([]*httptest.ResponseRecorder, n)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = post("k", `{}`).to(h) })
	}
	gone, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	go func() {
		defer close(left)
		h.ServeHTTP(httptest.NewRecorder(), post("k", `{}`).request().WithContext(gone))
	}()
	require.Eventually(t, func() bool { return decided(t, reg, "in_flight") == n+1 }, patience, time.Millisecond)
	require.Eventually(t, func() bool { return b.pool.Stat().AcquiredConns() == 1 }, patience, time.Microsecond,
		"a hundred wait, and only the owner has a connection")
	leave()
	<-left // a waiter whose client has gone waits no more

	first := o.finish(t)
	executed(t, first, http.StatusCreated)
	wg.Wait()
	for _, w := range got {
		replays(t, w, first)
	}
	require.EqualValues(t, 1, b.runs.Load())
}

func TestT52_WaitersThatWaitInVain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := idempotency.Strict()
	o := b.hold(p, post("k", `{}`), nil)
	o.run(t)
	p.InFlight = idempotency.Wait(30 * time.Millisecond)
	refused(t, post("k", `{}`).to(b.with(p, b.effect)), http.StatusConflict, "idempotency_key_in_progress")
	o.finish(t)
}

func TestT53_OtherBodyWhileInFlight(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	o := b.hold(idempotency.Strict(), post("k", `{"a":1}`), nil)
	o.run(t)
	w := post("k", `{"a":2}`).to(b.strict(b.effect))
	refused(t, w, http.StatusUnprocessableEntity, "idempotency_key_reused")
	require.Equal(t, []string{"/a"}, problemOf(t, w).DiffersAt)
	executed(t, o.finish(t), http.StatusCreated)
}

// The owner holds its row until the duplicate was answered: a claim that waited for it would never be.
func TestT54_DuplicatesDoNotWaitForTheOwnersTransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	o := b.hold(idempotency.Strict(), post("k", `{}`), nil)
	o.run(t)
	b.wait(`SELECT count(*) > 0 FROM pg_locks WHERE relation = 'idempotency_keys'::regclass AND mode = 'RowShareLock' AND granted`)
	refused(t, post("k", `{}`).to(b.strict(b.effect)), http.StatusConflict, "idempotency_key_in_progress")
	o.finish(t)
}

func TestT55_AgeOfTheLock(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.crash("k", `{}`)
	h := b.strict(b.effect)
	for age, retryAfter := range map[string]string{"0 seconds": "30", "10.5 seconds": "20", "29 seconds": "1", "29.9 seconds": "1"} {
		b.exec(`UPDATE idempotency_keys SET locked_at = clock_timestamp() - $1::text::interval`, age)
		w := post("k", `{}`).to(h)
		refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
		require.Equal(t, retryAfter, w.Header().Get("Retry-After"), age)
	}
	require.Equal(t, "in_progress", b.record("k").Next)
	b.exec(`UPDATE idempotency_keys SET locked_at = clock_timestamp() - interval '31 seconds'`)
	require.Equal(t, "execute", b.record("k").Next)
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
	r := b.record("k")
	require.EqualValues(t, 2, r.Fence)
	require.Equal(t, 2, r.Attempts)
	require.Equal(t, 1, b.effects())
}

func TestT56_FiftyTakeovers(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	b.crash("k", `{}`)
	b.shift(31 * time.Second)
	h := b.strict(b.effect)
	got := make([]*httptest.ResponseRecorder, 50)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() { got[i] = post("k", `{}`).to(h) })
	}
	wg.Wait()
	for _, w := range got {
		require.Contains(t, []int{http.StatusCreated, http.StatusConflict}, w.Code, w.Body.String())
	}
	require.EqualValues(t, 1, b.runs.Load())
	require.Equal(t, 1, b.effects())
	require.EqualValues(t, 2, b.record("k").Fence)
}

func TestT57_LateFirstFinisherWithoutATakeover(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	b := newBench(t, func(o *idempotency.Options) { o.Registerer = reg })
	o := b.hold(quick(), post("k", `{}`), nil)
	o.run(t)
	// The process has its own idea of when that is, which began a little later.
	b.wait(`SELECT count(*) = 1 FROM idempotency_keys WHERE locked_at + 3 * lock_timeout < clock_timestamp()`)
	first := o.finish(t)
	executed(t, first, http.StatusCreated)
	replays(t, post("k", `{}`).to(b.strict(b.effect)), first)
	require.EqualValues(t, 1, b.runs.Load())
	require.Equal(t, 1, b.effects())
	require.Equal(t, 1, decided(t, reg, "late_finish"))
}

// The owner's session is cut, its key taken over; what the owner then answers counts for nothing.
func TestT58_LateFirstFinisherAfterATakeover(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	o := b.hold(idempotency.Strict(), post("k", `{}`), nil)
	ctx := o.run(t)
	b.kill(ctx)
	b.shift(31 * time.Second)
	second := post("k", `{}`).to(b.strict(b.effect))
	executed(t, second, http.StatusCreated)
	before := b.record("k")

	w := o.finish(t)
	refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
	require.Equal(t, before, b.record("k"))
	require.Equal(t, 1, b.effects())
	replays(t, post("k", `{}`).to(b.strict(b.effect)), second)
}

// A call whose transaction is begun again finds that its key is another's, and runs nothing.
func TestT58_FencedOutBeforeTheHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	waiting := make(chan struct{})
	o := b.hold(idempotency.Strict(), post("k", `{}`), func(w http.ResponseWriter, r *http.Request) {
		<-waiting
		idempotency.Fail(r.Context(), &pgconn.PgError{Code: "40001"})
		w.WriteHeader(http.StatusInternalServerError)
	})
	o.run(t)
	// Another call has the row next, as soon as the owner's transaction ends to be begun again; unless that is quicker, and ends again.
	taken, before := make(chan error), int64(0)
	go func() {
		_, err := b.pool.Exec(context.Background(), `UPDATE idempotency_keys SET fence = fence + 1`)
		before = b.runs.Load()
		taken <- err
	}()
	b.wait(`SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE 'UPDATE idempotency_keys SET fence%' AND datname = current_database()`)
	close(waiting)
	w := o.finish(t)
	require.NoError(t, <-taken)
	refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
	require.Equal(t, before, b.runs.Load(), "it did not run once more after it was taken over")
	require.Zero(t, b.effects())
}

// kill ends the session of a handler's unit of work.
func (b *bench) kill(ctx context.Context) {
	b.t.Helper()
	tx, ok := idempotency.Tx(ctx)
	require.True(b.t, ok)
	pid := tx.Conn().PgConn().PID()
	b.exec(`SELECT pg_terminate_backend($1::int)`, int32(pid))
	b.wait(`SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $1::int`, int32(pid))
}

func TestT59_AnOpenTransactionIsAlive(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.with(quick(), b.effect)
	o := b.hold(quick(), post("k", `{}`), nil)
	ctx := o.run(t)
	b.wait(sqlLockIsOld)
	for range 3 {
		w := post("k", `{}`).to(h)
		refused(t, w, http.StatusConflict, "idempotency_key_in_progress")
		require.Equal(t, "1", w.Header().Get("Retry-After"))
	}
	require.EqualValues(t, 1, b.runs.Load())

	b.kill(ctx)
	require.Zero(t, b.effects())
	executed(t, post("k", `{}`).to(h), http.StatusCreated)
	require.EqualValues(t, 2, b.record("k").Fence)
	o.finish(t)
	require.Equal(t, 1, b.effects())
}

func TestT60_HeartbeatWithoutATransaction(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	p := quick()
	p.LockTimeout = 3 * time.Second // a machine that is busy must not miss a beat
	p.NoTx = true
	o := b.hold(p, post("k", `{}`), nil)
	ctx := o.run(t)
	var claimed time.Time
	require.NoError(t, b.pool.QueryRow(t.Context(), `SELECT locked_at FROM idempotency_keys`).Scan(&claimed))
	b.wait(`SELECT locked_at > $1::timestamptz + 2 * lock_timeout FROM idempotency_keys`, claimed)
	refused(t, post("k", `{}`).to(b.with(p, b.effect)), http.StatusConflict, "idempotency_key_in_progress")
	require.NoError(t, ctx.Err())

	b.exec(`ALTER TABLE idempotency_keys RENAME TO away`) // beats fail
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the handler goes on without its lock")
	}
	b.exec(`ALTER TABLE away RENAME TO idempotency_keys`)
	b.wait(sqlLockIsOld)
	second := post("k", `{}`).to(b.with(p, answering(201, "text/plain", "second")))
	executed(t, second, http.StatusCreated)
	before := b.record("k")
	refused(t, o.finish(t), http.StatusConflict, "idempotency_key_in_progress")
	require.Equal(t, before, b.record("k"))
}

func TestT61_AStaleOwnerChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	for name, p := range map[string]idempotency.Policy{"retry": idempotency.Strict(), "forget": idempotency.Relaxed()} {
		p.NoTx = true
		o := b.hold(p, post(name, `{}`), answering(500, "", ""))
		o.run(t)
		b.shift(31 * time.Second)
		executed(t, post(name, `{}`).to(b.strict(b.effect)), http.StatusCreated)
		before := b.record(name)
		refused(t, o.finish(t), http.StatusConflict, "idempotency_key_in_progress")
		require.Equal(t, before, b.record(name))
	}
	// In a unit of work that has lost its session the release finds another's fence.
	o := b.hold(idempotency.Strict(), post("tx", `{}`), answering(500, "", ""))
	b.kill(o.run(t))
	b.shift(31 * time.Second)
	executed(t, post("tx", `{}`).to(b.strict(b.effect)), http.StatusCreated)
	before := b.record("tx")
	refused(t, o.finish(t), http.StatusConflict, "idempotency_key_in_progress")
	require.Equal(t, before, b.record("tx"))
}

// decided reads the counter of a decision, over all policies.
func decided(t testing.TB, reg *prometheus.Registry, decision string) int {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	n := 0
	for _, f := range families {
		if f.GetName() != "paidonce_idempotency_decisions_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "decision" && l.GetValue() == decision {
					n += int(m.GetCounter().GetValue())
				}
			}
		}
	}
	return n
}
