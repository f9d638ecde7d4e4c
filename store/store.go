// Package store holds all SQL of Paidonce and its one write path.
//
// [Store.Apply] takes events of every origin (webhooks, fetches, our own API) and, in one Postgres transaction,
// enters their ids in processed_events, joins their facts into payments, moves orders under a version check,
// records why, plans the one effect each order owes, and enqueues River jobs for it: all of it commits, or none.
//
// Lock order of every transaction of the program, within each table by primary key, always FOR NO KEY UPDATE:
// idempotency_keys, recurrences, fetches, processed_events, event_payloads, payment_ids, payments, orders,
// order_transitions, transactions, river_job, incomes; rows of reconcile_cursors, of reconcile_runs after them, of reconcile_orders and of
// reconcile_asks are written by transactions that lock nothing else. Rows that may be missing are inserted (ON CONFLICT DO NOTHING) before any row of that table is locked. What is folded is read by a
// statement that starts after the lock was granted. A payment that is linked to an order is written only under that
// order's lock. Facts are replaced by [Store.Reevaluate] alone, under the locks of the event, of its payments as they were
// and as they are, and of the rows of payment_ids, which nobody else ever changes.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
)

// APISource is the source id of events that come from the merchant's own API. No configured source may have it.
const APISource = "api"

// Transition is one change of an order, as [Options.InTx] sees it.
type Transition struct {
	Account  string
	Order    [16]byte
	Ref      string // the merchant's external_ref
	Version  int
	From, To string // states; From is empty for the row that created the order
	Source   string // of the event that caused it; empty if none did
	EventID  string
}

// Options are optional settings of a [Store]. The zero value is ready to use.
type Options struct {
	// InTx, if set, runs inside the transaction of [Store.Apply], once for every new version of an order, after our own
	// rows are written and before the commit. An error rolls everything back. It costs the pipelined commit.
	InTx func(ctx context.Context, tx pgx.Tx, t Transition) error

	// MaxAttempts is how often an effect is tried before it is dead. Default 12.
	MaxAttempts int

	// MaxOpenFetches is how many objects of one source may wait to be asked about at its gateway. Default 1000.
	MaxOpenFetches int

	// Logger receives alarms (an unexpected move, an invariant that broke). Default: discard.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 12
	}
	if o.MaxOpenFetches == 0 {
		o.MaxOpenFetches = DefaultMaxOpenFetches
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// Store reads and writes Paidonce's tables. It is safe for concurrent use.
type Store struct {
	pool  *pgxpool.Pool
	opts  Options
	queue *river.Client[pgx.Tx]
	bell  *bell

	fetchBell *bell

	retried retries
}

// New returns a Store on pool. The schema must be current; New does not look.
func New(pool *pgxpool.Pool, opts Options) (*Store, error) {
	if pool == nil {
		return nil, errors.New("store: nil pool")
	}
	if opts.MaxAttempts < 0 {
		return nil, fmt.Errorf("store: Options.MaxAttempts is %d; it must be 0 (default) or more", opts.MaxAttempts)
	}
	if opts.MaxOpenFetches < 0 {
		return nil, fmt.Errorf("store: Options.MaxOpenFetches is %d; it must be 0 (default) or more", opts.MaxOpenFetches)
	}
	queue, err := newQueue(pool)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	return &Store{pool: pool, opts: opts.withDefaults(), queue: queue, bell: &bell{every: bellInterval}, fetchBell: &bell{every: bellInterval}}, nil
}

// Pool is the pool the Store was made with.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// EnsureAccounts enters the accounts of the configuration; known ones are left alone.
func (s *Store) EnsureAccounts(ctx context.Context, ids []string) error {
	_, err := s.pool.Exec(ctx, `
		INSERT INTO accounts (id)
		SELECT id FROM unnest($1::text[]) AS x(id) ORDER BY id
		ON CONFLICT DO NOTHING`, ids)
	if err != nil {
		return fmt.Errorf("enter accounts: %w", err)
	}
	return nil
}
