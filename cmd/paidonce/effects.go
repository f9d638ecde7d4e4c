package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type effectsCmd struct {
	List  effectsListCmd  `cmd:"" default:"withargs" help:"List effects, by account and order (the default)."`
	Retry effectsRetryCmd `cmd:"" help:"Make effects due now: those that were given up, or that wait for their next try."`
}

// Help is the text below the flags.
func (effectsCmd) Help() string {
	return `An effect is what a merchant must be told: fulfil, hold, release or revoke an order. One that was tried in vain for days is dead until a person retries it.

Examples:

    paidonce effects --state dead
    paidonce effects retry --account shop
    paidonce effects retry --order ord_1 --yes`
}

// effectFilter is which effects are meant.
type effectFilter struct {
	Account string   `placeholder:"NAME" help:"Only of this account."`
	Order   string   `placeholder:"ORDER" help:"Only of this order: its external_ref or id."`
	State   []string `enum:"open,claimed,done,canceled,assumed,dead" placeholder:"STATE" help:"Only in this state: open, claimed, done, canceled, assumed or dead. Repeatable."`
	Effect  []string `enum:"fulfil,hold,release,revoke" placeholder:"EFFECT" help:"Only this effect. Repeatable."`
	Since   string   `placeholder:"TIME" help:"Only those asked for since: a time (RFC 3339), or how long ago (24h)."`
	Until   string   `placeholder:"TIME" help:"Only those asked for before."`
}

func (f effectFilter) filter(e *env) (store.EffectFilter, error) {
	out := store.EffectFilter{Account: f.Account}
	if id, err := uuid.Parse(f.Order); err == nil {
		out.Order = id
	} else {
		out.Ref = f.Order
	}
	for _, s := range f.State {
		out.States = append(out.States, order.EffectState(s))
	}
	for _, s := range f.Effect {
		out.Effects = append(out.Effects, order.Effect(s))
	}
	var err error
	if out.AskedFrom, err = e.timeOf("--since", f.Since); err != nil {
		return out, err
	}
	out.AskedUntil, err = e.timeOf("--until", f.Until)
	return out, err
}

type effectsListCmd struct {
	effectFilter
	Limit int  `default:"50" help:"At most so many; 0: all (default: ${default})."`
	JSON  bool `help:"Print JSON."`
}

// Run runs the command.
func (c effectsListCmd) Run(ctx context.Context, e *env) error {
	filter, err := c.filter(e)
	if err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.knownOrder(ctx, st, c.Account, c.Order); err != nil {
		return err
	}
	found, err := allPages(c.Limit, effectsOf(ctx, st, filter))
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(found)
	}
	e.showEffects(found)
	return nil
}

// effectsOf reads a page.
func effectsOf(ctx context.Context, st *store.Store, filter store.EffectFilter) func(*store.Effect, int) ([]store.Effect, error) {
	return func(after *store.Effect, size int) ([]store.Effect, error) {
		return st.Effects(ctx, filter, after, size)
	}
}

func (e *env) showEffects(found []store.Effect) {
	rows := make([][]string, len(found))
	for i, f := range found {
		state := string(f.State)
		if f.Parked {
			state += " (parked)"
		}
		about := f.LastError
		if about == "" {
			about = f.Why
		}
		rows[i] = []string{
			f.Account, f.Ref, string(f.Effect), state, strconv.Itoa(f.Attempts), when(f.AskedAt), whenPtr(f.NextAt), about,
		}
	}
	table(e.stdout, []string{"ACCOUNT", "ORDER", "EFFECT", "STATE", "ATTEMPTS", "ASKED", "NEXT", "ABOUT"}, rows)
}

type effectsRetryCmd struct {
	effectFilter
	Yes  bool `short:"y" help:"Do it; without, they are counted and, on a terminal, asked about."`
	JSON bool `help:"Print JSON."`
}

// Help is the text below the flags.
func (effectsRetryCmd) Help() string {
	return `Without --state, those that are dead. What an order does not want any more is not sent: it is superseded.

Examples:

    paidonce effects retry --account shop --effect fulfil
    paidonce effects retry --state dead --since 48h --yes`
}

// Run runs the command.
func (c effectsRetryCmd) Run(ctx context.Context, e *env) error {
	filter, err := c.filter(e)
	if err != nil {
		return err
	}
	if filter, err = store.RetryFilter(filter); err != nil {
		return usage("--state: %w", err)
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.knownOrder(ctx, st, c.Account, c.Order); err != nil {
		return err
	}
	n, err := st.CountEffects(ctx, filter)
	if err != nil {
		return err
	}
	if !c.Yes {
		sure, err := c.ask(ctx, e, st, filter, n)
		if err != nil || !sure {
			return err
		}
	}
	return c.retry(ctx, e, st, filter, n)
}

// ask shows what would be retried, and asks a person who sits there.
func (c effectsRetryCmd) ask(ctx context.Context, e *env, st *store.Store, filter store.EffectFilter, n int) (bool, error) {
	if c.JSON {
		return false, e.printJSON(map[string]any{"matching": n, "done": false})
	}
	const shown = 10
	some, err := allPages(shown, effectsOf(ctx, st, filter))
	if err != nil {
		return false, err
	}
	if n > 0 {
		e.showEffects(some)
		if n > len(some) {
			fmt.Fprintf(e.stdout, "and %d more\n", n-len(some))
		}
		fmt.Fprintln(e.stdout)
	}
	fmt.Fprintf(e.stdout, "%s would be retried.\n", plural(n, "effect"))
	return e.sure(n)
}

func (c effectsRetryCmd) retry(ctx context.Context, e *env, st *store.Store, filter store.EffectFilter, n int) error {
	counts := map[store.RetryOutcome]int{store.RetryRetried: 0, store.RetrySuperseded: 0, store.RetryChanged: 0}
	progress, seen := e.newBar(), 0
	err := st.RetryEffects(ctx, filter, func(_ store.Effect, outcome store.RetryOutcome) {
		counts[outcome]++
		seen++
		progress.show(seen, max(n, seen), "effects")
	})
	progress.clear()
	if c.JSON {
		err = errors.Join(e.printJSON(map[string]any{"matching": n, "done": err == nil, "outcomes": counts}), err)
	} else {
		fmt.Fprintf(e.stdout, "%s due now, %d superseded (the order does not want them any more), %d changed meanwhile.\n",
			plural(counts[store.RetryRetried], "effect"), counts[store.RetrySuperseded], counts[store.RetryChanged])
	}
	return err
}
