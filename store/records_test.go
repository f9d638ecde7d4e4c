package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func TestTimelineTellsAll(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account, account, "other"}))
	apply(t, s, register("ord_1", 5000))
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	apply(t, s, captured("evt_2", "pi_1", "ord_1", 5000))
	other := named(captured("evt_3", "", "", 5000), "ord_1", order.StrengthPayment, "cs_1", "pi_1")
	apply(t, s, other)
	apply(t, s, captured("evt_x", "pi_x", "ord_x", 100))

	found, err := s.FindOrders(t.Context(), "", "ord_1")
	require.NoError(t, err)
	require.Len(t, found, 1)
	id := readOrder(t, pool, "ord_1").ID
	require.Equal(t, id, found[0].ID)
	byID, err := s.FindOrders(t.Context(), account, id.String())
	require.NoError(t, err)
	require.Equal(t, found, byID)
	one, err := s.GetOrder(t.Context(), account, id)
	require.NoError(t, err)
	require.Equal(t, found[0], one)

	tl, err := s.Timeline(t.Context(), account, id)
	require.NoError(t, err)
	require.Equal(t, order.StatePaid, tl.Order.State)
	require.Len(t, tl.Payments, 1)
	require.Equal(t, []string{"cs_1", "pi_1"}, tl.Payments[0].Ledger.IDs)
	var ids []string
	for _, e := range tl.Events {
		ids = append(ids, e.ID)
	}
	require.Equal(t, []string{"register:ord_1", "evt_1", "evt_2", "evt_3"}, ids)
	require.Len(t, tl.Versions, tl.Order.Version)
	require.Equal(t, "evt_1", tl.Versions[1].EventID)
	require.Equal(t, order.EffectFulfil, tl.Versions[1].Effect)
	require.False(t, tl.Now.IsZero())

	_, err = s.Timeline(t.Context(), "other", id)
	require.ErrorIs(t, err, store.ErrNotFound, "another account's order is not there")
	_, err = s.GetOrder(t.Context(), "other", id)
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.FindOrders(t.Context(), "", "ord_none")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestFindEventsAndPayload(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	delivery := uuid.Must(uuid.NewV7())
	a, b := captured("evt_a", "pi_1", "ord_1", 100), captured("evt_b", "pi_2", "ord_2", 100)
	a.Delivery, b.Delivery = delivery, delivery
	a.Payload, b.Payload = []byte("both"), []byte("both")
	a.Header, b.Header = map[string]string{"Content-Type": "application/json"}, map[string]string{"Content-Type": "application/json"}
	apply(t, s, a, b)
	changed := a
	changed.Facts = []order.Fact{{Kind: order.KindCaptured, Amount: 200, Currency: "EUR"}}
	changed.Delivery, changed.Payload = uuid.Must(uuid.NewV7()), []byte("changed")
	apply(t, s, changed)

	events, err := s.FindEvents(t.Context(), "", "", "evt_a")
	require.NoError(t, err)
	require.Len(t, events, 2, "the id and the id with other facts")
	require.EqualValues(t, 100, events[0].Facts[0].Amount)
	require.EqualValues(t, 200, events[1].Facts[0].Amount)
	for _, id := range []string{"evt_a", "evt_b"} {
		p, err := s.Payload(t.Context(), store.EventKey{Account: account, Source: "stripe", ID: id})
		require.NoError(t, err)
		require.Equal(t, "both", string(p.Body))
		require.Equal(t, "application/json", p.Header["Content-Type"])
	}
	p, err := s.Payload(t.Context(), store.EventKey{Account: account, Source: "stripe", ID: events[1].ID})
	require.NoError(t, err)
	require.Equal(t, "changed", string(p.Body))
	_, err = s.Payload(t.Context(), store.EventKey{Account: account, Source: "stripe", ID: "evt_none"})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = s.FindEvents(t.Context(), "", "", "evt_none")
	require.ErrorIs(t, err, store.ErrNotFound)
}

func TestListsPageByPage(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 100), register("ord_2", 100), captured("evt_1", "pi_1", "ord_1", 100), captured("evt_3", "pi_3", "ord_3", 100))
	_, err := pool.Exec(t.Context(), `INSERT INTO orders (account_id, id, external_ref) VALUES ($1, gen_random_uuid(), 'void')`, account)
	require.NoError(t, err)

	seen := map[string]bool{}
	var f store.OrderFilter
	for f.Limit = 1; ; {
		page, next, err := s.ListOrders(t.Context(), f)
		require.NoError(t, err)
		for _, o := range page {
			require.False(t, seen[o.Ref])
			seen[o.Ref] = true
		}
		if f.Before = next; next == uuid.Nil {
			break
		}
	}
	require.Len(t, seen, 4)
	paid, _, err := s.ListOrders(t.Context(), store.OrderFilter{Account: account, State: "paid"})
	require.NoError(t, err)
	require.Len(t, paid, 1)
	stubs, _, err := s.ListOrders(t.Context(), store.OrderFilter{Stubs: true})
	require.NoError(t, err)
	require.Len(t, stubs, 1, "a stub without a payment is void")
	require.Equal(t, "ord_3", stubs[0].Ref)
	old, _, err := s.ListOrders(t.Context(), store.OrderFilter{Older: time.Hour})
	require.NoError(t, err)
	require.Empty(t, old)

	var ids []string
	g := store.EventFilter{Limit: 3}
	for {
		page, next, err := s.ListEvents(t.Context(), g)
		require.NoError(t, err)
		for _, e := range page {
			ids = append(ids, e.ID)
		}
		if g.Before = next; next.At.IsZero() {
			break
		}
	}
	require.ElementsMatch(t, []string{"register:ord_1", "register:ord_2", "evt_1", "evt_3"}, ids)
	waiting, _, err := s.ListEvents(t.Context(), store.EventFilter{Outcome: store.Waiting, Reason: store.ReasonUnregistered, Source: "stripe"})
	require.NoError(t, err)
	require.Len(t, waiting, 1)
}

// Events that name an order and led to no payment of it are a part of what is known about it.
func TestTimelineHasWhatOnlyNamesTheOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{account, "other"}))
	broken := captured("evt_broken", "pi_1", "ord_1", 100)
	broken.Facts, broken.Own, broken.Broken = nil, nil, "its amount is -5"
	paused := captured("evt_paused", "pi_2", "ord_1", 100)
	paused.Paused = true
	ignored := captured("evt_ignored", "pi_3", "ord_1", 100)
	ignored.OnUnknown = store.OnUnknownIgnore
	waiting := captured("evt_waiting", "pi_4", "ord_1", 100)
	waiting.Strength = order.StrengthModification
	elsewhere := captured("evt_elsewhere", "pi_5", "ord_1", 100)
	elsewhere.Account, elsewhere.Paused = "other", true
	apply(t, s, broken)
	apply(t, s, paused)
	apply(t, s, ignored)
	apply(t, s, waiting)
	apply(t, s, elsewhere)

	ids := func(events []store.StoredEvent) (ids []string) {
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		return ids
	}
	four := []string{"evt_broken", "evt_paused", "evt_ignored", "evt_waiting"}
	named, err := s.EventsNaming(t.Context(), account, "", "ord_1")
	require.NoError(t, err)
	require.Equal(t, four, ids(named))
	named, err = s.EventsNaming(t.Context(), "", "stripe", "ord_1")
	require.NoError(t, err)
	require.Equal(t, append(four, "evt_elsewhere"), ids(named))

	apply(t, s, register("ord_1", 100))
	tl, err := s.Timeline(t.Context(), account, readOrder(t, pool, "ord_1").ID)
	require.NoError(t, err)
	require.Empty(t, tl.Payments)
	require.Equal(t, append(four, "register:ord_1"), ids(tl.Events))
}
