package torture_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/scenario/fault"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// The statements of the protocol, as they pass the wire.
var (
	sqlClaim    = wiretest.SQL(`^with claimed as \(\s*insert into idempotency_keys`)
	sqlTakeover = wiretest.SQL(`^with c as \(.*update idempotency_keys`)
	sqlBegin    = wiretest.SQL(`^begin`)
	sqlHold     = wiretest.SQL(`for no key update$`)
	sqlEffect   = wiretest.SQL(`^insert into effects`)
	sqlComplete = wiretest.SQL(`set status = 'COMPLETED'`)
	sqlRelease  = wiretest.SQL(`set status = 'FAILED'`)
	sqlCommit   = wiretest.SQL(`^commit`)
	sqlSweep    = wiretest.SQL(`^delete from idempotency_keys`)
)

// TestT64toT70_Killed kills a server with SIGKILL at every step of a call, at the wire or by its own hand, and sends the call again
// to another one: at once, and when the lock of the dead one is old. The row, both answers and the effects are those of the
// table.
func TestT64toT70_Killed(t *testing.T) {
	t.Parallel()
	killed(t, newStage(t))
}

func killed(t *testing.T, shared *stage) {
	const nothing, processing, completed = "", "PROCESSING", "COMPLETED"
	for _, c := range []struct {
		name    string
		at      wiretest.Moment
		match   wiretest.Match // where the process is killed; nil: it kills itself
		do      string         // how
		charge  bool           // a route without a transaction
		row     string         // after the kill
		effects int            // likewise
		now     string         // what a retry gets at once
		later   string         // and when the lock is old
	}{
		{name: "T64_BeforeTheClaim", do: doDie, row: nothing, now: "201*", later: "201R"},
		{name: "T64_ClaimOnItsWay", at: wiretest.Before, match: sqlClaim, row: nothing, now: "201*", later: "201R"},
		{name: "T65_ClaimCommittedUnheard", at: wiretest.After, match: sqlClaim, row: processing, now: "409", later: "201*"},
		{name: "T65_BeforeTheTransaction", at: wiretest.Before, match: sqlBegin, row: processing, now: "409", later: "201*"},
		{name: "T65_RowHeldBeforeTheHandler", at: wiretest.After, match: sqlHold, row: processing, now: "409", later: "201*"},
		{name: "T66_EffectWritten", at: wiretest.After, match: sqlEffect, row: processing, now: "409", later: "201*"},
		{name: "T67_AnswerStored", at: wiretest.Before, match: sqlCommit, row: processing, now: "409", later: "201*"},
		{name: "T68_CommittedUnheard", at: wiretest.After, match: sqlCommit, row: completed, effects: 1, now: "201R", later: "201R"},
		{name: "T68_BeforeTheFirstByte", do: doMute, row: completed, effects: 1, now: "201R", later: "201R"},
		{name: "T69_HalfOfTheBody", do: doHalf, row: completed, effects: 1, now: "201R", later: "201R"},
		{name: "T70_ChargedUnheard", charge: true, row: processing, effects: 1, now: "409", later: "201*"},
		{name: "T70_ChargedUnstored", at: wiretest.Before, match: sqlComplete, charge: true, row: processing, effects: 1, now: "409", later: "201*"},
		{name: "T70_StoredUnheard", at: wiretest.After, match: sqlComplete, charge: true, row: completed, effects: 1, now: "201R", later: "201R"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, key := shared.with(t), c.name
			call := request{key: key}
			effects := func() int { return s.effects(key) }
			if c.charge {
				call.path = chargesPath
				effects = func() int { charges, _ := s.desk.charged(); return charges }
			}
			victim := s.child()
			first := call
			switch {
			case c.do != "":
				first.do = []string{c.do}
				r := s.send(t.Context(), victim.url, first)
				require.Error(t, r.err)
				require.NotContains(t, r.body, "\n", "the whole answer")
				victim.diedByItself(t)
			case c.match == nil: // at the provider
				s.desk.onCharge = sync.OnceFunc(victim.kill)
				require.Error(t, s.send(t.Context(), victim.url, first).err)
			default:
				trap := s.wire.Trap(c.at, c.match)
				got := s.start(victim.url, first)
				trap.Wait()
				victim.kill()
				trap.Cut()
				require.Error(t, (<-got).err)
			}
			s.settled()
			require.Equal(t, c.row, s.row(key).State)
			require.Equal(t, c.effects, effects(), "effects after the kill")

			next := s.child()
			now := s.post(next.url, call)
			require.Equal(t, c.now, now.kind(), now.body)
			s.age(key)
			later := s.post(next.url, call)
			require.Equal(t, c.later, later.kind(), later.body)
			require.Equal(t, 1, effects())
			if c.later == "201*" {
				require.EqualValues(t, 2, s.row(key).Fence)
			}
			if now.code == http.StatusCreated {
				require.Equal(t, now.body, later.body)
			} else {
				now.refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
			}
			last := s.post(next.url, call)
			require.Equal(t, "201R", last.kind())
			require.Equal(t, later.body, last.body)
			if c.charge {
				_, calls := s.desk.charged()
				require.LessOrEqual(t, calls, 2)
				require.Equal(t, s.desk.charges[s.desk.calls[0]], last.id(t))
				return
			}
			require.Equal(t, 1, s.count(`SELECT count(*) FROM effects WHERE id = $1::uuid`, last.id(t)), "the answer is that of the effect")
		})
	}
}

// TestT71_KilledSweeping kills a sweep between two batches. What it has deleted is deleted, everybody else is served as before, and
// the next sweep ends it.
func TestT71_KilledSweeping(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	victim, other := s.child(), s.child()
	require.Equal(t, "201*", s.post(other.url, request{key: "live"}).kind())
	s.exec(`
		INSERT INTO idempotency_keys (account_id, scope_kind, user_id, idempotency_key, request_method, request_path, request_hash, policy,
		  status, response_code, response_raw, completed_at, expires_at)
		SELECT 'a', 'account', gen_random_uuid(), n::text, 'POST', '/', repeat('0', 64), 'strict', 'COMPLETED', 201, 'x', now(), now() - interval '1 hour'
		FROM generate_series(1, 2500) n`)
	trap := s.wire.Trap(wiretest.Before, wiretest.Nth(2, sqlSweep))
	got := s.start(victim.url, request{path: sweepPath})
	trap.Wait()
	require.Equal(t, 1501, s.count(`SELECT count(*) FROM idempotency_keys`))
	victim.kill()
	trap.Cut()
	require.Error(t, (<-got).err)
	require.Equal(t, "201R", s.post(other.url, request{key: "live"}).kind())
	require.Equal(t, "201*", s.post(other.url, request{key: "new"}).kind())
	require.Equal(t, 1502, s.count(`SELECT count(*) FROM idempotency_keys`))
	require.Equal(t, 200, s.post(other.url, request{path: sweepPath}).code)
	require.Equal(t, 2, s.count(`SELECT count(*) FROM idempotency_keys`))
	require.Equal(t, "201R", s.post(other.url, request{key: "live"}).kind())
}

// TestT72_KilledTakingOver kills a server that takes a dead one's key over: before the statement arrives, and when it is executed and
// not committed. The key is as it was, and the next one gets it.
func TestT72_KilledTakingOver(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(*stage, *child) <-chan reply{
		"BeforeTheStatement": func(s *stage, victim *child) <-chan reply {
			trap := s.wire.Trap(wiretest.Before, sqlTakeover)
			got := s.start(victim.url, request{key: "K"})
			trap.Wait()
			victim.kill()
			trap.Cut()
			return got
		},
		"BeforeItsCommit": func(s *stage, victim *child) <-chan reply {
			f, err := fault.Install(s.t.Context(), s.direct, fault.Spec{Kind: fault.HoldCommit, Verb: "UPDATE", Table: "idempotency_keys", Times: 1})
			require.NoError(s.t, err)
			got := s.start(victim.url, request{key: "K"})
			terminateHeld(s, f, victim)
			return got
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.abandonAfterClaim("K")
			s.age("K")
			before := s.row("K")
			got := kill(s, s.child())
			require.Error(t, (<-got).err)
			s.settled()
			after := s.row("K")
			before.LockAge, after.LockAge = 0, 0
			require.Equal(t, before, after, "the row is as it was")
			require.Zero(t, s.effects("K"))

			next := s.child()
			require.Equal(t, "201*", s.post(next.url, request{key: "K"}).kind())
			require.EqualValues(t, 2, s.row("K").Fence)
			require.Equal(t, "201R", s.post(next.url, request{key: "K"}).kind())
			require.Equal(t, 1, s.effects("K"))
		})
	}
}

// abandonAfterClaim leaves a key as a server does that dies after its claim.
func (s *stage) abandonAfterClaim(key string) {
	s.t.Helper()
	victim := s.child()
	trap := s.wire.Trap(wiretest.Before, sqlBegin)
	got := s.start(victim.url, request{key: key})
	trap.Wait()
	victim.kill()
	trap.Cut()
	require.Error(s.t, (<-got).err)
	s.settled()
	require.Equal(s.t, "PROCESSING", s.row(key).State)
}

// terminateHeld kills a server whose transaction stands before its commit, and the session with it: whether the session outlives
// its client is a matter of luck.
func terminateHeld(s *stage, f *fault.Fault, victim *child) {
	s.t.Helper()
	var pid int32
	require.Eventually(s.t, func() bool {
		var err error
		pid, err = f.Held(s.t.Context())
		return err == nil && pid != 0
	}, patience, tick)
	victim.kill()
	require.NoError(s.t, fault.Terminate(s.t.Context(), s.direct, pid))
}
