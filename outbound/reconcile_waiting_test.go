package outbound_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

// run runs over the shop from where the last one came to.
func (r *recon) again() store.ReconcileRun {
	r.t.Helper()
	run, err := r.Reconcile(r.t.Context(), "shop", outbound.ReconcileRequest{})
	require.NoError(r.t, err)
	return run
}

// waits are the orders that are noted to wait, and how often each was asked about.
func (r *recon) waits() []string {
	return r.texts(`SELECT o.external_ref || ' ' || w.asks || CASE WHEN w.next_at IS NULL THEN ' given up' ELSE '' END
		FROM reconcile_orders w JOIN orders o ON o.id = w.order_id ORDER BY 1`)
}

func (r *recon) open() []string {
	return r.texts(`SELECT object FROM fetches WHERE state = 'open' ORDER BY 1`)
}

// An order whose payment began and never ended is asked about; what comes of it is reported as what no webhook brought.
func TestOrdersThatWaitAreAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4", "ord_5"} {
		r.register(ref, 5000)
	}
	r.deliver(
		entry{ID: "e1", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Status: "processing"},
		entry{ID: "e2", At: ago(time.Minute), Payment: "p2", Order: "ord_2", Captured: 5000},
		entry{ID: "e3", At: ago(time.Minute), Payment: "p3", Order: "ord_3", Captured: 2000},
		entry{ID: "e4", At: ago(time.Minute), Payment: "p4", Order: "stub", Status: "processing"},
	)
	r.income("ord_5", 100) // waits for no gateway
	r.again()
	require.Empty(t, r.waits(), "all of it is young")

	r.old(61 * time.Minute)
	run := r.again()
	require.Equal(t, []string{"ord_1 1", "ord_3 1", "stub 1"}, r.waits(), "ord_2 is paid, ord_4 has no payment, ord_5 none of a gateway")
	require.Equal(t, []string{"payment/p1", "payment/p3", "payment/p4"}, r.open())
	require.Equal(t, 3, run.Asked)
	require.Equal(t, 3, run.Open)
	require.Equal(t, []bool{false, false, true}, []bool{run.Orders[0].Stub, run.Orders[1].Stub, run.Orders[2].Stub})
	require.Equal(t, 1, run.Orders[0].Asks)
	require.Equal(t, order.StatePending, run.Orders[0].State)

	// p1 was paid all along; of p3 nothing more is known there; p4 is not known.
	r.api.is(state{ID: "p1", Captured: 5000, Order: "ord_1"})
	r.api.is(state{ID: "p3", Captured: 2000, Order: "ord_3"})
	for _, p := range []string{"p1", "p3", "p4"} {
		r.ask("shop", p)
	}
	run = r.again()
	require.Equal(t, 1, run.Healed)
	require.Equal(t, 1, run.Moved)
	require.True(t, run.Events[0].Asked)
	require.Equal(t, store.Applied, run.Events[0].Outcome)
	require.Equal(t, []string{"ord_3 1", "stub 1"}, r.waits())
	require.Contains(t, r.states(), "ord_1 paid")
	require.Zero(t, run.Unexplained)
	require.Zero(t, r.again().Healed, "an answer counts once")
	require.Equal(t, []string{"payment/p4"}, r.texts(`SELECT object FROM reconcile_asks`), "it is still asked about")
}

// income enters money that no gateway has seen.
func (r *recon) income(ref string, minor int64) {
	r.t.Helper()
	var id uuid.UUID
	require.NoError(r.t, r.pool.QueryRow(r.t.Context(), `SELECT id FROM orders WHERE external_ref = $1`, ref).Scan(&id))
	require.NoError(r.t, r.store.InTx(r.t.Context(), func(tx store.Tx) error {
		_, err := r.store.CreateIncome(r.t.Context(), tx, store.NewIncome{
			Account: "acme", Order: id, Kind: "cash", Amount: order.Amount{Minor: minor, Currency: "EUR"},
		})
		return err
	}))
}

// The same order is asked about less and less, and in the end not any more, unless it moves.
func TestOrdersAreAskedAboutLessAndLess(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{WaitingOptions: outbound.WaitingOptions{AskTimes: 5, AskMost: 5 * time.Hour}})
	r.register("ord_1", 5000)
	r.deliver(entry{ID: "e1", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Captured: 2000})
	r.old(61 * time.Minute)
	r.api.is(state{ID: "p1", Captured: 2000, Order: "ord_1"})
	for n, hours := range []int{1, 2, 4, 5, 0} {
		require.Equal(t, 1, r.again().Asked, n)
		require.Zero(t, r.again().Asked)
		require.Equal(t, "done", r.ask("shop", "p1").State)
		if hours == 0 {
			break
		}
		r.old(time.Duration(hours)*time.Hour - 2*time.Minute)
		require.Zero(t, r.again().Asked, n)
		r.old(3 * time.Minute)
	}
	require.Equal(t, []string{"ord_1 5 given up"}, r.waits())
	r.old(100 * time.Hour)
	run := r.again()
	require.Zero(t, run.Asked)
	require.Equal(t, 1, run.Open, "it waits all the same")
	require.Nil(t, run.Orders[0].NextAt)

	r.deliver(entry{ID: "e2", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Captured: 1000})
	r.old(61 * time.Minute)
	require.Equal(t, 1, r.again().Asked)
	require.Equal(t, []string{"ord_1 1"}, r.waits())
}

// However many wait, a run asks about a few, and looks at a bounded number of events.
func TestAskingIsBounded(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{WaitingOptions: outbound.WaitingOptions{AskLimit: 3, ScanLimit: 4, ScanRounds: 1}})
	for i := range 10 {
		r.deliver(entry{ID: fmt.Sprintf("e%d", i), At: ago(time.Minute), Payment: fmt.Sprintf("p%d", i), Order: fmt.Sprintf("ord_%d", i), Status: "processing"})
	}
	r.old(2 * time.Hour)
	var asked, noted []int
	for range 5 {
		asked = append(asked, r.again().Asked)
		noted = append(noted, len(r.waits()))
	}
	require.Equal(t, []int{4, 8, 10, 10, 10}, noted)
	require.Equal(t, []int{3, 3, 3, 1, 0}, asked)
}

// An answer that says otherwise than our ledger and moves nothing is told of; one that another event has overtaken is not.
func TestAnswersThatContradict(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.register("ord_1", 5000)
	r.register("ord_2", 5000)
	r.register("ord_3", 5000)
	r.deliver(
		entry{ID: "e1", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Captured: 2000},
		entry{ID: "e2", At: ago(time.Minute), Payment: "p2", Order: "ord_2", Captured: 2000},
		entry{ID: "e3", At: ago(time.Minute), Payment: "p3", Order: "ord_3", Captured: 2000},
	)
	r.old(61 * time.Minute)
	require.Equal(t, 3, r.again().Asked)
	r.api.is(state{ID: "p1", Captured: 500, Order: "ord_1"})
	r.api.is(state{ID: "p2", Captured: 500, Order: "ord_2"})
	r.ask("shop", "p1")
	r.ask("shop", "p2")
	r.deliver(entry{ID: "e4", At: ago(0), Payment: "p2", Order: "ord_2", Captured: 100})
	for range 6 { // it does not know p3, until it is given up
		r.ask("shop", "p3")
		r.old(2 * time.Hour)
	}
	run := r.again()
	require.Equal(t, 2, run.Unexplained)
	require.Zero(t, run.Healed)
	require.Equal(t, "payment/p3", run.Contradictions[1].Object)
	require.Contains(t, run.Contradictions[1].Detail, "does not know payment/p3")
	c := run.Contradictions[0]
	require.Equal(t, "payment/p1", c.Object)
	require.Equal(t, []int64{2000, 500}, []int64{c.Ours, c.Theirs})
	require.Equal(t, "Our ledger has 20.00 EUR of what was captured of the payment, the gateway says 5.00.", c.Detail)
	require.NotNil(t, c.Order)
	require.Equal(t, 2, metric(t, r.metrics, "paidonce_reconcile_unexplained_total", "source", "shop"))
	require.Contains(t, r.log.String(), "a gateway says otherwise than our ledger")
}

// What stands in the list by its name only is announced, once for as long as nothing can have changed.
func TestListedObjectsAreAskedAbout(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute, MaxSpan: time.Minute})
	r.register("ord_1", 5000)
	r.register("ord_2", 5000)
	r.annals.objects = []entry{{At: ago(30 * time.Minute), Payment: "p1"}, {At: ago(20 * time.Minute), Payment: "p2"}}
	r.announce("shop", "p2") // by its webhook, which is on its way
	run := r.reconcile()
	require.Equal(t, 2, run.Announced)
	require.Equal(t, []string{"payment/p1", "payment/p2"}, r.open())
	require.Equal(t, []string{"payment/p1"}, r.texts(`SELECT object FROM reconcile_asks`))
	r.api.is(state{ID: "p1", Captured: 5000, Order: "ord_1"})
	r.api.is(state{ID: "p2", Captured: 5000, Order: "ord_2"})
	r.ask("shop", "p1")
	r.ask("shop", "p2")
	require.Equal(t, []string{"ord_1 paid", "ord_2 paid"}, r.states())

	run = r.reconcile()
	require.Equal(t, 1, run.Healed, "of p2 a webhook had told")
	require.Zero(t, run.Announced, "nothing can have changed since it was asked")
	require.Equal(t, 2, run.Duplicates)
	require.Empty(t, r.open())

	r.annals.objects = append(r.annals.objects, entry{At: ago(time.Minute), Payment: "p1"})
	require.Equal(t, 1, r.reconcile().Announced, "it may have changed since")
}

// Where more waits to be asked about than may, the list is read again rather than forgotten.
func TestNoRoomForObjects(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{Span: time.Minute, MaxSpan: time.Minute})
	for i := range 40 { // of 30
		r.annals.objects = append(r.annals.objects, entry{At: ago(30 * time.Minute), Payment: fmt.Sprintf("p%d", i)})
		r.api.is(state{ID: fmt.Sprintf("p%d", i), Captured: 5000, Order: fmt.Sprintf("ord_%d", i)})
	}
	run := r.reconcile()
	require.Equal(t, store.ReconcileFailed, run.Result)
	require.Contains(t, run.Error, "fetch.open")
	require.True(t, r.cursor().Reached.Before(ago(29*time.Minute)))
	for _, object := range r.open() {
		r.ask("shop", strings.TrimPrefix(object, "payment/"))
	}
	require.Equal(t, store.ReconcileDone, r.again().Result)
	require.Len(t, r.open(), 10)
}

// What a list tells in other words than the webhook did is no second event, unless it says more.
func TestEventsInOtherWords(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	for _, ref := range []string{"ord_1", "ord_2", "ord_3", "ord_4"} {
		r.register(ref, 5000)
	}
	brought := func(id, payment, ref string, captured int64) entry {
		return entry{ID: id, At: ago(20 * time.Minute), Payment: payment, Order: ref, Captured: captured}
	}
	r.deliver(brought("e1", "p1", "ord_1", 5000), brought("e2", "p2", "ord_2", 5000), brought("e3", "p3", "ord_3", 3000), entry{ID: "e4"})
	_, err := r.pool.Exec(t.Context(), `UPDATE processed_events SET mapping_version = 7 WHERE event_id = 'e3'`)
	require.NoError(t, err)
	renamed := brought("e2", "p2", "ord_2", 5000)
	renamed.Status = "processing" // another fact, that changes nothing
	r.annals.happened(brought("e1", "p1", "ord_1", 5000), renamed, brought("e3", "p3", "ord_3", 5000), brought("e4", "p4", "ord_4", 5000))
	before := r.orders()
	run := r.reconcile()
	require.Equal(t, 3, run.Duplicates, "e3 was read by another mapping: it is to be read again, not joined")
	require.Zero(t, run.Healed)
	require.Equal(t, 1, run.Differs)
	require.Equal(t, "e4", run.Events[0].ID)
	audittest.Clean(t, r.pool)
	after := r.orders()
	require.Equal(t, before[:3], after[:3])
	require.Contains(t, after[3], "ord_4 paid")
	require.Contains(t, after[3], "id_reused")
	require.Equal(t, 4, r.reconcile().Duplicates)
}

// Of sources that know the same payments one reads the list, and what another one has received is known.
func TestSourcesThatKnowTheSamePayments(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.source(gateway.Source{ID: "also", Account: "acme", Gateway: "chronicle"})
	r.source(gateway.Source{ID: "adyen", Account: "acme", Gateway: "deaf"})
	e := entry{ID: "e1", At: ago(20 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000}
	r.annals.happened(e)
	_, err := r.store.Apply(t.Context(), []store.Event{{Account: "acme", Source: "also", MappingVersion: gateway.MappingVersion, Event: order.Event{
		ID: "e1", Type: "entry", At: e.At, Realm: "chronicle:live", Payment: []string{"p1"}, Reference: "ord_1", Strength: order.StrengthPayment,
		Facts: []order.Fact{{Kind: order.KindCaptured, Ref: "e1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}},
	}}})
	require.NoError(t, err)
	require.NoError(t, r.Tick(t.Context()))
	r.Wait()
	run := r.reconcile()
	require.Equal(t, 1, run.Duplicates)
	require.Zero(t, run.Healed)
	_, err = r.Reconcile(t.Context(), "also", outbound.ReconcileRequest{})
	require.ErrorIs(t, err, outbound.ErrNotReconciled)

	cursors, err := r.store.ReconcileCursors(t.Context(), "acme")
	require.NoError(t, err)
	notes := map[string]store.ReconcileCursor{}
	for _, c := range cursors {
		notes[c.Source] = c
	}
	require.True(t, notes["shop"].Lists)
	require.NotNil(t, notes["shop"].SucceededAt)
	require.Equal(t, "source shop knows the same payments: it is the one that is reconciled", notes["also"].Note)
	require.Nil(t, notes["also"].SucceededAt)
	require.False(t, notes["adyen"].Lists)
	require.False(t, notes["adyen"].Asks)
	require.Equal(t, "Deaf has no list of what happened that could be read; Deaf cannot be asked how a payment stands", notes["adyen"].Note)
}

// A gateway without a list and without an API that could be asked is reported as such, with the orders that wait for it.
func TestAGatewayThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.source(gateway.Source{ID: "deaf", Account: "acme", Gateway: "deaf"})
	_, err := r.store.Apply(t.Context(), []store.Event{{Account: "acme", Source: "deaf", Event: order.Event{
		ID: "e1", Type: "x", Realm: "deaf:live", Payment: []string{"p1"}, Reference: "ord_1", Strength: order.StrengthPayment,
		Facts: []order.Fact{{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}},
	}}})
	require.NoError(t, err)
	r.old(2 * time.Hour)
	run, err := r.Reconcile(t.Context(), "deaf", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, store.ReconcileDone, run.Result)
	require.Zero(t, run.Calls)
	require.Nil(t, run.From)
	require.Zero(t, run.Asked)
	require.Equal(t, 1, run.Open)
	require.Equal(t, []string{"Deaf has no list of what happened that could be read", "Deaf cannot be asked how a payment stands"}, run.Notes)

	r.source(gateway.Source{ID: "shop", Account: "acme", Gateway: "chronicle"})
	run = r.again()
	require.Equal(t, []string{"Chronicle's list is not read: the source has no access_token"}, run.Notes)
}

// A gateway whose payments' ids cannot be asked about by themselves is asked about what has told of them before.
func TestWhatHasToldIsAskedAgain(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.register("ord_1", 5000)
	r.api.is(state{ID: "tr_1", Captured: 2000, Order: "ord_1"})
	r.announce("ping", "tr_1")
	r.ask("ping", "tr_1")
	r.old(2 * time.Hour)
	r.api.is(state{ID: "tr_1", Captured: 5000, Order: "ord_1"})
	run, err := r.Reconcile(t.Context(), "ping", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, 1, run.Asked)
	r.ask("ping", "tr_1")
	require.Equal(t, []string{"ord_1 paid"}, r.states())
	run, err = r.Reconcile(t.Context(), "ping", outbound.ReconcileRequest{})
	require.NoError(t, err)
	require.Equal(t, 1, run.Healed)
}

// Transactions of which it is not known for long what became of them are listed.
func TestUncertainTransactionsAreListed(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.register("ord_1", 5000)
	r.deliver(entry{ID: "e1", At: ago(time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
	_, err := r.pool.Exec(t.Context(), `
		INSERT INTO transactions (account_id, id, order_id, payment_id, party, source_id, gateway, kind, amount, currency, status, movement, method, path, header,
			body, key, sent_at, next_at, created_at, code)
		SELECT p.account_id, gen_random_uuid(), p.order_id, p.id, p.id::text, 'shop', 'chronicle', 'refund', 1000, 'EUR', 'uncertain', '{}', 'POST', '/', '{}', '', '',
			clock_timestamp() - interval '59 minutes', NULL, now(), 'outcome_unknown' FROM payments p`)
	require.NoError(t, err)
	require.Zero(t, r.again().Uncertain)
	_, err = r.pool.Exec(t.Context(), `UPDATE transactions SET sent_at = sent_at - interval '2 minutes'`)
	require.NoError(t, err)
	run := r.again()
	require.Equal(t, 1, run.Uncertain)
	require.Equal(t, "outcome_unknown", run.Transactions[0].Code)
	require.Equal(t, order.MovementRefund, run.Transactions[0].Kind)
	require.EqualValues(t, 1000, run.Transactions[0].Amount)
}

// The loop works on what is due, ends with its context, and shows how far it is.
func TestTheReconcilerRuns(t *testing.T) {
	t.Parallel()
	r := newRecon(t, outbound.ReconcileOptions{})
	r.annals.happened(entry{ID: "e1", At: ago(5 * time.Minute), Payment: "p1", Order: "ord_1", Captured: 5000})
	loop := r.reconciler(outbound.ReconcileOptions{TickEvery: 10 * time.Millisecond})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	r.until("the entry is found", func() bool { return len(r.events()) == 1 })
	cancel()
	require.NoError(t, <-done)
	require.False(t, r.cursor().Claimed)
}

func TestReconcileOptions(t *testing.T) {
	t.Parallel()
	s := newStage(t, outbound.FetchOptions{})
	var h hand
	client := newHost(t, nil).client(t, &h, nil)
	none := func() []gateway.Source { return nil }
	for want, o := range map[string]outbound.ReconcileOptions{
		"Every is negative":            {Every: -1},
		"MinSpan, Span and MaxSpan":    {Span: 48 * time.Hour},
		"must be above":                {Lease: time.Minute},
		"StuckAfter is negative":       {WaitingOptions: outbound.WaitingOptions{StuckAfter: -1}},
		"the least be of whole second": {MinSpan: time.Millisecond},
	} {
		_, err := outbound.NewReconciler(s.store, client, through{s.store}, none, o)
		require.ErrorContains(t, err, want)
	}
	_, err := outbound.NewReconciler(nil, client, through{s.store}, none, outbound.ReconcileOptions{})
	require.Error(t, err)
	_, err = outbound.NewReconciler(s.store, client, through{s.store}, nil, outbound.ReconcileOptions{})
	require.Error(t, err)
}
