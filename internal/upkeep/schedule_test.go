package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/upkeep"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// daily makes a recurrence whose first of so many periods began so many days ago, and of which none was made yet.
func daily(t *testing.T, s *store.Store, account, ref string, periods int) store.Recurrence {
	t.Helper()
	var r store.Recurrence
	require.NoError(t, s.InTx(t.Context(), func(tx store.Tx) (err error) {
		now, err := s.Clock(t.Context(), tx)
		require.NoError(t, err)
		r, _, err = s.CreateRecurrence(t.Context(), tx, store.NewRecurrence{
			Account: account, Ref: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Interval: period.Day, Every: 1,
			TimeZone: "UTC", StartsOn: period.DateOf(now.UTC().AddDate(0, 0, 2)), EndsAfter: periods,
		})
		return err
	}))
	first := period.DateOf(r.StartsOn.UTC().AddDate(0, 0, -periods-3))
	_, err := s.Pool().Exec(t.Context(), `UPDATE recurrences SET starts_on = $2, next_period = $3, next_start = $2::date::timestamp AT TIME ZONE 'UTC' WHERE id = $1`,
		r.ID, first.UTC(), first.String())
	require.NoError(t, err)
	return r
}

func openSchedule(t *testing.T, opts upkeep.ScheduleOptions, wrap func(*store.Store) upkeep.Recurrences) (*upkeep.Schedule, *store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	var of upkeep.Recurrences = s
	if wrap != nil {
		of = wrap(s)
	}
	schedule, err := upkeep.NewSchedule(of, opts)
	require.NoError(t, err)
	return schedule, s, pool
}

func rows(t *testing.T, pool *pgxpool.Pool, what string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+what).Scan(&n))
	return n
}

func gauge(t *testing.T, reg *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	require.Fail(t, "no such metric", name)
	return 0
}

const lateName = "paidonce_recurrences_late_seconds"

func TestScheduleMakesAllThatIsDue(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	schedule, s, pool := openSchedule(t, upkeep.ScheduleOptions{Registerer: reg, Now: func() time.Time { return now }}, nil)
	daily(t, s, "acme", "long", 2*store.MaxPeriods+1)
	daily(t, s, "acme", "short", 3)
	daily(t, s, "other", "short", 2)

	done, err := schedule.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2*store.MaxPeriods+6, done)
	require.Equal(t, 2*store.MaxPeriods+6, rows(t, pool, "orders WHERE registered"))
	require.Equal(t, 3, rows(t, pool, "recurrences WHERE ended_at IS NOT NULL"))
	require.Zero(t, gauge(t, reg, lateName), "nothing is left")
	require.NoError(t, testutil.GatherAndCompare(reg, expected(2*store.MaxPeriods+6, 0), "paidonce_recurrence_orders_total"))

	done, err = schedule.Run(t.Context())
	require.NoError(t, err)
	require.Zero(t, done)
}

// A recurrence that cannot go on is named, and counts as late, while the others go on.
func TestScheduleGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	schedule, s, pool := openSchedule(t, upkeep.ScheduleOptions{Registerer: reg, Now: func() time.Time { return now }}, nil)
	daily(t, s, "acme", "bad", 9)
	daily(t, s, "acme", "good", 3)
	_, err := pool.Exec(t.Context(), `UPDATE recurrences SET time_zone = 'Mars/Base' WHERE external_ref = 'bad'`)
	require.NoError(t, err)

	done, err := schedule.Run(t.Context())
	require.ErrorContains(t, err, "account acme")
	require.ErrorContains(t, err, "Mars/Base")
	require.EqualValues(t, 3, done)
	require.Equal(t, 3, rows(t, pool, "orders"))
	require.InDelta(t, 10*24*3600, gauge(t, reg, lateName), 24*3600)

	now = now.Add(4 * time.Minute)
	require.Zero(t, gauge(t, reg, lateName), "another process looks by now")

	_, err = pool.Exec(t.Context(), `UPDATE recurrences SET time_zone = 'UTC'`)
	require.NoError(t, err)
	done, err = schedule.Run(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 9, done)
	require.Zero(t, gauge(t, reg, lateName))
}

// Processes that run it at the same time share the work.
func TestSchedulesSideBySide(t *testing.T) {
	t.Parallel()
	schedule, s, pool := openSchedule(t, upkeep.ScheduleOptions{}, nil)
	for i := range 6 {
		daily(t, s, "acme", fmt.Sprintf("club_%d", i), store.MaxPeriods+20)
	}
	var wg sync.WaitGroup
	done, errs := make([]int64, 4), make([]error, 4)
	for i := range done {
		wg.Go(func() {
			for range 20 { // what another one was at is left for the next run
				n, err := schedule.Run(t.Context())
				done[i], errs[i] = done[i]+n, errors.Join(errs[i], err)
			}
		})
	}
	wg.Wait()
	var sum int64
	for i := range done {
		require.NoError(t, errs[i])
		sum += done[i]
	}
	require.EqualValues(t, 6*(store.MaxPeriods+20), sum, "each period by exactly one")
	require.Equal(t, 6*(store.MaxPeriods+20), rows(t, pool, "orders"))
}

// slow lets a minute pass with every transaction.
type slow struct {
	*store.Store
	now *time.Time
}

func (s slow) CreateDueOrders(ctx context.Context, account string, id uuid.UUID) (store.CreatedOrders, error) {
	*s.now = s.now.Add(time.Minute)
	return s.Store.CreateDueOrders(ctx, account, id)
}

// A run ends with its budget, in the middle of what there is to do; the next one goes on there.
func TestScheduleKeepsItsBudget(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 5, 12, 0, 0, 0, time.UTC)
	schedule, s, pool := openSchedule(t, upkeep.ScheduleOptions{Now: func() time.Time { return now }},
		func(s *store.Store) upkeep.Recurrences { return slow{s, &now} })
	daily(t, s, "acme", "long", 2*store.MaxPeriods)
	daily(t, s, "acme", "other", 5)
	for _, want := range []int{store.MaxPeriods, 2 * store.MaxPeriods, 2*store.MaxPeriods + 5} {
		_, err := schedule.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, want, rows(t, pool, "orders"))
	}
}

func TestScheduleSaysThatItCannotLook(t *testing.T) {
	t.Parallel()
	schedule, _, pool := openSchedule(t, upkeep.ScheduleOptions{}, nil)
	_, err := pool.Exec(t.Context(), `ALTER TABLE recurrences RENAME TO gone`)
	require.NoError(t, err)
	_, err = schedule.Run(t.Context())
	require.ErrorContains(t, err, "list recurrences that are due")

	_, err = upkeep.NewSchedule(nil, upkeep.ScheduleOptions{})
	require.Error(t, err)
	_, err = upkeep.NewSchedule(slow{}, upkeep.ScheduleOptions{Budget: -1})
	require.ErrorContains(t, err, "Budget")
}

func expected(registered, known int) *strings.Reader {
	return strings.NewReader(fmt.Sprintf(`
# HELP paidonce_recurrence_orders_total Periods of recurrences that were made, by whether their order was registered for it or had been before.
# TYPE paidonce_recurrence_orders_total counter
paidonce_recurrence_orders_total{order="known"} %d
paidonce_recurrence_orders_total{order="registered"} %d
`, known, registered))
}
