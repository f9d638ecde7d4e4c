package outbound_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// annals are what happened at the chronicle, and its API.
type annals struct {
	mu      sync.Mutex
	entries []entry
	objects []entry // that stand in the list by their payment only
	size    int
	calls   int
	before  func(call int, w http.ResponseWriter, r *http.Request) (answered bool)
}

func (a *annals) happened(list ...entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, list...)
}

func (a *annals) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls
}

func (a *annals) when(f func(call int, w http.ResponseWriter, r *http.Request) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.before = f
}

func (a *annals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.calls++
	call, before := a.calls, a.before
	a.mu.Unlock()
	if before != nil && before(call, w, r) {
		return
	}
	if r.Header.Get("Authorization") != "Bearer token" {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	until, _ := strconv.ParseInt(q.Get("until"), 10, 64)
	in := func(list []entry) (some []entry) {
		for _, e := range list {
			if e.At.Unix() >= from && e.At.Unix() < until {
				some = append(some, e)
			}
		}
		slices.SortStableFunc(some, func(x, y entry) int { return cmp.Or(y.At.Compare(x.At), cmp.Compare(x.ID, y.ID)) })
		return some
	}
	var p chroniclePage
	_ = json.Unmarshal(cutPage(in(a.entries), q.Get("page"), cmp.Or(a.size, 10)), &p)
	if q.Get("page") == "" {
		for _, e := range in(a.objects) {
			p.Objects = append(p.Objects, e.Payment)
		}
	}
	body, _ := json.Marshal(p)
	_, _ = w.Write(body)
}

// recon is a stage with a chronicle.
type recon struct {
	*stage
	annals *annals
	clock  hand
	client *outbound.Client
	*outbound.Reconciler
}

func newRecon(t *testing.T, opts outbound.ReconcileOptions) *recon {
	t.Helper()
	r := &recon{stage: newStage(t, outbound.FetchOptions{}), annals: &annals{}}
	r.source(gateway.Source{ID: "shop", Account: "acme", Gateway: "chronicle", AccessToken: "token"})
	h := newHost(t, r.annals.ServeHTTP)
	r.client = h.client(t, &r.clock, func(o *outbound.Options) { o.Burst = 1000 })
	r.Reconciler = r.reconciler(opts)
	return r
}

// reconciler is another one on the same database.
func (r *recon) reconciler(opts outbound.ReconcileOptions) *outbound.Reconciler {
	r.t.Helper()
	opts.Gateways = gateways
	opts.Logger = slog.New(slog.NewJSONHandler(&r.log, nil))
	if r.Reconciler == nil {
		opts.Registerer = r.metrics
	}
	if opts.Pause == nil {
		opts.Pause = func(ctx context.Context, d time.Duration) error {
			r.clock.move(d)
			return ctx.Err()
		}
	}
	one, err := outbound.NewReconciler(r.store, r.client, through{r.store}, r.configured, opts)
	require.NoError(r.t, err)
	return one
}

func (r *recon) configured() (all []gateway.Source) {
	r.sources.Range(func(_, v any) bool {
		all = append(all, v.(gateway.Source))
		return true
	})
	return all
}

// deliver brings an entry as its webhook would.
func (r *recon) deliver(list ...entry) {
	r.t.Helper()
	src, _ := r.find("shop")
	var rows []store.Event
	for _, e := range list {
		body, err := json.Marshal(e)
		require.NoError(r.t, err)
		events, err := chronicle.Events(src, gateway.Delivery{Body: body})
		require.NoError(r.t, err)
		rows = append(rows, store.Event{Event: events[0], Account: "acme", Source: "shop", Payload: body, MappingVersion: gateway.MappingVersion})
	}
	_, err := r.store.Apply(r.t.Context(), rows)
	require.NoError(r.t, err)
}

// reconcile runs over the shop since an hour ago.
func (r *recon) reconcile() store.ReconcileRun {
	r.t.Helper()
	run, err := r.Reconcile(r.t.Context(), "shop", outbound.ReconcileRequest{Since: time.Now().Add(-time.Hour)})
	require.NoError(r.t, err)
	return run
}

// old lets all that is recorded be older.
func (r *recon) old(by time.Duration) {
	r.t.Helper()
	r.later(by)
	for _, sql := range []string{
		`UPDATE processed_events SET received_at = received_at - $1::interval`,
		`UPDATE fetches SET told_at = told_at - $1::interval, settled_at = settled_at - $1::interval`,
		`UPDATE reconcile_asks SET announced_at = announced_at - $1::interval`,
		`UPDATE reconcile_orders SET next_at = next_at - $1::interval, asked_at = asked_at - $1::interval, found_at = found_at - $1::interval`,
		`UPDATE reconcile_cursors SET next_at = next_at - $1::interval, claimed_until = claimed_until - $1::interval,
			held_until = held_until - $1::interval, reached_at = reached_at - $1::interval, scanned_at = scanned_at - $1::interval`,
	} {
		_, err := r.pool.Exec(r.t.Context(), sql, by)
		require.NoError(r.t, err)
	}
}

type cursorRow struct {
	Reached, Held *time.Time
	Claimed       bool
	Failures      int
	Wait          time.Duration
	Error         string
}

func (r *recon) cursor() cursorRow {
	r.t.Helper()
	rows, _ := r.pool.Query(r.t.Context(), `
		SELECT reached_at, held_until, claimed_until IS NOT NULL, failures, next_at - clock_timestamp(), coalesce(last_error, '')
		FROM reconcile_cursors WHERE source_id = 'shop'`)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[cursorRow])
	require.NoError(r.t, err)
	return c
}

// orders is how every order stands, in what a merchant sees of it.
func (r *recon) orders() []string {
	return r.texts(`
		SELECT concat_ws(' ', external_ref, state, captured, refunded, kept, authorized, flags, want, told,
			(SELECT string_agg(t.effect, ',') FROM order_transitions t WHERE t.account_id = o.account_id AND t.order_id = o.id AND t.effect_state = 'open'))
		FROM orders o ORDER BY external_ref`)
}

// everything is a digest of every row of every table but River's leader and queues.
func (r *recon) everything() []string {
	var all []string
	for _, table := range r.texts(`
		SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname !~ '^river_(leader|queue|client)' ORDER BY 1`) {
		all = append(all, r.texts(fmt.Sprintf(`SELECT '%[1]s ' || count(*) || ' ' || coalesce(md5(string_agg(x::text, '|' ORDER BY x::text)), '') FROM %[1]s x`, table))...)
	}
	return all
}

func ago(d time.Duration) time.Time { return time.Now().Add(-d).UTC().Truncate(time.Millisecond) }
