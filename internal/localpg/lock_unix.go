//go:build unix

package localpg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

const (
	shared    = syscall.LOCK_SH
	exclusive = syscall.LOCK_EX
)

// poll is how often a lock or a file is looked at by those who wait with a context:
// short beside the 100 ms that a server needs to start.
const poll = 10 * time.Millisecond

// lockFile opens path, creating it, and waits for the lock. Closing the file
// gives it back.
func lockFile(ctx context.Context, path string, how int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("localpg: %w", err)
	}
	for {
		ok, err := tryLock(f, how)
		if ok {
			return f, nil
		}
		if err == nil {
			err = wait(ctx, poll)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("localpg: wait for %s: %w", path, err)
		}
	}
}

// tryLock takes or changes the lock of f unless somebody is in the way. A change
// is not atomic: the old lock is gone even if the new one is refused.
func tryLock(f *os.File, how int) (bool, error) {
	err := flock(f, how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

func unlock(f *os.File) error { return flock(f, syscall.LOCK_UN) }

// flock locks the open file, not the process: it is held until every copy of the
// descriptor is closed, so a child can be handed it.
func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) {
			return fmt.Errorf("localpg: lock %s: %w", f.Name(), err)
		}
		return err
	}
}

// wait lets d pass, or returns early with the reason ctx ended.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
