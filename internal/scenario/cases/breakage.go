package cases

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/paidonce/paidonce/internal/scenario/fault"
)

// faults are those of one round.
type faults struct {
	mu     sync.Mutex // held by a watcher from before the kill until the transaction is gone
	list   []*fault.Fault
	kills  []*pendingKill
	fallen map[string]bool // by ProcessName: killed by a fault and not started since; mu
	err    error           // mu
}

// ProcessName is what a process tells the database about itself, by
// [fault.ProcessSetting], so that a fault can be about one process.
func ProcessName(process string, instance int) string {
	return fmt.Sprintf("%s-%d", process, instance)
}

// startFault makes a fault.
func (p *player) startFault(ctx context.Context, s *Step) error {
	verb, table, _ := strings.Cut(s.On, " ")
	spec := fault.Spec{
		Kind: s.Fault, Verb: verb, Table: table, SQLState: s.SQLState,
		Delay: time.Duration(s.MS) * time.Millisecond, Times: s.Times,
	}
	if s.Fault != faultKillProcess {
		f, err := fault.Install(ctx, p.Pool, spec)
		if err != nil {
			return err
		}
		p.faults.list = append(p.faults.list, f)
		return nil
	}
	spec.Kind, spec.Process = fault.HoldCommit, ProcessName(s.Process, s.Instance)
	f, err := fault.Install(ctx, p.Pool, spec)
	if err != nil {
		return err
	}
	p.faults.list = append(p.faults.list, f)
	p.watchKill(ctx, f, s.Process, s.Instance)
	return nil
}

// settled waits for a kill that is under way, and returns what went wrong with one.
func (f *faults) settled() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// active reports whether a fault can still make something go wrong.
func (f *faults) active(ctx context.Context) (bool, error) {
	for _, one := range f.list {
		spent, err := one.Spent(ctx)
		if err != nil || !spent {
			return true, err
		}
	}
	return false, nil
}

// clear ends all faults.
func (f *faults) clear(ctx context.Context) error {
	f.stop()
	for _, one := range f.list {
		if err := one.Clear(ctx); err != nil {
			return err
		}
	}
	f.list = nil
	return f.settled()
}

// stop ends the watchers. A kill that is under way is carried out.
func (f *faults) stop() {
	for _, k := range f.kills {
		k.cancel()
		<-k.done
	}
	f.kills = nil
}

// loop runs the sweeper of idempotency keys again and again.
type loop struct {
	cancel context.CancelFunc
	done   chan error
}

func (p *player) startSweep(ctx context.Context) error {
	if p.loop != nil {
		return errors.New("the sweeper runs already")
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	p.loop = &loop{cancel: cancel, done: done}
	go func() {
		for ctx.Err() == nil {
			if err := p.SweepKeys(ctx); err != nil && ctx.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	return nil
}

func (p *player) stopSweep() error {
	if p.loop == nil {
		return errors.New("the sweeper does not run")
	}
	err := p.loop.stop()
	p.loop = nil
	return err
}

// stop ends a loop and returns its error; there may be none to end.
func (l *loop) stop() error {
	if l == nil {
		return nil
	}
	l.cancel()
	return <-l.done
}
