package bench_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/paidonce/paidonce/signature"
)

// The handler that Paidonce is measured against: what a careful developer writes with the same libraries. It verifies,
// and in one transaction enters the event id, locks and moves the order, keeps the reason and enqueues a job; a
// statement a round trip.
const naiveSchema = `
	CREATE TABLE processed_events (source text, event_id text, type text, payload jsonb, received_at timestamptz DEFAULT now(), PRIMARY KEY (source, event_id));
	CREATE TABLE orders (ref text PRIMARY KEY, total bigint, currency text, state text, captured bigint DEFAULT 0, version int DEFAULT 1);
	CREATE TABLE order_transitions (ref text, version int, from_state text, to_state text, event_id text, at timestamptz DEFAULT now(), PRIMARY KEY (ref, version));`

type fulfilArgs struct {
	Ref     string `json:"ref"`
	Version int    `json:"version"`
}

func (fulfilArgs) Kind() string { return "fulfil" }

type naiveEvent struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Object struct {
			AmountReceived int64             `json:"amount_received"`
			Metadata       map[string]string `json:"metadata"`
		} `json:"object"`
	} `json:"data"`
}

type naiveServer struct {
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
}

func runNaive(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	cfg.MaxConns = connections
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, naiveSchema); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, fmt.Sprintf(`INSERT INTO orders (ref, total, currency, state)
		SELECT 'ord_' || lpad(n::text, 8, '0'), 5000, 'EUR', 'pending' FROM generate_series(1, %d) n`, ordersAhead))
	if err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, `VACUUM ANALYZE`); err != nil {
		return err
	}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return err
	}
	s := &naiveServer{pool, client}
	r := chi.NewRouter()
	r.Post("/webhooks/stripe", s.webhook)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(ln.Addr())
	srv := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		<-ctx.Done()
		_ = srv.Close()
	}()
	if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func (s *naiveServer) webhook(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		http.Error(w, "body", http.StatusBadRequest)
		return
	}
	req := signature.Request{Method: r.Method, Header: r.Header, Body: body}
	if err := signature.Verify("stripe", req, []string{secret}, time.Now()); err != nil {
		http.Error(w, "signature", http.StatusUnauthorized)
		return
	}
	var e naiveEvent
	if err := json.Unmarshal(body, &e); err != nil {
		http.Error(w, "json", http.StatusBadRequest)
		return
	}
	err = pgx.BeginFunc(r.Context(), s.pool, func(tx pgx.Tx) error { return s.apply(r.Context(), tx, e, body) })
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusOK)
}

func (s *naiveServer) apply(ctx context.Context, tx pgx.Tx, e naiveEvent, body []byte) error {
	tag, err := tx.Exec(ctx, `INSERT INTO processed_events (source, event_id, type, payload) VALUES ('stripe', $1, $2, $3) ON CONFLICT DO NOTHING`, e.ID, e.Type, body)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	ref := e.Data.Object.Metadata["order_id"]
	var state string
	var version int
	if err := tx.QueryRow(ctx, `SELECT state, version FROM orders WHERE ref = $1 FOR UPDATE`, ref).Scan(&state, &version); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE orders SET state = 'paid', captured = $3, version = version + 1 WHERE ref = $1 AND version = $2`, ref, version, e.Data.Object.AmountReceived)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `INSERT INTO order_transitions (ref, version, from_state, to_state, event_id) VALUES ($1, $2, $3, 'paid', $4)`, ref, version+1, state, e.ID)
	if err != nil {
		return err
	}
	_, err = s.river.InsertTx(ctx, tx, fulfilArgs{ref, version + 1}, nil)
	return err
}
