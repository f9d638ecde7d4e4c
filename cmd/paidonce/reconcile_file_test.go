package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// ledgers is a database into which gateways have told of payments, and the configuration of their sources.
type ledgers struct {
	st     *store.Store
	config string
}

func openLedgers(t *testing.T) ledgers {
	t.Helper()
	hmac := strings.Repeat("ab", 32)
	l := ledgers{config: write(t, "paidonce.yaml", fmt.Sprintf(`
database_url: %q
accounts:
  shop:
    sources:
      stripe: {gateway: stripe, mode: test, secrets: [%s]}
      stripe2: {gateway: stripe, mode: live, secrets: [%s]}
      adyen: {gateway: adyen, mode: test, hmac_keys: [%s], basic: "user:password", merchant_accounts: [ExampleShopECOM]}
      paypal: {gateway: paypal, mode: test, webhook_id: EXAMPLE0001}
      mercadopago: {gateway: mercadopago, mode: test, secrets: [secret-of-mercadopago], access_token: TEST-token}
`, storetest.OpenURL(t), stripeSecret, stripeSecret, hmac))}
	e := &env{config: l.config, getenv: func(string) string { return "" }}
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	t.Cleanup(done)
	l.st = st
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	return l
}

var told = time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)

// tell enters what the webhooks of a gateway say, by its own mapping.
func (l ledgers) tell(t *testing.T, g *gateway.Gateway, id string, requests ...gateway.SampleRequest) {
	t.Helper()
	for i, req := range requests {
		req.Source = gateway.Source{
			ID: id, Account: "shop", Gateway: g.Name, Mode: gateway.Test, Basic: "user:password", MerchantAccounts: []string{"ExampleShopECOM"},
		}
		req.At = told.Add(time.Duration(i) * time.Minute)
		if req.ID == "" {
			req.ID = fmt.Sprintf("evt_%s_%d", id, i)
		}
		var events []order.Event
		if g == gateway.MercadoPago {
			object, body, err := g.Fetch.Sample(req)
			require.NoError(t, err)
			events, err = g.Fetched(req.Source, object, gateway.Answer{Body: body, Started: req.At})
			require.NoError(t, err)
		} else {
			body, err := g.Sample(req)
			require.NoError(t, err)
			events, err = g.Events(req.Source, gateway.Delivery{Body: body})
			require.NoError(t, err)
		}
		for _, ev := range events {
			require.Empty(t, ev.Broken, "%s", req.Type)
			require.NotEmpty(t, ev.Facts, "%s %s", req.Type, ev.Ignored)
			_, err := l.st.Apply(t.Context(), []store.Event{{Account: "shop", Source: id, Event: ev, MappingVersion: gateway.MappingVersion}})
			require.NoError(t, err)
		}
	}
}

func tells(typ, payment, ref string, minor int64, currency string) gateway.SampleRequest {
	return gateway.SampleRequest{Type: typ, Payment: payment, Ref: ref, Amount: order.Amount{Minor: minor, Currency: currency}}
}

func set(req gateway.SampleRequest, pairs ...string) gateway.SampleRequest {
	req.Set = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		req.Set[pairs[i]] = pairs[i+1]
	}
	return req
}

func forOrder(ref string, req gateway.SampleRequest) gateway.SampleRequest {
	req.Reference = ref
	return req
}

const reports = "../../internal/settlement/testdata/"

// fill has every gateway tell of what its report in testdata is about, but for a few things.
func (l ledgers) fill(t *testing.T) {
	t.Helper()
	l.tell(t, gateway.Stripe, "stripe",
		forOrder("ord_1", tells("payment_intent.succeeded", "pi_9A01", "", 5000, "EUR")),
		tells("refund.created", "pi_9A01", "re_9A03", 2000, "EUR"),
		forOrder("ord_2", tells("payment_intent.succeeded", "pi_9A02", "", 5000, "USD")),
		forOrder("ord_4", tells("payment_intent.succeeded", "pi_9A04", "", 6000, "EUR")),
		forOrder("ord_6", tells("payment_intent.succeeded", "pi_9A06", "", 3000, "EUR")),
		tells("charge.dispute.created", "pi_9A06", "dp_9A06", 3000, "EUR"),
		set(tells("charge.dispute.closed", "pi_9A06", "dp_9A06", 3000, "EUR"), "data.object.status", "won"),
		forOrder("ord_7", tells("payment_intent.succeeded", "pi_9A07", "", 2000, "EUR")),
		tells("refund.failed", "pi_9A07", "re_9A08", 2000, "EUR"),
		forOrder("ord_99", tells("payment_intent.succeeded", "pi_9A99", "", 700, "EUR")), // in no line
	)
	l.tell(t, gateway.Adyen, "adyen",
		forOrder("ord_1", tells("AUTHORISATION", "PSP0000000000A01", "", 5000, "EUR")),
		tells("CAPTURE", "PSP0000000000A01", "MOD0000000000A01", 5000, "EUR"),
		tells("REFUND", "PSP0000000000A01", "MOD0000000000A03", 2000, "EUR"),
		forOrder("ord_2", tells("AUTHORISATION", "PSP0000000000A02", "", 500, "GBP")),
		forOrder("ord_4", tells("AUTHORISATION", "PSP0000000000A04", "", 3000, "EUR")),
		tells("CHARGEBACK", "PSP0000000000A04", "MOD0000000000A04", 3000, "EUR"),
		tells("CHARGEBACK_REVERSED", "PSP0000000000A04", "MOD0000000000A04", 3000, "EUR"),
		forOrder("ord_5", tells("AUTHORISATION", "PSP0000000000A05", "", 1234, "EUR")),
		tells("REFUND", "PSP0000000000A05", "MOD0000000000A05", 1234, "EUR"),
		tells("REFUND_FAILED", "PSP0000000000A05", "MOD0000000000A05", 1234, "EUR"),
		forOrder("ord_6", tells("AUTHORISATION", "PSP0000000000A06", "", 1300, "JPY")), // they say 1200
	)
	l.tell(t, gateway.PayPal, "paypal",
		forOrder("ord_1", tells("PAYMENT.CAPTURE.COMPLETED", "1AA00000AA000001A", "", 5000, "EUR")),
		tells("PAYMENT.CAPTURE.REFUNDED", "1AA00000AA000001A", "1AA00000AA000003A", 2000, "EUR"),
		forOrder("ord_2", tells("PAYMENT.CAPTURE.COMPLETED", "1AA00000AA000002A", "", 999, "USD")),
		forOrder("ord_4", tells("PAYMENT.CAPTURE.COMPLETED", "1AA00000AA000014A", "", 3000, "EUR")),
		tells("CUSTOMER.DISPUTE.CREATED", "1AA00000AA000014A", "PP-D-1", 3000, "EUR"),
		forOrder("ord_7", tells("PAYMENT.CAPTURE.COMPLETED", "1AA00000AA000017A", "", 700, "EUR")),
		tells("PAYMENT.CAPTURE.REVERSED", "1AA00000AA000017A", "1AA00000AA000007A", 700, "EUR"),
		forOrder("ord_9", tells("PAYMENT.CAPTURE.COMPLETED", "1AA00000AA000012A", "", 10000, "JPY")),
	)
	l.tell(t, gateway.MercadoPago, "mercadopago",
		set(forOrder("ord_1", tells("payment.approved", "90000000001", "", 100000, "ARS")),
			"transaction_amount_refunded", "100", "refunds", `[{"id":1,"status":"approved","amount":100}]`),
		forOrder("ord_3", set(tells("payment.charged_back", "90000000003", "", 50000, "ARS"), "status_detail", "reimbursed")),
		// The buyer got 80 of it back by a mediation.
		set(forOrder("ord_4", tells("payment.approved", "90000000004", "", 20000, "ARS")),
			"transaction_amount_refunded", "80", "refunds", `[{"id":2,"status":"approved","amount":80}]`),
	)
}

func TestReconcileFile(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	l.fill(t)
	before := l.dump(t)
	for name, args := range map[string]string{
		"stripe":      "--file %sstripe-payout.csv --from 2026-11-24 --until 2026-12-01",
		"adyen":       "--file %sadyen-settlement.csv --source adyen",
		"paypal":      "--file %spaypal-stl.csv",
		"mercadopago": "--file %smercadopago-released.csv --source mercadopago",
	} {
		t.Run(name, func(t *testing.T) {
			a := call(t, append(words("reconcile %s", fmt.Sprintf(args, reports)), "-c", l.config))
			require.Empty(t, a.stderr)
			require.Equal(t, exitFailed, a.code)
			golden(t, "reconcile_"+name+".golden", strings.ReplaceAll(a.stdout, reports, ""))
		})
	}
	manual, err := os.ReadFile("../../docs/settlement.md")
	require.NoError(t, err)
	shown, err := os.ReadFile("testdata/reconcile_stripe.golden")
	require.NoError(t, err)
	require.Contains(t, string(manual), string(shown), "the manual shows it")
	require.Equal(t, before, l.dump(t), "nothing was written")
}

// dump is all that the tables hold.
func (l ledgers) dump(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, table := range []string{"processed_events", "payments", "payment_ids", "orders", "order_transitions", "event_payloads", "fetches", "river_job", "sources"} {
		rows, err := l.st.Pool().Query(t.Context(), "SELECT row_to_json(x)::text FROM "+table+" x ORDER BY 1")
		require.NoError(t, err)
		for rows.Next() {
			var row string
			require.NoError(t, rows.Scan(&row))
			all.WriteString(table + " " + row + "\n")
		}
		require.NoError(t, rows.Err())
	}
	return all.String()
}

func TestReconcileFileJSON(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	l.fill(t)
	a := call(t, append(words("reconcile --json --from 2026-11-24 --until 2026-12-01 --file %sstripe-payout.csv", reports), "-c", l.config))
	require.Equal(t, exitFailed, a.code, a.stderr)
	type finding struct {
		Line                         int
		Reason, Kind, Type, ID, Ref  string
		Payment                      []string
		Theirs, Ours                 *int64
		Currency, Account, Reference string
		OurCurrency                  string `json:"our_currency"`
		Order                        string
	}
	var found []finding
	var last map[string]struct {
		Format    string
		Realms    []string
		Lines     int
		Explained []struct {
			Kind, Currency string
			Lines          int
			Minor          int64
		}
		Others []struct {
			Kind, Type string
			Minor      int64
		}
		Unexplained map[string]int
	}
	rows := bytes.Split(bytes.TrimSpace([]byte(a.stdout)), []byte("\n"))
	for i, row := range rows {
		if i == len(rows)-1 {
			require.NoError(t, json.Unmarshal(row, &last))
			continue
		}
		var f finding
		require.NoError(t, json.Unmarshal(row, &f), "%s", row)
		found = append(found, f)
	}
	minor := func(n int64) *int64 { return &n }
	require.Equal(t, []finding{
		{Line: 14, Reason: "unknown_type", Kind: "unknown", Type: "something_new", ID: "txn_9A12", Ref: "xx_1", Payment: []string{"pi_9A01", "ch_9A01"}, Theirs: minor(777), Currency: "EUR"},
		{Line: 15, Reason: "unknown_payment", Kind: "capture", Type: "charge", ID: "txn_9A13", Ref: "py_9A13", Payment: []string{"py_9A13"}, Theirs: minor(1200), Currency: "JPY"},
		{Reason: "not_in_file", Kind: "capture", Payment: found[2].Payment, Ours: minor(700), OurCurrency: "EUR", Account: "shop", Order: "ord_99"},
	}, found)
	require.Contains(t, found[2].Payment, "pi_9A99")
	sum := last["summary"]
	require.Equal(t, "stripe", sum.Format)
	require.Equal(t, []string{"shop/stripe:test", "shop/stripe:live"}, sum.Realms)
	require.Equal(t, 14, sum.Lines)
	require.Equal(t, map[string]int{"unknown_type": 1, "unknown_payment": 1, "not_in_file": 1}, sum.Unexplained)
	require.Len(t, sum.Others, 4)
}

// Everything is explained: it ends well.
func TestReconcileFileExplained(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	l.fill(t)
	file := write(t, "own.csv", "Zahlung;Betrag;Währung\n1AA00000AA000001A;50,00;EUR\n1AA00000AA000001A;-20,00;EUR\n")
	a := call(t, append(words("reconcile --decimal comma --columns payment=Zahlung,amount=Betrag --columns currency=Währung --gateway paypal --file %s", file), "-c", l.config))
	require.Equal(t, []any{exitOK, ""}, []any{a.code, a.stderr})
	require.Equal(t, `a file of one's own, 2 lines about 1 payment of paypal:test of account shop
WHAT                LINES  SUM
capture, explained  1      50.00 EUR
refund, explained   1      -20.00 EUR
Every line is explained.
`, a.stdout)
}

func TestReconcileFileCalls(t *testing.T) {
	t.Parallel()
	l := openLedgers(t)
	stripe := filepath.Join(reports, "stripe-payout.csv")
	own := write(t, "own.csv", "a,b\n1,2\n")
	for args, want := range map[string]string{
		"--from 2026-11-01":                                                                "paidonce: reconcile: --gateway, --columns, --currency, --from and --until belong to --file",
		"--since 24h --file " + own:                                                        "paidonce: reconcile: --since and --dry-run are about gateways' lists, not about --file",
		"--file /nowhere":                                                                  "no such file or directory",
		"--file " + own:                                                                    "the columns are of no report that is known; the first row is [\"a\" \"b\"]; known are Stripe:",
		"--file " + own + " --columns a=b":                                                 "--columns a=b: want FIELD=HEADER; the fields are payment (an id of the payment at the gateway",
		"--file " + own + " --columns payment=a":                                           "needs the column of amount",
		"--file " + own + " --columns payment=a,payment=b":                                 "--columns: payment needs one header",
		"--file " + own + " --columns payment=a,amount=c":                                  "there is no row with the columns a, c",
		"--file " + own + " --columns payment=a,amount=b":                                  "say whose payments",
		"--file " + own + " --columns payment=a,amount=b --gateway nosuch":                 `there is no gateway "nosuch"`,
		"--file " + own + " --columns payment=a,amount=b --gateway wompi":                  "no source of gateway wompi is configured",
		"--file " + own + " --columns payment=a,amount=b --gateway stripe --source paypal": "source paypal is of paypal, and",
		"--file " + stripe + " --gateway paypal":                                           "is a report of stripe, not of paypal",
		"--file " + stripe + " --source paypal":                                            "source paypal is of paypal, and",
		"--file " + stripe + " --account nosuch":                                           `account nosuch has no such source of gateway stripe`,
		"--file " + stripe + " --source nosuch":                                            `nosuch`,
		"--file " + stripe + " --currency zzz":                                             "--currency zzz: that is not a currency of ISO 4217",
		"--file " + stripe + " --from 2026-11-01":                                          "--from and --until belong together",
		"--file " + stripe + " --from 2026-11-02 --until 2026-11-02":                       "--from 2026-11-02 is not before --until 2026-11-02",
		"--file " + stripe + " --from soon --until 2026-11-02":                             "--from soon: want a time",
		"--file " + stripe + " --decimal dot":                                              `--decimal must be one of "point","comma" but got "dot"`,
	} {
		a := call(t, append(words("reconcile %s", args), "-c", l.config))
		require.Equal(t, exitUsage, a.code, "%s: %s", args, a.stderr)
		require.Contains(t, a.stderr, want, args)
		require.Empty(t, a.stdout, args)
	}
}
