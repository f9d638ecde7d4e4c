package reevaluate_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// What is missing is chosen by what its bytes say: nothing else knows of it.
func TestReplayChoosesWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	paid := func(id, p, ref string) {
		w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: id, Payment: p, Reference: ref})
	}
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "refund.created", ID: "evt_2", Payment: "pi_1", Ref: "re_1", Amount: order.Amount{Minor: 1000, Currency: "EUR"}})
	paid("evt_3", "pi_3", "ord_1")
	paid("evt_4", "pi_4", "ord_lost")
	// One delivery with two events, of two orders, as a batch is.
	w.enter(t, w.source("stripe"), []order.Event{{ID: "evt_5", Type: "a", Reference: "ord_1"}, {ID: "evt_6", Type: "b", Reference: "ord_lost"}}, []byte("two"), nil)
	// Another account has an order of the same name.
	require.NoError(t, w.st.EnsureAccounts(t.Context(), []string{"other"}))
	others := w.source("stripe")
	others.ID, others.Account = "others", "other"
	w.cfg.Accounts["other"] = config.Account{Sources: map[string]gateway.Source{"others": others}}
	body, err := gateway.Stripe.Sample(gateway.SampleRequest{Source: others, Type: "payment_intent.succeeded", ID: "evt_7", Payment: "pi_7", Reference: "ord_1", At: at})
	require.NoError(t, err)
	events, err := gateway.Stripe.Events(others, gateway.Delivery{Body: body})
	require.NoError(t, err)
	w.enter(t, others, events, body, nil)
	w.exec(t, `TRUNCATE processed_events, payment_ids, payments, order_transitions, orders CASCADE`)
	w.register(t, "ord_1", 5000)
	paid("evt_1", "pi_1", "ord_1")
	reader := reevaluate.Reader{Config: w.cfg, Reparse: func(s gateway.Source, d gateway.Delivery) ([]order.Event, error) {
		if string(d.Body) == "two" {
			return []order.Event{{ID: "evt_5", Type: "a", Reference: "ord_1"}, {ID: "evt_6", Type: "b", Reference: "ord_lost"}}, nil
		}
		return reevaluate.Mapping(s, d)
	}}
	orders, err := w.st.FindOrders(t.Context(), "shop", "ord_1")
	require.NoError(t, err)
	known := store.EventKey{Account: "shop", Source: "stripe", ID: "evt_1"}

	for name, c := range map[string]struct {
		where   reevaluate.Where
		events  []store.EventKey // of the order that are known
		entered []string
		chosen  int
	}{
		"type":          {where: reevaluate.Where{ReevaluateFilter: store.ReevaluateFilter{Type: "refund.created"}}, entered: []string{"evt_2"}, chosen: 1},
		"type, known":   {where: reevaluate.Where{ReevaluateFilter: store.ReevaluateFilter{Type: "payment_intent.succeeded"}}, entered: []string{"evt_3", "evt_4", "evt_7"}, chosen: 4},
		"event":         {where: reevaluate.Where{ReevaluateFilter: store.ReevaluateFilter{Event: "evt_4"}}, entered: []string{"evt_4"}, chosen: 1},
		"of a batch":    {where: reevaluate.Where{ReevaluateFilter: store.ReevaluateFilter{Event: "evt_6"}}, entered: []string{"evt_5", "evt_6"}, chosen: 1},
		"both":          {where: reevaluate.Where{ReevaluateFilter: store.ReevaluateFilter{Event: "evt_6", Type: "a"}}},
		"order":         {where: reevaluate.Where{Order: "ord_1"}, events: []store.EventKey{known}, entered: []string{"evt_2", "evt_3", "evt_5", "evt_6", "evt_7"}, chosen: 5},
		"by its id":     {where: reevaluate.Where{Order: orders[0].ID.String()}, events: []store.EventKey{known}, entered: []string{"evt_2", "evt_3", "evt_5", "evt_6"}, chosen: 4},
		"a lost one":    {where: reevaluate.Where{Order: "ord_lost"}, events: []store.EventKey{}, entered: []string{"evt_4", "evt_5", "evt_6"}, chosen: 2},
		"order, type":   {where: reevaluate.Where{Order: "ord_1", ReevaluateFilter: store.ReevaluateFilter{Type: "refund.created"}}, events: []store.EventKey{known}, entered: []string{"evt_2"}, chosen: 1},
		"another's":     {where: reevaluate.Where{Order: "ord_1", ReevaluateFilter: store.ReevaluateFilter{Account: "other"}}, events: []store.EventKey{}, entered: []string{"evt_7"}, chosen: 1},
		"order of none": {where: reevaluate.Where{Order: "ord_9"}, events: []store.EventKey{}},
	} {
		t.Run(name, func(t *testing.T) {
			missing, err := reevaluate.MissingOf(t.Context(), w.st, c.where)
			require.NoError(t, err)
			c.where.Events = c.events
			out, err := reader.Replay(t.Context(), w.st, reevaluate.Replay{Filter: c.where.ReevaluateFilter, Missing: missing})
			require.NoError(t, err)
			require.Equal(t, c.entered, ids(out.Entered))
			require.Equal(t, c.chosen, out.Chosen)
			require.Empty(t, out.Skipped)
			moved := map[string]bool{}
			for _, o := range out.Orders {
				require.NotContains(t, moved, o.Account+" "+o.Ref, "what moves one order is tried together")
				moved[o.Account+" "+o.Ref] = true
			}
		})
	}
	for name, where := range map[string]reevaluate.Where{
		"nothing": {}, "source": {ReevaluateFilter: store.ReevaluateFilter{Sources: []string{"stripe"}}},
		"outcome": {ReevaluateFilter: store.ReevaluateFilter{Type: "a", Outcome: store.Applied}},
		"reason":  {Order: "ord_1", ReevaluateFilter: store.ReevaluateFilter{Reason: "x"}},
		"mapping": {ReevaluateFilter: store.ReevaluateFilter{Event: "evt_1", Mapping: 2}},
	} {
		missing, err := reevaluate.MissingOf(t.Context(), w.st, where)
		require.NoError(t, err)
		require.Nil(t, missing, name)
	}

	// What is known is chosen by what is known of it.
	w.exec(t, `UPDATE processed_events SET type = 'once' WHERE event_id = 'evt_1'`)
	out, err := reader.Replay(t.Context(), w.st, reevaluate.Replay{
		Filter: store.ReevaluateFilter{Type: "payment_intent.succeeded"}, Missing: &reevaluate.Missing{Type: "payment_intent.succeeded"},
	})
	require.NoError(t, err)
	require.Equal(t, 3, out.Chosen)
}

// Lists are read in parts, and what the filter chooses is found in all of them. What cannot be read is told of where it is chosen.
func TestReplayOfMany(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.enter(t, w.source("stripe"), []order.Event{{ID: "evt_0", Type: "odd"}}, []byte("x"), nil)
	w.exec(t, `INSERT INTO event_payloads SELECT (jsonb_populate_record(p, jsonb_build_object('event_id', 'evt_' || n, 'delivery', gen_random_uuid()))).*
		FROM event_payloads p, generate_series(1, 10999) n`)
	w.exec(t, `INSERT INTO processed_events SELECT (jsonb_populate_record(e, jsonb_build_object('event_id', 'evt_' || n, 'type', CASE n % 2 WHEN 0 THEN 'even' ELSE 'odd' END))).*
		FROM processed_events e, generate_series(1, 10999) n`)
	none := reevaluate.Reader{Config: w.cfg, Reparse: func(gateway.Source, gateway.Delivery) ([]order.Event, error) {
		return nil, fmt.Errorf("no")
	}}
	for _, c := range []struct {
		w      reevaluate.Replay
		chosen int
	}{
		{reevaluate.Replay{}, 11000},
		{reevaluate.Replay{Filter: store.ReevaluateFilter{Type: "odd"}, Missing: &reevaluate.Missing{Type: "odd"}}, 5501},
		{reevaluate.Replay{Filter: store.ReevaluateFilter{Type: "rare"}, Missing: &reevaluate.Missing{Type: "rare"}}, 0},
	} {
		n, err := c.w.Count(t.Context(), w.st)
		require.NoError(t, err)
		require.Equal(t, 11000, n)
		out, err := none.Replay(t.Context(), w.st, c.w)
		require.NoError(t, err)
		require.Equal(t, 11000, out.Deliveries)
		require.Equal(t, c.chosen, out.Chosen)
		require.Len(t, out.Skipped, c.chosen)
		seen := map[string]bool{}
		for _, s := range out.Skipped {
			seen[s.ID] = true
		}
		require.Len(t, seen, c.chosen, "each once")
	}
	n, err := reevaluate.Replay{Filter: store.ReevaluateFilter{Type: "odd"}}.Count(t.Context(), w.st)
	require.NoError(t, err)
	require.Equal(t, 5501, n)
}
