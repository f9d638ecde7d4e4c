package main

import "context"

type reconcileCmd struct {
	Report reconcileFile `embed:""`

	Account string `placeholder:"NAME" help:"Only payments of this account."`
	Source  string `placeholder:"ID" help:"Only payments of this source (default: of all sources of the gateway)."`
	JSON    bool   `help:"Print JSON: one line for each finding, then one that sums up."`
}

// Help is the text below the flags.
func (reconcileCmd) Help() string {
	return `Reads a report of what was paid out, as a gateway's dashboard or API gives it, and says of which lines nobody here knows: an unknown
payment, another amount or currency, a refund or a dispute that never came, a booking that stands there twice. Fees, payouts and
reserves are added up. With --from and --until it also lists what was captured here in that span and is in no line.

The reports of Stripe (itemized balance and payout reconciliation), Adyen (settlement details), PayPal (STL, TRR) and Mercado Pago
(released money, account balance) are known by their header rows; of any other CSV say which columns are what. Nothing is written.
It exits with 1 if something cannot be explained.

Examples:

    paidonce reconcile --file payout.csv
    paidonce reconcile --file settlement_detail_report_batch_118.csv --source adyen --from 2026-11-01 --until 2026-12-01
    paidonce reconcile --file liberaciones.csv --currency ARS --json
    paidonce reconcile --file bank.csv --gateway wompi --columns payment=Transacción,amount=Valor,currency=Moneda --decimal comma`
}

// Run runs the command.
func (c reconcileCmd) Run(ctx context.Context, e *env) error {
	if c.Report.File == "" {
		return usage("reconcile: name a report with --file")
	}
	return c.Report.run(ctx, e, c.Account, c.Source, c.JSON)
}
