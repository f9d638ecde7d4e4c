package explain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// refund is a call that was entered and not sent.
func refund() store.Transaction {
	id := uuid.MustParse("0195b1a0-0000-7000-8000-0000000000aa")
	return store.Transaction{
		Account: "shop", ID: id, Order: orderID, OrderRef: "ord_1", Source: "stripe", Gateway: "stripe", Kind: order.MovementRefund,
		Amount: order.Amount{Minor: 2000, Currency: "EUR"}, Status: store.TransactionPending, Epoch: 1, Key: store.TransactionKey(id, 1),
		Movement: order.Movement{Payment: []string{"ch_1", "pi_1"}}, CreatedAt: at(10), NextAt: ptr(at(10)),
	}
}

// transactionCases are calls in every status, by it.
func transactionCases() []struct {
	title string
	t     store.Transaction
} {
	var all []struct {
		title string
		t     store.Transaction
	}
	add := func(title string, change func(*store.Transaction)) {
		t := refund()
		change(&t)
		word, _, _ := strings.Cut(title, ",")
		t.Status = store.TransactionStatus(word)
		all = append(all, struct {
			title string
			t     store.Transaction
		}{title, t})
	}
	sent := func(t *store.Transaction) { t.SentAt, t.Attempts, t.NextAt = ptr(at(11)), 1, ptr(at(71)) }
	add("pending", func(*store.Transaction) {})
	add("pending, behind another", func(t *store.Transaction) { t.NextAt = nil })
	add("pending, anew", func(t *store.Transaction) {
		t.Epoch, t.Code, t.Detail = 2, store.ResolvedByPerson, "it is not in the dashboard."
	})
	add("pending, anew and behind another", func(t *store.Transaction) { t.Epoch, t.NextAt, t.Code = 3, nil, "absent" })
	add("sent", func(t *store.Transaction) { sent(t); t.ClaimedUntil = ptr(at(71)) })
	add("sent, not answered", func(t *store.Transaction) { sent(t); t.Attempts, t.Detail = 2, "no answer in time" })
	add("sent, not even once", func(t *store.Transaction) {
		sent(t)
		t.Attempts, t.Code, t.Detail = 0, "cannot_call", "the source is not configured any more"
	})
	add("sent, once more", func(t *store.Transaction) { sent(t); t.Attempts, t.Code, t.ClaimedUntil = 3, "busy", ptr(at(71)) })
	add("succeeded", func(t *store.Transaction) { sent(t); t.NextAt, t.SettledAt, t.GatewayRef = nil, ptr(at(12)), "re_1" })
	add("succeeded, named", func(t *store.Transaction) {
		sent(t)
		t.NextAt, t.SettledAt, t.Ref, t.Reason = nil, ptr(at(12)), "rf_1", "did not fit"
	})
	add("succeeded, as a webhook told", func(t *store.Transaction) {
		sent(t)
		t.NextAt, t.SettledAt, t.Code, t.Detail = nil, ptr(at(12)), store.ResolvedByWebhook, "event evt_2 told"
	})
	add("failed", func(t *store.Transaction) {
		sent(t)
		t.Kind, t.NextAt, t.SettledAt, t.Code, t.Detail = order.MovementCapture, nil, ptr(at(12)), "card_declined", "it answered 402"
	})
	add("failed, as a person says", func(t *store.Transaction) {
		sent(t)
		t.Kind, t.NextAt, t.SettledAt, t.Code, t.Detail = order.MovementVoid, nil, ptr(at(12)), store.ResolvedByPerson, "the gateway's support says so"
	})
	add("uncertain", func(t *store.Transaction) { sent(t); t.NextAt, t.Code = nil, "stored_failure" })
	add("uncertain, to be looked up", func(t *store.Transaction) { sent(t); t.Detail = "no answer in time" })
	add("uncertain, being looked up", func(t *store.Transaction) { sent(t); t.ClaimedUntil = ptr(at(71)) })
	return all
}

// Every status has its sentences: of the call, in the order's timeline, and what is to be done.
func TestTransactions(t *testing.T) {
	t.Parallel()
	var got []section
	for _, c := range transactionCases() {
		tl := *paidTimeline()
		tl.Transactions = []store.Transaction{c.t}
		text := explain.Order(tl).Text()
		require.Contains(t, text, explain.Transaction(c.t))
		got = append(got, section{c.title, text})
	}
	for _, kind := range order.MovementKinds() {
		for _, why := range []order.NotMovable{"", order.NothingCaptured, order.NothingAuthorized, order.AlreadyCaptured, order.PaymentOver, order.NotSaid, "of_tomorrow"} {
			got = append(got, section{strings.TrimSuffix("no "+string(kind)+", "+string(why), ", "), explain.NotMovable(kind, why) + "\n"})
		}
	}
	golden(t, "transactions", got)
}

// A canceled order says what is still held for it, unless a call is on its way.
func TestCanceledOrderHolds(t *testing.T) {
	t.Parallel()
	o := registered(order.StateCanceled)
	o.Canceled = true
	l := order.NewLedger()
	l.JoinEvent(order.Event{Payment: []string{"pi_1"}, Facts: []order.Fact{{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}}})
	tl := store.Timeline{Order: o, Payments: []store.Payment{{ID: orderID, Ledger: l}}, Now: at(60)}
	todo := "Let go of the 50.00 EUR that pi_1 holds: POST /v1/orders/" + orderID.String() + "/voids, or at the gateway itself."
	require.Equal(t, []string{todo}, explain.Order(tl).Todo)
	void := refund()
	void.Kind, void.Movement.Payment = order.MovementVoid, []string{"pi_1"}
	tl.Transactions = []store.Transaction{void}
	require.Empty(t, explain.Order(tl).Todo)
	void.Status, void.SettledAt = store.TransactionFailed, ptr(at(20))
	tl.Transactions = []store.Transaction{void}
	require.Equal(t, []string{todo}, explain.Order(tl).Todo)
	tl.Order.Canceled = false
	require.Empty(t, explain.Order(tl).Todo)
}

// A new status, kind or reason of a movement fails here until somebody has said what it means.
func TestEveryWordOfMovementsHasASentence(t *testing.T) {
	t.Parallel()
	var seen []string
	for _, c := range transactionCases() {
		seen = append(seen, string(c.t.Status), string(c.t.Kind))
	}
	for name, word := range constants(t, "../../store", ofType("TransactionStatus")) {
		require.True(t, slices.Contains(seen, word), "%s (%q) has no case", name, word)
	}
	for name, word := range constants(t, "../../order", ofType("MovementKind")) {
		require.True(t, slices.Contains(seen, word), "%s (%q) has no case", name, word)
	}
	unknown := explain.NotMovable(order.MovementRefund, "of_tomorrow")
	for name, word := range constants(t, "../../order", ofType("NotMovable")) {
		said := explain.NotMovable(order.MovementRefund, order.NotMovable(word))
		require.NotEqual(t, strings.ReplaceAll(unknown, "of_tomorrow", word), said, "%s (%q) has no sentence", name, word)
	}
}
