package bench_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/signature"
)

const (
	secret      = "whsec_bench_only_0123456789abcdef"
	connections = 64
	roundTime   = 3 * time.Second
	rounds      = 5
	ordersAhead = 120_000 // registered before the first round; more than all rounds use
)

// The benchmark's servers are this binary again, each in a process of its own, as in production.
func TestMain(m *testing.M) {
	url := os.Getenv("PAIDONCE_BENCH_URL")
	switch os.Getenv("PAIDONCE_BENCH_ROLE") {
	case "same":
		exit(runNaive(url, false))
	case "lean":
		exit(runNaive(url, true))
	case "paidonce":
		exit(runPaidonce(url))
	default:
		os.Exit(m.Run())
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// BenchmarkIngest sends signed payment_intent.succeeded events of 2 KB, each for a registered order of its own, over 64
// connections, to Paidonce and to two handlers with chi, pgx and River's InsertTx that send one statement a round trip (see
// runNaive), turn about. It reports the medians of the ratios and rates, and the memory of serve.
func BenchmarkIngest(b *testing.B) {
	pg, err := localpg.Start(b.Context(), localpg.Options{
		Dir: localpg.DefaultDir("bench", os.Getenv), Durable: true, Log: os.Stderr,
		Settings: map[string]string{"max_connections": "200"}, // two handlers with 64 each, and ours
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, pg.Stop()) }()
	same, lean, ours := startServer(b, pg, "same"), startServer(b, pg, "lean"), startServer(b, pg, "paidonce")
	for range b.N {
		var toSame, toLean, rates []float64
		for r := range rounds {
			s, l, o := same.round(b, r), lean.round(b, r), ours.round(b, r)
			toSame, toLean, rates = append(toSame, o/s), append(toLean, o/l), append(rates, o)
			b.Logf("round %d: paidonce %.0f/s, same rows one by one %.0f/s (ratio %.2f), lean one by one %.0f/s (ratio %.2f)",
				r+1, o, s, o/s, l, o/l)
		}
		b.ReportMetric(median(toSame), "ratio")
		b.ReportMetric(median(toLean), "ratio_to_lean")
		b.ReportMetric(median(rates), "events/s")
		b.ReportMetric(ours.peakMiB(b), "serve_MiB")
	}
}

func median(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

type server struct {
	name  string
	url   string
	db    string
	pgDir string
	pid   int
	next  atomic.Int64 // order numbers
}

func startServer(b *testing.B, pg *localpg.Server, role string) *server {
	b.Helper()
	db := "bench_" + role
	admin, err := pgx.Connect(b.Context(), pg.URL("postgres"))
	require.NoError(b, err)
	_, err = admin.Exec(b.Context(), `DROP DATABASE IF EXISTS `+db+` WITH (FORCE)`)
	require.NoError(b, err)
	_, err = admin.Exec(b.Context(), `CREATE DATABASE `+db)
	require.NoError(b, err)
	require.NoError(b, admin.Close(b.Context()))

	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Env = append(os.Environ(), "PAIDONCE_BENCH_ROLE="+role, "PAIDONCE_BENCH_URL="+pg.URL(db))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	b.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err, "the %s server did not start", role)
	return &server{name: role, url: "http://" + strings.TrimSpace(addr), db: db, pgDir: pg.Dir(), pid: cmd.Process.Pid}
}

// round sends webhooks for roundTime and returns acknowledged events a second.
func (s *server) round(b *testing.B, r int) float64 {
	b.Helper()
	scheme, ok := signature.Lookup("stripe")
	require.True(b, ok)
	l := s.load(b, connections, http.StatusOK, func() (*http.Request, error) {
		signed, err := scheme.Sign(event(s.next.Add(1)), secret, time.Now(), signature.SignOptions{})
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, s.url+"/webhooks/stripe", strings.NewReader(string(signed.Body)))
		if err == nil {
			req.Header = signed.Header
		}
		return req, err
	})
	b.Logf("%s: processor time per event: server %v, Postgres %v, this generator %v", s.name, l.server, l.postgres, l.generator)
	if s.next.Load() > ordersAhead {
		b.Fatalf("round %d used more orders than were registered", r+1)
	}
	return l.rate
}

// loaded is what a round of requests came to: answers a second, and processor time per answer.
type loaded struct {
	rate                        float64
	server, postgres, generator time.Duration
}

// load sends what next makes for roundTime over n connections. Every answer must have the status want.
func (s *server) load(b *testing.B, n, want int, next func() (*http.Request, error)) loaded {
	b.Helper()
	var done atomic.Int64
	var wg sync.WaitGroup
	ctx, cancel := context.WithTimeout(b.Context(), roundTime)
	defer cancel()
	tr := &http.Transport{MaxIdleConnsPerHost: n, MaxConnsPerHost: n, DisableCompression: true}
	defer tr.CloseIdleConnections()
	client := &http.Client{Transport: tr}
	start, server, postgres, self := time.Now(), cpuOf(s.pid), cpuOfPostgres(s.pgDir), cpuOf(os.Getpid())
	for range n {
		wg.Go(func() {
			for ctx.Err() == nil {
				req, err := next()
				if err != nil {
					b.Error(err)
					return
				}
				res, err := client.Do(req)
				if err != nil {
					b.Errorf("%s: %v", s.name, err)
					return
				}
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode != want {
					b.Errorf("%s answered %d: %s", s.name, res.StatusCode, body)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	answers := time.Duration(max(done.Load(), 1))
	return loaded{
		rate:   float64(done.Load()) / time.Since(start).Seconds(),
		server: (cpuOf(s.pid) - server) / answers, postgres: (cpuOfPostgres(s.pgDir) - postgres) / answers, generator: (cpuOf(os.Getpid()) - self) / answers,
	}
}

// peakMiB is the largest resident size the process has had.
func (s *server) peakMiB(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	if err != nil {
		b.Logf("peak memory is not known here: %v", err)
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.Atoi(strings.Fields(kb)[0])
			require.NoError(b, err)
			return float64(n) / 1024
		}
	}
	return 0
}

func ref(n int64) string { return fmt.Sprintf("ord_%08d", n) }

// event is a payment_intent.succeeded of about 2 KB.
func event(n int64) []byte {
	return fmt.Appendf(nil, `{"id":"evt_%08d","object":"event","api_version":"2025-09-30.clover","created":1790000000,"livemode":true,`+
		`"pending_webhooks":1,"request":{"id":null,"idempotency_key":null},"type":"payment_intent.succeeded","data":{"object":{"id":"pi_%08d",`+
		`"object":"payment_intent","amount":5000,"amount_capturable":0,"amount_received":5000,"currency":"eur","status":"succeeded",`+
		`"latest_charge":"ch_%08d","metadata":{"order_id":"%s"},"description":"%s"}}}`, n, n, n, ref(n), filler)
}

var filler = strings.Repeat("A shop sells things to people who like them. ", 36)
