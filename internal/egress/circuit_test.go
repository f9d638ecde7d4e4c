package egress_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/egress"
)

// hand is a clock that a test moves.
type hand struct{ d time.Duration }

func (h *hand) elapsed() time.Duration { return h.d }

func TestCircuit(t *testing.T) {
	t.Parallel()
	const url = "https://shop.example/hook"

	t.Run("OpensAfterSoManyTimeOutsInARow", func(t *testing.T) {
		t.Parallel()
		var h hand
		c := egress.NewCircuits(5, 10*time.Second, h.elapsed)
		for range 4 {
			o, _ := c.Report(url, true)
			require.False(t, o)
		}
		c.Report(url, false)
		for range 4 {
			c.Report(url, true)
		}
		require.True(t, c.Closed(url), "an answer in between")
		require.NotNil(t, c.Enter(url))
		o, _ := c.Report(url, true)
		require.True(t, o)
		require.False(t, c.Closed(url))
		require.Equal(t, 1, c.Open())
		require.Nil(t, c.Enter(url))
		require.NotNil(t, c.Enter("https://other.example/hook"), "another endpoint's calls go on")
	})

	t.Run("OneProbe", func(t *testing.T) {
		t.Parallel()
		var h hand
		c := egress.NewCircuits(1, 10*time.Second, h.elapsed)
		c.Report(url, true)
		require.Equal(t, 10*time.Second, c.Wait(url))
		h.d += 10*time.Second - 1
		require.Nil(t, c.Enter(url))
		require.EqualValues(t, 1, c.Wait(url))
		h.d++
		probe := c.Enter(url)
		require.NotNil(t, probe)
		require.Nil(t, c.Enter(url), "one at a time")
		c.Leave(probe) // it had nothing to call
		probe = c.Enter(url)
		require.NotNil(t, probe)
		o, _ := c.Report(url, true)
		require.False(t, o, "it was open")
		c.Leave(probe)
		require.Nil(t, c.Enter(url), "and is for as long again")
		h.d += 10 * time.Second
		probe = c.Enter(url)
		_, closed := c.Report(url, false)
		require.True(t, closed)
		require.True(t, c.Closed(url))
		require.NotNil(t, c.Enter(url))
		require.NotNil(t, c.Enter(url))
		c.Leave(probe)
		require.Zero(t, c.Open())
	})

	t.Run("AnOldPassDoesNotFreeTheProbe", func(t *testing.T) {
		t.Parallel()
		var h hand
		c := egress.NewCircuits(1, 10*time.Second, h.elapsed)
		before := c.Enter(url)
		c.Report(url, true)
		h.d += 10 * time.Second
		first := c.Enter(url)
		c.Report(url, false)
		c.Report(url, true)
		h.d += 10 * time.Second
		second := c.Enter(url)
		require.NotNil(t, second)
		c.Leave(before)
		c.Leave(first)
		require.Nil(t, c.Enter(url))
		c.Leave(second)
		require.NotNil(t, c.Enter(url))
	})
}
