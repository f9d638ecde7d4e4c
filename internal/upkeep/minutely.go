package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
)

// Task is something that has to be looked at every minute. Run returns how much there was to do; it must bear being run by two
// processes at once, and being cut short.
type Task struct {
	Name string
	Run  func(ctx context.Context) (done int64, err error)
}

// Minutely runs tasks once a minute, one after another, as one River job.
type Minutely struct {
	tasks []Task
	log   *slog.Logger
}

// NewMinutely returns the job of these tasks. It fails on a task without a name or without a function. log may be nil.
func NewMinutely(log *slog.Logger, tasks ...Task) (*Minutely, error) {
	for _, t := range tasks {
		if t.Name == "" || t.Run == nil {
			return nil, errors.New("upkeep: task without name or function")
		}
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Minutely{tasks: tasks, log: log}, nil
}

// Run runs all tasks. It goes on after one has failed, and returns the errors of all.
func (m *Minutely) Run(ctx context.Context) error {
	var errs []error
	for _, t := range m.tasks {
		done, err := t.Run(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", t.Name, err))
		}
		if done > 0 {
			m.log.InfoContext(ctx, "minutely task done", "task", t.Name, "done", done)
		}
	}
	return errors.Join(errs...)
}

// MinutelyArgs is the River job of Minutely.
type MinutelyArgs struct{}

// Kind implements river.JobArgs.
func (MinutelyArgs) Kind() string { return "minutely" }

type minutelyWorker struct {
	river.WorkerDefaults[MinutelyArgs]
	m *Minutely
}

// Timeout leaves a task time to catch up with what a long standstill has left.
func (w *minutelyWorker) Timeout(*river.Job[MinutelyArgs]) time.Duration { return 5 * time.Minute }

// Work implements river.Worker.
func (w *minutelyWorker) Work(ctx context.Context, _ *river.Job[MinutelyArgs]) error {
	return w.m.Run(ctx)
}

// Periodic is the schedule: at once on a new leader, then every minute. A run that fails is not tried again, since the next
// one comes soon.
func (m *Minutely) Periodic() *river.PeriodicJob {
	return river.NewPeriodicJob(river.PeriodicInterval(time.Minute), func() (river.JobArgs, *river.InsertOpts) {
		return MinutelyArgs{}, &river.InsertOpts{MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByPeriod: time.Minute}}
	}, &river.PeriodicJobOpts{RunOnStart: true})
}

// Register adds the worker to a River client's workers.
func (m *Minutely) Register(ws *river.Workers) error {
	return river.AddWorkerSafely(ws, &minutelyWorker{m: m})
}
