package torture_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
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

// play plays a schedule, and returns how the program first differed from the model, with all that came before.
func (h *hall) play(s schedule) (err error) {
	h.s.exec(`TRUNCATE idempotency_keys`)
	p := &play{hall: h, model: newModel(), route: s.Route, name: fmt.Sprintf("play-%d", h.plays.Add(1))}
	h.mu.Lock()
	h.charges = map[string]bool{}
	h.mu.Unlock()
	defer func() {
		p.abandon()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, p.log.String())
		}
	}()
	for _, one := range s.Steps {
		if err := p.step(one); err != nil {
			return err
		}
	}
	return p.end()
}

// play is one schedule that is being played.
type play struct {
	*hall
	model  *model
	name   string
	route  int
	runs   int
	flying []*flight
	log    strings.Builder
}

func (p *play) note(format string, args ...any) {
	fmt.Fprintf(&p.log, "%12s  %s\n", p.model.now, fmt.Sprintf(format, args...))
}

func (p *play) step(s step) error {
	var f *flight
	if len(p.flying) > 0 {
		f = p.flying[s.Which%len(p.flying)]
	}
	switch {
	case s.Do == "send" && len(p.flying) < 6:
		// Two callers, two keys each, so that keys of one name belong to two of them.
		who, a := max(0, s.Who-4), asked{route: p.route, body: s.Which / 8}
		if s.What >= 10 {
			a.route = s.What % len(routes)
		}
		return p.send(fmt.Sprintf("%s-%d-", p.name, who%2), fmt.Sprint(who/2), a, s.Which%2)
	case s.Do == "finish" && f != nil:
		return p.finish(f, outcome(s.What)%outcomes)
	case s.Do == "kill" && f != nil && !f.route().alone && !f.killed:
		p.note("kill the session of %s", f.name)
		p.s.exec(`SELECT pg_terminate_backend($1, 10000)`, int(f.call.pid))
		p.model.kill(f)
	case s.Do == "leave" && f != nil:
		p.note("the caller of %s leaves", f.name)
		f.call.leave()
	case s.Do == "pass":
		d := passes[s.What%len(passes)]
		p.s.pass(d)
		p.model.now += d
	case s.Do == "sweep":
		res, err := p.keep.Sweep(context.Background())
		p.note("sweep: %d", res.Expired)
		if err != nil {
			return err
		}
		if want := p.model.sweep(); res.Expired != int64(want) {
			return fmt.Errorf("the sweep deleted %d, not %d", res.Expired, want)
		}
	}
	return nil
}

func (p *play) send(caller, key string, a asked, spelling int) error {
	p.runs++
	f := &flight{name: fmt.Sprintf("%s-run-%d", p.name, p.runs), key: caller + key, asked: a}
	want := p.model.send(f)
	p.kinds[want.kind]++
	rec := p.start(f, caller, spelling)
	p.note("send %s to %s as %s, body %d: %s", f.key, f.route().path, f.name, a.body, want)
	if rec == nil {
		p.flying = append(p.flying, f)
		if want.kind != "run" {
			return fmt.Errorf("%s was executed, and should have been %s", f.name, want)
		}
		return p.look(caller, key)
	}
	if want.kind == "run" {
		return fmt.Errorf("%s was not executed: %d %s", f.name, rec.Code, rec.Body)
	}
	if err := check(f, rec, want); err != nil {
		return err
	}
	return p.look(caller, key)
}

// check compares an answer with what it should be.
func check(f *flight, rec *recorded, want verdict) error {
	got, err := rec.verdict()
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w, and should have been %s", f.name, err, want)
	case got.kind != want.kind, want.after != 0 && got.after != want.after:
		return fmt.Errorf("%s was %s, and should have been %s: %d %s", f.name, got, want, rec.Code, rec.Body)
	case want.kind == "replay" && (rec.Code != want.of.code || rec.Body.String() != want.of.body):
		return fmt.Errorf("%s got %d %q instead of the answer of %s: %d %q", f.name, rec.Code, rec.Body, want.of.name, want.of.code, want.of.body)
	}
	return nil
}

func (p *play) finish(f *flight, o outcome) error {
	want := p.model.finish(f, o)
	p.kinds[want.kind]++
	p.note("%s ends with %d: %s", f.name, o.code(), want)
	rec := p.land(f, o)
	f.code, f.body = rec.Code, rec.Body.String()
	if err := check(f, rec, want); err != nil {
		return err
	}
	if want.kind == "own" && (rec.Code != o.code() || o != noContent && !strings.Contains(f.body, strconv.Quote(f.name))) {
		return fmt.Errorf("%s answered %d %q", f.name, rec.Code, f.body)
	}
	committed := p.s.count(`SELECT count(*) FROM effects WHERE key = $1`, f.name)
	if want := p.model.effects[f.name]; committed != 0 != want || committed > 1 {
		return fmt.Errorf("%s has left %d effects", f.name, committed)
	}
	caller := f.key[:len(f.key)-1]
	return p.look(caller, f.key[len(caller):])
}

// land has a handler end, and returns the answer.
func (p *play) land(f *flight, o outcome) *recorded {
	for i := range p.flying {
		if p.flying[i] == f {
			p.flying = append(p.flying[:i], p.flying[i+1:]...)
			break
		}
	}
	f.call.orders <- o
	rec := <-f.call.done
	f.call.leave()
	p.mu.Lock()
	delete(p.flights, f.name)
	p.mu.Unlock()
	return rec
}

// look compares what the store tells of a key with the model.
func (p *play) look(caller, key string) error {
	if p.blind {
		return nil
	}
	got, err := p.keep.Inspect(context.Background(), scope(caller), key)
	r := p.model.rows[caller+key]
	if r == nil {
		if !errors.Is(err, idempotency.ErrNotFound) {
			return fmt.Errorf("%s%s should not be there: %w", caller, key, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	got.LockAge = max(0, got.LockAge)
	want := fmt.Sprint(r.state, r.fence, r.attempts, r.bound, r.expires <= p.model.now)
	if have := fmt.Sprint(got.State, got.Fence, got.Attempts, got.Bound, got.Expired); have != want {
		return fmt.Errorf("%s%s is %s, not %s", caller, key, have, want)
	}
	return nil
}

// end lets everything come to rest: whatever has happened, no key hears 409 for ever, and each still stands for one effect.
func (p *play) end() error {
	for len(p.flying) > 0 {
		if err := p.finish(p.flying[0], failedByHandler); err != nil {
			return err
		}
	}
	p.s.pass(lockTimeout)
	p.model.now += lockTimeout
	for _, key := range sortedKeys(p.model.rows) {
		a, caller := p.model.rows[key].asked, key[:len(key)-1]
		if err := p.send(caller, key[len(caller):], a, 0); err != nil {
			return err
		}
		if len(p.flying) > 0 {
			if err := p.finish(p.flying[0], created); err != nil {
				return err
			}
		}
		if err := p.send(caller, key[len(caller):], a, 1); err != nil {
			return err
		}
		if len(p.flying) > 0 {
			return fmt.Errorf("%s is executed again", key)
		}
	}
	if have, want := p.s.count(`SELECT count(*) FROM effects WHERE starts_with(key, $1)`, p.name+"-"), len(p.model.effects); have != want {
		return fmt.Errorf("%d effects, not %d", have, want)
	}
	if have, want := len(p.charges), len(p.model.charges); have != want {
		return fmt.Errorf("%d charges, not %d", have, want)
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// abandon ends what a failed play has left.
func (p *play) abandon() {
	for len(p.flying) > 0 {
		p.land(p.flying[0], failedByHandler)
	}
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

// TestSchedulesGoEverywhere: a few of them are enough to see every verdict, so that the rest of them mean something.
func TestSchedulesGoEverywhere(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	for seed := range 8 {
		require.NoError(t, h.play(schedules.Example(seed)))
	}
	for _, kind := range []string{"run", "replay", "reused", "busy", "own", "unknown", "panic"} {
		require.NotZero(t, h.kinds[kind], kind)
	}
}

// TestSchedulesFindFaults breaks what the middleware stands on, one promise at a time, and has schedules find it by what callers see
// and what is left in the database.
func TestSchedulesFindFaults(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	h.blind = true
	// trigger changes or drops what is written to the table.
	trigger := func(when, does string) func() {
		return func() {
			h.s.exec(`CREATE FUNCTION fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ` + does + ` RETURN NEW; END $$`)
			h.s.exec(`CREATE TRIGGER fault BEFORE ` + when + ` EXECUTE FUNCTION fault()`)
		}
	}
	const (
		always    = `UPDATE ON idempotency_keys FOR EACH ROW`
		failed    = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'FAILED')`
		completed = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'COMPLETED')`
		taken     = `UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.fence > OLD.fence)`
	)
	for name, fault := range map[string]func(){
		"TheFenceStandsStill":    trigger(always, `NEW.fence := OLD.fence;`),
		"TheAnswerIsNotTheSame":  trigger(completed, `NEW.response_raw := NEW.response_raw || ' '::bytea;`),
		"TheAnswerIsNotKept":     trigger(completed, `NEW.response_raw := NULL;`),
		"KeysDieYoung":           trigger(completed, `NEW.expires_at := NEW.created_at + interval '1 hour';`),
		"KeysLiveLonger":         trigger(completed, `NEW.expires_at := NEW.completed_at + interval '48 hours';`),
		"FailuresFreeTheBody":    trigger(failed, `NEW.hash_bound := false;`),
		"FailuresBindTheBody":    trigger(failed, `NEW.hash_bound := true;`),
		"FailuresKeepTheLock":    trigger(failed, `RETURN NULL;`),
		"LocksDoNotGrowOld":      trigger(`INSERT ON idempotency_keys FOR EACH ROW`, `NEW.lock_timeout := interval '1 year';`),
		"TheOutboundKeyChanges":  trigger(taken, `NEW.epoch := OLD.epoch + 1;`),
		"TheOutboundKeyStays":    trigger(taken, `NEW.epoch := OLD.epoch;`),
		"TheSweeperTakesNothing": trigger(`DELETE ON idempotency_keys FOR EACH ROW`, `RETURN NULL;`),
		"EffectsEscape":          func() { h.leaks = true },
		"BodiesLookAlike":        func() { h.alike = true },
	} {
		t.Run(name, func(t *testing.T) {
			fault()
			defer func() {
				h.s.exec(`DROP FUNCTION IF EXISTS fault CASCADE`)
				h.leaks, h.alike = false, false
			}()
			var err error
			seed := 0
			for ; err == nil && seed < 40; seed++ {
				err = h.play(schedules.Example(seed))
			}
			require.Error(t, err, "nobody noticed")
			said, _, _ := strings.Cut(err.Error(), "\n")
			t.Logf("after %d schedules: %.200s", seed, said)
		})
	}
}
