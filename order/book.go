package order

import "time"

// DefaultMaxAttempts is after how many calls without success an effect is dead, where nothing else is said.
const DefaultMaxAttempts = 12

// The causes of rows that a [Book] appends by itself.
const (
	CauseSettle = "settle" // the result of a call made another effect due
	CauseExpire = "expire" // so did a claim that nobody settled
	CauseRetry  = "retry"  // so did a person's wish to retry
)

// Row is one version of an order: a move from one state to another (or to the same one, where only sums or flags
// changed) and the effect it asks for, if any.
type Row struct {
	Version  int
	From, To State
	Cause    string

	Effect      Effect
	EffectState EffectState
	After       Told // what the merchant had been told before this effect

	Attempts int   // claims since the effect was asked for, or since a person revived it
	Tried    bool  // claimed once: the merchant may have done it, whatever came back
	Fence    int64 // of its last claim; a result that carries another one is late

	ClaimedUntil time.Time // set exactly while claimed
	NextAt       time.Time // set exactly while open: when it may be claimed, if it is wanted

	// Undoes is the doubtful row whose opposite this one is, until this one is tried. Should it no longer be wanted
	// before that, the doubtful one is open again.
	Undoes *Row

	LastError string // of the last call without success
	Why       string // why the effect was canceled or assumed
}

// Result is what came of a call.
type Result struct {
	Done bool      // the merchant confirmed the effect
	Dead bool      // it never will: give up
	Next time.Time // otherwise: when to try again
	Err  string    // why not
}

// Book is what an order owes its merchant: the engine that plans, claims and settles effects. Every method is meant to
// run under the lock of the order's row; now is the database's time, read after the lock was granted.
type Book struct {
	Version int
	Told    Told
	View    View
	Open    *Row // the live effect's row, if there is one
	Fence   int64

	MaxAttempts int // calls until an effect is dead; 0: [DefaultMaxAttempts]

	parked bool // the open effect is not wanted at present
	rows   []*Row
	was    snapshot
}

// snapshot is what a Book was opened with.
type snapshot struct {
	version      int
	told         Told
	fence        int64
	open, undoes *Row // the caller's rows
	openCopy     Row
	undoesCopy   Row
}

// NewBook opens the book of an order as it was read: its version, what the merchant was told, what the order is, the
// last fence, and the row of the live effect (nil: none), with the row that it undoes where there is one. The book
// keeps and changes both rows.
//
// A new order's book is NewBook(0, ToldNothing, View{}, 0, nil); its first Step makes version 1.
func NewBook(version int, told Told, view View, fence int64, open *Row) *Book {
	b := &Book{Version: version, Told: told, View: view, Open: open, Fence: fence}
	b.was = snapshot{version: version, told: told, fence: fence, open: open}
	if open != nil {
		b.was.openCopy = *open
		b.parked = open.EffectState != EffectClaimed && !b.wanted(open)
		if open.Undoes != nil {
			b.was.undoes, b.was.undoesCopy = open.Undoes, *open.Undoes
		}
	}
	return b
}

// Step moves the order to v and plans. It returns the row that it appended: of the move, or of an effect that is asked
// for without one; nil if v is what the order was and nothing new is owed.
func (b *Book) Step(cause string, v View, now time.Time) *Row {
	var row *Row
	v.Want = v.Wanted(b.Told)
	if v != b.View {
		from := b.View.State
		b.View = v
		row = b.append(cause, from)
	}
	return b.plan(cause, row, now)
}

// Note is [Book.Step] where something changed that no view shows: it appends a row in any case.
func (b *Book) Note(cause string, v View, now time.Time) *Row {
	from := b.View.State
	v.Want = v.Wanted(b.Told)
	b.View = v
	return b.plan(cause, b.append(cause, from), now)
}

// Claim takes the live effect for a call that must have come back before the lease ends, and returns its row; nil if
// nothing can be claimed now: nothing is owed, it is claimed already, dead, parked, or not due yet. Whoever claims
// expires first: see [Book.Expire].
func (b *Book) Claim(now time.Time, lease time.Duration) *Row {
	e := b.Open
	if e == nil || e.EffectState != EffectOpen || !b.wanted(e) || e.NextAt.After(now) {
		return nil
	}
	b.Fence++
	e.EffectState, e.Fence = EffectClaimed, b.Fence
	e.ClaimedUntil, e.NextAt = now.Add(lease), time.Time{}
	e.Attempts++
	e.Tried, e.Undoes = true, nil // from here on it is done, or assumed and undone, never canceled
	return e
}

// Expire gives a claim back whose lease has ended, plans again (what is wanted may have moved), and reports whether
// there was one.
func (b *Book) Expire(now time.Time) bool {
	e := b.Open
	if e == nil || e.EffectState != EffectClaimed || e.ClaimedUntil.After(now) {
		return false
	}
	b.giveBack(e, Result{Next: now, Err: "claim expired"})
	b.plan(CauseExpire, nil, now)
	return true
}

// Settle records what came of the call of the claim with this version and fence, and plans again. It reports false,
// and changes nothing, if that claim is not the one that holds: the result is late.
func (b *Book) Settle(version int, fence int64, r Result, now time.Time) bool {
	e := b.Open
	if e == nil || e.EffectState != EffectClaimed || e.Version != version || e.Fence != fence {
		return false
	}
	if r.Done {
		b.close(e, EffectDone, "")
		b.tell(After(b.Told, e.Effect))
	} else {
		b.giveBack(e, r)
	}
	b.plan(CauseSettle, nil, now)
	return true
}

// tell notes what the merchant knows now, on which what is wanted may depend.
func (b *Book) tell(t Told) {
	b.Told = t
	b.View.Want = b.View.Wanted(t)
}

// Retry makes a dead or waiting effect claimable at once, because a person says so; a dead one gets all its attempts
// again. If the effect is not wanted any more, it reports superseded and leaves it. If there is none, or a call is out,
// it reports neither.
func (b *Book) Retry(now time.Time) (superseded, ok bool) {
	e := b.Open
	if e == nil || e.EffectState == EffectClaimed {
		return false, false
	}
	b.plan(CauseRetry, nil, now)
	if b.Open != e || !b.wanted(e) {
		return true, false
	}
	if e.EffectState == EffectDead {
		e.EffectState, e.Attempts = EffectOpen, 0
	}
	e.NextAt = now
	return false, true
}

// Due returns when the order must be looked at: the end of a claim, or the time at which the open effect may be
// claimed. It is zero if nothing will happen by itself: nothing is owed, or what is open is dead or parked.
func (b *Book) Due() time.Time {
	switch e := b.Open; {
	case e == nil:
		return time.Time{}
	case e.EffectState == EffectClaimed:
		return e.ClaimedUntil
	case e.EffectState == EffectOpen && b.wanted(e):
		return e.NextAt
	}
	return time.Time{}
}

// New returns the rows that were appended since NewBook, by version. At most one of them holds a live effect.
func (b *Book) New() []*Row { return b.rows }

// Changed returns the rows that NewBook was given and that changed since: those whose effect is over (done, canceled,
// assumed), and those whose effect is live (open, claimed, dead). A table that allows one live effect per order wants
// them written in this sequence: closed, reopened, [Book.New].
func (b *Book) Changed() (closed, reopened []*Row) {
	for _, k := range []struct {
		row *Row
		was Row
	}{{b.was.open, b.was.openCopy}, {b.was.undoes, b.was.undoesCopy}} {
		switch {
		case k.row == nil || *k.row == k.was:
		case k.row.EffectState.Live():
			reopened = append(reopened, k.row)
		default:
			closed = append(closed, k.row)
		}
	}
	return closed, reopened
}

// Clean reports whether nothing has changed since NewBook.
func (b *Book) Clean() bool {
	closed, reopened := b.Changed()
	return len(b.rows)+len(closed)+len(reopened) == 0 &&
		b.Version == b.was.version && b.Told == b.was.told && b.Fence == b.was.fence
}
