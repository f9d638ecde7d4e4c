package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/paidonce/paidonce/store"
)

// Transition is one change of an order, as [Options.InTx] sees it.
type Transition = store.Transition

// Options are optional settings of a [Processor]. The zero value is ready to use.
type Options struct {
	// InTx runs inside the transaction that changes an order, once for every new version that an event brings, after
	// Paidonce's own rows are written and before the commit: rows of the program's own (stock, a ledger, an outbox)
	// commit with the order or not at all. An error rolls everything back, and the delivery is answered 503. It must not
	// wait for anything but the database, and locks what it locks after every row of ours.
	InTx func(ctx context.Context, tx pgx.Tx, t Transition) error

	Ingest  IngestOptions
	Workers WorkerOptions

	Logger     *slog.Logger          // of all parts that have none of their own. Default: discard
	Registerer prometheus.Registerer // likewise. Default: none
}

// Processor is both halves in one process, for programs that embed Paidonce: it is the Ingester that a receiver needs,
// and the Workers that bring about what orders owe.
type Processor struct {
	*Ingester

	// Store reads orders, events and effects.
	Store *store.Store

	workers *Workers
}

// New returns a Processor on pool, whose schema must be current (package migrations). Effects are brought about by f.
// Nothing runs before Run.
func New(pool *pgxpool.Pool, f Fulfiller, opts Options) (*Processor, error) {
	if pool == nil || f == nil {
		return nil, errors.New("processor: nil pool or Fulfiller")
	}
	for _, l := range []**slog.Logger{&opts.Ingest.Logger, &opts.Workers.Logger} {
		if *l == nil {
			*l = opts.Logger
		}
	}
	for _, r := range []*prometheus.Registerer{&opts.Ingest.Registerer, &opts.Workers.Registerer} {
		if *r == nil {
			*r = opts.Registerer
		}
	}
	st, err := store.New(pool, store.Options{InTx: opts.InTx, Logger: opts.Logger})
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	p := &Processor{Store: st}
	if p.Ingester, err = NewIngester(st, opts.Ingest); err != nil {
		return nil, err
	}
	if p.workers, err = NewWorkers(st, f, opts.Workers); err != nil {
		return nil, err
	}
	return p, nil
}

// Run runs both halves until ctx ends, then finishes what was begun: deliveries that were taken, calls that are out. If
// one half fails, the other is stopped and the error returned.
func (p *Processor) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return p.Ingester.Run(ctx) })
	g.Go(func() error { return p.workers.Run(ctx) })
	return g.Wait()
}
