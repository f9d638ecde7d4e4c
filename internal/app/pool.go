package app

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/migrations"
)

// OpenPool opens the pool of one part of the program, called name in
// pg_stat_activity, with at most size connections. It fails if the database
// cannot be reached. Every session has the time-outs of the configuration,
// except behind PgBouncer, where sessions are shared.
func OpenPool(ctx context.Context, cfg *config.Config, name string, size int) (*pgxpool.Pool, error) {
	if err := cfg.NeedDatabase(); err != nil {
		return nil, err
	}
	pc, err := pgxpool.ParseConfig(cfg.DatabaseURL)
	if err != nil {
		// pgx's own text can quote the URL, and with it the password.
		return nil, errors.New("database_url cannot be used: it is not a URL that Postgres understands")
	}
	pc.MaxConns = int32(min(size, 1<<15)) //nolint:gosec // bounded
	params := pc.ConnConfig.RuntimeParams
	params["application_name"] = "paidonce " + name
	if cfg.Pool.PgBouncer {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	} else {
		params["statement_timeout"] = milliseconds(cfg.Pool.StatementTimeout)
		params["lock_timeout"] = milliseconds(cfg.Pool.LockTimeout)
		params["idle_in_transaction_session_timeout"] = milliseconds(2 * cfg.Pool.StatementTimeout)
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := pool.Ping(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("database %s cannot be reached: %w", config.MaskURL(cfg.DatabaseURL), err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// ErrLosesCommits says that the database acknowledges commits which a crash can
// undo: a gateway would be told 200 and the event be gone.
var ErrLosesCommits = errors.New("the database runs with synchronous_commit = off, so a crash could lose events that were acknowledged; set it to on: ALTER DATABASE … SET synchronous_commit = on")

// checkDurable refuses a database whose sessions commit asynchronously.
func checkDurable(ctx context.Context, pool *pgxpool.Pool) error {
	var setting string
	if err := pool.QueryRow(ctx, `SELECT current_setting('synchronous_commit')`).Scan(&setting); err != nil {
		return fmt.Errorf("read synchronous_commit: %w", err)
	}
	if setting == "off" {
		return ErrLosesCommits
	}
	return nil
}

// checkDatabase refuses a database that is too old for this program, or that
// does not keep what it commits.
func checkDatabase(ctx context.Context, pool *pgxpool.Pool) error {
	if err := migrations.Check(ctx, pool); err != nil {
		return err
	}
	return checkDurable(ctx, pool)
}
