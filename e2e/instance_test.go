package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/scenario/cases"
)

// instance is one running serve or work.
type instance struct {
	addrs  app.Addrs
	done   chan struct{} // closed at its end
	err    error         // how it ended; read after done
	cancel func()        // in this process
	killed atomic.Bool   // not by itself

	cmd      *exec.Cmd // as a child
	stdin    io.Closer
	reloaded chan string

	reload chan func(error) // in this process
}

func (i *instance) running() bool {
	select {
	case <-i.done:
		return false
	default:
		return true
	}
}

// await waits until an instance has told its addresses.
func (i *instance) await(ctx context.Context, ready <-chan app.Addrs) error {
	select {
	case i.addrs = <-ready:
		return nil
	case <-i.done:
		return fmt.Errorf("it ended: %w", errors.Join(i.err, errors.New("before it was ready")))
	case <-time.After(readyWithin):
		return errors.Join(fmt.Errorf("not ready within %s", readyWithin), i.kill())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), i.kill())
	}
}

// kill ends an instance at once and waits for its end.
func (i *instance) kill() error {
	if i.cmd == nil {
		i.cancel() // a goroutine cannot be killed: only the end of a test comes here
		<-i.done
		return nil
	}
	i.killed.Store(true)
	err := i.cmd.Process.Kill()
	<-i.done
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// hangUp asks an instance to read its configuration again and waits until it has.
func (i *instance) hangUp(ctx context.Context) error {
	answer := make(chan string, 1)
	if i.cmd == nil {
		select {
		case i.reload <- func(err error) { answer <- textOf(err) }:
		case <-ctx.Done():
			return ctx.Err()
		}
	} else {
		if err := i.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			return err
		}
		answer = i.reloaded
	}
	select {
	case text := <-answer:
		if text != "" {
			return fmt.Errorf("the new configuration is not in force: %s", text)
		}
		return nil
	case <-time.After(readyWithin):
		return errors.New("the new configuration is not in force: no answer to SIGHUP")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// buffer is a bytes.Buffer for several writers.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(text)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// lineWriter hands on whole lines.
type lineWriter struct {
	rest string
	line func(string)
}

func (w *lineWriter) Write(text []byte) (int, error) {
	w.rest += string(text)
	for {
		line, rest, ok := strings.Cut(w.rest, "\n")
		if !ok {
			return len(text), nil
		}
		w.rest = rest
		w.line(line)
	}
}

// Refused implements [cases.Program]: serve must end by itself, and so must the
// check of the configuration.
func (p *program) Refused(ctx context.Context) ([]cases.Ended, error) {
	binary, err := paidonce()
	if err != nil {
		return nil, err
	}
	var all []cases.Ended
	for _, args := range [][]string{{"serve"}, {"config", "check"}} {
		args = append(args, "--config", p.configPath())
		limit, cancel := context.WithTimeout(ctx, 15*time.Second)
		cmd := exec.CommandContext(limit, binary, args...)
		cmd.Env = append(cleanEnv(), "PAIDONCE_DATABASE_URL="+p.database)
		began := time.Now()
		output, err := cmd.CombinedOutput()
		cancel()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			return nil, err
		}
		_, _ = p.logs.Write(output)
		all = append(all, cases.Ended{
			Command: "paidonce " + strings.Join(args[:len(args)-2], " "), Code: cmd.ProcessState.ExitCode(),
			Took: time.Since(began), Output: string(output),
		})
	}
	return all, nil
}

// paidonce builds the command, once.
var paidonce = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "paidonce")
	output, err := exec.Command("go", "build", "-o", path, "../cmd/paidonce").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the command: %w: %s", err, output)
	}
	return path, nil
})
