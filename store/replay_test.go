package store_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// tables is all that the tables of events, payments, orders and jobs hold.
func tables(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{
		"processed_events", "event_payloads", "event_payloads_kept", "event_meanings", "payment_ids", "payments", "orders", "order_transitions", "transactions", "incomes",
		"fetches", "river_job",
	} {
		rows, err := pool.Query(t.Context(), "SELECT row_to_json(x)::text FROM "+table+" x ORDER BY 1")
		require.NoError(t, err)
		for rows.Next() {
			var row string
			require.NoError(t, rows.Scan(&row))
			all.WriteString(table + " " + row + "\n")
		}
		require.NoError(t, rows.Err())
	}
	return all.String()
}

// delivered is an event of a delivery whose bytes are kept.
func delivered(e store.Event, d uuid.UUID) store.Event {
	e.Delivery = d
	return e
}

func TestReplayKnownChangesNothing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	events := []store.Event{captured("evt_1", "pi_1", "ord_1", 5000), refunded("evt_2", "pi_1", 1000), captured("evt_1", "pi_1", "ord_1", 4000)}
	apply(t, s, register("ord_1", 5000))
	apply(t, s, events...)
	before := tables(t, pool)
	require.Contains(t, before, "evt_1#", "the second evt_1 is an event of its own")
	for _, do := range []bool{false, true, true} {
		out, err := s.Replay(t.Context(), events, do)
		require.NoError(t, err)
		require.Equal(t, store.Reevaluated{Read: 3}, out)
		require.Equal(t, before, tables(t, pool))
	}
	none, err := s.Replay(t.Context(), nil, true)
	require.NoError(t, err)
	require.Zero(t, none)
}

func TestReplayMissing(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), register("ord_2", 700))
	d := uuid.Must(uuid.NewV7())
	paid := delivered(captured("evt_1", "pi_1", "ord_1", 5000), d)
	apply(t, s, paid, captured("evt_2", "pi_2", "ord_2", 700))
	exec(t, pool, `DELETE FROM processed_events WHERE event_id = 'evt_1'`)
	exec(t, pool, `DELETE FROM payment_ids WHERE id = 'pi_1'`)
	exec(t, pool, `DELETE FROM payments WHERE ledger -> 'ids' ? 'pi_1'`)
	exec(t, pool, `DELETE FROM order_transitions WHERE version > 1 AND order_id IN (SELECT id FROM orders WHERE external_ref = 'ord_1')`)
	exec(t, pool, `UPDATE orders SET state = 'pending', want = 'wait', captured = 0, kept = 0, version = 1, wake_at = NULL, flags = '{}' WHERE external_ref = 'ord_1'`)
	events := []store.Event{paid, captured("evt_2", "pi_2", "ord_2", 700), captured("evt_3", "pi_3", "ord_3", 300)}

	before := tables(t, pool)
	dry, err := s.Replay(t.Context(), events, false)
	require.NoError(t, err)
	require.Equal(t, before, tables(t, pool))
	require.Len(t, dry.Entered, 2)
	require.Equal(t, []any{"evt_1", store.Applied, "ord_1", 1, 2}, []any{dry.Entered[0].ID, dry.Entered[0].Outcome, dry.Entered[0].Order, dry.Entered[0].OrderVersionBefore, dry.Entered[0].OrderVersionAfter})
	require.Equal(t, []any{"evt_3", store.Waiting, "ord_3"}, []any{dry.Entered[1].ID, dry.Entered[1].Outcome, dry.Entered[1].Order})
	require.Len(t, dry.Orders, 2)
	moved := map[string]store.OrderChange{}
	for _, o := range dry.Orders {
		moved[o.Ref] = o
	}
	one, three := moved["ord_1"], moved["ord_3"]
	require.Equal(t, []any{order.StatePending, order.StatePaid, int64(0), int64(5000), order.EffectFulfil, false},
		[]any{one.Before.State, one.After.State, one.Before.Kept, one.After.Kept, one.After.Owed, one.New})
	require.True(t, three.New)
	require.Zero(t, three.Before)
	require.EqualValues(t, 300, three.After.Captured)

	done, err := s.Replay(t.Context(), events, true)
	require.NoError(t, err)
	require.Equal(t, dry.Entered, done.Entered)
	require.Len(t, done.Orders, 2)
	require.Equal(t, "paid", readOrder(t, pool, "ord_1").State)
	require.Equal(t, 1, count(t, pool, "event_payloads WHERE event_id = 'evt_1'"), "its bytes were kept already")
	require.Equal(t, 1, count(t, pool, "event_payloads WHERE event_id = 'evt_3'"))
	after := tables(t, pool)
	again, err := s.Replay(t.Context(), events, true)
	require.NoError(t, err)
	require.Equal(t, store.Reevaluated{Read: 3}, again)
	require.Equal(t, after, tables(t, pool))

	events[0].ID = ""
	_, err = s.Replay(t.Context(), events, true)
	require.ErrorIs(t, err, store.ErrUnstorable)
	require.Equal(t, after, tables(t, pool))
}

func TestRecognise(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	one, two, three, batch, answer, gone := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	first, second := captured("evt_1", "pi_1", "", 5000), captured("evt_1", "pi_1", "", 4000)
	a, b := captured("evt_a", "pi_a", "", 100), captured("evt_b", "pi_b", "", 200)
	state := func(hash string, minor int64) store.Event { return captured("payment/1:"+hash, "pi_s", "", minor) }
	apply(t, s, delivered(first, one))
	apply(t, s, delivered(second, two)) // the same id with other facts
	apply(t, s, delivered(captured("evt_3", "pi_3", "", 5000), three))
	apply(t, s, delivered(a, batch), delivered(b, batch))
	apply(t, s, delivered(state("x1", 100), answer), delivered(state("y1", 200), answer))
	apply(t, s, delivered(captured("evt_gone", "pi_gone", "", 1), gone))
	exec(t, pool, `DELETE FROM processed_events WHERE event_id = 'evt_gone'`)

	var at map[uuid.UUID]store.DeliveryKey
	keys, err := s.ListKept(t.Context(), store.ReevaluateFilter{}, store.DeliveryKey{}, 100)
	require.NoError(t, err)
	at = map[uuid.UUID]store.DeliveryKey{}
	for _, k := range keys {
		at[k.Delivery] = k
	}
	held := func(d uuid.UUID, events ...store.Event) store.HeldEvents {
		found, err := s.ReadKept(t.Context(), []store.DeliveryKey{at[d]})
		require.NoError(t, err)
		require.Len(t, found, 1)
		return store.HeldEvents{StoredDelivery: found[0], Events: events}
	}
	same := func(id string, today store.Event) bool {
		object, _, ok := strings.Cut(id, ":")
		other, _, _ := strings.Cut(today.ID, ":")
		return ok && object == other && id != today.ID
	}
	other := func(e store.Event) store.Event {
		e.Facts = []order.Fact{{Kind: order.KindCaptured, Amount: 999, Currency: "EUR"}}
		return e
	}
	const known, missing, differs = store.HeldKnown, store.HeldMissing, store.HeldOther
	for name, tt := range map[string]struct {
		d    store.HeldEvents
		want []store.Recognition
	}{
		"as it was":                              {held(one, first), []store.Recognition{known}},
		"as it was, under the id that was taken": {held(two, second), []store.Recognition{known}},
		"read otherwise":                         {held(three, other(captured("evt_3", "pi_3", "", 5000))), []store.Recognition{differs}},
		"the taken id, read otherwise":           {held(two, other(second)), []store.Recognition{differs}},
		"an id that another delivery brought":    {held(three, other(first)), []store.Recognition{missing}},
		"both of a batch":                        {held(batch, a, b), []store.Recognition{known, known}},
		"one of a batch, read otherwise":         {held(batch, a, other(b)), []store.Recognition{known, differs}},
		"the other one":                          {held(batch, other(a), b), []store.Recognition{differs, known}},
		"one more than there was":                {held(batch, a, b, captured("evt_c", "pi_c", "", 1)), []store.Recognition{known, known, missing}},
		"lost":                                   {held(gone, captured("evt_gone", "pi_gone", "", 1)), []store.Recognition{missing}},
		"lost, and read otherwise":               {held(gone, other(captured("evt_gone", "pi_gone", "", 1))), []store.Recognition{missing}},
		"states of an object":                    {held(answer, state("x1", 100), state("y1", 200)), []store.Recognition{known, known}},
		"one state called otherwise":             {held(answer, state("x2", 100), state("y1", 200)), []store.Recognition{differs, known}},
		"the other state":                        {held(answer, state("x1", 100), state("y2", 200)), []store.Recognition{known, differs}},
		"nothing":                                {held(one), []store.Recognition{}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := s.Recognise(t.Context(), []store.HeldEvents{tt.d}, same)
			require.NoError(t, err)
			require.Equal(t, [][]store.Recognition{tt.want}, got)
		})
	}
	t.Run("a state that was lost beside another", func(t *testing.T) {
		exec(t, pool, `DELETE FROM processed_events WHERE event_id = 'payment/1:y1'`)
		got, err := s.Recognise(t.Context(), []store.HeldEvents{held(one, first), held(answer, state("x1", 100), state("y1", 200))}, same)
		require.NoError(t, err)
		require.Equal(t, [][]store.Recognition{{known}, {known, missing}}, got)
	})
	bad := first
	bad.Type = "\x00"
	_, err = s.Recognise(t.Context(), []store.HeldEvents{held(one, first), held(two, second, bad)}, nil)
	var held2 *store.HeldError
	require.ErrorAs(t, err, &held2)
	require.Equal(t, 1, held2.Index)
	require.ErrorIs(t, err, store.ErrUnstorable)
}
