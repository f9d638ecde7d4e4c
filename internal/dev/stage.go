package dev

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/internal/scenario"
	"github.com/paidonce/paidonce/migrations"
)

// Stage is what scenarios are played on: serve in this process and work in
// another, so that a scenario can kill the one that calls the merchant, and a
// database of their own.
type Stage struct {
	URL      string // of serve
	Database string // URL

	opts    Options
	set     *scenario.Set
	target  scenario.Target
	log     *os.File
	closers []func() error
	stop    func() error
}

// Open builds a stage: on the server that PAIDONCE_DATABASE_URL names, else on a
// private one, and with the program that runs, called as
// "<it> work --config <file>" in the environment environ. The caller closes it,
// whether or not there was an error.
func Open(ctx context.Context, o Options, environ []string, scenarios []scenario.Scenario) (*Stage, error) {
	s := &Stage{opts: o, stop: func() error { return nil }}
	return s, s.open(ctx, environ, scenarios)
}

// Play plays all scenarios; progress is told after each.
func (s *Stage) Play(ctx context.Context, progress func(scenario.Progress)) (scenario.Summary, error) {
	return s.set.Run(ctx, s.target, progress)
}

// Stop ends the program in good order. It fails if that does not go well.
func (s *Stage) Stop() error { return s.stop() }

// Close takes the stage down: processes, database, files. The log of the program
// is kept if something failed, and its name is returned.
func (s *Stage) Close(failed bool) (log string, err error) {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
		if failed {
			log = s.log.Name()
		} else {
			errs = append(errs, os.Remove(s.log.Name()))
		}
	}
	return log, errors.Join(errs...)
}

func (s *Stage) later(f func() error) { s.closers = append(s.closers, f) }

func (s *Stage) open(ctx context.Context, environ []string, scenarios []scenario.Scenario) (err error) {
	if s.log, err = os.CreateTemp("", "paidonce-replay-*.log"); err != nil {
		return err
	}
	if s.set, err = scenario.Prepare(scenarios); err != nil {
		return err
	}
	s.later(func() error { s.set.Close(); return nil })
	if err := s.openDatabase(ctx); err != nil {
		return err
	}
	file, err := s.set.File()
	if err != nil {
		return err
	}
	settings := map[string]string{
		config.Variable("database_url"):         s.Database,
		config.Variable("listen"):               "127.0.0.1:0",
		config.Variable("admin_listen"):         "off",
		config.Variable("workers.admin_listen"): "off",
		config.Variable("log.level"):            "debug",
		config.Variable("reconcile.every"):      "0", // a scenario says itself what happens when
	}
	cfg, err := config.Parse("the scenarios' configuration", file, func(name string) string { return settings[name] })
	if err != nil {
		return err
	}
	pool, err := app.OpenPool(ctx, cfg, "replay", 8)
	if err != nil {
		return err
	}
	s.later(func() error { pool.Close(); return nil })
	child, err := s.startWork(ctx, file, environ, settings)
	if err != nil {
		return err
	}
	if err := s.startServe(ctx, cfg, child); err != nil {
		return err
	}
	s.target = scenario.Target{URL: s.URL, Pool: pool, Workers: child, Now: s.opts.Now}
	return nil
}

// namePrefix begins the names of the stages' databases; the process that made
// it follows.
const namePrefix = "paidonce_replay_"

func (s *Stage) openDatabase(ctx context.Context) error {
	server := s.opts.Getenv(config.Variable("database_url"))
	if server == "" {
		pg, err := localpg.Start(ctx, localpg.Options{
			Dir: localpg.DefaultDir("paidonce dev --replay", s.opts.Getenv), Log: s.opts.Stderr, Getenv: s.opts.Getenv,
		})
		if err != nil {
			return err
		}
		s.later(pg.Stop)
		server = pg.URL("")
		if err := dropForgotten(ctx, server); err != nil {
			return err
		}
	}
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "" {
		return errors.New(config.Variable("database_url") + " must be a URL")
	}
	name := namePrefix + strconv.Itoa(os.Getpid()) + "_" + randomHex(4)
	u.Path = "/" + name
	s.Database = u.String()
	if err := app.CreateDatabase(ctx, server, name); err != nil {
		return err
	}
	s.later(func() error { return app.DropDatabase(context.WithoutCancel(ctx), server, name) })
	return migrations.Up(ctx, s.Database, slog.New(slog.DiscardHandler))
}

// dropForgotten drops the databases of stages whose process is gone: killed ones
// could not do it themselves. The server is of this machine's.
func dropForgotten(ctx context.Context, server string) error {
	names, err := app.Databases(ctx, server, namePrefix)
	if err != nil {
		return err
	}
	for _, name := range names {
		owner, _, _ := strings.Cut(strings.TrimPrefix(name, namePrefix), "_")
		if pid, err := strconv.Atoi(owner); err == nil && pid > 0 && gone(pid) {
			if err := app.DropDatabase(ctx, server, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// startWork starts this program once more, as paidonce work.
func (s *Stage) startWork(ctx context.Context, file []byte, environ []string, settings map[string]string) (*scenario.Child, error) {
	f, err := os.CreateTemp("", "paidonce-replay-*.yaml") // mode 0600
	if err != nil {
		return nil, err
	}
	s.later(func() error { return os.Remove(f.Name()) })
	if _, err := f.Write(file); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var vars []string
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "PAIDONCE_") { // settings of somebody else's configuration
			vars = append(vars, pair)
		}
	}
	for name, value := range settings {
		vars = append(vars, name+"="+value)
	}
	child := scenario.NewChild(func() *exec.Cmd {
		cmd := exec.Command(self, "work", "--config", f.Name()) //nolint:noctx // it is ended by Stop and Kill
		cmd.Env, cmd.Stdout, cmd.Stderr = vars, s.log, s.log
		dieWithParent(cmd)
		return cmd
	})
	s.later(func() error { return child.Stop(context.WithoutCancel(ctx)) })
	return child, child.Start(ctx)
}

// startServe runs serve here, and returns when it is ready.
func (s *Stage) startServe(ctx context.Context, cfg *config.Config, child *scenario.Child) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan app.Addrs, 1), make(chan error, 1)
	go func() {
		done <- app.Serve(run, cfg, app.Edges{
			Now: s.opts.Now, Log: app.NewLog(cfg.Log, s.log), Ready: func(a app.Addrs) { ready <- a },
			DialContext: s.set.DialContext, RootCAs: s.set.RootCAs(),
		})
	}()
	serve := sync.OnceValue(func() error { cancel(); return <-done })
	s.later(serve)
	s.stop = func() error { return errors.Join(serve(), child.Stop(context.WithoutCancel(ctx))) }
	select {
	case addrs := <-ready:
		s.URL = app.URL(addrs.Listen)
		return nil
	case err := <-done:
		done <- err
		return fmt.Errorf("start serve: %w", err)
	}
}
