package app_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store/storetest"
)

const (
	secret  = "whsec_app_test_5ecret_0123456789"
	rolled  = "whsec_app_test_rolled_9876543210"
	apiKey  = "pk_test_app"
	callKey = "whsec_Y2FsbGJhY2stc2VjcmV0LW9mLTMyLWJ5dGVzLWxvbmc="
)

// configure returns a configuration of one account with one Stripe source.
func configure(t *testing.T, databaseURL, callback string, secrets ...string) *config.Config {
	t.Helper()
	sum := sha256.Sum256([]byte(apiKey))
	list, err := json.Marshal(secrets)
	require.NoError(t, err)
	c, err := config.Parse("test.yaml", fmt.Appendf(nil, `
database_url: %q
listen: 127.0.0.1:0
admin_listen: 127.0.0.1:0
workers: {admin_listen: 127.0.0.1:0}
accounts:
  shop:
    api_keys: [{name: test, sha256: %s, roles: [read, write]}]
    callback: {url: %q, secret: %q, allow_private: true}
    sources:
      stripe: {gateway: stripe, mode: test, secrets: %s}
`, databaseURL, hex.EncodeToString(sum[:]), callback, callKey, list), func(string) string { return "" })
	require.NoError(t, err)
	return c
}

// part is app.Serve, app.Work or app.Both.
type part func(context.Context, *config.Config, app.Edges) error

// running is a program that runs in the test.
type running struct {
	app.Addrs
	log  *logbook
	stop func() error // ends it as SIGTERM does and returns what it returned
}

func start(t *testing.T, run part, cfg *config.Config, e app.Edges) *running {
	t.Helper()
	r := &running{log: &logbook{}}
	e.Log = slog.New(slog.NewJSONHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ready, done := make(chan app.Addrs, 1), make(chan error, 1)
	e.Ready = func(a app.Addrs) { ready <- a }
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() { done <- run(ctx, cfg, e) }()
	r.stop = sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { require.NoError(t, r.stop()) })
	select {
	case r.Addrs = <-ready:
	case err := <-done:
		done <- err
		t.Fatalf("did not start: %v\n%s", err, r.log)
	case <-time.After(30 * time.Second):
		t.Fatalf("did not start\n%s", r.log)
	}
	return r
}

// logbook is a log that can be read while it is written.
type logbook struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// merchant records the calls it gets, by key.
type merchant struct {
	*httptest.Server
	calls chan string
}

func newMerchant(t *testing.T) *merchant {
	m := &merchant{calls: make(chan string, 100)}
	m.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		m.calls <- r.Header.Get("Idempotency-Key")
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *merchant) next(t *testing.T) string {
	t.Helper()
	select {
	case key := <-m.calls:
		return key
	case <-time.After(20 * time.Second):
		t.Fatal("the merchant was not called")
		return ""
	}
}

// payment is the body of a Stripe event by which an order of 50.00 EUR is paid.
func payment(t *testing.T, ref string) []byte {
	t.Helper()
	body, err := gateway.Stripe.Sample(gateway.SampleRequest{
		Source: gateway.Source{ID: "stripe", Gateway: "stripe", Mode: gateway.Test},
		Type:   "payment_intent.succeeded", Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"},
	})
	require.NoError(t, err)
	return body
}

// deliver posts a body as Stripe does, signed with key, and returns the answer's code.
func deliver(t *testing.T, addr, key string, body []byte) int {
	t.Helper()
	resp, err := http.DefaultClient.Do(signed(t, addr, key, body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func signed(t *testing.T, addr, key string, body []byte) *http.Request {
	t.Helper()
	source := gateway.Source{ID: "stripe", Gateway: "stripe", Mode: gateway.Test, Secrets: []string{key}}
	header, body, err := gateway.Stripe.Sign(source, body, time.Now())
	require.NoError(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/webhooks/stripe", bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = header
	return req
}

func register(t *testing.T, addr, ref string) int {
	t.Helper()
	code, _ := request(t, http.MethodPost, "http://"+addr+"/v1/orders",
		http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}},
		fmt.Appendf(nil, `{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":%q}}}`, ref))
	return code
}

func request(t *testing.T, method, url string, header http.Header, body []byte) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	require.NoError(t, err)
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(answer)
}

// An order is registered at one server, paid at another, and told to the
// merchant by a worker: three processes on one database.
func TestPartsTogether(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	cfg := configure(t, storetest.OpenURL(t), m.URL, secret)
	one := start(t, app.Serve, cfg, app.Edges{})
	two := start(t, app.Serve, cfg, app.Edges{})
	work := start(t, app.Work, cfg, app.Edges{})

	require.Equal(t, http.StatusCreated, register(t, one.Listen, "ord_1"))
	require.Equal(t, http.StatusOK, register(t, two.Listen, "ord_1"), "a repeat")
	body := payment(t, "ord_1")
	require.Equal(t, http.StatusOK, deliver(t, two.Listen, secret, body))
	key := m.next(t)
	require.Contains(t, key, ":fulfil")
	require.Equal(t, http.StatusOK, deliver(t, one.Listen, secret, body), "a duplicate, at the other server")

	for _, p := range []*running{one, two, work} {
		code, _ := request(t, http.MethodGet, "http://"+p.Admin+"/readyz", nil, nil)
		require.Equal(t, http.StatusOK, code)
		code, metrics := request(t, http.MethodGet, "http://"+p.Admin+"/metrics", nil, nil)
		require.Equal(t, http.StatusOK, code)
		require.Contains(t, metrics, "paidonce_pool_connections_max")
	}
	for _, p := range []*running{one, two, work} {
		require.NoError(t, p.stop())
		require.NotContains(t, p.log.String(), secret)
		require.NotContains(t, p.log.String(), callKey)
	}
	require.Empty(t, m.calls, "once")
}

// The order can be told about by the process that took the payment in.
func TestBothInOneProcess(t *testing.T) {
	t.Parallel()
	m := newMerchant(t)
	p := start(t, app.Both, configure(t, storetest.OpenURL(t), m.URL, secret), app.Edges{})
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))
	require.Equal(t, http.StatusCreated, register(t, p.Listen, "ord_1"), "after the webhook")
	require.Contains(t, m.next(t), ":fulfil")
}

func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	t.Run("EmptyDatabase", func(t *testing.T) {
		t.Parallel()
		cfg := configure(t, storetest.OpenEmpty(t), "http://127.0.0.1:1/", secret)
		require.ErrorContains(t, app.Serve(t.Context(), cfg, app.Edges{}), "paidonce migrate")
		require.ErrorContains(t, app.Work(t.Context(), cfg, app.Edges{}), "paidonce migrate")
	})
	t.Run("LosesCommits", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenURL(t)
		conn, err := pgx.Connect(t.Context(), url)
		require.NoError(t, err)
		_, err = conn.Exec(t.Context(), `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
		require.NoError(t, err)
		require.NoError(t, conn.Close(t.Context()))
		cfg := configure(t, url, "http://127.0.0.1:1/", secret)
		require.ErrorIs(t, app.Serve(t.Context(), cfg, app.Edges{}), app.ErrLosesCommits)
		require.ErrorIs(t, app.Work(t.Context(), cfg, app.Edges{}), app.ErrLosesCommits)
	})
	t.Run("NoDatabase", func(t *testing.T) {
		t.Parallel()
		cfg := configure(t, "", "http://127.0.0.1:1/", secret)
		require.EqualError(t, app.Serve(t.Context(), cfg, app.Edges{}),
			"test.yaml: database_url: is not set; write it there or in PAIDONCE_DATABASE_URL")
		cfg = configure(t, "postgres://paidonce:pa55word@127.0.0.1:1/paidonce", "http://127.0.0.1:1/", secret)
		err := app.Serve(t.Context(), cfg, app.Edges{})
		require.ErrorContains(t, err, "database postgres://paidonce:***@127.0.0.1:1/paidonce cannot be reached")
		require.NotContains(t, err.Error(), "pa55word")
	})
	t.Run("AddressTaken", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenURL(t)
		p := start(t, app.Serve, configure(t, url, "http://127.0.0.1:1/", secret), app.Edges{})
		cfg := configure(t, url, "http://127.0.0.1:1/", secret)
		cfg.Listen = p.Listen
		require.ErrorContains(t, app.Serve(t.Context(), cfg, app.Edges{}), "listen "+p.Listen)
	})
}

// While a secret is rolled, both are accepted; a new file with a problem changes
// nothing; and taking the old secret out ends it.
func TestReload(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	next := make(chan func() (*config.Config, error), 1)
	reload := make(chan func(error))
	p := start(t, app.Serve, configure(t, url, "http://127.0.0.1:1/", secret), app.Edges{
		Reload: reload,
		Load:   func() (*config.Config, error) { return (<-next)() },
	})
	change := func(cfg *config.Config, err error) error {
		next <- func() (*config.Config, error) { return cfg, err }
		done := make(chan error)
		reload <- func(err error) { done <- err }
		return <-done
	}
	answers := func(ref string) [2]int {
		return [2]int{
			deliver(t, p.Listen, secret, payment(t, ref+"_old")),
			deliver(t, p.Listen, rolled, payment(t, ref+"_new")),
		}
	}
	require.Equal(t, [2]int{200, 401}, answers("a"))

	require.NoError(t, change(configure(t, url, "http://127.0.0.1:1/", rolled, secret), nil))
	require.Equal(t, [2]int{200, 200}, answers("b"))

	bad := errors.New("test.yaml:3:1: unknown key")
	require.ErrorIs(t, change(nil, bad), bad)
	require.Equal(t, [2]int{200, 200}, answers("c"))
	require.Contains(t, p.log.String(), "configuration not reloaded: the old one stays in force")

	last := configure(t, url, "http://127.0.0.1:1/", rolled)
	last.Listen = ":1"
	require.NoError(t, change(last, nil))
	require.Equal(t, [2]int{401, 200}, answers("d"))
	require.Contains(t, p.log.String(), `"settings":"listen"`, "what a reload does not change is told")
	require.NotContains(t, p.log.String(), rolled)
}

// A delivery that has arrived is committed and answered although the process is
// told to stop meanwhile, and it is not ready any more from then on.
func TestStopFinishesWhatIsOpen(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	p := start(t, app.Serve, configure(t, url, "http://127.0.0.1:1/", secret), app.Edges{})

	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `LOCK TABLE processed_events IN ACCESS EXCLUSIVE MODE`)
	require.NoError(t, err)

	code := make(chan int, 1)
	req := signed(t, p.Listen, secret, payment(t, "ord_1"))
	go func() {
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			code <- 0
			return
		}
		code <- resp.StatusCode
		_ = resp.Body.Close()
	}()
	require.Eventually(t, func() bool {
		var waiting int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
			WHERE NOT granted AND d.datname = current_database()`).Scan(&waiting)
		return err == nil && waiting > 0
	}, 10*time.Second, 5*time.Millisecond, "the delivery waits for the table")

	stopped := make(chan error, 1)
	go func() { stopped <- p.stop() }()
	require.Eventually(t, func() bool {
		c, body := request(t, http.MethodGet, "http://"+p.Admin+"/readyz", nil, nil)
		return c == http.StatusServiceUnavailable && strings.Contains(body, `"accepting":"failed"`)
	}, 10*time.Second, 5*time.Millisecond)

	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, http.StatusOK, <-code)
	require.NoError(t, <-stopped)
	var events int
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM processed_events`).Scan(&events))
	require.Equal(t, 1, events)
}
