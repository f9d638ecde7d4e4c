package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/order"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	defer done()
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	for _, ref := range []string{"ord_1", "ord_2"} {
		registered(t, st, ref, 5000)
		misread(t, st, gateway.SampleRequest{
			Type: "payment_intent.succeeded", ID: "evt_" + ref, Payment: "pi_" + ref, Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"},
		}, nil)
	}
	require.Regexp(t, `^4 events, 2 payments, 2 orders, 4 versions of 1 account audited as of [-0-9]+ [:0-9]+\.\nNo differences\.\n$`, s.look(t, "audit"))
	require.Contains(t, s.look(t, "audit --payloads"), "\n2 events read again.\nNo differences.\n")
	require.Regexp(t, `^2 events, 1 payment, 1 order, 2 versions of 1 account `, s.look(t, "audit --account shop --order ord_2 --payloads"))

	_, err = st.Pool().Exec(t.Context(), `UPDATE orders SET captured = 6000, kept = 6000 WHERE external_ref = 'ord_1'`)
	require.NoError(t, err)
	found := call(t, words("audit -c %s", s.config))
	require.Equal(t, exitFailed, found.code)
	require.Empty(t, found.stderr)
	shown := found.stdout
	require.Contains(t, shown, `order_fold: account shop, order ord_1: It is not what its payments and its registration say. `+
		`Expected {"captured":5000,"kept":5000}, found {"captured":6000,"kept":6000}.`+"\n  events: register:ord_1 of api, evt_ord_1 of stripe\n")
	require.Contains(t, shown, "\n2 differences: 1 order_fold, 1 version_last.\n")
	require.Contains(t, s.look(t, "audit --order ord_2"), "No differences.")

	lines := strings.Split(strings.TrimSpace(call(t, words("audit --order ord_1 --json -c %s", s.config)).stdout), "\n")
	require.Len(t, lines, 3, "a line each, then the summary")
	var d audit.Difference
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &d))
	require.Equal(t, audit.OrderFold, d.Kind)
	require.Equal(t, []any{"shop", "ord_1", `{"captured":5000,"kept":5000}`}, []any{d.Account, d.Order, d.Expected})
	var last struct{ Summary audit.Summary }
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &last))
	require.Equal(t, 2, last.Summary.Differences)
	require.Equal(t, map[audit.Kind]int{audit.OrderFold: 1, audit.VersionLast: 1}, last.Summary.Kinds)

	// Only the bytes know that facts were others.
	misread(t, st, gateway.SampleRequest{
		Type: "payment_intent.succeeded", ID: "evt_3", Payment: "pi_3", Reference: "ord_3", Amount: order.Amount{Minor: 5000, Currency: "EUR"},
	}, func(e *order.Event) { e.Facts[0].Amount = 500 })
	require.Contains(t, s.look(t, "audit --order ord_3"), "No differences.")
	read := call(t, words("audit --order ord_3 --payloads -c %s", s.config))
	require.Equal(t, exitFailed, read.code)
	require.Contains(t, read.stdout, "event_bytes: account shop, event evt_3 of source stripe: Its kept bytes say something else than what is stored")

	for args, want := range map[string]string{
		"--account nosuch": `there is no account "nosuch"`,
		"--nosuch":         "unknown flag --nosuch",
	} {
		a := call(t, words("audit %s -c %s", args, s.config))
		require.Equal(t, exitUsage, a.code, "%s: %s", args, a.stderr)
		require.Contains(t, a.stderr, want)
	}
	none := call(t, words("audit --order nosuch -c %s", s.config))
	require.Equal(t, exitFailed, none.code)
	require.Contains(t, none.stderr, `order "nosuch": not found`)
}

// The manual tells what every kind of difference means.
func TestManualOfAudits(t *testing.T) {
	t.Parallel()
	manual, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	for _, k := range audit.Kinds() {
		require.Contains(t, string(manual), "`"+string(k)+"`")
	}
}
