package store_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// What a person linked and what a checkout confirmed is kept where the gateway's events are read again.
func TestReevaluateKeepsWhatTheMerchantSaid(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 50000), register("ord_2", 50000), register("ord_3", 700))
	apply(t, s, bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)))
	says(t, s, "ord_2", order.Command{Link: true}, about("pi_1"))
	unknown := bytesOf(t, captured("evt_2", "pi_3", "ord_3", 700))
	unknown.Facts, unknown.Own = nil, nil
	apply(t, s, unknown)
	says(t, s, "ord_3", order.Command{Confirm: true}, about("pi_3", order.Fact{Kind: order.KindCaptured, Amount: 700, Currency: "EUR"}))
	requireOrder(t, s, "ord_3", order.StatePaid, 700)

	today := mapping{
		"evt_1": func(e *store.Event) { e.Facts[0].Amount, e.Own.Minor = 50000, 50000 },
		"evt_2": func(e *store.Event) { e.Facts, e.Own, e.Type = nil, nil, "payment_intent.created" },
	}
	done := reevaluate(t, s, today, true, store.ReevaluateFilter{})
	require.Len(t, done.Events, 2)
	requireOrder(t, s, "ord_1", order.StatePending, 0)
	requireOrder(t, s, "ord_2", order.StatePaid, 50000)
	requireOrder(t, s, "ord_3", order.StatePaid, 700)
	require.Equal(t, 0, count(t, pool, "orders WHERE flags <> '{}'"))

	// Taken back after that, the payment goes where its own event says.
	says(t, s, "", order.Command{Link: true}, about("pi_1"))
	requireOrder(t, s, "ord_1", order.StatePaid, 50000)
	requireOrder(t, s, "ord_2", order.StatePending, 0)
}
