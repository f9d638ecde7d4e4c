package order

import "time"

// plan is the only place where effects are asked for or taken back. It runs after everything that changes what the
// order is or what the merchant was told, and finds the live effect in one of these cases:
//
//	claimed: a call is out                        nothing; what comes of it plans again
//	it is the one that is owed                    keeps it
//	not wanted, and never tried                   canceled; if it was to undo a doubtful one, that one is open again
//	not wanted, tried, and nothing follows it     parked: stays, is not claimed; the same row and key if wanted again
//	not wanted, tried, and its opposite is owed   assumed: it counts as told; the opposite is asked for
//	there is none                                 asks for the one that is owed
//
// row is the row of the move that led here (nil: none), in which an effect may be asked for. plan returns it, or the
// row that it had to append.
func (b *Book) plan(cause string, row *Row, now time.Time) *Row {
	for b.Open != nil {
		e := b.Open
		switch {
		case e.EffectState == EffectClaimed:
			return row
		case b.wanted(e):
			if b.parked && e.EffectState == EffectOpen {
				e.NextAt = now // wanted again: its backoff belongs to another time
			}
			b.parked = false
			return row
		case e.Tried && b.follows(e) == EffectNone:
			b.parked = true
			return row
		case e.Tried:
			b.close(e, EffectAssumed, "it may have reached the merchant, and the order is "+string(b.View.State))
			b.tell(After(b.Told, e.Effect))
			return b.ask(cause, row, e, now)
		}
		b.close(e, EffectCanceled, "never tried, and the order is "+string(b.View.State))
		if p := e.Undoes; p != nil {
			p.EffectState, p.NextAt, p.Why = EffectOpen, now, ""
			b.tell(p.After)
			b.Open = p
		}
	}
	return b.ask(cause, row, nil, now)
}

// ask asks for the effect that is owed, if one is.
func (b *Book) ask(cause string, row, undoes *Row, now time.Time) *Row {
	owed := Next(b.Told, b.View.Want)
	if owed == EffectNone {
		return row
	}
	if row == nil {
		row = b.append(cause, b.View.State)
	}
	row.Effect, row.EffectState, row.After = owed, EffectOpen, b.Told
	row.NextAt, row.Undoes = now, undoes
	b.Open = row
	return row
}

// append adds the order's next version.
func (b *Book) append(cause string, from State) *Row {
	b.Version++
	row := &Row{Version: b.Version, From: from, To: b.View.State, Cause: cause}
	b.rows = append(b.rows, row)
	return row
}

// follows is what would be owed if e had reached the merchant.
func (b *Book) follows(e *Row) Effect {
	t := After(b.Told, e.Effect)
	return Next(t, b.View.Wanted(t))
}

func (b *Book) wanted(e *Row) bool { return e.Effect == Next(b.Told, b.View.Want) }

// close ends e, the live effect.
func (b *Book) close(e *Row, s EffectState, why string) {
	e.EffectState, e.Why = s, why
	e.ClaimedUntil, e.NextAt = time.Time{}, time.Time{}
	b.Open, b.parked = nil, false
}

// giveBack ends the claim of e without success. A refusal, a time-out and a lapsed claim are all the same doubt.
func (b *Book) giveBack(e *Row, r Result) {
	most := b.MaxAttempts
	if most == 0 {
		most = DefaultMaxAttempts
	}
	e.EffectState, e.NextAt = EffectOpen, r.Next
	if r.Dead || e.Attempts >= most {
		e.EffectState, e.NextAt = EffectDead, time.Time{}
	}
	e.ClaimedUntil, e.LastError = time.Time{}, r.Err
}
