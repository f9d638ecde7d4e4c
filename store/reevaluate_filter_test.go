package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

func TestReevaluateFilter(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	one := bytesOf(t, captured("evt_1", "pi_1", "ord_1", 100))
	two := bytesOf(t, refunded("evt_2", "pi_2", 100))
	two.Source = "stripe2"
	three := bytesOf(t, captured("evt_3", "pi_3", "ord_3", 100))
	three.Facts, three.Broken = nil, "no amount"
	three = bytesOf(t, three)
	again := bytesOf(t, captured("evt_1", "pi_1", "ord_1", 300))
	apply(t, s, one, two, three)
	apply(t, s, again)
	all := []string{"evt_1", "evt_1", "evt_2", "evt_3"}
	for name, tt := range map[string]struct {
		f    store.ReevaluateFilter
		want []string
	}{
		"everything":        {store.ReevaluateFilter{}, all},
		"account":           {store.ReevaluateFilter{Account: account}, all},
		"another account":   {store.ReevaluateFilter{Account: "other"}, nil},
		"source":            {store.ReevaluateFilter{Sources: []string{"stripe2"}}, []string{"evt_2"}},
		"no source":         {store.ReevaluateFilter{Sources: []string{}}, nil},
		"type":              {store.ReevaluateFilter{Type: "refund.updated"}, []string{"evt_2"}},
		"outcome":           {store.ReevaluateFilter{Outcome: store.Quarantined}, []string{"evt_3"}},
		"reason":            {store.ReevaluateFilter{Reason: "unreadable"}, []string{"evt_3"}},
		"event":             {store.ReevaluateFilter{Event: "evt_1"}, []string{"evt_1", "evt_1"}},
		"events":            {store.ReevaluateFilter{Events: []store.EventKey{{Account: account, Source: "stripe2", ID: "evt_2"}}}, []string{"evt_2"}},
		"no events":         {store.ReevaluateFilter{Events: []store.EventKey{}}, nil},
		"since":             {store.ReevaluateFilter{Since: time.Now().Add(-time.Hour)}, all},
		"since later":       {store.ReevaluateFilter{Since: time.Now().Add(time.Hour)}, nil},
		"until":             {store.ReevaluateFilter{Until: time.Now().Add(-time.Hour)}, nil},
		"an older mapping":  {store.ReevaluateFilter{Mapping: 2}, all},
		"none that is that": {store.ReevaluateFilter{Mapping: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, err := s.CountToReevaluate(t.Context(), tt.f)
			require.NoError(t, err)
			require.Equal(t, len(tt.want), n)
			var read []string
			err = s.Reevaluate(t.Context(), store.ReevaluateOptions{Filter: tt.f, Read: func(d store.StoredDelivery) ([]store.Event, error) {
				events, err := mapping{}.read(d)
				read = append(read, events[0].ID)
				return events, err
			}})
			require.NoError(t, err)
			slices.Sort(read)
			require.Equal(t, tt.want, read)
		})
	}
}

// Events of one order are replaced together, however far apart their keys are, so that it moves once; a limit does not
// part them either, and what it left is found the next time.
func TestReevaluateKeepsAnOrderTogether(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	today := mapping{}
	var events []store.Event
	for i := range 90 { // three pages
		id := string(rune('a'+i%3)) + uuid.NewString()
		ref := "ord_" + string(rune('a'+i%30%26)) // some of every page
		events = append(events, bytesOf(t, captured(id, "pi_"+id, ref, 100)))
		today[id] = func(e *store.Event) { e.Facts[0].Amount, e.Own.Minor = 1000, 1000 }
	}
	for i := range 26 {
		events = append(events, register("ord_"+string(rune('a'+i)), 3000))
	}
	apply(t, s, events...)
	versions := count(t, pool, "order_transitions")
	first := reevaluate(t, s, today, true, store.ReevaluateFilter{Event: events[0].ID})
	require.Len(t, first.Events, 1)
	limited := 0
	require.NoError(t, s.Reevaluate(t.Context(), store.ReevaluateOptions{Read: today.read, Apply: true, Limit: 1, Each: func(r store.Reevaluated) error {
		limited += len(r.Events)
		require.Len(t, r.Orders, 1)
		return nil
	}}))
	require.Contains(t, []int{2, 3, 5, 6}, limited)
	dry := reevaluate(t, s, today, false, store.ReevaluateFilter{})
	rest := reevaluate(t, s, today, true, store.ReevaluateFilter{})
	require.Equal(t, dry.Events, rest.Events)
	require.Len(t, rest.Events, 89-limited)
	require.Equal(t, 26+1, count(t, pool, "order_transitions")-versions, "one version for each order, and one for the first event alone")
	require.Equal(t, 26, count(t, pool, "orders WHERE captured >= 3000"))
}
