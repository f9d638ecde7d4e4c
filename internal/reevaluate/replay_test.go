package reevaluate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Replaying everything, twice, changes not a byte of any table: events of every gateway, answers, effects, calls, incomes, jobs.
func TestReplayIsHarmless(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.fill(t)
	for _, table := range []string{"event_payloads", "payments", "orders", "order_transitions", "transactions", "incomes", "recurrences", "fetches", "river_job"} {
		require.NotZero(t, w.count(t, table), table)
	}
	for _, outcome := range []store.Outcome{store.Applied, store.NoChange, store.Waiting, store.Ignored, store.Flagged, store.Quarantined} {
		require.NotZero(t, w.count(t, "processed_events WHERE outcome = '"+string(outcome)+"'"), outcome)
	}
	for _, state := range []string{"done", "dead", "claimed", "open"} {
		require.NotZero(t, w.count(t, "order_transitions WHERE effect_state = '"+state+"'"), state)
	}
	for _, status := range []string{"pending", "sent", "succeeded"} {
		require.NotZero(t, w.count(t, "transactions WHERE status = '"+status+"'"), status)
	}
	kept := w.count(t, "(SELECT DISTINCT account_id, source_id, event_id FROM event_payloads WHERE source_id <> 'api') x")
	deliveries := w.count(t, "(SELECT DISTINCT delivery FROM event_payloads WHERE source_id <> 'api') x")

	before := w.tables(t)
	for _, apply := range []bool{false, true, true} {
		out := w.replay(t, reevaluate.Replay{Apply: apply})
		require.Empty(t, out.Skipped)
		require.Empty(t, out.Entered)
		require.Empty(t, out.Orders)
		require.Zero(t, out.Read)
		require.Equal(t, deliveries, out.Deliveries)
		require.GreaterOrEqual(t, out.Known, kept, "every event whose bytes are kept; one that is in two deliveries twice")
		require.False(t, out.Next.At.IsZero())
		require.Equal(t, before, w.tables(t))
	}
}

// What was lost comes back: whatever of the events, payments and versions is gone, replaying ends where it was, a dry run says
// beforehand what becomes of each order, and a second time changes nothing.
func TestReplayFillsWhatIsMissing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(12) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 7))
			w := openWorld(t)
			refs := []string{"ord_0", "ord_1", "ord_2"}
			registered := refs[:2+r.IntN(2)]
			for _, ref := range registered {
				w.register(t, ref, 5000)
			}
			w.schedule(t, r, refs)
			orders, payments := w.standing(t)

			// Everything that events brought is lost; or only some of the events, with the rest of it left.
			if lost := r.IntN(3); lost > 0 {
				w.exec(t, `TRUNCATE processed_events, payment_ids, payments, order_transitions, orders, river_job CASCADE`)
				for _, ref := range registered {
					w.register(t, ref, 5000)
				}
			} else {
				w.exec(t, `DELETE FROM processed_events WHERE source_id <> 'api' AND hashtext(event_id) % 3 = 0`)
			}
			before := w.tables(t)
			dry := w.replay(t, reevaluate.Replay{})
			require.Equal(t, before, w.tables(t), "a dry run")
			require.NotEmpty(t, dry.Entered)

			done := w.replay(t, reevaluate.Replay{Apply: true})
			require.Empty(t, done.Skipped)
			gotOrders, gotPayments := w.standing(t)
			require.Equal(t, orders, gotOrders)
			require.Equal(t, payments, gotPayments)
			require.Equal(t, ids(done.Entered), ids(dry.Entered))

			said := map[string]store.OrderStanding{}
			for _, o := range dry.Orders {
				require.NotContains(t, said, o.Ref, "one change for each order")
				said[o.Ref] = o.After
			}
			moved := map[string]bool{}
			for _, o := range done.Orders {
				moved[o.Ref] = true
			}
			for ref := range moved {
				found, err := w.st.FindOrders(t.Context(), "shop", ref)
				require.NoError(t, err)
				require.Contains(t, said, ref)
				require.Equal(t, found[0].State, said[ref].State, ref)
				require.Equal(t, []int64{found[0].Captured, found[0].Refunded, found[0].Kept, found[0].AtRisk},
					[]int64{said[ref].Captured, said[ref].Refunded, said[ref].Kept, said[ref].AtRisk}, ref)
			}
			require.Len(t, said, len(moved))

			after := w.tables(t)
			again := w.replay(t, reevaluate.Replay{Apply: true})
			require.Empty(t, again.Entered)
			require.Equal(t, after, w.tables(t), "a second time")
		})
	}
}

func ids(entered []store.EnteredEvent) (all []string) {
	for _, ev := range entered {
		all = append(all, ev.ID)
	}
	slices.Sort(all)
	return all
}

// schedule delivers events of a few payments in any order, some twice.
func (w *world) schedule(t *testing.T, r *rand.Rand, refs []string) {
	t.Helper()
	type told struct {
		g   *gateway.Gateway
		req gateway.SampleRequest
	}
	var all []told
	for p := range 5 {
		ref, pi := refs[r.IntN(len(refs))], fmt.Sprintf("pi_%d", p)
		add := func(typ, ref, id string, minor int64) {
			w.n++
			all = append(all, told{gateway.Stripe, gateway.SampleRequest{
				Type: typ, ID: fmt.Sprintf("evt_%d", w.n), Payment: pi, Reference: ref, Ref: id, Amount: order.Amount{Minor: minor, Currency: "EUR"}, At: at.Add(1e9 * 60),
			}})
		}
		add("payment_intent.succeeded", ref, "", 5000)
		add("charge.succeeded", ref, "", 5000)
		if r.IntN(2) == 0 {
			add("refund.created", "", "re_"+pi, 1000)
		}
		if r.IntN(3) == 0 {
			add("charge.dispute.created", "", "dp_"+pi, 5000)
		}
	}
	for p := range 2 {
		all = append(all, told{gateway.PayPal, gateway.SampleRequest{
			Type: "PAYMENT.CAPTURE.COMPLETED", ID: fmt.Sprintf("WH-%d", p), Payment: fmt.Sprintf("CAPTURE%d", p), Reference: refs[r.IntN(len(refs))], At: at,
		}})
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, one := range all {
		w.sample(t, one.g, one.req)
		if r.IntN(4) == 0 {
			w.sample(t, one.g, one.req)
		}
	}
}

// standing is where orders and payments ended, without what tells how they came there.
func (w *world) standing(t *testing.T) (orders, payments []string) {
	t.Helper()
	list := func(sql string) (all []string) {
		rows, err := w.st.Pool().Query(t.Context(), sql)
		require.NoError(t, err)
		for rows.Next() {
			var text string
			require.NoError(t, rows.Scan(&text))
			all = append(all, text)
		}
		require.NoError(t, rows.Err())
		return all
	}
	return list(`SELECT concat_ws(' ', external_ref, registered, state, array_to_string(flags, ','), want, captured, refunded, lost, kept, at_risk, authorized)
			FROM orders ORDER BY external_ref`),
		list(`SELECT (SELECT o.external_ref FROM orders o WHERE o.id = p.order_id) || ' ' || p.ledger::text FROM payments p WHERE p.merged_into IS NULL ORDER BY 1`)
}

// Where bytes mean something else today, a replay leaves the event alone and says so.
func TestReplayReplacesNothing(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.register(t, "ord_1", 5000)
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: "evt_1", Payment: "pi_1", Reference: "ord_1"})
	w.answered(t, gateway.Mollie, gateway.SampleRequest{Type: "payment.paid", Payment: "tr_1", Reference: "ord_1"})
	before := w.tables(t)
	today := reevaluate.Reader{Config: w.cfg, Reparse: func(s gateway.Source, d gateway.Delivery) ([]order.Event, error) {
		events, err := reevaluate.Mapping(s, d)
		for i := range events {
			for n, f := range events[i].Facts {
				if f.Amount > 0 {
					events[i].Facts[n].Amount = 1
				}
			}
			if s.Gateway == "mollie" {
				events[i].ID = events[i].ID[:strings.LastIndex(events[i].ID, ":")] + ":0123456789abcdef01234567"
			}
		}
		return events, err
	}}
	for _, apply := range []bool{false, true} {
		out, err := today.Replay(t.Context(), w.st, reevaluate.Replay{Apply: apply})
		require.NoError(t, err)
		require.Empty(t, out.Entered)
		require.Len(t, out.Skipped, 2)
		for _, s := range out.Skipped {
			require.Equal(t, reevaluate.SkipOtherMeaning, s.Code, s.Why)
			require.Contains(t, s.Why, "paidonce events reevaluate")
		}
		require.Equal(t, before, w.tables(t))
	}
}

// Bytes that could not be read when they came, not even what they are called, are taken in once they can be; bytes that still cannot
// be are told of.
func TestReplayBytesThatCanBeReadNow(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.register(t, "ord_1", 5000)
	s := w.source("stripe")
	body, err := gateway.Stripe.Sample(gateway.SampleRequest{Source: s, Type: "payment_intent.succeeded", ID: "evt_1", Payment: "pi_1", Reference: "ord_1"})
	require.NoError(t, err)
	w.enter(t, s, []order.Event{{ID: "body:1", Type: "unreadable", Broken: "not JSON"}}, body, map[string]string{"X": "1"})
	w.enter(t, s, []order.Event{{ID: "body:2", Type: "unreadable", Broken: "not JSON"}}, []byte("x"), nil)
	gone := w.source("paypal")
	gone.ID = "gone"
	w.enter(t, gone, []order.Event{{ID: "evt_9", Type: "x", Ignored: "unknown_type"}}, []byte("{}"), nil)

	out := w.replay(t, reevaluate.Replay{Apply: true})
	require.Equal(t, []string{"evt_1"}, ids(out.Entered))
	require.Equal(t, store.Applied, out.Entered[0].Outcome)
	require.Len(t, out.Skipped, 2)
	require.Equal(t, []string{store.SkipUnreadable, store.SkipUnreadable}, []string{out.Skipped[0].Code, out.Skipped[1].Code})
	require.Contains(t, out.Skipped[1].Why, "not in the configuration")
	require.Contains(t, out.Skipped[0].ID, "of delivery ")
	p, err := w.st.Payload(t.Context(), store.EventKey{Account: "shop", Source: "stripe", ID: "evt_1"})
	require.NoError(t, err)
	require.Equal(t, body, p.Body, "its bytes are found under its own id")
	require.Equal(t, map[string]string{"X": "1"}, p.Header)
	after := w.tables(t)
	require.Empty(t, w.replay(t, reevaluate.Replay{Apply: true}).Entered)
	require.Equal(t, after, w.tables(t))
}

// What an event that was missing only points at is asked about, as it would have been.
func TestReplayAsksWhatIsPointedAt(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.enter(t, w.source("stripe"), []order.Event{{ID: "evt_1", Type: "v1.thin", Fetch: "payment_intent/pi_1"}}, []byte("{}"), nil)
	w.exec(t, `DELETE FROM processed_events`)
	r := reevaluate.Reader{Config: w.cfg, Reparse: func(gateway.Source, gateway.Delivery) ([]order.Event, error) {
		return []order.Event{{ID: "evt_1", Type: "v1.thin", Fetch: "payment_intent/pi_1"}}, nil
	}}
	dry, err := r.Replay(t.Context(), w.st, reevaluate.Replay{})
	require.NoError(t, err)
	require.Equal(t, []string{"evt_1"}, ids(dry.Entered))
	require.Zero(t, w.count(t, "fetches"))
	_, err = r.Replay(t.Context(), w.st, reevaluate.Replay{Apply: true})
	require.NoError(t, err)
	require.Equal(t, 1, w.count(t, "fetches WHERE object = 'payment_intent/pi_1'"))
}

// A paused source stays paused.
func TestReplayOfAPausedSource(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	w.register(t, "ord_1", 5000)
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: "evt_1", Payment: "pi_1", Reference: "ord_1"})
	w.exec(t, `DELETE FROM processed_events WHERE event_id = 'evt_1'`)
	s := w.source("stripe")
	s.Paused = true
	w.cfg.Accounts["shop"].Sources["stripe"] = s
	out := w.replay(t, reevaluate.Replay{Apply: true})
	require.Equal(t, store.ReasonSourcePaused, out.Entered[0].Reason)
}

// It may be stopped anywhere and begun behind what it says is done: nothing is left out.
func TestReplayGoesOn(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for i := range 150 {
		w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: fmt.Sprintf("evt_%03d", i), Payment: fmt.Sprintf("pi_%d", i), Reference: fmt.Sprintf("ord_%d", i)})
	}
	w.exec(t, `DELETE FROM processed_events WHERE event_id >= 'evt_100'`)
	errEnough := errors.New("enough")

	// A dry run that has found something knows what it comes to only at its end, so it begins again before that.
	dry, err := reevaluate.Reader{Config: w.cfg}.Replay(t.Context(), w.st, reevaluate.Replay{Each: func(r reevaluate.Replayed) error {
		if len(r.Entered) > 0 {
			return errEnough
		}
		return nil
	}})
	require.ErrorIs(t, err, errEnough)
	left, err := w.st.CountKept(t.Context(), store.ReevaluateFilter{}, dry.Next)
	require.NoError(t, err)
	require.Equal(t, 150-64, left, "the first 64 hold nothing that is missing")

	var entered []string
	var next store.DeliveryKey
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		out, err := reevaluate.Reader{Config: w.cfg}.Replay(ctx, w.st, reevaluate.Replay{Apply: true, After: next, Each: func(r reevaluate.Replayed) error {
			entered = append(entered, ids(r.Entered)...)
			cancel()
			return nil
		}})
		cancel()
		if next = out.Next; err == nil {
			require.Equal(t, 3, stops, "after 64, 128 and 150")
			break
		}
		require.ErrorIs(t, err, context.Canceled)
		require.Zero(t, len(out.Entered)+len(out.Orders)+len(out.Skipped), "it was told of")
	}
	require.Len(t, entered, 50)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(entered))), 50)
	require.Equal(t, 150, w.count(t, "processed_events"))
}

// What is missing is tried together only as far as memory should go; the rest then goes by itself.
func TestReplayTriesInParts(t *testing.T) {
	t.Parallel()
	w := openWorld(t)
	for i := range 70 {
		w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: fmt.Sprintf("evt_%03d", i), Payment: fmt.Sprintf("pi_%d", i), Reference: "ord_1"})
	}
	w.exec(t, `TRUNCATE processed_events, payment_ids, payments, order_transitions, orders CASCADE`)
	whole := w.replay(t, reevaluate.Replay{})
	require.Len(t, whole.Orders, 1)
	require.EqualValues(t, 70*5000, whole.Orders[0].After.Captured)
	parts := w.replay(t, reevaluate.Replay{Together: 10})
	require.Len(t, parts.Orders, 2)
	require.Len(t, parts.Entered, 70)
}
