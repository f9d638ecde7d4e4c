package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/fault"
)

// readyWithin is how long a process may take to start, on a machine that is busy.
const readyWithin = 60 * time.Second

// stopWithin is how long it may take to end after SIGTERM: the program's own
// limit, and some.
const stopWithin = 60 * time.Second

// program is the program under test, in this process or in its own ones. It
// implements [cases.Program].
type program struct {
	dir       string           // has its configuration and its clock
	database  string           // URL
	network   string           // address of the recording network; empty: none
	processes bool             // instances are child processes
	edges     func(*app.Edges) // changes those of instances in this process; nil: nothing

	now  atomic.Int64 // the clock, in ns since the Unix epoch; 0: the real one
	logs buffer

	mu        sync.Mutex
	settings  settings
	instances map[string]*instance // by cases.ProcessName
}

var _ cases.Program = (*program)(nil)

// settings is the configuration file: JSON is YAML.
type settings struct {
	Listen      string             `json:"listen"`
	AdminListen string             `json:"admin_listen"`
	Log         map[string]any     `json:"log"`
	Pool        map[string]any     `json:"pool"`
	Workers     map[string]any     `json:"workers"`
	Limits      map[string]any     `json:"limits,omitempty"`
	Accounts    map[string]account `json:"accounts"`

	outside http.Handler // answers what is called on the network but merchants; nil: what the test lays out
	quick   bool         // money is moved at paces for which a test can wait; of processes
}

type account struct {
	APIKeys  []config.APIKey            `json:"api_keys"`
	Callback map[string]any             `json:"callback,omitempty"`
	Sources  map[string]json.RawMessage `json:"sources"`
}

func newProgram(dir, database, networkAddr string, processes bool, s settings) (*program, error) {
	p := &program{
		dir: dir, database: database, network: networkAddr, processes: processes, settings: s,
		instances: make(map[string]*instance),
	}
	return p, p.writeConfig()
}

func (p *program) configPath() string { return filepath.Join(p.dir, "paidonce.yaml") }
func (p *program) clockPath() string  { return filepath.Join(p.dir, "clock") }

func (p *program) writeConfig() error {
	data, err := json.MarshalIndent(p.settings, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(p.configPath(), data, 0o600)
}

// SetClock implements [cases.Program].
func (p *program) SetClock(t time.Time) error {
	p.now.Store(t.UnixNano())
	return writeClock(p.clockPath(), t)
}

func (p *program) clock() time.Time {
	if ns := p.now.Load(); ns != 0 {
		return time.Unix(0, ns)
	}
	return time.Now()
}

// databaseURL is the database for one instance, which tells it who it is.
func (p *program) databaseURL(name string) string {
	separator := "?"
	if strings.Contains(p.database, "?") {
		separator = "&"
	}
	return p.database + separator + "options=-c%20" + fault.ProcessSetting + "%3D" + name
}

// Start implements [cases.Program].
func (p *program) Start(ctx context.Context, process string, number int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := cases.ProcessName(process, number)
	if i := p.instances[name]; i != nil && i.running() {
		return fmt.Errorf("%s runs already", name)
	}
	start := p.startHere
	if p.processes {
		start = p.startChild
	}
	i, err := start(ctx, process, name)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	p.instances[name] = i
	return nil
}

// startHere runs an instance in this process.
func (p *program) startHere(ctx context.Context, process, name string) (*instance, error) {
	getenv := func(key string) string {
		if key == "PAIDONCE_DATABASE_URL" {
			return p.databaseURL(name)
		}
		return ""
	}
	load := func() (*config.Config, error) { return config.Load(p.configPath(), getenv) }
	cfg, err := load()
	if err != nil {
		return nil, err
	}
	i := &instance{done: make(chan struct{}), reload: make(chan func(error))}
	ready := make(chan app.Addrs, 1)
	edges := app.Edges{
		Now: p.clock, Log: slog.New(slog.NewJSONHandler(&p.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Ready: func(a app.Addrs) { ready <- a }, Reload: i.reload, Load: load,
	}
	if p.network != "" {
		edges.DialContext = dialer(p.network)
	}
	if p.edges != nil {
		p.edges(&edges)
	}
	run := app.Serve
	if process == "work" {
		run = app.Work
	}
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	i.cancel = cancel
	go func() {
		defer close(i.done)
		i.err = run(life, cfg, edges)
	}()
	return i, i.await(ctx, ready)
}

// startChild runs an instance as a process of its own.
func (p *program) startChild(ctx context.Context, process, name string) (*instance, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(cleanEnv(), envChild+"="+process, envConfig+"="+p.configPath(),
		envNetwork+"="+p.network, "PAIDONCE_DATABASE_URL="+p.databaseURL(name))
	if p.settings.quick {
		cmd.Env = append(cmd.Env, envQuick+"=1")
	}
	if p.now.Load() != 0 {
		cmd.Env = append(cmd.Env, envClock+"="+p.clockPath())
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	ready, reloaded := make(chan app.Addrs, 1), make(chan string, 8)
	cmd.Stderr = &p.logs
	cmd.Stdout = &lineWriter{line: func(line string) {
		fmt.Fprintln(&p.logs, line)
		switch word, rest, _ := strings.Cut(line, " "); word {
		case "ready":
			var a app.Addrs
			if json.Unmarshal([]byte(rest), &a) == nil {
				ready <- a
			}
		case "reloaded":
			var text string
			if json.Unmarshal([]byte(rest), &text) == nil {
				reloaded <- text
			}
		}
	}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	i := &instance{done: make(chan struct{}), cmd: cmd, stdin: stdin, reloaded: reloaded}
	go func() {
		defer close(i.done)
		i.err = cmd.Wait()
	}()
	return i, i.await(ctx, ready)
}

// cleanEnv is the environment without settings of a program: those of whoever
// runs the tests are not for the programs under test.
func cleanEnv() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "PAIDONCE_") })
}

// Stop implements [cases.Program].
func (p *program) Stop(ctx context.Context, process string, number int) error {
	i, err := p.find(process, number)
	if err != nil {
		return err
	}
	if i.cmd == nil {
		i.cancel()
	} else if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-i.done:
	case <-time.After(stopWithin):
		return errors.Join(fmt.Errorf("%s did not end within %s of SIGTERM", process, stopWithin), i.kill())
	case <-ctx.Done():
		return errors.Join(ctx.Err(), i.kill())
	}
	if i.err != nil && !i.killed.Load() {
		return fmt.Errorf("%s ended with an error: %w", process, i.err)
	}
	return nil
}

// Kill implements [cases.Program].
func (p *program) Kill(_ context.Context, process string, number int) error {
	if !p.processes {
		return errors.New("there is no process to kill: the case was not seen to need one")
	}
	i, err := p.find(process, number)
	if err != nil {
		return err
	}
	return i.kill()
}

// find returns an instance that runs. It stays findable until its end: one that
// is being stopped can still be killed.
func (p *program) find(process string, number int) (*instance, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := cases.ProcessName(process, number)
	i := p.instances[name]
	if i == nil || !i.running() {
		return nil, fmt.Errorf("%s %w", name, cases.ErrNotRunning)
	}
	return i, nil
}

// Running implements [cases.Program].
func (p *program) Running(process string) []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var numbers []int
	for name, i := range p.instances {
		var number int
		if prefix, text, ok := strings.Cut(name, "-"); ok && prefix == process && i.running() {
			if _, err := fmt.Sscan(text, &number); err == nil {
				numbers = append(numbers, number)
			}
		}
	}
	slices.Sort(numbers)
	return numbers
}

// Addr implements [cases.Program].
func (p *program) Addr(number int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.instances[cases.ProcessName("serve", number)]; i != nil && i.running() {
		return i.addrs.Listen
	}
	return ""
}

// Reload implements [cases.Program].
func (p *program) Reload(ctx context.Context, source string, secrets []string) error {
	if err := p.changeSecrets(source, secrets); err != nil {
		return err
	}
	p.mu.Lock()
	var all []*instance
	for name, i := range p.instances {
		if strings.HasPrefix(name, "serve-") && i.running() {
			all = append(all, i)
		}
	}
	p.mu.Unlock()
	for _, i := range all {
		if err := i.hangUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// changeSecrets writes other secrets of a source into the configuration.
func (p *program) changeSecrets(source string, secrets []string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.settings.Accounts {
		raw, ok := a.Sources[source]
		if !ok {
			continue
		}
		var options map[string]json.RawMessage
		if err := json.Unmarshal(raw, &options); err != nil {
			return err
		}
		key := "secrets"
		if _, ok := options["hmac_keys"]; ok {
			key = "hmac_keys"
		}
		options[key], _ = json.Marshal(secrets)
		a.Sources[source], _ = json.Marshal(options)
		return p.writeConfig()
	}
	return fmt.Errorf("there is no source %q", source)
}

// Logs implements [cases.Program].
func (p *program) Logs() string { return p.logs.String() }

// close ends whatever runs.
func (p *program) close() {
	p.mu.Lock()
	all := p.instances
	p.instances = make(map[string]*instance)
	p.mu.Unlock()
	var wg sync.WaitGroup
	for _, i := range all {
		wg.Go(func() { _ = i.kill() })
	}
	wg.Wait()
}
