package e2e_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/scenario/network"
	"github.com/paidonce/paidonce/outbound"
)

// Environment of a child process.
const (
	envChild   = "PAIDONCE_E2E_CHILD"   // serve or work
	envConfig  = "PAIDONCE_E2E_CONFIG"  // the configuration file
	envClock   = "PAIDONCE_E2E_CLOCK"   // a file with the program's time; empty: the real one
	envNetwork = "PAIDONCE_E2E_NETWORK" // the recording network; empty: the real one
	envQuick   = "PAIDONCE_E2E_QUICK"   // not empty: quickMoves
)

// authority signs for every outside host. All programs under test trust it, and
// nothing else, by SSL_CERT_FILE.
var authority *network.Authority

// scratch is a folder that ends with the tests.
var scratch string

// TestMain runs the tests, or, in a child process of one, a part of the program.
func TestMain(m *testing.M) {
	if part := os.Getenv(envChild); part != "" {
		os.Exit(child(part))
	}
	os.Exit(parent(m))
}

func parent(m *testing.M) int {
	dir, err := os.MkdirTemp("", "paidonce-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	scratch = dir
	if authority, err = network.NewAuthority(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, authority.PEM(), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("SSL_CERT_FILE", roots)
	os.Setenv("SSL_CERT_DIR", dir)
	moreAtOnce()
	return m.Run()
}

// moreAtOnce lets more tests run in parallel than there are processors, unless
// the command line says how many: programs under test wait more than they work.
func moreAtOnce() {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
}

// child is a process that serves or works until SIGTERM. It tells its addresses
// in the line "ready" and every reload in the line "reloaded".
func child(part string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	// The parent holds the other end: when it is gone, however, so are we.
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()

	load := func() (*config.Config, error) { return config.Load(os.Getenv(envConfig), os.Getenv) }
	cfg, err := load()
	if err != nil {
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		return 1
	}
	reload := make(chan func(error))
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	go func() {
		for range hangups {
			reload <- func(err error) { say("reloaded", textOf(err)) }
		}
	}()
	edges := app.Edges{
		Log:    slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Ready:  func(a app.Addrs) { say("ready", a) },
		Reload: reload,
		Load:   load,
	}
	if path := os.Getenv(envClock); path != "" {
		edges.Now = func() time.Time { return readClock(path) }
	}
	if addr := os.Getenv(envNetwork); addr != "" {
		edges.DialContext = dialer(addr)
	}
	if os.Getenv(envQuick) != "" {
		edges.Calls, edges.Moves, edges.Fetches = outbound.Options{Every: time.Millisecond, CircuitAfter: 1000}, quickMoves(), quickFetches()
	}
	run := app.Serve
	if part == "work" {
		run = app.Work
	}
	if err := run(ctx, cfg, edges); err != nil {
		fmt.Fprintln(os.Stderr, "paidonce:", err)
		return 1
	}
	return 0
}

// textOf is the text of an error, empty for none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func say(word string, value any) {
	text, _ := json.Marshal(value)
	fmt.Printf("%s %s\n", word, text)
}

func dialer(addr string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, nw, to string) (net.Conn, error) { return network.Dial(ctx, addr, nw, to) }
}

// readClock reads the time that the parent wrote: nanoseconds since the Unix epoch.
func readClock(path string) time.Time {
	data, err := os.ReadFile(path)
	if err != nil {
		panic(fmt.Sprintf("the test's clock: %v", err))
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		panic(fmt.Sprintf("the test's clock: %v", err))
	}
	return time.Unix(0, ns)
}

// writeClock replaces the time at once, so that no reader sees half of it.
func writeClock(path string, t time.Time) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(strconv.FormatInt(t.UnixNano(), 10)), 0o600); err != nil {
		return err
	}
	return os.Rename(next, path)
}
