package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// desk is one order with its book and a merchant that keeps the contract.
type desk struct {
	t        *testing.T
	order    *order.Order
	book     *order.Book
	merchant merchant
	now      time.Time
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	o := registered(total)
	return &desk{
		t: t, order: o, now: epoch,
		book:     order.NewBook(1, order.ToldNothing, o.View(), 0, nil),
		merchant: merchant{versions: true, told: order.ToldNothing, seen: map[string]bool{}},
	}
}

func (d *desk) join(facts ...order.Fact) {
	join(d.order, "A", facts...)
	d.book.Step("facts", d.order.View(), d.now)
}

// claim takes what is owed, and checks that it is that.
func (d *desk) claim(e order.Effect) order.Row {
	d.t.Helper()
	r := d.book.Claim(d.now, lease)
	require.NotNil(d.t, r)
	require.Equal(d.t, e, r.Effect)
	return *r
}

// done, answerLost and requestLost are how a call may end.
func (d *desk) done(r order.Row) {
	d.t.Helper()
	d.merchant.receive(r)
	require.True(d.t, d.book.Settle(r.Version, r.Fence, order.Result{Done: true}, d.now))
}

func (d *desk) answerLost(r order.Row) {
	d.t.Helper()
	d.merchant.receive(r)
	d.requestLost(r)
}

func (d *desk) requestLost(r order.Row) {
	d.t.Helper()
	require.True(d.t, d.book.Settle(r.Version, r.Fence, order.Result{Next: d.now.Add(time.Minute), Err: "timeout"}, d.now))
}

// quiet checks that nothing will happen by itself, and what the merchant has done.
func (d *desk) quiet(told order.Told) {
	d.t.Helper()
	require.Zero(d.t, d.book.Due())
	require.Equal(d.t, told, d.merchant.told, "%v", d.merchant.log)
}

var (
	paid      = capturedTotal(total, 0)
	gone      = refund("r", order.StatusOK, total, 0)
	backAgain = refund("r", order.StatusFailed, total, 0)
	disputed  = dispute("d", order.StatusOpen, total, 1)
	won       = dispute("d", order.StatusWon, total, 2)
)

// A fence guards the row, not the merchant: the old request arrives after the revocation, and goods leave without money.
func TestHole15OldRequestAfterRevoke(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	stalled := d.claim(order.EffectFulfil)
	d.join(gone)
	d.now = d.now.Add(lease)
	require.True(t, d.book.Expire(d.now))
	d.done(d.claim(order.EffectRevoke))

	d.merchant.receive(stalled)
	require.False(t, d.book.Settle(stalled.Version, stalled.Fence, order.Result{Done: true}, d.now))
	d.quiet(order.ToldNothing)
}

// "Not wanted any more: canceled" of a call whose answer was lost: shipped, money gone, no revoke.
func TestHole16TriedIsNeverCanceled(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	d.answerLost(d.claim(order.EffectFulfil))
	d.join(gone)
	require.Equal(t, order.EffectAssumed, d.book.New()[0].EffectState)
	require.Equal(t, order.ToldFulfilled, d.book.Told)
	d.done(d.claim(order.EffectRevoke))
	d.quiet(order.ToldRevoked)
}

// A doubtful fulfil counts as told: never shipped, after a dispute that is won.
func TestHole17LostFulfilIsParked(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	r := d.claim(order.EffectFulfil)
	d.requestLost(r)
	d.join(disputed)
	require.Nil(t, d.book.Claim(d.now.Add(time.Hour), lease), "parked")
	require.Zero(t, d.book.Due())
	require.Equal(t, order.EffectOpen, d.book.Open.EffectState)

	d.join(won)
	require.Equal(t, d.now, d.book.Due(), "at once, whatever its backoff was")
	again := d.claim(order.EffectFulfil)
	require.Equal(t, r.Version, again.Version, "the same key")
	d.done(again)
	d.quiet(order.ToldFulfilled)
}

// Canceling the untried opposite leaves the doubtful one told: never shipped.
func TestHole18CanceledOppositeReopens(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	first := d.claim(order.EffectFulfil)
	d.requestLost(first)
	d.join(gone)
	require.Equal(t, order.EffectRevoke, d.book.Open.Effect)
	require.Equal(t, first.Version, d.book.Open.Undoes.Version)
	d.join(backAgain)
	again := d.claim(order.EffectFulfil)
	require.Equal(t, first.Version, again.Version)
	d.done(again)
	d.quiet(order.ToldFulfilled)
}

// Release restores what was revoked, and there was nothing: never shipped.
func TestHole19ReleaseAfterRevokeDelivers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	d.requestLost(d.claim(order.EffectFulfil))
	d.join(gone)
	d.done(d.claim(order.EffectRevoke)) // nothing to revoke: 2xx
	require.Equal(t, order.ToldNothing, d.merchant.told)
	d.join(backAgain)
	r := d.claim(order.EffectRelease)
	require.Equal(t, order.ToldRevoked, r.After)
	d.done(r)
	d.quiet(order.ToldFulfilled)
}

// Each edge asks for its own effect, and the next one cancels it: three rows cancel each other, never shipped.
func TestHole20OneEffectAtATime(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid)
	d.join(gone)
	d.join(backAgain)
	require.Equal(t, order.EffectFulfil, live(t, d.book))
	d.done(d.claim(order.EffectFulfil))
	d.quiet(order.ToldFulfilled)
}

// Hold, fulfil, release: the fulfil comes before the hold is lifted.
func TestHole21ReleaseBeforeFulfil(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.join(paid, disputed)
	d.done(d.claim(order.EffectHold))
	d.join(won)
	r := d.claim(order.EffectRelease)
	require.Equal(t, order.ToldHeld, r.After)
	d.done(r)
	d.done(d.claim(order.EffectFulfil))
	d.quiet(order.ToldFulfilled)
}
