package reevaluate_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// world is a database, and the configuration of a source of every gateway.
type world struct {
	st  *store.Store
	cfg *config.Config
	n   int
}

var at = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func openWorld(t *testing.T) *world {
	t.Helper()
	st, err := store.New(storetest.Open(t), store.Options{})
	require.NoError(t, err)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	w := &world{st: st, cfg: &config.Config{Accounts: map[string]config.Account{"shop": {Sources: map[string]gateway.Source{}}}}}
	for _, g := range gateway.All() {
		s := g.Example("replay")
		s.ID, s.Account = g.Name, "shop"
		w.cfg.Accounts["shop"].Sources[g.Name] = s
	}
	return w
}

func (w *world) source(name string) gateway.Source { return w.cfg.Accounts["shop"].Sources[name] }

// deliver enters what a body says, as the receiver and the ingester would: signed, mapped, with its bytes.
func (w *world) deliver(t require.TestingT, g *gateway.Gateway, body []byte) bool {
	s := w.source(g.Name)
	d, err := g.Deliver(s, body, "", at)
	if err != nil {
		return false // a payload that cannot be signed offline
	}
	events, err := g.Events(s, d)
	if err != nil {
		return false // one that is refused
	}
	w.enter(t, s, events, d.Body, g.Keep(d.Header))
	return len(events) > 0
}

// enter enters the events of one delivery.
func (w *world) enter(t require.TestingT, s gateway.Source, events []order.Event, body []byte, header map[string]string) {
	delivery := uuid.Must(uuid.NewV7())
	var all []store.Event
	for _, ev := range events {
		all = append(all, store.Event{
			Event: ev, Account: s.Account, Source: s.ID, Delivery: delivery, Payload: body, Header: header, MappingVersion: gateway.MappingVersion,
			OnUnknown: store.OnUnknown(s.OnUnknownOrder), Paused: s.Paused,
		})
	}
	_, err := w.st.Apply(context.Background(), all)
	require.NoError(t, err)
}

func (w *world) register(t require.TestingT, ref string, minor int64) {
	_, err := w.st.Apply(context.Background(), []store.Event{{Account: "shop", Source: store.APISource, Event: order.Event{
		ID: "register:" + ref, Type: "order.registered", At: at.Add(-time.Hour), Reference: ref,
		Command: &order.Command{Register: &order.Amount{Minor: minor, Currency: "EUR"}},
	}}})
	require.NoError(t, err)
}

// sample delivers an event of a gateway that is made here.
func (w *world) sample(t require.TestingT, g *gateway.Gateway, req gateway.SampleRequest) {
	req.Source = w.source(g.Name)
	if req.At.IsZero() {
		req.At = at
	}
	body, err := g.Sample(req)
	require.NoError(t, err)
	require.True(t, w.deliver(t, g, body))
}

// answered enters what a gateway's API says of an object, as the fetcher would.
func (w *world) answered(t require.TestingT, g *gateway.Gateway, req gateway.SampleRequest) {
	req.Source = w.source(g.Name)
	object, body, err := g.Fetch.Sample(req)
	require.NoError(t, err)
	events, err := g.Fetched(req.Source, object, gateway.Answer{Body: body, Started: at})
	require.NoError(t, err)
	w.enter(t, req.Source, events, body, map[string]string{
		gateway.HeaderObject: object.String(), gateway.HeaderStarted: at.Format(time.RFC3339Nano),
	})
}

// fill has the database hold what there can be: every payload of every gateway, what their APIs answer, commands, incomes, recurrences,
// effects in every state, transactions with the answers to them, fetches.
func (w *world) fill(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4", "ord_5"} {
		w.register(t, ref, 5000)
	}
	for _, g := range gateway.All() {
		files, err := filepath.Glob(filepath.Join("../../testdata/payloads", g.Name, "*"))
		require.NoError(t, err)
		told := false
		for _, file := range files {
			if strings.HasPrefix(filepath.Base(file), "api.") {
				continue
			}
			body, err := os.ReadFile(file)
			require.NoError(t, err)
			told = w.deliver(t, g, body) || told
		}
		if g.Fetch != nil && g.Fetch.Sample != nil {
			for _, typ := range g.Types(w.source(g.Name)) {
				req := gateway.SampleRequest{Type: typ.Name, Source: w.source(g.Name), Reference: "ord_of_" + g.Name, At: at}
				if _, _, err := g.Fetch.Sample(req); err == nil { // not every type is of an object that can be asked for
					w.answered(t, g, req)
					told = true
				}
			}
		}
		require.True(t, told, "nothing of %s is here", g.Name)
	}
	paid := func(p, ref string) gateway.SampleRequest {
		return gateway.SampleRequest{Type: "payment_intent.succeeded", ID: "evt_" + p, Payment: p, Reference: ref}
	}
	w.sample(t, gateway.Stripe, paid("pi_1", "ord_1"))
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "charge.succeeded", ID: "evt_c", Payment: "pi_1", Reference: "ord_1"}) // no_change
	w.sample(t, gateway.Stripe, paid("pi_2", "ord_2"))
	w.sample(t, gateway.Stripe, paid("pi_3", "ord_3"))
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.succeeded", ID: "evt_pi_3", Payment: "pi_3", Reference: "ord_3", Amount: order.Amount{Minor: 4000, Currency: "EUR"}}) // id_reused
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "payment_intent.amount_capturable_updated", ID: "evt_a", Payment: "pi_4", Reference: "ord_4"})

	// Effects: done, dead, claimed, open.
	ids := map[string]uuid.UUID{}
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4", "ord_5"} {
		found, err := w.st.FindOrders(ctx, "shop", ref)
		require.NoError(t, err)
		ids[ref] = found[0].ID
	}
	claim := func(ref string) store.Claim {
		l, err := w.st.Look(ctx, "shop", ids[ref], time.Minute)
		require.NoError(t, err)
		require.NotNil(t, l.Claim)
		return *l.Claim
	}
	_, err := w.st.Settle(ctx, claim("ord_1"), store.Answer{Done: true}, 0)
	require.NoError(t, err)
	_, err = w.st.Settle(ctx, claim("ord_2"), store.Answer{Dead: true, Err: "no"}, 0)
	require.NoError(t, err)
	claim("ord_3")
	w.sample(t, gateway.Stripe, gateway.SampleRequest{Type: "refund.created", ID: "evt_r", Payment: "pi_1", Ref: "re_1", Amount: order.Amount{Minor: 5000, Currency: "EUR"}})

	// Calls that move money: one answered, with what the gateway said of it; one sent; one that waits.
	realm := gateway.Stripe.Realm(w.source("stripe"))
	move := func(ref string, kind order.MovementKind, minor int64, name string) store.Transaction {
		var made store.EnteredTransaction
		require.NoError(t, w.st.InTx(ctx, func(tx store.Tx) (err error) {
			made, err = w.st.CreateTransaction(ctx, tx, store.NewTransaction{
				Account: "shop", Order: ids[ref], Kind: kind, Amount: minor, Ref: name, Realms: []string{realm},
				Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
					return store.Prepared{Source: "stripe", Gateway: "stripe", Request: store.Request{Method: "POST", Path: "/", Header: map[string]string{}, Body: []byte(m.ID)}}, nil
				},
			})
			return err
		}))
		return made.Transaction
	}
	first := move("ord_2", order.MovementRefund, 1000, "refund-1")
	move("ord_2", order.MovementRefund, 500, "refund-2")
	c, err := w.st.ClaimMove(ctx, "shop", first.ID, time.Minute)
	require.NoError(t, err)
	reply := gateway.Reply{Status: 200, Started: at, Body: []byte(fmt.Sprintf(
		`{"id":"re_ours","object":"refund","amount":1000,"currency":"eur","payment_intent":"pi_2","charge":null,"status":"succeeded","metadata":{"paidonce_transaction":%q}}`, first.Movement.ID))}
	verdict, err := gateway.Stripe.Judge(w.source("stripe"), first.Movement, reply, false)
	require.NoError(t, err)
	require.Equal(t, gateway.Done, verdict.Ruling, verdict.Detail)
	header, err := gateway.KeepReply(first.Movement, reply, false)
	require.NoError(t, err)
	answer := store.MoveAnswer{Status: store.TransactionSucceeded, GatewayRef: verdict.Ref}
	for _, ev := range verdict.Events {
		answer.Events = append(answer.Events, store.Event{
			Event: ev, Account: "shop", Source: "stripe", Delivery: uuid.Must(uuid.NewV7()), Payload: reply.Body, Header: header, MappingVersion: gateway.MappingVersion,
		})
	}
	require.NotEmpty(t, answer.Events)
	_, err = w.st.SettleMove(ctx, *c, answer)
	require.NoError(t, err)
	sent := move("ord_3", order.MovementRefund, 700, "refund-3")
	_, err = w.st.ClaimMove(ctx, "shop", sent.ID, time.Minute)
	require.NoError(t, err)

	// What the merchant said, money that no gateway saw, and what comes back.
	require.NoError(t, w.st.InTx(ctx, func(tx store.Tx) error {
		_, err := w.st.CreateIncome(ctx, tx, store.NewIncome{Account: "shop", OrderRef: "ord_5", Kind: order.IncomeKinds()[0], Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Ref: "inc_1", Payload: []byte(`{}`)})
		return err
	}))
	require.NoError(t, w.st.InTx(ctx, func(tx store.Tx) error {
		_, _, err := w.st.CreateRecurrence(ctx, tx, store.NewRecurrence{
			Account: "shop", Ref: "sub_1", Amount: order.Amount{Minor: 900, Currency: "EUR"}, Interval: period.Month, Every: 1, TimeZone: "UTC", StartsOn: period.Date{Year: 2026, Month: 10, Day: 1},
		})
		return err
	}))
	_, err = w.st.Announce(ctx, []store.Announcement{{Account: "shop", Source: "mollie", Gateway: "mollie", Object: "payment/tr_waits"}})
	require.NoError(t, err)
}

// tables is all that the database holds, table by table.
func (w *world) tables(t require.TestingT) string {
	rows, err := w.st.Pool().Query(context.Background(), `
		SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT c.relispartition ORDER BY 1`)
	require.NoError(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.True(t, slices.Contains(names, "processed_events") && slices.Contains(names, "river_job") && slices.Contains(names, "transactions"))
	var all strings.Builder
	for _, name := range names {
		rows, err := w.st.Pool().Query(context.Background(), fmt.Sprintf(`SELECT row_to_json(x)::text FROM %q x ORDER BY 1`, name))
		require.NoError(t, err)
		texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		fmt.Fprintf(&all, "%s\n  %s\n", name, strings.Join(texts, "\n  "))
	}
	return all.String()
}

func (w *world) count(t require.TestingT, of string) (n int) {
	require.NoError(t, w.st.Pool().QueryRow(context.Background(), "SELECT count(*) FROM "+of).Scan(&n))
	return n
}

func (w *world) exec(t require.TestingT, sql string, args ...any) {
	_, err := w.st.Pool().Exec(context.Background(), sql, args...)
	require.NoError(t, err)
}

// replay replays, and wants no error.
func (w *world) replay(t require.TestingT, r reevaluate.Replay) reevaluate.Replayed {
	out, err := reevaluate.Reader{Config: w.cfg}.Replay(context.Background(), w.st, r)
	require.NoError(t, err)
	return out
}
