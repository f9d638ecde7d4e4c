package store_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// renewal says that all of payment p was captured, for the period of a subscription that begins at start.
func renewal(id, p string, start time.Time, of ...string) store.Event {
	e := captured(id, p, "", 5000)
	e.Strength = 0 // it names no order
	e.Renewal = &order.Renewal{Of: of, Start: start}
	return e
}

// midday is noon of a day, in the zone of the recurrence.
func midday(t *testing.T, r store.NewRecurrence, d period.Date) time.Time {
	t.Helper()
	z, err := time.LoadLocation(r.TimeZone)
	require.NoError(t, err)
	return d.Start(z).Add(12 * time.Hour)
}

// paidOnce says that an order was paid by one payment, and that the merchant is told so once.
func paidOnce(t *testing.T, s *store.Store, pool *pgxpool.Pool, ref string) {
	t.Helper()
	requireOrder(t, s, ref, order.StatePaid, 5000)
	require.Equal(t, 1, count(t, pool, `order_transitions t JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id
		WHERE o.external_ref = $1 AND t.effect = 'fulfil'`, ref))
	require.Equal(t, 1, count(t, pool, "payments p JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id WHERE o.external_ref = $1", ref))
}

func TestRenewalFindsTheOrderOfItsPeriod(t *testing.T) {
	t.Parallel()
	for _, scheduleFirst := range []bool{true, false} {
		s, pool := open(t)
		n := recurring(t, pool, "club_1", 100, 30)
		name := func(days int) string { return "club_1:" + ago(n.StartsOn, -days).String() }
		paid := renewal("evt_1", "pi_1", midday(t, n, ago(n.StartsOn, -59)), "unknown", "club_1", "sub_1")

		r := create(t, s, n)
		if !scheduleFirst {
			asIfNew(t, pool, r)
			_, err := pool.Exec(t.Context(), `DELETE FROM order_transitions; DELETE FROM orders; DELETE FROM processed_events`)
			require.NoError(t, err)
			res := apply(t, s, paid)
			require.Equal(t, store.Waiting, res[0].Outcome)
			require.Equal(t, store.ReasonUnregistered, res[0].Reason, "a stub, like any order that is paid before it is registered")
			require.Equal(t, []string{name(30)}, orderRefs(t, pool))
			require.Equal(t, store.CreatedOrders{Orders: 4}, due(t, s, r))
		} else {
			require.Equal(t, store.Applied, apply(t, s, paid)[0].Outcome)
		}
		require.Len(t, orderRefs(t, pool), 4)
		paidOnce(t, s, pool, name(30))
		require.Equal(t, store.Duplicate, apply(t, s, paid)[0].Outcome)
		require.Equal(t, 1, count(t, pool, "orders WHERE captured > 0"))

		events, err := s.FindEvents(t.Context(), account, "stripe", "evt_1")
		require.NoError(t, err)
		require.Equal(t, name(30), events[0].Reference, "what is stored says which order")
		require.Equal(t, []string{"unknown", "club_1", "sub_1"}, events[0].Renewal.Of, "and why")
	}
}

func TestRenewalOfWhatDoesNotRecur(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)
	other := n
	other.Account = "other"
	create(t, s, other)
	start := midday(t, n, n.StartsOn)

	res := apply(t, s, renewal("evt_1", "pi_1", start, "club_1"))
	require.Equal(t, store.Waiting, res[0].Outcome, "another account's recurrence is none")
	require.Equal(t, store.ReasonNoReference, res[0].Reason)

	create(t, s, n)
	first := renewal("evt_2", "pi_2", start.AddDate(0, 0, -1), "club_1")
	first.Reference, first.Strength = "ord_1", order.StrengthPayment
	apply(t, s, first)
	require.Equal(t, []string{"unregistered"}, readOrder(t, pool, "ord_1").Flags, "before the first period, an event means the order that it names")
	second := renewal("evt_3", "pi_3", start, "club_1")
	second.Reference, second.Strength = "ord_1", order.StrengthPayment
	apply(t, s, second)
	paidOnce(t, s, pool, "club_1:"+n.StartsOn.String())
}

// The names that a renewal goes by are tried in turn, and the order is that of the recurrence that has one of them.
func TestRenewalByTheNameOfTheSubscription(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	byID, byRef := recurring(t, pool, "sub_1", 100, 30), recurring(t, pool, "club_1", 100, 7)
	create(t, s, byID)
	at := midday(t, byID, ago(byID.StartsOn, -35))
	apply(t, s, renewal("evt_1", "pi_1", at, "club_1", "sub_1"))
	paidOnce(t, s, pool, "sub_1:"+ago(byID.StartsOn, -30).String())

	create(t, s, byRef)
	apply(t, s, renewal("evt_2", "pi_2", at, "club_1", "sub_1"))
	paidOnce(t, s, pool, "club_1:"+ago(byID.StartsOn, -35).String())

	// A gateway that tells the day alone means that of the calendar.
	on := renewal("evt_3", "pi_3", time.Time{}, "sub_1")
	on.Renewal.On = ago(byID.StartsOn, -60).String()
	apply(t, s, on)
	paidOnce(t, s, pool, "sub_1:"+on.Renewal.On)
}

// Zones decide: the last evening of October in New York is November in UTC.
func TestRenewalInTheZoneOfTheRecurrence(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 0, 1)
	n.Interval, n.TimeZone, n.StartsOn = period.Month, "America/New_York", period.Date{Year: 2025, Month: 1, Day: 1}
	n.EndsOn = period.Date{Year: 2025, Month: 12, Day: 1}
	r := create(t, s, n)
	require.Equal(t, 12, r.Created)
	apply(t, s,
		renewal("evt_1", "pi_1", time.Date(2025, 11, 1, 3, 59, 59, 0, time.UTC), "club_1"),
		renewal("evt_2", "pi_2", time.Date(2025, 11, 1, 4, 0, 0, 0, time.UTC), "club_1"))
	paidOnce(t, s, pool, "club_1:2025-10")
	paidOnce(t, s, pool, "club_1:2025-11")

	// Money for a period that the schedule does not make any more still says which one it is for.
	require.NotNil(t, r.EndedAt)
	res := apply(t, s, renewal("evt_3", "pi_3", time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), "club_1"))
	require.Equal(t, store.ReasonUnregistered, res[0].Reason)
	requireOrder(t, s, "club_1:2026-01", order.StatePartiallyPaid, 5000, "unregistered")
}

// An event that came before the recurrence is the same event after it; reading its bytes again finds the order.
func TestRenewalBeforeItsRecurrence(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)
	early := bytesOf(t, renewal("evt_1", "pi_1", midday(t, n, n.StartsOn), "club_1"))
	require.Equal(t, store.ReasonNoReference, apply(t, s, early)[0].Reason)
	create(t, s, n)
	name := "club_1:" + n.StartsOn.String()

	again := apply(t, s, early, early)
	require.Equal(t, store.Duplicate, again[0].Outcome, "not an id that is used twice")
	require.Equal(t, 1, count(t, pool, "processed_events WHERE source_id = 'stripe'"))
	require.Equal(t, "pending", readOrder(t, pool, name).State)

	dry := reevaluate(t, s, mapping{}, false, store.ReevaluateFilter{})
	require.Len(t, dry.Events, 1)
	require.Equal(t, name, dry.Events[0].After.Order)
	require.Equal(t, "pending", readOrder(t, pool, name).State)
	reevaluate(t, s, mapping{}, true, store.ReevaluateFilter{})
	paidOnce(t, s, pool, name)

	require.Empty(t, reevaluate(t, s, mapping{}, true, store.ReevaluateFilter{}).Events, "nothing more is new")
	require.Equal(t, store.Duplicate, apply(t, s, early)[0].Outcome)
	other := early
	other.Facts = []order.Fact{{Kind: order.KindCaptured, Amount: 4000, Currency: "EUR"}}
	require.Equal(t, store.ReasonIDReused, apply(t, s, other)[0].Reason, "other facts are another meaning, as ever")
	requireOrder(t, s, name, order.StatePaid, 5000, "id_reused")
}

// What is stored needs no look-up to be folded again, whatever becomes of the recurrence.
func TestRenewalIsStoredWithItsOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)
	create(t, s, n)
	paused := renewal("evt_1", "pi_1", midday(t, n, n.StartsOn), "club_1")
	paused.Paused = true
	require.Equal(t, store.ReasonSourcePaused, apply(t, s, paused)[0].Reason)
	_, err := pool.Exec(t.Context(), `ALTER TABLE recurrences RENAME TO gone`)
	require.NoError(t, err)
	folded, err := s.Resume(t.Context(), account, "stripe")
	require.NoError(t, err)
	require.Equal(t, 1, folded)
	paidOnce(t, s, pool, "club_1:"+n.StartsOn.String())
}

// A recurrence whose zone this machine does not know stops its own events alone.
func TestRenewalInAZoneThatIsNotKnown(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	n := recurring(t, pool, "club_1", 100, 30)
	create(t, s, n)
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET time_zone = 'Mars/Base'`)
	require.NoError(t, err)
	_, err = s.Apply(t.Context(), []store.Event{captured("evt_1", "pi_1", "ord_1", 1), renewal("evt_2", "pi_2", midday(t, n, n.StartsOn), "club_1")})
	var bad *store.EventError
	require.ErrorAs(t, err, &bad)
	require.Equal(t, 1, bad.Index)
	require.ErrorContains(t, err, "Mars/Base")
	require.Zero(t, count(t, pool, "processed_events WHERE source_id = 'stripe'"))
}

// Only batches with renewals pay for the look-up: one round trip, however many they are.
func TestRenewalRoundTrips(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	var w wire
	cfg.ConnConfig.Tracer, cfg.MaxConns = &w, 1
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	n := recurring(t, pool, "club_1", 100, 30)
	create(t, s, n)

	cost := func(events ...store.Event) int64 {
		before := w.trips.Load()
		apply(t, s, events...)
		return w.trips.Load() - before
	}
	day := func(days int) period.Date { return ago(n.StartsOn, -days) }
	at := func(days int) time.Time { return midday(t, n, day(days)) }
	cost(captured("evt_1", "pi_1", "club_1:"+day(0).String(), 5000))
	plain := cost(captured("evt_2", "pi_2", "club_1:"+day(30).String(), 5000))
	cost(renewal("evt_3", "pi_3", at(0), "club_1"))
	require.Equal(t, plain+1, cost(renewal("evt_4", "pi_4", at(60), "club_1")))
	require.Equal(t, plain+1, cost(renewal("evt_5", "pi_5", at(90), "club_1"), captured("evt_6", "pi_6", "ord_6", 1),
		renewal("evt_7", "pi_7", at(61), "club_1", "sub_1")))
}
