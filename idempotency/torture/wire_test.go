package torture_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// cut sends a request and cuts the connection of its call at a statement.
func (s *stage) cut(url string, at wiretest.Moment, match wiretest.Match, q request) reply {
	s.t.Helper()
	trap := s.wire.Trap(at, match)
	got := s.start(url, q)
	trap.Wait()
	trap.Cut()
	return <-got
}

// isDone asserts that a request was executed once, whatever became of it before, and that everybody hears so.
func (s *stage) isDone(url string, q request) {
	s.t.Helper()
	require.Equal(s.t, "201R", s.post(url, q).kind())
	require.Equal(s.t, 1, s.effects(q.key))
}

// TestT73_DownAtTheClaim: without the database nothing is executed, and the caller is told to come back.
func TestT73_DownAtTheClaim(t *testing.T) {
	t.Parallel()
	shared := newStage(t)

	t.Run("Down", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		q := request{key: t.Name(), do: []string{doGate}} // nobody opens the gate
		url := s.here(nil)
		s.wire.Down()
		s.post(url, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
		require.Empty(t, s.desk.arrived, "the handler did not run")
		s.wire.Up()
		s.desk.openGate()
		require.Equal(t, "201*", s.post(url, q).kind(), "nothing is left of it")
		s.isDone(url, q)
	})
	t.Run("PoolOfDeadConnections", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		url := s.here(nil)
		for _, key := range []string{"a", "b"} {
			require.Equal(t, "201*", s.post(url, request{key: t.Name() + key}).kind())
		}
		s.wire.Down()
		s.wire.Up()
		q := request{key: t.Name()}
		require.Equal(t, "201*", s.post(url, q).kind(), "a connection that died idle is no reason to refuse")
		s.isDone(url, q)
	})
	t.Run("Stalled", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		url := s.here(func(c *serverConfig) { c.Acquire = 100 * time.Millisecond })
		s.wire.Stall()
		q := request{key: t.Name()}
		s.post(url, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
		s.wire.Flow()
		require.Equal(t, "201*", s.insist(t.Context(), q, url).kind())
		s.isDone(url, q)
	})
	t.Run("PoolExhausted", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		url := s.here(func(c *serverConfig) { c.MaxConns, c.Acquire = 1, 100*time.Millisecond })
		// A new connection may take longer than a call may wait for one.
		require.Equal(t, "201*", s.insist(t.Context(), request{key: t.Name() + "-before"}, url).kind())
		first := s.start(url, request{key: t.Name(), do: []string{doGate}})
		s.desk.await(t)
		other := request{key: t.Name() + "-other"}
		s.post(url, other).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
		s.desk.openGate()
		require.Equal(t, "201*", (<-first).kind())
		require.Equal(t, "201*", s.post(url, other).kind())
		s.isDone(url, other)
	})
	// The claim may have reached the server or not. Neither executes anything, and neither leaves a key that hears 409: what was
	// claimed is given back at once.
	for name, at := range map[string]wiretest.Moment{"ClaimLostOnItsWay": wiretest.Before, "AnswerToTheClaimLost": wiretest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{key: t.Name()}
			s.cut(url, at, sqlClaim, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			require.Zero(t, s.effects(q.key))
			require.NotEqual(t, "PROCESSING", s.row(q.key).State)
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		})
	}
	t.Run("AnswerToTheClaimLostRelaxed", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		url := s.here(nil)
		q := request{path: relaxedPath, key: t.Name()}
		s.cut(url, wiretest.After, sqlClaim, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
		corrected := q
		corrected.body = `{"amount": 1}`
		require.Equal(t, "201*", s.post(url, corrected).kind(), "a key of relaxed that failed is free for any body")
	})
}

// TestT74_DownBeforeTheEffect: the key is claimed, and the unit of work cannot begin.
func TestT74_DownBeforeTheEffect(t *testing.T) {
	t.Parallel()
	shared := newStage(t)
	for name, c := range map[string]struct {
		at    wiretest.Moment
		match wiretest.Match
	}{
		"BeforeBegin": {wiretest.Before, sqlBegin}, "AfterTheRowIsHeld": {wiretest.After, sqlHold},
	} {
		t.Run(name+"/OneConnection", func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{key: t.Name()}
			s.cut(url, c.at, c.match, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			require.Equal(t, "FAILED", s.row(q.key).State, "given back over another connection")
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		})
		t.Run(name+"/PoolOfOne", func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(func(c *serverConfig) { c.MaxConns = 1 })
			q := request{key: t.Name()}
			s.cut(url, c.at, c.match, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			require.Equal(t, "FAILED", s.row(q.key).State, "the dead connection is not in the way of the next")
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		})
		t.Run(name+"/Database", func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{key: t.Name()}
			trap := s.wire.Trap(c.at, c.match)
			got := s.start(url, q)
			trap.Wait()
			s.wire.Down()
			trap.Cut()
			r := <-got
			r.refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			s.wire.Up()
			s.settled()
			require.Equal(t, "PROCESSING", s.row(q.key).State)
			s.post(url, q).refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
			s.age(q.key)
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		})
	}
}

// TestT75_LostDuringCommit: the connection ends while COMMIT is on its way. The caller hears what is true, or that it is not known
// and that the same key will tell; never a plain 500 that invites another key.
func TestT75_LostDuringCommit(t *testing.T) {
	t.Parallel()
	shared := newStage(t)
	for name, conns := range map[string]int32{"Pool": 4, "PoolOfOne": 1} {
		few := func(c *serverConfig) { c.MaxConns = conns }
		t.Run("Committed/"+name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(few)
			q := request{key: t.Name()}
			r := s.cut(url, wiretest.After, sqlCommit, q)
			require.Equal(t, "201*", r.kind(), r.body)
			again := s.post(url, q)
			require.Equal(t, "201R", again.kind())
			require.Equal(t, r.body, again.body)
			s.isDone(url, q)
		})
		t.Run("RolledBack/"+name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(few)
			q := request{key: t.Name()}
			s.cut(url, wiretest.Before, sqlCommit, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeOutcomeUnknown)
			require.Zero(t, s.effects(q.key))
			require.Equal(t, "201*", s.post(url, q).kind(), "it is known by then that it was not committed")
			s.isDone(url, q)
		})
	}
	// The server is at the COMMIT when the wire breaks, and ends it later. As long as it has not, nobody may say that it has
	// not been done, and nobody gets the key, however old its lock.
	t.Run("UndecidedAtTheServer", func(t *testing.T) {
		t.Parallel()
		s := newStage(t) // its clock and its trigger are for all who use it
		s.stopClock()
		letGo := s.holdCommits()
		url := s.here(func(c *serverConfig) { c.Statement = 2 * time.Second })
		q := request{key: t.Name()}
		got := s.start(url, q)
		s.eventually(`SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND objid = 75 AND NOT granted)`)
		s.wire.LoseCancels() // or what the server is at ends with the wire
		s.wire.Down()
		s.wire.Up()
		s.pass(time.Hour)
		// The call looks what became of it, and finds the row held by the session that is still at it: once for as long as a
		// statement may take, and again.
		for range 2 {
			r := s.post(url, q)
			require.Contains(t, []int{http.StatusConflict, http.StatusServiceUnavailable}, r.code, r.body)
		}
		require.Eventually(t, func() bool { return s.seen(sqlRelease) > 1 }, patience, tick)
		require.Empty(t, got, "nobody knows")
		require.Zero(t, s.effects(q.key))
		letGo()
		r := <-got
		require.Equal(t, "201*", r.kind(), r.body)
		s.isDone(url, q)
	})
}

// seen is how many statements have passed the wire that match.
func (s *stage) seen(m wiretest.Match) (n int) {
	for _, statement := range s.wire.Seen() {
		if m(statement) {
			n++
		}
	}
	return n
}

// TestT75andT77_WhileTheDatabaseIsAway: three calls lose the database for longer than they can wait, before and after their COMMIT, and
// before their answer is stored that needs no COMMIT. None of them says what it does not know.
func TestT75andT77_WhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	url := s.here(nil)
	committed, rolledBack, charged := request{key: "committed"}, request{key: "rolled-back"}, request{path: chargesPath, key: "charged"}
	// One after another, so that each trap is for one of them.
	after := s.wire.Trap(wiretest.After, sqlCommit)
	gotCommitted := s.start(url, committed)
	after.Wait()
	before := s.wire.Trap(wiretest.Before, sqlCommit)
	gotRolledBack := s.start(url, rolledBack)
	before.Wait()
	s.desk.onCharge = s.wire.Down
	gotCharged := s.start(url, charged)
	require.Eventually(t, func() bool { _, calls := s.desk.charged(); return calls == 1 }, patience, tick)
	after.Cut()
	before.Cut()

	for _, got := range []<-chan reply{gotCommitted, gotRolledBack} {
		r := <-got
		r.refused(t, http.StatusServiceUnavailable, idempotency.CodeOutcomeUnknown)
	}
	first := <-gotCharged
	require.Equal(t, "201*", first.kind(), "what was done is told")
	require.Equal(t, "not-stored", first.header.Get(idempotency.HeaderWarning))

	s.desk.onCharge = nil
	s.wire.Up()
	s.settled()
	require.Equal(t, "201R", s.post(url, committed).kind())
	s.isDone(url, committed)
	for _, q := range []request{rolledBack, charged} {
		require.Equal(t, "PROCESSING", s.row(q.key).State)
		s.post(url, q).refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
		s.age(q.key)
		require.Equal(t, "201*", s.post(url, q).kind())
		require.Equal(t, "201R", s.post(url, q).kind())
	}
	s.isDone(url, rolledBack)
	require.Equal(t, first.id(t), s.post(url, charged).id(t), "the provider knows the outbound key")
	charges, calls := s.desk.charged()
	require.Equal(t, []int{1, 2}, []int{charges, calls})
}

// holdCommits has every transaction that stores an answer stand at its end, until the returned func is called.
func (s *stage) holdCommits() (letGo func()) {
	s.t.Helper()
	conn, err := pgx.Connect(s.t.Context(), s.url)
	require.NoError(s.t, err)
	_, err = conn.Exec(s.t.Context(), `SELECT pg_advisory_lock(75)`)
	require.NoError(s.t, err)
	s.exec(`CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_advisory_xact_lock_shared(75); RETURN NULL; END $$`)
	s.exec(`
		CREATE CONSTRAINT TRIGGER stay AFTER UPDATE ON idempotency_keys DEFERRABLE INITIALLY DEFERRED
		FOR EACH ROW WHEN (NEW.status = 'COMPLETED') EXECUTE FUNCTION stay()`)
	return func() { require.NoError(s.t, conn.Close(context.Background())) }
}

// TestT61_WhatIsNotKnownToBeOursIsNotReleased: a takeover is lost on its way, and another call's takes its place. The first must not
// take the key from the second, whose fence is the one that it would have got.
func TestT61_WhatIsNotKnownToBeOursIsNotReleased(t *testing.T) {
	t.Parallel()
	shared := newStage(t)
	for name, path := range map[string]string{"WithATransaction": ordersPath, "Without": chargesPath} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{path: path, key: t.Name()}
			failing := q
			failing.do = []string{doFail}
			require.Equal(t, "500*", s.post(url, failing).kind())
			trap := s.wire.Trap(wiretest.Before, sqlTakeover)
			lost := s.start(url, q)
			trap.Wait()

			held := q
			held.do = []string{doGate}
			got := s.start(url, held)
			s.desk.await(t)
			trap.Cut()
			r := <-lost
			require.Contains(t, []int{http.StatusConflict, http.StatusServiceUnavailable}, r.code, r.body)
			require.Equal(t, "PROCESSING", s.row(q.key).State, "it is not the lost call's")
			s.post(url, q).refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
			s.desk.openGate()
			require.Equal(t, "201*", (<-got).kind())
			require.Equal(t, "201R", s.post(url, q).kind())
		})
	}
}

// TestT73_LostTakingOver: a call that does not hear whether it has taken a key over executes nothing. If it has, the key is locked
// until that lock is old in turn.
func TestT73_LostTakingOver(t *testing.T) {
	t.Parallel()
	shared := newStage(t)
	for name, at := range map[string]wiretest.Moment{"OnItsWay": wiretest.Before, "Unheard": wiretest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{key: t.Name()}
			require.Equal(t, "500*", s.post(url, request{key: q.key, do: []string{doFail}}).kind())
			s.cut(url, at, sqlTakeover, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeUnavailable)
			if at == wiretest.After {
				s.post(url, q).refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
				s.age(q.key)
			}
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		})
	}
}

// TestT77_StoreLostAfterAnEffectElsewhere: without a transaction, what is done is done. The answer is stored as soon as that is
// possible; if it is not, the caller gets it anyway, with a warning.
func TestT77_StoreLostAfterAnEffectElsewhere(t *testing.T) {
	t.Parallel()
	shared := newStage(t)
	for name, at := range map[string]wiretest.Moment{"StoreLostOnItsWay": wiretest.Before, "AnswerToTheStoreLost": wiretest.After} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			url := s.here(nil)
			q := request{path: chargesPath, key: t.Name()}
			r := s.cut(url, at, sqlComplete, q)
			require.Equal(t, "201*", r.kind())
			require.Empty(t, r.header.Get(idempotency.HeaderWarning))
			again := s.post(url, q)
			require.Equal(t, "201R", again.kind())
			require.Equal(t, r.body, again.body)
			charges, calls := s.desk.charged()
			require.Equal(t, []int{1, 1}, []int{charges, calls})
		})
	}
	t.Run("DatabaseComesBack", func(t *testing.T) {
		t.Parallel()
		s := shared.with(t)
		url := s.here(nil)
		q := request{path: chargesPath, key: t.Name()}
		s.desk.onCharge = s.wire.Down
		got := s.start(url, q)
		require.Eventually(t, func() bool { _, calls := s.desk.charged(); return calls == 1 && s.wire.Connections() == 0 }, patience, tick)
		s.wire.Up()
		r := <-got
		require.Equal(t, "201*", r.kind())
		require.Empty(t, r.header.Get(idempotency.HeaderWarning))
		require.Equal(t, "201R", s.post(url, q).kind())
	})
}
