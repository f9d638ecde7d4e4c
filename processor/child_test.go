//go:build unix

package processor_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// childVariable makes the test binary a worker process; see TestWorkerProcess.
const childVariable = "PAIDONCE_TEST_WORKER"

// childConfig is what a worker process is told.
type childConfig struct {
	Database string
	Callback string
	Options  childOptions
}

// childOptions are the times of a run; the rest of the options follows from them.
type childOptions struct {
	Workers                              int
	Deadline, Lease, JobTimeout, Rescue  time.Duration
	TickEvery, TickGrace, CircuitOpenFor time.Duration
	Schedule                             []time.Duration
	MaxAttempts                          int
}

func (o childOptions) worker() processor.WorkerOptions {
	return processor.WorkerOptions{
		Workers: o.Workers, Deadline: o.Deadline, Lease: o.Lease, JobTimeout: o.JobTimeout, RescueAfter: o.Rescue,
		TickEvery: o.TickEvery, TickGrace: o.TickGrace, CircuitOpen: o.CircuitOpenFor, Schedule: o.Schedule,
	}
}

// TestWorkerProcess is no test: it is what a child process runs.
func TestWorkerProcess(t *testing.T) {
	doc := os.Getenv(childVariable)
	if doc == "" {
		return
	}
	var c childConfig
	require.NoError(t, json.Unmarshal([]byte(doc), &c))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	go func() { // the parent holds the other end: it dies, we stop
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	conf, err := pgxpool.ParseConfig(c.Database)
	require.NoError(t, err)
	conf.MaxConns = int32(c.Options.Workers + 8)
	pool, err := pgxpool.NewWithConfig(ctx, conf)
	require.NoError(t, err)
	defer pool.Close()
	s, err := store.New(pool, store.Options{MaxAttempts: c.Options.MaxAttempts})
	require.NoError(t, err)
	target := processor.Target{URL: c.Callback, Secrets: []string{secret}, AllowPrivate: true}
	cb, err := processor.NewCallback(func(string) (processor.Target, bool) { return target, true }, processor.CallbackOptions{})
	require.NoError(t, err)
	o := c.Options.worker()
	o.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	w, err := processor.NewWorkers(s, cb, o)
	require.NoError(t, err)
	require.NoError(t, w.Run(ctx))
}

// child is a worker process.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	log   string
}

func startChild(t *testing.T, c childConfig) *child {
	t.Helper()
	doc, err := json.Marshal(c)
	require.NoError(t, err)
	log, err := os.Create(filepath.Join(t.TempDir(), "worker.log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }()
	cmd := exec.Command(os.Args[0], "-test.run=^TestWorkerProcess$", "-test.timeout=0", "-test.count=1")
	cmd.Env = append(os.Environ(), childVariable+"="+string(doc))
	cmd.Stdout, cmd.Stderr = log, log
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	k := &child{cmd: cmd, stdin: stdin, log: log.Name()}
	t.Cleanup(func() { k.kill() })
	return k
}

// kill is kill -9.
func (k *child) kill() {
	_ = k.cmd.Process.Kill()
	_ = k.cmd.Wait()
	_ = k.stdin.Close()
}

// stop asks the process to end and fails the test if it does not do so in good order.
func (k *child) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, k.cmd.Process.Signal(syscall.SIGTERM))
	k.on() // in case it was stalled
	require.NoError(t, k.cmd.Wait(), "%s", k.errors(t))
}

// stall stops the process, as a machine does that pauses it; on lets it go on.
func (k *child) stall() { _ = k.cmd.Process.Signal(syscall.SIGSTOP) }
func (k *child) on()    { _ = k.cmd.Process.Signal(syscall.SIGCONT) }

// count returns in how many lines the process logged words.
func (k *child) count(t *testing.T, words string) int {
	t.Helper()
	doc, err := os.ReadFile(k.log)
	require.NoError(t, err)
	return strings.Count(string(doc), words)
}

// errors returns the error lines that the process logged.
func (k *child) errors(t *testing.T) string {
	t.Helper()
	doc, err := os.ReadFile(k.log)
	require.NoError(t, err)
	var lines []string
	for _, line := range strings.Split(string(doc), "\n") {
		if strings.Contains(line, "level=ERROR") || strings.Contains(line, "panic") || strings.Contains(line, "DATA RACE") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}
