// Package upkeep keeps the tables in shape: partitions for payloads that are yet to come, retention for those that are
// old, for what gateways were asked about and for what that brought, and a report of what waits too long. It runs as one periodic River job; any number of processes may have it, the
// leader runs it.
package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/store"
)

// Store is what upkeep needs of the store.
type Store interface {
	EnsurePartitions(ctx context.Context) (made int, err error)
	DropPartitions(ctx context.Context, keep time.Duration) (dropped []string, err error)
	DropFetches(ctx context.Context, keep time.Duration) (dropped int64, err error)
	DropReconcileRuns(ctx context.Context, keep time.Duration) (dropped int64, err error)
	Health(ctx context.Context, stubAge time.Duration) (store.Health, error)
}

// Options are optional settings of upkeep.
type Options struct {
	// KeepPayloads is how long raw bodies are kept, at least a day. Default 90 days. Those of events that wait, are
	// flagged, quarantined or ignored stay until that is resolved.
	KeepPayloads time.Duration

	// KeepFetches is how long it is remembered what was said last of an object that a gateway was asked about, at least
	// a day. An object that is announced after that is taken in anew, which changes nothing. Default 400 days.
	KeepFetches time.Duration

	// KeepReconciliations is how long the reports of reconciliations are kept that found something, at least a day. Default 90 days.
	KeepReconciliations time.Duration

	// StubAge is after how long an order that nobody registered is reported. Default 1 h.
	StubAge time.Duration

	// Every is how often it runs. Default 10 min.
	Every time.Duration

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: none
}

// Upkeep is the job. Its zero value is not usable; see [New].
type Upkeep struct {
	store Store
	opts  Options

	stubs, stuck, review *prometheus.GaugeVec
}

// New returns the upkeep of st.
func New(st Store, opts Options) (*Upkeep, error) {
	if st == nil {
		return nil, errors.New("upkeep: nil store")
	}
	if opts.KeepPayloads == 0 {
		opts.KeepPayloads = 90 * 24 * time.Hour
	}
	if opts.KeepPayloads < 24*time.Hour {
		return nil, fmt.Errorf("upkeep: Options.KeepPayloads is %s; it must be 24h or more", opts.KeepPayloads)
	}
	if opts.KeepFetches == 0 {
		opts.KeepFetches = 400 * 24 * time.Hour
	}
	if opts.KeepFetches < 24*time.Hour {
		return nil, fmt.Errorf("upkeep: Options.KeepFetches is %s; it must be 24h or more", opts.KeepFetches)
	}
	if opts.KeepReconciliations == 0 {
		opts.KeepReconciliations = 90 * 24 * time.Hour
	}
	if opts.KeepReconciliations < 24*time.Hour {
		return nil, fmt.Errorf("upkeep: Options.KeepReconciliations is %s; it must be 24h or more", opts.KeepReconciliations)
	}
	if opts.StubAge == 0 {
		opts.StubAge = time.Hour
	}
	if opts.Every == 0 {
		opts.Every = 10 * time.Minute
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	u := &Upkeep{store: st, opts: opts}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	u.stubs = gauge("paidonce_stubs_overdue", "Orders with a payment that nobody has registered for longer than the stub age, by account.", "account")
	u.review = gauge("paidonce_events_to_review", "Events that somebody should look at, by account and outcome.", "account", "outcome")
	u.stuck = gauge("paidonce_jobs_stuck", "River jobs that have been running for more than ten minutes, by kind.", "kind")
	if opts.Registerer != nil {
		for _, c := range []prometheus.Collector{u.stubs, u.review, u.stuck} {
			if err := opts.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("upkeep: %w", err)
			}
		}
	}
	return u, nil
}

// Run does all of it once. It goes on after a part has failed and returns the errors of all parts.
func (u *Upkeep) Run(ctx context.Context) error {
	made, err1 := u.store.EnsurePartitions(ctx)
	dropped, err2 := u.store.DropPartitions(ctx, u.opts.KeepPayloads)
	fetches, err3 := u.store.DropFetches(ctx, u.opts.KeepFetches)
	runs, err5 := u.store.DropReconcileRuns(ctx, u.opts.KeepReconciliations)
	h, err4 := u.store.Health(ctx, u.opts.StubAge)
	if err4 == nil {
		u.report(h)
	}
	u.opts.Logger.InfoContext(ctx, "upkeep done", "partitions_made", made, "partitions_dropped", strings.Join(dropped, " "),
		"fetches_dropped", fetches, "reconciliations_dropped", runs, "stubs_overdue", h.Stubs(), "jobs_stuck", h.Stuck())
	return errors.Join(err1, err2, err3, err4, err5)
}

func (u *Upkeep) report(h store.Health) {
	u.stubs.Reset()
	for account, n := range h.StubsByAccount {
		u.stubs.WithLabelValues(account).Set(float64(n))
	}
	u.review.Reset()
	for k, n := range h.Review {
		u.review.WithLabelValues(k.Account, string(k.Outcome)).Set(float64(n))
	}
	u.stuck.Reset()
	for kind, n := range h.StuckByKind {
		u.stuck.WithLabelValues(kind).Set(float64(n))
	}
}

// Args is the River job of upkeep.
type Args struct{}

// Kind implements river.JobArgs.
func (Args) Kind() string { return "upkeep" }

// Worker runs upkeep as a River job. A run may take long where a partition is large; nothing waits for it.
type Worker struct {
	river.WorkerDefaults[Args]
	Upkeep *Upkeep
}

// Timeout implements river.Worker.
func (w *Worker) Timeout(*river.Job[Args]) time.Duration { return 10 * time.Minute }

// Work implements river.Worker.
func (w *Worker) Work(ctx context.Context, _ *river.Job[Args]) error { return w.Upkeep.Run(ctx) }

// Periodic is the schedule of the job: at once on a new leader, then every [Options.Every]. A run that fails is not
// tried again, since the next one comes soon.
func (u *Upkeep) Periodic() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(u.opts.Every), func() (river.JobArgs, *river.InsertOpts) {
		return Args{}, &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: u.opts.Every}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// Register adds the worker to a River client's workers.
func (u *Upkeep) Register(ws *river.Workers) error {
	return river.AddWorkerSafely(ws, &Worker{Upkeep: u})
}
