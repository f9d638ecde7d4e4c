package outbound_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// history is what happens to orders: payments, refunds, in the last fifty minutes.
func history(rnd *rand.Rand, orders int) (all []entry) {
	for i := range orders {
		at := ago(50*time.Minute - time.Duration(rnd.IntN(35*60))*time.Second)
		ref, pay := fmt.Sprintf("ord_%03d", i), fmt.Sprintf("pay_%03d", i)
		all = append(all, entry{ID: fmt.Sprintf("c_%03d", i), At: at, Payment: pay, Order: ref, Captured: []int64{5000, 5000, 2500, 6000}[rnd.IntN(4)]})
		for n := range rnd.IntN(3) {
			all = append(all, entry{
				ID: fmt.Sprintf("r_%03d_%d", i, n), At: at.Add(time.Duration(1+rnd.IntN(300)) * time.Second), Payment: pay, Order: ref, Refunded: 1000,
			})
		}
	}
	return all
}

// With a tenth of the webhooks lost, and runs side by side all the while, all orders end as if none had been.
func TestLostWebhooksAreFound(t *testing.T) {
	t.Parallel()
	const seed, orders = 7, 150
	whole, lossy := newRecon(t, outbound.ReconcileOptions{}), newRecon(t, outbound.ReconcileOptions{Span: 5 * time.Minute})
	all := history(rand.New(rand.NewPCG(seed, 1)), orders)
	require.GreaterOrEqual(t, len(all), 250)
	for _, r := range []*recon{whole, lossy} {
		for i := range orders {
			r.register(fmt.Sprintf("ord_%03d", i), 5000)
		}
	}
	lossy.annals.happened(all...)

	rnd := rand.New(rand.NewPCG(seed, 2))
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var lost []string
	var wg sync.WaitGroup
	stop := make(chan struct{})
	busy, done := 0, 0
	var mu sync.Mutex
	for range 2 {
		other := lossy.reconciler(outbound.ReconcileOptions{Span: 5 * time.Minute})
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_, err := other.Reconcile(context.Background(), "shop", outbound.ReconcileRequest{Since: ago(time.Hour)})
				var e *store.ReconcileBusyError
				mu.Lock()
				switch {
				case errors.As(err, &e):
					busy++
				case err == nil:
					done++
				default:
					t.Errorf("%v", err)
				}
				mu.Unlock()
			}
		})
	}
	for _, e := range all {
		whole.deliver(e)
		if rnd.IntN(10) == 0 {
			lost = append(lost, e.ID)
		} else {
			lossy.deliver(e)
		}
	}
	lossy.until("both have run, and met", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return busy > 0 && done > 1
	})
	close(stop)
	wg.Wait()
	require.Greater(t, len(lost), 15)
	run := lossy.reconcile()
	require.Equal(t, store.ReconcileDone, run.Result)
	require.Equal(t, len(all), run.Duplicates, "what is listed is known by now: %+v", run.ReconcileReport)
	require.Equal(t, whole.orders(), lossy.orders())
	audittest.Clean(t, lossy.pool)

	// Nothing was counted as delivered that was only listed.
	require.Equal(t, []string{fmt.Sprint(len(all))}, lossy.texts(`SELECT sum(deliveries)::text FROM processed_events WHERE source_id = 'shop'`))
	listed := lossy.texts(`SELECT DISTINCT event_id FROM event_payloads WHERE header ? 'Paidonce-Listed' ORDER BY 1`)
	for _, id := range lost {
		require.Contains(t, listed, id)
	}
}

// What is found is reported, each with how late it was.
func TestWhatIsFoundIsReported(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.register("ord_1", 5000)
	r.register("ord_2", 5000)
	known := entry{ID: "e1", At: ago(40 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000}
	lost := []entry{
		{ID: "e2", At: ago(30 * time.Minute), Payment: "p1", Order: "ord_1", Refunded: 2000},
		{ID: "e3", At: ago(20 * time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
		{ID: "e4", At: ago(10 * time.Minute), Payment: "p2", Order: "ord_2", Status: "authorized"}, // says nothing that counts by now
		{ID: "e5", At: ago(10 * time.Minute)},                                                      // carries no fact
	}
	r.annals.happened(known)
	r.annals.happened(lost...)
	r.deliver(known)
	run := r.reconcile()
	require.Equal(t, store.ReconcileDone, run.Result)
	require.Equal(t, []string{"ord_1 partially_refunded", "ord_2 paid"}, r.states())
	require.Equal(t, 4, run.Listed)
	require.Equal(t, 1, run.Duplicates)
	require.Equal(t, 3, run.Healed)
	require.Equal(t, 2, run.Moved)
	require.InDelta(t, 1800, run.LateMax, 30)
	require.InDelta(t, 1200, run.LateP50, 30)
	require.Equal(t, "command", string(run.Cause))
	byID := map[string]store.HealedEvent{}
	for _, h := range run.Events {
		byID[h.ID] = h
	}
	require.Equal(t, store.Applied, byID["e2"].Outcome)
	require.NotNil(t, byID["e2"].Order)
	require.InDelta(t, 1800, byID["e2"].Late, 30)
	require.Equal(t, store.NoChange, byID["e4"].Outcome)
	require.Equal(t, 2, metric(t, r.metrics, "paidonce_reconcile_healed_total", "outcome", "applied"))
	require.Contains(t, r.log.String(), `"level":"WARN","msg":"source reconciled"`)

	runs, _, err := r.store.ReconcileRuns(t.Context(), store.ReconcileRunFilter{Account: "acme"})
	require.NoError(t, err)
	require.Len(t, runs, 1)
	require.Equal(t, run.ReconcileReport.Healed, runs[0].Healed)
	require.Equal(t, run.ID, runs[0].ID)

	again := r.reconcile()
	require.Zero(t, again.Healed)
	require.Equal(t, 4, again.Duplicates)
	runs, _, err = r.store.ReconcileRuns(t.Context(), store.ReconcileRunFilter{Account: "acme", Eventful: true})
	require.NoError(t, err)
	require.Len(t, runs, 1, "the second one found nothing")
}

// The schedule lets a webhook have its time.
func TestTheScheduleIsNotTooQuick(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Grace: 3 * time.Minute})
	young := entry{ID: "e1", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000}
	old := entry{ID: "e2", At: ago(4 * time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000}
	r.annals.happened(young, old)
	require.NoError(t, r.Tick(t.Context()))
	r.Wait()
	require.Equal(t, []string{"e2"}, r.texts(`SELECT event_id FROM processed_events WHERE source_id = 'shop'`))
	c := r.cursor()
	require.False(t, c.Claimed)
	require.InDelta(t, 300, c.Wait.Seconds(), 5)
	calls := r.annals.count()
	require.NoError(t, r.Tick(t.Context()))
	r.Wait()
	require.Equal(t, calls, r.annals.count(), "it is not due")
	r.old(5 * time.Minute)
	require.NoError(t, r.Tick(t.Context()))
	r.Wait()
	require.Greater(t, r.annals.count(), calls)
	require.Positive(t, metric(t, r.metrics, "paidonce_reconcile_lag_seconds", "source", "shop"))
}

// A first run begins where the source's first event was received, with what may have been lost just before.
func TestTheFirstRun(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.deliver(entry{ID: "e1", At: ago(0), Payment: "p1", Order: "ord_1", Captured: 5000})
	_, err := r.pool.Exec(t.Context(), `UPDATE processed_events SET received_at = received_at - interval '3 days'`)
	require.NoError(t, err)
	r.annals.happened(
		entry{ID: "e0", At: ago(10 * 24 * time.Hour), Payment: "p0", Order: "ord_0", Captured: 5000},
		entry{ID: "e2", At: ago(3*24*time.Hour + time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
		entry{ID: "e3", At: ago(24 * time.Hour), Payment: "p3", Order: "ord_3", Captured: 5000},
	)
	run, err := r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileDone, run.Result)
	require.Equal(t, 2, run.Healed)
	require.Less(t, run.Calls, 30, "spans grow where little happened")

	// With a time, from there; and not further back than the list goes.
	run, err = r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{Since: ago(90 * 24 * time.Hour)})
	require.NoError(t, err)
	require.Equal(t, 1, run.Healed)
	require.WithinDuration(t, ago(30*24*time.Hour), *run.From, time.Minute)
	require.Len(t, run.Notes, 1)
	require.Contains(t, run.Notes[0], "is not found in it any more")
}

// A run that is given up in its middle leaves the cursor where it was whole, and the next one goes on there.
func TestARunThatStops(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute, MaxSpan: time.Minute})
	r.annals.happened(
		entry{ID: "e1", At: ago(50 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000},
		entry{ID: "e2", At: ago(20 * time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
	)
	ctx, cancel := context.WithCancel(t.Context())
	r.annals.when(func(call int, _ http.ResponseWriter, q *http.Request) bool {
		if call < 25 {
			return false
		}
		cancel()
		<-q.Context().Done()
		return true
	})
	run, err := r.Reconcile(ctx, "shop", outbound.ReconcileRequest{Since: ago(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileStopped, run.Result)
	require.Equal(t, []string{"e1"}, r.texts(`SELECT event_id FROM processed_events WHERE source_id = 'shop'`))
	c := r.cursor()
	require.WithinDuration(t, ago(36*time.Minute), *c.Reached, 5*time.Second)
	require.False(t, c.Claimed)

	r.annals.when(nil)
	run, err = r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileDone, run.Result)
	require.WithinDuration(t, *c.Reached, *run.From, time.Second)
	require.Equal(t, 1, run.Healed)
}

// Whoever was killed leaves a claim that lapses; whoever only slept through it moves no cursor any more.
func TestARunThatIsTakenOver(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute, MaxSpan: time.Minute})
	r.annals.happened(entry{ID: "e1", At: ago(20 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
	inside, goOn := make(chan struct{}), make(chan struct{})
	r.annals.when(func(call int, _ http.ResponseWriter, _ *http.Request) bool {
		if call == 10 {
			close(inside)
			<-goOn
		}
		return false
	})
	slept := make(chan error, 1)
	go func() {
		_, err := r.Reconcile(context.Background(), "shop", outbound.ReconcileRequest{Since: ago(time.Hour)})
		slept <- err
	}()
	<-inside
	_, err := r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
	var busy *store.ReconcileBusyError
	require.ErrorAs(t, err, &busy)
	require.False(t, busy.Held)
	require.WithinDuration(t, time.Now().Add(2*time.Minute), busy.Until, 30*time.Second)

	_, err = r.pool.Exec(t.Context(), `UPDATE reconcile_cursors SET claimed_until = clock_timestamp()`)
	require.NoError(t, err)
	run, err := r.reconciler(outbound.ReconcileOptions{}).Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileDone, run.Result)
	reached := r.cursor().Reached
	close(goOn)
	require.ErrorIs(t, <-slept, store.ErrReconcileLost)
	require.Equal(t, reached, r.cursor().Reached)
	require.False(t, r.cursor().Claimed)
	require.Equal(t, []string{"done", "lost"}, r.texts(`SELECT result FROM reconcile_runs ORDER BY result`))
}

// A page that cannot be read is not taken in, nor is what follows it; the cursor waits, and it is asked for again.
func TestAPageOfGarbage(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.annals.happened(entry{ID: "e1", At: ago(20 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
	r.annals.when(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
		_, _ = w.Write([]byte(`{"entries":[{"id":"e1","payment":"p1","captured":5000}`))
		return true
	})
	for n, wait := range []time.Duration{5 * time.Minute, 10 * time.Minute, 20 * time.Minute, 40 * time.Minute, time.Hour, time.Hour} {
		run := r.reconcile()
		require.Equal(t, store.ReconcileFailed, run.Result)
		require.Contains(t, run.Error, "cannot be read")
		require.NotContains(t, run.Error, "e1", "an error quotes nothing")
		c := r.cursor()
		require.Equal(t, n+1, c.Failures)
		require.InDelta(t, wait.Seconds(), c.Wait.Seconds(), 5)
		require.WithinDuration(t, ago(time.Hour), *c.Reached, 10*time.Second)
	}
	require.Empty(t, r.events())
	require.Equal(t, 1, strings.Count(r.log.String(), `"level":"ERROR"`), "one alarm, and warnings")
	r.annals.when(nil)
	require.Equal(t, 1, r.reconcile().Healed)
	require.Zero(t, r.cursor().Failures)
	require.Empty(t, r.cursor().Error)
}

// One event that cannot be read, or stored, does not hold up the others: it is kept aside for a person.
func TestAnEventOfGarbage(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.annals.happened(
		entry{ID: "e1", At: ago(20 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000},
		entry{At: ago(21 * time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
		entry{ID: "e3", At: ago(22 * time.Minute), Payment: strings.Repeat("p", 513), Order: "ord_3", Captured: 5000},
		entry{ID: "e4", At: ago(23 * time.Minute), Payment: "p4", Order: "ord_4", Captured: 5000},
	)
	run := r.reconcile()
	require.Equal(t, store.ReconcileDone, run.Result)
	require.Equal(t, 2, run.Healed)
	require.Equal(t, 2, run.KeptAside)
	got := r.events()
	slices.Sort(got)
	require.Equal(t, []string{"entry waiting", "entry waiting", "unreadable quarantined", "unreadable quarantined"}, got)
	again := r.reconcile()
	require.Zero(t, again.KeptAside)
	require.Equal(t, 4, again.Duplicates)
}

func TestItWaitsAsLongAsItIsAsked(t *testing.T) {
	t.Parallel()
	answer := func(r *recon, status int, after string, times int) {
		n := 0
		r.annals.when(func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			if n++; n > times {
				return false
			}
			w.Header().Set("Retry-After", after)
			w.WriteHeader(status)
			return true
		})
	}
	t.Run("a little", func(t *testing.T) {
		t.Parallel()
		r := newRecon(t, outbound.ReconcileOptions{})
		r.annals.happened(entry{ID: "e1", At: ago(20 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
		answer(r, 429, "7", 2)
		run := r.reconcile()
		require.Equal(t, store.ReconcileDone, run.Result)
		require.Equal(t, 1, run.Healed)
		require.GreaterOrEqual(t, r.clock.elapsed(), 14*time.Second)
		require.Equal(t, r.annals.count(), run.Calls)
	})
	t.Run("long", func(t *testing.T) {
		t.Parallel()
		r := newRecon(t, outbound.ReconcileOptions{})
		answer(r, 429, "600", 1)
		run := r.reconcile()
		require.Equal(t, store.ReconcileFailed, run.Result)
		require.Equal(t, 1, r.annals.count())
		c := r.cursor()
		require.WithinDuration(t, time.Now().Add(600*time.Second), *c.Held, 10*time.Second)
		require.InDelta(t, 600, c.Wait.Seconds(), 10)
		require.NotContains(t, r.log.String(), `"level":"ERROR"`, "it passes by itself")

		_, err := r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
		var busy *store.ReconcileBusyError
		require.ErrorAs(t, err, &busy)
		require.True(t, busy.Held)
		_, err = r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{DryRun: true})
		require.ErrorAs(t, err, &busy)
		require.Equal(t, 1, r.annals.count(), "whoever asks, in whatever process")
		r.old(11 * time.Minute)
		r.clock.move(11 * time.Minute)
		require.Equal(t, store.ReconcileDone, r.reconcile().Result)
		require.Nil(t, r.cursor().Held)
	})
	t.Run("denied", func(t *testing.T) {
		t.Parallel()
		r := newRecon(t, outbound.ReconcileOptions{})
		r.source(gateway.Source{ID: "shop", Account: "acme", Gateway: "chronicle", AccessToken: "wrong"})
		run := r.reconcile()
		require.Equal(t, store.ReconcileFailed, run.Result)
		require.Contains(t, run.Error, "401")
		require.Equal(t, 1, r.annals.count())
		require.Contains(t, r.log.String(), `"level":"ERROR"`)
	})
}

// What is allowed to one run is bounded; the next one goes on where it ended.
func TestARunIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute, MaxSpan: time.Minute, Calls: 20})
	r.annals.happened(entry{ID: "e1", At: ago(10 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
	run := r.reconcile()
	require.Equal(t, store.ReconcileMore, run.Result)
	require.Equal(t, 20, run.Calls)
	require.LessOrEqual(t, r.cursor().Wait, time.Duration(0), "the next one is due at once")
	for range 2 {
		_, err := r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{})
		require.NoError(t, err)
	}
	require.Equal(t, 60, r.annals.count())
	require.Len(t, r.events(), 1)
}

// A second that has more than a page is paged through, and one that has no end is no list.
func TestASecondOfManyPages(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Pages: 6})
	at := ago(20 * time.Minute).Truncate(time.Second)
	for i := range 55 {
		r.annals.happened(entry{ID: fmt.Sprintf("e%d", i), At: at, Payment: fmt.Sprintf("p%d", i), Order: "o", Captured: 1})
	}
	run := r.reconcile()
	require.Equal(t, store.ReconcileDone, run.Result, run.Error)
	require.Equal(t, 55, run.Healed)
	for i := range 10 {
		r.annals.happened(entry{ID: fmt.Sprintf("f%d", i), At: at, Payment: fmt.Sprintf("q%d", i), Order: "o", Captured: 1})
	}
	run = r.reconcile()
	require.Equal(t, store.ReconcileFailed, run.Result)
	require.Contains(t, run.Error, "more than 6 pages")
}

// A dry run says what is new, and leaves no trace.
func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute})
	known := entry{ID: "e1", At: ago(40 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000}
	r.annals.happened(known,
		entry{ID: "e2", At: ago(30 * time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
		entry{At: ago(20 * time.Minute), Payment: "p3"}, // cannot be read
	)
	r.annals.objects = []entry{{At: ago(25 * time.Minute), Payment: "p4"}}
	r.deliver(known)
	before := r.everything()
	for range 2 {
		run, err := r.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{Since: ago(time.Hour), DryRun: true})
		require.NoError(t, err)
		require.Equal(t, store.ReconcileDone, run.Result)
		require.Equal(t, 1, run.Duplicates)
		require.Equal(t, 1, run.Healed)
		require.Equal(t, 1, run.KeptAside)
		require.Equal(t, 1, run.Announced)
		require.Equal(t, "e2", run.Events[0].ID)
		require.Empty(t, run.Events[0].Outcome)
	}
	require.Equal(t, before, r.everything())
	require.Zero(t, metric(t, r.metrics, "paidonce_reconcile_healed_total", "source", "shop"))
	require.Equal(t, 1, r.reconcile().Healed, "what a dry run has seen is as new as before")
}

// A panic of a mapping ends the run, and nothing else.
func TestAPanicEndsTheRun(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	bad := *chronicle
	list := *bad.Listing
	list.Read = func(gateway.Source, gateway.Answer) (gateway.Page, error) { panic("never print what the answer says") }
	bad.Listing = &list
	one, err := outbound.NewReconciler(r.store, r.client, through{r.store}, r.configured, outbound.ReconcileOptions{
		Gateways: func(name string) (*gateway.Gateway, bool) { return &bad, name == "chronicle" },
	})
	require.NoError(t, err)
	run, err := one.Reconcile(t.Context(), "shop", outbound.ReconcileRequest{Since: ago(time.Hour)})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileFailed, run.Result)
	require.Equal(t, "a panic in this program", run.Error)
	require.False(t, r.cursor().Claimed)
}
