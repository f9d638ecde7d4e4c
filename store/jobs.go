package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
)

// Queue is the River queue of drain jobs.
const Queue = river.QueueDefault

// DrainMaxAttempts is how often River tries a drain job. A job that is given up loses nothing: the order's wake_at
// lapses and the ticker asks for another.
const DrainMaxAttempts = 5

// DrainArgs asks a worker to look at one order. Jobs are plain, not unique: unique ones swallow wake-ups while the
// running job backs off, and lock existing rows against River's own completer.
type DrainArgs struct {
	Account string    `json:"account_id"`
	Order   uuid.UUID `json:"order_id"`
}

// Kind implements river.JobArgs.
func (DrainArgs) Kind() string { return "drain" }

// FetchQueue is the River queue of fetch jobs: calls to gateways never stand in the way of calls to merchants.
const FetchQueue = "fetch"

// FetchArgs asks a worker to ask about one object at a gateway. Like drain jobs they are plain and carry no more than a
// name: the row in fetches decides what is done.
type FetchArgs struct {
	Account string `json:"account_id"`
	Source  string `json:"source_id"`
	Object  string `json:"object"`
}

// Kind implements river.JobArgs.
func (FetchArgs) Kind() string { return "fetch" }

// MoveQueue is the River queue of jobs that move money at gateways: a merchant's callback that hangs, or a gateway that is slow to
// tell of its payments, never stands in their way.
const MoveQueue = "move"

// MoveArgs asks a worker to see to one transaction. Like the others it carries no more than a name.
type MoveArgs struct {
	Account     string    `json:"account_id"`
	Transaction uuid.UUID `json:"transaction_id"`
}

// Kind implements river.JobArgs.
func (MoveArgs) Kind() string { return "move" }

// moveJob is a move job that a transaction owes the queue; at zero means now.
type moveJob struct {
	MoveArgs
	at time.Time
}

// moveAt is the job of a transaction at a time; see drainAt.
func moveAt(args MoveArgs, at, now time.Time) moveJob {
	j := moveJob{MoveArgs: args}
	if at.After(now) {
		j.at = at
	}
	return j
}

// fetchJob is a fetch job that a transaction owes the queue; at zero means now.
type fetchJob struct {
	FetchArgs
	at time.Time
}

// fetchAt is the job of a fetch at a time; see drainAt.
func fetchAt(args FetchArgs, at, now time.Time) fetchJob {
	j := fetchJob{FetchArgs: args}
	if at.After(now) {
		j.at = at
	}
	return j
}

// job is a drain job that a transaction owes the queue; at zero means now.
type job struct {
	DrainArgs
	at     time.Time
	urgent bool // goes before all that waits: for what had its turn and lost it
}

// River works jobs of a lower number first.
const (
	priorityUrgent = 1
	priorityDrain  = 2
)

// drainAt is the job of a drain at a time. One for now carries none: River makes a job with a time wait for its
// scheduler, which runs every 5 s.
func (k orderKey) drainAt(at, now time.Time) job {
	j := job{DrainArgs: DrainArgs{k.account, k.id}}
	if at.After(now) {
		j.at = at
	}
	return j
}

// quietDriver keeps River's insert path from sending its NOTIFY as a round trip of its own; queueBell puts it
// into the last pipeline instead.
type quietDriver struct{ *riverpgxv5.Driver }

func (quietDriver) SupportsListenNotify() bool { return false }
func (quietDriver) SupportsListener() bool     { return false }

func newQueue(pool *pgxpool.Pool) (*river.Client[pgx.Tx], error) {
	c, err := river.NewClient(quietDriver{riverpgxv5.New(pool)}, &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("insert-only River client: %w", err)
	}
	return c, nil
}

// enqueue inserts jobs in tx: one round trip, whatever their number.
func (s *Store) enqueue(ctx context.Context, tx pgx.Tx, jobs []job) error {
	if len(jobs) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		priority := priorityDrain
		if j.urgent {
			priority = priorityUrgent
		}
		params[i] = river.InsertManyParams{Args: j.DrainArgs, InsertOpts: &river.InsertOpts{
			Queue: Queue, MaxAttempts: DrainMaxAttempts, ScheduledAt: j.at, Priority: priority,
		}}
	}
	if _, err := s.queue.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue %d drain jobs: %w", len(jobs), err)
	}
	return nil
}

// enqueueFetches inserts fetch jobs in tx: one round trip, whatever their number.
func (s *Store) enqueueFetches(ctx context.Context, tx pgx.Tx, jobs []fetchJob) error {
	if len(jobs) == 0 {
		return nil
	}
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{Args: j.FetchArgs, InsertOpts: &river.InsertOpts{
			Queue: FetchQueue, MaxAttempts: DrainMaxAttempts, ScheduledAt: j.at,
		}}
	}
	if _, err := s.queue.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue %d fetch jobs: %w", len(jobs), err)
	}
	return nil
}

// enqueueMoves inserts move jobs in tx, and rings for them at its commit: they are few, and nobody likes to wait for a refund.
func (s *Store) enqueueMoves(ctx context.Context, tx pgx.Tx, jobs []moveJob) error {
	if len(jobs) == 0 {
		return nil
	}
	rings := false
	params := make([]river.InsertManyParams, len(jobs))
	for i, j := range jobs {
		params[i] = river.InsertManyParams{Args: j.MoveArgs, InsertOpts: &river.InsertOpts{
			Queue: MoveQueue, MaxAttempts: DrainMaxAttempts, ScheduledAt: j.at,
		}}
		rings = rings || j.at.IsZero()
	}
	if _, err := s.queue.InsertManyTx(ctx, tx, params); err != nil {
		return fmt.Errorf("enqueue %d move jobs: %w", len(jobs), err)
	}
	if !rings {
		return nil
	}
	var b pgx.Batch
	ring(&b, MoveQueue)
	return send(ctx, tx, &b)
}

// bellInterval is the least time between two notifications of one process: workers poll as well, so the bell only
// shortens the wait of an idle queue.
const bellInterval = 25 * time.Millisecond

// bell limits how often a process notifies the workers.
type bell struct {
	every time.Duration
	mu    sync.Mutex
	last  time.Time // by the database's clock
}

// rings reports whether a transaction that reads now on the database's clock should notify.
func (b *bell) rings(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.last); d >= 0 && d < b.every {
		return false
	}
	b.last = now
	return true
}

// queueBell tells listening workers, at commit, that a job is there. The topic and payload are River's.
func queueBell(b *pgx.Batch) { ring(b, Queue) }

// queueFetchBell is queueBell for fetch jobs.
func queueFetchBell(b *pgx.Batch) { ring(b, FetchQueue) }

func ring(b *pgx.Batch, queue string) {
	b.Queue(`SELECT pg_notify(current_schema() || '.river_insert', $1)`, `{"queue": "`+queue+`"}`)
}
