package torture_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest/bouncertest"
	"github.com/paidonce/paidonce/store/storetest/wiretest"
)

// bounce puts a PgBouncer in transaction mode in front of a database. It has fewer connections than its clients, who prepare
// nothing.
func bounce(t *testing.T, url string) string {
	t.Helper()
	return bouncertest.Open(t, url, bouncertest.Options{PoolSize: 3, Params: map[string]string{"default_query_exec_mode": "exec"}})
}

// TestT78_ThroughPgBouncer runs what this package asks of servers once more, with PgBouncer in transaction mode between them and the
// wire: a session is another one in every transaction.
func TestT78_ThroughPgBouncer(t *testing.T) {
	t.Parallel()
	shared := openStage(t, &stage{bounced: true})
	for name, ask := range map[string]func(*testing.T, *stage){
		"Killed": killed, "ACrowdAtTwoServers": crowdAtTwoServers, "ACrowdAndAKill": crowdAndAKill, "ACrowdThatWaits": crowdThatWaits,
		"Behaves": behaves, "LostDuringCommit": func(t *testing.T, s *stage) {
			url := s.here(nil)
			q := request{key: t.Name()}
			// PgBouncer says that the server's connection broke, and breaks the client's.
			require.Equal(t, "201*", s.cut(url, wiretest.After, sqlCommit, q).kind())
			s.isDone(url, q)
			q.key += "-rolled-back"
			s.cut(url, wiretest.Before, sqlCommit, q).refused(t, http.StatusServiceUnavailable, idempotency.CodeOutcomeUnknown)
			require.Equal(t, "201*", s.post(url, q).kind())
			s.isDone(url, q)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, shared.with(t))
		})
	}
}

// TestBehaves is what T78 repeats, without PgBouncer.
func TestBehaves(t *testing.T) {
	t.Parallel()
	behaves(t, newStage(t))
}

// behaves asks two servers in turns for what the profiles promise.
func behaves(t *testing.T, s *stage) {
	urls := []string{s.child().url, s.child().url}
	turn := 0
	post := func(q request) reply {
		turn++
		return s.post(urls[turn%2], q)
	}
	kinds := func(want ...string) func(...request) []reply {
		return func(all ...request) (got []reply) {
			t.Helper()
			require.Len(t, all, len(want))
			for i, q := range all {
				r := post(q)
				require.Equal(t, want[i], r.kind(), "%d: %s", i, r.body)
				got = append(got, r)
			}
			return got
		}
	}
	other := `{"amount":1}`

	r := kinds("201*", "201R", "422", "201R")(request{key: "a"}, request{key: "a"}, request{key: "a", body: other}, request{key: "a", body: `{ "amount" : 5e3 }`})
	require.Equal(t, r[0].body, r[1].body)
	require.Equal(t, r[0].body, r[3].body)
	r[2].refused(t, http.StatusUnprocessableEntity, idempotency.CodeKeyReused)
	kinds("201*", "422", "201*")(request{key: "b"}, request{key: "b", path: relaxedPath}, request{key: "b", caller: "another"})

	// What is refused, and what fails.
	refuse, fail := []string{doRefuse}, []string{doFail}
	kinds("422*", "422R", "422")(request{key: "c", do: refuse}, request{key: "c"}, request{key: "c", body: other})
	require.Zero(t, s.effects("c"))
	kinds("422*", "201*", "201R", "422")(request{key: "d", path: relaxedPath, do: refuse},
		request{key: "d", path: relaxedPath, body: other}, request{key: "d", path: relaxedPath, body: other}, request{key: "d", path: relaxedPath})
	kinds("500*", "422", "201*", "201R")(request{key: "e", do: fail}, request{key: "e", body: other}, request{key: "e"}, request{key: "e"})
	kinds("500*", "201*", "201R")(request{key: "f", path: relaxedPath, do: fail},
		request{key: "f", path: relaxedPath, body: other}, request{key: "f", path: relaxedPath, body: other})
	for _, key := range []string{"d", "e", "f"} {
		require.Equal(t, 1, s.effects(key), key)
	}

	// Without a transaction.
	r = kinds("201*", "201R", "422")(request{key: "g", path: chargesPath}, request{key: "g", path: chargesPath}, request{key: "g", path: chargesPath, body: other})
	require.Equal(t, r[0].body, r[1].body)
	charges, _ := s.desk.charged()
	require.Equal(t, 1, charges)

	// In flight, and at the end of its life; then swept.
	got := s.start(urls[0], request{key: "h", do: []string{doGate}})
	s.desk.await(t)
	r = kinds("409", "422")(request{key: "h"}, request{key: "h", body: other})
	after, err := strconv.Atoi(r[0].header.Get("Retry-After"))
	require.NoError(t, err)
	require.InDelta(t, 30, after, 29)
	s.desk.openGate()
	require.Equal(t, "201*", (<-got).kind())
	kinds("201R")(request{key: "h"})
	s.exec(`UPDATE idempotency_keys SET expires_at = expires_at - $1::interval WHERE idempotency_key IN ('a', 'h')`, 48*time.Hour)
	kinds("201*", "201R")(request{key: "a", body: other}, request{key: "a", body: other})
	require.Equal(t, 2, s.effects("a"))
	require.Equal(t, http.StatusOK, post(request{path: sweepPath}).code)
	require.Equal(t, idempotency.Record{}, s.row("h"))
	require.Equal(t, "COMPLETED", s.row("a").State)
	kinds("201*")(request{key: "h"})
}
