package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// misread enters an event of stripe whose kept bytes are true, and whose facts an older mapping got wrong.
func misread(t *testing.T, st *store.Store, req gateway.SampleRequest, wrong func(*order.Event)) {
	t.Helper()
	req.Source = gateway.Source{ID: "stripe", Gateway: "stripe", Mode: "test"}
	req.At = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	body, err := gateway.Stripe.Sample(req)
	require.NoError(t, err)
	events, err := gateway.Stripe.Events(req.Source, gateway.Delivery{Body: body})
	require.NoError(t, err)
	if wrong != nil {
		wrong(&events[0])
	}
	_, err = st.Apply(t.Context(), []store.Event{{
		Account: "shop", Source: "stripe", Event: events[0], Payload: body, MappingVersion: 1,
	}})
	require.NoError(t, err)
}

func registered(t *testing.T, st *store.Store, ref string, minor int64) {
	t.Helper()
	_, err := st.Apply(t.Context(), []store.Event{{Account: "shop", Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", At: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), Reference: ref,
		Command: &order.Command{Register: &order.Amount{Minor: minor, Currency: "EUR"}},
	}}})
	require.NoError(t, err)
}

func TestReevaluate(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	defer done()
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	for _, ref := range []string{"ord_1", "ord_2", "ord_3"} {
		registered(t, st, ref, 5000)
	}
	paid := func(id, p, ref string) gateway.SampleRequest {
		return gateway.SampleRequest{Type: "payment_intent.succeeded", ID: id, Payment: p, Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}}
	}
	misread(t, st, paid("evt_1", "pi_1", "ord_1"), func(ev *order.Event) { ev.Facts[0].Amount, ev.Own.Minor = 500, 500 })
	misread(t, st, paid("evt_2", "pi_2", "ord_2"), func(ev *order.Event) { ev.Facts, ev.Own, ev.Broken = nil, nil, "the amount is no integer" })
	misread(t, st, paid("evt_3", "pi_3", "ord_3"), func(ev *order.Event) { ev.Reference = "ord_1" })
	misread(t, st, paid("evt_4", "pi_4", "ord_4"), nil)
	_, err = st.Pool().Exec(t.Context(), `UPDATE event_payloads SET body = 'x' WHERE event_id = 'evt_4'`)
	require.NoError(t, err)

	dry := call(t, words("events reevaluate --where account=shop,since=240h -c %s", s.config))
	require.Equal(t, exitFailed, dry.code, "one could not be read")
	require.Empty(t, dry.stderr)
	golden(t, "reevaluate.golden", dry.stdout)
	manual, err := os.ReadFile("../../docs/OPERATIONS.md")
	require.NoError(t, err)
	require.Contains(t, string(manual), "since=240h\n    "+strings.ReplaceAll(strings.TrimSuffix(dry.stdout, "\n"), "\n", "\n    ")+"\n", "the manual shows it")
	require.Contains(t, s.look(t, "events"), "unreadable", "nothing was written")

	var out struct {
		Applied bool
		Read    int
		Orders  []struct {
			Ref   string `json:"external_ref"`
			After struct{ State, Owed string }
		}
		Events  []struct{ After struct{ Outcome string } }
		Skipped []struct{ Code string }
	}
	a := s.look(t, "events reevaluate --where event=evt_2 --apply --json")
	require.NoError(t, json.Unmarshal([]byte(a), &out))
	require.True(t, out.Applied)
	require.Equal(t, 1, out.Read)
	require.Equal(t, "ord_2", out.Orders[0].Ref)
	require.Equal(t, "paid", out.Orders[0].After.State)
	require.Equal(t, "fulfil", out.Orders[0].After.Owed)
	require.Equal(t, "applied", out.Events[0].After.Outcome)
	require.Empty(t, out.Skipped)

	require.Contains(t, s.look(t, "events reevaluate --where order=ord_1 --apply"), "2 events read again: 2 of another meaning today, 2 orders moved.\n")
	require.Contains(t, s.look(t, "events reevaluate --where order=ord_3"), "1 event read again: 0 of another meaning today, 0 orders would move.\n")
	for _, ref := range []string{"ord_1", "ord_2", "ord_3"} {
		require.Contains(t, s.look(t, "explain "+ref), "is paid: 50.00 EUR of 50.00 EUR is kept.")
	}
	require.Contains(t, s.look(t, "explain ord_3"), "pending → paid, because event evt_3 was read again and means something else today.")
	require.Contains(t, s.look(t, "events reevaluate --where gateway=stripe,outcome=applied --where mapping_version<2"), "0 of another meaning today")
	require.Contains(t, s.look(t, "events reevaluate --where order=ord_4,type=nosuch"), "0 events read again")

	require.Regexp(t, `until [-0-9]+ [:0-9]+ \(mapping 1\): quarantined: the amount is no integer\n`, s.look(t, "events show evt_2"))
	require.Contains(t, s.look(t, "explain evt_2"), "and meant something else than before, which made v2.")

	for args, want := range map[string]string{
		"":                          "events reevaluate: say which events with --where: ",
		"--where source=nosuch":     `there is no source "nosuch"`,
		"--where account=nosuch":    `there is no account "nosuch"`,
		"--where gateway=adyen":     "no source of gateway adyen is configured",
		"--where gateway=nosuch":    `there is no gateway "nosuch"`,
		"--where type=x --limit=-1": "--limit -1: want 0 or more",
		"--where type=x,type=y":     "type stands there twice",
		"--where source=stripe,gateway=stripe,account=x": `there is no account "x"`,
	} {
		a := call(t, words("events reevaluate %s -c %s", args, s.config))
		require.Equal(t, exitUsage, a.code, "%s: %s", args, a.stderr)
		require.Contains(t, a.stderr, want, args)
	}
	failed := call(t, words("events reevaluate --where order=nosuch -c %s", s.config))
	require.Equal(t, exitFailed, failed.code)
	require.Contains(t, failed.stderr, `"nosuch"`)
}
