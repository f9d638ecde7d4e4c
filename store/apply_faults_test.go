package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// sabotage makes a statement raise sqlstate, as often as times says (0: always).
func sabotage(t *testing.T, pool *pgxpool.Pool, op, table, sqlstate string, times int) {
	t.Helper()
	_, err := pool.Exec(t.Context(), fmt.Sprintf(`
		CREATE SEQUENCE IF NOT EXISTS sabotage;
		CREATE OR REPLACE FUNCTION sabotage() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF %d = 0 OR nextval('sabotage') <= %d THEN RAISE EXCEPTION 'sabotaged' USING ERRCODE = '%s'; END IF;
			RETURN NEW;
		END $$;
		CREATE TRIGGER sabotage BEFORE %s ON %s FOR EACH ROW EXECUTE FUNCTION sabotage()`, times, times, sqlstate, op, table))
	require.NoError(t, err)
}

// atCommit makes every transaction that writes to table run sql when it commits.
func atCommit(t *testing.T, pool *pgxpool.Pool, table, sql string) {
	t.Helper()
	_, err := pool.Exec(t.Context(), fmt.Sprintf(`
		CREATE FUNCTION at_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN %s; RETURN NULL; END $$;
		CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT OR UPDATE ON %s
		DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION at_commit()`, sql, table))
	require.NoError(t, err)
}

func requireNothing(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for _, table := range []string{"processed_events", "event_payloads", "payments", "payment_ids", "order_transitions", "river_job"} {
		require.Equal(t, 0, count(t, pool, table), table)
	}
}

// Every half of the transaction fails in turn; nothing of the other halves may stay.
func TestApplyAllOrNothing(t *testing.T) {
	t.Parallel()
	for _, f := range []struct{ op, table string }{
		{"INSERT", "processed_events"},
		{"UPDATE", "processed_events"},
		{"INSERT", "payments"},
		{"INSERT", "payment_ids"},
		{"UPDATE", "payments"},
		{"INSERT", "orders"},
		{"UPDATE", "orders"},
		{"INSERT", "order_transitions"},
		{"INSERT", "river_job"},
	} {
		t.Run(f.op+" "+f.table, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			sabotage(t, pool, f.op, f.table, "P0001", 0)
			_, err := s.Apply(t.Context(), []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
			require.ErrorContains(t, err, "sabotaged")
			requireNothing(t, pool)
			require.Equal(t, 0, count(t, pool, "orders"))

			_, err = pool.Exec(t.Context(), `DROP FUNCTION sabotage CASCADE`)
			require.NoError(t, err)
			apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
			require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
			require.Equal(t, 1, count(t, pool, "river_job"))
		})
	}

	t.Run("commit refused", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		atCommit(t, pool, "order_transitions", `RAISE EXCEPTION 'refused at commit'`)
		_, err := s.Apply(t.Context(), []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
		require.ErrorContains(t, err, "refused at commit")
		requireNothing(t, pool)
	})

	t.Run("connection killed before the commit", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		atCommit(t, pool, "order_transitions", `PERFORM pg_terminate_backend(pg_backend_pid())`)
		_, err := s.Apply(t.Context(), []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
		require.Error(t, err)
		requireNothing(t, pool)
	})

	t.Run("canceled", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		ctx, cancel := context.WithCancel(t.Context())
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), `LOCK TABLE order_transitions IN ACCESS EXCLUSIVE MODE`)
		require.NoError(t, err)
		done := make(chan error, 1)
		go func() {
			_, err := s.Apply(ctx, []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
			done <- err
		}()
		waitForLock(t, pool)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		require.NoError(t, tx.Rollback(t.Context()))
		requireNothing(t, pool)
		apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
	})
}

// waitForLock returns once some backend of this database waits for a lock.
func waitForLock(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	for {
		var n int
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n))
		if n > 0 {
			return
		}
	}
}

func TestApplyTriesAgainWhatPostgresRefuses(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40P01", "40001", "55P03"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			sabotage(t, pool, "INSERT", "order_transitions", code, 2)
			apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000))
			require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
			require.Equal(t, 2, count(t, pool, "processed_events"))
			require.Equal(t, 1, count(t, pool, "river_job"))
		})
	}
	t.Run("gives up in the end", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		sabotage(t, pool, "INSERT", "order_transitions", "40001", 0)
		_, err := s.Apply(t.Context(), []store.Event{register("ord_1", 5000)})
		var pg *pgconn.PgError
		require.ErrorAs(t, err, &pg)
		require.Equal(t, "40001", pg.Code)
	})
}

func TestApplyNamesTheEventThatCannotBeStored(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	for name, spoil := range map[string]func(*store.Event){
		"NUL in the reference":   func(e *store.Event) { e.Reference = "ord\x00" },
		"invalid UTF-8":          func(e *store.Event) { e.ID = "evt\xff" },
		"no id":                  func(e *store.Event) { e.ID = "" },
		"reserved id":            func(e *store.Event) { e.ID = "evt#0123456789abcdef0123456789abcdef" },
		"negative amount":        func(e *store.Event) { e.Facts[0].Amount = -1 },
		"facts without payment":  func(e *store.Event) { e.Payment = nil },
		"NUL in a broken reason": func(e *store.Event) { e.Facts, e.Broken = nil, "at \x00" },
	} {
		bad := captured("evt_2", "pi_2", "ord_2", 100)
		spoil(&bad)
		_, err := s.Apply(t.Context(), []store.Event{captured("evt_1", "pi_1", "ord_1", 100), bad})
		var event *store.EventError
		require.ErrorAs(t, err, &event, name)
		require.Equal(t, 1, event.Index, name)
		require.ErrorIs(t, err, store.ErrUnstorable, name)
	}
	requireNothing(t, pool)
}

func TestApplyOnceAmongManyGoroutines(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	other, err := store.New(pool, store.Options{}) // a second process would share no more than this
	require.NoError(t, err)
	apply(t, s, register("ord_1", 5000))

	var applied, duplicate atomic.Int64
	var wg sync.WaitGroup
	for i := range 64 {
		st := []*store.Store{s, other}[i%2]
		wg.Go(func() {
			res, err := st.Apply(t.Context(), []store.Event{captured("evt_1", "pi_1", "ord_1", 5000)})
			if err != nil {
				t.Error(err)
				return
			}
			switch res[0].Outcome {
			case store.Applied:
				applied.Add(1)
			case store.Duplicate:
				duplicate.Add(1)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, applied.Load())
	require.EqualValues(t, 63, duplicate.Load())
	require.Equal(t, 1, count(t, pool, "river_job"))
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE to_state = 'paid' AND from_state <> to_state"))
}

func TestApplyTx(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	boom := errors.New("the caller changed its mind")

	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		res, err := s.ApplyTx(t.Context(), tx, []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
		require.NoError(t, err)
		require.Equal(t, store.Applied, res[1].Outcome)
		return boom
	})
	require.ErrorIs(t, err, boom)
	requireNothing(t, pool)

	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := s.ApplyTx(t.Context(), tx, []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)})
		return err
	})
	require.NoError(t, err)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, 1, count(t, pool, "river_job"))
}

func TestInTxCommitsWithTheOrder(t *testing.T) {
	t.Parallel()
	refuse := true
	s, pool := openWith(t, store.Options{InTx: func(ctx context.Context, tx pgx.Tx, tr store.Transition) error {
		if _, err := tx.Exec(ctx, `INSERT INTO stock VALUES ($1, $2, $3)`, tr.Ref, tr.Version, tr.To); err != nil {
			return err
		}
		if refuse {
			return errors.New("out of stock")
		}
		return nil
	}})
	_, err := pool.Exec(t.Context(), `CREATE TABLE stock (ref text, version int, state text, PRIMARY KEY (ref, version))`)
	require.NoError(t, err)

	events := []store.Event{register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000)}
	_, err = s.Apply(t.Context(), events)
	require.ErrorContains(t, err, "out of stock")
	requireNothing(t, pool)
	require.Equal(t, 0, count(t, pool, "stock"))

	refuse = false
	apply(t, s, events...)
	require.Equal(t, readOrder(t, pool, "ord_1").Version, count(t, pool, "stock"))
	require.Equal(t, 1, count(t, pool, "stock WHERE state = 'paid'"))
}

// Somebody turns synchronous_commit off under a running server: what is acknowledged is durable all the same.
func TestApplyCommitsDurably(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	_, err := pool.Exec(t.Context(), `
		CREATE TABLE seen (setting text);
		CREATE FUNCTION see() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN NEW; END $$;
		CREATE TRIGGER see BEFORE INSERT ON order_transitions FOR EACH ROW EXECUTE FUNCTION see();
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET synchronous_commit = off', current_database()); END $$`)
	require.NoError(t, err)
	pool.Reset()
	var setting string
	require.NoError(t, pool.QueryRow(t.Context(), `SHOW synchronous_commit`).Scan(&setting))
	require.Equal(t, "off", setting)
	apply(t, s, register("ord_1", 5000))
	require.Equal(t, 1, count(t, pool, "seen WHERE setting = 'on'"))
	require.Equal(t, 0, count(t, pool, "seen WHERE setting <> 'on'"))
}
