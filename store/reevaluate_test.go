package store_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// mapping is today's reading of kept bytes: by the id that they name, what [captured] and its like made, changed.
type mapping map[string]func(*store.Event)

// read is a [store.ReevaluateOptions].Read: the bytes are those of bytesOf.
func (m mapping) read(d store.StoredDelivery) ([]store.Event, error) {
	var e store.Event
	if err := json.Unmarshal(d.Body, &e.Event); err != nil {
		return nil, errors.New("not JSON")
	}
	e.Account, e.Source, e.MappingVersion = d.Account, d.Source, 2
	if change := m[e.ID]; change != nil {
		change(&e)
	}
	return []store.Event{e}, nil
}

// bytesOf gives an event bytes from which mapping.read makes it again.
func bytesOf(t *testing.T, e store.Event) store.Event {
	t.Helper()
	body, err := json.Marshal(e.Event)
	require.NoError(t, err)
	e.Payload, e.MappingVersion = body, 1
	return e
}

func reevaluate(t *testing.T, s *store.Store, m mapping, do bool, f store.ReevaluateFilter) store.Reevaluated {
	t.Helper()
	var all store.Reevaluated
	err := s.Reevaluate(t.Context(), store.ReevaluateOptions{
		Filter: f, Read: m.read, Apply: do,
		Each: func(r store.Reevaluated) error {
			all.Read += r.Read
			all.Events, all.Orders = append(all.Events, r.Events...), append(all.Orders, r.Orders...)
			all.Skipped = append(all.Skipped, r.Skipped...)
			return nil
		},
	})
	require.NoError(t, err)
	return all
}

// requireOrder says what is expected of an order, and returns it.
func requireOrder(t *testing.T, s *store.Store, ref string, state order.State, captured int64, flags ...string) store.Order {
	t.Helper()
	o, err := s.GetOrder(t.Context(), account, readOrder(t, s.Pool(), ref).ID)
	require.NoError(t, err)
	require.Equal(t, state, o.State, ref)
	require.Equal(t, captured, o.Captured, ref)
	require.ElementsMatch(t, flags, o.Flags, ref)
	return o
}

func TestReevaluateAnAmount(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	// A mapping that took two decimals where the currency has three: a tenth of the money.
	apply(t, s, register("ord_1", 50000), bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)), bytesOf(t, captured("evt_2", "pi_2", "ord_2", 700)))
	requireOrder(t, s, "ord_1", order.StatePartiallyPaid, 5000, "underpaid")
	today := mapping{"evt_1": func(e *store.Event) { e.Facts[0].Amount, e.Own.Minor = 50000, 50000 }}

	before := rowsOf(t, pool)
	dry := reevaluate(t, s, today, false, store.ReevaluateFilter{})
	require.Equal(t, before, rowsOf(t, pool), "a dry run writes nothing")
	require.Equal(t, 2, dry.Read)
	require.Len(t, dry.Events, 1)
	require.Equal(t, "evt_1", dry.Events[0].ID)
	require.EqualValues(t, 5000, dry.Events[0].Before.Facts[0].Amount)
	require.EqualValues(t, 50000, dry.Events[0].After.Facts[0].Amount)
	require.Equal(t, 1, dry.Events[0].Before.MappingVersion)
	require.Equal(t, 2, dry.Events[0].After.MappingVersion)
	require.Len(t, dry.Orders, 1)
	require.Equal(t, order.StatePartiallyPaid, dry.Orders[0].Before.State)
	require.Equal(t, order.StatePaid, dry.Orders[0].After.State)
	require.Equal(t, order.EffectNone, dry.Orders[0].Before.Owed)
	require.Equal(t, order.EffectFulfil, dry.Orders[0].After.Owed)

	done := reevaluate(t, s, today, true, store.ReevaluateFilter{})
	require.Equal(t, dry, done, "and says what will be done")
	o := requireOrder(t, s, "ord_1", order.StatePaid, 50000)
	tl, err := s.Timeline(t.Context(), account, o.ID)
	require.NoError(t, err)
	last := tl.Versions[len(tl.Versions)-1]
	require.Equal(t, store.CauseReevaluated, last.Cause)
	require.Equal(t, "evt_1", last.EventID)
	require.Equal(t, order.EffectFulfil, last.Effect)
	require.Equal(t, o.Version, last.Version)
	require.NotNil(t, o.WakeAt)
	require.Equal(t, 1, count(t, pool, "river_job"))
	require.Equal(t, 1, count(t, pool, `event_meanings WHERE event_id = 'evt_1' AND mapping_version = 1 AND outcome = 'applied'
		AND facts -> 'facts' -> 0 ->> 'amount' = '5000'`))
	require.Equal(t, 2, count(t, pool, "processed_events WHERE mapping_version = 2"), "what means the same is known to")

	again := rowsOf(t, pool)
	require.Empty(t, reevaluate(t, s, today, true, store.ReevaluateFilter{}).Events)
	require.Equal(t, again, rowsOf(t, pool), "a second time finds nothing to do")

	// Today's delivery of the same event is a duplicate of what is stored now.
	e := captured("evt_1", "pi_1", "ord_1", 5000)
	today["evt_1"](&e)
	require.Equal(t, store.Duplicate, apply(t, s, e)[0].Outcome)
}

// rowsOf are all rows of the tables that reevaluating may write.
func rowsOf(t *testing.T, pool querier) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for _, table := range []string{
		"processed_events", "event_meanings", "event_payloads", "payments", "payment_ids", "orders", "order_transitions", "river_job",
	} {
		rows, err := pool.Query(t.Context(), "SELECT x::text FROM "+table+" x ORDER BY 1")
		require.NoError(t, err)
		for rows.Next() {
			var row string
			require.NoError(t, rows.Scan(&row))
			all[table] = append(all[table], row)
		}
		require.NoError(t, rows.Err())
	}
	return all
}

func TestReevaluateAReference(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000), bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)))
	requireOrder(t, s, "ord_1", order.StatePaid, 5000)
	done := reevaluate(t, s, mapping{"evt_1": func(e *store.Event) { e.Reference = "ord_2" }}, true, store.ReevaluateFilter{})
	require.Len(t, done.Orders, 2)
	requireOrder(t, s, "ord_1", order.StatePending, 0)
	o := requireOrder(t, s, "ord_2", order.StatePaid, 5000)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_1' AND order_id = $1 AND outcome = 'applied'", o.ID))
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'canceled'"), "never called: taken back")
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'open'"))
}

// What was told stays told: the goods of an order that was never paid are taken back.
func TestReevaluateAfterTheMerchantWasTold(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)))
	work(t, s, pool)
	require.Equal(t, "fulfilled", readOrder(t, pool, "ord_1").Told)
	reevaluate(t, s, mapping{"evt_1": func(e *store.Event) {
		e.Facts[0] = order.Fact{Kind: order.KindRefunded, Ref: "re_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}
	}}, true, store.ReevaluateFilter{})
	// Nothing was ever captured, and something was delivered: that is taken back.
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "pending", o.State)
	require.Equal(t, "stop", o.Want)

	reevaluate(t, s, mapping{"evt_1": func(e *store.Event) {
		e.Facts = []order.Fact{
			{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"},
			{Kind: order.KindRefunded, Ref: "re_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"},
		}
	}}, true, store.ReevaluateFilter{})
	require.Equal(t, "refunded", readOrder(t, pool, "ord_1").State)
	work(t, s, pool)
	require.Equal(t, "revoked", readOrder(t, pool, "ord_1").Told)
}

func TestReevaluateOutcomes(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	ignored := captured("evt_ignored", "", "", 0)
	ignored.Event = order.Event{ID: "evt_ignored", Type: "t", At: day, Realm: "stripe:live", Ignored: "unknown_type"}
	broken := ignored
	broken.ID, broken.Ignored, broken.Broken = "evt_broken", "", "amount is missing"
	flagged := captured("evt_flagged", "pi_3", "ord_3", 5000)
	flagged.Facts[0].Misfit = order.MisfitMode
	waiting := captured("evt_waiting", "pi_4", "", 5000)
	counted := captured("evt_counted", "pi_5", "ord_5", 5000)
	wrong := captured("evt_wrong", "pi_6", "ord_6", 5000)
	var events []store.Event
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4", "ord_5", "ord_6"} {
		events = append(events, register(ref, 5000))
	}
	for _, e := range []store.Event{ignored, broken, flagged, waiting, counted, wrong} {
		events = append(events, bytesOf(t, e))
	}
	apply(t, s, events...)
	becomes := func(p, ref string) func(*store.Event) {
		return func(e *store.Event) {
			n := captured(e.ID, p, ref, 5000)
			e.Event = n.Event
		}
	}
	today := mapping{
		"evt_ignored": becomes("pi_1", "ord_1"), "evt_broken": becomes("pi_2", "ord_2"),
		"evt_flagged": becomes("pi_3", "ord_3"), "evt_waiting": becomes("pi_4", "ord_4"),
		"evt_counted": func(e *store.Event) { e.Event = order.Event{ID: e.ID, Type: "t", Realm: e.Realm, Ignored: "no_fact"} },
		"evt_wrong":   func(e *store.Event) { e.Broken, e.Facts, e.Payment, e.Reference = "two amounts", nil, nil, "" },
	}
	r := reevaluate(t, s, today, true, store.ReevaluateFilter{})
	require.Len(t, r.Events, 6)
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4"} {
		requireOrder(t, s, ref, order.StatePaid, 5000)
	}
	requireOrder(t, s, "ord_5", order.StatePending, 0)
	requireOrder(t, s, "ord_6", order.StatePending, 0)
	require.Equal(t, 4, count(t, pool, "processed_events WHERE outcome = 'applied' AND source_id = 'stripe' AND order_version_after > order_version_before"))
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_counted' AND outcome = 'ignored' AND reason = 'no_fact' AND order_id IS NULL"))
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_wrong' AND outcome = 'quarantined' AND reason = 'unreadable: two amounts'"))
	require.Equal(t, 2, count(t, pool, "payments WHERE order_id IS NULL AND ledger = '{}'"), "the payments of both are void")

	// And back again.
	reevaluate(t, s, mapping{}, true, store.ReevaluateFilter{})
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_broken' AND outcome = 'quarantined'"))
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_flagged' AND outcome = 'flagged' AND reason = 'mode_mismatch'"))
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_waiting' AND outcome = 'waiting' AND reason = 'no_reference'"))
	requireOrder(t, s, "ord_1", order.StatePending, 0)
	requireOrder(t, s, "ord_3", order.StatePending, 0, "mode_mismatch")
	requireOrder(t, s, "ord_4", order.StatePending, 0)
	requireOrder(t, s, "ord_5", order.StatePaid, 5000)
	requireOrder(t, s, "ord_6", order.StatePaid, 5000)
	require.Equal(t, 12, count(t, pool, "event_meanings"))
}

func TestReevaluatePartsAndMergesPayments(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	// The mapping took a customer's id for one of the payment's: three payments became one.
	apply(t, s, register("ord_1", 1000), register("ord_2", 2000))
	one := bytesOf(t, named(captured("evt_1", "", "", 1000), "ord_1", order.StrengthPayment, "pi_1", "cus_9"))
	two := bytesOf(t, named(captured("evt_2", "", "", 2000), "", 0, "pi_2", "cus_9"))
	three := bytesOf(t, named(refunded("evt_3", "", 200), "", 0, "ch_2"))
	apply(t, s, one)
	apply(t, s, two)
	apply(t, s, three)
	requireOrder(t, s, "ord_1", order.StatePaid, 2000, "overpaid")
	require.Equal(t, 1, count(t, pool, "payments WHERE order_id IS NOT NULL"))

	today := mapping{
		"evt_1": func(e *store.Event) { e.Payment = []string{"pi_1"} },
		"evt_2": func(e *store.Event) {
			e.Payment, e.Reference, e.Strength = []string{"pi_2", "ch_2"}, "ord_2", order.StrengthPayment
		},
	}
	reevaluate(t, s, today, true, store.ReevaluateFilter{})
	requireOrder(t, s, "ord_1", order.StatePaid, 1000)
	o := requireOrder(t, s, "ord_2", order.StatePartiallyRefunded, 2000)
	require.EqualValues(t, 1800, o.Kept)

	// Later events find their payment, and the id that connected them is nobody's.
	apply(t, s, named(refunded("evt_4", "", 100), "", 0, "ch_2"), named(refunded("evt_5", "", 300), "", 0, "pi_1"),
		named(captured("evt_6", "", "", 50), "", 0, "cus_9"))
	require.EqualValues(t, 1700, requireOrder(t, s, "ord_2", order.StatePartiallyRefunded, 2000).Kept)
	require.EqualValues(t, 700, requireOrder(t, s, "ord_1", order.StatePartiallyRefunded, 1000).Kept)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_6' AND reason = 'no_reference'"))
}

func TestReevaluateForgetsAConflictThatWasNone(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
	apply(t, s, bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)))
	apply(t, s, bytesOf(t, captured("evt_2", "pi_1", "ord_2", 5000)))
	requireOrder(t, s, "ord_1", order.StatePaid, 5000, "reference_conflict")
	requireOrder(t, s, "ord_2", order.StatePending, 0, "reference_conflict")
	toTwo := func(e *store.Event) { e.Reference = "ord_2" }
	reevaluate(t, s, mapping{"evt_1": toTwo}, true, store.ReevaluateFilter{})
	requireOrder(t, s, "ord_1", order.StatePending, 0)
	requireOrder(t, s, "ord_2", order.StatePaid, 5000)

	// One that is a conflict today is told, and the payment stays where an event of it still belongs.
	reevaluate(t, s, mapping{"evt_1": toTwo, "evt_2": func(e *store.Event) { e.Reference = "ord_1" }}, true, store.ReevaluateFilter{})
	requireOrder(t, s, "ord_1", order.StatePending, 0, "reference_conflict")
	requireOrder(t, s, "ord_2", order.StatePaid, 5000, "reference_conflict")
}

func TestReevaluateAnIDThatWasNotUsedTwice(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	// The old mapping read something that changes between two tries; or the event came again after the new one ran.
	apply(t, s, register("ord_1", 5000), bytesOf(t, captured("evt_1", "pi_1", "ord_1", 500)))
	apply(t, s, bytesOf(t, captured("evt_1", "pi_1", "ord_1", 5000)))
	requireOrder(t, s, "ord_1", order.StatePaid, 5000, "id_reused")
	r := reevaluate(t, s, mapping{"evt_1": func(e *store.Event) { e.Facts[0].Amount, e.Own.Minor = 5000, 5000 }}, true, store.ReevaluateFilter{})
	require.Len(t, r.Events, 1)
	requireOrder(t, s, "ord_1", order.StatePaid, 5000)
	require.Equal(t, 0, count(t, pool, "processed_events WHERE outcome = 'flagged'"))
}

func TestReevaluateLeavesAlone(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	gone := captured("evt_gone", "pi_1", "ord_1", 5000)
	gone.Payload = nil
	renamed := bytesOf(t, captured("evt_renamed", "pi_2", "ord_2", 5000))
	unread := captured("evt_unread", "pi_3", "ord_3", 5000)
	unread.Payload = []byte("no JSON")
	paused := bytesOf(t, captured("evt_paused", "pi_4", "ord_4", 5000))
	paused.Paused = true
	own := register("ord_1", 5000)
	own.Payload = bytesOf(t, captured("evt_x", "pi_9", "ord_9", 1)).Payload
	apply(t, s, own, gone, renamed, unread, paused)
	before := rowsOf(t, pool)
	r := reevaluate(t, s, mapping{
		"evt_renamed": func(e *store.Event) { e.ID = "evt_other" },
		"evt_paused":  func(e *store.Event) { e.Paused = true },
	}, false, store.ReevaluateFilter{})
	codes := map[string]string{}
	for _, k := range r.Skipped {
		codes[k.ID] = k.Code
	}
	require.Equal(t, map[string]string{
		"evt_gone": store.SkipPayloadGone, "evt_renamed": store.SkipOtherID, "evt_unread": store.SkipUnreadable,
	}, codes)
	require.Equal(t, 4, r.Read)
	require.Empty(t, r.Events)
	require.Equal(t, before, rowsOf(t, pool))

	// What waits for its source goes on waiting, with the facts of today.
	reevaluate(t, s, mapping{"evt_paused": func(e *store.Event) { e.Paused, e.Facts[0].Amount = true, 700 }}, true, store.ReevaluateFilter{Event: "evt_paused"})
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'evt_paused' AND reason = 'source_paused' AND mapping_version = 2"))
	n, err := s.Resume(t.Context(), account, "stripe")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	requireOrder(t, s, "ord_4", order.StatePartiallyPaid, 700, "unregistered")

	// And what counted before the source was paused goes on counting.
	reevaluate(t, s, mapping{"evt_paused": func(e *store.Event) { e.Paused, e.Facts[0].Amount = true, 900 }}, true, store.ReevaluateFilter{Event: "evt_paused"})
	requireOrder(t, s, "ord_4", order.StatePartiallyPaid, 900, "unregistered")
}

// An id that holds a hash of what is said is another one as soon as that is read otherwise.
func TestReevaluateAnEventThatIsCalledOtherwiseToday(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	e := bytesOf(t, captured("payment/tr_1:old", "tr_1", "ord_1", 500))
	apply(t, s, register("ord_1", 5000), e)
	o := store.ReevaluateOptions{
		Apply: true,
		Read: mapping{"payment/tr_1:old": func(e *store.Event) {
			e.ID, e.Facts[0].Amount, e.Own.Minor = "payment/tr_1:new", 5000, 5000
		}}.read,
		Same: func(id string, today store.Event) bool {
			return id == "payment/tr_1:old" && today.ID == "payment/tr_1:new"
		},
	}
	require.NoError(t, s.Reevaluate(t.Context(), o))
	requireOrder(t, s, "ord_1", order.StatePaid, 5000)
	rows := rowsOf(t, pool)
	require.NoError(t, s.Reevaluate(t.Context(), o))
	require.Equal(t, rows, rowsOf(t, pool))

	e.ID, e.Facts[0].Amount, e.Own.Minor = "payment/tr_1:new", 5000, 5000
	require.Equal(t, store.NoChange, apply(t, s, e)[0].Outcome, "asked again, it says what is known")
}

// Bytes that could not be read at all are kept under their hash. Once they can be, what they hold is entered.
func TestReevaluateBytesThatHadNoEvent(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	aside := captured("body:01234567", "", "", 0)
	aside.Event = order.Event{ID: aside.ID, Type: "unreadable", Realm: "stripe:live", Broken: "no JSON"}
	apply(t, s, register("ord_1", 3000), aside)
	read := func(d store.StoredDelivery) ([]store.Event, error) {
		return []store.Event{captured("evt_1", "pi_1", "ord_1", 1000), captured("evt_2", "pi_2", "ord_1", 2000)}, nil
	}
	run := func(do bool) (all store.Reevaluated) {
		err := s.Reevaluate(t.Context(), store.ReevaluateOptions{Read: read, Apply: do, Filter: store.ReevaluateFilter{Sources: []string{"stripe"}}, Each: func(r store.Reevaluated) error {
			all.Events, all.Entered, all.Skipped = append(all.Events, r.Events...), append(all.Entered, r.Entered...), append(all.Skipped, r.Skipped...)
			return nil
		}})
		require.NoError(t, err)
		return all
	}
	before := rowsOf(t, pool)
	dry := run(false)
	require.Equal(t, before, rowsOf(t, pool))
	require.Len(t, dry.Events, 1)
	require.Equal(t, []string{"evt_1", "evt_2"}, []string{dry.Entered[0].ID, dry.Entered[1].ID})
	require.Equal(t, store.Applied, dry.Entered[1].Outcome)

	require.Equal(t, dry, run(true))
	requireOrder(t, s, "ord_1", order.StatePaid, 3000)
	require.Equal(t, 1, count(t, pool, "processed_events WHERE event_id = 'body:01234567' AND outcome = 'ignored' AND reason = 'reread'"))
	p, err := s.Payload(t.Context(), store.EventKey{Account: account, Source: "stripe", ID: "evt_2"})
	require.NoError(t, err)
	require.Equal(t, aside.Payload, p.Body)
	after := rowsOf(t, pool)
	require.Equal(t, store.Reevaluated{}, run(true))
	require.Equal(t, after, rowsOf(t, pool))
}
