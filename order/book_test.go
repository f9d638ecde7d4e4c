package order_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestNewOrderBeginsAtVersionOne(t *testing.T) {
	t.Parallel()
	b := order.NewBook(0, order.ToldNothing, order.View{}, 0, nil)
	v := stub().View()
	row := b.Step("created", v, epoch)
	require.Equal(t, &order.Row{Version: 1, To: order.StatePending, Cause: "created"}, row)
	require.Equal(t, []*order.Row{row}, b.New())
	require.False(t, b.Clean())
	require.Nil(t, b.Step("again", v, epoch), "the same view, and nothing owed")
}

func TestStepAppendsARowForWhatChanged(t *testing.T) {
	t.Parallel()
	o := registered(total)
	b := order.NewBook(4, order.ToldNothing, o.View(), 0, nil)

	join(o, "A", capturedTotal(1000, 0))
	row := b.Step("first", o.View(), epoch)
	require.Equal(t, []order.State{order.StatePending, order.StatePartiallyPaid}, []order.State{row.From, row.To})
	join(o, "A", capturedTotal(2000, 0))
	row = b.Step("second", o.View(), epoch)
	require.Equal(t, 6, row.Version)
	require.Equal(t, row.From, row.To, "only a sum changed")
	o.Marks |= order.FlagExpiredUnpaid
	require.NotNil(t, b.Step("marked", o.View(), epoch), "only a flag changed")

	join(o, "A", paid)
	row = b.Step("paid", o.View(), epoch)
	require.Equal(t, order.EffectFulfil, row.Effect)
	require.Equal(t, order.EffectOpen, row.EffectState)
	require.Equal(t, epoch, row.NextAt)
	require.Same(t, row, b.Open)
}

// A book that is opened after the merchant was told something else than it was once asked for: an effect without a move.
func TestStepAsksInARowOfItsOwn(t *testing.T) {
	t.Parallel()
	v := folded(total, paid)
	b := order.NewBook(7, order.ToldNothing, v, 3, nil)
	row := b.Step("repaired", v, epoch)
	require.Equal(t, 8, row.Version)
	require.Equal(t, []order.State{order.StatePaid, order.StatePaid}, []order.State{row.From, row.To})
	require.Equal(t, order.EffectFulfil, row.Effect)
}

// owing is a book whose merchant is owed a fulfil, as it is read from a table.
func owing(r order.Row) (*order.Book, *order.Row) {
	r.Version, r.Effect, r.After = 2, order.EffectFulfil, order.ToldNothing
	b := order.NewBook(2, order.ToldNothing, folded(total, paid), 5, &r)
	return b, &r
}

func TestClaim(t *testing.T) {
	t.Parallel()
	b, row := owing(order.Row{EffectState: order.EffectOpen, NextAt: epoch})
	require.Equal(t, epoch, b.Due())
	require.Nil(t, b.Claim(epoch.Add(-time.Nanosecond), lease), "not due yet")
	require.True(t, b.Clean())

	require.Same(t, row, b.Claim(epoch, lease))
	require.EqualValues(t, 6, row.Fence)
	require.EqualValues(t, 6, b.Fence)
	require.Equal(t, 1, row.Attempts)
	require.True(t, row.Tried)
	require.Equal(t, epoch.Add(lease), row.ClaimedUntil)
	require.Equal(t, epoch.Add(lease), b.Due())
	closed, reopened := b.Changed()
	require.Empty(t, closed)
	require.Equal(t, []*order.Row{row}, reopened)

	require.Nil(t, b.Claim(epoch.Add(time.Hour), lease), "claimed, even if the lease is over: expire first")
}

func TestClaimLeavesWhatIsNotOwed(t *testing.T) {
	t.Parallel()
	b := order.NewBook(1, order.ToldFulfilled, folded(total, paid), 0, nil)
	require.Nil(t, b.Claim(epoch, lease))
	require.Zero(t, b.Due())

	b, _ = owing(order.Row{EffectState: order.EffectDead, Tried: true, Attempts: 12})
	require.Nil(t, b.Claim(epoch, lease))
	require.Zero(t, b.Due())
}

func TestSettle(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Hour)
	claimed := order.Row{EffectState: order.EffectClaimed, Fence: 5, Tried: true, Attempts: 2, ClaimedUntil: later, LastError: "503"}

	t.Run("Done", func(t *testing.T) {
		t.Parallel()
		b, row := owing(claimed)
		require.True(t, b.Settle(2, 5, order.Result{Done: true}, epoch))
		require.Equal(t, order.EffectDone, row.EffectState)
		require.Equal(t, order.ToldFulfilled, b.Told)
		require.Zero(t, row.ClaimedUntil)
		require.Nil(t, b.Open)
		closed, reopened := b.Changed()
		require.Equal(t, []*order.Row{row}, closed)
		require.Empty(t, reopened)
		require.False(t, b.Clean())
	})
	t.Run("Again", func(t *testing.T) {
		t.Parallel()
		b, row := owing(claimed)
		require.True(t, b.Settle(2, 5, order.Result{Next: later, Err: "timeout"}, epoch))
		require.Equal(t, order.EffectOpen, row.EffectState)
		require.Equal(t, later, b.Due())
		require.Equal(t, "timeout", row.LastError)
		require.Nil(t, b.Claim(epoch, lease))
		require.Equal(t, 3, b.Claim(later, lease).Attempts)
	})
	t.Run("DeadAtOnce", func(t *testing.T) {
		t.Parallel()
		b, row := owing(claimed)
		require.True(t, b.Settle(2, 5, order.Result{Dead: true, Next: later, Err: "410"}, epoch))
		require.Equal(t, order.EffectDead, row.EffectState)
		require.Zero(t, row.NextAt)
		require.Zero(t, b.Due())
	})
	t.Run("DeadAfterTwelve", func(t *testing.T) {
		t.Parallel()
		twelfth := claimed
		twelfth.Attempts = order.DefaultMaxAttempts
		b, row := owing(twelfth)
		require.True(t, b.Settle(2, 5, order.Result{Next: later}, epoch))
		require.Equal(t, order.EffectDead, row.EffectState)
	})
	t.Run("DeadAfterMaxAttempts", func(t *testing.T) {
		t.Parallel()
		b, row := owing(claimed)
		b.MaxAttempts = 2
		require.True(t, b.Settle(2, 5, order.Result{Next: later}, epoch))
		require.Equal(t, order.EffectDead, row.EffectState)
	})
	t.Run("Stale", func(t *testing.T) {
		t.Parallel()
		for _, late := range []struct {
			version int
			fence   int64
		}{{2, 4}, {2, 6}, {1, 5}} {
			b, _ := owing(claimed)
			require.False(t, b.Settle(late.version, late.fence, order.Result{Done: true}, epoch))
			require.True(t, b.Clean())
		}
		b, _ := owing(order.Row{EffectState: order.EffectOpen, Fence: 5, NextAt: epoch})
		require.False(t, b.Settle(2, 5, order.Result{Done: true}, epoch), "not claimed")
		b = order.NewBook(2, order.ToldFulfilled, folded(total, paid), 5, nil)
		require.False(t, b.Settle(2, 5, order.Result{Done: true}, epoch), "nothing is owed")
	})
	t.Run("AsksForTheNextOne", func(t *testing.T) {
		t.Parallel()
		b, _ := owing(claimed)
		b.Step("gone", folded(total, paid, gone), epoch)
		require.Equal(t, order.EffectClaimed, b.Open.EffectState, "a call is out: nothing is planned around it")
		require.True(t, b.Settle(2, 5, order.Result{Done: true}, epoch))
		require.Equal(t, order.EffectRevoke, b.Open.Effect)
		require.Equal(t, 4, b.Open.Version)
		require.Equal(t, order.CauseSettle, b.Open.Cause)
		require.NotNil(t, b.Claim(epoch, lease), "in the same transaction")
	})
}

func TestExpire(t *testing.T) {
	t.Parallel()
	until := epoch.Add(lease)
	claimed := order.Row{EffectState: order.EffectClaimed, Fence: 5, Tried: true, Attempts: 2, ClaimedUntil: until}

	b, row := owing(claimed)
	require.False(t, b.Expire(until.Add(-time.Nanosecond)))
	require.True(t, b.Clean())
	require.True(t, b.Expire(until))
	require.Equal(t, order.EffectOpen, row.EffectState)
	require.Equal(t, until, b.Due())
	require.Equal(t, "claim expired", row.LastError)
	require.False(t, b.Expire(until), "once")
	require.False(t, b.Settle(2, 5, order.Result{Done: true}, until), "its result is late")

	b, row = owing(claimed)
	b.MaxAttempts = 2
	require.True(t, b.Expire(until))
	require.Equal(t, order.EffectDead, row.EffectState)

	// What is wanted has moved meanwhile: planned before anything is claimed again.
	b, row = owing(claimed)
	b.Step("gone", folded(total, paid, gone), epoch)
	require.True(t, b.Expire(until))
	require.Equal(t, order.EffectAssumed, row.EffectState)
	require.Equal(t, order.EffectRevoke, b.Claim(until, lease).Effect)
}

func TestRetry(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Hour)

	t.Run("Dead", func(t *testing.T) {
		t.Parallel()
		b, row := owing(order.Row{EffectState: order.EffectDead, Tried: true, Attempts: 12, LastError: "410"})
		superseded, ok := b.Retry(epoch)
		require.Equal(t, []bool{false, true}, []bool{superseded, ok})
		require.Equal(t, order.EffectOpen, row.EffectState)
		require.Zero(t, row.Attempts, "all its attempts again")
		require.Equal(t, epoch, b.Due())
	})
	t.Run("Waiting", func(t *testing.T) {
		t.Parallel()
		b, row := owing(order.Row{EffectState: order.EffectOpen, Tried: true, Attempts: 3, NextAt: later})
		_, ok := b.Retry(epoch)
		require.True(t, ok)
		require.Equal(t, epoch, b.Due())
		require.Equal(t, 3, row.Attempts)
	})
	t.Run("Parked", func(t *testing.T) {
		t.Parallel()
		b, _ := owing(order.Row{EffectState: order.EffectDead, Tried: true, Attempts: 12})
		b.Step("disputed", folded(total, paid, disputed), epoch)
		superseded, ok := b.Retry(epoch)
		require.Equal(t, []bool{true, false}, []bool{superseded, ok})
		require.Equal(t, order.EffectDead, b.Open.EffectState, "left as it is")
	})
	t.Run("NothingToRetry", func(t *testing.T) {
		t.Parallel()
		b := order.NewBook(1, order.ToldFulfilled, folded(total, paid), 0, nil)
		superseded, ok := b.Retry(epoch)
		require.Equal(t, []bool{false, false}, []bool{superseded, ok})
		b, _ = owing(order.Row{EffectState: order.EffectClaimed, Fence: 5, Tried: true, ClaimedUntil: later})
		superseded, ok = b.Retry(epoch)
		require.Equal(t, []bool{false, false}, []bool{superseded, ok})
		require.True(t, b.Clean())
	})
}

// A backoff belongs to the want under which it began.
func TestWantedAgainIsDueAtOnce(t *testing.T) {
	t.Parallel()
	later := epoch.Add(time.Hour)
	row := order.Row{EffectState: order.EffectOpen, Tried: true, Attempts: 3, NextAt: later}

	b, _ := owing(row)
	b.Step("more", folded(total, paid, capturedTotal(total+1, 0)), epoch)
	require.Equal(t, later, b.Due(), "wanted all the time: the backoff stands")

	b, parked := owing(row)
	b.Step("disputed", folded(total, paid, disputed), epoch)
	require.Equal(t, later, parked.NextAt)
	closed, reopened := b.Changed()
	require.Empty(t, append(closed, reopened...), "parking writes nothing")

	// Also if it was parked in another transaction.
	again := order.NewBook(b.Version, b.Told, b.View, b.Fence, parked)
	again.Step("won", folded(total, paid, disputed, won), epoch)
	require.Equal(t, epoch, again.Due())

	// A dead one stays dead: only a person retries it.
	b, _ = owing(order.Row{EffectState: order.EffectDead, Tried: true, Attempts: 12})
	b.Step("disputed", folded(total, paid, disputed), epoch)
	b.Step("won", folded(total, paid, disputed, won), epoch)
	require.Equal(t, order.EffectDead, b.Open.EffectState)
	require.Zero(t, b.Due())
}

// A dead effect blocks only itself.
func TestDeadEffectIsUndone(t *testing.T) {
	t.Parallel()
	b, row := owing(order.Row{EffectState: order.EffectDead, Tried: true, Attempts: 12})
	b.Step("gone", folded(total, paid, gone), epoch)
	require.Equal(t, order.EffectAssumed, row.EffectState)
	require.NotEmpty(t, row.Why)
	require.Equal(t, order.EffectRevoke, b.Claim(epoch, lease).Effect)
}

// The row that is undone is known to a later transaction through Undoes, and comes back with its key, due at once.
func TestUndoneRowComesBackInAnotherTransaction(t *testing.T) {
	t.Parallel()
	b, fulfil := owing(order.Row{EffectState: order.EffectOpen, Tried: true, Attempts: 3, NextAt: epoch.Add(time.Hour)})
	revoke := b.Step("gone", folded(total, paid, gone), epoch)
	require.Same(t, fulfil, revoke.Undoes)

	later := epoch.Add(time.Minute)
	b = order.NewBook(b.Version, b.Told, b.View, b.Fence, revoke)
	b.Step("back", folded(total, paid, gone, backAgain), later)
	closed, reopened := b.Changed()
	require.Equal(t, []*order.Row{revoke}, closed)
	require.Equal(t, order.EffectCanceled, revoke.EffectState)
	require.Equal(t, []*order.Row{fulfil}, reopened)
	require.Equal(t, order.EffectOpen, fulfil.EffectState)
	require.Empty(t, fulfil.Why)
	require.Equal(t, order.ToldNothing, b.Told)
	require.Equal(t, later, b.Due())
	require.Equal(t, 4, b.Claim(later, lease).Attempts)
}

func TestNextAndAfter(t *testing.T) {
	t.Parallel()
	const none = order.EffectNone
	for told, next := range map[order.Told]map[order.Want]order.Effect{
		order.ToldNothing:   {order.WantGo: order.EffectFulfil, order.WantPause: order.EffectHold, order.WantStop: none, order.WantWait: none},
		order.ToldHeld:      {order.WantGo: order.EffectRelease, order.WantPause: none, order.WantStop: none, order.WantWait: none},
		order.ToldFulfilled: {order.WantGo: none, order.WantPause: none, order.WantStop: order.EffectRevoke, order.WantWait: none},
		order.ToldRevoked:   {order.WantGo: order.EffectRelease, order.WantPause: none, order.WantStop: none, order.WantWait: none},
	} {
		for want, effect := range next {
			require.Equal(t, effect, order.Next(told, want), "%s, %s", told, want)
			require.Equal(t, effect == none, order.After(told, effect) == told)
		}
	}
	require.Equal(t, order.ToldNothing, order.After(order.ToldHeld, order.EffectRelease))
	require.Equal(t, order.ToldFulfilled, order.After(order.ToldRevoked, order.EffectRelease))
}

// What was delivered for an order of whose money nothing is left is taken back, also where by its payments none was ever here: it was
// linked to another order, or what was free is not any more.
func TestWhatNobodyPaysForIsTakenBack(t *testing.T) {
	t.Parallel()
	nothing := registered(total).View()
	require.Equal(t, order.WantWait, nothing.Want)

	b := order.NewBook(2, order.ToldFulfilled, folded(total, paid), 0, nil)
	row := b.Step("linked", nothing, epoch)
	require.Equal(t, order.EffectRevoke, row.Effect)
	require.Nil(t, b.Step("again", nothing, epoch), "once")

	// It was asked for, and may have been done: the same.
	r := order.Row{Version: 2, Effect: order.EffectFulfil, EffectState: order.EffectOpen, After: order.ToldNothing, Tried: true, NextAt: epoch}
	b = order.NewBook(2, order.ToldNothing, folded(total, paid), 1, &r)
	row = b.Step("linked", nothing, epoch)
	require.Equal(t, []any{order.EffectRevoke, order.EffectAssumed, order.ToldFulfilled}, []any{row.Effect, r.EffectState, b.Told})

	// It is being asked for while it goes: what comes of that plans.
	r = order.Row{Version: 2, Effect: order.EffectFulfil, EffectState: order.EffectOpen, After: order.ToldNothing, NextAt: epoch}
	b = order.NewBook(2, order.ToldNothing, folded(total, paid), 1, &r)
	require.NotNil(t, b.Claim(epoch, time.Minute))
	b.Step("linked", nothing, epoch)
	require.True(t, b.Settle(2, 2, order.Result{Done: true}, epoch))
	require.Equal(t, order.EffectRevoke, b.Open.Effect)

	// Never tried, it is canceled, and nothing is owed. And money that comes after all releases.
	r = order.Row{Version: 2, Effect: order.EffectFulfil, EffectState: order.EffectOpen, After: order.ToldNothing, NextAt: epoch}
	b = order.NewBook(2, order.ToldNothing, folded(total, paid), 1, &r)
	b.Step("linked", nothing, epoch)
	require.Nil(t, b.Open)
	b = order.NewBook(4, order.ToldRevoked, nothing, 1, nil)
	require.Equal(t, order.EffectRelease, b.Step("paid", folded(total, paid), epoch).Effect)

	// As long as something is kept, what was delivered stays.
	b = order.NewBook(2, order.ToldFulfilled, folded(total, paid), 0, nil)
	require.Empty(t, b.Step("amended", folded(total+1, paid), epoch).Effect)
}
