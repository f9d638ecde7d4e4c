package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/internal/scenario"
	"github.com/paidonce/paidonce/migrations"
)

// replay plays scenarios against serve in this process and work in another, so
// that a scenario can kill the one that calls the merchant. They have a database
// of their own, which is dropped at the end.
func (c devCmd) replay(ctx context.Context, e *env) (err error) {
	scenarios, err := scenario.Load(c.Replay)
	if err != nil {
		return err
	}
	s := &stage{env: e}
	defer func() { err = errors.Join(err, s.close(err != nil)) }()
	if err := s.open(ctx, scenarios); err != nil {
		return err
	}
	sum, err := s.play(ctx, c.JSON)
	if err != nil {
		return err
	}
	if !c.Exit {
		fmt.Fprintf(e.stderr, "Still running at %s. Ctrl-C stops it, and drops the database of the scenarios.\nLook around with: %s=%s %s orders\n",
			s.url, config.Variable("database_url"), shellWord(s.database), selfCommand(e.getenv))
		<-ctx.Done()
	}
	if err := s.stop(); err != nil {
		return err
	}
	if c.JSON {
		line, err := json.Marshal(sum)
		if err != nil {
			return err
		}
		fmt.Fprintf(e.stdout, "%s\n", line)
	}
	if sum.Failed > 0 {
		return errFailed
	}
	return nil
}

// stage is what scenarios are played on.
type stage struct {
	*env
	set      *scenario.Set
	database string // URL
	url      string // of serve
	pool     *pgxpool.Pool
	child    *scenario.Child
	log      *os.File

	stop    func() error // ends the program in good order
	closers []func() error
}

func (s *stage) later(f func() error) { s.closers = append(s.closers, f) }

// close ends what is still open, in reverse. The log is kept if something went
// wrong.
func (s *stage) close(failed bool) error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
		if failed {
			fmt.Fprintf(s.stderr, "paidonce: the log of serve and work is in %s\n", s.log.Name())
		} else {
			errs = append(errs, os.Remove(s.log.Name()))
		}
	}
	return errors.Join(errs...)
}

func (s *stage) open(ctx context.Context, scenarios []scenario.Scenario) (err error) {
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
		config.Variable("database_url"):         s.database,
		config.Variable("listen"):               "127.0.0.1:0",
		config.Variable("admin_listen"):         "off",
		config.Variable("workers.admin_listen"): "off",
		config.Variable("log.level"):            "debug",
	}
	cfg, err := config.Parse("the scenarios' configuration", file, func(name string) string { return settings[name] })
	if err != nil {
		return err
	}
	if err := s.startWork(ctx, file, settings); err != nil {
		return err
	}
	return s.startServe(ctx, cfg)
}

// openDatabase makes a new database: on the server that the environment names,
// else on a private one.
func (s *stage) openDatabase(ctx context.Context) error {
	server := s.getenv(config.Variable("database_url"))
	if server == "" {
		pg, err := localpg.Start(ctx, localpg.Options{
			Dir: localpg.DefaultDir("paidonce dev --replay", s.getenv), Log: s.stderr, Getenv: s.getenv,
		})
		if err != nil {
			return err
		}
		s.later(pg.Stop)
		server = pg.URL("")
	}
	name := "paidonce_replay_" + randomHex(6)
	u, err := url.Parse(server)
	if err != nil {
		return errors.New(config.Variable("database_url") + " must be a URL")
	}
	u.Path = "/" + name
	s.database = u.String()
	if err := ensureDatabase(ctx, server, name); err != nil {
		return err
	}
	s.later(func() error { return dropDatabase(context.WithoutCancel(ctx), server, name) })
	if err := migrations.Up(ctx, s.database, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	if s.pool, err = pgxpool.New(ctx, s.database); err != nil {
		return err
	}
	s.later(func() error { s.pool.Close(); return nil })
	return nil
}

func dropDatabase(ctx context.Context, server, name string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `DROP DATABASE `+pgx.Identifier{name}.Sanitize()+` WITH (FORCE)`); err != nil {
		return fmt.Errorf("drop database %s: %w", name, err)
	}
	return nil
}

// startWork starts this program once more, as paidonce work.
func (s *stage) startWork(ctx context.Context, file []byte, settings map[string]string) error {
	f, err := os.CreateTemp("", "paidonce-replay-*.yaml") // mode 0600
	if err != nil {
		return err
	}
	s.later(func() error { return os.Remove(f.Name()) })
	if _, err := f.Write(file); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Close(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var environ []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "PAIDONCE_") { // settings of somebody else's configuration
			environ = append(environ, pair)
		}
	}
	for name, value := range settings {
		environ = append(environ, name+"="+value)
	}
	s.child = scenario.NewChild(func() *exec.Cmd {
		cmd := exec.Command(self, "work", "--config", f.Name()) //nolint:noctx // it is ended by Stop and Kill
		cmd.Env, cmd.Stdout, cmd.Stderr = environ, s.log, s.log
		dieWithParent(cmd)
		return cmd
	})
	s.later(func() error { return s.child.Stop(context.WithoutCancel(ctx)) })
	return s.child.Start(ctx)
}

// startServe runs serve here, and returns when it is ready.
func (s *stage) startServe(ctx context.Context, cfg *config.Config) error {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ready, done := make(chan app.Addrs, 1), make(chan error, 1)
	go func() {
		done <- app.Serve(run, cfg, app.Edges{Now: s.now, Log: app.NewLog(cfg.Log, s.log), Ready: func(a app.Addrs) { ready <- a }})
	}()
	serve := sync.OnceValue(func() error { cancel(); return <-done })
	s.later(serve)
	s.stop = func() error { return errors.Join(serve(), s.child.Stop(context.WithoutCancel(ctx))) }
	select {
	case addrs := <-ready:
		s.url = baseURL(addrs.Listen)
		return nil
	case err := <-done:
		done <- err
		return err
	}
}

// play plays all scenarios, and says of each how it went: on stdout, or on
// stderr if that is for a program.
func (s *stage) play(ctx context.Context, forProgram bool) (scenario.Summary, error) {
	out, progress := s.stdout, s.newBar()
	if forProgram {
		out = s.stderr
	}
	sum, err := s.set.Run(ctx, scenario.Target{URL: s.url, Pool: s.pool, Workers: s.child, Now: s.now}, func(p scenario.Progress) {
		progress.clear()
		word := s.paint(out, green, "ok  ")
		if len(p.Problems) > 0 {
			word = s.paint(out, red, "FAIL")
		}
		fmt.Fprintf(out, "%s %-36s %5.2fs  %s\n", word, p.Name, p.Took.Seconds(), p.Shows)
		for _, problem := range p.Problems {
			fmt.Fprintf(out, "       %s\n", problem)
		}
		progress.show(p.Done, p.Total, "scenarios")
	})
	progress.clear()
	if err == nil {
		fmt.Fprintf(out, "%s played, %d failed: %s, %s, %d duplicates, %s, %s.\n", plural(sum.Scenarios, "scenario"), sum.Failed,
			deliveries(sum.Deliveries), plural(sum.Events, "event"), sum.Duplicates, plural(sum.Orders, "order"), plural(sum.Effects, "effect"))
	}
	return sum, err
}
