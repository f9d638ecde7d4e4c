package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	osexec "os/exec"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// The binary is also the second process of TestApplyFromTwoProcesses.
func TestMain(m *testing.M) {
	if url := os.Getenv("PAIDONCE_STORETEST_CHILD"); url != "" {
		if err := child(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child applies the shared events once its parent says go.
func child(url string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := store.New(pool, store.Options{})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	for _, b := range sharedBatches(2) {
		if _, err := s.Apply(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// sharedBatches are the same events for both processes, each in an order of its own.
func sharedBatches(seed uint64) [][]store.Event {
	var events []store.Event
	for i := range 60 {
		ref, p := fmt.Sprintf("ord_%02d", i%20), fmt.Sprintf("pi_%02d", i)
		events = append(events, captured("evt_"+p, p, ref, 1000), refunded("evt_r_"+p, p, 100))
	}
	for i := range 20 {
		events = append(events, register(fmt.Sprintf("ord_%02d", i), 3000))
	}
	r := rand.New(rand.NewPCG(seed, 9))
	r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	return slices.Collect(slices.Chunk(events, 7))
}

func TestApplyFromTwoProcesses(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	pool, err := pgxpool.New(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)

	cmd := osexec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "PAIDONCE_STORETEST_CHILD="+url)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	_, err = in.Write([]byte("go\n"))
	require.NoError(t, err)
	for _, b := range sharedBatches(1) {
		apply(t, s, b...)
	}
	require.NoError(t, cmd.Wait())

	require.Equal(t, 140, count(t, pool, "processed_events"))
	require.Equal(t, 20, count(t, pool, "orders WHERE state = 'partially_refunded' AND captured = 3000 AND kept = 2700"))
	require.Equal(t, 20, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'open'"))
	require.Equal(t, count(t, pool, "order_transitions"), sum(t, pool, "version", "orders"))
	require.Zero(t, s.Retries().Deadlock)
}

func sum(t *testing.T, pool *pgxpool.Pool, column, table string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT coalesce(sum(`+column+`), 0) FROM `+table).Scan(&n))
	return n
}

// openEager is open with sessions that look for a deadlock at once: else lock_timeout would end it first, and it would
// pass for a long wait.
func openEager(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.MaxConns = 10
	cfg.ConnConfig.RuntimeParams["deadlock_timeout"] = "50ms"
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	return s, pool
}

// Two payments of one order arrive in opposite order in the batches of two committers.
func TestApplyOppositeBatches(t *testing.T) {
	t.Parallel()
	s, pool := openEager(t)
	apply(t, s, register("ord_1", 2000))
	const rounds = 40
	var wg sync.WaitGroup
	for side := range 2 {
		wg.Go(func() {
			for i := range rounds {
				a := captured(fmt.Sprintf("evt_a%d_%d", side, i), "pi_a", "ord_1", 1000)
				b := captured(fmt.Sprintf("evt_b%d_%d", side, i), "pi_b", "ord_1", 1000)
				batch := []store.Event{a, b}
				if side == 1 {
					slices.Reverse(batch)
				}
				if _, err := s.Apply(t.Context(), batch); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	o := readOrder(t, pool, "ord_1")
	require.Equal(t, "paid", o.State)
	require.EqualValues(t, 2000, o.Captured)
	require.Equal(t, 4*rounds+1, count(t, pool, "processed_events"))
	require.Equal(t, 1, count(t, pool, "order_transitions WHERE effect = 'fulfil'"))
	require.Zero(t, s.Retries().Deadlock)
}

// The shop registers its order while the webhook is already there.
func TestApplyRegistrationRacesTheWebhook(t *testing.T) {
	t.Parallel()
	s, pool := openEager(t)
	const orders = 60
	var wg sync.WaitGroup
	for i := range orders {
		ref := fmt.Sprintf("ord_%d", i)
		for _, e := range []store.Event{register(ref, 5000), captured("evt_"+ref, "pi_"+ref, ref, 5000), register(ref, 5000)} {
			wg.Go(func() {
				if _, err := s.Apply(t.Context(), []store.Event{e}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	require.Equal(t, orders, count(t, pool, "orders WHERE state = 'paid' AND registered"))
	require.Equal(t, orders, count(t, pool, "order_transitions WHERE effect = 'fulfil' AND effect_state = 'open'"))
	require.Equal(t, orders, count(t, pool, "order_transitions WHERE version = 1"))
	require.Equal(t, 2*orders, count(t, pool, "processed_events"))
	require.Zero(t, s.Retries().Deadlock)
}

// The version is checked on top of the lock: a writer that moved an order without it would be overwritten otherwise.
func TestApplyRefusesAnOrderThatMoved(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	apply(t, s, register("ord_1", 5000))
	_, err := pool.Exec(t.Context(), `
		CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE orders SET version = version + 1; RETURN NEW; END $$;
		CREATE TRIGGER move AFTER UPDATE ON payments FOR EACH ROW EXECUTE FUNCTION move()`)
	require.NoError(t, err)
	before := readOrder(t, pool, "ord_1")
	_, err = s.Apply(t.Context(), []store.Event{captured("evt_1", "pi_1", "ord_1", 5000)})
	require.ErrorContains(t, err, "division by zero")
	require.Equal(t, before, readOrder(t, pool, "ord_1"))
	require.Equal(t, 0, count(t, pool, "processed_events WHERE event_id = 'evt_1'"))
}

// Eight committers take the same rows in orders of their own, round after round. Whichever table they meet at, they
// queue: one order of locks leaves nothing to deadlock. Rows that are inserted take their time, so that the statements
// overlap.
func TestApplyTakesItsLocksInOneOrder(t *testing.T) {
	t.Parallel()
	const committers = 8
	for name, tt := range map[string]struct {
		slow         string // table
		rounds, size int
		event        func(who, round, i int) store.Event
	}{
		"event ids": {"processed_events", 3, 40, func(_, round, i int) store.Event {
			return captured(fmt.Sprintf("evt_%d_%d", round, i), fmt.Sprintf("pi_%d_%d", round, i), fmt.Sprintf("ord_%d_%d", round, i), 100)
		}},
		"new payment ids": {"payment_ids", 3, 40, func(who, round, i int) store.Event {
			return captured(fmt.Sprintf("evt_%d_%d_%d", who, round, i), fmt.Sprintf("pi_%d_%d", round, i), "", 100)
		}},
		"known payments": {"", 3, 300, func(who, round, i int) store.Event {
			return captured(fmt.Sprintf("evt_%d_%d_%d", who, round, i), fmt.Sprintf("pi_%d", i), "", 100)
		}},
		"new orders": {"orders", 3, 40, func(who, round, i int) store.Event {
			return captured(fmt.Sprintf("evt_%d_%d_%d", who, round, i), fmt.Sprintf("pi_%d_%d_%d", who, round, i), fmt.Sprintf("ord_%d_%d", round, i), 100)
		}},
		"known orders": {"", 6, 60, func(who, round, i int) store.Event {
			return captured(fmt.Sprintf("evt_%d_%d_%d", who, round, i), fmt.Sprintf("pi_%d_%d_%d", who, round, i), fmt.Sprintf("ord_%d", i), 100)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, pool := openEager(t)
			if tt.slow != "" {
				_, err := pool.Exec(t.Context(), `
					CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0.001); RETURN NEW; END $$;
					CREATE TRIGGER slow BEFORE INSERT ON `+tt.slow+` FOR EACH ROW EXECUTE FUNCTION slow()`)
				require.NoError(t, err)
			}
			ids := map[string]bool{}
			for round := range tt.rounds {
				var wg sync.WaitGroup
				for who := range committers {
					events := make([]store.Event, tt.size)
					for i := range events {
						events[i] = tt.event(who, round, i)
						ids[events[i].ID] = true
					}
					r := rand.New(rand.NewPCG(uint64(who), uint64(round)))
					r.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
					wg.Go(func() {
						if _, err := s.Apply(t.Context(), events); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
			}
			require.Equal(t, len(ids), count(t, pool, "processed_events"))
			require.Zero(t, s.Retries().Deadlock, "%+v", s.Retries())
		})
	}
}

// While one row in the middle is held by somebody else, an Apply that needs all of them has locked those before it in key
// order and none behind it.
func TestApplyLocksRowsInKeyOrder(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"payments", "orders"} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			const n = 30
			batch := func(round int) []store.Event {
				var events []store.Event
				for i := range n {
					events = append(events, captured(fmt.Sprintf("evt_%d_%d", round, i), fmt.Sprintf("pi_%d", i), fmt.Sprintf("ord_%d", i), 100))
				}
				rand.Shuffle(n, func(i, j int) { events[i], events[j] = events[j], events[i] })
				return events
			}
			for round := range 3 { // their places in the heap no longer follow their keys
				for _, e := range batch(round) {
					apply(t, s, e)
				}
			}
			holder, err := pool.Begin(t.Context())
			require.NoError(t, err)
			var held string
			require.NoError(t, holder.QueryRow(t.Context(), `SELECT id::text FROM `+table+` ORDER BY account_id, id OFFSET $1 LIMIT 1 FOR UPDATE`, n/2).Scan(&held))
			done := make(chan error, 1)
			go func() {
				_, err := s.Apply(t.Context(), batch(3))
				done <- err
			}()
			waitForLock(t, pool)
			var before, after int
			require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE id::text < $1), count(*) FILTER (WHERE id::text > $1)
				FROM (SELECT id FROM `+table+` FOR UPDATE SKIP LOCKED) free`, held).Scan(&before, &after))
			require.Zero(t, before, "rows before the held one are locked")
			require.Equal(t, n-n/2-1, after, "rows behind it are not")
			require.NoError(t, holder.Rollback(t.Context()))
			require.NoError(t, <-done)
		})
	}
}
