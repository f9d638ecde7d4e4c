package store

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// errMoved: a payment was merged away while its lock was awaited. The batch begins again.
var errMoved = errors.New("a payment moved while its lock was awaited")

// maxTries bounds how often a transaction begins again. Under stress a batch of 256 events began again three times at
// most.
const maxTries = 12

// Retries counts transactions that began again, by what refused them. Deadlocks stay 0 as long as every transaction
// takes its locks in the order that the package comment tells.
type Retries struct {
	Deadlock      int64 // 40P01
	Serialization int64 // 40001
	LockTimeout   int64 // 55P03: another transaction held the same event id, payment or order for long
	Moved         int64 // a payment was merged away while its lock was awaited
}

type retries struct{ deadlock, serialization, lockTimeout, moved atomic.Int64 }

// Retries returns the counts since the Store was made.
func (s *Store) Retries() Retries {
	r := &s.retried
	return Retries{r.deadlock.Load(), r.serialization.Load(), r.lockTimeout.Load(), r.moved.Load()}
}

// note counts err and reports whether the same work may succeed when it is begun anew.
func (r *retries) note(err error) bool {
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, errMoved):
		r.moved.Add(1)
	case !errors.As(err, &pg):
		return false
	case pg.Code == "40P01":
		r.deadlock.Add(1)
	case pg.Code == "40001":
		r.serialization.Add(1)
	case pg.Code == "55P03":
		r.lockTimeout.Add(1)
	default:
		return false
	}
	return true
}

// retry repeats f after what Postgres resolves by refusing one of two transactions.
func retry[T any](ctx context.Context, counts *retries, f func() (T, error)) (T, error) {
	for try := 1; ; try++ {
		v, err := f()
		if err == nil || !counts.note(err) || try == maxTries {
			return v, err
		}
		pause := time.NewTimer(rand.N(time.Duration(try) * 4 * time.Millisecond))
		select {
		case <-ctx.Done():
			pause.Stop()
			return v, err
		case <-pause.C:
		}
	}
}
