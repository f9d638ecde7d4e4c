package processor_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// The default times, divided by twenty or so.
func quick(o processor.WorkerOptions) processor.WorkerOptions {
	for _, d := range []struct {
		p *time.Duration
		v time.Duration
	}{
		{&o.Deadline, 500 * time.Millisecond},
		{&o.Lease, time.Second},
		{&o.SettleTimeout, 2 * time.Second},
		{&o.JobTimeout, 1500 * time.Millisecond},
		{&o.RescueAfter, 5 * time.Second},
		{&o.TickEvery, 100 * time.Millisecond},
		{&o.TickGrace, 100 * time.Millisecond},
		{&o.CircuitOpen, 300 * time.Millisecond},
		{&o.QuietAfter, 100 * time.Millisecond},
		{&o.FetchPollInterval, 50 * time.Millisecond},
		{&o.FetchCooldown, 5 * time.Millisecond},
	} {
		if *d.p == 0 {
			*d.p = d.v
		}
	}
	if o.Schedule == nil {
		o.Schedule = []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	}
	return o
}

// patience is how long a test waits for what must come.
const patience = 30 * time.Second

func receive[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		require.FailNow(t, "nothing came")
	}
	return v
}

// tapped is a store that tells what was settled.
type tapped struct {
	*store.Store
	pool    *pgxpool.Pool
	settled chan settlement

	look   func(store.Looked) // after each look
	settle func() error       // before each settle
}

type settlement struct {
	claim  store.Claim
	answer store.Answer
	out    store.Settled
}

func (s *tapped) Look(ctx context.Context, account string, id uuid.UUID, lease time.Duration) (store.Looked, error) {
	l, err := s.Store.Look(ctx, account, id, lease)
	if s.look != nil {
		s.look(l)
	}
	return l, err
}

func (s *tapped) Settle(ctx context.Context, c store.Claim, a store.Answer, lease time.Duration) (store.Settled, error) {
	if s.settle != nil {
		if err := s.settle(); err != nil {
			return store.Settled{}, err
		}
	}
	out, err := s.Store.Settle(ctx, c, a, lease)
	if err == nil {
		s.settled <- settlement{c, a, out}
	}
	return out, err
}

func openTapped(t *testing.T) *tapped {
	t.Helper()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	return &tapped{Store: s, pool: pool, settled: make(chan settlement, 1000)}
}

// run starts Workers; stop stops them and waits. The test's end stops them too.
func run(t *testing.T, s processor.EffectStore, f processor.Fulfiller, o processor.WorkerOptions) (stop func()) {
	t.Helper()
	w, err := processor.NewWorkers(s, f, quick(o))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	t.Cleanup(stop)
	return stop
}

// paying registers an order and pays for it.
func paying(t *testing.T, s *tapped, account, ref string) uuid.UUID {
	t.Helper()
	res, err := s.Apply(t.Context(), []store.Event{registration(account, ref), payment(account, ref)})
	require.NoError(t, err)
	return res[1].Order
}

func registration(account, ref string) store.Event {
	return store.Event{Account: account, Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", At: noon, Reference: ref,
		Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
	}}
}

func payment(account, ref string) store.Event {
	return store.Event{Account: account, Source: "shop", Event: order.Event{
		ID: "paid:" + ref, Type: "captured", At: noon, Realm: "test", Payment: []string{"pay_" + ref},
		Reference: ref, Strength: order.StrengthPayment,
		Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}},
	}}
}

func refund(account, ref string, status order.Status, seq int64) store.Event {
	return store.Event{Account: account, Source: "shop", Event: order.Event{
		ID: "refund:" + ref + ":" + string(status), Type: "refunded", At: noon, Realm: "test", Payment: []string{"pay_" + ref},
		Facts: []order.Fact{{Kind: order.KindRefunded, Ref: "re_" + ref, Status: status, Seq: seq, Amount: 5000, Currency: "EUR"}},
	}}
}

func told(t *testing.T, s *tapped, id uuid.UUID) (told string) {
	t.Helper()
	require.NoError(t, s.pool.QueryRow(t.Context(), `SELECT told FROM orders WHERE id = $1`, id).Scan(&told))
	return told
}

func TestWorkersFulfil(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	calls := make(chan processor.Call, 10)
	var log bytes.Buffer
	stop := run(t, s, processor.FulfillerFunc(func(_ context.Context, c processor.Call) error {
		calls <- c
		return nil
	}), processor.WorkerOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})

	id := paying(t, s, "acme", "ord_1")

	c := receive(t, calls)
	require.Equal(t, "acme", c.Account)
	require.Equal(t, id, c.Order)
	require.Equal(t, "ord_1", c.ExternalRef)
	require.Equal(t, order.EffectFulfil, c.Effect)
	require.EqualValues(t, 5000, c.View.Kept)
	receive(t, s.settled)
	require.Equal(t, "fulfilled", told(t, s, id))
	stop()
	require.Empty(t, calls, "once")
	require.Equal(t, 1, bytes.Count(log.Bytes(), []byte("effect called")), "one line per call: %s", log.String())
	require.Contains(t, log.String(), "result=done")
}

// The refund comes while the fulfil is being called: the revoke follows it, in the same job, and never beside it.
func TestWorkersRevokeWhatWasRefundedMeanwhile(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	var live, most atomic.Int64
	calls := make(chan order.Effect, 10)
	run(t, s, processor.FulfillerFunc(func(ctx context.Context, c processor.Call) error {
		most.Store(max(most.Load(), live.Add(1)))
		defer live.Add(-1)
		calls <- c.Effect
		if c.Effect != order.EffectFulfil {
			return nil
		}
		_, err := s.Apply(ctx, []store.Event{refund("acme", "ord_1", order.StatusOK, 1)})
		return err
	}), processor.WorkerOptions{})

	id := paying(t, s, "acme", "ord_1")
	require.Equal(t, order.EffectFulfil, receive(t, calls))
	require.Equal(t, order.EffectRevoke, receive(t, calls))
	receive(t, s.settled)
	receive(t, s.settled)
	require.Equal(t, "revoked", told(t, s, id))
	require.EqualValues(t, 1, most.Load())
}

// No transaction is open and no lock held while the merchant works. One that were would be for as long as the call takes;
// those of River and of the test come and go, so the call looks until it sees none.
func TestWorkersHoldNothingDuringACall(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	seen := make(chan error, 10)
	run(t, s, processor.FulfillerFunc(func(ctx context.Context, _ processor.Call) error {
		var last error
		for ctx.Err() == nil {
			_, err := s.pool.Exec(ctx, `
				DO $$ BEGIN
					PERFORM FROM orders FOR UPDATE NOWAIT;
					PERFORM FROM order_transitions FOR UPDATE NOWAIT;
					IF EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%') THEN
						RAISE EXCEPTION 'a transaction is open';
					END IF;
				END $$`)
			if err == nil {
				seen <- nil
				return nil
			}
			if ctx.Err() == nil {
				last = err
			}
		}
		seen <- last
		return nil
	}), processor.WorkerOptions{})
	paying(t, s, "acme", "ord_1")
	require.NoError(t, receive(t, seen))
	receive(t, s.settled)
}

func TestWorkersTryAgain(t *testing.T) {
	t.Parallel()

	t.Run("ByTheSchedule", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		var keys sync.Map
		run(t, s, processor.FulfillerFunc(func(_ context.Context, c processor.Call) error {
			keys.Store(c.Key(), c.Attempt)
			switch c.Attempt {
			case 1:
				return errors.New("503")
			case 2:
				panic("a bug of the embedding program")
			}
			return nil
		}), processor.WorkerOptions{})
		id := paying(t, s, "acme", "ord_1")
		require.Equal(t, "503", receive(t, s.settled).answer.Err)
		require.Equal(t, "panic in the Fulfiller", receive(t, s.settled).answer.Err)
		require.True(t, receive(t, s.settled).answer.Done)
		require.Equal(t, "fulfilled", told(t, s, id))
		n := 0
		keys.Range(func(any, any) bool { n++; return true })
		require.Equal(t, 1, n, "under one key")
	})

	t.Run("ThenDead", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		run(t, s, processor.FulfillerFunc(func(context.Context, processor.Call) error { return errors.New("503") }),
			processor.WorkerOptions{Schedule: []time.Duration{0, 0}})
		paying(t, s, "acme", "ord_1")
		for _, dead := range []bool{false, false, true} {
			require.Equal(t, dead, receive(t, s.settled).out.Dead)
		}
	})

	t.Run("RefusedAtOnce", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		run(t, s, processor.FulfillerFunc(func(context.Context, processor.Call) error {
			return processor.Dead(errors.New("410"))
		}), processor.WorkerOptions{})
		paying(t, s, "acme", "ord_1")
		require.True(t, receive(t, s.settled).out.Dead)
	})

	t.Run("AfterTheDeadline", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		run(t, s, processor.FulfillerFunc(func(ctx context.Context, c processor.Call) error {
			if c.Attempt == 1 {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}), processor.WorkerOptions{Deadline: 100 * time.Millisecond})
		paying(t, s, "acme", "ord_1")
		require.Contains(t, receive(t, s.settled).answer.Err, "deadline")
		require.True(t, receive(t, s.settled).answer.Done)
	})

	t.Run("TheSettleToo", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		var tries atomic.Int64
		s.settle = func() error {
			if tries.Add(1) < 3 {
				return errors.New("the database went away")
			}
			return nil
		}
		var calls atomic.Int64
		run(t, s, processor.FulfillerFunc(func(context.Context, processor.Call) error { calls.Add(1); return nil }),
			processor.WorkerOptions{})
		id := paying(t, s, "acme", "ord_1")
		require.True(t, receive(t, s.settled).answer.Done)
		require.Equal(t, "fulfilled", told(t, s, id))
		require.EqualValues(t, 1, calls.Load())
	})
}

// A process that slept between claim and call must not begin one that could outlast its claim.
func TestWorkersDropACallThatComesTooLate(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	start := time.Now()
	var slept atomic.Int64
	var once sync.Once
	s.look = func(l store.Looked) {
		if l.Claim != nil {
			once.Do(func() { slept.Store(int64(time.Hour)) })
		}
	}
	attempts := make(chan int, 10)
	run(t, s, processor.FulfillerFunc(func(_ context.Context, c processor.Call) error {
		attempts <- c.Attempt
		return nil
	}), processor.WorkerOptions{Elapsed: func() time.Duration { return time.Since(start) + time.Duration(slept.Load()) }})
	paying(t, s, "acme", "ord_1")
	require.Equal(t, "not called: too late for its claim", receive(t, s.settled).answer.Err)
	require.Equal(t, 2, receive(t, attempts), "the first one was not made")
}

func TestWorkersStop(t *testing.T) {
	t.Parallel()

	t.Run("LetsCallsComeBack", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		begun, goOn := make(chan struct{}), make(chan struct{})
		stop := run(t, s, processor.FulfillerFunc(func(context.Context, processor.Call) error {
			close(begun)
			<-goOn
			return nil
		}), processor.WorkerOptions{Deadline: 10 * time.Second, Lease: 20 * time.Second, JobTimeout: 30 * time.Second, RescueAfter: time.Minute})
		id := paying(t, s, "acme", "ord_1")
		receive(t, begun)
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		close(goOn)
		receive(t, stopped)
		require.Equal(t, "fulfilled", told(t, s, id))
	})

	t.Run("ButNotForEver", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		begun := make(chan struct{}, 10)
		stop := run(t, s, processor.FulfillerFunc(func(ctx context.Context, _ processor.Call) error {
			begun <- struct{}{}
			<-ctx.Done()
			return ctx.Err()
		}), processor.WorkerOptions{
			Deadline: time.Hour, Lease: 2 * time.Hour, JobTimeout: 3 * time.Hour, RescueAfter: 3 * time.Hour,
			SoftStop: 50 * time.Millisecond, Schedule: []time.Duration{time.Hour},
		})
		paying(t, s, "acme", "ord_1")
		receive(t, begun)
		stop()
		got := receive(t, s.settled)
		require.Equal(t, "context canceled", got.answer.Err, "recorded although the job's time is over")
		require.False(t, got.out.Dead)
	})
}

// Programs run jobs of their own beside the effects, in a queue of their own.
func TestWorkersRunOtherJobs(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	ran := make(chan struct{}, 10)
	run(t, s, processor.FulfillerFunc(func(context.Context, processor.Call) error { return nil }), processor.WorkerOptions{
		Queues: map[string]river.QueueConfig{"upkeep": {MaxWorkers: 1}},
		AddWorkers: func(w *river.Workers) error {
			return river.AddWorkerSafely(w, river.WorkFunc(func(context.Context, *river.Job[sweepArgs]) error {
				ran <- struct{}{}
				return nil
			}))
		},
		PeriodicJobs: []*river.PeriodicJob{river.NewPeriodicJob(river.PeriodicInterval(time.Hour), func() (river.JobArgs, *river.InsertOpts) {
			return sweepArgs{}, &river.InsertOpts{Queue: "upkeep"}
		}, &river.PeriodicJobOpts{RunOnStart: true})},
	})
	receive(t, ran)
}

type sweepArgs struct{}

func (sweepArgs) Kind() string { return "sweep" }

func TestNewWorkersRefuses(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	f := processor.FulfillerFunc(func(context.Context, processor.Call) error { return nil })
	for want, o := range map[string]processor.WorkerOptions{
		"must be above the Deadline, 20s":   {Deadline: 20 * time.Second},
		"JobTimeout is 11s":                 {JobTimeout: 11 * time.Second},
		"RescueAfter is 20s":                {RescueAfter: 20 * time.Second},
		"Workers is -1":                     {Workers: -1},
		"TickGrace is -1ns":                 {TickGrace: -1},
		"a wait of Schedule is negative":    {Schedule: []time.Duration{-1}},
		"CircuitAfter is -2; it must be ab": {CircuitAfter: -2},
	} {
		_, err := processor.NewWorkers(s, f, o)
		require.ErrorContains(t, err, want)
	}
	_, err := processor.NewWorkers(nil, f, processor.WorkerOptions{})
	require.Error(t, err)
	_, err = processor.NewWorkers(s, nil, processor.WorkerOptions{})
	require.Error(t, err)

	w, err := processor.NewWorkers(s, f, processor.WorkerOptions{Queues: map[string]river.QueueConfig{store.Queue: {MaxWorkers: 1}}})
	require.NoError(t, err)
	require.ErrorContains(t, w.Run(t.Context()), "the effects' own")

	reg := prometheus.NewRegistry()
	_, err = processor.NewWorkers(s, f, processor.WorkerOptions{Registerer: reg})
	require.NoError(t, err)
	_, err = processor.NewWorkers(s, f, processor.WorkerOptions{Registerer: reg})
	require.Error(t, err, "two on one registry would count into one number")
}
