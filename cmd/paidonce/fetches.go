package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/paidonce/paidonce/store"
)

type fetchesCmd struct {
	List  fetchesListCmd  `cmd:"" default:"withargs" help:"List objects, by account and source (the default)."`
	Retry fetchesRetryCmd `cmd:"" help:"Have gateways asked now: about objects that were given up, or that wait for their next try."`
}

// Help is the text below the flags.
func (fetchesCmd) Help() string {
	return `Some gateways' webhooks only name an object, and the gateway's API is asked what it is now. An object is open from when it was named until that was answered, and dead once it was asked about in vain for long.

Examples:

    paidonce fetches
    paidonce fetches --source mollie --state dead
    paidonce fetches retry --source mollie --yes`
}

// fetchFilter is which objects are meant.
type fetchFilter struct {
	Account string   `placeholder:"NAME" help:"Only of this account."`
	Source  string   `placeholder:"ID" help:"Only of this source."`
	Object  string   `placeholder:"KIND/ID" help:"Only this one, such as payment/tr_1."`
	State   []string `enum:"open,done,dead" placeholder:"STATE" help:"Only in this state: open, done or dead. Repeatable. Default: open and dead."`
}

func (f fetchFilter) filter() store.FetchFilter {
	return store.FetchFilter{Account: f.Account, Source: f.Source, Object: f.Object, States: f.State}
}

type fetchesListCmd struct {
	fetchFilter
	Limit int  `default:"50" help:"At most so many; 0: all (default: ${default})."`
	JSON  bool `help:"Print JSON."`
}

// Run runs the command.
func (c fetchesListCmd) Run(ctx context.Context, e *env) error {
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	found, err := allPages(c.Limit, fetchesOf(ctx, st, c.filter()))
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(found)
	}
	e.showFetches(found)
	return nil
}

// fetchesOf reads a page.
func fetchesOf(ctx context.Context, st *store.Store, filter store.FetchFilter) func(*store.Fetch, int) ([]store.Fetch, error) {
	return func(after *store.Fetch, size int) ([]store.Fetch, error) { return st.Fetches(ctx, filter, after, size) }
}

func (e *env) showFetches(found []store.Fetch) {
	rows := make([][]string, len(found))
	for i, f := range found {
		rows[i] = []string{
			f.Account, f.Source, f.Object, f.State, strconv.Itoa(f.Attempts), when(f.AnnouncedAt), whenPtr(f.AskedAt), whenPtr(f.NextAt), f.LastError,
		}
	}
	table(e.stdout, []string{"ACCOUNT", "SOURCE", "OBJECT", "STATE", "ATTEMPTS", "ANNOUNCED", "ASKED", "NEXT", "ABOUT"}, rows)
}

type fetchesRetryCmd struct {
	fetchFilter
	Yes  bool `short:"y" help:"Do it; without, they are counted and, on a terminal, asked about."`
	JSON bool `help:"Print JSON."`
}

// Help is the text below the flags.
func (fetchesRetryCmd) Help() string {
	return `Use it once a source's credentials are right again, or its gateway is back: what waits for its next try is asked about now, and what was given up again.

Examples:

    paidonce fetches retry --source mollie
    paidonce fetches retry --object payment/tr_1 --yes`
}

// Run runs the command.
func (c fetchesRetryCmd) Run(ctx context.Context, e *env) error {
	if slices.Contains(c.State, store.FetchDone) {
		return usage("--state: only objects that are open or dead can be retried, not done")
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	n, err := st.CountFetches(ctx, c.filter())
	if err != nil {
		return err
	}
	if !c.Yes {
		sure, err := c.ask(ctx, e, st, n)
		if err != nil || !sure {
			return err
		}
	}
	retried, err := st.RetryFetches(ctx, c.filter())
	if c.JSON {
		return errors.Join(e.printJSON(map[string]any{"matching": n, "done": err == nil, "retried": retried}), err)
	}
	fmt.Fprintf(e.stdout, "%s due now.\n", plural(retried, "object"))
	return err
}

// ask shows what would be retried, and asks a person who sits there.
func (c fetchesRetryCmd) ask(ctx context.Context, e *env, st *store.Store, n int) (bool, error) {
	if c.JSON {
		return false, e.printJSON(map[string]any{"matching": n, "done": false})
	}
	const shown = 10
	some, err := allPages(shown, fetchesOf(ctx, st, c.filter()))
	if err != nil {
		return false, err
	}
	if n > 0 {
		e.showFetches(some)
		if n > len(some) {
			fmt.Fprintf(e.stdout, "and %d more\n", n-len(some))
		}
		fmt.Fprintln(e.stdout)
	}
	fmt.Fprintf(e.stdout, "%s would be asked about.\n", plural(n, "object"))
	return e.sure(n)
}

// sure asks whether something is to be done with n things now.
func (e *env) sure(n int) (bool, error) {
	if n == 0 {
		return false, nil
	}
	return e.agreed("Retry now?")
}

// agreed asks a person who sits there a question whose answer is no unless it is yes; it says how to do without one.
func (e *env) agreed(question string) (bool, error) {
	if !e.canAsk() {
		fmt.Fprintln(e.stdout, "Do it with --yes.")
		return false, nil
	}
	fmt.Fprintf(e.stdout, "%s [y/N] ", question)
	line, err := bufio.NewReader(e.stdin).ReadString('\n')
	if err != nil {
		return false, errors.New("nobody answered; nothing was done")
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes", nil
}
