package audit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

func open(t *testing.T) (*store.Store, *pgxpool.Pool) {
	t.Helper()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	return s, pool
}

var day = time.Date(2026, 9, 21, 8, 0, 0, 0, time.UTC)

// shop is an account whose history is made by what a running program does: webhooks of several gateways, commands, calls to the
// merchant, incomes, recurrences, transactions.
type shop struct {
	t       require.TestingT
	ctx     context.Context
	s       *store.Store
	account string
	bytes   map[string]store.Event // what the payloads of webhooks say today, by payload
}

func newShop(t require.TestingT, ctx context.Context, s *store.Store, account string) *shop {
	return &shop{t: t, ctx: ctx, s: s, account: account, bytes: map[string]store.Event{}}
}

func captured(minor int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Amount: minor, Currency: "EUR"}
}

func item(kind order.Kind, ref string, s order.Status, minor int64) order.Fact {
	return order.Fact{Kind: kind, Ref: ref, Status: s, Amount: minor, Currency: "EUR"}
}

// hook is a webhook about a payment, the payment's own event for order ref; an empty ref names none.
func (w *shop) hook(id, payment, ref string, facts ...order.Fact) store.Event {
	e := store.Event{Account: w.account, Source: "stripe", Delivery: uuid.New(), MappingVersion: 1, Event: order.Event{
		ID: id, Type: "payment_intent.succeeded", At: day, Realm: "stripe:live", Payment: strings.Fields(payment), Reference: ref, Facts: facts,
	}}
	if ref != "" {
		e.Strength = order.StrengthPayment
	}
	return e
}

// deliver takes webhooks in, in one transaction, with bytes that can be read again.
func (w *shop) deliver(events ...store.Event) {
	for i := range events {
		events[i].Payload = []byte(uuid.NewString())
		w.bytes[string(events[i].Payload)] = events[i]
	}
	_, err := w.s.Apply(w.ctx, events)
	require.NoError(w.t, err)
}

// read is what bytes say today.
func (w *shop) read(d store.StoredDelivery) ([]store.Event, error) {
	e, ok := w.bytes[string(d.Body)]
	if !ok {
		return nil, errors.New("nobody can read this")
	}
	return []store.Event{e}, nil
}

// say carries a command out; an empty ref is about none. It reports false if it was refused.
func (w *shop) say(id, ref string, c order.Command, change ...func(*store.Event)) bool {
	err := w.s.InTx(w.ctx, func(tx store.Tx) error {
		now, err := w.s.Clock(w.ctx, tx)
		if err != nil {
			return err
		}
		e := store.Event{Account: w.account, Event: order.Event{ID: id, Type: "order.command", At: now, Reference: ref, Strength: order.StrengthPerson, Command: &c}}
		var cond store.Condition
		for _, f := range change {
			f(&e)
		}
		if c.Link && ref == "" {
			e.Strength = 0
		}
		_, err = w.s.Command(w.ctx, tx, e, cond)
		return err
	})
	var no *store.Refusal
	if errors.As(err, &no) || errors.Is(err, store.ErrNotFound) {
		return false
	}
	require.NoError(w.t, err)
	return true
}

// about makes a command one about a payment.
func about(payment string, facts ...order.Fact) func(*store.Event) {
	return func(e *store.Event) { e.Realm, e.Payment, e.Facts = "stripe:live", []string{payment}, facts }
}

func (w *shop) register(ref string, minor int64, change ...func(*order.Command)) {
	c := order.Command{Register: &order.Amount{Minor: minor, Currency: "EUR"}}
	for _, f := range change {
		f(&c)
	}
	require.True(w.t, w.say(store.RegisterID(ref), ref, c))
}

func (w *shop) orderID(ref string) (id uuid.UUID) {
	require.NoError(w.t, w.s.Pool().QueryRow(w.ctx, `SELECT id FROM orders WHERE account_id = $1 AND external_ref = $2`, w.account, ref).Scan(&id))
	return id
}

// tell calls the merchant about an order, with these answers one after another; after the last one a claim stays as it is.
func (w *shop) tell(ref string, answers ...store.Answer) {
	l, err := w.s.Look(w.ctx, w.account, w.orderID(ref), time.Minute)
	require.NoError(w.t, err)
	c := l.Claim
	for _, a := range answers {
		require.NotNil(w.t, c, "order %s owes nothing", ref)
		out, err := w.s.Settle(w.ctx, *c, a, time.Minute)
		require.NoError(w.t, err)
		c = out.Next
	}
}

var (
	done  = store.Answer{Done: true}
	later = store.Answer{Wait: time.Hour, Err: "503"}
	dead  = store.Answer{Dead: true, Err: "410"}
)

// history is one of everything.
func (w *shop) history(t *testing.T) {
	t.Helper()
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Microsecond)
	w.register("ord_paid", 5000, func(c *order.Command) {
		c.Details = json.RawMessage(`{"items":[{"sku":"A","n":1.50}],"metadata":{"b":2,"a":"<&>"}}`)
		c.ExpiresAt = &soon
	})
	w.deliver(w.hook("evt_paid", "pi_paid ch_paid", "ord_paid", captured(5000)))
	w.deliver(w.hook("evt_paid_again", "ch_paid", "", captured(5000)))
	w.tell("ord_paid", done)

	w.register("ord_refunded", 5000)
	w.deliver(w.hook("evt_refunded", "pi_refunded", "ord_refunded", captured(5000)))
	w.tell("ord_refunded", done)
	w.deliver(w.hook("evt_refund", "pi_refunded", "", item(order.KindRefunded, "re_1", order.StatusOK, 5000)))
	w.tell("ord_refunded", done)

	w.register("ord_disputed", 5000)
	w.deliver(w.hook("evt_disputed", "pi_disputed", "ord_disputed", captured(5000), item(order.KindDisputed, "dp_1", order.StatusOpen, 5000)))
	w.tell("ord_disputed", done)

	w.register("ord_owed", 5000)
	w.deliver(w.hook("evt_owed", "pi_owed", "ord_owed", captured(5000)))
	w.register("ord_claimed", 5000)
	w.deliver(w.hook("evt_claimed", "pi_claimed", "ord_claimed", captured(5000)))
	w.tell("ord_claimed")
	w.register("ord_waits", 5000)
	w.deliver(w.hook("evt_waits", "pi_waits", "ord_waits", captured(5000)))
	w.tell("ord_waits", later)
	w.register("ord_dead", 5000)
	w.deliver(w.hook("evt_dead", "pi_dead", "ord_dead", captured(5000)))
	w.tell("ord_dead", dead)

	// A fulfilment in doubt, and its opposite; and one that is not wanted while nothing follows it.
	for _, ref := range []string{"ord_doubt", "ord_parked"} {
		w.register(ref, 5000)
		w.deliver(w.hook("evt_"+ref, "pi_"+ref, ref, captured(5000)))
		w.tell(ref, later)
	}
	w.deliver(w.hook("evt_doubt", "pi_ord_doubt", "", item(order.KindRefunded, "re_2", order.StatusOK, 5000)))
	w.deliver(w.hook("evt_parked", "pi_ord_parked", "", item(order.KindDisputed, "dp_2", order.StatusOpen, 5000)))

	// Two payments that turn out to be one, on an order that a gateway's amount has made.
	made := w.hook("evt_made", "cs_made", "ord_made", captured(7000))
	made.OnUnknown, made.Own = store.OnUnknownCreate, &order.Amount{Minor: 7000, Currency: "EUR"}
	w.deliver(made)
	w.deliver(w.hook("evt_made_2", "pi_made", "ord_made", captured(7000)))
	w.deliver(w.hook("evt_made_3", "pi_made cs_made", "", captured(7000)))

	// Events that do not simply count.
	w.deliver(w.hook("evt_stub", "pi_stub", "ord_stub", captured(5000)))
	w.deliver(w.hook("evt_nowhere", "pi_nowhere", "", captured(5000)))
	ignored := w.hook("evt_unknown_order", "pi_unknown_order", "ord_unknown", captured(5000))
	ignored.OnUnknown = store.OnUnknownIgnore
	unread, typed := w.hook("evt_broken", "", ""), w.hook("evt_ignored", "", "")
	unread.Broken, typed.Ignored = "the amount is null", "unknown_type"
	asked, paused := w.hook("evt_asked", "", ""), w.hook("evt_paused", "pi_paused", "ord_paid", captured(1))
	asked.Fetch, paused.Paused = "payment/tr_1", true
	w.deliver(ignored, unread, typed, asked, paused)
	misfit := w.hook("evt_misfit", "pi_misfit", "ord_paid", captured(5000))
	misfit.Facts[0].Misfit = order.MisfitMode
	foreign := w.hook("evt_foreign", "pi_foreign", "ord_paid", captured(5000))
	foreign.Facts[0].Currency = "USD"
	w.deliver(misfit)
	w.deliver(foreign)
	w.deliver(w.hook("evt_refund", "pi_refunded", "", item(order.KindRefunded, "re_1", order.StatusOK, 4000))) // the id again
	adyen := w.hook("evt_adyen", "pi_paid", "ord_adyen", captured(3000))                                       // another payment of that name
	adyen.Source, adyen.Realm = "adyen", "adyen:live"
	w.register("ord_adyen", 5000)
	w.deliver(adyen)

	// One payment that names two orders, and two of two orders that turn out to be one.
	w.register("ord_a", 5000)
	w.register("ord_b", 5000)
	w.deliver(w.hook("evt_a", "pi_a", "ord_a", captured(5000)))
	w.deliver(w.hook("evt_ab", "pi_a", "ord_b", captured(5000)))
	w.deliver(w.hook("evt_b", "pi_b", "ord_b", captured(5000)))
	w.deliver(w.hook("evt_both", "pi_a pi_b", "", item(order.KindRefunded, "re_3", order.StatusOK, 100)))

	w.commands(t)
	w.keys(t)

	// In an account of its own, since less can be told of one in which anything was read again.
	again := newShop(w.t, w.ctx, w.s, w.account+"2")
	again.bytes = w.bytes
	again.reevaluated()
}

// commands are what only the merchant says.
func (w *shop) commands(t *testing.T) {
	t.Helper()
	w.register("ord_amended", 5000)
	w.say("amend_1", "ord_amended", order.Command{Amend: &order.Amendment{Total: &order.Amount{Minor: 6000, Currency: "EUR"}, Details: json.RawMessage(`{"metadata":{"x":1e3}}`)}})
	w.say("amend_2", "ord_amended", order.Command{Amend: &order.Amendment{Details: json.RawMessage(`{"metadata":{"y":2}}`)}})
	w.register("ord_canceled", 5000)
	w.say("cancel_1", "ord_canceled", order.Command{Cancel: true})
	w.register("ord_over", 5000)
	w.deliver(w.hook("evt_over", "pi_over", "ord_over", captured(6000)))
	w.say("dismiss_1", "ord_over", order.Command{Dismiss: order.FlagOverpaid})
	w.register("ord_settled", 5000)
	w.deliver(w.hook("evt_settled", "pi_settled", "ord_settled", captured(6000)))
	w.say("dismiss_2", "ord_settled", order.Command{Dismiss: order.FlagOverpaid})
	w.deliver(w.hook("evt_settled_2", "pi_settled", "", item(order.KindRefunded, "re_4", order.StatusOK, 1000)))
	w.register("ord_confirmed", 5000)
	w.say("confirm_1", "ord_confirmed", order.Command{Confirm: true}, about("pi_confirmed", captured(5000)), func(e *store.Event) { e.Strength = order.StrengthPayment })
	w.register("ord_linked", 5000)
	w.deliver(w.hook("evt_linked", "pi_linked", "ord_canceled", captured(5000)))
	w.say("link_1", "ord_linked", order.Command{Link: true}, about("pi_linked"))
	w.register("ord_unlinked", 5000)
	w.deliver(w.hook("evt_unlinked", "pi_unlinked", "", captured(5000)))
	w.say("link_2", "ord_unlinked", order.Command{Link: true}, about("pi_unlinked"))
	w.say("link_3", "", order.Command{Link: true}, about("pi_unlinked"))
	past := time.Now().Add(-time.Hour).UTC().Truncate(time.Microsecond)
	w.register("ord_late", 5000, func(c *order.Command) { c.ExpiresAt = &past })
	_, err := w.s.ExpireOrders(w.ctx)
	require.NoError(t, err)

	w.register("ord_cash", 5000)
	w.income("cash_1", "ord_cash", 2000)
	w.void(w.income("cash_2", "ord_cash", 1000))
	w.income("", "", 700)

	today := period.DateOf(time.Now().UTC())
	r := w.recur("club", period.DateOf(today.UTC().AddDate(0, 0, -3)))
	renewal := w.hook("evt_renewal", "pi_renewal", "", captured(900))
	renewal.Renewal = &order.Renewal{Of: []string{"club"}, Start: r.StartsOn.Start(time.UTC).Add(30 * time.Hour)}
	w.deliver(renewal)

	w.moves()
}

func (w *shop) income(ref, order_ string, minor int64) (id uuid.UUID) {
	require.NoError(w.t, w.s.InTx(w.ctx, func(tx store.Tx) error {
		in, err := w.s.CreateIncome(w.ctx, tx, store.NewIncome{
			Account: w.account, Ref: ref, OrderRef: order_, Party: "somebody", Kind: order.IncomeCash, Amount: order.Amount{Minor: minor, Currency: "EUR"},
			Source: &order.Amount{Minor: 2 * minor, Currency: "USD"},
		})
		id = in.ID
		return err
	}))
	return id
}

func (w *shop) void(id uuid.UUID) {
	require.NoError(w.t, w.s.InTx(w.ctx, func(tx store.Tx) error {
		_, _, err := w.s.VoidIncome(w.ctx, tx, w.account, id)
		return err
	}))
}

func (w *shop) recur(ref string, from period.Date) (r store.Recurrence) {
	require.NoError(w.t, w.s.InTx(w.ctx, func(tx store.Tx) (err error) {
		r, _, err = w.s.CreateRecurrence(w.ctx, tx, store.NewRecurrence{
			Account: w.account, Ref: ref, Amount: order.Amount{Minor: 900, Currency: "EUR"}, Details: json.RawMessage(`{"metadata":{"plan":"x"}}`),
			Interval: period.Day, Every: 1, TimeZone: "UTC", StartsOn: from,
		})
		return err
	}))
	return r
}

// moves are two refunds of one payment: one is done, the other waits.
func (w *shop) moves() {
	w.register("ord_moved", 5000)
	w.deliver(w.hook("evt_moved", "pi_moved", "ord_moved", captured(5000)))
	for i := range 2 {
		var made store.EnteredTransaction
		require.NoError(w.t, w.s.InTx(w.ctx, func(tx store.Tx) (err error) {
			made, err = w.s.CreateTransaction(w.ctx, tx, store.NewTransaction{
				Account: w.account, Order: w.orderID("ord_moved"), Kind: order.MovementRefund, Ref: fmt.Sprint("move_", i), Realms: []string{"stripe:live"}, Amount: 1000,
				Prepare: func(_ store.Origin, m order.Movement) (store.Prepared, error) {
					return store.Prepared{Source: "stripe", Gateway: "stripe", Request: store.Request{Method: http.MethodPost, Path: "/v1/refunds", Body: []byte(m.ID)}}, nil
				},
			})
			return err
		}))
		if i > 0 {
			continue
		}
		c, err := w.s.ClaimMove(w.ctx, w.account, made.ID, time.Minute)
		require.NoError(w.t, err)
		_, err = w.s.SettleMove(w.ctx, *c, store.MoveAnswer{
			Status: store.TransactionSucceeded, GatewayRef: "re_moved", Events: []store.Event{w.hook("evt_moved_2", "pi_moved", "", item(order.KindRefunded, "re_moved", order.StatusOK, 1000))},
		})
		require.NoError(w.t, err)
	}
}

// reevaluated is an order whose payment was read wrongly, and paid another one.
func (w *shop) reevaluated() {
	w.register("ord_right", 5000)
	w.register("ord_wrong", 5000)
	wrong := w.hook("evt_misread", "pi_misread", "ord_wrong", captured(50))
	wrong.Payload = []byte("misread " + w.account)
	_, err := w.s.Apply(w.ctx, []store.Event{wrong})
	require.NoError(w.t, err)
	right := w.hook("evt_misread", "pi_misread", "ord_right", captured(5000))
	w.bytes[string(wrong.Payload)] = right
	require.NoError(w.t, w.s.Reevaluate(w.ctx, store.ReevaluateOptions{
		Filter: store.ReevaluateFilter{Account: w.account, Event: "evt_misread"}, Read: w.read, Apply: true,
	}))
}

// keys are calls of an API that may be repeated: one that made an order, one that was refused, and one that failed.
func (w *shop) keys(t *testing.T) {
	t.Helper()
	keys, err := idempotency.NewStore(w.s.Pool(), idempotency.StoreOptions{})
	require.NoError(t, err)
	mw, err := idempotency.New(keys, idempotency.Options{Scope: func(*http.Request) (idempotency.Scope, error) {
		return idempotency.Scope{Account: w.account, Kind: "account", ID: uuid.NewSHA1(uuid.NameSpaceURL, []byte(w.account))}, nil
	}})
	require.NoError(t, err)
	h := mw.Protect(idempotency.Strict())(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/made":
			idempotency.SetResource(r.Context(), "order", w.orderID("ord_paid"))
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusCreated)
			_, _ = rw.Write([]byte(`{"data": {"amount": 1e3}}`))
		case "/refused":
			rw.WriteHeader(http.StatusUnprocessableEntity)
		default:
			rw.WriteHeader(http.StatusInternalServerError)
		}
	}))
	for _, path := range []string{"/made", "/refused", "/failed"} {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader("{}"))
		r.Header.Set("Idempotency-Key", path)
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
}
