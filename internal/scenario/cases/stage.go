package cases

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/internal/scenario/merchant"
	"github.com/paidonce/paidonce/internal/scenario/network"
	"github.com/paidonce/paidonce/store"
)

// The accounts of every stage. All sources and orders belong to AccountA.
const (
	AccountA = "a"
	AccountB = "b"
)

// Stage is what one round of a case plays on. All of it is the case's own.
type Stage struct {
	// Pool is on the case's database, which is migrated and empty. It is the
	// test's own way in, not the program's.
	Pool *pgxpool.Pool

	// Store is the program's write path on Pool, for what stands before the
	// first step.
	Store *store.Store

	Program  Program
	Merchant *merchant.Recorder
	Network  *network.Network

	// APIKeys are keys of the accounts, by account, with the roles read and write.
	APIKeys map[string]string

	// SweepKeys runs the sweeper of idempotency keys once.
	SweepKeys func(context.Context) error

	// Audit folds every order again and returns what differs. Nil: nobody audits.
	Audit func(context.Context) ([]string, error)

	// Close ends everything.
	Close func()
}

// Program is the program under test: any number of its processes on one
// database. Instances are counted from 1; one of each runs at first.
type Program interface {
	// Start returns when the instance is ready. Starting one that runs is an error.
	Start(ctx context.Context, process string, instance int) error

	// Stop sends SIGTERM and waits for the end; that may come by a Kill meanwhile.
	// It is ErrNotRunning if there is nothing to stop.
	Stop(ctx context.Context, process string, instance int) error

	// Kill sends SIGKILL and waits for the end, also to one that is being stopped.
	// It is ErrNotRunning if there is nothing to kill.
	Kill(ctx context.Context, process string, instance int) error

	// Running returns the instances of a process that run, in rising order.
	Running(process string) []int

	// Addr is host:port where an instance of serve takes webhooks; empty if it does not run.
	Addr(instance int) string

	// Reload changes the secrets of a source in the configuration and waits
	// until that is in force in every instance of serve.
	Reload(ctx context.Context, source string, secrets []string) error

	// SetClock moves the clock of every process, those of the future too.
	SetClock(t time.Time) error

	// Logs returns everything that any process logged or printed so far.
	Logs() string

	// Refused runs what must refuse the configuration, each until it ends.
	Refused(ctx context.Context) ([]Ended, error)
}

// Ended is how a command ended.
type Ended struct {
	Command string
	Code    int // -1: it had to be killed
	Took    time.Duration
	Output  string
}

// Options are what a case needs to know about the program as it stands.
type Options struct {
	// HasGateway reports whether a gateway is in the program's registry.
	HasGateway func(name string) bool

	// QuietWithin is how long a database may take to become quiet. Default 30 s,
	// the format's.
	QuietWithin time.Duration

	// Note takes what a reader of the result should know and what fails nothing:
	// that a fault was never reached. It may be called from several rounds at
	// once. Nil: nobody reads it.
	Note func(text string)

	// Open makes a stage for the case.
	Open func(ctx context.Context, c *Case) (*Stage, error)
}
