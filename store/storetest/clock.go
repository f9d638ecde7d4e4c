package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// StopClock has clock_timestamp() in the test's database say at, to everybody who connects from now on and through pool,
// until set moves it. The time of the server goes on otherwise: now() and what is compared with it are the real ones. Call it
// before the pool is used by several.
func StopClock(t testing.TB, pool *pgxpool.Pool, at time.Time) (set func(time.Time)) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatalf("storetest: stop the clock: %v", err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	_, err = conn.Exec(t.Context(), `
		CREATE SCHEMA stopped;
		CREATE TABLE stopped.clock (at timestamptz);
		INSERT INTO stopped.clock VALUES (NULL);
		CREATE FUNCTION stopped.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM stopped.clock';
		DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = stopped, pg_catalog, public', current_database()); END $$`)
	if err != nil {
		t.Fatalf("storetest: stop the clock: %v", err)
	}
	pool.Reset()
	set = func(at time.Time) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), `UPDATE stopped.clock SET at = $1`, at); err != nil {
			t.Fatalf("storetest: set the clock: %v", err)
		}
	}
	set(at)
	return set
}
