package main

import (
	"context"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
)

type serveCmd struct{}

// Help is the text below the flags.
func (serveCmd) Help() string {
	return `Listens for POST /webhooks/{source} and /v1 on "listen", and for /healthz, /readyz and /metrics on "admin_listen". Any number of instances may run on one database.

SIGHUP reads the configuration again: accounts, sources, secrets, API keys and callbacks. SIGTERM finishes what is open and ends.

Example:

    paidonce migrate && paidonce serve --config /etc/paidonce.yaml`
}

// Run runs the command.
func (serveCmd) Run(ctx context.Context, e *env) error { return e.runPart(ctx, app.Serve) }

type workCmd struct{}

// Help is the text below the flags.
func (workCmd) Help() string {
	return `Calls the merchants' callbacks, tries again what failed, and keeps the database in order. Any number of instances may run on one database; an order is never worked on by two at once.

SIGHUP and SIGTERM do what they do to serve.

Example:

    PAIDONCE_WORKERS_COUNT=32 paidonce work`
}

// Run runs the command.
func (workCmd) Run(ctx context.Context, e *env) error { return e.runPart(ctx, app.Work) }

// runPart runs a long-lived part of the program until ctx ends.
func (e *env) runPart(ctx context.Context, part func(context.Context, *config.Config, app.Edges) error) error {
	cfg, err := e.loadAccounts()
	if err != nil {
		return err
	}
	return part(ctx, cfg, app.Edges{
		Now: e.now, Log: app.NewLog(cfg.Log, e.stderr), Reload: app.OnHangup(ctx), Load: e.loadAccounts,
	})
}
