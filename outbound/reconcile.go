package outbound

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// Lister makes one call for a page of a gateway's list; [*Client] is one. Its error is an [*Error].
type Lister interface {
	List(ctx context.Context, g *gateway.Gateway, s gateway.Source, call gateway.Call) ([]byte, error)
}

// ReconcileStore is what a [Reconciler] needs of the store; *store.Store is one.
type ReconcileStore interface {
	NoteReconcile(ctx context.Context, list []store.ReconcileKey) error
	DueReconciles(ctx context.Context, list []store.SourceKey) ([]store.SourceKey, error)
	ReconcileOutlook(ctx context.Context, start store.ReconcileStart) (store.ReconcileClaim, error)
	ClaimReconcile(ctx context.Context, start store.ReconcileStart) (store.ReconcileClaim, error)
	SaveReconcile(ctx context.Context, c store.ReconcileClaim, p store.ReconcileProgress) error
	EndReconcile(ctx context.Context, c store.ReconcileClaim, e store.ReconcileEnd) error
	ReconcileCursors(ctx context.Context, account string) ([]store.ReconcileCursor, error)

	KnownEvents(ctx context.Context, sources []string, events []store.Event) ([]store.Knowledge, error)
	ToAsk(ctx context.Context, key store.SourceKey, objects []string, since time.Time) (wanted, fresh []string, err error)
	NoteAsks(ctx context.Context, key store.SourceKey, asks []store.ReconcileAsk) error
	Announce(ctx context.Context, list []store.Announcement) (store.Announced, error)
	TakeAnswers(ctx context.Context, c store.ReconcileClaim, realm string, limit int) (store.ReconcileAnswers, error)

	WaitingStore
}

// ReconcileOptions are optional settings of a [Reconciler]. The zero value is ready to use; the durations belong together.
type ReconcileOptions struct {
	// Gateways finds a gateway by name. Default [gateway.Lookup].
	Gateways func(name string) (*gateway.Gateway, bool)

	// Every is how long after a run the next one of the source begins. Default 5 min. A run that failed is repeated after so long,
	// twice as long after each further failure, and at least every hour.
	Every time.Duration

	// Grace is how young what happened may be that a run of the schedule lists: its webhook is given so much time. Default 1 min.
	Grace time.Duration

	// Skew is how far the clocks of gateways may be from the database's. What is listed overlaps by that much and by
	// [gateway.Listing].Delay. Default 2 min.
	Skew time.Duration

	// Span is how much time the first call of a run asks for. A span that has more than one page is halved, down to MinSpan, so that
	// what is read was there at one moment; one that fits is followed by longer ones, up to MaxSpan. Pages bounds the pages of a span
	// that cannot be halved any more. Default 5 min, 1 s, 24 h and 200: short at first, since an object that stands in the list is asked
	// about again unless that was done after the end of the span.
	Span, MinSpan, MaxSpan time.Duration
	Pages                  int

	// Calls is how many calls to the list a run makes at most, save to end a span; the next run goes on. Default 200.
	Calls int

	// MaxPause is how long a run waits in its middle at most, because the gateway wants it or the source's pace does. Who is asked
	// to wait longer ends, and no run begins before that. Default 30 s.
	MaxPause time.Duration

	// Lease is how long a run may take from one span to the next; after it another process takes over. Default 2 min.
	Lease time.Duration
	// Deadline, IngestTimeout and SettleTimeout are the times for one call, for taking in what it brought, and for recording that.
	// Default 16 s, a little more than a Client's own, 9 s and 5 s.
	Deadline, IngestTimeout, SettleTimeout time.Duration

	WaitingOptions

	// TickEvery is how often this process looks for sources that are due, and Parallel on how many of them it works at once. Default
	// 15 s and 4.
	TickEvery time.Duration
	Parallel  int

	// Elapsed is a clock that only runs forward, from any start. Default: the process's monotonic clock.
	Elapsed func() time.Duration

	// Pause waits, and returns the error of a context that ends before. Default: on a timer.
	Pause func(ctx context.Context, d time.Duration) error

	Logger     *slog.Logger          // one line per run. Default: discard
	Registerer prometheus.Registerer // default: none
}

func (o ReconcileOptions) withDefaults() ReconcileOptions {
	if o.Gateways == nil {
		o.Gateways = gateway.Lookup
	}
	setDefault(&o.Every, 5*time.Minute)
	setDefault(&o.Grace, time.Minute)
	setDefault(&o.Skew, 2*time.Minute)
	setDefault(&o.Span, 5*time.Minute)
	setDefault(&o.MinSpan, time.Second)
	setDefault(&o.MaxSpan, 24*time.Hour)
	setDefault(&o.Pages, 200)
	setDefault(&o.Calls, 200)
	setDefault(&o.MaxPause, 30*time.Second)
	setDefault(&o.Lease, 2*time.Minute)
	setDefault(&o.Deadline, 16*time.Second)
	setDefault(&o.IngestTimeout, 9*time.Second)
	setDefault(&o.SettleTimeout, 5*time.Second)
	setDefault(&o.TickEvery, 15*time.Second)
	setDefault(&o.Parallel, 4)
	o.WaitingOptions = o.WaitingOptions.withDefaults()
	if o.Elapsed == nil {
		start := time.Now()                                           //nolint:forbidigo // the edge where the real clock enters
		o.Elapsed = func() time.Duration { return time.Since(start) } //nolint:forbidigo // the same
	}
	if o.Pause == nil {
		o.Pause = pause
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func (o ReconcileOptions) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Every": o.Every, "Grace": o.Grace, "Skew": o.Skew, "Span": o.Span, "MinSpan": o.MinSpan, "MaxSpan": o.MaxSpan, "Pages": time.Duration(o.Pages),
		"Calls": time.Duration(o.Calls), "MaxPause": o.MaxPause, "Lease": o.Lease, "Deadline": o.Deadline, "IngestTimeout": o.IngestTimeout,
		"SettleTimeout": o.SettleTimeout, "TickEvery": o.TickEvery, "Parallel": time.Duration(o.Parallel),
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative; it must be 0 (default) or more", name))
		}
	}
	if o.MinSpan%time.Second != 0 || o.MinSpan > o.Span || o.Span > o.MaxSpan {
		errs = append(errs, fmt.Errorf("MinSpan, Span and MaxSpan (%s, %s, %s) must rise, and the least be of whole seconds", o.MinSpan, o.Span, o.MaxSpan))
	}
	if need := o.MaxPause + o.Deadline + o.IngestTimeout + o.SettleTimeout; need >= o.Lease {
		errs = append(errs, fmt.Errorf("a Lease of %s must be above %s, or a claim could end during a call", o.Lease, need))
	}
	return errors.Join(append(errs, o.WaitingOptions.check())...)
}

// Reconciler asks gateways what happened, so that what their webhooks lost is found: it reads their lists through the same ingest as
// webhooks, and has them asked about orders that wait. Any number of processes may run one on one database: a source is worked on by one
// at a time, and what a kill -9 leaves is taken over within the lease. What a run repeats changes nothing.
type Reconciler struct {
	store   ReconcileStore
	lister  Lister
	ingest  Ingester
	sources func() []gateway.Source
	opts    ReconcileOptions
	metrics *reconcileMetrics
	alarms  alarms

	mu   sync.Mutex
	busy map[store.SourceKey]bool // worked on by this process
	runs sync.WaitGroup
}

// NewReconciler returns a Reconciler. sources returns all that are configured, and is asked for every run.
func NewReconciler(st ReconcileStore, l Lister, ing Ingester, sources func() []gateway.Source, opts ReconcileOptions) (*Reconciler, error) {
	if st == nil || l == nil || ing == nil || sources == nil {
		return nil, errors.New("outbound: nil ReconcileStore, Lister, Ingester or sources")
	}
	opts = opts.withDefaults()
	if err := opts.check(); err != nil {
		return nil, fmt.Errorf("outbound: ReconcileOptions: %w", err)
	}
	r := &Reconciler{
		store: st, lister: l, ingest: ing, sources: sources, opts: opts, metrics: newReconcileMetrics(),
		alarms: alarms{elapsed: opts.Elapsed, last: map[string]time.Duration{}}, busy: map[store.SourceKey]bool{},
	}
	if opts.Registerer != nil {
		if err := r.metrics.register(opts.Registerer); err != nil {
			return nil, fmt.Errorf("outbound: %w", err)
		}
	}
	return r, nil
}

// Run works on what is due until ctx ends, and then ends what is under way.
func (r *Reconciler) Run(ctx context.Context) error {
	defer r.runs.Wait()
	timer := time.NewTimer(rand.N(r.opts.TickEvery)) // processes that start together do not tick together
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			if err := r.Tick(ctx); err != nil && ctx.Err() == nil {
				r.opts.Logger.WarnContext(ctx, "sources not reconciled", "err", err)
			}
			timer.Reset(r.opts.TickEvery)
		}
	}
}

// Tick begins the runs of the sources that are due, as many as this process may work on, and does not wait for them: see
// [Reconciler.Wait].
func (r *Reconciler) Tick(ctx context.Context) error {
	units, keys := r.plan()
	if err := r.store.NoteReconcile(ctx, keys); err != nil {
		return err
	}
	byKey, list := map[store.SourceKey]unit{}, make([]store.SourceKey, 0, len(units))
	for _, u := range units {
		byKey[u.key()] = u
		list = append(list, u.key())
	}
	due, err := r.store.DueReconciles(ctx, list)
	if err != nil {
		return err
	}
	for _, key := range due {
		if r.enter(key) {
			r.runs.Go(func() {
				defer r.leave(key)
				r.scheduled(ctx, byKey[key])
			})
		}
	}
	return r.show(ctx, keys)
}

// Wait waits until what Tick began is over.
func (r *Reconciler) Wait() { r.runs.Wait() }

func (r *Reconciler) enter(key store.SourceKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy[key] || len(r.busy) >= r.opts.Parallel {
		return false
	}
	r.busy[key] = true
	return true
}

func (r *Reconciler) leave(key store.SourceKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.busy, key)
}

// scheduled is a run that is due. Another process may have begun it meanwhile.
func (r *Reconciler) scheduled(ctx context.Context, u unit) {
	_, err := r.run(ctx, u, ReconcileRequest{grace: r.opts.Grace, cause: store.ReconcileBySchedule})
	var busy *store.ReconcileBusyError
	if err != nil && !errors.As(err, &busy) && ctx.Err() == nil {
		r.opts.Logger.WarnContext(ctx, "source not reconciled", "account", u.source.Account, "source", u.source.ID, "err", err)
	}
}

// show sets the gauges by what the database knows of the configured sources.
func (r *Reconciler) show(ctx context.Context, keys []store.ReconcileKey) error {
	cursors, err := r.store.ReconcileCursors(ctx, "")
	if err != nil {
		return err
	}
	configured := map[store.SourceKey]bool{}
	for _, k := range keys {
		configured[store.SourceKey{Account: k.Account, ID: k.Source}] = true
	}
	r.metrics.show(cursors, configured)
	return nil
}
