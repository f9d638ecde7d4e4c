package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// Where a gateway did not know an object yet, a delivery that it signed is a reason to ask again soon, and less soon
// each time; what anybody may have sent is none, and what failed in another way waits as it was going to.
func TestSignedAnnouncementBringsTheNextCallForward(t *testing.T) {
	t.Parallel()
	signed := func(t *testing.T, s *store.Store) store.Announced {
		t.Helper()
		a, err := s.Announce(t.Context(), pings(paymentOne))
		require.NoError(t, err)
		return a
	}
	unsigned := func(t *testing.T, s *store.Store) store.Announced {
		t.Helper()
		list := pings(paymentOne)
		list[0].Unsigned = true
		a, err := s.Announce(t.Context(), list)
		require.NoError(t, err)
		return a
	}
	for _, tt := range []struct {
		name     string
		failing  string
		announce func(*testing.T, *store.Store) store.Announced
		forward  bool
	}{
		{"Gone", store.FetchGone, signed, true},
		{"Refused", store.FetchRefused, signed, true},
		{"Unreadable", store.FetchUnreadable, signed, true},
		{"ByAStranger", store.FetchGone, unsigned, false},
		{"Down", "retry", signed, false},
		{"Denied", "denied", signed, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			announce(t, s, paymentOne)
			for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second, 32 * time.Second} {
				settleFetch(t, s, claimFetch(t, s, paymentOne), store.FetchAnswer{Wait: time.Hour, Failing: tt.failing, Err: "404"})
				jobs := fetchJobs(t, pool, paymentOne)
				a := tt.announce(t, s)
				due := readFetch(t, pool, paymentOne).Due
				if !tt.forward {
					require.Equal(t, store.Announced{Known: 1}, a)
					require.InDelta(t, time.Hour.Seconds(), due.Seconds(), 5)
					require.Equal(t, jobs, fetchJobs(t, pool, paymentOne))
					return
				}
				require.Equal(t, store.Announced{Stored: 1}, a)
				require.InDelta(t, pause.Seconds(), due.Seconds(), 0.9)
				require.Equal(t, jobs+1, fetchJobs(t, pool, paymentOne), "somebody has to come at that time")
				require.Equal(t, store.Announced{Known: 1}, tt.announce(t, s), "once is enough")
				require.Equal(t, jobs+1, fetchJobs(t, pool, paymentOne))
				shift(t, pool, time.Minute)
			}
		})
	}
}
