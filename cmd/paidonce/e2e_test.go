package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store/storetest"
)

// shop is everything around a program under test: a database, a merchant that
// counts, and a configuration.
type shop struct {
	database, config, base, admin string

	mu     sync.Mutex
	answer int            // of the merchant
	calls  map[string]int // by key
	got    chan string    // keys, as they arrive
}

const apiKey = "pk_cmd_test"

func openShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{database: storetest.OpenURL(t), answer: http.StatusOK, calls: map[string]int{}, got: make(chan string, 100)}
	merchant := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Idempotency-Key")
		s.mu.Lock()
		s.calls[key]++
		w.WriteHeader(s.answer)
		s.mu.Unlock()
		s.got <- key
	}))
	t.Cleanup(merchant.Close)
	sum := sha256.Sum256([]byte(apiKey))
	listen, admin := freePort(t), freePort(t)
	s.base, s.admin = "http://"+listen, "http://"+admin
	s.config = write(t, "paidonce.yaml", fmt.Sprintf(`
database_url: %q
listen: %s
admin_listen: %s
workers: {admin_listen: "off"}
log: {level: debug}
accounts:
  shop:
    api_keys: [{name: test, sha256: %s, roles: [read, write]}]
    callback: {url: %q, secret: %q, allow_private: true}
    sources:
      stripe: {gateway: stripe, mode: test, secrets: [%s]}
`, s.database, listen, admin, hex.EncodeToString(sum[:]), merchant.URL, callSecret, stripeSecret))
	return s
}

// freePort is an address of loopback on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { _ = ln.Close() }()
	return ln.Addr().String()
}

// process is a part of the program in a process of its own.
type process struct {
	*exec.Cmd
	log  *bytes.Buffer
	done chan struct{}
	err  error // how it ended, once done is closed
}

func (s *shop) start(t *testing.T, part string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0], part, "--config", s.config), log: &bytes.Buffer{}, done: make(chan struct{})}
	p.Stdout, p.Stderr = p.log, p.log
	require.NoError(t, p.Start())
	go func() {
		defer close(p.done)
		p.err = p.Wait()
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s:\n%s", part, p.log)
		}
		for _, secret := range []string{stripeSecret, callSecret, apiKey} {
			require.NotContains(t, p.log.String(), secret, "the log of %s", part)
		}
	})
	if part == "serve" {
		require.Eventually(t, func() bool {
			resp, err := http.Get(s.admin + "/readyz")
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		}, 20*time.Second, 20*time.Millisecond, "serve is ready")
	}
	return p
}

// kill ends a process as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Kill())
	<-p.done
}

// stop ends a process as SIGTERM does, and in good order.
func (p *process) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	<-p.done
	require.NoError(t, p.err, "ends with 0")
}

func (s *shop) merchant(answer int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// told waits for the next call of the merchant and returns its effect.
func (s *shop) told(t *testing.T) string {
	t.Helper()
	select {
	case key := <-s.got:
		return key[strings.LastIndex(key, ":")+1:]
	case <-time.After(60 * time.Second):
		require.FailNow(t, "the merchant was not called")
		return ""
	}
}

func (s *shop) register(t *testing.T, ref string, amount int) int {
	t.Helper()
	body := fmt.Sprintf(`{"data":{"amount":%d,"currency":"EUR","metadata":{"external_ref":%q}}}`, amount, ref)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.base+"/v1/orders", strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+apiKey)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// send runs paidonce send.
func (s *shop) send(t *testing.T, args string) answer {
	t.Helper()
	e, out, errs := s.env()
	code := e.run(t.Context(), words("send stripe %s -c %s", args, s.config))
	return answer{code, out.String(), errs.String()}
}

// env is an environment with the real clock: signatures are judged by it.
func (s *shop) env() (e *env, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	return &env{getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: stdout, stderr: stderr, now: time.Now}, stdout, stderr
}

// look runs a command on the shop's database and returns what it printed.
func (s *shop) look(t *testing.T, args string) string {
	t.Helper()
	a := call(t, words("%s -c %s", args, s.config))
	require.Equal(t, exitOK, a.code, a.stderr)
	return a.stdout
}

// Post, kill, restart, post again: the order is paid once and fulfilled once.
func TestKillAndRestart(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	serve := s.start(t, "serve")
	require.Equal(t, http.StatusCreated, s.register(t, "ord_1", 5000))
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_1 --order ord_1").code)
	serve.kill(t)

	serve = s.start(t, "serve")
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_1 --order ord_1").code, "the gateway's retry")
	require.Empty(t, s.got, "there is no worker yet")

	work := s.start(t, "work")
	require.Equal(t, "fulfil", s.told(t))
	work.kill(t)
	serve.kill(t)

	serve, work = s.start(t, "serve"), s.start(t, "work")
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_1 --order ord_1").code)
	require.Equal(t, exitOK, s.send(t, "charge.refunded --id evt_2 --order ord_1").code)
	require.Equal(t, "revoke", s.told(t), "and no second fulfil before it")
	require.Eventually(t, func() bool { return strings.Contains(s.look(t, "effects --state done"), "revoke") }, 10*time.Second, 20*time.Millisecond)
	work.stop(t)
	serve.stop(t)

	for key, n := range s.calls {
		require.Equal(t, 1, n, key)
	}
	require.Len(t, s.calls, 2)
	require.Contains(t, s.look(t, "explain ord_1"), "Order ord_1 is not paid, it is refunded")
}

// A worker that is killed while the merchant works loses nothing: the effect is
// called again under the same key.
func TestKillWorkDuringACall(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	serve := s.start(t, "serve")
	require.Equal(t, http.StatusCreated, s.register(t, "ord_1", 5000))
	s.merchant(http.StatusServiceUnavailable)
	work := s.start(t, "work")
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --order ord_1").code)
	require.Equal(t, "fulfil", s.told(t))
	work.kill(t)
	s.merchant(http.StatusOK)
	work = s.start(t, "work")
	require.Equal(t, "fulfil", s.told(t))
	require.Eventually(t, func() bool { return strings.Contains(s.look(t, "effects"), "done") }, 20*time.Second, 50*time.Millisecond)
	require.Len(t, s.calls, 1, "one key for all tries")
	work.stop(t)
	serve.stop(t)
}

// What was stored can be listed, shown, explained, folded again and retried.
func TestLookAround(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	serve, work := s.start(t, "serve"), s.start(t, "work")
	s.merchant(http.StatusGone) // dead at once
	require.Equal(t, http.StatusCreated, s.register(t, "ord_1", 5000))
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_1 --order ord_1").code)
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_2 --order ord_2").code)
	require.Equal(t, "fulfil", s.told(t))
	require.Eventually(t, func() bool { return strings.Contains(s.look(t, "effects --state dead"), "ord_1") }, 10*time.Second, 20*time.Millisecond)

	require.Contains(t, s.look(t, "orders"), "ord_2")
	require.NotContains(t, s.look(t, "orders --state paid"), "ord_2")
	require.Contains(t, s.look(t, "orders --stubs --older 0s"), "ord_2")
	require.Contains(t, s.look(t, "orders show ord_1"), "pending -> paid")
	require.Contains(t, s.look(t, "events --outcome waiting"), "evt_2")
	require.NotContains(t, s.look(t, "events --outcome waiting"), "evt_1")
	require.Contains(t, s.look(t, "events show evt_1"), "fact: captured 50.00 EUR")
	require.Contains(t, s.look(t, "events show evt_1 --payload"), `"id":"evt_1"`)
	require.Contains(t, s.look(t, "explain evt_2"), "ord_2")
	require.Contains(t, s.look(t, "explain ord_2"), "waits to be registered")

	for _, args := range []string{
		"orders", "orders show ord_1", "events", "events show evt_1", "effects", "explain ord_1", "explain evt_1", "migrate status", "effects retry",
		"fetches", "fetches retry", "fetches retry --yes",
	} {
		require.True(t, json.Valid([]byte(s.look(t, args+" --json"))), args)
	}
	a := call(t, words("explain ord_9 -c %s", s.config))
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stderr, `no order and no event is called "ord_9"`)

	// Counted first, then done.
	require.Contains(t, s.look(t, "effects retry --account shop"), "1 effect would be retried.\nDo it with --yes.\n")
	require.Contains(t, s.look(t, "fetches retry --source stripe"), "0 objects would be asked about.\n")
	require.Contains(t, s.look(t, "fetches retry --yes"), "0 objects due now.\n")
	for args, code := range map[string]int{
		"effects retry --account nosuch": exitUsage, "effects --account nosuch": exitUsage, "orders --account nosuch": exitUsage,
		"orders show ord_1 --account nosuch": exitUsage, "events --account nosuch": exitUsage, "events --source nosuch": exitUsage,
		"events show evt_1 --source nosuch": exitUsage, "explain ord_1 --account nosuch": exitUsage, "explain evt_1 --source nosuch": exitUsage,
		"fetches --source nosuch": exitUsage, "fetches retry --account nosuch --yes": exitUsage,
		"replay --from-db --source nosuch": exitUsage, "replay --from-db --where account=nosuch": exitUsage,
		"effects retry --order nosuch --yes": exitFailed, "effects --order nosuch": exitFailed, "orders show nosuch": exitFailed,
	} {
		a := call(t, words("%s -c %s", args, s.config))
		require.Equal(t, code, a.code, "%s: %s", args, a.stderr)
		require.Contains(t, a.stderr, `"nosuch"`, args)
		require.Empty(t, a.stdout, args)
	}
	require.Contains(t, s.look(t, "events --source api"), "register:ord_1")

	// Without the callback, explain says why nobody is called. Rows of what the configuration does not name any more are found.
	whole, err := os.ReadFile(s.config)
	require.NoError(t, err)
	bare := regexp.MustCompile(`callback: .*`).ReplaceAllString(string(whole), "")
	explained := call(t, words("explain ord_1 -c %s", write(t, "bare.yaml", bare)))
	require.Contains(t, explained.stdout, "  - Account shop has no callback, so nobody is called for it.\n")
	require.Contains(t, explained.stdout, "  - Account shop has no callback; set accounts.shop.callback.\n")
	require.NotContains(t, s.look(t, "explain ord_1"), "has no callback")
	renamed := write(t, "renamed.yaml", strings.ReplaceAll(strings.Replace(string(whole), "  shop:", "  store:", 1), "stripe: {", "other: {"))
	explained = call(t, words("explain ord_1 --account shop -c %s", renamed))
	require.Contains(t, explained.stdout, "  - Account shop is not in this configuration, so nobody is called for it.\n")
	require.Contains(t, call(t, words("events --source stripe -c %s", renamed)).stdout, "evt_1")
	require.Empty(t, s.got)
	s.merchant(http.StatusOK)
	require.Contains(t, s.look(t, "effects retry --order ord_1 --yes"), "1 effect due now")
	require.Equal(t, "fulfil", s.told(t))
	require.Len(t, s.calls, 1)
	work.stop(t)
	serve.stop(t)
}

// Stored deliveries that processed_events has lost are taken in once more from
// their bytes: first as a dry run that changes nothing, then really.
func TestReplayFromDatabase(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	serve := s.start(t, "serve")
	require.Equal(t, http.StatusCreated, s.register(t, "ord_1", 5000))
	require.Equal(t, exitOK, s.send(t, "payment_intent.succeeded --id evt_1 --order ord_1").code)
	serve.stop(t)
	require.Equal(t, "1 delivery to read.\n1 delivery read: 1 event, 1 known, 0 missing, 0 skipped.\nWould change nothing.\n", s.look(t, "replay --from-db"))

	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	defer done()
	_, err = st.Pool().Exec(t.Context(), `DELETE FROM processed_events WHERE event_id = 'evt_1'`)
	require.NoError(t, err)

	dry := s.look(t, "replay --from-db --source stripe --where since=240h")
	require.Contains(t, dry, "event evt_1 of source stripe, payment_intent.succeeded (new)\n")
	require.Contains(t, dry, "1 delivery read: 1 event, 0 known, 1 missing (1 no_change), 0 skipped.\n0 orders would move. This was a dry run; --apply does it.\n")
	require.NotContains(t, s.look(t, "events"), "evt_1", "nothing was written")

	require.Contains(t, s.look(t, "replay --from-db --apply"), "1 event entered, 0 orders moved.\n")
	require.Contains(t, s.look(t, "events"), "evt_1")
	require.Contains(t, s.look(t, "replay --from-db --apply"), "0 missing, 0 skipped.\nNothing changed.\n")
	require.Contains(t, s.look(t, "replay --from-db --where until=240h"), "0 deliveries to read.\n")
}

// Schema: status tells, serve refuses, migrate heals, twice is once.
func TestMigrate(t *testing.T) {
	t.Parallel()
	url := storetest.OpenEmpty(t)
	vars := []string{"PAIDONCE_DATABASE_URL", url}
	file := write(t, "paidonce.yaml", offlineConfig)
	a := call(t, words("migrate status -c %s", file), vars...)
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stdout, "pending")
	require.Regexp(t, `^paidonce: \d+ steps pending; run paidonce migrate\n$`, a.stderr)
	for _, command := range []string{"serve", "work", "orders"} {
		a = call(t, words("%s -c %s", command, file), vars...)
		require.Equal(t, exitFailed, a.code)
		require.Contains(t, a.stderr, "paidonce migrate", command)
	}
	a = call(t, words("migrate -c %s", file), vars...)
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Regexp(t, `^The schema is current: [1-9]\d* steps applied now.\n$`, a.stdout)
	a = call(t, words("migrate up -c %s", file), vars...)
	require.Equal(t, "The schema is current: 0 steps applied now.\n", a.stdout)
	require.Equal(t, exitOK, call(t, words("migrate status -c %s", file), vars...).code)

	a = call(t, words("migrate"), "PAIDONCE_DATABASE_URL", "postgres://u:pa55word@127.0.0.1:1/x")
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stderr, "postgres://u:***@127.0.0.1:1/x cannot be reached")
	require.NotContains(t, a.stderr, "pa55word")
}

// SIGHUP: the new secret is taken beside the old one, in the running process.
func TestReloadByHangup(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	serve := s.start(t, "serve")
	rolled := "whsec_cmd_test_rolled_9876543210"
	old, err := os.ReadFile(s.config)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(s.config, []byte(strings.Replace(string(old), "["+stripeSecret+"]", "["+rolled+", "+stripeSecret+"]", 1)), 0o600))
	a := s.send(t, "payment_intent.succeeded --order ord_1")
	require.Equal(t, exitFailed, a.code, "signed with the first secret of the file, which is not in force yet")
	require.Contains(t, a.stdout, ": 401")
	require.NoError(t, serve.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return s.send(t, "payment_intent.succeeded --order ord_1").code == exitOK }, 10*time.Second, 50*time.Millisecond)
	require.NoError(t, os.WriteFile(s.config, old, 0o600))
	require.Equal(t, exitOK, s.send(t, "charge.refunded --order ord_1").code, "the old one still")
	serve.stop(t)
	require.NotContains(t, serve.log.String(), rolled)
}

// serve and work end with 0 when they are told to, also within one process.
func TestServeInProcess(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	ctx, cancel := context.WithCancel(t.Context())
	e, _, stderr := s.env()
	code := make(chan int, 1)
	go func() { code <- e.run(ctx, words("serve -c %s", s.config)) }()
	require.Eventually(t, func() bool {
		return call(t, words("health -c %s", s.config)).code == exitOK
	}, 20*time.Second, 20*time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-code, stderr.String())
}
