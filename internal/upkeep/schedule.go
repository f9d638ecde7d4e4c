package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/store"
)

// Recurrences is what the schedule needs of the store.
type Recurrences interface {
	DueRecurrences(ctx context.Context, limit int, except []uuid.UUID) ([]store.DueRecurrence, error)
	CreateDueOrders(ctx context.Context, account string, id uuid.UUID) (store.CreatedOrders, error)
}

// ScheduleOptions are optional settings of a [Schedule].
type ScheduleOptions struct {
	// Budget is how long a run takes at most, give or take one transaction. What is left then is the next run's. Default
	// 45 s: a run is over before the next one begins.
	Budget time.Duration

	Now        func() time.Time      // default time.Now
	Logger     *slog.Logger          // default: discard
	Registerer prometheus.Registerer // default: none
}

// dueAtOnce is how many recurrences of one account are looked at before the next account's turn.
const dueAtOnce = 100

// Schedule makes the orders of recurrences once their periods have begun. A recurrence that fails holds up no other.
type Schedule struct {
	store Recurrences
	opts  ScheduleOptions

	orders *prometheus.CounterVec

	mu     sync.Mutex
	late   time.Duration
	seenAt time.Time
}

// NewSchedule returns the schedule of what recurs in st.
func NewSchedule(st Recurrences, opts ScheduleOptions) (*Schedule, error) {
	if st == nil {
		return nil, errors.New("upkeep: nil store")
	}
	if opts.Budget < 0 {
		return nil, fmt.Errorf("upkeep: ScheduleOptions.Budget is %s; it must be 0 (default) or more", opts.Budget)
	}
	if opts.Budget == 0 {
		opts.Budget = 45 * time.Second
	}
	if opts.Now == nil {
		opts.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Schedule{store: st, opts: opts}
	s.orders = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "paidonce_recurrence_orders_total",
		Help: "Periods of recurrences that were made, by whether their order was registered for it or had been before.",
	}, []string{"order"})
	late := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "paidonce_recurrences_late_seconds",
		Help: "How long ago the oldest period began whose order is not made yet, when this process last looked. 0: none, or another process looks.",
	}, s.lateness)
	if opts.Registerer != nil {
		for _, c := range []prometheus.Collector{s.orders, late} {
			if err := opts.Registerer.Register(c); err != nil {
				return nil, fmt.Errorf("upkeep: %w", err)
			}
		}
	}
	return s, nil
}

// Task is the schedule as something that is done every minute.
func (s *Schedule) Task() Task { return Task{Name: "recurrences_continued", Run: s.Run} }

// Run makes what is due, one transaction per recurrence, in turns: what is far behind holds up nobody. It returns how many
// periods it has made. Any number of processes may run it at once: each recurrence is worked by one.
func (s *Schedule) Run(ctx context.Context) (periods int64, err error) {
	until := s.opts.Now().Add(s.opts.Budget)
	r := scheduleRun{s: s}
	defer func() { s.orders.WithLabelValues("registered").Add(float64(r.orders)) }()
	defer func() { s.orders.WithLabelValues("known").Add(float64(r.known)) }()
	for first := true; ; first = false {
		due, err := s.store.DueRecurrences(ctx, dueAtOnce, r.except)
		if err != nil {
			return r.periods(), errors.Join(append(r.errs, err)...)
		}
		if first {
			s.note(latest(due))
		}
		if len(due) == 0 {
			break
		}
		for _, d := range due {
			if !s.opts.Now().Before(until) {
				s.opts.Logger.WarnContext(ctx, "recurrences not all continued", "periods", r.periods(), "recurrences", len(due))
				return r.periods(), errors.Join(r.errs...)
			}
			r.turn(ctx, d)
		}
	}
	s.note(r.stuck)
	return r.periods(), errors.Join(r.errs...)
}

// scheduleRun is one run of a schedule.
type scheduleRun struct {
	s             *Schedule
	orders, known int64
	except        []uuid.UUID   // that have no turn any more in this run
	stuck         time.Duration // how late those are that failed
	errs          []error
}

func (r *scheduleRun) periods() int64 { return r.orders + r.known }

// maxErrors is how many recurrences that failed are named; all of them are tried again in a minute.
const maxErrors = 10

// turn lets a recurrence go on by as many periods as one transaction makes.
func (r *scheduleRun) turn(ctx context.Context, d store.DueRecurrence) {
	made, err := r.s.store.CreateDueOrders(ctx, d.Account, d.ID)
	if err != nil {
		r.stuck = max(r.stuck, d.Late)
		if len(r.errs) < maxErrors {
			r.errs = append(r.errs, fmt.Errorf("account %s: %w", d.Account, err))
		}
	}
	if !made.More {
		// Done, failed, or at another worker: what comes due meanwhile is for the next run.
		r.except = append(r.except, d.ID)
	}
	r.orders, r.known = r.orders+int64(made.Orders), r.known+int64(made.Known)
}

func latest(due []store.DueRecurrence) (late time.Duration) {
	for _, d := range due {
		late = max(late, d.Late)
	}
	return late
}

func (s *Schedule) note(late time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late, s.seenAt = late, s.opts.Now()
}

// forgetAfter is how long what was seen counts: any process may have the next run.
const forgetAfter = 3 * time.Minute

func (s *Schedule) lateness() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.Now().Sub(s.seenAt) > forgetAfter {
		return 0
	}
	return s.late.Seconds()
}
