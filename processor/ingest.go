package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// ErrOverloaded says that more deliveries wait than may. The caller answers 503 and the gateway comes again.
var ErrOverloaded = errors.New("processor: too many deliveries wait to be committed")

// ErrStopped says that the Ingester is shutting down.
var ErrStopped = errors.New("processor: the ingester has stopped")

// Applier is what an Ingester needs of the store: one transaction for many events.
type Applier interface {
	Apply(ctx context.Context, events []store.Event) ([]store.Result, error)
	CountDeliveries(ctx context.Context, counts map[store.EventKey]int) error
}

// IngestOptions are optional settings of an [Ingester]. The zero value is ready to use.
type IngestOptions struct {
	// Committers is how many transactions run at once. Default 2: one's fsync overlaps the other's work, and more only
	// made batches smaller.
	Committers int

	// Parallel is for how many waiting events another committer begins while one is at work; fewer wait for that one,
	// which is about to be free: small batches side by side cost more than one larger batch after another. Default 32.
	Parallel int

	// MaxBatch is the largest number of events in one transaction. A single delivery that holds more goes alone.
	// Default 256.
	MaxBatch int

	// MaxWaiting is how many events of one account may wait; beyond it Ingest returns ErrOverloaded. Default 2048.
	MaxWaiting int

	// BatchTimeout bounds one transaction with its repeats. Default 8 s, below every gateway's own deadline.
	BatchTimeout time.Duration

	// FlushEvery is how often the counts of repeated deliveries are written. Default 1 s.
	FlushEvery time.Duration

	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: none
}

func (o IngestOptions) withDefaults() IngestOptions {
	setDefault(&o.Committers, 2)
	setDefault(&o.Parallel, 32)
	setDefault(&o.MaxBatch, 256)
	setDefault(&o.MaxWaiting, 2048)
	setDefault(&o.BatchTimeout, 8*time.Second)
	setDefault(&o.FlushEvery, time.Second)
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

// Ingester turns concurrent deliveries into few transactions (group commit). There is no timer: a batch leaves as soon
// as a committer is free, and takes along what has gathered meanwhile, one delivery of each account in turn. The
// goroutine that finds a committer free becomes it.
type Ingester struct {
	store Applier
	opts  IngestOptions

	mu      sync.Mutex
	queues  map[string]*queue // by account; only accounts that wait
	turn    []string          // accounts in the order of their turn
	waiting int               // events in all queues
	busy    int               // committers at work
	stopped bool
	leaders sync.WaitGroup
	counts  map[store.EventKey]int

	batchSize prometheus.Histogram
	splits    prometheus.Counter
}

type queue struct {
	calls  []*call
	events int
}

// call is one delivery that waits for its commit.
type call struct {
	events  []store.Event
	results []store.Result
	err     error
	done    chan struct{}
	gone    bool // its caller gave up before it was taken
}

// NewIngester returns an Ingester on st. Run must run while Ingest is called.
func NewIngester(st Applier, opts IngestOptions) (*Ingester, error) {
	if st == nil {
		return nil, errors.New("processor: nil store")
	}
	if opts.Committers < 0 || opts.Parallel < 0 || opts.MaxBatch < 0 || opts.MaxWaiting < 0 || opts.BatchTimeout < 0 || opts.FlushEvery < 0 {
		return nil, errors.New("processor: IngestOptions must not be negative")
	}
	i := &Ingester{store: st, opts: opts.withDefaults(), queues: map[string]*queue{}, counts: map[store.EventKey]int{}}
	i.batchSize = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "paidonce_ingest_batch_events", Help: "Events per ingest transaction.", Buckets: prometheus.ExponentialBuckets(1, 2, 10),
	})
	i.splits = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "paidonce_ingest_splits_total", Help: "Batches that were split because one of their events was refused.",
	})
	if opts.Registerer != nil {
		for _, c := range []prometheus.Collector{i.batchSize, i.splits} {
			if err := opts.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("processor: %w", err)
			}
		}
	}
	return i, nil
}

// Ingest enters the events of one delivery and returns what became of each, once that is committed. All of them must
// belong to one account. An error means that the caller must not acknowledge: nothing was committed, or nobody knows. When
// ctx ends, Ingest returns at once; a transaction that already took the delivery goes on, and a repeat finds a duplicate.
func (i *Ingester) Ingest(ctx context.Context, events []store.Event) ([]store.Result, error) {
	if len(events) == 0 {
		return nil, nil
	}
	c := &call{events: events, done: make(chan struct{})}
	account := events[0].Account
	i.mu.Lock()
	if i.stopped {
		i.mu.Unlock()
		return nil, ErrStopped
	}
	q := i.queues[account]
	if q == nil {
		q = &queue{}
		i.queues[account] = q
		i.turn = append(i.turn, account)
	}
	if q.events > 0 && q.events+len(events) > i.opts.MaxWaiting {
		i.mu.Unlock()
		return nil, ErrOverloaded
	}
	q.calls, q.events = append(q.calls, c), q.events+len(events)
	i.waiting += len(events)
	lead := i.busy < i.opts.Committers && i.worthwhile(i.busy)
	if lead {
		i.busy++
		i.leaders.Add(1)
	}
	i.mu.Unlock()
	if lead {
		i.lead(ctx, c)
	}
	select {
	case <-c.done:
		return c.results, c.err
	case <-ctx.Done():
		i.mu.Lock()
		c.gone = true
		i.mu.Unlock()
		return nil, fmt.Errorf("processor: gave up waiting for the commit: %w", context.Cause(ctx))
	}
}

// lead commits batches until mine is done or its caller's time is up, then leaves what still waits to a goroutine of its
// own. With mine nil it commits until nothing waits. A batch has its own time: it holds other callers' deliveries too.
func (i *Ingester) lead(ctx context.Context, mine *call) {
	for {
		batch := i.take()
		if batch == nil {
			return
		}
		batchCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), i.opts.BatchTimeout)
		i.commit(batchCtx, batch)
		cancel()
		if mine == nil {
			continue
		}
		select {
		case <-mine.done:
		case <-ctx.Done():
		default:
			continue
		}
		if !i.rest() {
			go i.lead(context.WithoutCancel(ctx), nil)
		}
		return
	}
}

// worthwhile reports whether what waits is worth a committer beside so many others.
func (i *Ingester) worthwhile(others int) bool {
	return i.waiting > 0 && (others == 0 || i.waiting >= i.opts.Parallel)
}

// rest ends a committer's work if nothing waits that is worth it, and reports whether it did.
func (i *Ingester) rest() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.restLocked()
}

func (i *Ingester) restLocked() bool {
	if i.worthwhile(i.busy - 1) {
		return false
	}
	i.busy--
	i.leaders.Done()
	return true
}

// take removes the next batch from the queues; nil, and one committer fewer, if nothing waits that is worth it.
func (i *Ingester) take() []*call {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.restLocked() {
		return nil
	}
	var batch []*call
	events := 0
	for len(i.turn) > 0 {
		account := i.turn[0]
		q := i.queues[account]
		c := q.calls[0]
		if len(batch) > 0 && events+len(c.events) > i.opts.MaxBatch {
			break
		}
		i.turn = i.turn[1:]
		q.calls, q.events = q.calls[1:], q.events-len(c.events)
		i.waiting -= len(c.events)
		if len(q.calls) == 0 {
			delete(i.queues, account)
		} else {
			i.turn = append(i.turn, account)
		}
		if c.gone {
			continue
		}
		batch, events = append(batch, c), events+len(c.events)
	}
	if batch == nil { // all that waited was given up
		i.busy--
		i.leaders.Done()
		return nil
	}
	i.batchSize.Observe(float64(events))
	return batch
}

// commit applies the calls in one transaction. When Postgres refuses an event, the calls are split until the one that
// holds it is alone; faults that would hit every part alike are not split.
func (i *Ingester) commit(ctx context.Context, batch []*call) {
	var events []store.Event
	for _, c := range batch {
		events = append(events, c.events...)
	}
	results, err := i.store.Apply(ctx, events)
	switch {
	case err == nil:
		at := 0
		for _, c := range batch {
			c.results = results[at : at+len(c.events)]
			at += len(c.events)
		}
		i.count(events, results)
		for _, c := range batch {
			close(c.done)
		}
	case len(batch) == 1 || !divisible(err):
		for _, c := range batch {
			c.err = err
			close(c.done)
		}
	default:
		i.splits.Inc()
		half := len(batch) / 2
		i.commit(ctx, batch[:half])
		i.commit(ctx, batch[half:])
	}
}

// divisible reports whether an error may concern one event of a batch: an event that cannot be stored, or SQL that
// raised. A connection that is gone or a server that is full concerns all.
func divisible(err error) bool {
	var event *store.EventError
	if errors.As(err, &event) {
		return true
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	switch pg.Code[:2] {
	case "08", "53", "57", "58", "25", "28", "3D", "42":
		return false
	}
	return true
}

// count remembers repeated deliveries; they are written in the background, so the number stored is a lower bound.
func (i *Ingester) count(events []store.Event, results []store.Result) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for n, r := range results {
		if r.Outcome == store.Duplicate {
			i.counts[store.EventKey{Account: events[n].Account, Source: events[n].Source, ID: events[n].ID}]++
		}
	}
}

// Flush writes the counts of repeated deliveries gathered so far.
func (i *Ingester) Flush(ctx context.Context) error {
	i.mu.Lock()
	counts := i.counts
	i.counts = map[store.EventKey]int{}
	i.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	if err := i.store.CountDeliveries(ctx, counts); err != nil {
		return fmt.Errorf("processor: count repeated deliveries: %w", err)
	}
	return nil
}

// Run writes counts in the background until ctx ends, then refuses new deliveries, waits for those that were taken, and
// writes the last counts.
func (i *Ingester) Run(ctx context.Context) error {
	tick := time.NewTicker(i.opts.FlushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := i.Flush(ctx); err != nil && ctx.Err() == nil {
				i.opts.Logger.WarnContext(ctx, "repeated deliveries not counted", slog.Any("err", err))
			}
		case <-ctx.Done():
			i.mu.Lock()
			i.stopped = true
			i.mu.Unlock()
			i.leaders.Wait()
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			return i.Flush(last)
		}
	}
}
