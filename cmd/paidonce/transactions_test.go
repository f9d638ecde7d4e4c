package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// ledgerOf is a store of the shop with an order that was paid by a payment of 5000 EUR.
func ledgerOf(t *testing.T, s *shop) (*store.Store, uuid.UUID) {
	t.Helper()
	e, _, _ := s.env()
	e.config = s.config
	st, done, err := e.openStore(t.Context())
	require.NoError(t, err)
	t.Cleanup(done)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	res, err := st.Apply(t.Context(), []store.Event{{
		Event: order.Event{
			ID: "evt_1", Type: "payment", At: time.Now(), Realm: "stripe:test", Payment: []string{"pi_1"}, Reference: "ord_1", Strength: order.StrengthPayment,
			Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}},
		},
		Account: "shop", Source: "stripe", Delivery: uuid.New(),
	}})
	require.NoError(t, err)
	return st, res[0].Order
}

// refund enters one of 1000 EUR, and calls it if answers are given.
func refund(t *testing.T, st *store.Store, id uuid.UUID, ref string, answers ...store.MoveAnswer) uuid.UUID {
	t.Helper()
	var made store.EnteredTransaction
	err := st.InTx(t.Context(), func(tx store.Tx) (err error) {
		made, err = st.CreateTransaction(t.Context(), tx, store.NewTransaction{
			Account: "shop", Order: id, Kind: order.MovementRefund, Ref: ref, Amount: 1000, Currency: "EUR", Realms: []string{"stripe:test"},
			Prepare: func(store.Origin, order.Movement) (store.Prepared, error) {
				return store.Prepared{Source: "stripe", Gateway: "stripe", Request: store.Request{Method: "POST", Path: "/v1/refunds", Body: []byte("TOP SECRET BODY")}}, nil
			},
		})
		return err
	})
	require.NoError(t, err)
	for _, a := range answers {
		c, err := st.ClaimMove(t.Context(), "shop", made.ID, time.Minute)
		require.NoError(t, err)
		require.NotNil(t, c)
		_, err = st.SettleMove(t.Context(), *c, a)
		require.NoError(t, err)
	}
	return made.ID
}

func TestTransactions(t *testing.T) {
	t.Parallel()
	s := openShop(t)
	st, id := ledgerOf(t, s)
	unsure := store.MoveAnswer{Status: store.TransactionUncertain, Stop: true, Code: "stored_failure", Detail: "it answered 500"}
	one := refund(t, st, id, "rf_1", unsure)
	two := refund(t, st, id, "rf_2")

	all := s.look(t, "transactions")
	require.Contains(t, all, one.String())
	require.Contains(t, all, two.String())
	require.Contains(t, all, "10.00 EUR")
	require.Contains(t, all, "stored_failure: it answered 500")
	require.Equal(t, all, s.look(t, "transactions list --order ord_1"))
	require.Equal(t, all, s.look(t, "transactions --account shop --order "+id.String()))
	require.NotContains(t, s.look(t, "transactions --status uncertain"), two.String())
	require.NotContains(t, s.look(t, "transactions --limit 1"), one.String())
	listed := s.look(t, "transactions --json")
	var docs []map[string]any
	require.NoError(t, json.Unmarshal([]byte(listed), &docs))
	require.Len(t, docs, 2)
	require.Equal(t, []any{"rf_2", "rf_1"}, []any{docs[0]["external_ref"], docs[1]["external_ref"]})
	require.NotContains(t, listed, "SECRET")
	for args, code := range map[string]int{
		"transactions --account nosuch": exitUsage, "transactions --order nosuch": exitFailed,
		"transactions resolve " + one.String() + " --outcome failed --note seen --account nosuch": exitUsage,
	} {
		a := call(t, words("%s -c %s", args, s.config))
		require.Equal(t, code, a.code, args)
		require.Contains(t, a.stderr, `"nosuch"`, args)
	}
	require.Contains(t, s.look(t, "explain ord_1"), "paidonce transactions resolve "+one.String())

	// What could move money twice is asked about first.
	resolve := func(id uuid.UUID, args string) answer {
		return call(t, append(words("transactions resolve %s -c %s --note", id, s.config), append([]string{"not in the dashboard"}, strings.Fields(args)...)...))
	}
	a := resolve(one, "--outcome not_done")
	require.Equal(t, exitOK, a.code)
	require.Contains(t, a.stdout, "stripe would be called anew, under another key. If it was done after all, money moves twice.\nDo it with --yes.\n")
	require.Contains(t, resolve(one, "--outcome not_done --json").stdout, `"done": false`)
	require.Contains(t, s.look(t, "transactions --status uncertain"), one.String())

	a = resolve(one, "--outcome not_done --yes")
	require.Equal(t, exitOK, a.code, a.stderr)
	require.Equal(t, "Refund of 10.00 EUR of pi_1 (rf_1) is begun anew (a person says: not in the dashboard): nothing was done before, so stripe is called for the 2nd time over, under another key.\n", a.stdout)
	a = resolve(one, "--outcome failed")
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stderr, "there is nothing to say about it: Refund of 10.00 EUR")
	a = resolve(uuid.New(), "--outcome failed")
	require.Equal(t, exitFailed, a.code)
	require.Contains(t, a.stderr, "there is no transaction")

	// Settling moves nothing, and asks nothing.
	c, err := st.ClaimMove(t.Context(), "shop", one, time.Minute)
	require.NoError(t, err)
	_, err = st.SettleMove(t.Context(), *c, unsure)
	require.NoError(t, err)
	a = resolve(one, "--outcome succeeded --gateway-ref re_1 --json")
	require.Equal(t, exitOK, a.code, a.stderr)
	var doc map[string]any
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &doc))
	require.Equal(t, []any{"succeeded", "re_1", "person", 2.0}, []any{doc["status"], doc["gateway_ref"], doc["code"], doc["epoch"]})
	require.Contains(t, s.look(t, "transactions --status succeeded"), "re_1: person: not in the dashboard")
}
