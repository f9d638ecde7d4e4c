package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/egress"
	"github.com/paidonce/paidonce/store"
)

// Asker makes one call to a gateway's API; [*Client] is one. Its error is an [*Error].
type Asker interface {
	Do(ctx context.Context, g *gateway.Gateway, s gateway.Source, call gateway.Call) ([]byte, error)
}

// Ingester commits events, as webhooks' are: it returns one result per event after they were committed.
type Ingester interface {
	Ingest(ctx context.Context, events []store.Event) ([]store.Result, error)
}

// FetchStore is what a [Fetcher] needs of the store; *store.Store is one.
type FetchStore interface {
	ClaimFetch(ctx context.Context, account, source, object string, lease time.Duration) (*store.FetchClaim, error)
	PullFetch(ctx context.Context, account string, lease time.Duration) (*store.FetchClaim, error)
	SettleFetch(ctx context.Context, c store.FetchClaim, a store.FetchAnswer) (store.FetchSettled, error)
	RenewFetches(ctx context.Context, perAccount int, grace time.Duration) (map[string]int, error)
	FetchPiles(ctx context.Context) (map[string]store.FetchPile, error)
}

// FetchOptions are optional settings of a [Fetcher]. The zero value is ready to use; the durations belong together.
type FetchOptions struct {
	// Gateways finds a gateway by name. Default [gateway.Lookup].
	Gateways func(name string) (*gateway.Gateway, bool)

	// Workers is how many objects are asked about at once. Default 8.
	Workers int

	// Deadline is the time for one call. Default 16 s, a little more than a Client's own.
	Deadline time.Duration
	// Lease is how long an object is claimed for a call. After it the call is taken for lost and the object is asked
	// about again, so Deadline, IngestTimeout and SettleTimeout must fit in. Default 40 s.
	Lease time.Duration
	// IngestTimeout and SettleTimeout are the times for taking the answer in and for recording that. Default 9 s and 5 s.
	IngestTimeout, SettleTimeout time.Duration
	// JobTimeout is the time for one River job, which may ask about several objects one after another. Default 55 s.
	JobTimeout time.Duration

	// TickEvery is how often this process looks for objects whose job did not come; they must be late by TickGrace. At
	// most TickLimit of one account at a time. Default 5 s, 5 s and 64.
	TickEvery, TickGrace time.Duration
	TickLimit            int

	// QuietAfter is how long after its last call an account still counts as active, which keeps the others to a quarter
	// of the workers. Default 1 s.
	QuietAfter time.Duration

	// Retry, Gone and Denied are how long to wait after the first, second … call that failed in a row; after the last
	// the object is given up, until it is announced again. Gone is also for what the gateway refuses or answers
	// unreadably. Default [DefaultRetry], [DefaultGone], [DefaultDenied].
	Retry, Gone, Denied []time.Duration

	// Elapsed is a clock that only runs forward, from any start. Default: the process's monotonic clock.
	Elapsed func() time.Duration

	Logger     *slog.Logger          // one line per call. Default: discard
	Registerer prometheus.Registerer // default: none
}

// DefaultRetry is for gateways that are down, slow or busy: for about three days.
func DefaultRetry() []time.Duration {
	return hourly(70, 5*time.Second, 15*time.Second, 30*time.Second, time.Minute, 2*time.Minute, 5*time.Minute,
		10*time.Minute, 20*time.Minute, 30*time.Minute)
}

// DefaultGone is for objects that the gateway does not know: an hour, in which its API may catch up with its webhooks.
func DefaultGone() []time.Duration {
	return []time.Duration{5 * time.Second, 30 * time.Second, 4 * time.Minute, 15 * time.Minute, 40 * time.Minute}
}

// DefaultDenied is for credentials that are not accepted: for about a week, so that nothing is lost while a person
// sees to it.
func DefaultDenied() []time.Duration {
	return hourly(166, time.Minute, 5*time.Minute, 15*time.Minute, 30*time.Minute)
}

// hourly adds so many hours of one.
func hourly(n int, waits ...time.Duration) []time.Duration {
	for range n {
		waits = append(waits, time.Hour)
	}
	return waits
}

func (o FetchOptions) withDefaults() FetchOptions {
	if o.Gateways == nil {
		o.Gateways = gateway.Lookup
	}
	setDefault(&o.Workers, 8)
	setDefault(&o.Deadline, 16*time.Second)
	setDefault(&o.Lease, 40*time.Second)
	setDefault(&o.IngestTimeout, 9*time.Second)
	setDefault(&o.SettleTimeout, 5*time.Second)
	setDefault(&o.JobTimeout, 55*time.Second)
	setDefault(&o.TickEvery, 5*time.Second)
	setDefault(&o.TickGrace, 5*time.Second)
	setDefault(&o.TickLimit, 64)
	setDefault(&o.QuietAfter, time.Second)
	if o.Retry == nil {
		o.Retry = DefaultRetry()
	}
	if o.Gone == nil {
		o.Gone = DefaultGone()
	}
	if o.Denied == nil {
		o.Denied = DefaultDenied()
	}
	if o.Elapsed == nil {
		start := time.Now()                                           //nolint:forbidigo // the edge where the real clock enters
		o.Elapsed = func() time.Duration { return time.Since(start) } //nolint:forbidigo // the same
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

func (o FetchOptions) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Deadline": o.Deadline, "Lease": o.Lease, "IngestTimeout": o.IngestTimeout, "SettleTimeout": o.SettleTimeout,
		"JobTimeout": o.JobTimeout, "TickEvery": o.TickEvery, "TickGrace": o.TickGrace, "QuietAfter": o.QuietAfter,
		"Workers": time.Duration(o.Workers), "TickLimit": time.Duration(o.TickLimit),
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; it must be 0 (default) or more", name))
		}
	}
	if need := o.Deadline + o.IngestTimeout + o.SettleTimeout; need >= o.Lease {
		errs = append(errs, fmt.Errorf("a Lease of %s must be above %s, or a claim could end during its call", o.Lease, need))
	}
	if o.JobTimeout <= o.Lease {
		errs = append(errs, fmt.Errorf("a JobTimeout of %s must be above the Lease, %s", o.JobTimeout, o.Lease))
	}
	return errors.Join(errs...)
}

// Fetcher asks gateways about what was announced, and ingests what they answer. Any number of processes may run one on
// one database: an object is asked about by one of them at a time, and kill -9 of any of them is healed by the others
// within the lease and two ticks.
//
// No transaction and no lock is held during a call. What a gateway answers becomes events only if it says something
// else than what was taken in last; then it goes the way of every webhook, and only after that commit is the object
// settled. So an answer may be taken in twice, which is harmless, and none is lost.
type Fetcher struct {
	store   FetchStore
	asker   Asker
	ingest  Ingester
	source  func(id string) (gateway.Source, bool)
	opts    FetchOptions
	rounds  rounds[store.FetchClaim]
	metrics *fetchMetrics
	alarms  alarms
}

// NewFetcher returns a Fetcher. source finds a configured source by its id and is asked for every call. A Fetcher works
// as part of a River client that [Fetcher.Register] and [Fetcher.Queues] tell about it, while Run runs.
func NewFetcher(st FetchStore, a Asker, ing Ingester, source func(id string) (gateway.Source, bool), opts FetchOptions) (*Fetcher, error) {
	if st == nil || a == nil || ing == nil || source == nil {
		return nil, errors.New("outbound: nil FetchStore, Asker, Ingester or source")
	}
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("outbound: FetchOptions: %w", err)
	}
	f := &Fetcher{
		store: st, asker: a, ingest: ing, source: source, opts: opts,
		metrics: newFetchMetrics(), alarms: alarms{elapsed: opts.Elapsed, last: map[string]time.Duration{}},
	}
	f.rounds = rounds[store.FetchClaim]{
		share: egress.NewShare(opts.Workers, opts.QuietAfter, opts.Elapsed), elapsed: opts.Elapsed,
		lease: opts.Lease, jobTimeout: opts.JobTimeout, tickEvery: opts.TickEvery, denied: f.metrics.denied,
		pull: st.PullFetch, follow: f.follow,
	}
	if opts.Registerer != nil {
		if err := f.metrics.register(opts.Registerer); err != nil {
			return nil, fmt.Errorf("outbound: %w", err)
		}
	}
	return f, nil
}

// Register adds the worker to a River client's workers.
func (f *Fetcher) Register(ws *river.Workers) error {
	return river.AddWorkerSafely(ws, &fetchWorker{fetcher: f})
}

// Queues is the queue that the River client works for the Fetcher.
func (f *Fetcher) Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{store.FetchQueue: {MaxWorkers: f.opts.Workers}}
}

// fetchWorker is the River worker of fetch jobs.
type fetchWorker struct {
	river.WorkerDefaults[store.FetchArgs]
	fetcher *Fetcher
}

// Timeout implements river.Worker.
func (w *fetchWorker) Timeout(*river.Job[store.FetchArgs]) time.Duration {
	return w.fetcher.opts.JobTimeout
}

// Work implements river.Worker.
func (w *fetchWorker) Work(ctx context.Context, job *river.Job[store.FetchArgs]) error {
	f, args := w.fetcher, job.Args
	return f.rounds.work(ctx, args.Account, func() (*store.FetchClaim, error) {
		return f.store.ClaimFetch(ctx, args.Account, args.Source, args.Object, f.opts.Lease)
	})
}

// Run asks for the jobs that did not come, until ctx ends; no further object is begun then.
func (f *Fetcher) Run(ctx context.Context) error {
	return f.rounds.run(ctx, f.opts.Logger, "fetches", f.Tick)
}

// Tick does once what Run does again and again.
func (f *Fetcher) Tick(ctx context.Context) error {
	renewed, err := f.store.RenewFetches(ctx, f.opts.TickLimit, f.opts.TickGrace)
	if err != nil {
		return err
	}
	f.rounds.renewed(renewed, f.opts.TickLimit, f.metrics.renewed)
	piles, err := f.store.FetchPiles(ctx)
	if err != nil {
		return err
	}
	f.metrics.show(piles)
	return nil
}
