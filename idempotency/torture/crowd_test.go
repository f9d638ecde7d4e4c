package torture_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// crowd is how many callers send one request at the same time. The servers have four connections to the database each.
const crowd = 100

// everybody sends a request crowd times at once, in turns to the servers.
func (s *stage) everybody(ctx context.Context, q request, servers ...*child) <-chan reply {
	all := make(chan reply, crowd)
	for i := range crowd {
		go func() { all <- s.send(ctx, servers[i%len(servers)].url, q) }()
	}
	return all
}

// atTheGate returns the server whose handler stands at the gate, and the others.
func (s *stage) atTheGate(servers ...*child) (owner *child, others []*child) {
	s.t.Helper()
	pid := s.desk.await(s.t)
	for _, c := range servers {
		if c.pid() == pid {
			owner = c
		} else {
			others = append(others, c)
		}
	}
	require.NotNil(s.t, owner, "a server that is none of ours")
	return owner, others
}

// TestT51_ACrowdAtTwoServers: of a hundred at once one is executed, and all others hear 409 while it lasts; afterwards all hear the
// same.
func TestT51_ACrowdAtTwoServers(t *testing.T) {
	t.Parallel()
	crowdAtTwoServers(t, newStage(t))
}

func crowdAtTwoServers(t *testing.T, s *stage) {
	one, two := s.child(), s.child()
	call := request{key: t.Name()}
	held := call
	held.do = []string{doGate}
	got := s.everybody(t.Context(), held, one, two)
	s.atTheGate(one, two)
	for range crowd - 1 {
		r := <-got
		r.refused(t, http.StatusConflict, idempotency.CodeKeyInProgress)
	}
	s.desk.openGate()
	first := <-got
	require.Equal(t, "201*", first.kind())
	again := s.everybody(t.Context(), call, one, two)
	for range crowd {
		r := <-again
		require.Equal(t, "201R", r.kind())
		require.Equal(t, first.body, r.body)
	}
	require.Equal(t, 1, s.effects(t.Name()))
	require.Empty(t, s.desk.arrived)
}

// TestT51_ACrowdAndAKill kills one of two servers with SIGKILL while the crowd arrives, and starts another in its place. Everybody
// insists until they have an answer: it is one, there was one effect, and nobody hears 409 for ever.
func TestT51_ACrowdAndAKill(t *testing.T) {
	t.Parallel()
	crowdAndAKill(t, newStage(t))
}

func crowdAndAKill(t *testing.T, shared *stage) {
	for _, c := range []struct {
		name  string
		owner bool // is killed, or else the server that is not executing it
	}{{"OfTheOwner", true}, {"OfTheOther", false}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := shared.with(t)
			one, two := s.child(), s.child()
			held := request{key: c.name, do: []string{doGate}}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			got := s.everybody(ctx, held, one, two)
			owner, others := s.atTheGate(one, two)
			victim, survivor := owner, others[0]
			if !c.owner {
				victim, survivor = survivor, victim
			}
			victim.kill()
			executed := 0
			if c.owner {
				// The session may outlive the process for a moment; while it does, nobody gets the key.
				s.eventually(`SELECT count(*) = 1 FROM idempotency_keys WHERE idempotency_key = $1 AND status = 'PROCESSING'`, c.name)
				s.age(c.name)
			} else {
				s.desk.openGate()
			}
			next := s.child()
			all := make(chan reply, crowd)
			for range crowd {
				go func() {
					r := <-got
					if r.err != nil || r.code == http.StatusConflict {
						r = s.insist(ctx, held, survivor.url, next.url)
					}
					all <- r
				}()
			}
			if c.owner { // somebody takes it over, and stands at the gate in turn
				s.atTheGate(survivor, next)
				s.desk.openGate()
			}
			var body string
			for range crowd {
				r := <-all
				require.NoError(t, r.err)
				require.Equal(t, http.StatusCreated, r.code, r.body)
				if r.kind() == "201*" {
					executed++
				}
				if body == "" {
					body = r.body
				}
				require.Equal(t, body, r.body)
			}
			require.Equal(t, 1, executed)
			require.Equal(t, 1, s.effects(c.name))
			require.Empty(t, s.desk.arrived, "the handler ran once for each owner")
			again := s.everybody(t.Context(), request{key: c.name}, survivor, next)
			for range crowd {
				require.Equal(t, "201R", (<-again).kind())
			}
		})
	}
}

// stats asks a server how it is.
func (s *stage) stats(c *child) (st stats) {
	s.t.Helper()
	resp, err := s.client.Get(c.url + statsPath)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	require.NoError(s.t, json.NewDecoder(resp.Body).Decode(&st))
	return st
}

// TestT52_ACrowdThatWaits: while one is executed, all others wait, and hold no connection to the database; those who go away are
// forgotten; when the owner is killed and its lock is old one of those who wait executes it, and all of them hear the same.
func TestT52_ACrowdThatWaits(t *testing.T) {
	t.Parallel()
	crowdThatWaits(t, newStage(t))
}

func crowdThatWaits(t *testing.T, s *stage) {
	one, two := s.child(), s.child()
	waiting := func(servers ...*child) (n int64) {
		for _, c := range servers {
			n += s.stats(c).InFlight
		}
		return n
	}
	eventually := func(what string, condition func() bool) {
		t.Helper()
		require.Eventually(t, condition, patience, tick, what)
	}

	call := request{path: waitPath, key: t.Name(), do: []string{doGate}}
	got := s.everybody(t.Context(), call, one, two)
	owner, others := s.atTheGate(one, two)
	eventually("everybody waits", func() bool { return waiting(one, two) == crowd })
	eventually("one connection at the owner's", func() bool { return s.stats(owner).Acquired == 1 })
	eventually("none at the other's", func() bool { return s.stats(others[0]).Acquired == 0 })

	ctx, leave := context.WithCancel(t.Context())
	gone := s.everybody(ctx, call, others[0])
	eventually("more wait", func() bool { return waiting(one, two) == 2*crowd })
	leave()
	for range crowd {
		require.Error(t, (<-gone).err)
	}
	eventually("those who left do not wait", func() bool { return waiting(one, two) == crowd })
	require.Empty(t, got)

	owner.kill()
	for range crowd / 2 {
		require.Error(t, (<-got).err)
	}
	eventually("half of them wait", func() bool { return waiting(others...) == crowd/2 })
	require.Empty(t, got, "the lock of the dead is young")
	s.age(t.Name())
	s.atTheGate(others...)
	s.desk.openGate()
	kinds, body := map[string]int{}, ""
	for range crowd / 2 {
		r := <-got
		kinds[r.kind()]++
		if body == "" {
			body = r.body
		}
		require.Equal(t, body, r.body)
	}
	require.Equal(t, map[string]int{"201*": 1, "201R": crowd/2 - 1}, kinds)
	require.Equal(t, 1, s.effects(t.Name()))
}
