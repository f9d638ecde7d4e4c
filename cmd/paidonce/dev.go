package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/migrations"
)

type devCmd struct {
	Replay string `type:"existingpath" placeholder:"DIR" help:"Play scenarios (*.yaml) against the running program, on a database of their own."`
	Exit   bool   `help:"With --replay: end after the last scenario; 1 if any failed."`
	JSON   bool   `help:"With --replay: print what they came to as one line of JSON, the last."`
}

// Help is the text below the flags.
func (devCmd) Help() string {
	return `Starts a private Postgres (unless "database_url" is set), brings its schema up to date, and runs serve and work in one process. Without a paidonce.yaml it makes an account "dev" with an API key, a source of every gateway with secrets of its own, and a merchant that prints what it is told; all of that is kept in .paidonce, and the other commands find it there.

Examples:

    paidonce dev
    paidonce dev --replay testdata/scenarios --exit --json`
}

// Run runs the command.
func (c devCmd) Run(ctx context.Context, e *env) error {
	if c.Replay != "" {
		return c.replay(ctx, e)
	}
	if c.Exit || c.JSON {
		return usage("dev: --exit and --json belong to --replay")
	}
	d := &dev{env: e}
	defer d.close()
	cfg, err := d.prepare(ctx)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(e.stderr, &slog.HandlerOptions{
		Level: levelOf(cfg.Log.Level),
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "config" { // config check --print shows it better
				return slog.Attr{}
			}
			return a
		},
	}))
	if err := migrations.Up(ctx, cfg.DirectURL, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	return app.Both(ctx, cfg, app.Edges{
		Now: e.now, Log: log, Reload: app.OnHangup(ctx), Load: func() (*config.Config, error) { return d.load() },
		Ready: func(addrs app.Addrs) { d.banner(cfg, addrs) },
	})
}

func levelOf(name string) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(name)) != nil {
		return slog.LevelInfo
	}
	return level
}

// dev is what a running paidonce dev holds.
type dev struct {
	*env
	own      bool // the configuration is one that dev made
	url      string
	from     string // which Postgres, for people
	server   *localpg.Server
	merchant *merchant
	made     bool // the folder was made just now
	apiKey   string
}

// prepare brings up what the program needs and returns the configuration.
func (d *dev) prepare(ctx context.Context) (*config.Config, error) {
	switch d.file() {
	case "", devFile:
		d.own = true
		var err error
		if d.made, d.apiKey, err = makeDevFolder(); err != nil {
			return nil, err
		}
	}
	// With a configuration of dev's own the address of the database is read from
	// a file that has to be there first.
	if d.own && d.getenv(config.Variable("database_url")) == "" {
		if err := d.startPostgres(ctx); err != nil {
			return nil, err
		}
	}
	cfg, err := d.load()
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL == "" {
		if err := d.startPostgres(ctx); err != nil {
			return nil, err
		}
		d.place(cfg)
	}
	if len(cfg.Accounts) == 0 {
		return nil, fmt.Errorf("%s has no accounts; paidonce config example shows what one looks like", cfg.File())
	}
	if d.own {
		if d.merchant, err = startMerchant(ctx, cfg, d.stdout, d.now); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// load reads the configuration, and puts the private Postgres into one that
// names none.
func (d *dev) load() (*config.Config, error) {
	if d.own {
		return config.Load(devFile, d.getenv)
	}
	cfg, err := d.env.load()
	if err == nil && cfg.DatabaseURL == "" {
		d.place(cfg)
	}
	return cfg, err
}

func (d *dev) place(cfg *config.Config) {
	if d.url != "" {
		cfg.DatabaseURL, cfg.DirectURL = d.url, d.url
	}
}

// startPostgres starts, or joins, the private Postgres of this folder.
func (d *dev) startPostgres(ctx context.Context) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	d.server, err = localpg.Start(ctx, localpg.Options{
		Dir: localpg.DefaultDir("paidonce dev "+wd, d.getenv), Durable: true, Log: d.stderr, Getenv: d.getenv,
	})
	if err != nil {
		return err
	}
	if err := ensureDatabase(ctx, d.server.URL(""), "paidonce"); err != nil {
		return err
	}
	d.url, d.from = d.server.URL("paidonce"), "Postgres of "+d.server.From
	if err := os.MkdirAll(filepath.Dir(databaseFile), 0o700); err != nil {
		return err
	}
	return os.WriteFile(databaseFile, []byte(d.url+"\n"), 0o600)
}

// ensureDatabase makes a database on a server, if it has none of that name.
func ensureDatabase(ctx context.Context, server, name string) error {
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		return fmt.Errorf("connect to the server: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, `CREATE DATABASE `+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("make database %s: %w", name, err)
	}
	return nil
}

func (d *dev) close() {
	if d.merchant != nil {
		d.merchant.close()
	}
	if d.server != nil {
		if err := d.server.Stop(); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(d.stderr, "paidonce: stop Postgres: %v\n", err)
		}
	}
}

// banner says where everything is, and how to send the first event.
func (d *dev) banner(cfg *config.Config, addrs app.Addrs) {
	base, self := baseURL(addrs.Listen), selfCommand(d.getenv)
	var b strings.Builder
	b.WriteString("\nPaidonce is running. Ctrl-C stops it; what it stored stays.\n\n")
	for _, name := range cfg.AccountNames() {
		for _, id := range sortedSources(cfg, name) {
			fmt.Fprintf(&b, "  webhooks   %s/webhooks/%s  (%s)\n", base, id, cfg.Accounts[name].Sources[id].Gateway)
		}
	}
	fmt.Fprintf(&b, "  API        %s/v1\n", base)
	if addrs.Admin != "" {
		admin := baseURL(addrs.Admin)
		fmt.Fprintf(&b, "  health     %s/readyz  %s/metrics\n", admin, admin)
	}
	if d.url != "" {
		fmt.Fprintf(&b, "  database   psql \"$(cat %s)\"  %s\n", databaseFile, d.from)
	} else {
		fmt.Fprintf(&b, "  database   %s\n", config.MaskURL(cfg.DatabaseURL))
	}
	if !d.own {
		if d.url != "" {
			fmt.Fprintf(&b, "\nFor the other commands:\n\n    export %s=file:%s\n", config.Variable("database_url"), absolute(databaseFile))
		}
		fmt.Fprintln(d.stdout, b.String())
		return
	}
	fmt.Fprintf(&b, "  settings   %s\n", devFile)
	if d.made {
		fmt.Fprintf(&b, "  API key    %s  (kept in %s)\n", d.apiKey, keyFile)
	}
	fmt.Fprintf(&b, `
In another terminal here: register an order, pay it, and ask about it. Here you see what the merchant is told.

    curl -sS %s/v1/orders -H "Authorization: Bearer $(cat %s)" -H 'Content-Type: application/json' \
      -d '{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"ord_1"}}}'
    %s send stripe payment_intent.succeeded --order ord_1 --amount 50.00 --currency EUR
    %s explain ord_1
`, base, keyFile, self, self)
	fmt.Fprintln(d.stdout, b.String())
}

func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
