package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

type reconcileCmd struct {
	Report reconcileFile `embed:""`

	Account string `placeholder:"NAME" help:"Only of this account."`
	Source  string `placeholder:"ID" help:"Only this source. Default: all, with --file all of its gateway."`
	Since   string `placeholder:"TIME" help:"Read lists from this time on: a time (RFC 3339), or how long ago (24h). Default: from where the last run came to."`
	DryRun  bool   `help:"Write nothing: read the lists, and say what in them is not known."`
	JSON    bool   `help:"Print JSON; with --file one line for each finding, then one that sums up."`
}

// Help is the text below the flags.
func (reconcileCmd) Help() string {
	return `Asks gateways what happened, and takes in what no webhook has brought, the way webhooks go. What is known changes nothing. Orders
whose gateway should have told by now how they go on are asked about; work does the asking, so the next run says what came of it.
A running work does all of it by itself, every reconcile.every. Do it by hand after an outage, with --since. It exits with 1 if a list
could not be read, another run is at work, or a gateway says otherwise than our ledger.

With --file it asks nobody. It reads a report of what was paid out, as a gateway's dashboard or API gives it,
and says of which lines nobody here knows: an unknown
payment, another amount or currency, a refund or a dispute that never came, a booking that stands there twice. Fees, payouts and
reserves are added up. With --from and --until it also lists what was captured here in that span and is in no line.

The reports of Stripe (itemized balance and payout reconciliation), Adyen (settlement details), PayPal (STL, TRR) and Mercado Pago
(released money, account balance) are known by their header rows; of any other CSV say which columns are what. Nothing is written.
It exits with 1 if something cannot be explained.

Examples:

    paidonce reconcile
    paidonce reconcile --source stripe --since 72h --dry-run
    paidonce reconcile --file payout.csv
    paidonce reconcile --file settlement_detail_report_batch_118.csv --source adyen --from 2026-11-01 --until 2026-12-01
    paidonce reconcile --file liberaciones.csv --currency ARS --json
    paidonce reconcile --file bank.csv --gateway wompi --columns payment=Transacción,amount=Valor,currency=Moneda --decimal comma`
}

// reconcileCalls bounds the calls of one run by hand: a day's worth of the schedule's runs.
const reconcileCalls = 20_000

// reconciled is what came of one source.
type reconciled struct {
	Account string              `json:"account"`
	Source  string              `json:"source"`
	Gateway string              `json:"gateway"`
	DryRun  bool                `json:"dry_run"`
	Busy    bool                `json:"busy"`          // it could not be done now
	Why     string              `json:"why,omitempty"` // nothing was done
	Run     *store.ReconcileRun `json:"run,omitempty"`
}

// Run runs the command.
func (c reconcileCmd) Run(ctx context.Context, e *env) error {
	if c.Report.File != "" {
		if c.Since != "" || c.DryRun {
			return usage("reconcile: --since and --dry-run are about gateways' lists, not about --file")
		}
		return c.Report.run(ctx, e, c.Account, c.Source, c.JSON)
	}
	if f := c.Report; f.Gateway != "" || len(f.Columns) > 0 || f.Currency != "" || f.From != "" || f.Until != "" {
		return usage("reconcile: --gateway, --columns, --currency, --from and --until belong to --file")
	}
	return c.lists(ctx, e)
}

// lists asks gateways what happened.
func (c reconcileCmd) lists(ctx context.Context, e *env) error {
	since, err := e.timeOf("--since", c.Since)
	if err != nil {
		return err
	}
	if since.After(e.now()) {
		return usage("--since %s: that is still to come", c.Since)
	}
	cfg, err := e.loadAccounts()
	if err != nil {
		return err
	}
	st, done, err := e.openStore(ctx)
	if err != nil {
		return err
	}
	defer done()
	if err := e.known(ctx, st, c.Account, c.Source); err != nil {
		return err
	}
	r, stop, err := app.NewReconciler(ctx, st, cfg, app.Edges{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	out, err := c.runs(ctx, e, r, since)
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if c.JSON {
		err = e.printJSON(out)
	} else {
		c.show(e, out)
	}
	if err == nil && slices.ContainsFunc(out, reconciled.failed) {
		return errFailed
	}
	return err
}

func (r reconciled) failed() bool {
	return r.Busy || r.Run != nil && (r.Run.Result == store.ReconcileFailed || r.Run.Unexplained > 0)
}

// runs works on one source after another.
func (c reconcileCmd) runs(ctx context.Context, e *env, r *outbound.Reconciler, since time.Time) ([]reconciled, error) {
	out := []reconciled{}
	units, notes := r.Sources()
	progress := e.newBar()
	defer progress.clear()
	for _, n := range notes {
		if c.Source != "" && n.Source != c.Source || c.Account != "" && n.Account != c.Account {
			continue
		}
		one := reconciled{Account: n.Account, Source: n.Source, Gateway: n.Gateway, DryRun: c.DryRun}
		if !slices.Contains(units, n.Source) {
			one.Why = n.Note
			out = append(out, one)
			continue
		}
		run, err := r.Reconcile(ctx, n.Source, outbound.ReconcileRequest{
			Since: since, DryRun: c.DryRun, Calls: reconcileCalls,
			Progress: func(done, all time.Duration) {
				progress.show(int(done/time.Minute), int(all/time.Minute), "minutes of "+n.Source)
			},
		})
		var busy *store.ReconcileBusyError
		switch {
		case errors.As(err, &busy):
			one.Busy, one.Why = true, busy.Error()
		case err != nil:
			return out, err
		case run.Result == store.ReconcileStopped:
			return out, context.Cause(ctx)
		default:
			one.Run = &run
		}
		out = append(out, one)
	}
	return out, nil
}

func (c reconcileCmd) show(e *env, out []reconciled) {
	rows := make([][]string, len(out))
	for i, o := range out {
		r := o.Run
		if r == nil {
			rows[i] = []string{o.Source, o.Gateway, "not done"}
			continue
		}
		late := ""
		if r.Healed > 0 && r.LateMax > 0 {
			late = seconds(r.LateP50) + ", at most " + seconds(r.LateMax)
		}
		rows[i] = []string{
			o.Source, o.Gateway, string(r.Result), whenPtr(r.From), strconv.Itoa(r.Listed), strconv.Itoa(r.Duplicates), strconv.Itoa(r.Healed), late,
			strconv.Itoa(r.Announced + r.Asked), strconv.Itoa(r.Open), strconv.Itoa(r.Unexplained), strconv.Itoa(r.Calls),
		}
	}
	healed := "HEALED"
	if c.DryRun {
		healed = "NEW"
	}
	table(e.stdout, []string{"SOURCE", "GATEWAY", "RESULT", "FROM", "LISTED", "KNOWN", healed, "LATE", "ASKED", "OPEN", "UNEXPLAINED", "CALLS"}, rows)
	for _, r := range out {
		showReconciled(e.stdout, r)
	}
	if c.DryRun {
		fmt.Fprintln(e.stdout, "This was a dry run: nothing was written, and nobody was asked about anything.")
	}
}

// showReconciled writes what one line of the table cannot hold.
func showReconciled(w io.Writer, o reconciled) {
	say := func(format string, args ...any) { fmt.Fprintf(w, o.Source+": "+format+"\n", args...) }
	if o.Why != "" {
		say("%s", strings.TrimPrefix(o.Why, "source "+o.Source+": "))
	}
	r := o.Run
	if r == nil {
		return
	}
	if r.Error != "" {
		say("%s", r.Error)
	}
	if r.Result == store.ReconcileMore {
		say("there is more; run it again")
	}
	for _, n := range r.Notes {
		say("%s", n)
	}
	for _, h := range r.Events {
		text := string(h.Outcome)
		if text == "" {
			text = "new"
		}
		if h.Order != nil {
			text += ", order " + h.Order.String()
		}
		if h.Late > 0 {
			text += ", " + seconds(h.Late) + " late"
		}
		say("event %s, %s: %s", h.ID, h.Type, text)
	}
	if left := r.Healed + r.Differs + r.KeptAside - len(r.Events); left > 0 {
		say("and %d more", left)
	}
	for _, c := range r.Contradictions {
		text := c.Detail
		if c.Order != nil {
			text += " Order " + c.Order.String() + "."
		}
		say("%s: %s", c.Object, text)
	}
	for _, o := range r.Orders {
		say("order %s is %s since %s%s", o.Ref, o.State, when(o.Since), asksText(o))
	}
	if left := r.Open - len(r.Orders); left > 0 {
		say("and %s more that wait", plural(left, "order"))
	}
	for _, t := range r.Transactions {
		say("transaction %s, a %s of %s, is uncertain since %s", t.ID, t.Kind, money(t.Amount, t.Currency), whenPtr(t.SentAt))
	}
}

func asksText(o store.WaitingOrder) string {
	switch {
	case o.Asks == 0:
		return ""
	case o.NextAt == nil:
		return ", asked about " + strconv.Itoa(o.Asks) + " times, the last time " + whenPtr(o.AskedAt) + ": not any more"
	default:
		return ", asked about " + whenPtr(o.AskedAt) + ", next " + whenPtr(o.NextAt)
	}
}

// seconds writes a number of seconds as people say it.
func seconds(n int64) string {
	text := (time.Duration(n) * time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
