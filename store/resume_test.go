package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func TestResumeFoldsWhatAPausedSourceStored(t *testing.T) {
	t.Parallel()
	s, pool := open(t)

	var events []store.Event
	for i := range 150 { // more than one batch
		e := captured(fmt.Sprintf("evt_%03d", i), fmt.Sprintf("pi_%d", i/2), fmt.Sprintf("ord_%d", i/2), int64(1000+i))
		e.Paused = true
		events = append(events, e)
	}
	other := events[0]
	other.Facts = []order.Fact{{Kind: order.KindCaptured, Amount: 9000, Currency: "EUR"}}
	events = append(events, other)
	for _, r := range apply(t, s, events...) {
		require.Equal(t, store.Waiting, r.Outcome)
		require.Equal(t, store.ReasonSourcePaused, r.Reason)
	}
	require.Equal(t, 0, count(t, pool, "orders"), "a paused source moves nothing")
	require.Equal(t, 151, count(t, pool, "event_payloads"), "but keeps everything")
	apply(t, s, register("ord_1", 1003))

	var folded [2]int
	var wg sync.WaitGroup
	for i := range folded {
		wg.Go(func() {
			n, err := s.Resume(t.Context(), account, "stripe")
			if err != nil {
				t.Error(err)
			}
			folded[i] = n
		})
	}
	wg.Wait()
	require.Equal(t, 151, folded[0]+folded[1])
	require.Equal(t, 0, count(t, pool, "processed_events WHERE reason = 'source_paused'"))
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, 1, count(t, pool, "river_job"))
	o := readOrder(t, pool, "ord_0")
	require.EqualValues(t, 9000, o.Captured)
	require.Equal(t, []string{"id_reused", "unregistered"}, o.Flags)

	n, err := s.Resume(t.Context(), account, "stripe")
	require.NoError(t, err)
	require.Zero(t, n)
}
