package processor

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
)

// WorkerOptions are optional settings of [Workers]. The zero value is ready to use; the durations belong together, so
// a test that scales one scales them all.
type WorkerOptions struct {
	// Workers is how many effects are called at once. Default 16.
	Workers int

	// Deadline is the time for one call. Default 10 s.
	Deadline time.Duration
	// Lease is how long an effect is claimed for a call. After it the call is taken for lost and the effect is called
	// again, so Deadline and a settle must fit in. Default 20 s.
	Lease time.Duration
	// SettleTimeout is the time for recording what came of a call, also while the process stops. Default 5 s.
	SettleTimeout time.Duration
	// JobTimeout is the time for one River job, which may make several calls one after another. Default 30 s.
	JobTimeout time.Duration
	// RescueAfter is when River takes a running job for lost. Nothing waits for it: see TickEvery. Default 60 s.
	RescueAfter time.Duration
	// SoftStop is how long calls may go on once Run is told to stop. Default Deadline + 2 s.
	SoftStop time.Duration

	// TickEvery is how often this process looks for orders whose promised look did not come, because a process was
	// killed or a job deleted. Default 5 s.
	TickEvery time.Duration
	// TickGrace is how late a look must be for that. It covers differences of clocks. Default 5 s.
	TickGrace time.Duration
	// TickLimit is how many orders of one account a tick asks for. Default 64.
	TickLimit int

	// Schedule is how long to wait after the first, second … failed attempt; after the last the effect is dead. The
	// store's MaxAttempts should be above its length. Default [DefaultSchedule].
	Schedule []time.Duration
	// RefusedFor is how long a refused effect is tried again. Default 24 h.
	RefusedFor time.Duration

	// CircuitAfter is after how many time-outs in a row an endpoint is left alone. Default 5.
	CircuitAfter int
	// CircuitOpen is how long it is left alone before the next probe. Default 10 s.
	CircuitOpen time.Duration
	// QuietAfter is how long after its last order an account still counts as active, which keeps the others to a quarter
	// of the workers. Default 1 s.
	QuietAfter time.Duration

	// FetchPollInterval and FetchCooldown are River's. Default 200 ms and 50 ms: an effect is called about 20 ms after
	// its commit when the queue is idle.
	FetchPollInterval time.Duration
	FetchCooldown     time.Duration
	// PollOnly makes River work without LISTEN, as PgBouncer in transaction mode needs it.
	PollOnly bool
	// CompletedRetention is how long River keeps finished jobs; what they did stands in order_transitions. Default 1 h.
	CompletedRetention time.Duration
	// ReindexerSchedule is when River rebuilds its indexes. Default 04:17 UTC every day.
	ReindexerSchedule river.PeriodicSchedule

	// PeriodicJobs, Queues and AddWorkers let a program run jobs of its own on the same River client. AddWorkers
	// registers their workers; every process must register the same ones.
	PeriodicJobs []*river.PeriodicJob
	Queues       map[string]river.QueueConfig
	AddWorkers   func(*river.Workers) error

	// Elapsed is a clock that only runs forward, from any start: budgets, shares and circuits are measured by it.
	// Default: the process's monotonic clock.
	Elapsed func() time.Duration

	Logger     *slog.Logger          // one line per call. Default: discard
	Registerer prometheus.Registerer // default: none
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	setDefault(&o.Workers, 16)
	setDefault(&o.Deadline, 10*time.Second)
	setDefault(&o.Lease, 20*time.Second)
	setDefault(&o.SettleTimeout, 5*time.Second)
	setDefault(&o.JobTimeout, 30*time.Second)
	setDefault(&o.RescueAfter, time.Minute)
	setDefault(&o.SoftStop, o.Deadline+2*time.Second)
	setDefault(&o.TickEvery, 5*time.Second)
	setDefault(&o.TickGrace, 5*time.Second)
	setDefault(&o.TickLimit, 64)
	setDefault(&o.RefusedFor, 24*time.Hour)
	setDefault(&o.CircuitAfter, 5)
	setDefault(&o.CircuitOpen, 10*time.Second)
	setDefault(&o.QuietAfter, time.Second)
	setDefault(&o.FetchPollInterval, 200*time.Millisecond)
	setDefault(&o.FetchCooldown, 50*time.Millisecond)
	setDefault(&o.CompletedRetention, time.Hour)
	if o.Schedule == nil {
		o.Schedule = DefaultSchedule()
	}
	if o.ReindexerSchedule == nil {
		o.ReindexerSchedule = dailyAt(4*time.Hour + 17*time.Minute)
	}
	if o.Elapsed == nil {
		start := time.Now()                                           //nolint:forbidigo // the edge where the real clock enters
		o.Elapsed = func() time.Duration { return time.Since(start) } //nolint:forbidigo // the same
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func (o WorkerOptions) check() error {
	var errs []error
	for name, d := range map[string]time.Duration{
		"Deadline": o.Deadline, "Lease": o.Lease, "SettleTimeout": o.SettleTimeout, "JobTimeout": o.JobTimeout,
		"RescueAfter": o.RescueAfter, "SoftStop": o.SoftStop, "TickEvery": o.TickEvery, "TickGrace": o.TickGrace,
		"RefusedFor": o.RefusedFor, "CircuitOpen": o.CircuitOpen, "QuietAfter": o.QuietAfter,
	} {
		if d <= 0 {
			errs = append(errs, fmt.Errorf("%s is %s; it must be above 0", name, d))
		}
	}
	for name, n := range map[string]int{"Workers": o.Workers, "TickLimit": o.TickLimit, "CircuitAfter": o.CircuitAfter} {
		if n <= 0 {
			errs = append(errs, fmt.Errorf("%s is %d; it must be above 0", name, n))
		}
	}
	if slices.ContainsFunc(o.Schedule, func(d time.Duration) bool { return d < 0 }) {
		errs = append(errs, errors.New("a wait of Schedule is negative"))
	}
	if o.Deadline >= o.Lease {
		errs = append(errs, fmt.Errorf("a Lease of %s must be above the Deadline, %s, or a claim could end during its call", o.Lease, o.Deadline))
	}
	if o.Deadline+o.margin() >= o.JobTimeout {
		errs = append(errs, fmt.Errorf("JobTimeout is %s; it must be above Deadline, %s, and a fifth of it", o.JobTimeout, o.Deadline))
	}
	if o.RescueAfter < o.JobTimeout {
		errs = append(errs, fmt.Errorf("RescueAfter is %s; it must not be below JobTimeout, %s", o.RescueAfter, o.JobTimeout))
	}
	return errors.Join(errs...)
}

// margin is what a job keeps beside a call's deadline for its transactions: 2 s of the default 30.
func (o WorkerOptions) margin() time.Duration { return o.Deadline / 5 }

// budget is how long after its start a job may begin another call: 18 s by default.
func (o WorkerOptions) budget() time.Duration { return o.JobTimeout - o.Deadline - o.margin() }

// dailyAt is a time of day, in UTC.
type dailyAt time.Duration

// Next implements river.PeriodicSchedule.
func (d dailyAt) Next(current time.Time) time.Time {
	next := current.UTC().Truncate(24 * time.Hour).Add(time.Duration(d))
	if !next.After(current) {
		next = next.Add(24 * time.Hour)
	}
	return next
}
