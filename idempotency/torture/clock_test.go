package torture_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// stopClock gives the database a clock that stands still, and that only the test moves. The functions that tell the time are found
// in a schema of the test's before those of Postgres, by every session that begins after this; so time passes also for rows
// that somebody holds, and to the microsecond.
func (s *stage) stopClock() {
	s.t.Helper()
	s.exec(`CREATE SCHEMA clock`)
	s.exec(`CREATE TABLE clock.hand (at timestamptz NOT NULL)`)
	s.exec(`INSERT INTO clock.hand VALUES (pg_catalog.date_trunc('second', pg_catalog.now()))`)
	s.exec(`CREATE FUNCTION clock.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT at FROM clock.hand'`)
	s.exec(`CREATE FUNCTION clock.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM clock.hand'`)
	s.exec(`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = clock, public, pg_catalog', current_database()); END $$`)
	s.direct.Reset()
}

// pass moves the clock.
func (s *stage) pass(d time.Duration) {
	s.t.Helper()
	s.exec(`UPDATE clock.hand SET at = at + $1`, d)
}

// TestT80toT83_TheDatabasesClock moves the database's clock to the microsecond before and at the end of a lock, and of a key's life.
// That it can be done at all shows that no other clock counts.
func TestT80toT83_TheDatabasesClock(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.stopClock()
	url := s.here(nil)
	const instant = time.Microsecond

	for path, life := range map[string]time.Duration{ordersPath: 48 * time.Hour, relaxedPath: 24 * time.Hour} {
		key := "life" + path
		first := s.post(url, request{path: path, key: key})
		require.Equal(t, "201*", first.kind())
		s.pass(life / 2)
		require.Equal(t, "201R", s.post(url, request{path: path, key: key}).kind())
		s.pass(life/2 - instant)
		last := s.post(url, request{path: path, key: key})
		require.Equal(t, "201R", last.kind(), "replays do not prolong it, and it lasts to its end")
		require.Equal(t, first.body, last.body)
		require.Equal(t, "422", s.post(url, request{path: path, key: key, body: `{"amount":1}`}).kind())
		s.pass(instant)
		again := s.post(url, request{path: path, key: key, body: `{"amount":1}`})
		require.Equal(t, "201*", again.kind(), "it is a new key, and may stand for another request")
		require.NotEqual(t, first.id(t), again.id(t))
		s.pass(life - instant)
		require.Equal(t, "201R", s.post(url, request{path: path, key: key, body: `{"amount":1}`}).kind(), "with a life of its own")
		require.Equal(t, 2, s.effects(key))
	}

	// An owner that is alive keeps its key, however old its lock, and for longer than the key's own life.
	held := request{key: "held", do: []string{doGate}}
	got := s.start(url, held)
	s.desk.await(t)
	for _, d := range []time.Duration{30*time.Second - instant, instant, 48 * time.Hour} {
		s.pass(d)
		r := s.post(url, request{key: "held"})
		r.refused(t, 409, "idempotency_key_in_progress")
		require.Equal(t, "1", r.header.Get("Retry-After"))
	}
	require.Equal(t, 200, s.post(url, request{path: sweepPath}).code, "the sweeper leaves it alone")
	s.desk.openGate()
	require.Equal(t, "201*", (<-got).kind(), "what was done late is done")
	require.Equal(t, 1, s.effects("held"))

	// Without a transaction it is the age of the lock that counts, also when the key's own life is over meanwhile.
	alone := request{path: chargesPath, key: "alone", do: []string{doFail}}
	require.Equal(t, "500*", s.post(url, alone).kind())
	s.pass(48*time.Hour - 10*time.Second)
	alone.do = []string{doGate}
	s.desk.shut()
	got = s.start(url, alone)
	s.desk.await(t)
	s.pass(20 * time.Second)
	require.True(t, s.row("alone").Expired)
	require.Equal(t, 200, s.post(url, request{path: sweepPath}).code, "the sweeper leaves it alone")
	r := s.post(url, request{path: chargesPath, key: "alone"})
	r.refused(t, 409, "idempotency_key_in_progress")
	require.Equal(t, "10", r.header.Get("Retry-After"))
	s.desk.openGate()
	require.Equal(t, "201*", (<-got).kind())
	require.Equal(t, "201*", s.post(url, request{path: chargesPath, key: "alone"}).kind(), "its life is over")
	charges, _ := s.desk.charged()
	require.Equal(t, 2, charges)
}
