package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// misread is what a mapping with bugs makes of an event.
func misread(r *rand.Rand, e store.Event, orders, payments int) store.Event {
	e.Facts, e.Payment, e.MappingVersion = slices.Clone(e.Facts), slices.Clone(e.Payment), 1
	other := fmt.Sprintf("ord_%03d", r.IntN(orders))
	switch r.IntN(8) {
	case 0:
		e.Facts[0] = order.Fact{Kind: order.KindCaptured, Amount: 99000, Currency: "EUR"}
	case 1:
		e.Event = order.Event{ID: e.ID, Type: e.Type, Realm: e.Realm, Broken: "no amount"}
	case 2:
		e.Event = order.Event{ID: e.ID, Type: e.Type, Realm: e.Realm, Ignored: "unknown_type"}
	case 3:
		e.Reference, e.Strength = other, order.StrengthPayment
	case 4:
		e.Payment = append(e.Payment, fmt.Sprintf("pi_%s_%02d", other, r.IntN(payments))) // merges strangers
	case 5:
		e.Payment = []string{"ch_" + fmt.Sprintf("%s_%02d", other, r.IntN(payments))}
	case 6:
		e.Reference, e.Strength = "", 0
	}
	e.Payment = slices.Compact(e.Payment)
	return e
}

// 32 goroutines ingest while what was misread is read again, over and over: nobody deadlocks, and in the end there is
// nothing but the fold of all facts. Some of what comes in are events again that were misread, now read rightly.
func TestReevaluateWhileEventsComeIn(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]worldSpec{
		"many orders":            {24, 2, 10, false},
		"many payments an order": {3, 12, 8, false},
	} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				t.Parallel()
				s, pool := openEager(t)
				r := rand.New(rand.NewPCG(seed, 7))
				w := newWorld(r, spec)
				used := map[string]int{}
				for i := range w.events {
					w.events[i].Payload, w.events[i].MappingVersion = fmt.Appendf(nil, "%d", i), 2
					used[w.events[i].ID]++
				}
				read := func(d store.StoredDelivery) ([]store.Event, error) {
					var i int
					err := json.Unmarshal(d.Body, &i)
					return []store.Event{w.events[i]}, err
				}
				first, rest := w.events[:len(w.events)/2], slices.Clone(w.events[len(w.events)/2:])
				for batch := range slices.Chunk(first, 30) {
					var wrong []store.Event
					for _, e := range batch {
						if e.Source != store.APISource && used[e.ID] == 1 {
							if r.IntN(4) == 0 {
								rest = append(rest, e)
							}
							e = misread(r, e, spec.orders, spec.paymentsPerOrder)
						}
						wrong = append(wrong, e)
					}
					apply(t, s, wrong...)
				}
				r.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })

				batches := make(chan []store.Event)
				var ingest, again sync.WaitGroup
				for range 32 {
					ingest.Go(func() {
						for b := range batches {
							if _, err := s.Apply(t.Context(), b); err != nil {
								t.Error(err)
							}
						}
					})
				}
				done := make(chan struct{})
				replaced := make([]int, 2)
				for who := range replaced {
					again.Go(func() {
						for last := false; ; {
							err := s.Reevaluate(t.Context(), store.ReevaluateOptions{Read: read, Apply: true, Each: func(g store.Reevaluated) error {
								replaced[who] += len(g.Events)
								return nil
							}})
							if err != nil {
								t.Error(err)
								return
							}
							if last {
								return
							}
							select {
							case <-done:
								last = true // once more, for what came as it ended
							default:
							}
						}
					})
				}
				for b := range slices.Chunk(rest, 3) {
					batches <- b
				}
				close(batches)
				ingest.Wait()
				close(done)
				again.Wait()
				require.False(t, t.Failed())
				require.Positive(t, replaced[0]+replaced[1])
				w.check(t, pool)
				requireConsistent(t, pool, account)
				t.Logf("%d events, %v replaced, began again: %+v", len(w.events), replaced, s.Retries())
				require.Zero(t, s.Retries().Deadlock)
			})
		}
	}
}

// An event commits while reevaluating waits for its payment: it was not there when the payment's events were looked up,
// and must not be lost. Where it connects the payment with another one, that one is rebuilt too.
func TestReevaluateReadsWhatIsFoldedUnderTheLock(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second string // the payments in the order in which they came
		connects      []string
		captured      int64
	}{
		"an event":                    {"pi_1", "pi_2", []string{"pi_1"}, 1000 + 300 + 50},
		"an older one is merged in":   {"pi_2", "pi_1", []string{"pi_1", "pi_2"}, 1000 + 300 + 50},
		"a younger one is merged in":  {"pi_1", "pi_2", []string{"pi_1", "pi_2"}, 1000 + 300 + 50},
		"an id that comes first":      {"pi_1", "pi_2", []string{"ch_1", "pi_1"}, 1000 + 300 + 50},
		"an id that is not known yet": {"pi_1", "pi_2", []string{"pi_1", "ch_1"}, 1000 + 300 + 50},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := openEager(t)
			item := func(id string, minor int64, ids ...string) store.Event {
				e := named(captured(id, "", "", minor), "ord_1", order.StrengthPayment, ids...)
				e.Facts[0].Ref, e.Facts[0].Status = "c_"+id, order.StatusOK
				return bytesOf(t, e)
			}
			events := map[string]store.Event{"pi_1": item("evt_1", 7, "pi_1"), "pi_2": item("evt_2", 300, "pi_2")}
			apply(t, s, register("ord_1", 5000))
			apply(t, s, events[tt.first])
			apply(t, s, events[tt.second])
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			_, err = s.ApplyTx(t.Context(), tx, []store.Event{item("evt_3", 50, tt.connects...)})
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				done <- s.Reevaluate(t.Context(), store.ReevaluateOptions{
					Filter: store.ReevaluateFilter{Event: "evt_1"}, Apply: true,
					Read: mapping{"evt_1": func(e *store.Event) { e.Facts[0].Amount = 1000 }}.read,
				})
			}()
			waitForLock(t, pool)
			require.NoError(t, tx.Commit(t.Context()))
			require.NoError(t, <-done)
			requireOrder(t, s, "ord_1", order.StatePartiallyPaid, tt.captured, "underpaid")
			requireConsistent(t, pool, account)
			want := 2
			if slices.Contains(tt.connects, "pi_2") {
				want = 1
			}
			require.Equal(t, want, count(t, pool, "payments WHERE ledger <> '{}'"))
		})
	}
}
