package cases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/paidonce/paidonce/internal/scenario/fault"
)

// ErrNotRunning is what a [Program] says of an instance that does not run.
var ErrNotRunning = errors.New("does not run")

// pendingKill is a fault kill_process, and the goroutine that waits for it.
type pendingKill struct {
	fault    *fault.Fault
	process  string
	instance int
	cancel   context.CancelFunc
	done     chan struct{} // closed when the process was killed, or nobody waits for it any more
}

// watchKill kills a process as soon as the fault holds its transaction.
func (p *player) watchKill(ctx context.Context, f *fault.Fault, process string, instance int) {
	ctx, cancel := context.WithCancel(ctx)
	k := &pendingKill{fault: f, process: process, instance: instance, cancel: cancel, done: make(chan struct{})}
	p.faults.kills = append(p.faults.kills, k)
	go func() {
		defer close(k.done)
		defer cancel()
		if err := p.killHeld(ctx, k); err != nil {
			p.faults.mu.Lock()
			defer p.faults.mu.Unlock()
			p.faults.err = errors.Join(p.faults.err, fmt.Errorf("kill %s %d at its commit: %w", process, instance, err))
		}
	}()
}

// killHeld waits until a transaction of the process is held before its commit,
// kills the process, and ends the backend: a process that died there never sent
// its COMMIT, but the server, which executes it already, would not notice. That
// the process is gone already, by a step, is no error.
func (p *player) killHeld(ctx context.Context, k *pendingKill) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		pid, err := k.fault.Held(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case pid != 0:
			// Half a kill would let the held transaction commit after all.
			return p.killNow(context.WithoutCancel(ctx), k, pid)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (p *player) killNow(ctx context.Context, k *pendingKill, pid int32) error {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	if err := k.fault.Clear(ctx); err != nil {
		return err
	}
	if err := p.Program.Kill(ctx, k.process, k.instance); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	if p.faults.fallen == nil {
		p.faults.fallen = make(map[string]bool)
	}
	p.faults.fallen[ProcessName(k.process, k.instance)] = true
	return errors.Join(p.noteKilled(ctx), fault.Terminate(ctx, p.Pool, pid))
}

// awaitKills waits for the pending kills of an instance, or of all if process
// is empty. No step waits for a kill, so a case that sends something and then
// starts the process again means: after the kill. The wait ends without one
// when nothing is left that could trip the fault, and after quietWithin; the
// case goes on then, and a note says so.
func (p *player) awaitKills(ctx context.Context, process string, instance int) error {
	for _, k := range p.faults.kills {
		if process != "" && (k.process != process || k.instance != instance) {
			continue
		}
		if err := p.awaitKill(ctx, k); err != nil {
			return err
		}
	}
	return p.faults.settled()
}

func (p *player) awaitKill(ctx context.Context, k *pendingKill) error {
	began := now()
	busy := began // when something that could trip the fault was seen last
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-k.done:
			return nil
		default:
		}
		held, err := k.fault.Held(ctx)
		if err != nil {
			return err
		}
		possible, err := p.canTrip(ctx, k.process)
		if err != nil {
			return err
		}
		at := now()
		if held != 0 || possible {
			busy = at
		}
		switch {
		case held != 0: // the kill comes at once; an instance that was ended by a step can be held too
		case !slices.Contains(p.Program.Running(k.process), k.instance):
			return nil
		case at.Sub(began) > p.quietWithin || at.Sub(busy) >= quietFor:
			p.note("%s %d was not killed: no transaction of it reached the fault within %s",
				k.process, k.instance, at.Sub(began).Round(time.Millisecond))
			return nil
		}
		select {
		case <-tick.C:
		case <-k.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// canTrip reports whether a process has something to do within quietWithin, that
// is, whether a worker has: what serve does was answered before the step began.
func (p *player) canTrip(ctx context.Context, process string) (bool, error) {
	if process == "serve" {
		return false, nil
	}
	var can bool
	err := p.Pool.QueryRow(ctx, `
		SELECT EXISTS (
		    SELECT FROM river_job
		    WHERE state = 'running'
		      OR state IN ('available', 'retryable', 'scheduled', 'pending') AND scheduled_at <= clock_timestamp() + make_interval(secs => $1))
		  OR EXISTS (SELECT FROM orders WHERE wake_at <= clock_timestamp() + make_interval(secs => $1))
		  OR EXISTS (SELECT FROM fetches WHERE next_at <= clock_timestamp() + make_interval(secs => $1))`,
		p.quietWithin.Seconds()).Scan(&can)
	if err != nil {
		return false, fmt.Errorf("look for work to do: %w", err)
	}
	return can, nil
}

// start starts an instance, after the kill that it is due.
func (p *player) start(ctx context.Context, process string, instance int) error {
	if err := p.awaitKills(ctx, process, instance); err != nil {
		return err
	}
	if err := p.Program.Start(ctx, process, instance); err != nil {
		return err
	}
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	delete(p.faults.fallen, ProcessName(process, instance))
	return nil
}

// stop ends an instance in good order, unless the kill that it is due comes first.
func (p *player) stop(ctx context.Context, process string, instance int) error {
	if err := p.awaitKills(ctx, process, instance); err != nil {
		return err
	}
	return p.gone(process, instance, p.Program.Stop(ctx, process, instance))
}

// restart starts an instance anew, or again if it was killed.
func (p *player) restart(ctx context.Context, process string, instance int) error {
	if err := p.awaitKills(ctx, process, instance); err != nil {
		return err
	}
	if err := p.Program.Stop(ctx, process, instance); err != nil && !errors.Is(err, ErrNotRunning) {
		return err
	}
	return p.start(ctx, process, instance)
}

// kill ends an instance at once and remembers what it left.
func (p *player) kill(ctx context.Context, process string, instance int) error {
	if err := p.gone(process, instance, p.Program.Kill(ctx, process, instance)); err != nil {
		return err
	}
	return p.noteKilled(ctx)
}

// gone forgives that an instance which is to end was killed by a fault already:
// nobody can know which of the two comes first.
func (p *player) gone(process string, instance int, err error) error {
	p.faults.mu.Lock()
	defer p.faults.mu.Unlock()
	if errors.Is(err, ErrNotRunning) && p.faults.fallen[ProcessName(process, instance)] {
		return nil
	}
	return err
}
