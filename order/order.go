// Package order decides what an order is and what its merchant must be told, from facts about its payments.
//
// Facts of one payment join into a [Ledger]: every field of it is a join (commutative, associative, idempotent), so
// the order in which facts arrive, how often, and in which batches can never matter. An [Order] is the ledgers of its
// payments and what the merchant said itself; its [View] (state, flags, sums, want) is a pure function of that.
//
// What the merchant must do follows by level, not by edge: [Next] compares what it was told with what it should do now.
// A [Book] keeps the one effect that is owed at a time, through claims, lost answers, refusals and retries.
//
// The package does no I/O and reads no clock: times are handed in. Everything in it is a value or belongs to the
// caller; nothing is safe for concurrent use.
//
// # What the merchant promises
//
// A call carries a key (order, version and effect of the asking row, the same for every attempt), the version, and what
// the merchant had been told before it. Delivery is at least once, and a call may arrive long after it was given up.
// Under four rules every such history ends right:
//
//  1. A key that was seen before: answer 2xx and do nothing.
//  2. A version lower than the newest one seen for that order: answer 2xx and do nothing.
//  3. Revoke of something that was never fulfilled: answer 2xx and do nothing (but remember the version).
//  4. Release after held: lift the hold, a fulfil follows. Release after revoked: deliver after all, also if no fulfil
//     ever arrived.
//
// # What stays open
//
// Between the claim of a fulfil and its arrival the money may go: it is followed by a revoke, it cannot be prevented.
// A call without an answer, and also one that was refused, may have been done: a revoke may reach a merchant that
// never delivered. A dispute or a raised total after the fulfil does not take it back. A gateway that tells refunds as
// totals only, and failed ones by id only, under-reports them: one that gives failures by id must give successes by id.
package order

// State is what an order is, in one word. The zero value is no state: what an order came from when it was made.
type State string

// The states of an order. "Kept" is what was captured and neither refunded nor lost. Where the conditions of several
// hold, the first in this sequence is the order's state: disputed, paid, charged_back, refunded, partially_refunded,
// partially_paid, canceled (by the merchant), authorized, then failed, canceled and expired, and pending if none does.
const (
	StatePending           State = "pending"            // none of the others
	StateAuthorized        State = "authorized"         // the total may be captured
	StatePartiallyPaid     State = "partially_paid"     // something is kept, and less than the total was captured
	StatePaid              State = "paid"               // the total is kept
	StatePartiallyRefunded State = "partially_refunded" // the total was captured, and some of it is kept
	StateRefunded          State = "refunded"           // something was captured, and nothing is kept
	StateDisputed          State = "disputed"           // to lose the open disputes would leave the order short
	StateChargedBack       State = "charged_back"       // as refunded, and some of it was lost
	StateFailed            State = "failed"             // every payment is over without money, and the last one failed
	StateCanceled          State = "canceled"           // the last one was canceled; or the merchant canceled the order
	StateExpired           State = "expired"            // the last one expired
)

// States returns every state, in the order in which documents and tables list them.
func States() []State {
	return []State{
		StatePending, StateAuthorized, StatePartiallyPaid, StatePaid, StatePartiallyRefunded, StateRefunded,
		StateDisputed, StateChargedBack, StateFailed, StateCanceled, StateExpired,
	}
}

// Want is what the merchant should do now.
type Want string

// What a merchant should do. A stub, and an order that the merchant canceled, never go or pause.
const (
	WantWait  Want = "wait"  // nothing to say
	WantGo    Want = "go"    // deliver: paid; or partially refunded, and nothing was lost
	WantPause Want = "pause" // do not start to deliver, what was delivered stays: disputed in full, or lost in part
	WantStop  Want = "stop"  // the money was here and is gone: take it back
)

// Told is what the merchant was told, or may have been told: a call whose answer is unknown counts as soon as the
// opposite of it is owed.
type Told string

// What a merchant may have been told.
const (
	ToldNothing   Told = "nothing"
	ToldHeld      Told = "held"
	ToldFulfilled Told = "fulfilled"
	ToldRevoked   Told = "revoked"
)

// Effect is one thing to tell the merchant. The zero value is none.
type Effect string

// The effects.
const (
	EffectNone    Effect = ""
	EffectFulfil  Effect = "fulfil"
	EffectHold    Effect = "hold"
	EffectRelease Effect = "release"
	EffectRevoke  Effect = "revoke"
)

// EffectState is how far an effect has come. The zero value belongs to a row without an effect.
type EffectState string

// The states of an effect. Open, claimed and dead ones are live, and an order has at most one live effect.
const (
	EffectOpen     EffectState = "open"     // to be called; or parked, while it is not wanted
	EffectClaimed  EffectState = "claimed"  // a call is out
	EffectDone     EffectState = "done"     // the merchant confirmed it
	EffectCanceled EffectState = "canceled" // no longer wanted, and never tried
	EffectAssumed  EffectState = "assumed"  // tried, never confirmed, and its opposite is owed: it counts as told
	EffectDead     EffectState = "dead"     // given up until a person retries it
)

// Live reports whether an effect in this state is the one its order owes.
func (s EffectState) Live() bool { return s == EffectOpen || s == EffectClaimed || s == EffectDead }

// Next returns the one effect that is owed to a merchant that was told t and should do w.
func Next(t Told, w Want) Effect {
	switch {
	case w == WantGo && t == ToldNothing:
		return EffectFulfil
	case w == WantGo && (t == ToldHeld || t == ToldRevoked):
		return EffectRelease
	case w == WantPause && t == ToldNothing:
		return EffectHold
	case w == WantStop && t == ToldFulfilled:
		return EffectRevoke
	}
	return EffectNone
}

// After returns what a merchant that was told t knows once e has reached it. A release of a hold leads back to nothing
// (the fulfil follows as an effect of its own), a release of a revocation to fulfilled.
func After(t Told, e Effect) Told {
	switch e {
	case EffectFulfil:
		return ToldFulfilled
	case EffectHold:
		return ToldHeld
	case EffectRevoke:
		return ToldRevoked
	case EffectRelease:
		if t == ToldHeld {
			return ToldNothing
		}
		return ToldFulfilled
	}
	return t
}
