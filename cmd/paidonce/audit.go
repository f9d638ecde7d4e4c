package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/store"
)

type auditCmd struct {
	Account  string `placeholder:"NAME" help:"Only this account."`
	Order    string `placeholder:"REF" help:"Only this order (its external_ref or id), with its payments and their events."`
	Payloads bool   `help:"Read the kept bytes of every event again as well, with the mapping and the options of today."`
	JSON     bool   `help:"Print JSON: a line per difference, then one with the summary."`
}

// Help is the text below the flags.
func (auditCmd) Help() string {
	return `Folds every payment and every order again from the facts of their events, follows whatever points at something else, and
says what does not agree: ledgers, sums, states, versions, what the merchant was told and what is owed, incomes, recurrences,
transactions, idempotency keys. Each difference has a kind (a code word), what should be there, what is, and the events concerned.

It looks at one moment, writes nothing and takes no locks, so it may run beside live traffic at any time. It exits with 0 if everything
agrees, and with 1 if something does not.

Examples:

    paidonce audit
    paidonce audit --order ord_1 --payloads
    paidonce audit --account shop --json | jq 'select(.kind == "order_fold")'`
}

// Run runs the command.
func (c auditCmd) Run(ctx context.Context, e *env) error {
	o := audit.Options{Account: c.Account}
	if c.Payloads {
		cfg, err := e.loadAccounts()
		if err != nil {
			return err
		}
		o.Read, o.Same = reevaluate.Reader{Config: cfg}.Read, reevaluate.Same
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	progress := e.newBar()
	o.Progress = func(done, total int) { progress.show(done, total, "rows") }
	o.Each = func(d audit.Difference) error {
		progress.clear()
		if c.JSON {
			return e.printLine(d)
		}
		e.showDifference(d)
		return nil
	}
	sum, err := c.run(ctx, st, o)
	progress.clear()
	if err != nil {
		return err
	}
	if c.JSON {
		if err := e.printLine(map[string]audit.Summary{"summary": sum}); err != nil {
			return err
		}
	} else {
		e.sumAudit(sum)
	}
	if sum.Differences > 0 {
		return errFailed
	}
	return nil
}

// run audits everything, or the orders of a name.
func (c auditCmd) run(ctx context.Context, st *store.Store, o audit.Options) (audit.Summary, error) {
	if c.Order == "" {
		return audit.Run(ctx, st, o)
	}
	orders, err := st.FindOrders(ctx, c.Account, c.Order)
	if err != nil {
		return audit.Summary{}, err
	}
	var all audit.Summary
	for _, found := range orders {
		o.Account, o.Order = found.Account, found.ID
		sum, err := audit.Run(ctx, st, o)
		if err != nil {
			return all, err
		}
		all = all.Plus(sum)
	}
	return all, nil
}

// printLine writes one JSON value in a line of its own.
func (e *env) printLine(v any) error {
	enc := json.NewEncoder(e.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

func (e *env) showDifference(d audit.Difference) {
	kind, rest, _ := strings.Cut(d.String(), ": ")
	fmt.Fprintf(e.stdout, "%s: %s\n", e.paint(e.stdout, red, kind), rest)
	for i, ev := range d.Events {
		if i == 0 {
			fmt.Fprint(e.stdout, "  events: ")
		} else {
			fmt.Fprint(e.stdout, ", ")
		}
		fmt.Fprintf(e.stdout, "%s of %s", ev.ID, ev.Source)
	}
	if len(d.Events) > 0 {
		fmt.Fprintln(e.stdout)
	}
}

func (e *env) sumAudit(s audit.Summary) {
	parts := []string{plural(s.Events, "event"), plural(s.Payments, "payment"), plural(s.Orders, "order"), plural(s.Versions, "version")}
	for _, more := range []struct {
		n    int
		what string
	}{{s.Incomes, "income"}, {s.Recurrences, "recurrence"}, {s.Transactions, "transaction"}, {s.Keys, "idempotency key"}} {
		if more.n > 0 {
			parts = append(parts, plural(more.n, more.what))
		}
	}
	fmt.Fprintf(e.stdout, "%s of %s audited as of %s.\n", strings.Join(parts, ", "), plural(s.Accounts, "account"), when(s.At))
	if s.Reread > 0 || len(s.Unread) > 0 {
		text := plural(s.Reread, "event") + " read again"
		for _, code := range slices.Sorted(maps.Keys(s.Unread)) {
			text += fmt.Sprintf(", %d %s", s.Unread[code], code)
		}
		fmt.Fprintln(e.stdout, text+".")
	}
	if s.Differences == 0 {
		fmt.Fprintln(e.stdout, e.paint(e.stdout, green, "No differences."))
		return
	}
	var kinds []string
	for _, k := range audit.Kinds() {
		if n := s.Kinds[k]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
		}
	}
	fmt.Fprintf(e.stdout, "%s: %s.\n", e.paint(e.stdout, red, plural(s.Differences, "difference")), strings.Join(kinds, ", "))
}
