package store_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// A flood of objects that nobody knows makes a bounded number of rows and jobs, and does not keep out those that were
// found before.
func TestAnnouncementsAreBounded(t *testing.T) {
	t.Parallel()
	const limit = 20
	s, pool := openWith(t, store.Options{MaxOpenFetches: limit})
	announce(t, s, "payment/known")
	settleFetch(t, s, claimFetch(t, s, "payment/known"), store.FetchAnswer{Done: true, Digest: "paid"})

	var wg sync.WaitGroup
	var mu sync.Mutex
	var sum store.Announced
	for g := range 8 {
		wg.Go(func() {
			for i := range 10 {
				a, err := s.Announce(t.Context(), pings(fmt.Sprintf("payment/%d-%d", g, i), fmt.Sprintf("payment/%d-%d-b", g, i)))
				require.NoError(t, err)
				mu.Lock()
				sum.Stored += a.Stored
				sum.Dropped += a.Dropped
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	require.Equal(t, store.Announced{Stored: limit, Dropped: 160 - limit}, sum)
	require.Equal(t, limit, count(t, pool, `fetches WHERE state = 'open'`))
	require.Equal(t, limit+1, count(t, pool, `river_job WHERE kind = 'fetch'`))

	require.Equal(t, store.Announced{Stored: 1}, announce(t, s, "payment/known"))
	require.Equal(t, store.Announced{Dropped: 1}, announce(t, s, "payment/new"))
	a, err := s.Announce(t.Context(), []store.Announcement{{Account: account, Source: "other", Gateway: "g", Object: paymentOne}})
	require.NoError(t, err)
	require.Equal(t, store.Announced{Stored: 1}, a, "the bound is a source's own")

	// One that was given up without ever being found counts like a new one.
	c, err := s.PullFetch(t.Context(), account, lease)
	require.NoError(t, err)
	settleFetch(t, s, c, store.FetchAnswer{Dead: true, Err: "404"})
	announce(t, s, "payment/new", "payment/newer")
	require.Equal(t, store.Announced{Dropped: 1}, announce(t, s, c.Object))
}

// What anybody can announce gives way to what is new, once the gateway has said that it is nothing: a burst of
// made-up ids must not shut out the payments of the next hour.
func TestInventionsGiveWay(t *testing.T) {
	t.Parallel()
	const limit = 9
	s, pool := openWith(t, store.Options{MaxOpenFetches: limit})
	unsigned := func(objects ...string) store.Announced {
		list := pings(objects...)
		for i := range list {
			list[i].Unsigned = true
		}
		a, err := s.Announce(t.Context(), list)
		require.NoError(t, err)
		return a
	}
	failed := func(object, how string, times int) {
		for range times {
			exec(t, pool, `UPDATE fetches SET next_at = clock_timestamp() WHERE object = $1`, object)
			settleFetch(t, s, claimFetch(t, s, object), store.FetchAnswer{Failing: how, Wait: time.Hour, Err: how})
		}
	}
	announce(t, s, "payment/found")
	settleFetch(t, s, claimFetch(t, s, "payment/found"), store.FetchAnswer{Done: true, Digest: "open"})
	require.Equal(t, store.Announced{Stored: limit}, unsigned("payment/found", "payment/unasked", "payment/down", "payment/denied",
		"payment/odd", "payment/page", "payment/once", "payment/twice", "payment/busy"))
	failed("payment/found", store.FetchGone, 3)
	failed("payment/down", "retry", 3)
	failed("payment/denied", "denied", 3)
	failed("payment/odd", store.FetchRefused, 5)
	failed("payment/page", store.FetchUnreadable, 4)
	failed("payment/once", store.FetchGone, 1)
	failed("payment/twice", store.FetchGone, 2)
	failed("payment/busy", store.FetchGone, 3)
	exec(t, pool, `UPDATE fetches SET next_at = clock_timestamp() WHERE object = 'payment/busy'`)
	busy := claimFetch(t, s, "payment/busy")

	require.Equal(t, store.Announced{Dropped: 1}, announce(t, s, "payment/signed"), "whoever signs comes again")
	for _, gone := range []string{"payment/odd", "payment/page"} {
		require.Equal(t, store.Announced{Stored: 1, Displaced: 1}, unsigned("payment/instead-of-"+gone[8:]))
		require.Zero(t, count(t, pool, `fetches WHERE object = $1`, gone))
	}
	require.Equal(t, store.Announced{Stored: 1, Displaced: 1}, unsigned("payment/new1"))
	require.Zero(t, count(t, pool, `fetches WHERE object = 'payment/twice'`), "the one that was asked about most often")
	require.Equal(t, store.Announced{Stored: 1, Displaced: 1, Dropped: 2}, unsigned("payment/new2", "payment/new3", "payment/new4"))
	require.Zero(t, count(t, pool, `fetches WHERE object = 'payment/once'`))
	require.Equal(t, store.Announced{Dropped: 1}, unsigned("payment/new5"))
	require.Equal(t, limit, count(t, pool, `fetches WHERE state = 'open'`))
	for _, o := range []string{"found", "unasked", "down", "denied", "busy", "new1", "new2"} {
		require.Equal(t, 1, count(t, pool, `fetches WHERE object = $1`, "payment/"+o), o)
	}
	require.False(t, settleFetch(t, s, busy, store.FetchAnswer{Done: true, Digest: "paid"}).Stale)
	require.Nil(t, claimFetch(t, s, "payment/twice"), "its job finds nothing")
}

func TestAnnounceRefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	for _, o := range []string{"", "payment", "payment/", "/1", "payment/\x00", "payment/\xff", "payment/" + strings.Repeat("1", 512)} {
		_, err := s.Announce(t.Context(), pings(o))
		require.ErrorIs(t, err, store.ErrBadAnnouncement, "%q", o)
	}
	_, err := s.Announce(t.Context(), append(pings(paymentOne), store.Announcement{Account: account, Source: "other", Gateway: "g", Object: "a/b"}))
	require.ErrorIs(t, err, store.ErrBadAnnouncement)
	require.Zero(t, count(t, pool, `fetches`))
}

// Row and job commit together, or neither does.
func TestAnnounceCommitsRowAndJob(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"river_job", "fetches"} {
		s, pool := open(t)
		sabotage(t, pool, "INSERT", table, "XX000", 1)
		_, err := s.Announce(t.Context(), pings(paymentOne))
		require.Error(t, err, table)
		require.Zero(t, count(t, pool, `fetches`))
		require.Zero(t, count(t, pool, `river_job`))
		require.Equal(t, store.Announced{Stored: 1}, announce(t, s, paymentOne))
		require.Equal(t, 1, fetchJobs(t, pool, paymentOne))
	}
}
