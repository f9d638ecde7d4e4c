package torture_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/idempotency"
)

// TestMain sets defaults that fit: fewer random checks, each of which is dozens of requests, and more tests at once than there are
// processors, since most of them wait for others. Flags that are given count.
func TestMain(m *testing.M) {
	flag.Parse()
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": "25", "test.parallel": "6"} {
		if !given[name] {
			if err := flag.Set(name, value); err != nil {
				panic(err)
			}
		}
	}
	os.Exit(m.Run())
}

// schedule is what happens, one step after another. Most calls go to one route, with one key and one body: what is interesting is
// when they meet.
type schedule struct {
	Route int
	Steps []step
}

// step is one event of a schedule. Its numbers are taken modulo what there is to choose from when its turn comes, so that
// any sequence of steps is a schedule.
type step struct {
	Do               string
	Who, Which, What int
}

var schedules = rapid.Custom(func(t *rapid.T) schedule {
	one := rapid.Custom(func(t *rapid.T) step {
		return step{
			Do: rapid.SampledFrom([]string{
				"send", "send", "send", "send", "finish", "finish", "finish", "pass", "pass", "kill", "leave", "sweep",
			}).Draw(t, "do"),
			Who: rapid.IntRange(0, 7).Draw(t, "who"), Which: rapid.IntRange(0, 11).Draw(t, "which"), What: rapid.IntRange(0, 11).Draw(t, "what"),
		}
	})
	return schedule{
		Route: rapid.IntRange(0, len(routes)-1).Draw(t, "route"), Steps: rapid.SliceOfN(one, 20, 60).Draw(t, "steps"),
	}
})

// passes are how far the clock goes at once.
var passes = []time.Duration{
	lockTimeout, lockTimeout - time.Microsecond, time.Microsecond, 24*time.Hour - lockTimeout/2, 24 * time.Hour, 48 * time.Hour, time.Second, 12 * time.Hour,
}

// hall is where schedules are played: a middleware on a database whose clock only they move, and handlers that stand still until
// they are told how to end.
type hall struct {
	s    *stage
	pool *pgxpool.Pool
	keep *idempotency.Store
	http http.Handler

	// For controls: handlers write beside their unit of work; all bodies are the same on the wire; only what callers
	// see is looked at.
	leaks, alike, blind bool

	kinds map[string]int // how often each verdict was given

	mu      sync.Mutex
	flights map[string]*flight
	charges map[string]bool
	plays   atomic.Int64
}

func newHall(t *testing.T) *hall {
	t.Helper()
	h := &hall{s: newStage(t), flights: map[string]*flight{}, charges: map[string]bool{}, kinds: map[string]int{}}
	h.s.stopClock()
	conf, err := pgxpool.ParseConfig(h.s.url)
	require.NoError(t, err)
	conf.MaxConns = 12
	h.pool, err = pgxpool.NewWithConfig(t.Context(), conf)
	require.NoError(t, err)
	t.Cleanup(h.pool.Close)
	h.keep, err = idempotency.NewStore(h.pool, idempotency.StoreOptions{AcquireTimeout: patience, StatementTimeout: patience})
	require.NoError(t, err)
	mw, err := idempotency.New(h.keep, idempotency.Options{Scope: scopeOf})
	require.NoError(t, err)
	mux := http.NewServeMux()
	for _, r := range routes {
		p := idempotency.Strict()
		if r.relaxed {
			p = idempotency.Relaxed()
		}
		p.LockTimeout, p.NoTx, p.Name = lockTimeout, r.alone, strings.TrimPrefix(r.path, "/")
		mux.Handle("POST "+r.path, mw.Protect(p)(http.HandlerFunc(h.handle)))
	}
	h.http = mux
	return h
}

// running is a request in this process.
type running struct {
	arrived chan struct{}  // the handler runs
	orders  chan outcome   // how it is to end
	done    chan *recorded // the answer
	leave   func()         // the caller goes away
	pid     uint32         // of the handler's session
}

// recorded is an answer, or a panic.
type recorded struct {
	*httptest.ResponseRecorder
	panicked any
}

// byOrder is what handlers panic with that are told to.
const byOrder = "panicked by order"

// handle is every handler: it writes at once, and answers when it is told to.
func (h *hall) handle(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	f := h.flights[r.Header.Get("Test-Run")]
	h.mu.Unlock()
	const sql = `INSERT INTO effects (id, key, body) VALUES (gen_random_uuid(), $1, '')`
	if tx, ok := idempotency.Tx(r.Context()); ok {
		f.call.pid = tx.Conn().PgConn().PID()
		_, err := tx.Exec(r.Context(), sql, f.name)
		if h.leaks {
			_, err = h.pool.Exec(r.Context(), sql, f.name)
		}
		if err != nil {
			panic(err)
		}
	}
	close(f.call.arrived)
	o := <-f.call.orders
	if o == panicked {
		panic(byOrder)
	}
	if f.route().alone {
		key, _ := idempotency.OutboundKey(r.Context(), "charge")
		h.mu.Lock()
		h.charges[key] = true
		h.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(o.code())
	if o != noContent {
		_, _ = fmt.Fprintf(w, `{"run": %q, "b": 1.0, "a": "\u0000"}`+"\n", f.name)
	}
}

// bodies are requests; each pair are two spellings of one.
var bodies = [][2]string{{`{"amount":5000}`, `{ "amount" : 5e3 }`}, {`{"amount":5001,"note":"x"}`, `{"note":"\u0078","amount":5001.0}`}}

// start sends the request of a flight, in one spelling or the other, and returns when its handler runs or it is answered.
func (h *hall) start(f *flight, caller string, spelling int) (answered *recorded) {
	ctx, leave := context.WithCancel(context.Background())
	f.call = &running{arrived: make(chan struct{}), orders: make(chan outcome, 1), done: make(chan *recorded, 1), leave: leave}
	h.mu.Lock()
	h.flights[f.name] = f
	h.mu.Unlock()
	body := bodies[f.asked.body][spelling]
	if h.alike {
		body = bodies[0][0]
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, f.route().path, strings.NewReader(body))
	r.Header.Set("Idempotency-Key", strings.TrimPrefix(f.key, caller))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Test-Caller", caller)
	r.Header.Set("Test-Run", f.name)
	go func() {
		rec := &recorded{ResponseRecorder: httptest.NewRecorder()}
		defer func() {
			rec.panicked = recover()
			f.call.done <- rec
		}()
		h.http.ServeHTTP(rec, r)
	}()
	select {
	case <-f.call.arrived:
		return nil
	case rec := <-f.call.done:
		return rec
	}
}

// verdict reads an answer.
func (rec *recorded) verdict() (v verdict, err error) {
	v.after, _ = strconv.Atoi(rec.Header().Get("Retry-After"))
	switch body := rec.Body.Bytes(); {
	case rec.panicked != nil && rec.panicked != any(byOrder):
		return v, fmt.Errorf("panic: %v", rec.panicked)
	case rec.panicked != nil:
		v.kind = "panic"
	case rec.Header().Get(idempotency.HeaderReplayed) == "true":
		v.kind = "replay"
	case bytes.Contains(body, []byte(idempotency.CodeKeyReused)) && rec.Code == http.StatusUnprocessableEntity:
		v.kind = "reused"
	case bytes.Contains(body, []byte(idempotency.CodeKeyInProgress)) && rec.Code == http.StatusConflict:
		v.kind = "busy"
	case bytes.Contains(body, []byte(idempotency.CodeOutcomeUnknown)) && rec.Code == http.StatusServiceUnavailable:
		v.kind = "unknown"
	case rec.Header().Get(idempotency.HeaderStatus) == idempotency.StatusExecuted:
		v.kind = "own"
	default:
		return v, fmt.Errorf("answered %d %s", rec.Code, body)
	}
	return v, nil
}

// TestSchedules plays random schedules of callers, keys, bodies and routes, handlers that end in every way or are cut off, callers who
// leave, locks and keys that grow old, and sweeps. Each answer, each row and each effect must be the model's.
func TestSchedules(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	rapid.Check(t, func(rt *rapid.T) {
		if err := h.play(schedules.Draw(rt, "schedule")); err != nil {
			rt.Fatal(err)
		}
	})
}
