package bench_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

const (
	apiKey         = "bench-only-key-of-256-bits-0123456789abcdef0123456789abcdef0123"
	apiConnections = 32
	liveKeys       = 1_000_000
)

// BenchmarkIdempotency registers orders over 32 connections: without an Idempotency-Key, with one, and again with keys that were
// used, which replays; turn about, on one server. Then it fills the table up to a million live keys and does the same once more.
// It reports the medians of the ratios.
func BenchmarkIdempotency(b *testing.B) {
	pg, err := localpg.Start(b.Context(), localpg.Options{
		Dir: localpg.DefaultDir("bench", os.Getenv), Durable: true, Log: os.Stderr,
		Settings: map[string]string{"max_connections": "200"},
	})
	require.NoError(b, err)
	defer func() { require.NoError(b, pg.Stop()) }()
	s := startServer(b, pg, "paidonce")
	a := &apiLoad{server: s}
	for range b.N {
		rates := a.rounds(b, "")
		a.fill(b, pg)
		full := a.rounds(b, "_of_a_million")
		b.ReportMetric(full/rates, "kept_with_a_million")
	}
}

// apiLoad makes requests to /v1/orders.
type apiLoad struct {
	*server
	last atomic.Int64 // number of the last order that was made with a key
}

// rounds runs a series and returns the median rate of first calls with a key.
func (a *apiLoad) rounds(b *testing.B, suffix string) float64 {
	b.Helper()
	var cpu, throughput, replays, rates []float64
	for r := range rounds {
		bare := a.load(b, apiConnections, http.StatusCreated, func() (*http.Request, error) { return a.post(b, a.next.Add(1), false) })
		first := a.load(b, apiConnections, http.StatusCreated, func() (*http.Request, error) {
			n := a.next.Add(1)
			defer a.last.Store(n)
			return a.post(b, n, true)
		})
		from, to := a.last.Load()-int64(first.rate), a.last.Load()-apiConnections
		again := a.load(b, apiConnections, http.StatusCreated, func() (*http.Request, error) {
			return a.post(b, from+rand.Int64N(to-from), true)
		})
		cpu = append(cpu, float64(first.server+first.postgres)/float64(bare.server+bare.postgres))
		throughput, replays = append(throughput, first.rate/bare.rate), append(replays, again.rate/first.rate)
		rates = append(rates, first.rate)
		b.Logf("round %d%s: without a key %.0f/s (server %v, Postgres %v), with one %.0f/s (%v, %v), replays %.0f/s (%v, %v)", r+1, suffix,
			bare.rate, bare.server, bare.postgres, first.rate, first.server, first.postgres, again.rate, again.server, again.postgres)
	}
	b.ReportMetric(median(cpu), "cpu_ratio"+suffix)
	b.ReportMetric(median(throughput), "throughput_ratio"+suffix)
	b.ReportMetric(median(replays), "replay_ratio"+suffix)
	return median(rates)
}

// post registers order n; the same n is the same request.
func (a *apiLoad) post(b *testing.B, n int64, key bool) (*http.Request, error) {
	body := fmt.Sprintf(`{"data":{"amount":5000,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"api_%d","note":"two pairs of shoes"}}}`, n)
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, a.url+"/v1/orders", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+apiKey)
	req.Header.Set("Content-Type", "application/json")
	if key {
		req.Header.Set("Idempotency-Key", fmt.Sprintf("bench-%d", n))
	}
	return req, nil
}

// fill copies rows of the table under other keys, until a million are there.
func (a *apiLoad) fill(b *testing.B, pg *localpg.Server) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), pg.URL(a.db))
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close(b.Context())) }()
	var columns string
	require.NoError(b, conn.QueryRow(b.Context(), `
		SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
		WHERE attrelid = 'idempotency_keys'::regclass AND attnum > 0 AND NOT attisdropped AND attname NOT IN ('id', 'idempotency_key')`).Scan(&columns))
	start := time.Now()
	tag, err := conn.Exec(b.Context(), fmt.Sprintf(`
		INSERT INTO idempotency_keys (id, idempotency_key, %[1]s)
		SELECT gen_random_uuid(), 'filled-' || n, %[1]s
		FROM generate_series(1, $1 - (SELECT count(*) FROM idempotency_keys)) n,
			(SELECT %[1]s FROM idempotency_keys WHERE status = 'COMPLETED' LIMIT 1) k`, columns), liveKeys)
	require.NoError(b, err)
	_, err = conn.Exec(b.Context(), `VACUUM ANALYZE idempotency_keys`)
	require.NoError(b, err)
	_, err = conn.Exec(b.Context(), `CHECKPOINT`)
	require.NoError(b, err)
	b.Logf("%d keys filled in, in %v", tag.RowsAffected(), time.Since(start).Round(time.Second))
}
