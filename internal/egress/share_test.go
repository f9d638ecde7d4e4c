package egress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/egress"
)

func TestShare(t *testing.T) {
	t.Parallel()
	acquired := func(s interface{ Acquire(string) bool }, account string) (n int) {
		for s.Acquire(account) {
			n++
		}
		return n
	}

	t.Run("AloneThreeQuarters", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(16, time.Second, h.elapsed)
		require.Equal(t, 12, acquired(s, "a"))
		s.Release("a")
		require.True(t, s.Acquire("a"))
		require.False(t, s.Acquire("a"))
	})

	t.Run("AQuarterWhileAnotherIsActive", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(16, time.Second, h.elapsed)
		require.True(t, s.Acquire("b"))
		s.Release("b")
		h.d += time.Second
		require.Equal(t, 4, acquired(s, "a"))
		h.d += time.Nanosecond
		require.Equal(t, 8, acquired(s, "a"), "the other has been quiet: twelve in all")
	})

	t.Run("AQuarterWhileAnotherIsAtWork", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(16, time.Second, h.elapsed)
		require.True(t, s.Acquire("b"))
		h.d += time.Hour
		require.Equal(t, 4, acquired(s, "a"), "its call takes long, but it is there")
	})

	t.Run("BeingTurnedAwayIsActivity", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(4, time.Second, h.elapsed)
		require.Equal(t, 3, acquired(s, "a"))
		require.True(t, s.Acquire("b"))
		require.False(t, s.Acquire("b"))
		s.Release("b")
		require.False(t, s.Keeps("a"), "three are more than its quarter now")
	})

	t.Run("AHolderGivesWayWhenAnotherComes", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(16, time.Second, h.elapsed)
		require.Equal(t, 12, acquired(s, "a"))
		require.True(t, s.Keeps("a"))
		require.True(t, s.Acquire("b"))
		for range 8 {
			require.False(t, s.Keeps("a"))
			s.Release("a")
		}
		require.True(t, s.Keeps("a"), "four are its quarter")
		require.False(t, s.Acquire("a"))
	})

	t.Run("OneWorkerIsEverybodys", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(1, time.Second, h.elapsed)
		require.True(t, s.Acquire("a"))
		require.False(t, s.Acquire("a"))
		require.True(t, s.Acquire("b"), "the queue has no more workers than that, not the share")
	})

	t.Run("WhatWasTurnedAwayIsRemembered", func(t *testing.T) {
		t.Parallel()
		var h hand
		s := egress.NewShare(4, time.Second, h.elapsed)
		require.Zero(t, s.Backlog("a"))
		acquired(s, "a") // the last one was refused
		n := s.Backlog("a")
		require.NotZero(t, n)
		s.TurnedAway("a")
		s.CaughtUp("a", n)
		require.NotZero(t, s.Backlog("a"), "one was turned away after the look that found nothing had begun")
		s.CaughtUp("a", s.Backlog("a"))
		require.Zero(t, s.Backlog("a"))
	})
}
