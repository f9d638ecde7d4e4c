// Package dev runs Paidonce on a developer's machine: all of it in one process,
// on a Postgres of its own, with a configuration and a merchant that it makes
// where there are none ([Run]); and scenarios on a stage that is taken down
// again ([Open]).
package dev

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/localpg"
	"github.com/paidonce/paidonce/migrations"
)

// Options is what a person's terminal gives. All fields are needed.
type Options struct {
	// Config is the configuration to run. Empty, or File: one that dev makes.
	Config string

	Getenv func(string) string

	// Environ are the names of all environment variables.
	Environ []string
	Stdout  io.Writer // where everything is, and what the merchant is told
	Stderr  io.Writer // the log
	Now     func() time.Time

	// Self is how the person calls this program, for lines to copy.
	Self string
}

// Run runs serve and work until ctx ends.
func Run(ctx context.Context, o Options) error {
	m := &machine{Options: o, own: o.Config == "" || o.Config == File}
	defer m.close()
	cfg, err := m.prepare(ctx)
	if err != nil {
		return err
	}
	if err := migrations.Up(ctx, cfg.DirectURL, slog.New(slog.DiscardHandler)); err != nil {
		return err
	}
	return app.Both(ctx, cfg, app.Edges{
		Now: o.Now, Log: newLog(cfg, o.Stderr), Reload: app.OnHangup(ctx), Load: m.load,
		Ready: func(addrs app.Addrs) { m.banner(cfg, addrs) },
	})
}

// newLog is a log for people.
func newLog(cfg *config.Config, w io.Writer) *slog.Logger {
	var level slog.Level
	if level.UnmarshalText([]byte(cfg.Log.Level)) != nil {
		level = slog.LevelInfo // the configuration was checked
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == "config" { // config check --print shows it better
				return slog.Attr{}
			}
			return a
		},
	}))
}

// machine is what a running dev holds.
type machine struct {
	Options
	own      bool // the configuration is one that dev made
	made     bool // just now
	apiKey   string
	url      string // of the private Postgres
	server   *localpg.Server
	merchant *merchant
}

// prepare brings up what the program needs and returns the configuration.
func (m *machine) prepare(ctx context.Context) (*config.Config, error) {
	if m.own {
		var err error
		if m.made, m.apiKey, err = makeFolder(ctx); err != nil {
			return nil, err
		}
		// Its database_url is read from a file, which has to be there first.
		if m.Getenv(config.Variable("database_url")) == "" {
			if err := m.startPostgres(ctx); err != nil {
				return nil, err
			}
		}
	}
	cfg, err := m.load()
	if err != nil {
		return nil, err
	}
	if cfg.DatabaseURL == "" {
		if err := m.startPostgres(ctx); err != nil {
			return nil, err
		}
		m.place(cfg)
	}
	if len(cfg.Accounts) == 0 {
		return nil, fmt.Errorf("%s has no accounts; paidonce config example shows what one looks like", cfg.File())
	}
	if m.own {
		if m.merchant, err = startMerchant(ctx, cfg, m.Stdout, m.Now); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// load reads the configuration, and puts the private Postgres into one that
// names none.
func (m *machine) load() (*config.Config, error) {
	name := m.Config
	if m.own {
		name = File
	}
	cfg, err := config.Load(name, m.Getenv, m.Environ...)
	if err == nil && cfg.DatabaseURL == "" {
		m.place(cfg)
	}
	return cfg, err
}

func (m *machine) place(cfg *config.Config) {
	if m.url != "" {
		cfg.DatabaseURL, cfg.DirectURL = m.url, m.url
	}
}

// startPostgres starts, or joins, the private Postgres of this folder.
func (m *machine) startPostgres(ctx context.Context) error {
	wd, err := os.Getwd()
	if err != nil {
		return err
	}
	m.server, err = localpg.Start(ctx, localpg.Options{
		Dir: localpg.DefaultDir("paidonce dev "+wd, m.Getenv), Durable: true, Log: m.Stderr, Getenv: m.Getenv,
	})
	if err != nil {
		return err
	}
	if err := app.CreateDatabase(ctx, m.server.URL(""), "paidonce"); err != nil {
		return err
	}
	m.url = m.server.URL("paidonce")
	if err := os.MkdirAll(filepath.Dir(DatabaseFile), 0o700); err != nil {
		return err
	}
	return os.WriteFile(DatabaseFile, []byte(m.url+"\n"), 0o600)
}

func (m *machine) close() {
	if m.merchant != nil {
		m.merchant.close()
	}
	if m.server != nil {
		if err := m.server.Stop(); err != nil {
			fmt.Fprintf(m.Stderr, "stop Postgres: %v\n", err)
		}
	}
}

// banner says where everything is, and how to send the first event.
func (m *machine) banner(cfg *config.Config, addrs app.Addrs) {
	base := app.URL(addrs.Listen)
	var b strings.Builder
	b.WriteString("\nPaidonce is running. Ctrl-C stops it; what it stored stays.\n\n")
	for _, name := range cfg.AccountNames() {
		sources := cfg.Accounts[name].Sources
		for _, id := range slices.Sorted(maps.Keys(sources)) {
			fmt.Fprintf(&b, "  webhooks   %s/webhooks/%s  (%s)\n", base, id, sources[id].Gateway)
		}
	}
	fmt.Fprintf(&b, "  API        %s/v1\n", base)
	if addrs.Admin != "" {
		admin := app.URL(addrs.Admin)
		fmt.Fprintf(&b, "  health     %s/readyz  %s/metrics\n", admin, admin)
	}
	if m.url != "" {
		fmt.Fprintf(&b, "  database   psql \"$(cat %s)\"  (Postgres of %s)\n", DatabaseFile, m.server.From)
	} else {
		fmt.Fprintf(&b, "  database   %s\n", config.MaskURL(cfg.DatabaseURL))
	}
	if m.own {
		m.firstEvent(&b, base)
	} else if m.url != "" {
		fmt.Fprintf(&b, "\nFor the other commands:\n\n    export %s=file:%s\n", config.Variable("database_url"), absolute(DatabaseFile))
	}
	fmt.Fprintln(m.Stdout, b.String())
}

// firstEvent shows lines to copy. They are run as they stand by a test.
func (m *machine) firstEvent(b *strings.Builder, base string) {
	fmt.Fprintf(b, "  settings   %s\n", File)
	if m.made {
		fmt.Fprintf(b, "  API key    %s  (kept in %s)\n", m.apiKey, keyFile)
	}
	fmt.Fprintf(b, `
In another terminal here: register an order, pay it, and ask about it. Here you see what the merchant is told.

    curl -sS %s/v1/orders -H "Authorization: Bearer $(cat %s)" -H 'Content-Type: application/json' \
      -d '{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"ord_1"}}}'
    %s send stripe payment_intent.succeeded --order ord_1 --amount 50.00 --currency EUR
    %s explain ord_1
`, base, keyFile, m.Self, m.Self)
}

func absolute(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		return abs
	}
	return name
}
