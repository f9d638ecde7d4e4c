package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// world is a random set of events, and what they mean when one thread folds them.
type world struct {
	events   []store.Event
	payments map[string]*order.Ledger // by least id
	orders   map[string]*order.Order  // by reference
}

type worldSpec struct {
	orders, paymentsPerOrder, eventsPerPayment int
	duplicates                                 bool
}

func newWorld(r *rand.Rand, spec worldSpec) *world {
	w := &world{payments: map[string]*order.Ledger{}, orders: map[string]*order.Order{}}
	for o := range spec.orders {
		ref := fmt.Sprintf("ord_%03d", o)
		ord := &order.Order{Payments: map[string]*order.Ledger{}}
		w.orders[ref] = ord
		total := int64(1+r.IntN(4)) * 1000
		if r.IntN(8) > 0 {
			w.events = append(w.events, register(ref, total))
			ord.Registered, ord.Total, ord.Currency = true, total, "EUR"
		}
		for p := range spec.paymentsPerOrder {
			w.addPayment(r, ord, ref, fmt.Sprintf("%s_%02d", ref, p), spec)
		}
	}
	if spec.duplicates {
		for range len(w.events) / 2 {
			w.events = append(w.events, w.events[r.IntN(len(w.events))])
		}
	}
	r.Shuffle(len(w.events), func(i, j int) { w.events[i], w.events[j] = w.events[j], w.events[i] })
	return w
}

func (w *world) addPayment(r *rand.Rand, ord *order.Order, ref, name string, spec worldSpec) {
	ids := []string{"ch_" + name, "cs_" + name, "pi_" + name}
	ledger := order.NewLedger()
	strong := r.IntN(spec.eventsPerPayment)
	for n := range spec.eventsPerPayment {
		e := store.Event{Account: account, Source: []string{"stripe", "stripe2"}[r.IntN(2)], Event: order.Event{
			ID: fmt.Sprintf("evt_%s_%d", name, n), Type: "t" + strconv.Itoa(n), At: day.Add(time.Duration(r.IntN(5)) * time.Second),
			Realm: "stripe:live", Facts: []order.Fact{randomFact(r, name)},
		}}
		// Each event knows the payment under some of its ids; a later one may unite what earlier ones kept apart. The
		// strong one knows them all, so that in the end there is one payment.
		for _, i := range r.Perm(len(ids))[:1+r.IntN(len(ids))] {
			e.Payment = append(e.Payment, ids[i])
		}
		switch {
		case n == strong:
			e.Payment, e.Reference, e.Strength = slices.Clone(ids), ref, order.StrengthPayment
		case r.IntN(3) == 0:
			e.Reference, e.Strength = "foreign_"+name, order.StrengthModification
		}
		w.events = append(w.events, e)
		ledger.JoinEvent(e.Event)
		if r.IntN(25) == 0 { // the same id with other facts
			f := e
			f.Facts = []order.Fact{{Kind: order.KindCaptured, Ref: name + "_again", Status: order.StatusOK, Amount: 7, Currency: "EUR"}}
			w.events = append(w.events, f)
			ledger.JoinEvent(f.Event)
			ledger.Flags |= order.FlagIDReused
		}
	}
	w.payments[ids[0]] = ledger
	ord.Payments[ids[0]] = ledger
}

func randomFact(r *rand.Rand, p string) order.Fact {
	f := order.Fact{Amount: int64(1+r.IntN(4)) * 1000, Currency: "EUR", Seq: int64(r.IntN(4))}
	if r.IntN(15) == 0 {
		f.Currency = "USD"
	}
	items := []order.Status{order.StatusPending, order.StatusDenied, order.StatusOK, order.StatusFailed}
	switch r.IntN(8) {
	case 0:
		f.Kind, f.Seq = order.KindAuthorized, 0
	case 1, 2:
		f.Kind, f.Ref, f.Status = order.KindCaptured, p+"_c"+strconv.Itoa(r.IntN(2)), items[r.IntN(4)]
	case 3:
		f.Kind, f.Seq = order.KindCaptured, 0
	case 4, 5:
		f.Kind, f.Ref, f.Status = order.KindRefunded, p+"_r"+strconv.Itoa(r.IntN(2)), items[r.IntN(4)]
	case 6:
		f.Kind, f.Ref = order.KindDisputed, p+"_d"
		f.Status = []order.Status{order.StatusNone, order.StatusOpen, order.StatusWon, order.StatusLost}[r.IntN(4)]
	default:
		f = order.Fact{Kind: order.KindPhase, Seq: f.Seq, Status: []order.Status{
			order.StatusProcessing, order.StatusFailed, order.StatusAuthorized, order.StatusExpired, order.StatusCanceled,
		}[r.IntN(5)]}
	}
	return f
}

// deliver applies the world's events in random batches from several goroutines, without loss.
func (w *world) deliver(ctx context.Context, t *testing.T, s *store.Store, seed uint64, committers int) {
	t.Helper()
	batches := make(chan []store.Event)
	var wg sync.WaitGroup
	for range committers {
		wg.Go(func() {
			for b := range batches {
				if _, err := s.Apply(ctx, b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, 1))
	for rest := w.events; len(rest) > 0; {
		n := min(1+r.IntN(40), len(rest))
		batches <- rest[:n]
		rest = rest[n:]
	}
	close(batches)
	wg.Wait()
}

// check compares every row with what one thread makes of the same events.
func (w *world) check(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx := t.Context()

	keys := map[string]bool{}
	for _, e := range w.events {
		doc, err := json.Marshal(e.Facts)
		require.NoError(t, err)
		keys[e.Source+" "+e.ID+" "+string(doc)] = true
	}
	// What came again with other facts, and has the same since it was read again, is an event less.
	twins := count(t, pool, `processed_events e JOIN processed_events b ON b.account_id = e.account_id AND b.source_id = e.source_id
		AND b.event_id = split_part(e.event_id, '#', 1) AND b.event_id <> e.event_id AND b.facts_hash = e.facts_hash`)
	require.Equal(t, len(keys), count(t, pool, "processed_events")-twins, "events")
	require.Equal(t, 0, count(t, pool, "processed_events WHERE outcome IS NULL"))

	// A payment that lost its race may stay as an empty root that no id leads to.
	rows, _ := pool.Query(ctx, `SELECT p.ledger, o.external_ref FROM payments p LEFT JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id
		WHERE p.merged_into IS NULL AND p.ledger <> '{}'`)
	found := 0
	var doc []byte
	var ref *string
	_, err := pgx.ForEachRow(rows, []any{&doc, &ref}, func() error {
		got := order.NewLedger()
		if err := json.Unmarshal(doc, got); err != nil {
			return err
		}
		found++
		want := w.payments[got.IDs[0]]
		require.NotNil(t, want, "payment %v", got.IDs)
		require.Equal(t, mustJSON(t, want), mustJSON(t, got), "ledger of %v", got.IDs)
		require.NotNil(t, ref, "payment %v has no order", got.IDs)
		require.Equal(t, want.Link.Ref, *ref)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, len(w.payments), found, "payments")

	type row struct {
		ID                               uuid.UUID
		Ref, State, Want, Told           string
		Flags                            []string
		Captured, Refunded, Lost, AtRisk int64
		Version                          int
		Wake                             *time.Time
	}
	rows, _ = pool.Query(ctx, `SELECT id, external_ref, state, want, told, flags, captured, refunded, lost, at_risk, version, wake_at FROM orders`)
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	require.Len(t, got, len(w.orders), "orders")
	for _, o := range got {
		v := w.orders[o.Ref].View()
		require.Equal(t, string(v.State), o.State, o.Ref)
		require.Equal(t, string(v.Want), o.Want, o.Ref) //nolint:testifylint // the column is called want
		// Random facts do what no gateway does, and which of their moves is seen depends on the batches.
		flags := slices.DeleteFunc(o.Flags, func(f string) bool { return f == "unexpected_move" })
		require.Equal(t, v.Flags.Names(), flags, o.Ref)
		require.Equal(t, []int64{v.Captured, v.Refunded, v.Lost, v.AtRisk}, []int64{o.Captured, o.Refunded, o.Lost, o.AtRisk}, o.Ref)
		require.Equal(t, count(t, pool, "order_transitions WHERE order_id = $1", o.ID), o.Version, "versions of %s are rows", o.Ref)
		require.Equal(t, 0, count(t, pool, `(SELECT from_state, lag(to_state) OVER (ORDER BY version) AS was, version FROM order_transitions WHERE order_id = $1) x
			WHERE version > 1 AND from_state IS DISTINCT FROM was`, o.ID), "the chain of %s has a gap", o.Ref)
		// Nobody works here, so what is owed is Next(nothing, want), and a promise stands for it.
		owed := order.Next(order.ToldNothing, v.Want)
		require.Equal(t, btoi(owed != ""), count(t, pool, "order_transitions WHERE order_id = $1 AND effect = $2 AND effect_state = 'open'", o.ID, string(owed)), "owed by %s", o.Ref)
		if owed != "" {
			require.NotNil(t, o.Wake, o.Ref)
			require.Positive(t, count(t, pool, "river_job WHERE args->>'order_id' = $1", o.ID.String()))
		}
	}
	audittest.Clean(t, pool)
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	doc, err := json.Marshal(v)
	require.NoError(t, err)
	return string(doc)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Concurrent random batches end in what one thread makes of the same events, and nobody deadlocks. Without duplicates
// the gate does not queue the batches, so the locks behind it are the ones that are tested. PAIDONCE_STRESS=n runs n
// seeds of each kind; the default is 2.
func TestStressApply(t *testing.T) {
	t.Parallel()
	seeds := 2
	if n, err := strconv.Atoi(os.Getenv("PAIDONCE_STRESS")); err == nil {
		seeds = n
	}
	for name, spec := range map[string]worldSpec{
		"with duplicates":        {30, 2, 12, true},
		"without duplicates":     {30, 2, 20, false},
		"many events a payment":  {3, 2, 200, false},
		"many payments an order": {3, 25, 12, false},
	} {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				s, pool := openEager(t)
				w := newWorld(rand.New(rand.NewPCG(seed, 0)), spec)
				w.deliver(t.Context(), t, s, seed, 8)
				if !t.Failed() {
					w.check(t, pool)
				}
				t.Logf("%d events, began again: %+v", len(w.events), s.Retries())
				require.Zero(t, s.Retries().Deadlock, "one lock order everywhere: Postgres never has to break a deadlock")
			})
		}
	}
}
