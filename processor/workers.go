package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/paidonce/paidonce/internal/egress"
	"github.com/paidonce/paidonce/store"
)

// EffectStore is what Workers need of the store; *store.Store is one.
type EffectStore interface {
	Pool() *pgxpool.Pool
	Look(ctx context.Context, account string, order uuid.UUID, lease time.Duration) (store.Looked, error)
	Pull(ctx context.Context, account string, lease time.Duration) (l store.Looked, found bool, err error)
	Settle(ctx context.Context, c store.Claim, a store.Answer, lease time.Duration) (store.Settled, error)
	RenewClaims(ctx context.Context, limit int) (int, error)
	LapsedAccounts(ctx context.Context, grace time.Duration) ([]store.Due, error)
	Renew(ctx context.Context, most map[string]int, grace time.Duration) (map[string]int, error)
	DeadCount(ctx context.Context) (int, error)
}

// Workers bring about what orders owe their merchants. Any number of processes may run them on one database: an effect
// is called by one of them at a time, and kill -9 of any of them is healed by the others within the lease and two ticks
// of the clock.
//
// No transaction and no lock is held during a call. An order's effects are called one after another, orders in
// parallel. An account uses no more than its share of the workers, and an endpoint that only times out is left alone,
// so that one merchant does not slow another. An account for which the [Fulfiller] has no endpoint yet (see
// [Endpointer]) is not called: its effects stay open and untried, are reported in the log and in
// paidonce_accounts_without_callback, and are called once there is one.
type Workers struct {
	store    EffectStore
	fulfill  Fulfiller
	endpoint func(account string) (string, bool)
	opts     WorkerOptions
	schedule schedule
	share    *egress.Share
	circuits *egress.Circuits
	metrics  *workerMetrics
	stopping atomic.Bool
	running  atomic.Bool
}

// NewWorkers returns Workers that take effects from st and bring them about with f. They do nothing before Run.
func NewWorkers(st EffectStore, f Fulfiller, opts WorkerOptions) (*Workers, error) {
	if st == nil || f == nil {
		return nil, errors.New("processor: nil store or Fulfiller")
	}
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("processor: WorkerOptions: %w", err)
	}
	w := &Workers{
		store: st, fulfill: f, opts: opts,
		schedule: schedule{waits: opts.Schedule, refusedFor: opts.RefusedFor},
		share:    egress.NewShare(opts.Workers, opts.QuietAfter, opts.Elapsed),
		circuits: egress.NewCircuits(opts.CircuitAfter, opts.CircuitOpen, opts.Elapsed),
		endpoint: func(account string) (string, bool) { return account, true },
	}
	if e, ok := f.(Endpointer); ok {
		w.endpoint = e.Endpoint
	}
	w.metrics = newWorkerMetrics(w.circuits.Open)
	if opts.Registerer != nil {
		if err := w.metrics.register(opts.Registerer); err != nil {
			return nil, fmt.Errorf("processor: %w", err)
		}
	}
	return w, nil
}

// drainWorker is the River worker of drain jobs.
type drainWorker struct {
	river.WorkerDefaults[store.DrainArgs]
	workers *Workers
}

// Work implements river.Worker.
func (d *drainWorker) Work(ctx context.Context, job *river.Job[store.DrainArgs]) error {
	return d.workers.drain(ctx, job.Args.Account, job.Args.Order)
}

// Run works until ctx ends, then lets the calls that are out come back, for [WorkerOptions.SoftStop] at most, and
// records what came of them. It fails if the database cannot be reached at the start. Only one Run may be under way.
func (w *Workers) Run(ctx context.Context) error {
	if !w.running.CompareAndSwap(false, true) {
		return errors.New("processor: these Workers run already")
	}
	defer w.running.Store(false)
	client, err := w.client()
	if err != nil {
		return fmt.Errorf("processor: %w", err)
	}
	w.stopping.Store(false)
	defer context.AfterFunc(ctx, func() { w.stopping.Store(true) })()
	if err := client.Start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // told to stop before it had begun
		}
		return fmt.Errorf("processor: start the queue's workers: %w", err)
	}
	w.tickLoop(ctx)
	<-client.Stopped()
	return nil
}

func (w *Workers) client() (*river.Client[pgx.Tx], error) {
	o := w.opts
	jobs := river.NewWorkers()
	if err := river.AddWorkerSafely(jobs, &drainWorker{workers: w}); err != nil {
		return nil, err
	}
	if o.AddWorkers != nil {
		if err := o.AddWorkers(jobs); err != nil {
			return nil, fmt.Errorf("add workers: %w", err)
		}
	}
	queues := map[string]river.QueueConfig{store.Queue: {MaxWorkers: o.Workers}}
	for name, q := range o.Queues {
		if name == store.Queue {
			return nil, fmt.Errorf("the queue %s is the effects' own", name)
		}
		queues[name] = q
	}
	return river.NewClient(riverpgxv5.New(w.store.Pool()), &river.Config{
		Queues: queues, Workers: jobs, PeriodicJobs: o.PeriodicJobs,
		JobTimeout: o.JobTimeout, RescueStuckJobsAfter: o.RescueAfter, SoftStopTimeout: o.SoftStop,
		FetchPollInterval: o.FetchPollInterval, FetchCooldown: o.FetchCooldown, PollOnly: o.PollOnly,
		CompletedJobRetentionPeriod: o.CompletedRetention, ReindexerSchedule: o.ReindexerSchedule,
		Logger: slog.New(warnings{o.Logger.Handler()}),
	})
}

// tickLoop renews lapsed promises until ctx ends. The first tick comes at a random time, so that processes that start
// together do not tick together.
func (w *Workers) tickLoop(ctx context.Context) {
	timer := time.NewTimer(rand.N(w.opts.TickEvery))
	defer timer.Stop()
	t := ticker{w: w, silent: map[string]bool{}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if err := t.tick(ctx); err != nil && ctx.Err() == nil {
				w.opts.Logger.WarnContext(ctx, "lapsed promises not renewed", "err", err)
			}
			timer.Reset(w.opts.TickEvery)
		}
	}
}

// warnings passes on what River warns of; what it does otherwise is told by our own lines and metrics.
type warnings struct{ slog.Handler }

func (w warnings) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && w.Handler.Enabled(ctx, l)
}

func (w warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{w.Handler.WithAttrs(attrs)}
}
func (w warnings) WithGroup(name string) slog.Handler { return warnings{w.Handler.WithGroup(name)} }
