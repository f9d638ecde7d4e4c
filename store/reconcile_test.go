package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

func reconcileStart() store.ReconcileStart {
	return store.ReconcileStart{
		ReconcileKey: store.ReconcileKey{Account: account, Source: "stripe", Gateway: "stripe", Lists: true, Asks: true},
		Cause:        store.ReconcileByCommand, Lease: time.Minute, Same: []string{"stripe"}, Reach: 30 * 24 * time.Hour,
	}
}

// A claim is one's own until it lapses; whoever has lost it writes nothing.
func TestReconcileClaims(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	first, err := s.ClaimReconcile(t.Context(), reconcileStart())
	require.NoError(t, err)
	require.True(t, first.Reached.IsZero())
	require.True(t, first.First.IsZero(), "no event was received")
	var busy *store.ReconcileBusyError
	_, err = s.ClaimReconcile(t.Context(), reconcileStart())
	require.ErrorAs(t, err, &busy)
	require.WithinDuration(t, first.Now.Add(time.Minute), busy.Until, time.Second)

	reached := first.Now.Add(-time.Hour).Truncate(time.Second)
	require.NoError(t, s.SaveReconcile(t.Context(), first, store.ReconcileProgress{Reached: reached, Report: store.ReconcileReport{Healed: 1}}))
	_, err = pool.Exec(t.Context(), `UPDATE reconcile_cursors SET claimed_until = clock_timestamp()`)
	require.NoError(t, err)
	second, err := s.ClaimReconcile(t.Context(), reconcileStart())
	require.NoError(t, err)
	require.True(t, reached.Equal(second.Reached))
	require.Greater(t, second.Fence, first.Fence)
	for _, err := range []error{
		s.SaveReconcile(t.Context(), first, store.ReconcileProgress{Reached: first.Now}),
		s.EndReconcile(t.Context(), first, store.ReconcileEnd{Result: store.ReconcileDone}),
	} {
		require.ErrorIs(t, err, store.ErrReconcileLost)
	}
	runs, _, err := s.ReconcileRuns(t.Context(), store.ReconcileRunFilter{Account: account})
	require.NoError(t, err)
	require.Equal(t, []store.ReconcileResult{store.ReconcileRunning, store.ReconcileLost}, []store.ReconcileResult{runs[0].Result, runs[1].Result})
	require.Equal(t, 1, runs[1].Healed, "what a run found before it was killed is not lost with it")

	require.NoError(t, s.EndReconcile(t.Context(), second, store.ReconcileEnd{Result: store.ReconcileDone, Wait: time.Hour}))
	require.ErrorIs(t, s.EndReconcile(t.Context(), second, store.ReconcileEnd{Result: store.ReconcileDone}), store.ErrReconcileLost, "it was given back")
	scheduled := reconcileStart()
	scheduled.Cause = store.ReconcileBySchedule
	_, err = s.ClaimReconcile(t.Context(), scheduled)
	require.ErrorAs(t, err, &busy, "it is not due")
	_, err = s.ClaimReconcile(t.Context(), reconcileStart())
	require.NoError(t, err, "a person need not wait for that")
}

// Where a run begins: with the first event of its sources, from where it was, or from where it is told to; never later than it was.
func TestReconcileBegins(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000))
	other := captured("evt_2", "pi_2", "ord_2", 5000)
	other.Source = "other"
	apply(t, s, other)
	_, err := pool.Exec(t.Context(), `UPDATE processed_events SET received_at = CASE source_id WHEN 'stripe' THEN now() - interval '3 days' ELSE now() - interval '40 days' END`)
	require.NoError(t, err)
	begin := func(since time.Time) store.ReconcileClaim {
		start := reconcileStart()
		start.Since = since
		look, err := s.ReconcileOutlook(t.Context(), start)
		require.NoError(t, err)
		c, err := s.ClaimReconcile(t.Context(), start)
		require.NoError(t, err)
		require.WithinDuration(t, look.Reached, c.Reached, time.Second, "the outlook says the same")
		require.WithinDuration(t, look.First, c.First, time.Second)
		require.NoError(t, s.EndReconcile(t.Context(), c, store.ReconcileEnd{Result: store.ReconcileDone}))
		return c
	}
	now := time.Now()
	c := begin(time.Time{})
	require.WithinDuration(t, now.Add(-72*time.Hour), c.First, time.Minute)
	c = begin(now.Add(time.Hour))
	require.WithinDuration(t, now, c.Reached, 10*time.Second, "not in the future")
	c = begin(now.Add(-time.Hour))
	require.WithinDuration(t, now.Add(-time.Hour), c.Reached, time.Second)
	c = begin(now.Add(-time.Minute))
	require.WithinDuration(t, now.Add(-time.Hour), c.Reached, time.Second, "what lies in between would be skipped")
	c = begin(time.Time{})
	require.WithinDuration(t, now.Add(-time.Hour), c.Reached, time.Second)
}

func TestKnownEvents(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_old", "pi_3", "ord_3", 5000))
	_, err := pool.Exec(t.Context(), `UPDATE processed_events SET mapping_version = 9 WHERE event_id = 'evt_old'`)
	require.NoError(t, err)
	sibling := captured("evt_2", "pi_2", "ord_2", 5000)
	sibling.Source = "sibling"
	apply(t, s, sibling)
	stranger := captured("evt_4", "pi_4", "ord_4", 5000)
	stranger.Source = "stranger"
	apply(t, s, stranger)
	reused := captured("evt_1", "pi_1", "ord_1", 6000)
	apply(t, s, reused)

	reworded, more := captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 7000)
	reworded.Facts = append(reworded.Facts, order.Fact{Kind: order.KindPhase, Status: order.StatusProcessing})
	got, err := s.KnownEvents(t.Context(), []string{"stripe", "sibling"}, []store.Event{
		captured("evt_1", "pi_1", "ord_1", 5000), reused, reworded, more, captured("evt_2", "pi_2", "ord_2", 5000),
		captured("evt_old", "pi_3", "ord_3", 1), captured("evt_4", "pi_4", "ord_4", 5000), captured("evt_5", "pi_5", "", 1),
	})
	require.NoError(t, err)
	require.Equal(t, []store.Knowledge{
		store.EventKnown, store.EventKnown, store.EventReworded, store.EventDiffers, store.EventKnown, store.EventReworded, store.EventNew, store.EventNew,
	}, got)

	bad := captured("evt_6", "pi_6", "", 1)
	bad.Payment = []string{""}
	_, err = s.KnownEvents(t.Context(), []string{"stripe"}, []store.Event{more, bad})
	var which *store.EventError
	require.ErrorAs(t, err, &which)
	require.Equal(t, 1, which.Index)
	got, err = s.KnownEvents(t.Context(), nil, nil)
	require.NoError(t, err)
	require.Empty(t, got)
}

// Orders are found to wait whatever the ids of their payments have become.
func TestFindWaiting(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	auth := func(id, payment, ref string) store.Event {
		e := captured(id, payment, ref, 0)
		e.Facts = []order.Fact{{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}}
		return e
	}
	other := auth("evt_4", "pi_4", "elsewhere")
	other.Realm = "adyen:live"
	apply(t, s, register("ord_1", 5000), auth("evt_1", "pi_1", "ord_1"), auth("evt_2", "ch_1", ""), auth("evt_3", "pi_3", "stub"), other, register("bare", 5000))
	both := auth("evt_5", "pi_1", "")
	both.Payment = []string{"pi_1", "ch_1"}
	apply(t, s, both) // one payment after all
	_, err := pool.Exec(t.Context(), `UPDATE processed_events SET received_at = now() - interval '2 hours'`)
	require.NoError(t, err)

	c, err := s.ClaimReconcile(t.Context(), reconcileStart())
	require.NoError(t, err)
	through, more, err := s.FindWaiting(t.Context(), c, "stripe:live", c.Now.Add(-24*time.Hour), time.Hour, 100)
	require.NoError(t, err)
	require.False(t, more)
	require.WithinDuration(t, c.Now.Add(-time.Hour), through, 10*time.Second)
	due, err := s.DueWaiting(t.Context(), c, "stripe:live", 10)
	require.NoError(t, err)
	ids := map[uuid.UUID][][]string{}
	for _, w := range due {
		ids[w.Order] = w.Payments
	}
	require.Equal(t, map[uuid.UUID][][]string{
		readOrder(t, pool, "ord_1").ID: {{"ch_1", "pi_1"}}, readOrder(t, pool, "stub").ID: {{"pi_3"}},
	}, ids)
	list, all, err := s.Waiting(t.Context(), c, 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, 2, all)

	apply(t, s, captured("evt_6", "pi_1", "ord_1", 5000))
	_, err = s.DueWaiting(t.Context(), c, "stripe:live", 0)
	require.NoError(t, err)
	list, _, err = s.Waiting(t.Context(), c, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "stub", list[0].Ref)
	require.True(t, list[0].Stub)
}

// Behind PgBouncer there are no prepared statements, and nobody knows the types of parameters but the statement itself.
func TestReconcileWithoutPreparedStatements(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	apply(t, s, register("ord_1", 5000), captured("evt_1", "pi_1", "ord_1", 1000))
	_, err = pool.Exec(t.Context(), `UPDATE processed_events SET received_at = now() - interval '2 hours'`)
	require.NoError(t, err)
	start := reconcileStart()
	start.Since = time.Now().Add(-time.Hour)
	_, err = s.ReconcileOutlook(t.Context(), start)
	require.NoError(t, err)
	c, err := s.ClaimReconcile(t.Context(), start)
	require.NoError(t, err)
	require.NoError(t, s.SaveReconcile(t.Context(), c, store.ReconcileProgress{Reached: c.Now, Report: store.ReconcileReport{Healed: 2}}))
	_, err = s.KnownEvents(t.Context(), []string{"stripe"}, []store.Event{captured("evt_1", "pi_1", "ord_1", 2000)})
	require.NoError(t, err)
	_, _, err = s.FindWaiting(t.Context(), c, "stripe:live", c.Now.Add(-24*time.Hour), time.Hour, 10)
	require.NoError(t, err)
	due, err := s.DueWaiting(t.Context(), c, "stripe:live", 10)
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.NoError(t, s.AskedWaiting(t.Context(), c, []uuid.UUID{due[0].Order}, time.Hour, time.Hour, 3))
	key := store.SourceKey{Account: account, ID: "stripe"}
	wanted, _, err := s.ToAsk(t.Context(), key, []string{"charge/ch_1", "charge/ch_2"}, c.Now)
	require.NoError(t, err)
	require.Len(t, wanted, 2)
	require.NoError(t, s.NoteAsks(t.Context(), key, []store.ReconcileAsk{{Object: "charge/ch_1", Order: due[0].Order}, {Object: "charge/ch_2"}}))
	_, err = s.TakeAnswers(t.Context(), c, "stripe:live", 10)
	require.NoError(t, err)
	_, open, err := s.Waiting(t.Context(), c, 10)
	require.NoError(t, err)
	require.Equal(t, 1, open)
	_, _, err = s.UncertainTransactions(t.Context(), account, []string{"stripe"}, time.Hour, 10)
	require.NoError(t, err)
	require.NoError(t, s.EndReconcile(t.Context(), c, store.ReconcileEnd{Result: store.ReconcileDone, ReconcileProgress: store.ReconcileProgress{Report: store.ReconcileReport{Healed: 3}}}))
	got, err := s.DueReconciles(t.Context(), []store.SourceKey{key})
	require.NoError(t, err)
	require.Equal(t, []store.SourceKey{key}, got)
	runs, _, err := s.ReconcileRuns(t.Context(), store.ReconcileRunFilter{Account: account, Source: "stripe"})
	require.NoError(t, err)
	require.Equal(t, 3, runs[0].Healed)
	cursors, err := s.ReconcileCursors(t.Context(), account)
	require.NoError(t, err)
	require.Len(t, cursors, 1)
	_, err = s.DropReconcileRuns(t.Context(), time.Hour)
	require.NoError(t, err)
}

// What a run asks of the database reads what it needs, however much there is.
func TestReconcileReadsByIndex(t *testing.T) {
	t.Parallel()
	spy := &statements{}
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = spy
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	fillLists(t, pool)
	for _, sql := range []string{
		`UPDATE processed_events SET payment = 'pi_' || event_id, realm = 'stripe:live', received_at = now() - interval '1 day' + substr(event_id, 5)::int * interval '1 second'`,
		`INSERT INTO payment_ids (account_id, realm, id, payment_id)
			SELECT p.account_id, 'stripe:live', 'pi_evt_' || substr(o.external_ref, 5), p.id FROM payments p JOIN orders o ON o.account_id = p.account_id AND o.id = p.order_id`,
		`UPDATE payments p SET ledger = jsonb_build_object('ids', jsonb_build_array(i.id)) FROM payment_ids i WHERE i.payment_id = p.id`,
		`INSERT INTO reconcile_runs (account_id, id, source_id, gateway, cause, fence, result, ended_at, eventful)
			SELECT account_id, id, 's' || n % 10 / 2, 'stripe', 'schedule', 1, 'done', now(), n % 100 = 0 FROM orders, LATERAL (SELECT substr(external_ref, 5)::int AS n) x`,
		`INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, settled_at, asked_at, told_at)
			SELECT account_id, 's1', 'payment/' || id, 'stripe', 'done', NULL, now(), now() - interval '20 hours', now() - interval '20 hours' FROM orders`,
		`INSERT INTO reconcile_asks (account_id, source_id, object, announced_at)
			SELECT account_id, source_id, object, now() - interval '1 day' FROM fetches LIMIT 10`,
		`ANALYZE`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	start := reconcileStart()
	start.Account, start.Source = "a", "s1"
	c, err := s.ClaimReconcile(t.Context(), start)
	require.NoError(t, err)
	runs := func(f store.ReconcileRunFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account, f.Limit = "a", 50
			found, next, err := s.ReconcileRuns(t.Context(), f)
			require.NoError(t, err)
			require.Len(t, found, 50)
			f.Before = next
			_, _, err = s.ReconcileRuns(t.Context(), f)
			require.NoError(t, err)
		}
	}
	for _, tt := range []struct {
		name string
		do   func(*testing.T)
		most int
	}{
		{"FindWaiting", func(t *testing.T) {
			_, more, err := s.FindWaiting(t.Context(), c, "stripe:live", c.Now.Add(-24*time.Hour), time.Hour, 200)
			require.NoError(t, err)
			require.True(t, more)
		}, 3000},
		{"DueWaiting", func(t *testing.T) {
			due, err := s.DueWaiting(t.Context(), c, "stripe:live", 50)
			require.NoError(t, err)
			require.NotEmpty(t, due)
		}, 800},
		{"Waiting", func(t *testing.T) {
			_, _, err := s.Waiting(t.Context(), c, 50)
			require.NoError(t, err)
		}, 800},
		{"TakeAnswers", func(t *testing.T) {
			_, err := s.TakeAnswers(t.Context(), c, "stripe:live", 3)
			require.NoError(t, err)
		}, 200},
		{"ToAsk", func(t *testing.T) {
			_, _, err := s.ToAsk(t.Context(), store.SourceKey{Account: "a", ID: "s1"}, []string{"payment/1", "payment/2"}, c.Now)
			require.NoError(t, err)
		}, 10},
		{"Runs", runs(store.ReconcileRunFilter{}), 60},
		{"RunsOfASource", runs(store.ReconcileRunFilter{Source: "s1"}), 60},
		{"RunsThatFound", runs(store.ReconcileRunFilter{Eventful: true}), 60},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spy.reset()
			tt.do(t)
			for _, q := range spy.taken() {
				if q.sql == "begin" || q.sql == "commit" {
					continue
				}
				plan := explained(t, pool, q)
				for _, table := range plan.inSequence {
					require.Contains(t, []string{"reconcile_orders", "reconcile_asks", "reconcile_cursors"}, table, plan.text) // these are small
				}
				require.LessOrEqual(t, plan.rows, tt.most, "%s\n%s", q.sql, plan.text)
			}
		})
	}
}
