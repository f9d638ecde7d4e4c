package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/egress"
	"github.com/paidonce/paidonce/store"
)

// Caller makes one call to a gateway's API and returns what it was answered, whatever the status; [*Client] is one. Its error is
// an [*Error].
type Caller interface {
	Call(ctx context.Context, g *gateway.Gateway, s gateway.Source, base string, call gateway.Call) (gateway.Reply, error)
}

// MoveStore is what a [Mover] needs of the store; *store.Store is one.
type MoveStore interface {
	ClaimMove(ctx context.Context, account string, id uuid.UUID, lease time.Duration) (*store.MoveClaim, error)
	PullMove(ctx context.Context, account string, lease time.Duration) (*store.MoveClaim, error)
	SettleMove(ctx context.Context, c store.MoveClaim, a store.MoveAnswer) (store.MoveSettled, error)
	RenewMoves(ctx context.Context, perAccount int, grace time.Duration) (map[string]int, error)
	MovePiles(ctx context.Context) (map[string]map[store.TransactionStatus]store.MovePile, error)
	HearOfMoves(ctx context.Context) (int, error)
	Announce(ctx context.Context, list []store.Announcement) (store.Announced, error)
}

// MoveOptions are optional settings of a [Mover]. The zero value is ready to use; the durations belong together.
type MoveOptions struct {
	// Gateways finds a gateway by name. Default [gateway.Lookup].
	Gateways func(name string) (*gateway.Gateway, bool)

	// Workers is how many transactions are worked on at once. Default 8.
	Workers int

	// Deadline is the time for one call. Default 30 s: a gateway that asks a bank may take long.
	Deadline time.Duration
	// Lease is how long a transaction is claimed for a call. After it the call is taken for lost and made again, so Deadline and
	// SettleTimeout must fit in. Default 60 s.
	Lease time.Duration
	// SettleTimeout is the time for recording what was answered. Default 9 s.
	SettleTimeout time.Duration
	// JobTimeout is the time for one River job, which may see to several transactions one after another. Default 75 s.
	JobTimeout time.Duration

	// TickEvery is how often this process looks for transactions whose job did not come; they must be late by TickGrace. At most
	// TickLimit of one account at a time. Default 5 s, 5 s and 64.
	TickEvery, TickGrace time.Duration
	TickLimit            int

	// QuietAfter is how long after its last call an account still counts as active, which keeps the others to a quarter of the
	// workers. Default 1 s.
	QuietAfter time.Duration

	// Retry is how long to wait after the first, second … call that was not answered, or answered that it is too early; the last
	// counts for all later ones. Denied is the same for credentials that are not accepted, and Lookup for looking up what became of a
	// call. Default [DefaultMoveRetry], [DefaultDenied], [DefaultLookup]. A transaction is looked up as often as Lookup is long; then
	// it waits for a webhook, or a person.
	Retry, Denied, Lookup []time.Duration

	// Margin is how long before the end of a key's life at the gateway ([gateway.Calls].KeyLife) a call is not repeated any more.
	// Default 1 h, and at most a quarter of that life.
	Margin time.Duration

	// Settled is how long after it was first sent a call that was repeated is surely not under way any more at the gateway: that it
	// has done nothing is believed only then. Default 15 min.
	Settled time.Duration

	// Epochs is how often it is tried anew, under another key, once it was proven that nothing was done. Default 3.
	Epochs int

	// Elapsed is a clock that only runs forward, from any start. Default: the process's monotonic clock.
	Elapsed func() time.Duration

	Logger     *slog.Logger          // one line per call. Default: discard
	Registerer prometheus.Registerer // default: none
}

// DefaultMoveRetry is quick at first, for a network that hiccups, and then every quarter of an hour.
func DefaultMoveRetry() []time.Duration {
	return []time.Duration{
		2 * time.Second, 5 * time.Second, 15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	}
}

// DefaultLookup is for about three days.
func DefaultLookup() []time.Duration {
	return hourly(70, 2*time.Second, 10*time.Second, 30*time.Second, 2*time.Minute, 5*time.Minute, 15*time.Minute, 30*time.Minute)
}

func (o MoveOptions) withDefaults() MoveOptions {
	if o.Gateways == nil {
		o.Gateways = gateway.Lookup
	}
	setDefault(&o.Workers, 8)
	setDefault(&o.Deadline, 30*time.Second)
	setDefault(&o.Lease, time.Minute)
	setDefault(&o.SettleTimeout, 9*time.Second)
	setDefault(&o.JobTimeout, 75*time.Second)
	setDefault(&o.TickEvery, 5*time.Second)
	setDefault(&o.TickGrace, 5*time.Second)
	setDefault(&o.TickLimit, 64)
	setDefault(&o.QuietAfter, time.Second)
	setDefault(&o.Margin, time.Hour)
	setDefault(&o.Settled, 15*time.Minute)
	setDefault(&o.Epochs, 3)
	if o.Retry == nil {
		o.Retry = DefaultMoveRetry()
	}
	if o.Denied == nil {
		o.Denied = DefaultDenied()
	}
	if o.Lookup == nil {
		o.Lookup = DefaultLookup()
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

func (o MoveOptions) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Deadline": o.Deadline, "Lease": o.Lease, "SettleTimeout": o.SettleTimeout, "JobTimeout": o.JobTimeout, "TickEvery": o.TickEvery,
		"TickGrace": o.TickGrace, "QuietAfter": o.QuietAfter, "Margin": o.Margin, "Settled": o.Settled, "Workers": time.Duration(o.Workers), "TickLimit": time.Duration(o.TickLimit),
		"Epochs": time.Duration(o.Epochs),
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; it must be 0 (default) or more", name))
		}
	}
	if need := o.Deadline + o.SettleTimeout; need >= o.Lease {
		errs = append(errs, fmt.Errorf("a Lease of %s must be above %s, or a claim could end during its call", o.Lease, need))
	}
	if o.JobTimeout <= o.Lease {
		errs = append(errs, fmt.Errorf("a JobTimeout of %s must be above the Lease, %s", o.JobTimeout, o.Lease))
	}
	return errors.Join(errs...)
}

// Mover makes the calls that move money. Any number of processes may run one on one database: of a payment one call is out at a
// time, and kill -9 of any of them is healed by the others within the lease and two ticks.
//
// No transaction and no lock is held during a call. A call is repeated with the same bytes and under the same key until the gateway
// has said what became of it; where it cannot say, it is asked in another way ([gateway.Calls].Look). Another key is used only once
// it is proven that nothing was done under the one before. So money moves once, however often the call is made.
type Mover struct {
	store   MoveStore
	caller  Caller
	source  func(id string) (gateway.Source, bool)
	opts    MoveOptions
	rounds  rounds[store.MoveClaim]
	metrics *moveMetrics
}

// NewMover returns a Mover. source finds a configured source by its id and is asked for every call. A Mover works as part of a
// River client that [Mover.Register] and [Mover.Queues] tell about it, while Run runs.
func NewMover(st MoveStore, c Caller, source func(id string) (gateway.Source, bool), opts MoveOptions) (*Mover, error) {
	if st == nil || c == nil || source == nil {
		return nil, errors.New("outbound: nil MoveStore, Caller or source")
	}
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("outbound: MoveOptions: %w", err)
	}
	m := &Mover{store: st, caller: c, source: source, opts: opts, metrics: newMoveMetrics()}
	m.rounds = rounds[store.MoveClaim]{
		share: egress.NewShare(opts.Workers, opts.QuietAfter, opts.Elapsed), elapsed: opts.Elapsed,
		lease: opts.Lease, jobTimeout: opts.JobTimeout, tickEvery: opts.TickEvery, denied: m.metrics.denied,
		pull: st.PullMove, follow: m.follow,
	}
	if opts.Registerer != nil {
		if err := m.metrics.register(opts.Registerer); err != nil {
			return nil, fmt.Errorf("outbound: %w", err)
		}
	}
	return m, nil
}

// Register adds the worker to a River client's workers.
func (m *Mover) Register(ws *river.Workers) error {
	return river.AddWorkerSafely(ws, &moveWorker{mover: m})
}

// Queues is the queue that the River client works for the Mover.
func (m *Mover) Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{store.MoveQueue: {MaxWorkers: m.opts.Workers}}
}

// moveWorker is the River worker of move jobs.
type moveWorker struct {
	river.WorkerDefaults[store.MoveArgs]
	mover *Mover
}

// Timeout implements river.Worker.
func (w *moveWorker) Timeout(*river.Job[store.MoveArgs]) time.Duration {
	return w.mover.opts.JobTimeout
}

// Work implements river.Worker.
func (w *moveWorker) Work(ctx context.Context, job *river.Job[store.MoveArgs]) error {
	m := w.mover
	return m.rounds.work(ctx, job.Args.Account, func() (*store.MoveClaim, error) {
		return m.store.ClaimMove(ctx, job.Args.Account, job.Args.Transaction, m.opts.Lease)
	})
}

// Run asks for the jobs that did not come, until ctx ends; no further call is begun then.
func (m *Mover) Run(ctx context.Context) error {
	return m.rounds.run(ctx, m.opts.Logger, "transactions", m.Tick)
}

// Tick does once what Run does again and again: it asks for jobs that did not come, and settles what webhooks have told of.
func (m *Mover) Tick(ctx context.Context) error {
	renewed, err := m.store.RenewMoves(ctx, m.opts.TickLimit, m.opts.TickGrace)
	if err != nil {
		return err
	}
	m.rounds.renewed(renewed, m.opts.TickLimit, m.metrics.renewed)
	heard, err := m.store.HearOfMoves(ctx)
	m.metrics.heard.Add(float64(heard))
	if err != nil {
		return err
	}
	piles, err := m.store.MovePiles(ctx)
	if err != nil {
		return err
	}
	m.metrics.show(piles)
	return nil
}
