package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type transactionsCmd struct {
	List    transactionsListCmd    `cmd:"" default:"withargs" help:"List transactions, newest first (the default)."`
	Resolve transactionsResolveCmd `cmd:"" help:"Say what became of an uncertain transaction, as you have seen it at the gateway."`
}

// Help is the text below the flags.
func (transactionsCmd) Help() string {
	return `A transaction is a call that moves money at a gateway: a capture, a refund, or a void. One is uncertain if asking the gateway again in the same way would not tell what became of it; it is looked up then, and if that tells nothing, a person must look.

Examples:

    paidonce transactions --order ord_1
    paidonce transactions --status uncertain
    paidonce transactions resolve 0199a1b2-0000-7000-8000-000000000004 --outcome failed --note "support says so"`
}

type transactionsListCmd struct {
	Account string `placeholder:"NAME" help:"Only of this account."`
	Order   string `placeholder:"ORDER" help:"Only of this order: its external_ref or id."`
	Status  string `enum:",pending,sent,succeeded,failed,uncertain" default:"" placeholder:"STATUS" help:"Only in this status: pending, sent, succeeded, failed or uncertain."`
	Limit   int    `default:"50" help:"At most so many; 0: all (default: ${default})."`
	JSON    bool   `help:"Print JSON."`
}

// Run runs the command.
func (c transactionsListCmd) Run(ctx context.Context, e *env) error {
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.knownOrder(ctx, st, c.Account, c.Order); err != nil {
		return err
	}
	filter := store.TransactionFilter{Account: c.Account, Status: store.TransactionStatus(c.Status)}
	if id, err := uuid.Parse(c.Order); err == nil {
		filter.Order = id
	} else {
		filter.OrderRef = c.Order
	}
	found := []store.Transaction{}
	for {
		filter.Limit = pageOf(c.Limit, len(found))
		page, next, err := st.ListTransactions(ctx, filter)
		if err != nil {
			return err
		}
		found = append(found, page...)
		if next == uuid.Nil || c.Limit > 0 && len(found) >= c.Limit {
			break
		}
		filter.Before = next
	}
	if c.JSON {
		return e.printJSON(found)
	}
	rows := make([][]string, len(found))
	for i, t := range found {
		rows[i] = []string{
			t.Account, t.OrderRef, t.ID.String(), string(t.Kind), money(t.Amount.Minor, t.Amount.Currency), t.Source, string(t.Status), strconv.Itoa(t.Attempts),
			when(t.CreatedAt), whenPtr(t.NextAt), aboutTransaction(t),
		}
	}
	table(e.stdout, []string{"ACCOUNT", "ORDER", "TRANSACTION", "KIND", "AMOUNT", "SOURCE", "STATUS", "ATTEMPTS", "ASKED", "NEXT", "ABOUT"}, rows)
	return nil
}

// aboutTransaction is what the gateway made of it, or why it stands so.
func aboutTransaction(t store.Transaction) string {
	var parts []string
	for _, s := range []string{t.GatewayRef, t.Code, t.Detail} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, ": ")
}

type transactionsResolveCmd struct {
	ID         string `arg:"" name:"transaction" help:"Its id."`
	Account    string `placeholder:"NAME" help:"Look in this account only."`
	Outcome    string `required:"" enum:"succeeded,failed,not_done" placeholder:"OUTCOME" help:"succeeded: it was done. failed: it was not, and is not to be. not_done: it was not, and is called anew, under another key."`
	Note       string `required:"" placeholder:"TEXT" help:"How you know; it is kept and shown."`
	GatewayRef string `placeholder:"ID" help:"The gateway's id of what it made, of succeeded."`
	Yes        bool   `short:"y" help:"Do it; without, not_done is asked about on a terminal, since money moves twice if it was done after all."`
	JSON       bool   `help:"Print JSON."`
}

// Help is the text below the flags.
func (transactionsResolveCmd) Help() string {
	return `Look at the gateway first: for the transaction's key or id, or for amount and time. succeeded and failed settle it and move nothing: the order follows the gateway's own events.

Examples:

    paidonce transactions resolve $ID --outcome succeeded --gateway-ref re_1 --note "it is in the dashboard"
    paidonce transactions resolve $ID --outcome not_done --note "neither in the dashboard nor in the log" --yes`
}

// resolution is what was said, as the store has it.
func (c transactionsResolveCmd) resolution() (r store.MoveResolution, err error) {
	r = store.MoveResolution{GatewayRef: c.GatewayRef, Code: store.ResolvedByPerson, Detail: c.Note}
	switch c.Outcome {
	case "succeeded":
		r.Status = store.TransactionSucceeded
	case "failed":
		r.Status = store.TransactionFailed
	default:
		r.Status = store.TransactionPending
	}
	for flag, text := range map[string]string{"--note": c.Note, "--gateway-ref": c.GatewayRef} {
		if len(text) > order.MaxReference || !order.IsPrintable(text) || strings.TrimSpace(text) != text {
			return r, usage("%s: want at most %d bytes of printable text without a space at either end", flag, order.MaxReference)
		}
	}
	switch {
	case c.Note == "":
		return r, usage("--note: say how you know")
	case c.GatewayRef != "" && r.Status != store.TransactionSucceeded:
		return r, usage("--gateway-ref belongs to --outcome succeeded: where nothing was done, nothing was made")
	}
	return r, nil
}

// Run runs the command.
func (c transactionsResolveCmd) Run(ctx context.Context, e *env) error {
	r, err := c.resolution()
	if err != nil {
		return err
	}
	id, err := uuid.Parse(c.ID)
	if err != nil {
		return usage("%q is no id of a transaction; paidonce transactions lists them", c.ID)
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, ""); err != nil {
		return err
	}
	t, err := st.FindTransaction(ctx, c.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("there is no transaction %s", id)
	}
	if err != nil {
		return err
	}
	if r.Status == store.TransactionPending && !c.Yes {
		sure, err := c.ask(e, t)
		if err != nil || !sure {
			return err
		}
	}
	err = st.InTx(ctx, func(tx store.Tx) (err error) {
		t, err = st.ResolveTransaction(ctx, tx, t.Account, id, r)
		return err
	})
	var no *store.Refusal
	if errors.As(err, &no) && no.Code == store.RefusedNotUncertain {
		return fmt.Errorf("there is nothing to say about it: %s", explain.Transaction(t))
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return e.printJSON(t)
	}
	fmt.Fprintln(e.stdout, explain.Transaction(t))
	return nil
}

// ask says what not_done does, and asks a person who sits there.
func (c transactionsResolveCmd) ask(e *env, t store.Transaction) (bool, error) {
	if c.JSON {
		return false, e.printJSON(map[string]any{"transaction": t, "done": false})
	}
	fmt.Fprintf(e.stdout, "%s\n%s would be called anew, under another key. If it was done after all, money moves twice.\n", explain.Transaction(t), t.Gateway)
	return e.agreed("Call it anew?")
}
