package idempotency

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Schema is the SQL that makes the table, for those who run migrations of their own. It must be run in a transaction, once.
//
//go:embed schema.sql
var Schema string

// Migrate makes the table idempotency_keys if the database does not have it. It may be called by any number of processes at once.
func Migrate(ctx context.Context, pool *pgxpool.Pool) error {
	for try := 1; ; try++ {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			var exists bool
			if err := tx.QueryRow(ctx, `SELECT to_regclass('idempotency_keys') IS NOT NULL`).Scan(&exists); err != nil || exists {
				return err
			}
			_, err := tx.Exec(ctx, Schema, pgx.QueryExecModeSimpleProtocol) // several statements
			return err
		})
		// Two that begin at once: the second waits for the first, finds the name taken, and looks again.
		if try == 1 && (hasCode(err, "42P07") || hasCode(err, "23505") || hasCode(err, "42710")) {
			continue
		}
		if err != nil {
			return fmt.Errorf("idempotency: make the table: %w", err)
		}
		return nil
	}
}

// StoreOptions are optional settings of a [Store]. The zero value is ready to use.
type StoreOptions struct {
	// AcquireTimeout is how long a call may wait for a connection of the pool before it is answered 503. Default 5 seconds.
	AcquireTimeout time.Duration

	// StatementTimeout is how long one of the store's own statements may take. Default 5 seconds.
	StatementTimeout time.Duration

	// KeepTimeout is how long it is tried to store the answer of a handler without a transaction, whose work is done.
	// Default 10 seconds.
	KeepTimeout time.Duration

	// Registerer receives gauges of what the last sweep of this store has found. Default: none are kept. Give it to the store
	// that sweeps.
	Registerer prometheus.Registerer
}

func (o StoreOptions) withDefaults() StoreOptions {
	o.AcquireTimeout = cmp.Or(o.AcquireTimeout, 5*time.Second)
	o.StatementTimeout = cmp.Or(o.StatementTimeout, 5*time.Second)
	o.KeepTimeout = cmp.Or(o.KeepTimeout, 10*time.Second)
	return o
}

// Store keeps keys in the table idempotency_keys. It needs no session state, so the pool may lead through PgBouncer in
// transaction mode (then with pgx.QueryExecModeExec), but it must lead to the primary: a replica may not know of a claim yet.
type Store struct {
	pool  *pgxpool.Pool
	opts  StoreOptions
	stats atomic.Pointer[SweepResult] // of the last sweep, for gauges
}

// NewStore returns a store on pool, which is required and remains the caller's to close.
func NewStore(pool *pgxpool.Pool, opts StoreOptions) (*Store, error) {
	if pool == nil {
		return nil, errors.New("idempotency: nil pool")
	}
	if opts.AcquireTimeout < 0 || opts.StatementTimeout < 0 || opts.KeepTimeout < 0 {
		return nil, errors.New("idempotency: StoreOptions: a time-out is negative")
	}
	s := &Store{pool: pool, opts: opts.withDefaults()}
	if opts.Registerer != nil {
		if err := s.registerGauges(opts.Registerer); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// acquire takes a connection of the pool, for as long as the caller is there and AcquireTimeout allows.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.AcquireTimeout)
	defer cancel()
	return s.pool.Acquire(ctx)
}

// detached is the context of a statement that must not be cut off because the caller has gone: the outcome would be unknown.
func (s *Store) detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.opts.StatementTimeout)
}

// onPool runs f on a connection, as long as ctx and StatementTimeout allow.
func (s *Store) onPool(ctx context.Context, f func(context.Context, *pgx.Conn) error) error {
	conn, err := s.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	ctx, cancel := context.WithTimeout(ctx, s.opts.StatementTimeout)
	defer cancel()
	return f(ctx, conn.Conn())
}

// send sends a batch, and returns the first error of it.
func send(ctx context.Context, conn *pgx.Conn, b *pgx.Batch) error {
	return conn.SendBatch(ctx, b).Close()
}

func hasCode(err error, code string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == code
}

// retriable reports whether a transaction that ended with err may succeed if it is done again as a whole: deadlock,
// serialization failure, lock not available.
func retriable(err error) bool {
	return hasCode(err, "40P01") || hasCode(err, "40001") || hasCode(err, "55P03")
}

// momentary reports whether err speaks of the moment and not of the request: a time-out of the database's (57014, 25P03, 25P04), or
// that it has no room (class 53). Nothing was committed.
func momentary(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return pg.Code == "57014" || pg.Code == "25P03" || pg.Code == "25P04" || strings.HasPrefix(pg.Code, "53")
}

// refused reports whether err is the server's own word that the transaction was not committed. A connection that broke says
// nothing, and neither does a server that shuts down (class 57P, and 08): it may have committed before.
func refused(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return pg.Code != "" && !strings.HasPrefix(pg.Code, "57P") && !strings.HasPrefix(pg.Code, "08")
}

// logged is an error as a log may have it: the server's messages can quote what was written.
func logged(err error) string {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.TrimSpace("SQLSTATE " + pg.Code + " " + pg.ConstraintName)
	}
	return err.Error()
}

// errorClass is what of an error may be kept: SQLSTATE or the kind, never a text that could quote data.
func errorClass(err error) string {
	var pg *pgconn.PgError
	var status statusError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &pg):
		return "SQLSTATE " + pg.Code
	case errors.As(err, &status):
		return status.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "deadline exceeded"
	case errors.Is(err, ErrPanicked):
		return "panic"
	}
	return "error"
}
