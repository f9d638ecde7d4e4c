package explain_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// What the store really writes and reads is explained as the cases above are.
func TestFromTheDatabase(t *testing.T) {
	t.Parallel()
	st, err := store.New(storetest.Open(t), store.Options{})
	require.NoError(t, err)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	apply := func(source, id string, seconds int, e order.Event) store.Result {
		e.ID, e.At, e.Reference, e.Strength = id, at(seconds), "ord_1", order.StrengthPayment
		if source == "stripe" {
			e.Type, e.Realm, e.Payment = "payment_intent.succeeded", "stripe:live", []string{"pi_1"}
		}
		res, err := st.Apply(t.Context(), []store.Event{{Account: "shop", Source: source, Event: e, Delivery: uuid.New()}})
		require.NoError(t, err)
		return res[0]
	}
	first := apply("stripe", "evt_1", 1, order.Event{Facts: []order.Fact{captured(5000)}})
	require.Equal(t, store.Waiting, first.Outcome)
	total := order.Amount{Minor: 5000, Currency: "EUR"}
	apply(store.APISource, "register:ord_1", 2, order.Event{Type: "order.registered", Command: &order.Command{Register: &total}})
	apply("stripe", "evt_2", 3, order.Event{Facts: []order.Fact{captured(5000)}})
	usd := captured(700)
	usd.Currency = "USD"
	apply("stripe", "evt_3", 4, order.Event{Facts: []order.Fact{usd}})

	tl, err := st.Timeline(t.Context(), "shop", first.Order)
	require.NoError(t, err)
	r := explain.Order(tl)
	require.Equal(t, "Order ord_1 is paid: 50.00 EUR of 50.00 EUR is kept.", r.Answer)
	require.Equal(t, []string{
		"Payment pi_1: captured 50.00 EUR in all; captured 7.00 USD in all.",
		"Event evt_3, payment_intent.succeeded (captured 7.00 USD in all), was flagged, not counted: the order is in EUR.",
		"Effect fulfil of version 3 is owed and was not called yet.",
	}, r.Why)
	require.Empty(t, r.Todo)
	lines := map[string]string{}
	for _, l := range r.Lines {
		if l.Kind == "event" {
			lines[l.ID] = l.Text
		}
	}
	require.Equal(t, map[string]string{
		"evt_1": "Event evt_1, payment_intent.succeeded (captured 50.00 EUR in all), waited for order ord_1 to be registered, and counts since then (v3, by register:ord_1).",
		"evt_2": "Event evt_2, payment_intent.succeeded (captured 50.00 EUR in all), changed nothing: captured 50.00 EUR in all is in the ledger since evt_1.",
		"evt_3": "Event evt_3, payment_intent.succeeded (captured 7.00 USD in all), was flagged, not counted: the order is in EUR.",

		"register:ord_1": "Event register:ord_1, order.registered (total 50.00 EUR), was applied: order v2 → v3, partially paid → paid.",
	}, lines)

	events, err := st.FindEvents(t.Context(), "shop", "", "evt_1")
	require.NoError(t, err)
	text := explain.Event(events[0], &tl).Text()
	require.True(t, strings.HasPrefix(text, lines["evt_1"]+"\n"), text)
}

// Money that no gateway has seen, in the words of somebody who was there.
func TestIncomesFromTheDatabase(t *testing.T) {
	t.Parallel()
	st, err := store.New(storetest.Open(t), store.Options{})
	require.NoError(t, err)
	total := order.Amount{Minor: 8000, Currency: "EUR"}
	res, err := st.Apply(t.Context(), []store.Event{{Account: "shop", Source: store.APISource, Event: order.Event{
		ID: "register:ord_1", Type: "order.registered", Reference: "ord_1", Command: &order.Command{Register: &total},
	}}})
	require.NoError(t, err)
	enter := func(n store.NewIncome) (in store.EnteredIncome) {
		n.Account, n.OrderRef, n.Amount.Currency = "shop", "ord_1", "EUR"
		require.NoError(t, st.InTx(t.Context(), func(tx store.Tx) (err error) {
			in, err = st.CreateIncome(t.Context(), tx, n)
			return err
		}))
		return in
	}
	cash := enter(store.NewIncome{Kind: order.IncomeCash, Amount: order.Amount{Minor: 5000}})
	dollars := enter(store.NewIncome{Kind: order.IncomeOther, Amount: order.Amount{Minor: 3000}, Source: &order.Amount{Minor: 3500, Currency: "USD"}, Ref: "inc_2"})
	require.NoError(t, st.InTx(t.Context(), func(tx store.Tx) error {
		_, _, err := st.VoidIncome(t.Context(), tx, "shop", cash.ID)
		return err
	}))

	tl, err := st.Timeline(t.Context(), "shop", res[0].Order)
	require.NoError(t, err)
	r := explain.Order(tl)
	require.Equal(t, "Order ord_1 is not paid, it is partially paid: only 30.00 EUR of 80.00 EUR is kept.", r.Answer)
	require.ElementsMatch(t, []string{
		"Income " + cash.ID.String() + ": 50.00 EUR in cash, received outside of gateways, and taken back: it does not count any more.",
		"Income " + dollars.ID.String() + ": 30.00 EUR, received outside of gateways as 35.00 USD.",
		"Flag underpaid: 30.00 EUR was captured, less than the total of 80.00 EUR.",
	}, r.Why)
	var lines []string
	for _, l := range r.Lines {
		if l.Kind == "event" {
			lines = append(lines, strings.ReplaceAll(l.Text, cash.ID.String(), "(cash)"))
		}
	}
	require.Equal(t, []string{
		"Event register:ord_1, order.registered (total 80.00 EUR), was applied: it created the order (v1, pending).",
		"Event income:(cash), income.received (50.00 EUR in cash, received outside of gateways), was applied: order v1 → v2, pending → partially paid.",
		"Event income:ref:inc_2, income.received (30.00 EUR, received outside of gateways as 35.00 USD), was applied: order v2 → v3, partially paid → paid.",
		"Event income_voided:(cash), income.voided (50.00 EUR received outside of gateways, taken back), was applied: order v3 → v4, paid → partially paid.",
	}, lines)
}
