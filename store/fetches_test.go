package store_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const paymentOne = "payment/1"

func pings(objects ...string) []store.Announcement {
	list := make([]store.Announcement, len(objects))
	for i, o := range objects {
		list[i] = store.Announcement{Account: account, Source: "mollie", Gateway: "mollie-classic", Object: o}
	}
	return list
}

func announce(t *testing.T, s *store.Store, objects ...string) store.Announced {
	t.Helper()
	a, err := s.Announce(t.Context(), pings(objects...))
	require.NoError(t, err)
	return a
}

func claimFetch(t *testing.T, s *store.Store, object string) *store.FetchClaim {
	t.Helper()
	c, err := s.ClaimFetch(t.Context(), account, "mollie", object, lease)
	require.NoError(t, err)
	return c
}

func settleFetch(t *testing.T, s *store.Store, c *store.FetchClaim, a store.FetchAnswer) store.FetchSettled {
	t.Helper()
	require.NotNil(t, c)
	out, err := s.SettleFetch(t.Context(), *c, a)
	require.NoError(t, err)
	return out
}

type fetchRow struct {
	State     string
	Again     bool
	Due       time.Duration // until next_at; 0 if none
	Claimed   bool
	Attempts  int
	Unchanged int
	Digest    string
	Error     string
}

func readFetch(t *testing.T, pool *pgxpool.Pool, object string) fetchRow {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `
		SELECT state, again, coalesce(next_at - clock_timestamp(), '0'), claimed_until IS NOT NULL, attempts, unchanged,
			coalesce(last_digest, ''), coalesce(last_error, '')
		FROM fetches WHERE account_id = $1 AND source_id = 'mollie' AND object = $2`, account, object)
	f, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[fetchRow])
	require.NoError(t, err, object)
	return f
}

// fetchJobs is how many jobs there are for an object, and deleteFetchJobs takes them all away.
func fetchJobs(t *testing.T, pool *pgxpool.Pool, object string) int {
	t.Helper()
	return count(t, pool, `river_job WHERE kind = 'fetch' AND queue = 'fetch' AND args ->> 'object' = $1`, object)
}

func deleteFetchJobs(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	exec(t, pool, `DELETE FROM river_job WHERE kind = 'fetch'`)
}

// shift moves all times of all fetches into the past: the tests' way to let time pass.
func shift(t *testing.T, pool *pgxpool.Pool, by time.Duration) {
	t.Helper()
	exec(t, pool, `UPDATE fetches SET next_at = next_at - $1::interval, announced_at = announced_at - $1::interval,
		asked_at = asked_at - $1::interval, claimed_until = claimed_until - $1::interval, settled_at = settled_at - $1::interval`, by)
}

func TestAnnouncementsCoalesce(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.Equal(t, store.Announced{Stored: 1}, announce(t, s, paymentOne, paymentOne))
	for range 20 {
		require.Equal(t, store.Announced{Known: 1}, announce(t, s, paymentOne))
	}
	require.Equal(t, 1, fetchJobs(t, pool, paymentOne))

	c := claimFetch(t, s, paymentOne)
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, "mollie-classic", c.Gateway)
	require.Nil(t, claimFetch(t, s, paymentOne), "one call is out at a time")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, err := s.Announce(t.Context(), pings(paymentOne))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Equal(t, 1, fetchJobs(t, pool, paymentOne), "the settle asks for the next")
	require.Equal(t, store.FetchSettled{Again: true}, settleFetch(t, s, c, store.FetchAnswer{Done: true, Digest: "paid"}))
	require.Equal(t, 2, fetchJobs(t, pool, paymentOne))

	c = claimFetch(t, s, paymentOne)
	require.Equal(t, "paid", c.Digest)
	require.Equal(t, 1, c.Attempt)
	require.Equal(t, store.FetchSettled{}, settleFetch(t, s, c, store.FetchAnswer{Done: true, Digest: "paid"}))
	require.Nil(t, claimFetch(t, s, paymentOne))
	require.Equal(t, 2, fetchJobs(t, pool, paymentOne), "a hundred announcements were one more call")
	require.Equal(t, fetchRow{State: "done", Digest: "paid", Unchanged: 1}, readFetch(t, pool, paymentOne))
}

// Whoever announces one object on and on, with nothing new behind it, has it asked about less and less often.
func TestPauseAfterCallsThatBroughtNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	ask := func(digest string) {
		t.Helper()
		announce(t, s, paymentOne)
		shift(t, pool, time.Minute)
		settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Done: true, Digest: digest})
	}
	due := func() time.Duration {
		t.Helper()
		announce(t, s, paymentOne)
		return readFetch(t, pool, paymentOne).Due
	}
	ask("open")
	require.LessOrEqual(t, due(), time.Duration(0), "it was news")
	for _, want := range []int{1, 2, 4, 8, 16, 32, 32} {
		ask("open")
		got := due()
		require.InDelta(t, want, got.Seconds(), 0.9)
	}
	ask("paid")
	require.LessOrEqual(t, due(), time.Duration(0), "there was news again")
}

func TestSettleFetch(t *testing.T) {
	t.Parallel()

	t.Run("Retry", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		out := settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Wait: time.Hour, Err: "503"})
		require.Equal(t, store.FetchSettled{}, out)
		f := readFetch(t, pool, paymentOne)
		require.InDelta(t, time.Hour.Seconds(), f.Due.Seconds(), 5)
		f.Due = 0
		require.Equal(t, fetchRow{State: "open", Attempts: 1, Error: "503"}, f)
		require.Equal(t, store.Announced{Known: 1}, announce(t, s, paymentOne))
		require.Nil(t, claimFetch(t, s, paymentOne), "an announcement does not cut the wait short")
		require.Equal(t, 1, count(t, pool, `river_job WHERE kind = 'fetch' AND state = 'scheduled' AND scheduled_at > now() + interval '59 min'`))
		shift(t, pool, time.Hour)
		require.Equal(t, 2, claimFetch(t, s, paymentOne).Attempt)
	})

	t.Run("AnotherFailureCountsAnew", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		for i, want := range []struct {
			failing string
			attempt int
		}{{"down", 1}, {"down", 2}, {"gone", 3}, {"gone", 2}, {"down", 3}, {"down", 2}} {
			c := claimFetch(t, s, paymentOne)
			require.Equal(t, want.attempt, c.Attempt, "%d", i)
			settleFetch(t, s, c, store.FetchAnswer{Failing: want.failing, Err: "no"})
		}
		require.Equal(t, "down", claimFetch(t, s, paymentOne).Failing)
		require.Equal(t, 3, readFetch(t, pool, paymentOne).Attempts)
	})

	t.Run("AFreeAttemptDoesNotCount", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Free: true, Err: "later"})
		require.Equal(t, 0, readFetch(t, pool, paymentOne).Attempts)
		require.Equal(t, 1, claimFetch(t, s, paymentOne).Attempt)
	})

	t.Run("GivenUpUntilItIsAnnounced", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		out := settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Dead: true, Err: "404"})
		require.Equal(t, store.FetchSettled{Dead: true}, out)
		require.Equal(t, fetchRow{State: "dead", Attempts: 1, Error: "404"}, readFetch(t, pool, paymentOne))
		require.Equal(t, store.Announced{Stored: 1}, announce(t, s, paymentOne))
		require.Equal(t, 1, claimFetch(t, s, paymentOne).Attempt)
	})

	t.Run("AnnouncedDuringTheLastAttempt", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		c := claimFetch(t, s, paymentOne)
		announce(t, s, paymentOne)
		out := settleFetch(t, s, c, store.FetchAnswer{Dead: true, Wait: time.Minute, Err: "404"})
		require.Equal(t, store.FetchSettled{}, out)
		f := readFetch(t, pool, paymentOne)
		require.Equal(t, "open", f.State)
		require.Greater(t, f.Due, 50*time.Second)
	})

	t.Run("OnlyTheFenceDecides", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		announce(t, s, paymentOne)
		first := claimFetch(t, s, paymentOne)
		require.False(t, first.Expired)
		shift(t, pool, lease+time.Second)
		second := claimFetch(t, s, paymentOne)
		require.True(t, second.Expired)
		require.Equal(t, 2, second.Attempt)
		require.True(t, second.AskedAt.After(first.AskedAt))
		before := readFetch(t, pool, paymentOne)
		before.Due = 0
		require.Equal(t, store.FetchSettled{Stale: true}, settleFetch(t, s, first, store.FetchAnswer{Done: true, Digest: "old"}))
		after := readFetch(t, pool, paymentOne)
		after.Due = 0
		require.Equal(t, before, after)
		settleFetch(t, s, second, store.FetchAnswer{Done: true, Digest: "new"})
		require.Equal(t, store.FetchSettled{Stale: true}, settleFetch(t, s, second, store.FetchAnswer{Done: true, Digest: "new"}))
		require.Equal(t, fetchRow{State: "done", Digest: "new"}, readFetch(t, pool, paymentOne))
	})
}

// The ticker's half of the promise: jobs that were deleted and claims whose process died are asked for again.
func TestRenewFetches(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	renewed := func() map[string]int {
		t.Helper()
		n, err := s.RenewFetches(t.Context(), 2, 5*time.Second)
		require.NoError(t, err)
		return n
	}
	for i := range 3 {
		announce(t, s, fmt.Sprintf("payment/%d", i))
	}
	_, err := s.Announce(t.Context(), []store.Announcement{{Account: "beta", Source: "b", Gateway: "g", Object: paymentOne}})
	require.NoError(t, err)
	deleteFetchJobs(t, pool)
	require.Empty(t, renewed(), "not late yet")
	shift(t, pool, 6*time.Second)
	require.Equal(t, map[string]int{account: 2, "beta": 1}, renewed())
	require.Equal(t, map[string]int{account: 1}, renewed(), "the rest, and none twice")
	require.Empty(t, renewed())
	require.Equal(t, 4, count(t, pool, `river_job WHERE kind = 'fetch'`))

	// While an older job waits in the queue, rows may be waiting for it.
	shift(t, pool, time.Minute)
	exec(t, pool, `UPDATE river_job SET scheduled_at = now() - interval '1 hour' WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'fetch')`)
	require.Empty(t, renewed(), "a backlog is not enqueued once more at every tick")

	deleteFetchJobs(t, pool)
	exec(t, pool, `DELETE FROM fetches WHERE object <> $1 OR account_id <> $2`, paymentOne, account)
	c := claimFetch(t, s, paymentOne)
	require.Empty(t, renewed(), "the call is out")
	shift(t, pool, lease+6*time.Second)
	require.Equal(t, map[string]int{account: 1}, renewed(), "nobody settled it")
	require.Equal(t, store.FetchSettled{Stale: true}.Stale, settleFetch(t, s, &store.FetchClaim{
		Account: c.Account, Source: c.Source, Object: c.Object, Fence: c.Fence - 1,
	}, store.FetchAnswer{Done: true}).Stale)
	require.True(t, claimFetch(t, s, paymentOne).Expired)
}

// pointer is a signed event that only names an object.
func pointer(id, object string) store.Event {
	return store.Event{Account: account, Source: "mollie", Payload: []byte(id), Event: order.Event{
		ID: id, Type: "payment.changed", At: day, Realm: "mollie-classic:live", Fetch: object,
	}}
}

func TestEventsWaitForTheirFetch(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	outcomes := func() (all []string) {
		t.Helper()
		rows, _ := pool.Query(t.Context(), `SELECT event_id || ' ' || outcome || ' ' || reason FROM processed_events ORDER BY 1`)
		all, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return all
	}
	res := apply(t, s, pointer("evt_1", paymentOne), pointer("evt_2", paymentOne), pointer("evt_3", "payment/2"))
	for _, r := range res {
		require.Equal(t, store.Waiting, r.Outcome)
	}
	require.Equal(t, store.Duplicate, apply(t, s, pointer("evt_1", paymentOne))[0].Outcome)
	other := pointer("evt_1", paymentOne)
	other.Source = "elsewhere"
	apply(t, s, other)
	announce(t, s, paymentOne)
	c := claimFetch(t, s, paymentOne)
	apply(t, s, pointer("evt_4", paymentOne)) // what it is about may have happened after the call began

	settleFetch(t, s, c, store.FetchAnswer{Err: "503"})
	require.Equal(t, 5, count(t, pool, `processed_events WHERE outcome = 'waiting'`), "nothing was learned")
	waiting, err := s.FindEvents(t.Context(), account, "mollie", "evt_1")
	require.NoError(t, err)
	require.Equal(t, "503", waiting[0].Asking.LastError)
	require.Equal(t, 1, waiting[0].Asking.Attempts)
	announce(t, s, paymentOne)
	exec(t, pool, `UPDATE fetches SET asked_at = $1`, c.AskedAt)
	c2 := claimFetch(t, s, paymentOne)
	c2.AskedAt = c.AskedAt
	require.Equal(t, 2, settleFetch(t, s, c2, store.FetchAnswer{Done: true, Digest: "paid"}).Resolved)
	require.Equal(t, []string{
		"evt_1 no_change fetched: payment/1", "evt_1 waiting needs_fetch: payment/1", "evt_2 no_change fetched: payment/1",
		"evt_3 waiting needs_fetch: payment/2", "evt_4 waiting needs_fetch: payment/1",
	}, outcomes())

	events, err := s.FindEvents(t.Context(), account, "mollie", "evt_3")
	require.NoError(t, err)
	require.Equal(t, "payment/2", events[0].Fetch)
	require.Nil(t, events[0].Asking, "nobody announced it")
	n, err := s.Resume(t.Context(), account, "mollie")
	require.NoError(t, err)
	require.Zero(t, n, "they wait for an answer, not for the source")
}

func TestAllWaitingEventsAreResolved(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	for b := range 3 {
		var events []store.Event
		for i := range 100 {
			events = append(events, pointer(fmt.Sprintf("evt_%d_%d", b, i), paymentOne))
		}
		apply(t, s, events...)
	}
	announce(t, s, paymentOne)
	out := settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Done: true, Digest: "paid"})
	require.Equal(t, 300, out.Resolved)
	require.Zero(t, count(t, pool, `processed_events WHERE outcome = 'waiting'`))
}

func TestDropFetches(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	for _, o := range []string{"payment/open", "payment/done", "payment/dead", "payment/stranger"} {
		announce(t, s, o)
	}
	settleFetch(t, s, claimFetch(t, s, "payment/done"), store.FetchAnswer{Done: true, Digest: "paid"})
	settleFetch(t, s, claimFetch(t, s, "payment/dead"), store.FetchAnswer{Done: true, Digest: "paid"})
	announce(t, s, "payment/dead")
	settleFetch(t, s, claimFetch(t, s, "payment/dead"), store.FetchAnswer{Dead: true, Err: "404"})
	settleFetch(t, s, claimFetch(t, s, "payment/stranger"), store.FetchAnswer{Dead: true, Err: "404"})
	drop := func() int64 {
		t.Helper()
		n, err := s.DropFetches(t.Context(), 400*24*time.Hour)
		require.NoError(t, err)
		return n
	}
	piles, err := s.FetchPiles(t.Context())
	require.NoError(t, err)
	p := piles["mollie-classic"]
	require.Less(t, p.Oldest, time.Minute)
	p.Oldest = 0
	require.Equal(t, store.FetchPile{Open: 1, Dead: 2}, p)

	require.Zero(t, drop())
	shift(t, pool, 4*24*time.Hour)
	require.EqualValues(t, 1, drop())
	require.Zero(t, count(t, pool, `fetches WHERE object = 'payment/stranger'`))
	shift(t, pool, 400*24*time.Hour)
	require.EqualValues(t, 2, drop())
	require.Equal(t, 1, count(t, pool, `fetches WHERE object = 'payment/open'`), "what is open is never forgotten")
	piles, err = s.FetchPiles(t.Context())
	require.NoError(t, err)
	require.Greater(t, piles["mollie-classic"].Oldest, 403*24*time.Hour)
}
