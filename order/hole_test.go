package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// Each of these tests is the smallest history that a simpler rule gets wrong. The comment says which rule and what it
// would do. The total is 5000 EUR where nothing else is said; tests of effects are in hole_effects_test.go.

const total = 5000

// Effects on the first entry to paid: no fulfil ever, because the order is partially_refunded at once.
func TestHole01PartRefundBeforeCapture(t *testing.T) {
	t.Parallel()
	capture, part := capturedTotal(total, 0), refund("r", order.StatusOK, 1000, 0)
	for _, facts := range [][]order.Fact{{part, capture}, {capture, part}} {
		v := folded(total, facts...)
		require.Equal(t, order.StatePartiallyRefunded, v.State)
		require.Equal(t, order.EffectFulfil, owed(v))
	}
}

// A refund makes an order refunded or partly so: partially_refunded with nothing captured.
func TestHole02PartRefundAlone(t *testing.T) {
	t.Parallel()
	v := folded(total, refund("r", order.StatusOK, 1000, 0))
	require.Equal(t, order.StatePending, v.State)
	require.Zero(t, v.Refunded)
}

// The last phase to arrive wins: not commutative.
func TestHole03CanceledAndFailedOfOneTime(t *testing.T) {
	t.Parallel()
	for _, seq := range []int64{0, 7} {
		failed, canceled := phase(order.StatusFailed, seq), phase(order.StatusCanceled, seq)
		require.Equal(t, order.StateCanceled, folded(total, failed, canceled).State)
		require.Equal(t, order.StateCanceled, folded(total, canceled, failed).State)
	}
}

// The greater of the refunded total and the ids that are ok: refunded for ever.
func TestHole04RefundedTotalAndItsRefundFails(t *testing.T) {
	t.Parallel()
	v := folded(total, capturedTotal(total, 0), refundedTotal(total, 0), refund("r", order.StatusFailed, total, 0))
	require.Equal(t, order.StatePaid, v.State)
}

// The greatest refunded total, also where totals have versions: partially_refunded for ever.
func TestHole05SnapshotTakesRefundBack(t *testing.T) {
	t.Parallel()
	v := folded(total, capturedTotal(total, 3), refundedTotal(1000, 3), refundedTotal(0, 4))
	require.Equal(t, order.StatePaid, v.State)
}

// Captures cannot fail: paid.
func TestHole06CaptureFails(t *testing.T) {
	t.Parallel()
	v := folded(total, phase(order.StatusAuthorized, 10), authorized(total),
		capture("c", order.StatusOK, total, 12), capture("c", order.StatusFailed, total, 14))
	require.Equal(t, order.StateAuthorized, v.State)
	require.Equal(t, order.EffectRevoke, order.Next(order.ToldFulfilled, v.Want))
}

// What failed counts nothing for ever: never paid again after Adyen's "Transaction Recaptured".
// https://docs.adyen.com/online-payments/capture/failure-reasons/
func TestHole07Recaptured(t *testing.T) {
	t.Parallel()
	facts := []order.Fact{
		capture("c", order.StatusOK, total, 12), capture("c", order.StatusFailed, total, 14),
		capture("c", order.StatusOK, total, 20),
	}
	permute(facts, func(facts []order.Fact) { require.Equal(t, order.StatePaid, folded(total, facts...).State) })
}

// Authorisation and capture both by id: 10000 captured, overpaid.
func TestHole08AutomaticCaptureTellsACaptureToo(t *testing.T) {
	t.Parallel()
	v := folded(total, authorized(total), capturedTotal(total, 0), capture("c", order.StatusOK, total, 12))
	require.EqualValues(t, total, v.Captured)
	require.Zero(t, v.Flags)
}

// A closed payment never undoes money: paid and shipped after a cancellation inside the capture delay.
func TestHole09CanceledWithinCaptureDelay(t *testing.T) {
	t.Parallel()
	v := folded(total, phase(order.StatusAuthorized, 10), authorized(total), capturedTotal(total, 0),
		phase(order.StatusCanceled, 30), capture("x", order.StatusFailed, all, 30))
	require.Equal(t, order.StateCanceled, v.State)
	require.Equal(t, order.WantStop, v.Want)
}

// Closed for good: failed, though the same intent was authorised later.
func TestHole10FailedThenAuthorized(t *testing.T) {
	t.Parallel()
	v := folded(total, phase(order.StatusAuthorized, 6), authorized(total), phase(order.StatusFailed, 5))
	require.Equal(t, order.StateAuthorized, v.State)
}

// Any refund of a paid order: partially_refunded, though all of the total is still there.
func TestHole11SecondPaymentGivenBack(t *testing.T) {
	t.Parallel()
	o := registered(total)
	join(o, "A", capturedTotal(total, 0))
	join(o, "B", capturedTotal(total, 0), refund("r", order.StatusOK, total, 0))
	require.Equal(t, order.StatePaid, o.View().State)
}

// Sums over all payments: what was refunded too much of one is taken from the other.
func TestHole12OverRefundEatsNoOtherPayment(t *testing.T) {
	t.Parallel()
	o := registered(total)
	join(o, "A", capturedTotal(total, 0), refund("r", order.StatusOK, 2*total, 0))
	join(o, "B", capturedTotal(total, 0))
	v := o.View()
	require.Equal(t, order.StatePaid, v.State)
	require.Equal(t, order.FlagOverRefunded, v.Flags)
}

// An open dispute makes an order disputed: hold what was given back already.
func TestHole13DisputeOfRefundedOrder(t *testing.T) {
	t.Parallel()
	v := folded(total, capturedTotal(total, 0), refund("r", order.StatusOK, total, 0),
		dispute("d", order.StatusOpen, total, 20))
	require.Equal(t, order.StateRefunded, v.State)
	require.Equal(t, order.EffectNone, owed(v))
}

// An unknown total counts as 0: a stub is paid and shipped. And a free order that was paid and given back is refunded.
func TestHole14FreeOrderAndStub(t *testing.T) {
	t.Parallel()
	free := folded(0, capturedTotal(total, 0), refund("r", order.StatusOK, total, 0))
	require.Equal(t, order.StatePaid, free.State)
	require.Equal(t, order.WantGo, free.Want)
	require.Equal(t, order.WantGo, registered(0).View().Want, "paid when it is registered")

	o := stub()
	join(o, "A", capturedTotal(total, 0))
	v := o.View()
	require.Equal(t, order.StatePartiallyPaid, v.State)
	require.Equal(t, order.WantWait, v.Want)
	require.Equal(t, order.FlagUnregistered, v.Flags)

	// Not even money beyond all numbers pays a stub.
	join(o, "A", capture("x", order.StatusOK, all-1, 0))
	join(o, "B", capturedTotal(all-1, 0))
	require.Equal(t, order.StatePartiallyPaid, o.View().State)
}

// First entry to paid: over, when another payment was paid and refunded before the worker ran.
func TestHole22PaidAgain(t *testing.T) {
	t.Parallel()
	o := registered(total)
	b := order.NewBook(1, order.ToldNothing, o.View(), 0, nil)
	for _, turn := range []func(){
		func() { join(o, "A", capturedTotal(total, 0)) },
		func() { join(o, "A", refund("r", order.StatusOK, total, 0)) },
		func() { join(o, "B", capturedTotal(total, 0)) },
	} {
		turn()
		b.Step("facts", o.View(), epoch)
	}
	require.Equal(t, order.StatePaid, b.View.State)
	require.Equal(t, order.EffectFulfil, b.Open.Effect)
	require.Equal(t, 4, b.Open.Version)
	require.Equal(t, order.EffectCanceled, b.New()[0].EffectState)
}

// A lost dispute and the reversal that settles it are counted twice: charged_back.
func TestHole23DisputeAndItsReversal(t *testing.T) {
	t.Parallel()
	lost := via(dispute("PP-D", order.StatusLost, 3000, 9))
	v := folded(total, capturedTotal(total, 0), lost)
	require.EqualValues(t, 2000, v.Kept, "before the reversal")
	v = folded(total, capturedTotal(total, 0), lost, reversal("r", 3000), refundedTotal(3000, 0))
	require.EqualValues(t, 2000, v.Kept)
	require.EqualValues(t, 3000, v.Lost)
	require.Equal(t, order.WantPause, v.Want)
}

// The uncaptured rest, booked as a refund by Stripe before API 2025-03-31: refunded.
func TestHole24RestBookedAsRefund(t *testing.T) {
	t.Parallel()
	v := folded(total, authorized(total), capturedTotal(2000, 0), refundedTotal(3000, 0), released(3000),
		refund("re_rest", order.StatusOK, 3000, 0))
	require.Equal(t, order.StatePartiallyPaid, v.State)
	require.EqualValues(t, 2000, v.Kept)
	require.Zero(t, v.Refunded)
}

// The greatest captured total: paid for ever, though a later snapshot says cancelled.
func TestHole25SnapshotCancels(t *testing.T) {
	t.Parallel()
	v := folded(total, capturedTotal(total, 2), capturedTotal(0, 3), phase(order.StatusCanceled, 3))
	require.Equal(t, order.StateCanceled, v.State)
	require.Equal(t, order.WantStop, v.Want, "the money was here once")
}

// "Paid, unless flagged": shipped or not by who was faster.
func TestHole26ForeignCurrencyHoldsNothingBack(t *testing.T) {
	t.Parallel()
	o := registered(total)
	join(o, "A", capturedTotal(total, 0))
	join(o, "B", in("USD", capturedTotal(total, 0)))
	v := o.View()
	require.Equal(t, order.StatePaid, v.State)
	require.Equal(t, order.WantGo, v.Want)
	require.Equal(t, order.FlagCurrencyMismatch, v.Flags)
}

// "Not paid: revoke": takes the goods back because the total was raised.
func TestHole27TotalRaisedAfterFulfil(t *testing.T) {
	t.Parallel()
	v := folded(6000, capturedTotal(total, 0))
	require.Equal(t, order.StatePartiallyPaid, v.State)
	require.Equal(t, order.WantWait, v.Want)
	require.Equal(t, order.EffectNone, order.Next(order.ToldFulfilled, v.Want))
}

// What cannot be counted counts nothing: a dispute in another currency is not seen.
func TestHole28DisputeInOtherCurrency(t *testing.T) {
	t.Parallel()
	v := folded(total, capturedTotal(total, 0), in("USD", dispute("d", order.StatusOpen, 5400, 1)))
	require.Equal(t, order.StateDisputed, v.State)
	require.EqualValues(t, total, v.AtRisk)
	require.Equal(t, order.FlagCurrencyMismatch, v.Flags)
	require.Equal(t, order.WantPause, v.Want)
}

// The first amount that comes is the total: an order of 2000, paid, by a capture of 2000 of 5000.
func TestHole29TotalOnlyFromAPaymentsOwnAmount(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	o := &order.Order{Create: true, Payments: map[string]*order.Ledger{"A": l}}
	l.JoinEvent(order.Event{ID: "1", Payment: []string{"A"}, Facts: []order.Fact{capture("c", order.StatusOK, 2000, 0)}})
	v := o.View()
	require.False(t, v.Registered)
	require.Equal(t, order.WantWait, v.Want)

	l.JoinEvent(order.Event{
		ID: "2", Payment: []string{"A"}, Facts: []order.Fact{authorized(total)},
		Own: &order.Amount{Minor: total, Currency: "EUR"},
	})
	v = o.View()
	require.True(t, v.Registered)
	require.EqualValues(t, total, v.Total)
	require.Equal(t, order.StatePartiallyPaid, v.State)
}

// The first reference wins: a capture that names "3546900" ties the payment there before its authorisation names the order.
func TestHole30ModificationNamesAnotherOrder(t *testing.T) {
	t.Parallel()
	events := []order.Event{
		{ID: "capture", At: epoch, Payment: []string{"P"}, Reference: "3546900", Strength: order.StrengthModification},
		{ID: "authorisation", At: epoch.Add(time.Hour), Payment: []string{"P"}, Reference: "ord_ref_1", Strength: order.StrengthPayment},
	}
	permute(events, func(events []order.Event) {
		l := order.NewLedger()
		for _, e := range events {
			l.JoinEvent(e)
		}
		require.Equal(t, "ord_ref_1", l.Link.Ref)
	})
}

// Pending, then paid: fulfils an order that the merchant has canceled.
func TestHole31MoneyAfterCancel(t *testing.T) {
	t.Parallel()
	o := registered(total)
	o.Canceled = true
	require.Equal(t, order.StateCanceled, o.View().State)
	join(o, "A", capturedTotal(total, 0))
	v := o.View()
	require.Equal(t, order.WantWait, v.Want)
	require.True(t, v.Flags.Has(order.FlagPaidAfterCancel))

	free := registered(0)
	require.Equal(t, order.StatePaid, free.View().State)
	free.Canceled = true
	require.Equal(t, order.StateCanceled, free.View().State)
	require.Equal(t, order.EffectNone, owed(free.View()))
}

// A table of (from, to) alone refuses nothing, because every pair is reachable: the cause must be part of it.
func TestHole32MovesHaveCauses(t *testing.T) {
	t.Parallel()
	every := ^order.CauseLink
	for _, from := range order.States() {
		for _, to := range order.States() {
			require.False(t, order.Unexpected(from, to, every), "%s to %s", from, to)
		}
	}
	require.True(t, order.Unexpected(order.StatePaid, order.StateFailed, order.CauseClosed))
	require.False(t, order.Unexpected(order.StatePaid, order.StateCanceled, order.CauseClosed|order.CauseCaptureFailed))
}

// A capture that is ok without a number ("all" had failed before, then it was recaptured) makes the whole payment
// unknown: takes a paid order to pending. Found by enumerating the moves.
func TestHole33AmountUnknownTakesNothingAway(t *testing.T) {
	t.Parallel()
	v := folded(total, capture("c", order.StatusOK, total, 0), capture("x", order.StatusFailed, all, 1),
		capture("x", order.StatusOK, 0, 2))
	require.Equal(t, order.StatePaid, v.State)
	require.Equal(t, order.FlagAmountUnknown, v.Flags)
}

// A gateway's own amount of 0 (a card was only verified) registers a free order: shipped for nothing.
func TestHole34VerificationRegistersNoFreeOrder(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	l.JoinEvent(order.Event{
		ID: "1", Payment: []string{"A"}, Facts: []order.Fact{authorized(0), phase(order.StatusAuthorized, 0)},
		Own: &order.Amount{Currency: "EUR"},
	})
	v := (&order.Order{Create: true, Payments: map[string]*order.Ledger{"A": l}}).View()
	require.False(t, v.Registered)
	require.Equal(t, order.WantWait, v.Want)
}

// The amount of a test payment registers an order on a live source.
func TestHole35MisfitRegistersNoOrder(t *testing.T) {
	t.Parallel()
	l := order.NewLedger()
	f := capturedTotal(total, 0)
	f.Misfit = order.MisfitMode
	l.JoinEvent(order.Event{
		ID: "1", Payment: []string{"A"}, Reference: "o1", Strength: order.StrengthPayment, Facts: []order.Fact{f},
		Own: &order.Amount{Minor: total, Currency: "EUR"},
	})
	v := (&order.Order{Create: true, Payments: map[string]*order.Ledger{"A": l}}).View()
	require.False(t, v.Registered)
	require.Equal(t, order.FlagUnregistered|order.FlagModeMismatch, v.Flags)
	require.Equal(t, "o1", l.Link.Ref, "so that the flag is seen at the order")
}
