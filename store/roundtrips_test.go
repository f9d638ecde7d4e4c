package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// wire counts what goes to the server: pipelines and lone statements (a round trip each), and statements.
type wire struct{ trips, statements atomic.Int64 }

func (w *wire) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	w.trips.Add(1)
	w.statements.Add(1)
	return ctx
}
func (w *wire) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
func (w *wire) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	w.trips.Add(1)
	return ctx
}

func (w *wire) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {
	w.statements.Add(1)
}
func (w *wire) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
func (w *wire) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	w.trips.Add(2) // the table is described first
	w.statements.Add(1)
	return ctx
}
func (w *wire) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// A batch is sets, not loops: 64 events take the statements of 8, in five round trips; duplicates take two.
func TestApplyRoundTrips(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	var w wire
	cfg.ConnConfig.Tracer, cfg.MaxConns = &w, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)

	cost := func(events []store.Event) (trips, statements int64) {
		t0, s0 := w.trips.Load(), w.statements.Load()
		apply(t, s, events...)
		return w.trips.Load() - t0, w.statements.Load() - s0
	}
	round := 0
	mixed := func(n int) (events []store.Event) {
		round++
		for i := range n / 4 {
			ref, p := fmt.Sprintf("ord_%d_%d", round, i), fmt.Sprintf("pi_%d_%d", round, i)
			paid := captured("evt_"+p, p, ref, 5000)
			other := paid
			other.Facts = refunded("r_"+p, p, 700).Facts
			events = append(events, register(ref, 5000), paid, other, refunded("evt_r_"+p, p, 1000))
		}
		return events
	}
	for range 3 { // prepares the statements, and lets the bell ring
		apply(t, s, mixed(8)...)
	}
	few, many := mixed(8), mixed(64)
	tripsFew, statementsFew := cost(few)
	tripsMany, statementsMany := cost(many)
	require.LessOrEqual(t, tripsFew, int64(5))
	require.LessOrEqual(t, tripsMany, int64(5))
	require.InDelta(t, statementsFew, statementsMany, 1, "but for the bell, which rings at most every 25 ms")

	plain := []store.Event{captured("evt_plain", "pi_plain", "ord_plain", 5000), refunded("evt_plain_r", "pi_plain", 1000)}
	apply(t, s, plain...)
	trips, _ := cost(plain)
	require.EqualValues(t, 2, trips, "duplicates")
}
