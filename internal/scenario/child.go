package scenario

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// Child is one child process that works: [Workers] that can really be killed.
type Child struct {
	command func() *exec.Cmd

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

// NewChild returns a Child that runs what command makes, one at a time. Nothing
// is started before Start.
func NewChild(command func() *exec.Cmd) *Child { return &Child{command: command} }

// Start starts the process. It returns without waiting for it to be ready: what
// it has to do is in the database.
func (c *Child) Start(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running() {
		return errors.New("the worker process runs already")
	}
	cmd := c.command()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the worker process: %w", err)
	}
	done := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is ended by Kill and Stop
		close(done)
	}()
	c.cmd, c.done = cmd, done
	return nil
}

// running reports whether the process has not ended, by itself or by us.
func (c *Child) running() bool {
	if c.cmd == nil {
		return false
	}
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

// Kill ends the process with SIGKILL and waits for its end.
func (c *Child) Kill(ctx context.Context) error { return c.end(ctx, syscall.SIGKILL) }

// stopWithin is how long a process may take to finish its calls.
const stopWithin = 30 * time.Second

// Stop ends the process with SIGTERM, or SIGKILL if that takes too long. One
// that does not run is left alone.
func (c *Child) Stop(ctx context.Context) error {
	c.mu.Lock()
	running := c.running()
	c.mu.Unlock()
	if !running {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, stopWithin)
	defer cancel()
	err := c.end(ctx, syscall.SIGTERM)
	if err != nil {
		return errors.Join(err, c.end(context.WithoutCancel(ctx), syscall.SIGKILL))
	}
	return nil
}

func (c *Child) end(ctx context.Context, signal syscall.Signal) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.running() {
		return errors.New("the worker process does not run")
	}
	if err := c.cmd.Process.Signal(signal); err != nil {
		return fmt.Errorf("end the worker process: %w", err)
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the worker process goes on after %s: %w", signal, ctx.Err())
	}
}
