// Package storetest gives each test a Postgres database of its own.
//
//	func TestX(t *testing.T) {
//		t.Parallel()
//		pool := storetest.Open(t)
//		...
//	}
//
// The database is a clone of a migrated template, so it costs some 30 ms and has the real
// schema, with advisory locks, LISTEN and River's leader to itself. It is
// dropped when the test ends.
//
// The server is the one PAIDONCE_TEST_DATABASE_URL names, whose role must be allowed
// to create databases. Otherwise it is a private one (internal/localpg), which all test binaries of
// this checkout share: the first starts it, and it stops some seconds after the
// last has ended, however it ended. A database that cannot be had fails the test.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// poolSize is enough for a test with eight goroutines, and lets thirty such tests run
// at once on the private server's 300 connections.
const poolSize = 10

// Open returns a pool on a new database with the current schema. When the test ends
// the pool is closed and the database dropped; a connection that the test has acquired and not
// given back fails it.
func Open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(OpenURL(t))
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	cfg.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	t.Cleanup(func() { closePool(t, pool) })
	return pool
}

// OpenURL is [Open] for tests that start processes or make their own pool: it returns the URL of
// the database. What is still connected when the test ends is cut off.
func OpenURL(t testing.TB) string {
	t.Helper()
	return create(t, (*server).clone)
}

// OpenEmpty is [OpenURL] with an empty database: no schema at all.
func OpenEmpty(t testing.TB) string {
	t.Helper()
	return create(t, (*server).empty)
}

func create(t testing.TB, how func(*server, context.Context, string) error) string {
	t.Helper()
	s, err := theServer()
	if err != nil {
		t.Fatalf("storetest: %v", err)
	}
	name := s.newName()
	if err := how(s, t.Context(), name); err != nil {
		t.Fatalf("storetest: create a database for this test: %v", err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := s.drop(context.Background(), name, "WITH (FORCE)"); err != nil {
			t.Errorf("storetest: drop the database of this test: %v", err)
		}
	})
	return s.url(name)
}

// closePool closes the pool, which waits for every connection to come back. One that
// never does would hang the test without a word.
func closePool(t testing.TB, pool *pgxpool.Pool) {
	t.Helper()
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(patience):
		t.Errorf("storetest: the test has ended and %d connections of its pool are still in use: "+
			"rows not closed, a transaction not ended, or a goroutine that runs on", pool.Stat().AcquiredConns())
	}
}

// patience is how long goroutines that a test has told to stop may take.
var patience = 10 * time.Second

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
