// Package fault breaks the database under a running program, from outside: with
// triggers that raise, sleep, or end the connection at commit, and never with a
// hook in the program.
//
// Everything stands in a schema of its own. A trigger asks a table whether its
// fault is still active, so that clearing one takes no lock that the program's
// writers would wait for, and counts with a sequence, which survives the
// rollback that the fault causes.
package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Kinds of faults.
const (
	// SQLError makes the statement raise SQLState.
	SQLError = "sql_error"

	// SQLDelay makes the statement take Delay longer.
	SQLDelay = "sql_delay"

	// KillConnection ends the backend of a transaction that ran the statement,
	// when it commits.
	KillConnection = "kill_connection"

	// HoldCommit stops a transaction that ran the statement before it commits,
	// for as long as HoldTime, so that its process can be killed there; see
	// [Fault.Held].
	HoldCommit = "hold_commit"
)

// HoldTime is how long a transaction is held at most. It is longer than a test
// needs to see it and shorter than a test waits.
const HoldTime = 20 * time.Second

// ProcessSetting is the run-time parameter by which a process tells the
// database which one it is: connect with options=-c paidonce_test.process=NAME.
const ProcessSetting = "paidonce_test.process"

// Tables are those that a fault can be about.
var Tables = []string{"orders", "order_transitions", "processed_events", "fetches", "idempotency_keys", "river_job"}

// Spec says what goes wrong.
type Spec struct {
	Kind  string
	Verb  string // INSERT or UPDATE
	Table string // one of Tables

	SQLState string        // SQLError
	Delay    time.Duration // SQLDelay

	// Skip is how many rows are spared first.
	Skip int

	// Times is how often it goes wrong after that; 0: until the fault is cleared.
	Times int

	// Process, if set, spares the transactions of every other process; see
	// ProcessSetting.
	Process string
}

// Fault is one that was installed.
type Fault struct {
	pool *pgxpool.Pool
	spec Spec
	id   int
}

// Install makes the fault: from now on the statement goes wrong. Names in the
// spec are checked, since they become part of SQL.
func Install(ctx context.Context, pool *pgxpool.Pool, s Spec) (*Fault, error) {
	if !slices.Contains([]string{"INSERT", "UPDATE"}, s.Verb) || !slices.Contains(Tables, s.Table) {
		return nil, fmt.Errorf("no fault can be made on %q of %q", s.Verb, s.Table)
	}
	action, ok := actions[s.Kind]
	if !ok {
		return nil, fmt.Errorf("there is no fault %q", s.Kind)
	}
	f := &Fault{pool: pool, spec: s}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, schema); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `
			INSERT INTO faults.fault (sqlstate, delay_s, skip, times, process) VALUES ($1, $2, $3, $4, $5) RETURNING id`,
			s.SQLState, s.Delay.Seconds(), s.Skip, s.Times, s.Process).Scan(&f.id)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf(`
			CREATE SEQUENCE faults.count_%[1]d;
			CREATE FUNCTION faults.fault_%[1]d() RETURNS trigger LANGUAGE plpgsql AS $f$
			DECLARE f faults.fault; n bigint;
			BEGIN
			  SELECT * INTO f FROM faults.fault WHERE id = %[1]d;
			  IF f.active AND (f.process = '' OR f.process = current_setting('%[2]s', true)) THEN
			    %[3]s
			  END IF;
			  RETURN NEW;
			END $f$;
			CREATE %[4]s %[5]s ON %[6]s %[7]s FOR EACH ROW %[8]s EXECUTE FUNCTION faults.fault_%[1]d()`,
			f.id, ProcessSetting, fmt.Sprintf(action.body, f.id),
			fmt.Sprintf(action.trigger, f.id), s.Verb, s.Table, action.deferral, only(s.Table)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make the fault %s on %s %s: %w", s.Kind, s.Verb, s.Table, err)
	}
	return f, nil
}

const schema = `
	SELECT pg_advisory_xact_lock(hashtext('paidonce faults'));
	CREATE SCHEMA IF NOT EXISTS faults;
	CREATE TABLE IF NOT EXISTS faults.fault (
	  id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	  sqlstate text NOT NULL, delay_s double precision NOT NULL, skip int NOT NULL, times int NOT NULL, process text NOT NULL,
	  active boolean NOT NULL DEFAULT true)`

// action is what a trigger does, and when.
type action struct {
	trigger  string // with the fault's number
	deferral string
	body     string
}

const (
	before   = "TRIGGER fault_%d BEFORE"
	atCommit = "CONSTRAINT TRIGGER fault_%d AFTER"
	deferred = "DEFERRABLE INITIALLY DEFERRED"
	counted  = "n := nextval('faults.count_%[1]d') - f.skip; IF n > 0 AND (f.times = 0 OR n <= f.times) THEN "
)

var actions = map[string]action{
	SQLError: {before, "", counted + `RAISE EXCEPTION 'fault %[1]d' USING ERRCODE = f.sqlstate; END IF;`},
	// A statement of many rows sleeps once.
	SQLDelay: {before, "", `
		IF current_setting('faults.slept_%[1]d', true) IS DISTINCT FROM statement_timestamp()::text THEN
		  PERFORM set_config('faults.slept_%[1]d', statement_timestamp()::text, true);
		  ` + counted + `PERFORM pg_sleep(f.delay_s); END IF;
		END IF;`},
	KillConnection: {atCommit, deferred, counted + `
		PERFORM pg_terminate_backend(pg_backend_pid());
		PERFORM pg_sleep(1); -- the signal is served here at the latest
		END IF;`},
	// The name is visible to others at once, unlike anything this transaction could write.
	HoldCommit: {atCommit, deferred, counted + `
		PERFORM set_config('application_name', 'fault_%[1]d holds', false);
		PERFORM pg_sleep(` + holdSeconds + `);
		END IF;`},
}

const holdSeconds = "20" // HoldTime

// only spares River's own housekeeping, which would use a count up.
func only(table string) string {
	if table == "river_job" {
		return "WHEN (NEW.kind = 'drain')"
	}
	return ""
}

// Held returns the backend that the fault holds before its commit, or 0.
func (f *Fault) Held(ctx context.Context) (pid int32, err error) {
	err = f.pool.QueryRow(ctx, `
		SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = $1 LIMIT 1`,
		fmt.Sprintf("fault_%d holds", f.id)).Scan(&pid)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return pid, err
}

// Fired returns how often the fault was reached.
func (f *Fault) Fired(ctx context.Context) (int64, error) {
	var n int64
	err := f.pool.QueryRow(ctx, fmt.Sprintf(
		`SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM faults.count_%d`, f.id)).Scan(&n)
	return n, err
}

// Spent reports whether nothing can go wrong by the fault any more.
func (f *Fault) Spent(ctx context.Context) (bool, error) {
	fired, err := f.Fired(ctx)
	return f.spec.Times > 0 && fired >= int64(f.spec.Skip+f.spec.Times), err
}

// Clear ends the fault. What it holds or delays at this moment goes on until its time is over.
func (f *Fault) Clear(ctx context.Context) error {
	_, err := f.pool.Exec(ctx, `UPDATE faults.fault SET active = false WHERE id = $1`, f.id)
	return err
}

// Terminate ends a backend, and waits until its transaction is gone.
func Terminate(ctx context.Context, pool *pgxpool.Pool, pid int32) error {
	_, err := pool.Exec(ctx, `SELECT pg_terminate_backend($1, 5000)`, pid) // in ms
	if err != nil {
		return fmt.Errorf("end backend %d: %w", pid, err)
	}
	return nil
}
