// Package migrations holds Paidonce's database schema and brings a database to it.
//
// The SQL files beside this one are numbered, applied in that order, each in a
// transaction of its own, and never changed once released. After them come the
// migrations of River, whose tables live in the same schema. Both keep their own
// account of what was applied: paidonce_migrations and river_migration.
//
// A program must run on a newer schema than its own, because a release migrates first
// and replaces its processes after: files add, backfill, switch and drop in separate releases. So
// [Check] refuses only a schema that is too old.
package migrations

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

//go:embed *.sql
var files embed.FS

// table is goose's account. The name is ours, because the database may be shared with a
// merchant's own program that uses goose too.
const table = "paidonce_migrations"

// lockKey is the advisory lock that Up holds: "paidonce" in ASCII.
const lockKey = 0x706169646f6e6365

// Up applies what is pending, and tells log of each step. Any number of processes
// may call it at once: one works, the others wait, and then find nothing to do.
// What was applied before an error stays applied; the step that failed does not.
//
// url must lead to Postgres itself. The lock belongs to a session, and a pooler
// such as PgBouncer in transaction mode would hand the session to others: pass what
// the configuration calls direct_url.
//
// A step that cannot have its locks within 5 seconds, or what lock_timeout in
// the url says, fails rather than make every query of a busy table wait behind
// it. Run it again at a quieter moment.
func Up(ctx context.Context, url string, log *slog.Logger) error {
	_, err := up(ctx, url, files, log)
	return err
}

// UpCount is [Up], and returns how many steps this call applied, not those that another process did meanwhile.
func UpCount(ctx context.Context, url string, log *slog.Logger) (int, error) {
	return up(ctx, url, files, log)
}

func up(ctx context.Context, url string, files fs.FS, log *slog.Logger) (applied int, err error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	pool, err := open(ctx, url)
	if err != nil {
		return 0, err
	}
	defer pool.Close()
	err = locked(ctx, pool, func() error {
		ours, err := upOurs(ctx, pool, files, log)
		applied += ours
		if err != nil {
			return err
		}
		rivers, err := upRiver(ctx, pool, log)
		applied += rivers
		return err
	})
	return applied, err
}

// open returns a pool for three connections: the lock's, goose's and River's.
func open(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err) // pgx leaves the password out
	}
	cfg.MaxConns = 3
	params := cfg.ConnConfig.RuntimeParams
	params["application_name"] = "paidonce migrate"
	// The role's own settings are for the program's queries; a migration may take its time,
	// once it has its locks.
	if params["lock_timeout"] == "" {
		params["lock_timeout"] = "5s"
	}
	params["timezone"] = "UTC" // goose notes times without a zone
	params["statement_timeout"] = "0"
	params["idle_in_transaction_session_timeout"] = "0"
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("migrations: %w", err)
	}
	return pool, nil
}

// locked runs f under the advisory lock.
func locked(ctx context.Context, pool *pgxpool.Pool, f func() error) (err error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("migrations: connect: %w", err)
	}
	defer conn.Release()
	// Asking again and again, because a session that waits inside pg_advisory_lock holds a
	// snapshot, and CREATE INDEX CONCURRENTLY of the one that works would wait for it: a deadlock.
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		var got bool
		if err := conn.QueryRow(ctx, `SELECT pg_try_advisory_lock($1)`, int64(lockKey)).Scan(&got); err != nil {
			return fmt.Errorf("migrations: take the lock: %w", err)
		}
		if got {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("migrations: another process is migrating: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
	defer func() {
		// Closing the connection gives the lock back, whatever state it is in.
		err = errors.Join(err, conn.Hijack().Close(context.WithoutCancel(ctx)))
	}()
	return f()
}

func upOurs(ctx context.Context, pool *pgxpool.Pool, files fs.FS, log *slog.Logger) (applied int, err error) {
	db := stdlib.OpenDBFromPool(pool)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(table), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("migrations: %w", err), db.Close())
	}
	defer func() { err = errors.Join(err, provider.Close()) }() // closes db too
	done, err := provider.Up(ctx)
	var partial *goose.PartialError
	if errors.As(err, &partial) {
		done = partial.Applied
		err = fmt.Errorf("migrations: %s: %w", partial.Failed.Source.Path, partial.Err)
	} else if err != nil {
		err = fmt.Errorf("migrations: %w", err)
	}
	for _, m := range done {
		log.InfoContext(ctx, "migration applied", "origin", Paidonce, "version", m.Source.Version,
			"name", m.Source.Path, "duration", m.Duration)
	}
	return len(done), err
}

func upRiver(ctx context.Context, pool *pgxpool.Pool, log *slog.Logger) (applied int, err error) {
	river, err := rivermigrate.New(riverpgxv5.New(pool), &rivermigrate.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return 0, fmt.Errorf("migrations: River: %w", err)
	}
	done, err := river.Migrate(ctx, rivermigrate.DirectionUp, nil)
	if err != nil {
		return 0, fmt.Errorf("migrations: River: %w", err)
	}
	for _, m := range done.Versions {
		log.InfoContext(ctx, "migration applied", "origin", River, "version", m.Version,
			"name", m.Name, "duration", m.Duration)
	}
	return len(done.Versions), nil
}
