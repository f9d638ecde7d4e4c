package bench_test

import (
	"context"
	"crypto/sha256"
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
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/signature"
)

// The handlers that Paidonce is measured against: what a careful developer writes with the same libraries, a statement a
// round trip. "same" keeps what Paidonce keeps, in the same tables: the event with its facts and outcome, the payload,
// the payment with its ids and ledger, the order, the reason. "lean" has tables of its own and keeps less: the event with
// its payload, the order, the reason. Both verify, lock the order, check its version and enqueue a job with River.
const leanSchema = `
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
			ID             string            `json:"id"`
			LatestCharge   string            `json:"latest_charge"`
			AmountReceived int64             `json:"amount_received"`
			Metadata       map[string]string `json:"metadata"`
		} `json:"object"`
	} `json:"data"`
}

type naiveServer struct {
	pool  *pgxpool.Pool
	river *river.Client[pgx.Tx]
	apply func(context.Context, pgx.Tx, naiveEvent, []byte) error
}

func runNaive(url string, lean bool) error {
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
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{})
	if err != nil {
		return err
	}
	s := &naiveServer{pool: pool, river: client}
	if lean {
		s.apply = s.applyLean
		err = prepareLean(ctx, pool)
	} else {
		s.apply = s.applySame
		if err = migrations.Up(ctx, url, nil); err == nil {
			err = registerOrders(ctx, url)
		}
	}
	if err != nil {
		return err
	}
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

func prepareLean(ctx context.Context, pool *pgxpool.Pool) error {
	m, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return err
	}
	if _, err := m.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	if _, err := pool.Exec(ctx, leanSchema); err != nil {
		return err
	}
	_, err = pool.Exec(ctx, fmt.Sprintf(`INSERT INTO orders (ref, total, currency, state)
		SELECT 'ord_' || lpad(n::text, 8, '0'), 5000, 'EUR', 'pending' FROM generate_series(1, %d) n`, ordersAhead))
	if err != nil {
		return err
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
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

func (s *naiveServer) applyLean(ctx context.Context, tx pgx.Tx, e naiveEvent, body []byte) error {
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

// applySame writes the rows that Paidonce writes for the same event.
func (s *naiveServer) applySame(ctx context.Context, tx pgx.Tx, e naiveEvent, body []byte) error {
	o := e.Data.Object
	ref := o.Metadata["order_id"]
	facts, err := json.Marshal(map[string]any{
		"payment": []string{o.ID, o.LatestCharge}, "reference": ref, "strength": "payment",
		"facts": []any{map[string]any{"kind": "captured", "amount": o.AmountReceived, "currency": "EUR"}},
	})
	if err != nil {
		return err
	}
	hash := sha256.Sum256(facts)
	exec := func(sql string, args ...any) error {
		_, err := tx.Exec(ctx, sql, args...)
		return err
	}
	tag, err := tx.Exec(ctx, `INSERT INTO processed_events (account_id, source_id, event_id, type, realm, payment, occurred_at, facts, facts_hash, mapping_version)
		VALUES ('shop', 'stripe', $1, $2, 'stripe:live', $3, now(), $4, $5, 1) ON CONFLICT DO NOTHING`, e.ID, e.Type, o.ID, facts, hash[:16])
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	payment := uuid.Must(uuid.NewV7())
	var orderID uuid.UUID
	var state string
	var version int
	steps := []func() error{
		func() error {
			return exec(`INSERT INTO event_payloads (account_id, source_id, event_id, delivery, header, body) VALUES ('shop', 'stripe', $1, $2, '{}', $3)`, e.ID, payment, body)
		},
		func() error { return exec(`INSERT INTO payments (account_id, id) VALUES ('shop', $1)`, payment) },
		func() error {
			return exec(`INSERT INTO payment_ids (account_id, realm, id, payment_id) VALUES ('shop', 'stripe:live', $1, $3), ('shop', 'stripe:live', $2, $3)
				ON CONFLICT DO NOTHING`, o.ID, o.LatestCharge, payment)
		},
		func() error {
			return tx.QueryRow(ctx, `SELECT id, state, version FROM orders WHERE account_id = 'shop' AND external_ref = $1 FOR NO KEY UPDATE`, ref).
				Scan(&orderID, &state, &version)
		},
		func() error {
			return exec(`UPDATE payments SET order_id = $2, ledger = $3 WHERE account_id = 'shop' AND id = $1`, payment, orderID, facts)
		},
		func() error {
			return exec(`UPDATE orders SET state = 'paid', want = 'go', flags = '{}', captured = $3, kept = $3, wake_at = now(), version = version + 1, updated_at = now()
				WHERE account_id = 'shop' AND id = $1 AND version = $2`, orderID, version, o.AmountReceived)
		},
		func() error {
			return exec(`INSERT INTO order_transitions (account_id, order_id, version, from_state, to_state, cause, source_id, event_id, kept, effect, effect_state, after, next_at)
				VALUES ('shop', $1, $2, $3, 'paid', $4, 'stripe', $5, $6, 'fulfil', 'open', 'nothing', now())`, orderID, version+1, state, e.Type, e.ID, o.AmountReceived)
		},
		func() error {
			return exec(`UPDATE processed_events SET outcome = 'applied', order_id = $2, order_version_before = $3, order_version_after = $4
				WHERE account_id = 'shop' AND source_id = 'stripe' AND event_id = $1`, e.ID, orderID, version, version+1)
		},
		func() error {
			_, err := s.river.InsertTx(ctx, tx, fulfilArgs{ref, version + 1}, nil)
			return err
		},
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
