package processor_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
)

// never is a time between ticks that no test lives to see.
const never = 24 * time.Hour

// noted is a Fulfiller that says yes and passes calls on.
func noted(calls chan<- processor.Call) processor.Fulfiller {
	return processor.FulfillerFunc(func(_ context.Context, c processor.Call) error {
		calls <- c
		return nil
	})
}

// metric is the sum over the labels of a metric's values.
func metric(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	require.FailNow(t, "there is no metric "+name)
	return 0
}

func TestWorkersHeal(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]string{
		"DeletedJobs":   `DELETE FROM river_job`,
		"CanceledJobs":  `UPDATE river_job SET state = 'cancelled', finalized_at = now()`,
		"DiscardedJobs": `UPDATE river_job SET state = 'discarded', finalized_at = now()`,
		// What a process leaves behind that was killed after River handed it the job.
		"KilledBeforeTheClaim": `UPDATE river_job SET state = 'running', attempted_at = now(), attempt = 1, attempted_by = '{gone}'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openTapped(t)
			id := paying(t, s, "acme", "ord_1")
			_, err := s.pool.Exec(t.Context(), harm)
			require.NoError(t, err)
			calls := make(chan processor.Call, 10)
			reg := prometheus.NewRegistry()
			run(t, s, noted(calls), processor.WorkerOptions{Registerer: reg})
			require.Equal(t, id, receive(t, calls).Order)
			receive(t, s.settled)
			require.EqualValues(t, 1, metric(t, reg, "paidonce_ticker_renewed_total"))
		})
	}

	// What a process leaves behind that was killed in the middle of a call.
	t.Run("KilledAfterTheClaim", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		id := paying(t, s, "acme", "ord_1")
		l, err := s.Store.Look(t.Context(), "acme", id, 300*time.Millisecond)
		require.NoError(t, err)
		require.NotNil(t, l.Claim)
		calls := make(chan processor.Call, 10)
		reg := prometheus.NewRegistry()
		run(t, s, noted(calls), processor.WorkerOptions{Registerer: reg})
		c := receive(t, calls)
		require.Equal(t, 2, c.Attempt)
		require.Equal(t, l.Claim.Version, c.Version, "the same key")
		receive(t, s.settled)
		require.EqualValues(t, 1, metric(t, reg, "paidonce_effect_claims_expired_total"))
	})

	// Every connection of the process dies, again and again.
	t.Run("LostConnections", func(t *testing.T) {
		t.Parallel()
		s := openTapped(t)
		for i := range 40 {
			paying(t, s, "acme", fmt.Sprintf("ord_%d", i))
		}
		calls := make(chan processor.Call, 1000)
		run(t, s, noted(calls), processor.WorkerOptions{Workers: 4})
		done := map[string]bool{}
		for n := 0; len(done) < 40; n++ {
			done[receive(t, calls).ExternalRef] = true
			if n%10 == 5 {
				_, _ = s.pool.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()`)
			}
		}
	})
}

// later is a Fulfiller whose accounts get their endpoints later.
type later struct {
	processor.Fulfiller
	known sync.Map
}

func (l *later) Endpoint(account string) (string, bool) {
	_, ok := l.known.Load(account)
	return account, ok
}

func TestWorkersWithoutACallback(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	calls := make(chan processor.Call, 10)
	f := &later{Fulfiller: noted(calls)}
	f.known.Store("other", true)
	reg := prometheus.NewRegistry()
	said := make(chan string, 100)
	run(t, s, f, processor.WorkerOptions{Registerer: reg, Logger: slog.New(slog.NewTextHandler(lines(said), nil))})
	id := paying(t, s, "acme", "ord_1")

	for line := receive(t, said); !strings.Contains(line, "has no callback"); {
		line = receive(t, said)
	}
	require.EqualValues(t, 1, metric(t, reg, "paidonce_accounts_without_callback"))
	paying(t, s, "other", "ord_2")
	require.Equal(t, "ord_2", receive(t, calls).ExternalRef, "nobody else waits")
	receive(t, s.settled)
	var attempts int
	var state string
	require.NoError(t, s.pool.QueryRow(t.Context(), `
		SELECT attempts, effect_state FROM order_transitions WHERE order_id = $1 AND effect IS NOT NULL`, id).Scan(&attempts, &state))
	require.Zero(t, attempts)
	require.Equal(t, "open", state)

	f.known.Store("acme", true)
	c := receive(t, calls)
	require.Equal(t, "ord_1", c.ExternalRef)
	require.Equal(t, 1, c.Attempt)
	receive(t, s.settled)
	require.Equal(t, string(order.ToldFulfilled), told(t, s, id))
}

// lines is a writer that passes on what is written, as long as somebody reads.
type lines chan<- string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// Jobs that are turned away end. What they stood for is done by the workers of the account, without the ticker.
func TestWorkersGoOnWithWhatWasTurnedAway(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	const orders = 24
	for i := range orders {
		paying(t, s, "acme", fmt.Sprintf("ord_%d", i))
	}
	var live, most atomic.Int64
	held, let := make(chan struct{}, orders), make(chan struct{})
	reg := prometheus.NewRegistry()
	run(t, s, processor.FulfillerFunc(func(ctx context.Context, _ processor.Call) error {
		most.Store(max(most.Load(), live.Add(1)))
		defer live.Add(-1)
		held <- struct{}{}
		select {
		case <-let:
		case <-ctx.Done():
		}
		return nil
	}), processor.WorkerOptions{
		Workers: 8, TickEvery: never, Registerer: reg,
		Deadline: 10 * time.Second, Lease: 20 * time.Second, JobTimeout: 30 * time.Second, RescueAfter: time.Minute,
	})
	for range 6 {
		receive(t, held)
	}
	for metric(t, reg, "paidonce_drain_denied_total") < orders-6 {
		select {
		case <-held:
			require.FailNow(t, "a seventh worker for one account")
		case <-time.After(time.Millisecond): // until every other job has been turned away
		}
	}
	close(let)
	for range orders {
		require.True(t, receive(t, s.settled).answer.Done)
	}
	require.EqualValues(t, 6, most.Load(), "three quarters of eight")
}

// An endpoint that only times out is left alone but for one probe at a time; once it answers, all that waited is done.
func TestWorkersCircuit(t *testing.T) {
	t.Parallel()
	s := openTapped(t)
	const orders = 30
	for i := range orders {
		paying(t, s, "acme", fmt.Sprintf("ord_%d", i))
	}
	var hangs, counting atomic.Bool
	hangs.Store(true)
	var live, most atomic.Int64
	reg := prometheus.NewRegistry()
	run(t, s, processor.FulfillerFunc(func(ctx context.Context, _ processor.Call) error {
		n := live.Add(1)
		defer live.Add(-1)
		if !hangs.Load() {
			return nil
		}
		if counting.Load() {
			most.Store(max(most.Load(), n))
		}
		<-ctx.Done()
		return ctx.Err()
	}), processor.WorkerOptions{
		Workers: 4, Deadline: 100 * time.Millisecond, CircuitOpen: 50 * time.Millisecond, Registerer: reg,
		Schedule: []time.Duration{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
	})
	for range 5 + 3 { // those that open it, and those that the three workers of the account had begun by then
		require.False(t, receive(t, s.settled).answer.Done)
	}
	require.EqualValues(t, 1, metric(t, reg, "paidonce_callback_circuits_open"))
	counting.Store(true)
	for range 4 {
		require.False(t, receive(t, s.settled).answer.Done)
	}
	require.EqualValues(t, 1, most.Load(), "one probe")
	require.Positive(t, metric(t, reg, "paidonce_drain_denied_total"))

	hangs.Store(false)
	for done := 0; done < orders; {
		if receive(t, s.settled).answer.Done {
			done++
		}
	}
	require.Zero(t, metric(t, reg, "paidonce_callback_circuits_open"))
}
