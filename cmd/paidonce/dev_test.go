package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/dev"
	"github.com/paidonce/paidonce/store/storetest"
)

// screen is a terminal's worth of output that can be read while it is written.
type screen struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.String()
}

// devEnv is an environment with the real clock and a database of the test's.
func devEnv(t *testing.T) (*env, *screen, *screen) {
	vars := map[string]string{"PAIDONCE_DATABASE_URL": storetest.OpenEmpty(t), "PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	out, errs := &screen{}, &screen{}
	return &env{
		getenv: func(name string) string { return vars[name] }, stdin: strings.NewReader(""), stdout: out, stderr: errs, now: time.Now,
	}, out, errs
}

// startDev runs dev in the working directory until the test ends, or stop is
// called.
func startDev(t *testing.T, e *env, out, errs *screen) (stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	code := make(chan int, 1)
	go func() { code <- e.run(ctx, words("dev")) }()
	stop = sync.OnceValue(func() int { cancel(); return <-code })
	t.Cleanup(func() { stop() })
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "explain ord_1") || len(code) > 0 }, 30*time.Second, 10*time.Millisecond)
	require.Empty(t, code, errs.String())
	return stop
}

// The lines that dev prints are run as they stand: a shell with curl and this
// program under the name that dev gives it.
func TestDevFirstEvent(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	t.Chdir(t.TempDir())
	e, out, errs := devEnv(t)
	stop := startDev(t, e, out, errs)

	_, lines, _ := strings.Cut(out.String(), "what the merchant is told.\n")
	require.Contains(t, lines, "go run ./cmd/paidonce send", "how this program is called again, being a test's")
	for _, line := range strings.Split(strings.ReplaceAll(lines, "\\\n", ""), "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		said := shell(t, e, line)
		if strings.HasPrefix(line, "curl") {
			require.Contains(t, said, `"external_ref":"ord_1"`)
			require.Contains(t, said, `"registered":true`)
		}
		if strings.Contains(line, " send ") {
			require.Contains(t, said, ": 200")
			require.Eventually(t, func() bool {
				return strings.Contains(out.String(), "merchant: fulfil order ord_1, paid, kept 50.00 EUR")
			},
				20*time.Second, 10*time.Millisecond, "the merchant of dev was told: "+errs.String())
		}
		if strings.Contains(line, " explain ") {
			require.Contains(t, said, "Order ord_1 is paid")
		}
	}
	require.Equal(t, exitOK, stop(), errs.String())

	// Kept for the next time, closed to others and to version control.
	made, err := os.ReadFile(dev.File)
	require.NoError(t, err)
	info, err := os.Stat(dev.File)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	require.FileExists(t, ".paidonce/.gitignore")
	key, err := os.ReadFile(".paidonce/api_key")
	require.NoError(t, err)
	require.Contains(t, out.String(), strings.TrimSpace(string(key)), "printed when it was made")

	before := len(out.String())
	again := &screen{}
	e.stdout = again
	require.Equal(t, exitOK, startDev(t, e, again, errs)())
	require.Len(t, out.String(), before)
	require.NotContains(t, again.String(), strings.TrimSpace(string(key)), "not printed again")
	same, err := os.ReadFile(dev.File)
	require.NoError(t, err)
	require.Equal(t, string(made), string(same))
}

// With a configuration of one's own, dev runs that.
func TestDevOwnConfiguration(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("paidonce.yaml", []byte(strings.NewReplacer(
		"127.0.0.1:18080", "127.0.0.1:0\nadmin_listen: 127.0.0.1:0",
	).Replace(offlineConfig)), 0o600))
	e, out, errs := devEnv(t)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- e.run(ctx, words("dev")) }()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "database ") || len(code) > 0 }, 30*time.Second, 10*time.Millisecond)
	cancel()
	require.Equal(t, exitOK, <-code, errs.String())
	require.Contains(t, out.String(), "/webhooks/pay  (stripe)")
	require.NoFileExists(t, dev.File)
	require.NotContains(t, out.String()+errs.String(), stripeSecret)
}

const scenarioGood = `
shows: an order is paid and fulfilled, once
orders: [{ref: ord_1, amount: 5000}]
steps:
  - deliver: [{type: payment_intent.succeeded, order: ord_1, copies: 2}]
  - wait: quiet
expect:
  orders: {ord_1: {state: paid, told: fulfilled, effects: [fulfil]}}
  outcomes: {applied: 1, duplicate: 1}
  statuses: {200: 2}
  calls: {fulfil: 1}
`

// dev --replay plays scenarios on a database of their own; its last line is for
// programs, and its exit code too.
func TestDevReplay(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("name: "+name+text), 0o600))
	}
	file("once", scenarioGood)
	replay := func() (int, map[string]any, string) {
		e, out, errs := devEnv(t)
		code := e.run(t.Context(), words("dev --replay %s --exit --json", dir))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		var sum map[string]any
		require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &sum), "%s\n%s", out, errs)
		return code, sum, errs.String()
	}

	code, sum, errs := replay()
	require.Equal(t, exitOK, code, errs)
	require.Equal(t, map[string]any{
		"scenarios": 1.0, "failed": 0.0, "deliveries": 2.0, "events": 1.0, "duplicates": 1.0, "orders": 1.0, "effects": 1.0,
	}, sum)
	require.Contains(t, errs, "ok   once")

	file("wrong", strings.Replace(scenarioGood, "state: paid", "state: refunded", 1))
	code, sum, errs = replay()
	require.Equal(t, exitFailed, code)
	require.EqualValues(t, 2, sum["scenarios"])
	require.EqualValues(t, 1, sum["failed"])
	require.Regexp(t, `FAIL wrong(?s:.*)refunded`, errs)
	log := regexp.MustCompile(`the log of serve and work is in (\S+)`).FindStringSubmatch(errs)
	require.NotNil(t, log, errs)
	require.NoError(t, os.Remove(log[1]))

	file("typo", strings.Replace(scenarioGood, "deliver:", "delivver:", 1))
	e, out, stderr := devEnv(t)
	require.Equal(t, exitFailed, e.run(t.Context(), words("dev --replay %s --exit --json", dir)))
	require.Empty(t, out.String())
	require.Contains(t, stderr.String(), "typo.yaml")
	require.NoError(t, os.Remove(filepath.Join(dir, "typo.yaml")))
}
