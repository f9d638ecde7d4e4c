package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/dev"
	"github.com/paidonce/paidonce/internal/scenario"
)

type devCmd struct {
	Replay string `type:"existingpath" placeholder:"DIR" help:"Play scenarios (*.yaml) against the running program, on a database of their own."`
	Exit   bool   `help:"With --replay: end after the last scenario; 1 if any failed."`
	JSON   bool   `help:"With --replay: print what they came to as one line of JSON, the last."`
}

// Help is the text below the flags.
func (devCmd) Help() string {
	return `Starts a private Postgres (unless "database_url" is set), brings its schema up to date, and runs serve and work in one process. Without a paidonce.yaml it makes an account "dev" with an API key, sources of Stripe, Adyen and Standard Webhooks with secrets of their own, and a merchant that prints what it is told; all of that is kept in .paidonce, and the other commands find it there.

Examples:

    paidonce dev
    paidonce dev --replay testdata/scenarios --exit --json`
}

// Run runs the command.
func (c devCmd) Run(ctx context.Context, e *env) error {
	o := dev.Options{
		Config: e.file(), Getenv: e.getenv, Environ: e.environ, Stdout: e.stdout, Stderr: e.stderr, Now: e.now, Self: selfCommand(e.getenv),
	}
	if c.Replay != "" {
		return c.replay(ctx, e, o)
	}
	if c.Exit || c.JSON {
		return usage("dev: --exit and --json belong to --replay")
	}
	return dev.Run(ctx, o)
}

func (c devCmd) replay(ctx context.Context, e *env, o dev.Options) (err error) {
	scenarios, err := scenario.Load(c.Replay)
	if err != nil {
		return err
	}
	stage, err := dev.Open(ctx, o, os.Environ(), scenarios) //nolint:forbidigo // for the child process
	defer func() {
		log, closeErr := stage.Close(err != nil)
		if log != "" {
			fmt.Fprintf(e.stderr, "paidonce: the log of serve and work is in %s\n", log)
		}
		err = errors.Join(err, closeErr)
	}()
	if err != nil {
		return err
	}
	sum, err := c.play(ctx, e, stage)
	if err != nil {
		return err
	}
	if !c.Exit {
		fmt.Fprintf(e.stderr, "Still running at %s. Ctrl-C stops it, and drops the database of the scenarios.\nLook around with: %s=%s %s orders\n",
			stage.URL, config.Variable("database_url"), shellWord(stage.Database), o.Self)
		<-ctx.Done()
	}
	if err := stage.Stop(); err != nil {
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

// play plays all scenarios, and says of each how it went: on stdout, or on
// stderr if stdout is for a program.
func (c devCmd) play(ctx context.Context, e *env, stage *dev.Stage) (scenario.Summary, error) {
	out, progress := e.stdout, e.newBar()
	if c.JSON {
		out = e.stderr
	}
	sum, err := stage.Play(ctx, func(p scenario.Progress) {
		progress.clear()
		word := e.paint(out, green, "ok  ")
		if len(p.Problems) > 0 {
			word = e.paint(out, red, "FAIL")
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
