package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/merchant"
)

// healWithin is how long after the kill of a worker its call is made again: the
// claim lapses after 20 s, and the next tick, 5 s later at most, sees it.
const healWithin = 30 * time.Second

// TestKillNineServe kills serve while a transaction of it stands before its
// commit, once after each statement that ingest writes with. Nothing of it is
// there, and the gateway's next try is taken in.
func TestKillNineServe(t *testing.T) {
	t.Parallel()
	for _, at := range [][2]string{
		{"INSERT", "processed_events"}, {"UPDATE", "orders"}, {"INSERT", "order_transitions"}, {"INSERT", "river_job"},
	} {
		t.Run(at[0]+" "+at[1], func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.register("kill-1")
			f := w.hold("serve", 1, 0, at[0], at[1])
			answered := make(chan int, 1)
			go func() { answered <- w.post(t.Context(), 1, paid("kill-1")) }()
			w.killHeld(f, "serve", 1)
			require.Zero(t, <-answered, "no answer before the commit")
			require.Zero(t, w.count(`SELECT count(*) FROM processed_events WHERE source_id <> 'api'`))
			require.Zero(t, w.count(`SELECT count(*) FROM payments`))
			require.Zero(t, w.count(`SELECT count(*) FROM orders WHERE state <> 'pending'`))

			require.NoError(t, w.Program.Start(t.Context(), "serve", 1))
			require.Equal(t, 200, w.post(t.Context(), 1, paid("kill-1")))
			require.Equal(t, 200, w.post(t.Context(), 1, paid("kill-1")))
			w.eventually(healWithin, w.owed)
			require.Equal(t, 1, w.count(`SELECT count(*) FROM processed_events WHERE source_id <> 'api'`))
			require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("kill-1"))
			require.Empty(t, w.Merchant.Violations())
		})
	}
}

// TestKillNineWork kills work at every station of one call: before the claim
// commits, during the call, and after the merchant has done it but before that
// is settled. The effect is done once, within healWithin.
func TestKillNineWork(t *testing.T) {
	t.Parallel()

	for name, skip := range map[string]int{"BeforeTheClaimCommits": 0, "BeforeTheResultCommits": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.register("kill-1")
			f := w.hold("work", 1, skip, "UPDATE", "order_transitions")
			require.Equal(t, 200, w.post(t.Context(), 1, paid("kill-1")))
			killed := w.killHeld(f, "work", 1)
			require.Len(t, w.Merchant.Calls(), skip, "calls before the kill")
			require.NoError(t, w.Program.Start(t.Context(), "work", 1))
			w.eventually(time.Until(killed.Add(healWithin)), w.owed)
			t.Logf("healed %s after the kill", time.Since(killed).Round(10*time.Millisecond))
			require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("kill-1"))
			require.Equal(t, map[string]int{"fulfil": 1}, w.Merchant.Keys(), "the same key again")
			require.Len(t, w.Merchant.Calls(), skip+1)
			require.Empty(t, w.Merchant.Violations())
			require.Equal(t, 1, w.count(`SELECT count(*) FROM orders WHERE told = 'fulfilled' AND state = 'paid'`))
		})
	}

	t.Run("DuringTheCall", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil)
		w.register("kill-1")
		w.Merchant.Answer(merchant.Hang)
		arrived := w.Merchant.Arrived()
		require.Equal(t, 200, w.post(t.Context(), 1, paid("kill-1")))
		<-arrived
		require.NoError(t, w.Program.Kill(t.Context(), "work", 1))
		killed := time.Now()
		w.Merchant.Answer(merchant.OK)
		require.NoError(t, w.Program.Start(t.Context(), "work", 1))
		w.eventually(time.Until(killed.Add(healWithin)), w.owed)
		t.Logf("healed %s after the kill", time.Since(killed).Round(10*time.Millisecond))
		require.Equal(t, []string{"fulfil"}, w.Merchant.Effects("kill-1"))
		require.Len(t, w.Merchant.Calls(), 2)
		require.Equal(t, map[string]int{"fulfil": 1}, w.Merchant.Keys())
		require.Empty(t, w.Merchant.Violations())
	})

	t.Run("AndTheMoneyGoesMeanwhile", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, nil)
		w.register("kill-1")
		f := w.hold("work", 1, 1, "UPDATE", "order_transitions")
		require.Equal(t, 200, w.post(t.Context(), 1, paid("kill-1")))
		killed := w.killHeld(f, "work", 1) // the merchant has delivered, and nobody knows
		require.Equal(t, merchant.Delivered, w.Merchant.Goods("kill-1"))
		require.Equal(t, 200, w.post(t.Context(), 1, refunded("kill-1")))
		require.NoError(t, w.Program.Start(t.Context(), "work", 1))
		w.eventually(time.Until(killed.Add(healWithin)), w.owed)
		require.Equal(t, []string{"fulfil", "revoke"}, w.Merchant.Effects("kill-1"))
		require.Equal(t, merchant.Returned, w.Merchant.Goods("kill-1"))
		require.Empty(t, w.Merchant.Violations())
	})
}

// TestKillNineAtRandom kills serve and work again and again, at moments that
// nobody chose, while webhooks come in and effects go out. In the end nothing is
// lost and nothing happened twice.
func TestKillNineAtRandom(t *testing.T) {
	t.Parallel()
	const (
		orders   = 400
		kills    = 8
		refunds  = 5 // every fifth order is given back
		senders  = 8
		betweens = 700 * time.Millisecond // about so long between two kills
	)
	w := newWorld(t, nil)
	require.NoError(t, w.Program.Start(t.Context(), "serve", 2))
	require.NoError(t, w.Program.Start(t.Context(), "work", 2))
	refs := make([]string, orders)
	for i := range refs {
		refs[i] = fmt.Sprintf("random-%03d", i)
	}
	w.register(refs...)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	// Senders keep a pace at which the kills fall into the middle of it.
	var wg sync.WaitGroup
	errs := make(chan error, orders*2)
	work := make(chan int)
	for range senders {
		wg.Go(func() {
			for i := range work {
				if err := w.deliver(ctx, paid(refs[i]), 1, 2); err != nil {
					errs <- fmt.Errorf("pay %s: %w", refs[i], err)
				}
				if i%refunds == 0 {
					if err := w.deliver(ctx, refunded(refs[i]), 2, 1); err != nil {
						errs <- fmt.Errorf("refund %s: %w", refs[i], err)
					}
				}
			}
		})
	}
	wg.Go(func() {
		defer close(work)
		pace := time.NewTicker(kills * betweens / orders)
		defer pace.Stop()
		for i := range orders {
			<-pace.C
			select {
			case work <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	for range kills {
		<-time.After(betweens/2 + rand.N(betweens))
		process, instance := []string{"serve", "work"}[random.IntN(2)], 1+random.IntN(2)
		require.NoError(t, w.Program.Kill(t.Context(), process, instance))
		require.NoError(t, w.Program.Start(t.Context(), process, instance))
	}
	last := time.Now()
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	w.eventually(time.Until(last.Add(healWithin+10*time.Second)), w.owed) // the queue behind the lapsed claims too
	t.Logf("quiet %s after the last kill; %d calls of %v", time.Since(last).Round(time.Millisecond), len(w.Merchant.Calls()), w.Merchant.Keys())

	require.Empty(t, w.Merchant.Violations())
	require.Equal(t, orders+orders/refunds, w.count(`SELECT count(*) FROM processed_events WHERE source_id <> 'api'`))
	require.Equal(t, orders, w.count(`SELECT count(*) FROM payments WHERE merged_into IS NULL AND order_id IS NOT NULL`))
	require.Equal(t, orders-orders/refunds, w.count(`SELECT count(*) FROM orders WHERE state = 'paid' AND told = 'fulfilled' AND captured = 5000`))
	require.Equal(t, orders, w.count(`
		SELECT count(*) FROM order_transitions WHERE from_state = 'pending' AND to_state IN ('paid', 'refunded')`), "each order left pending once")
	require.Zero(t, w.count(`SELECT count(*) FROM order_transitions WHERE effect_state IN ('open', 'claimed', 'dead')`))
	require.Equal(t, 0, w.count(`
		SELECT count(*) FROM orders o WHERE version <> (
		  SELECT count(*) FROM order_transitions t WHERE t.account_id = o.account_id AND t.order_id = o.id)`), "one row per version")
	for i, ref := range refs {
		goods, effects := w.Merchant.Goods(ref), w.Merchant.Effects(ref)
		if i%refunds != 0 {
			require.Equal(t, merchant.Delivered, goods, "%s: %v", ref, effects)
			continue
		}
		// Whether the goods went out before the money was gone is a matter of luck; that
		// they are not out now is none. A revoke without a fulfilment is one that died
		// on its way.
		require.NotEqual(t, merchant.Delivered, goods, "%s: %v", ref, effects)
	}
}
