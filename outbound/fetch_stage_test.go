package outbound_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// pinger is a gateway of the tests that signs nothing. Its API answers {"id", "captured", "refunded", "order"}: snapshots
// without a version, so that the time of the call orders them.
var pinger = &gateway.Gateway{
	Name: "pinger", Title: "Pinger", Evidence: gateway.Unsigned, Covers: gateway.Coverage{Of: "nothing"},
	Fetch: &gateway.Fetch{
		Live: "https://api.pinger.test", Always: true,
		Call: func(s gateway.Source, o gateway.Object) (gateway.Call, error) {
			if s.AccessToken == "" {
				return gateway.Call{}, errors.New("the source has no access_token")
			}
			return gateway.Call{Path: "/" + o.String()}, nil
		},
		Parse: parseState,
	},
}

type state struct {
	ID       string `json:"id"`
	Captured int64  `json:"captured"`
	Refunded int64  `json:"refunded"`
	Order    string `json:"order"`
}

func parseState(_ gateway.Source, o gateway.Object, a gateway.Answer) ([]order.Event, error) {
	var s state
	if json.Unmarshal(a.Body, &s) != nil || s.ID != o.ID {
		return nil, &gateway.ParseError{Code: "shape", Detail: "the answer is not about the payment"}
	}
	seq := a.Started.UnixMicro()
	return []order.Event{{
		Type: "payment", At: a.Started, Payment: []string{s.ID}, Reference: s.Order, Strength: order.StrengthPayment,
		Facts: []order.Fact{
			{Kind: order.KindCaptured, Amount: s.Captured, Currency: "EUR", Seq: seq},
			{Kind: order.KindRefunded, Amount: s.Refunded, Currency: "EUR", Seq: seq},
		},
	}}, nil
}

// signer is pinger with signed pings.
var signer = func() *gateway.Gateway {
	g := *pinger
	g.Name, g.Scheme = "signer", "stripe"
	return &g
}()

// twins are two forms of one gateway, which tell of the same payments.
var twins = func() []*gateway.Gateway {
	a, b := *pinger, *pinger
	a.Name, a.Space, b.Name, b.Space = "twin-a", "twin", "twin-b", "twin"
	return []*gateway.Gateway{&a, &b}
}()

func gateways(name string) (*gateway.Gateway, bool) {
	for _, g := range append([]*gateway.Gateway{pinger, signer, chronicle, deaf}, twins...) {
		if g.Name == name {
			return g, true
		}
	}
	return nil, false
}

// api is the gateway of the tests: it answers, by path, what it was told to.
type api struct {
	mu    sync.Mutex
	calls []string
	says  map[string]func(context.Context) ([]byte, error)
}

func (a *api) Do(ctx context.Context, _ *gateway.Gateway, s gateway.Source, c gateway.Call) ([]byte, error) {
	a.mu.Lock()
	a.calls = append(a.calls, s.ID+c.Path)
	say := a.says[c.Path]
	a.mu.Unlock()
	if say == nil {
		return nil, failure(outbound.Gone, 404, 0)
	}
	return say(ctx)
}

func failure(k outbound.Kind, status int, after time.Duration) error {
	return &outbound.Error{Kind: k, Status: status, After: after}
}

func (a *api) when(path string, say func(context.Context) ([]byte, error)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.says == nil {
		a.says = map[string]func(context.Context) ([]byte, error){}
	}
	a.says[path] = say
}

func (a *api) is(s state) {
	body, _ := json.Marshal(s)
	a.when("/payment/"+s.ID, func(context.Context) ([]byte, error) { return body, nil })
}

func (a *api) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.calls)
}

// through is the Ingester: the store's one write path.
type through struct{ *store.Store }

func (t through) Ingest(ctx context.Context, events []store.Event) ([]store.Result, error) {
	return t.Apply(ctx, events)
}

type logbook struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// stage is a database with sources, a gateway and a Fetcher.
type stage struct {
	t       *testing.T
	pool    *pgxpool.Pool
	store   *store.Store
	api     *api
	sources sync.Map // by id
	log     logbook
	metrics *prometheus.Registry
	*outbound.Fetcher
}

func newStage(t *testing.T, opts outbound.FetchOptions) *stage {
	t.Helper()
	s := &stage{t: t, pool: storetest.Open(t), api: &api{}, metrics: prometheus.NewRegistry()}
	var err error
	s.store, err = store.New(s.pool, store.Options{MaxOpenFetches: 30})
	require.NoError(t, err)
	s.source(gateway.Source{ID: "ping", Account: "acme", Gateway: "pinger", AccessToken: "token"})
	s.source(gateway.Source{ID: "signed", Account: "acme", Gateway: "signer", AccessToken: "token"})
	s.source(gateway.Source{ID: "beta", Account: "beta", Gateway: "pinger", AccessToken: "token"})
	s.Fetcher = s.fetcher(opts)
	return s
}

// fetcher is another one on the same database.
func (s *stage) fetcher(opts outbound.FetchOptions) *outbound.Fetcher {
	s.t.Helper()
	opts.Gateways = gateways
	opts.Logger = slog.New(slog.NewJSONHandler(&s.log, nil))
	if s.Fetcher == nil {
		opts.Registerer = s.metrics
	}
	f, err := outbound.NewFetcher(s.store, s.api, through{s.store}, s.find, opts)
	require.NoError(s.t, err)
	return f
}

func (s *stage) source(src gateway.Source) {
	src.Mode = gateway.Live
	s.sources.Store(src.ID, src)
}

func (s *stage) find(id string) (gateway.Source, bool) {
	v, ok := s.sources.Load(id)
	if !ok {
		return gateway.Source{}, false
	}
	return v.(gateway.Source), true
}

func (s *stage) register(ref string, minor int64) {
	s.t.Helper()
	_, err := s.store.Apply(s.t.Context(), []store.Event{{Account: "acme", Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", Reference: ref, Command: &order.Command{Register: &order.Amount{Minor: minor, Currency: "EUR"}},
	}}})
	require.NoError(s.t, err)
}

func (s *stage) announce(source string, ids ...string) store.Announced {
	s.t.Helper()
	src, _ := s.find(source)
	var list []store.Announcement
	for _, id := range ids {
		list = append(list, store.Announcement{Account: src.Account, Source: source, Gateway: src.Gateway, Object: "payment/" + id})
	}
	a, err := s.store.Announce(s.t.Context(), list)
	require.NoError(s.t, err)
	return a
}

// ask runs the job of an object as River would, and says how its row stands.
func (s *stage) ask(source, id string) row {
	s.t.Helper()
	src, _ := s.find(source)
	require.NoError(s.t, outbound.Work(s.t.Context(), s.Fetcher, store.FetchArgs{Account: src.Account, Source: source, Object: "payment/" + id}))
	return s.row(source, id)
}

type row struct {
	State    string
	Attempts int
	Wait     time.Duration // until it is asked about again
	Error    string
}

func (s *stage) row(source, id string) row {
	s.t.Helper()
	rows, _ := s.pool.Query(s.t.Context(), `
		SELECT state, attempts, coalesce(next_at - clock_timestamp(), '0'), coalesce(last_error, '')
		FROM fetches WHERE source_id = $1 AND object = 'payment/' || $2`, source, id)
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[row])
	require.NoError(s.t, err)
	return r
}

// later lets time pass: all times of the rows move into the past.
func (s *stage) later(by time.Duration) {
	s.t.Helper()
	_, err := s.pool.Exec(s.t.Context(), `UPDATE fetches SET next_at = next_at - $1::interval, claimed_until = claimed_until - $1::interval,
		announced_at = announced_at - $1::interval, asked_at = asked_at - $1::interval`, by)
	require.NoError(s.t, err)
}

func (s *stage) texts(sql string) []string {
	s.t.Helper()
	rows, _ := s.pool.Query(s.t.Context(), sql)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(s.t, err)
	return all
}

// events are those that gateways' answers became, as they were entered.
func (s *stage) events() []string {
	return s.texts(`SELECT type || ' ' || outcome FROM processed_events WHERE source_id <> 'api' ORDER BY received_at, event_id`)
}

func (s *stage) states() []string {
	return s.texts(`SELECT external_ref || ' ' || state FROM orders ORDER BY 1`)
}

// works is what River works for: a Fetcher, a Mover.
type works interface {
	Register(*river.Workers) error
	Queues() map[string]river.QueueConfig
	Run(context.Context) error
}

// run works jobs until the test ends or the returned function is called.
func (s *stage) run(f works) (stop func()) {
	s.t.Helper()
	ws := river.NewWorkers()
	require.NoError(s.t, f.Register(ws))
	c, err := river.NewClient(riverpgxv5.New(s.pool), &river.Config{
		Queues: f.Queues(), Workers: ws, FetchPollInterval: 100 * time.Millisecond, FetchCooldown: 50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler), SoftStopTimeout: 5 * time.Second, JobTimeout: time.Minute,
	})
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(s.t, c.Start(ctx))
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		<-c.Stopped()
		require.NoError(s.t, <-done)
	})
	s.t.Cleanup(stop)
	return stop
}

// until waits for a condition of the database.
func (s *stage) until(what string, holds func() bool) {
	s.t.Helper()
	require.Eventually(s.t, holds, 30*time.Second, 20*time.Millisecond, what)
}

// metric is the value of a counter, summed over the series with that label.
func metric(t *testing.T, r *prometheus.Registry, name, label, value string) (n int) {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == label && l.GetValue() == value {
					n += int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
				}
			}
		}
	}
	return n
}
