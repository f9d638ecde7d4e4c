package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/migrations"
)

// Failure cases of testdata/cases/CASES.md that no file can play. Each test is
// named after the case's number.

// TestCase009LockIsNoFlag: a receiver that dies inside its transaction leaves no
// lock behind. Another instance takes the next try in at once.
func TestCase009LockIsNoFlag(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.NoError(t, w.Program.Start(t.Context(), "serve", 2))
	w.register("lock-1")
	f := w.hold("serve", 1, 0, "UPDATE", "orders")
	go w.post(t.Context(), 1, paid("lock-1"))
	w.killHeld(f, "serve", 1)

	began := time.Now()
	require.Equal(t, 200, w.post(t.Context(), 2, paid("lock-1")))
	require.Less(t, time.Since(began), 2*time.Second, "nothing to wait for")
	w.eventually(10*time.Second, w.owed)
	require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("lock-1"))
}

// TestCase055TooManyClients: a server that allows 20 connections carries serve
// and work, whose pools are sized so that their sum fits. A burst is answered,
// and where the pool is exhausted the answer is 503 and not a hang.
func TestCase055TooManyClients(t *testing.T) {
	t.Parallel()
	const serve, work, most = 5, 8, 20 // the rest is for this test and the superuser
	pg, err := localpg.Start(t.Context(), localpg.Options{
		Dir: localpg.DefaultDir("e2e of few connections", os.Getenv), Settings: map[string]string{"max_connections": fmt.Sprint(most)},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, pg.Stop()) })
	admin, err := pgx.Connect(t.Context(), pg.URL(""))
	require.NoError(t, err)
	name := fmt.Sprintf("few_%d", time.Now().UnixNano())
	_, err = admin.Exec(t.Context(), "CREATE DATABASE "+name)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := admin.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)")
		require.NoError(t, err)
		require.NoError(t, admin.Close(ctx))
	})
	url := pg.URL(name)
	require.NoError(t, migrations.Up(t.Context(), url, nil))
	limited, err := pgxpool.ParseConfig(url)
	require.NoError(t, err)
	limited.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), limited)
	require.NoError(t, err)
	t.Cleanup(pool.Close)

	w := newWorldOn(t, url, pool, func(s *settings) {
		s.Pool["serve"], s.Pool["work"] = serve, work
		s.Workers["count"] = 4
	})
	const orders = 150
	refs := make([]string, orders)
	for i := range refs {
		refs[i] = fmt.Sprintf("few-%03d", i)
	}
	w.register(refs...)

	highest := make(chan int)
	watch, stop := context.WithCancel(t.Context())
	go func() {
		n := 0
		for watch.Err() == nil {
			n = max(n, w.connections(pool))
		}
		highest <- n
	}()
	burst := func(want ...int) {
		var wg sync.WaitGroup
		codes, slowest := make([]int, orders), make([]time.Duration, orders)
		for i, ref := range refs {
			wg.Go(func() {
				began := time.Now()
				codes[i] = w.post(t.Context(), 1, paid(ref))
				slowest[i] = time.Since(began)
			})
		}
		wg.Wait()
		for i := range refs {
			require.Contains(t, want, codes[i])
			require.Less(t, slowest[i], 20*time.Second, "answered before the gateway gives up")
		}
	}

	// Nobody gets past a lock on the orders: every connection of serve is taken.
	lock, err := pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = lock.Exec(t.Context(), `LOCK TABLE orders IN EXCLUSIVE MODE`)
	require.NoError(t, err)
	burst(503)
	require.NoError(t, lock.Rollback(t.Context()))

	require.Eventually(t, func() bool { return w.post(t.Context(), 1, paid(refs[0])) == 200 }, 20*time.Second, 100*time.Millisecond)
	burst(200)
	w.eventually(healWithin, w.owed)
	stop()
	n := <-highest
	t.Logf("at most %d connections", n)
	require.LessOrEqual(t, n, serve+work+1, "serve, work, and its listener")
	require.Greater(t, n, 2)
	require.NotContains(t, w.Program.Logs(), "too many clients")
	require.NotContains(t, w.Program.Logs(), "remaining connection slots")
	require.Equal(t, map[string]int{"fulfil": orders}, w.Merchant.Keys())
}

// connections counts those of the program.
func (w *world) connections(pool *pgxpool.Pool) int {
	var n int
	err := pool.QueryRow(context.WithoutCancel(w.t.Context()), `
		SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND (application_name LIKE 'paidonce%' OR application_name = '')`).Scan(&n)
	if err != nil {
		return 0
	}
	return n
}

// TestCase089StuckJobs: a job that has been running for two hours is freed by
// River's rescuer, and what it was for does not wait for that. While such jobs
// are there, upkeep lists them in paidonce_jobs_stuck: see its own tests.
func TestCase089StuckJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.NoError(t, w.Program.Stop(t.Context(), "work", 1))
	w.register("stuck-1")
	require.Equal(t, 200, w.post(t.Context(), 1, paid("stuck-1")))
	// The worker that took the order's job died two hours ago.
	tag, err := w.Pool.Exec(t.Context(), `
		UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '2 hours', attempted_by = ARRAY['gone']
		WHERE kind = 'drain' AND state = 'available'`)
	require.NoError(t, err)
	require.Equal(t, int64(1), tag.RowsAffected())

	require.NoError(t, w.Program.Start(t.Context(), "work", 1))
	w.eventually(healWithin, w.owed)
	require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("stuck-1"))
	w.eventually(2*time.Minute, func() string {
		if n := w.count(`SELECT count(*) FROM river_job WHERE state = 'running' AND attempted_at < now() - interval '1 hour'`); n > 0 {
			return "the rescuer has not freed it"
		}
		return ""
	})
	require.Equal(t, map[string]int{"fulfil": 1}, w.Merchant.Keys())
}

// TestCase091MetricPerStatus: failures are seen before the gateway gives up: a
// counter per gateway, source and status, and one per outcome.
func TestCase091MetricPerStatus(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *settings) { s.AdminListen = "127.0.0.1:0" })
	w.register("day-1", "day-2")
	unknown := func(id string) delivery {
		return signed(stripeEvent("payment_intent.succeeded", "day-1", id).with(func(m *message) { m.sample.Set = map[string]string{"type": "brand.new"} }))
	}
	for _, d := range []delivery{
		paid("day-1"), paid("day-1"), paid("day-2"), unknown("evt_new_1"), unknown("evt_new_2"), paid("nobodys-order"),
	} {
		require.Equal(t, 200, w.post(t.Context(), 1, d))
	}
	bad := paid("day-1")
	bad.body = append([]byte(" "), bad.body...)
	require.Equal(t, 401, w.post(t.Context(), 1, bad))

	admin := w.program.admin("serve", 1)
	for series, want := range map[string]string{
		`paidonce_webhook_deliveries_total{gateway="stripe",source="stripe",status="200"}`:    "6",
		`paidonce_webhook_deliveries_total{gateway="stripe",source="stripe",status="401"}`:    "1",
		`paidonce_webhook_events_total{gateway="stripe",outcome="applied",source="stripe"}`:   "2",
		`paidonce_webhook_events_total{gateway="stripe",outcome="duplicate",source="stripe"}`: "1",
		`paidonce_webhook_events_total{gateway="stripe",outcome="ignored",source="stripe"}`:   "2",
		`paidonce_webhook_events_total{gateway="stripe",outcome="waiting",source="stripe"}`:   "1",
		`paidonce_webhook_refusals_total{gateway="stripe",reason="mismatch",source="stripe"}`: "1",
		`paidonce_webhook_deliveries_total{gateway="stripe",source="stripe",status="503"}`:    "",
	} {
		require.Equal(t, want, metric(t, admin, series), series)
	}
}

// TestCase135JobBeforeCommit: an idle worker is never faster than the commit. The
// job is in the transaction that the worker would have to see.
func TestCase135JobBeforeCommit(t *testing.T) {
	t.Parallel()
	const orders = 200
	w := newWorld(t, nil)
	refs := make([]string, orders)
	for i := range refs {
		refs[i] = fmt.Sprintf("early-%03d", i)
	}
	w.register(refs...)
	// Every transaction that enqueues waits 50 ms before it commits.
	_, err := w.Pool.Exec(t.Context(), `
		CREATE FUNCTION wait_a_little() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.05); RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER wait_a_little AFTER INSERT ON river_job DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW EXECUTE FUNCTION wait_a_little()`)
	require.NoError(t, err)
	for _, ref := range refs {
		require.Equal(t, 200, w.post(t.Context(), 1, paid(ref)))
	}
	w.eventually(healWithin, w.owed)
	require.Equal(t, map[string]int{"fulfil": orders}, w.Merchant.Keys())
	require.Zero(t, w.count(`SELECT count(*) FROM river_job WHERE cardinality(errors) > 0`))
	require.Equal(t, orders, w.count(`SELECT count(*) FROM river_job WHERE kind = 'drain' AND attempt = 1`))
	require.Zero(t, w.count(`SELECT count(*) FROM order_transitions WHERE attempts > 1`))
	for _, line := range strings.Split(w.Program.Logs(), "\n") {
		require.False(t, strings.Contains(line, `"level":"ERROR"`) || strings.Contains(line, `"level":"WARN"`), line)
	}
}

// admin is the address of an instance's admin listener.
func (p *program) admin(process string, number int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.instances[cases.ProcessName(process, number)]; i != nil {
		return i.addrs.Admin
	}
	return ""
}

// metric reads one series of /metrics; empty if there is none.
func metric(t *testing.T, admin, series string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+admin+"/metrics", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (.*)$`).FindSubmatch(text)
	if found == nil {
		return ""
	}
	return string(found[1])
}
