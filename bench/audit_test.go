package bench_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// BenchmarkAudit audits databases of several sizes and reports events a second, and the most memory that was in use (live heap, at 200
// moments): it should not depend on the size. PAIDONCE_BENCH_EVENTS is the largest; the default is 200,000.
func BenchmarkAudit(b *testing.B) {
	most := 200_000
	if text := os.Getenv("PAIDONCE_BENCH_EVENTS"); text != "" {
		_, err := fmt.Sscan(text, &most)
		require.NoError(b, err)
	}
	pg, err := localpg.Start(b.Context(), localpg.Options{Dir: localpg.DefaultDir("bench of audits", os.Getenv), Log: os.Stderr})
	require.NoError(b, err)
	defer func() { require.NoError(b, pg.Stop()) }()
	for _, events := range []int{most / 20, most} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			st := auditedStore(b, pg, events)
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			before, peak := stats.HeapAlloc, uint64(0)
			for b.Loop() {
				next := 0
				began := time.Now()
				sum, err := audit.Run(b.Context(), st, audit.Options{Progress: func(done, total int) {
					if done < next {
						return
					}
					next = done + total/200
					runtime.GC()
					runtime.ReadMemStats(&stats)
					peak = max(peak, stats.HeapAlloc-min(before, stats.HeapAlloc))
				}})
				require.NoError(b, err)
				require.Zero(b, sum.Differences)
				require.Equal(b, events, sum.Events)
				b.ReportMetric(float64(sum.Events)/time.Since(began).Seconds(), "events/s")
			}
			b.ReportMetric(float64(peak)/(1<<20), "heap_MiB")
		})
	}
}

// auditedStore is a store on a new database with so many events: of each order its registration, an authorization, two captures that
// say the same, and a refund.
func auditedStore(b *testing.B, pg *localpg.Server, events int) *store.Store {
	b.Helper()
	ctx := b.Context()
	db := fmt.Sprintf("bench_audit_%d", events)
	admin, err := pgx.Connect(ctx, pg.URL("postgres"))
	require.NoError(b, err)
	_, err = admin.Exec(ctx, `DROP DATABASE IF EXISTS `+db+` WITH (FORCE)`)
	require.NoError(b, err)
	_, err = admin.Exec(ctx, `CREATE DATABASE `+db)
	require.NoError(b, err)
	require.NoError(b, admin.Close(ctx))
	require.NoError(b, migrations.Up(ctx, pg.URL(db), nil))
	pool, err := pgxpool.New(ctx, pg.URL(db))
	require.NoError(b, err)
	b.Cleanup(pool.Close)
	st, err := store.New(pool, store.Options{})
	require.NoError(b, err)
	const perOrder, batch = 5, 100
	for first := 0; first < events/perOrder; first += batch {
		var some []store.Event
		for n := first; n < min(first+batch, events/perOrder); n++ {
			some = append(some, storyOf(n)...)
		}
		_, err := st.Apply(context.WithoutCancel(ctx), some)
		require.NoError(b, err)
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	require.NoError(b, err)
	return st
}

// storyOf is what happens to the n-th order.
func storyOf(n int) []store.Event {
	r, p := ref(int64(n)), fmt.Sprintf("pi_%08d", n)
	at := time.Unix(1_789_000_000+int64(n), 0)
	event := func(id string, facts ...order.Fact) store.Event {
		return store.Event{Account: "shop", Source: "stripe", Event: order.Event{
			ID: id + p, Type: id, At: at, Realm: "stripe:live", Payment: []string{p, "ch" + p}, Reference: r, Strength: order.StrengthPayment, Facts: facts,
		}}
	}
	captured := order.Fact{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}
	return []store.Event{
		{Account: "shop", Source: store.APISource, Event: order.Event{
			ID: store.RegisterID(r), Type: "order.registered", At: at, Reference: r, Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
		}},
		event("authorized", order.Fact{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}),
		event("captured", captured), event("succeeded", captured),
		event("refunded", order.Fact{Kind: order.KindRefunded, Ref: "re" + p, Status: order.StatusOK, Amount: 1000, Currency: "EUR"}),
	}
}
