//go:build unix

package processor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// stressRun is one run of TestStressEffects.
type stressRun struct {
	orders    int
	facts     time.Duration // how long facts arrive
	killEvery time.Duration
	sabotage  bool          // jobs are deleted and canceled
	stalls    bool          // with each kill the other process stands still for longer than its claims last
	slowest   time.Duration // of the merchant's answers
	hanging   float64       // of calls: no answer
	heal      time.Duration // after a kill: by then every call that was out has been called again
	times     childOptions
}

// scaled are the default times divided by ten.
var scaled = childOptions{
	Workers: 16, Deadline: time.Second, Lease: 2 * time.Second, JobTimeout: 3 * time.Second, Rescue: 6 * time.Second,
	TickEvery: 500 * time.Millisecond, TickGrace: 500 * time.Millisecond, CircuitOpenFor: time.Second,
	Schedule: slices.Repeat([]time.Duration{200 * time.Millisecond}, 100), MaxAttempts: 100,
}

// real are the default times, but for the schedule: a test cannot wait for an hour.
var real = childOptions{
	Workers: 16, Deadline: 10 * time.Second, Lease: 20 * time.Second, JobTimeout: 30 * time.Second, Rescue: time.Minute,
	TickEvery: 5 * time.Second, TickGrace: 5 * time.Second, CircuitOpenFor: 10 * time.Second,
	Schedule: slices.Repeat([]time.Duration{5 * time.Second}, 100), MaxAttempts: 100,
}

// Facts arrive while effects are called by two processes; a tenth of the calls fails, some time out, some of both were
// done all the same; processes are killed, or stand
// still for longer than their claims last; jobs are deleted and canceled. In the end everything agrees.
//
// PAIDONCE_STRESS=full runs it at full size (2,000 orders), and once with the program's real times: together about
// three minutes.
func TestStressEffects(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 20 s")
	}
	t.Parallel()
	if os.Getenv("PAIDONCE_STRESS") != "full" {
		stress(t, stressRun{
			orders: 300, facts: 11 * time.Second, killEvery: 3 * time.Second, sabotage: true, stalls: true,
			slowest: 60 * time.Millisecond, hanging: .01, heal: 30 * time.Second, times: scaled,
		})
		return
	}
	t.Run("Full", func(t *testing.T) {
		stress(t, stressRun{
			orders: 2000, facts: 45 * time.Second, killEvery: 3500 * time.Millisecond, sabotage: true, stalls: true,
			slowest: 60 * time.Millisecond, hanging: .01, heal: 30 * time.Second, times: scaled,
		})
	})
	t.Run("RealTimes", func(t *testing.T) {
		stress(t, stressRun{
			orders: 300, facts: 50 * time.Second, killEvery: 15 * time.Second,
			slowest: 6 * time.Second, hanging: .02, heal: 30 * time.Second, times: real,
		})
	})
}

// lapsedResult is what a process logs when it comes back with the result of a claim that another has taken.
const lapsedResult = "result of a lapsed claim dropped"

func stress(t *testing.T, run stressRun) {
	t.Helper()
	ctx := t.Context()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(ctx, url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{MaxAttempts: run.times.MaxAttempts})
	require.NoError(t, err)
	shop := newShop(run.slowest, run.times.Deadline, .1, run.hanging)
	srv := httptest.NewServer(shop)
	t.Cleanup(srv.Close)

	start := func() *child { return startChild(t, childConfig{Database: url, Callback: srv.URL, Options: run.times}) }
	children := []*child{start(), start()}
	heal := healing{lease: run.times.Lease}

	w := newStressWorld(run.orders)
	ended := make(chan error, stressIngesters)
	feed, stopFeed := context.WithTimeout(ctx, run.facts)
	defer stopFeed()
	for i := range stressIngesters {
		go func() { ended <- w.feed(feed, ctx, s, i) }()
	}
	audited := make(chan error, 1)
	go func() { audited <- auditWhile(feed, ctx, pool) }()
	kill, sabotage, poll := time.NewTicker(run.killEvery), time.NewTicker(200*time.Millisecond), time.NewTicker(50*time.Millisecond)
	defer kill.Stop()
	defer sabotage.Stop()
	defer poll.Stop()
	var (
		errlog           strings.Builder
		kills, sabotaged int
		dropped          int
		resume           <-chan time.Time
		stalled          *child
	)
	for left := stressIngesters; left > 0; {
		select {
		case err := <-ended:
			require.NoError(t, err)
			left--
		case <-kill.C:
			n := kills % len(children)
			kills++
			children[n].kill()
			heal.killed(t, pool)
			errlog.WriteString(children[n].errors(t))
			dropped += children[n].count(t, lapsedResult)
			children[n] = start()
			if run.stalls {
				stalled, resume = children[1-n], time.After(run.times.Lease+run.times.Deadline/2)
				stalled.stall()
			}
		case <-resume:
			stalled.on()
			resume = nil
		case <-poll.C:
			heal.poll(t, pool)
		case <-sabotage.C:
			if run.sabotage {
				sabotaged += spoilJobs(t, pool)
			}
		}
	}
	if stalled != nil {
		stalled.on()
	}
	for deadline := time.Now().Add(2 * time.Minute); count(t, pool, "orders WHERE wake_at IS NOT NULL") > 0 || len(heal.open) > 0; {
		require.Less(t, time.Now(), deadline, "%d orders still wait for a look", count(t, pool, "orders WHERE wake_at IS NOT NULL"))
		<-poll.C
		heal.poll(t, pool)
	}
	for _, c := range children {
		c.stop(t)
		errlog.WriteString(c.errors(t))
		dropped += c.count(t, lapsedResult)
	}
	var deadlocks int
	require.NoError(t, pool.QueryRow(ctx, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks))
	slices.Sort(heal.took)
	worst := heal.took[len(heal.took)-1]
	t.Logf("%d orders, %d events, %d kills, %d jobs spoiled, %d calls (%d keys again, %d late versions), %d results dropped, %d deadlocks; healed after a kill: median %s, worst %s; errors:\n%s",
		run.orders, w.events.Load(), kills, sabotaged, shop.calls, shop.again, shop.late, dropped, deadlocks,
		heal.took[len(heal.took)/2].Round(time.Millisecond), worst.Round(time.Millisecond), errlog.String())

	require.Empty(t, shop.overlaps, "never two calls at once for one order")
	require.Zero(t, deadlocks)
	require.NotContains(t, errlog.String(), "DATA RACE")
	require.Greater(t, worst, run.times.Lease, "no kill met a call that was out")
	require.LessOrEqual(t, worst, run.heal)
	require.NoError(t, <-audited, "while everything went on")
	w.check(t, pool, shop)
	audittest.Clean(t, pool)
}

// auditWhile audits the database again and again while others write.
func auditWhile(feeding, ctx context.Context, pool *pgxpool.Pool) error {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-feeding.Done():
			return nil
		}
		found, err := audittest.Differences(ctx, pool, "")
		if err == nil && len(found) > 0 {
			err = fmt.Errorf("the audit finds differences:\n%s", strings.Join(found, "\n"))
		}
		if err != nil {
			return err
		}
	}
}

// spoilJobs deletes and cancels jobs as an operator might.
func spoilJobs(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	deleted, err := pool.Exec(t.Context(), `DELETE FROM river_job WHERE id IN (
		SELECT id FROM river_job WHERE state IN ('available', 'scheduled', 'running') ORDER BY random() LIMIT 3 FOR UPDATE SKIP LOCKED)`)
	require.NoError(t, err)
	canceled, err := pool.Exec(t.Context(), `UPDATE river_job SET state = 'cancelled', finalized_at = now() WHERE id IN (
		SELECT id FROM river_job WHERE state IN ('available', 'scheduled', 'retryable') ORDER BY random() LIMIT 2 FOR UPDATE SKIP LOCKED)`)
	require.NoError(t, err)
	return int(deleted.RowsAffected() + canceled.RowsAffected())
}

// healing measures how long after a kill the last effect that the process had claimed was claimed anew or ended.
type healing struct {
	lease time.Duration
	open  []time.Time // kills, by the database's clock
	took  []time.Duration
}

func (h *healing) killed(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var now time.Time
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT clock_timestamp()`).Scan(&now))
	h.open = append(h.open, now)
}

// poll finds the kills of which no claim is left: one that was made before a kill ends at most a lease after it.
func (h *healing) poll(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	if len(h.open) == 0 {
		return
	}
	var now, oldest time.Time
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT clock_timestamp(), coalesce(min(claimed_until), '2999-01-01')
		FROM order_transitions WHERE effect_state = 'claimed'`).Scan(&now, &oldest))
	h.open = slices.DeleteFunc(h.open, func(kill time.Time) bool {
		if oldest.Before(kill.Add(h.lease)) {
			return false
		}
		h.took = append(h.took, now.Sub(kill))
		return true
	})
}

func count(t *testing.T, pool *pgxpool.Pool, what string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+what).Scan(&n))
	return n
}

const stressIngesters = 4

// stressWorld makes facts about orders and remembers them.
type stressWorld struct {
	orders []*stressOrder
	events atomic.Int64
}

type stressOrder struct {
	account, ref string
	inputs       order.Order // what the order must be in the end
	payments     int
	seq          int64
}

func newStressWorld(n int) *stressWorld {
	w := &stressWorld{}
	for i := range n {
		w.orders = append(w.orders, &stressOrder{account: fmt.Sprintf("shop%d", i%7), ref: fmt.Sprintf("ord_%d", i)})
	}
	return w
}

// feed ingests facts about every stressIngesters-th order until feeding ends.
func (w *stressWorld) feed(feeding, ctx context.Context, s *store.Store, nth int) error {
	var mine []*stressOrder
	for i := nth; i < len(w.orders); i += stressIngesters {
		mine = append(mine, w.orders[i])
	}
	for feeding.Err() == nil {
		rand.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
		var batch []store.Event
		for _, o := range mine[:min(len(mine), 1+rand.IntN(32))] {
			batch = append(batch, o.next())
		}
		if _, err := s.Apply(ctx, batch); err != nil {
			return err
		}
		w.events.Add(int64(len(batch)))
		select {
		case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
		case <-feeding.Done():
		}
	}
	return nil
}

// next makes up the next thing that happens to an order, and what it must be then.
func (o *stressOrder) next() store.Event {
	e := store.Event{Account: o.account, Source: "shop"}
	o.seq++
	e.ID, e.At, e.Realm = fmt.Sprintf("%s:%d", o.ref, o.seq), noon.Add(time.Duration(o.seq)*time.Second), "test"
	if o.inputs.Payments == nil {
		o.inputs = order.Order{Registered: true, Total: 5000, Currency: "EUR", Payments: map[string]*order.Ledger{}}
		e = registration(o.account, o.ref)
		return e
	}
	fact := order.Fact{Seq: o.seq, Amount: 5000, Currency: "EUR"}
	dice := rand.IntN(6)
	if o.payments == 0 || dice == 0 && o.payments < 2 {
		o.payments++
	}
	p := fmt.Sprintf("pay_%s_%d", o.ref, 1+rand.IntN(o.payments))
	switch dice {
	case 0, 1:
		fact.Kind = order.KindCaptured
		fact.Seq = 0
	case 2:
		fact.Kind, fact.Ref, fact.Status = order.KindRefunded, "re", order.StatusOK
	case 3:
		fact.Kind, fact.Ref, fact.Status = order.KindRefunded, "re", order.StatusFailed
	default:
		fact.Kind, fact.Ref = order.KindDisputed, "dp"
		fact.Status = []order.Status{order.StatusOpen, order.StatusWon, order.StatusLost}[rand.IntN(3)]
	}
	e.Type, e.Payment, e.Facts = string(fact.Kind), []string{p}, []order.Fact{fact}
	e.Reference, e.Strength = o.ref, order.StrengthPayment
	if o.inputs.Payments[p] == nil {
		o.inputs.Payments[p] = order.NewLedger()
	}
	o.inputs.Payments[p].Join(fact)
	return e
}

// check compares the tables, the facts and the merchant.
func (w *stressWorld) check(t *testing.T, pool *pgxpool.Pool, shop *shop) {
	t.Helper()
	type row struct {
		Account, Ref, ID string
		Told             order.Told
		Want             order.Want
		State            order.State
		Effect           order.Effect
		EffectState      order.EffectState
	}
	rows, _ := pool.Query(t.Context(), `
		SELECT o.account_id, o.external_ref, o.id::text, o.told, o.want, o.state, coalesce(t.effect, ''), coalesce(t.effect_state, '')
		FROM orders o
		LEFT JOIN order_transitions t ON t.account_id = o.account_id AND t.order_id = o.id AND t.effect_state IN ('open', 'claimed', 'dead')`)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	require.NoError(t, err)
	found := map[string]row{}
	for _, r := range all {
		found[r.Account+"/"+r.Ref] = r
	}
	parked, revoked := 0, 0
	for _, o := range w.orders {
		r, ok := found[o.account+"/"+o.ref]
		if !ok {
			require.Nil(t, o.inputs.Payments, "order %s was registered and is not there", o.ref)
			continue
		}
		v := o.inputs.View()
		require.Equal(t, v.State, r.State, "order %s", r.ID)
		require.Equal(t, v.Want, r.Want, "order %s", r.ID)
		m := shop.order(r.ID)
		require.LessOrEqual(t, m.fulfils, 1, "order %s was fulfilled twice", r.ID)
		if r.Told == order.ToldRevoked {
			revoked++
		}
		if r.Effect == order.EffectNone {
			require.Equal(t, order.EffectNone, order.Next(r.Told, r.Want), "order %s is owed something that nobody asked for", r.ID)
			require.True(t, m.owns(r.Told), "order %s: the merchant is at %s, told %s", r.ID, m.state, r.Told)
			continue
		}
		// In doubt and not wanted: it stays, and either of the two is the merchant's state.
		parked++
		require.Equal(t, order.EffectOpen, r.EffectState, "order %s", r.ID)
		require.NotEqual(t, r.Effect, order.Next(r.Told, r.Want), "order %s owes %s and nobody comes", r.ID, r.Effect)
		after := order.After(r.Told, r.Effect)
		require.Equal(t, order.EffectNone, order.Next(after, r.Want), "order %s", r.ID)
		require.True(t, m.owns(r.Told) || m.owns(after), "order %s: the merchant is at %s, told %s", r.ID, m.state, r.Told)
	}
	require.Positive(t, revoked, "the run must have met refunds after fulfilments")

	// Every key that is done in our books was done by the merchant.
	keys, _ := pool.Query(t.Context(), `SELECT order_id::text, order_id::text || ':' || version || ':' || effect FROM order_transitions WHERE effect_state = 'done'`)
	var id, key string
	n, err := pgx.ForEachRow(keys, []any{&id, &key}, func() error {
		if !shop.order(id).done[key] {
			return fmt.Errorf("%s is done in our books, and the merchant never did it", key)
		}
		return nil
	})
	require.NoError(t, err)
	t.Logf("%d effects done, %d orders in doubt, %d revoked", n.RowsAffected(), parked, revoked)
	var applied int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM processed_events`).Scan(&applied))
	require.EqualValues(t, w.events.Load(), applied)
}
