package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// reconcileSources are the gateways whose lists are read, as they are configured.
var reconcileSources = map[string]string{
	"paypal": "client_id: id_1, client_secret: secret_1, webhook_id: WH-1",
	"stripe": "access_token: rk_1, secrets: [" + stripeSecret + "]",
}

// desk is a configured source at a bank, whose webhooks all get lost.
type desk struct {
	*bank.Bank
	clock  atomic.Pointer[time.Time]
	config string
	store  *store.Store
}

func openDesk(t *testing.T, name string) *desk {
	t.Helper()
	d := &desk{}
	d.at(time.Now())
	var err error
	d.Bank, err = bank.Start(bank.Options{Now: func() time.Time { return *d.clock.Load() }, Odds: bank.Odds{}})
	require.NoError(t, err)
	t.Cleanup(d.Bank.Close)
	src, err := d.Bank.Source(gateway.Source{
		ID: "pay", Account: "shop", Gateway: name, Mode: gateway.Test, AccessToken: "rk_1", ClientID: "id_1", ClientSecret: "secret_1", WebhookID: "WH-1",
	})
	require.NoError(t, err)
	d.config = write(t, "paidonce.yaml", fmt.Sprintf(`
database_url: %q
accounts:
  shop:
    sources:
      pay: {gateway: %s, mode: test, api_url: %q, api_allow_private: true, %s}
      adyen: {gateway: adyen, mode: test, hmac_keys: [%s]}
      wrong: {gateway: %[2]s, mode: live, api_url: %[3]q, api_allow_private: true, %[6]s}
`, storetest.OpenURL(t), name, src.APIURL, reconcileSources[name], strings.Repeat("ab", 32),
		strings.NewReplacer("rk_1", "rk_2", "secret_1", "secret_2").Replace(reconcileSources[name])))
	e := &env{config: d.config, getenv: func(string) string { return "" }}
	var done func()
	d.store, done, err = e.openStore(t.Context())
	require.NoError(t, err)
	t.Cleanup(done)
	require.NoError(t, d.store.EnsureAccounts(t.Context(), []string{"shop"}))
	return d
}

func (d *desk) at(now time.Time) { d.clock.Store(&now) }

// pays is a shopper who pays for an order that is registered.
func (d *desk) pays(t *testing.T, ref string, ago time.Duration) {
	t.Helper()
	registered(t, d.store, ref, 5000)
	d.at(time.Now().Add(-ago))
	_, err := d.Open(bank.Opening{Source: "pay", Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: true})
	require.NoError(t, err)
	d.at(time.Now())
}

func (d *desk) call(t *testing.T, args string) answer {
	t.Helper()
	var stdout, stderr bytes.Buffer
	e := &env{
		getenv: func(string) string { return "" }, stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr,
		now: time.Now, // the database's and the bank's is the real one
	}
	code := e.run(t.Context(), words("%s -c %s", args, d.config))
	return answer{code, stdout.String(), stderr.String()}
}

// What the webhooks of a gateway lost, its list has: against a double of its API, by hand.
func TestReconcile(t *testing.T) {
	t.Parallel()
	for name := range reconcileSources {
		if g, _ := gateway.Lookup(name); g.Listing == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := openDesk(t, name)
			for i := range 12 {
				d.pays(t, fmt.Sprintf("ord_%d", i), 20*time.Minute)
			}
			since := time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)

			dry := d.call(t, "reconcile --source pay --dry-run --since "+since)
			require.Equal(t, exitOK, dry.code, dry.stderr)
			require.Contains(t, dry.stdout, "SOURCE  GATEWAY")
			require.Regexp(t, `pay: event \S+, \S+: new, 20m\d?\d?s? late`, dry.stdout)
			require.Contains(t, dry.stdout, "This was a dry run: nothing was written")
			require.Contains(t, d.call(t, "orders --json").stdout, `"state": "pending"`)

			var out []reconciled
			a := d.call(t, "reconcile --source pay --json --since "+since)
			require.Equal(t, exitOK, a.code, a.stderr)
			require.NoError(t, json.Unmarshal([]byte(a.stdout), &out))
			require.Len(t, out, 1)
			run := out[0].Run
			require.Equal(t, store.ReconcileDone, run.Result, run.Error)
			require.GreaterOrEqual(t, run.Healed, 12)
			require.GreaterOrEqual(t, run.Moved, 12)
			require.InDelta(t, 1200, run.LateP50, 60)
			orders := d.call(t, "orders --json").stdout
			require.Equal(t, 12, strings.Count(orders, `"state": "paid"`), orders)
			require.NotContains(t, orders, "id_reused")

			again := d.call(t, "reconcile --source pay")
			require.Equal(t, exitOK, again.code, again.stdout)
			require.Regexp(t, `(?m)^pay +`+name+` +done `, again.stdout)
			require.NotContains(t, again.stdout, "pay: event")

			// The others: one whose credentials are wrong, and one that cannot be asked at all.
			all := d.call(t, "reconcile")
			require.Equal(t, exitFailed, all.code)
			require.Contains(t, all.stdout, "wrong: ask "+name+": it answered 401 Unauthorized")
			require.Contains(t, all.stdout, "adyen: Adyen has no list of what happened that could be read")
			require.Regexp(t, `(?m)^adyen +adyen +done `, all.stdout)
		})
	}
}

func TestReconcileBesideAnother(t *testing.T) {
	t.Parallel()
	d := openDesk(t, "paypal")
	_, err := d.store.ClaimReconcile(t.Context(), store.ReconcileStart{
		ReconcileKey: store.ReconcileKey{Account: "shop", Source: "pay", Gateway: "paypal"}, Cause: store.ReconcileBySchedule, Lease: time.Minute,
	})
	require.NoError(t, err)
	a := d.call(t, "reconcile --source pay")
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stdout, "not done")
	require.Contains(t, a.stdout, "pay: another run is at work on it; if that was killed, its claim ends at ")

	for args, want := range map[string]string{
		"--source nosuch":  `there is no source "nosuch"`,
		"--account nosuch": `there is no account "nosuch"`,
		"--since soon":     "--since soon: want a time such as",
		"--since=-1h":      "--since -1h: that is still to come",
	} {
		a := d.call(t, "reconcile "+args)
		require.Equal(t, exitUsage, a.code, args)
		require.Contains(t, a.stderr, want)
	}
}
