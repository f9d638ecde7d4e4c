package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/migrations"
)

type migrateCmd struct {
	Up     migrateUpCmd     `cmd:"" default:"1" help:"Apply what is pending (the default)."`
	Status migrateStatusCmd `cmd:"" help:"Show what is applied and what is pending."`
}

// Help is the text below the flags.
func (migrateCmd) Help() string {
	return `Uses "direct_url", or "database_url" without one. Several may run at once: one works, the others wait. Old processes go on working on a new schema, so migrate first and replace them after.

Example:

    paidonce migrate && paidonce migrate status`
}

type migrateUpCmd struct{}

// Run runs the command.
func (migrateUpCmd) Run(ctx context.Context, e *env) error {
	cfg, _, err := e.schema(ctx)
	if err != nil {
		return err
	}
	applied, err := migrations.UpCount(ctx, cfg.DirectURL, app.NewLog(cfg.Log, e.stderr))
	if err != nil {
		return err
	}
	fmt.Fprintf(e.stdout, "The schema is current: %s applied now.\n", plural(applied, "step"))
	return nil
}

type migrateStatusCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run runs the command.
func (c migrateStatusCmd) Run(ctx context.Context, e *env) error {
	_, steps, err := e.schema(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := e.printJSON(steps); err != nil {
			return err
		}
	} else {
		rows := make([][]string, len(steps))
		for i, s := range steps {
			state := whenPtr(s.AppliedAt)
			switch {
			case s.Pending():
				state = "pending"
			case s.Newer:
				state += " (of a later version)"
			}
			rows[i] = []string{s.Origin, strconv.FormatInt(s.Version, 10), s.Name, state}
		}
		table(e.stdout, []string{"OF", "STEP", "NAME", "APPLIED"}, rows)
	}
	if n := pending(steps); n > 0 {
		fmt.Fprintf(e.stderr, "paidonce: %s pending; run paidonce migrate\n", plural(n, "step"))
		return errFailed
	}
	return nil
}

// schema reads where the schema stands.
func (e *env) schema(ctx context.Context) (*config.Config, []migrations.Step, error) {
	cfg, err := e.load()
	if err != nil {
		return nil, nil, err
	}
	if cfg.DirectURL == "" {
		return nil, nil, cfg.NeedDatabase()
	}
	steps, err := migrations.Status(ctx, cfg.DirectURL)
	if err != nil {
		if app.Unreachable(err) {
			return nil, nil, fmt.Errorf("database %s cannot be reached: %w", config.MaskURL(cfg.DirectURL), errors.Unwrap(err))
		}
		return nil, nil, err
	}
	return cfg, steps, nil
}

func pending(steps []migrations.Step) int {
	n := 0
	for _, s := range steps {
		if s.Pending() {
			n++
		}
	}
	return n
}
