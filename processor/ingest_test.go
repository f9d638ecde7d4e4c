package processor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// gatedStore is a store whose transactions wait for permission, so that a test decides what gathers meanwhile.
type gatedStore struct {
	gate   chan struct{} // one value lets one transaction go on; nil: all may
	refuse func([]store.Event) error

	mu      sync.Mutex
	batches [][]string // event ids per transaction
	counts  map[store.EventKey]int
}

func (g *gatedStore) Apply(ctx context.Context, events []store.Event) ([]store.Result, error) {
	ids := make([]string, len(events))
	for i, e := range events {
		ids[i] = e.ID
	}
	g.mu.Lock()
	g.batches = append(g.batches, ids)
	g.mu.Unlock()
	if g.gate != nil {
		select {
		case <-g.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if g.refuse != nil {
		if err := g.refuse(events); err != nil {
			return nil, err
		}
	}
	res := make([]store.Result, len(events))
	for i, e := range events {
		res[i] = store.Result{Outcome: store.Applied, Reason: e.ID}
		if e.Type == "again" {
			res[i].Outcome = store.Duplicate
		}
	}
	return res, nil
}

func (g *gatedStore) CountDeliveries(_ context.Context, counts map[store.EventKey]int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.counts == nil {
		g.counts = map[store.EventKey]int{}
	}
	for k, n := range counts {
		g.counts[k] += n
	}
	return nil
}

func event(account, id string) store.Event {
	return store.Event{Account: account, Source: "s", Event: order.Event{ID: id}}
}

func ingester(t *testing.T, g *gatedStore, opts processor.IngestOptions) *processor.Ingester {
	t.Helper()
	i, err := processor.NewIngester(g, opts)
	require.NoError(t, err)
	return i
}

func TestIngestGathersWhatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{Committers: 1, MaxBatch: 4})
		var wg sync.WaitGroup
		send := func(account, id string) {
			wg.Go(func() {
				res, err := i.Ingest(t.Context(), []store.Event{event(account, id)})
				if err != nil || len(res) != 1 || res[0].Reason != id {
					t.Errorf("%s: %v %v", id, res, err)
				}
			})
			synctest.Wait()
		}
		send("a", "a1")
		for _, id := range []string{"a2", "a3", "a4", "a5"} {
			send("a", id)
		}
		send("b", "b1")
		for range 3 {
			g.gate <- struct{}{}
			synctest.Wait()
		}
		wg.Wait()
		// The first found a free committer and went alone; then the accounts take turns, up to the limit.
		require.Equal(t, [][]string{{"a1"}, {"a2", "b1", "a3", "a4"}, {"a5"}}, g.batches)
	})
}

func TestIngestStartsAnotherCommitterForABatchWorthIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{Committers: 2, Parallel: 3})
		var wg sync.WaitGroup
		send := func(ids ...string) {
			for _, id := range ids {
				wg.Go(func() {
					if _, err := i.Ingest(t.Context(), []store.Event{event("a", id)}); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
		}
		send("1", "2", "3")
		require.Equal(t, [][]string{{"1"}}, g.batches, "two are not worth a second committer")
		send("4")
		require.Equal(t, [][]string{{"1"}, {"2", "3", "4"}}, g.batches)
		send("5", "6")
		g.gate <- struct{}{} // whichever ends first leaves the two to the other
		synctest.Wait()
		require.Len(t, g.batches, 2)
		g.gate <- struct{}{}
		synctest.Wait()
		require.Equal(t, []string{"5", "6"}, g.batches[2], "nothing waits when nobody works")
		g.gate <- struct{}{}
		wg.Wait()
	})
}

func TestIngestKeepsADeliveryTogether(t *testing.T) {
	t.Parallel()
	g := &gatedStore{}
	i := ingester(t, g, processor.IngestOptions{MaxBatch: 2})
	res, err := i.Ingest(t.Context(), []store.Event{event("a", "1"), event("a", "2"), event("a", "3")})
	require.NoError(t, err)
	require.Len(t, res, 3)
	require.Equal(t, [][]string{{"1", "2", "3"}}, g.batches)
}

func TestIngestSplitsUntilTheCulpritIsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		poison := &pgconn.PgError{Code: "22P05", Message: "untranslatable"}
		g := &gatedStore{gate: make(chan struct{}, 64), refuse: func(events []store.Event) error {
			for _, e := range events {
				if e.ID == "poison" {
					return fmt.Errorf("write: %w", poison)
				}
			}
			return nil
		}}
		i := ingester(t, g, processor.IngestOptions{Committers: 1})
		var wg sync.WaitGroup
		errs := sync.Map{}
		for _, id := range []string{"first", "e1", "e2", "poison", "e3", "e4"} {
			wg.Go(func() {
				_, err := i.Ingest(t.Context(), []store.Event{event("a", id)})
				errs.Store(id, err)
			})
			synctest.Wait()
		}
		for range 16 {
			g.gate <- struct{}{}
		}
		wg.Wait()
		errs.Range(func(id, err any) bool {
			if id == "poison" {
				require.ErrorIs(t, err.(error), poison)
			} else {
				require.Nil(t, err, id)
			}
			return true
		})
	})
}

func TestIngestDoesNotSplitWhatHitsAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := errors.New("connection refused")
		g := &gatedStore{gate: make(chan struct{}), refuse: func([]store.Event) error { return down }}
		i := ingester(t, g, processor.IngestOptions{Committers: 1})
		var wg sync.WaitGroup
		for n := range 5 {
			wg.Go(func() {
				_, err := i.Ingest(t.Context(), []store.Event{event("a", fmt.Sprint(n))})
				if !errors.Is(err, down) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		g.gate <- struct{}{}
		g.gate <- struct{}{}
		wg.Wait()
		require.Len(t, g.batches, 2)
	})
}

func TestIngestRefusesBeyondItsBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{Committers: 1, MaxWaiting: 2})
		var wg sync.WaitGroup
		for _, id := range []string{"working", "w1", "w2"} {
			wg.Go(func() { _, _ = i.Ingest(t.Context(), []store.Event{event("a", id)}) })
			synctest.Wait()
		}
		_, err := i.Ingest(t.Context(), []store.Event{event("a", "w3")})
		require.ErrorIs(t, err, processor.ErrOverloaded)

		wg.Go(func() { // another account's deliveries are not held back by that
			_, err := i.Ingest(t.Context(), []store.Event{event("b", "b1")})
			if err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		close(g.gate)
		wg.Wait()
	})
}

func TestIngestGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{Committers: 1})
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = i.Ingest(t.Context(), []store.Event{event("a", "working")}) })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := i.Ingest(ctx, []store.Event{event("a", "late")})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		g.gate <- struct{}{}
		wg.Wait()
		require.Equal(t, [][]string{{"working"}}, g.batches, "what was given up before it was taken is not entered")
	})
}

func TestIngestBoundsATransaction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{BatchTimeout: 3 * time.Second})
		_, err := i.Ingest(t.Context(), []store.Event{event("a", "stuck")})
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

func TestIngestShutsDownAfterWhatItTook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gatedStore{gate: make(chan struct{})}
		i := ingester(t, g, processor.IngestOptions{Committers: 1, FlushEvery: time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- i.Run(ctx) }()
		var wg sync.WaitGroup
		again := event("a", "1")
		again.Type = "again"
		wg.Go(func() {
			if _, err := i.Ingest(t.Context(), []store.Event{again}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		stop()
		synctest.Wait()
		_, err := i.Ingest(t.Context(), []store.Event{event("a", "2")})
		require.ErrorIs(t, err, processor.ErrStopped)
		select {
		case err := <-ran:
			t.Fatalf("Run left before the transaction was done: %v", err)
		default:
		}
		g.gate <- struct{}{}
		wg.Wait()
		require.NoError(t, <-ran)
		require.Equal(t, map[store.EventKey]int{{Account: "a", Source: "s", ID: "1"}: 1}, g.counts, "the last counts are written")
	})
}
