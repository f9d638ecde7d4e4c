package torture_test

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// TestT79_TimeoutsOfTheDatabase: a time-out of the database's in a statement of the middleware's is 503, never 500, and leaves
// nothing. In one of the handler's it is the handler's to answer, but for a lock, which is worth another try.
func TestT79_TimeoutsOfTheDatabase(t *testing.T) {
	t.Parallel()
	for name, setting := range map[string]string{"LockTimeout": lockLimit, "StatementTimeout": statementLimit} {
		t.Run(name+"AtTheClaim", func(t *testing.T) {
			t.Parallel()
			s, url := stageWithLimit(t, setting)
			q := request{key: t.Name()}
			unlock := s.lockTable("idempotency_keys") // as a migration does
			s.post(url, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			unlock()
			require.Equal(t, "201*", s.insist(t.Context(), q, url).kind())
			s.isDone(url, q)
		})
		t.Run(name+"InTheHandler", func(t *testing.T) {
			t.Parallel()
			s, url := stageWithLimit(t, setting)
			q := request{key: t.Name()}
			unlock := s.lockTable("effects")
			r := s.post(url, q)
			if setting == lockLimit {
				r.refused(t, http.StatusServiceUnavailable, idempotency.CodeFailed)
			} else {
				require.Equal(t, "500*", r.kind(), "the handler's own answer")
			}
			unlock()
			require.Equal(t, "FAILED", s.row(q.key).State)
			require.Equal(t, "201*", s.insist(t.Context(), q, url).kind())
			s.isDone(url, q)
		})
	}
	t.Run("StatementTimeoutAtTheEnd", func(t *testing.T) {
		t.Parallel()
		s, url := stageWithLimit(t, statementLimit)
		s.exec(`CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$`)
		s.exec(`
			CREATE TRIGGER dawdle BEFORE UPDATE ON idempotency_keys FOR EACH ROW WHEN (NEW.status = 'COMPLETED') EXECUTE FUNCTION dawdle()`)
		q := request{key: t.Name()}
		s.post(url, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeFailed)
		require.Zero(t, s.effects(q.key))
		require.Equal(t, "FAILED", s.row(q.key).State)
		s.exec(`DROP FUNCTION dawdle CASCADE`)
		require.Equal(t, "201*", s.insist(t.Context(), q, url).kind())
		s.isDone(url, q)
	})
}

// Settings of sessions, in milliseconds. A statement has long enough for a busy machine.
const (
	lockLimit      = "lock_timeout = 100"
	statementLimit = "statement_timeout = 1000"
)

// stageWithLimit has a server whose sessions have a setting from the database, as behind a pooler.
func stageWithLimit(t *testing.T, setting string) (s *stage, url string) {
	t.Helper()
	s = newStage(t)
	s.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET ` + setting + `', current_database()); END $$`)
	return s, s.here(nil)
}

// lockTable locks a table against everybody until the returned func is called.
func (s *stage) lockTable(name string) (unlock func()) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.url)
	require.NoError(s.t, err)
	_, err = conn.Exec(s.t.Context(), `BEGIN; LOCK TABLE `+name)
	require.NoError(s.t, err)
	return func() { require.NoError(s.t, conn.Close(s.t.Context())) }
}
