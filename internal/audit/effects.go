package audit

import (
	"fmt"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// effects checks what the merchant was told and what is owed.
func (r *run) effects(o *store.AuditOrder) error {
	if !whole(o) {
		return nil // which effects there were cannot be told
	}
	var live []*store.AuditRow
	for i := range o.Rows {
		row := &o.Rows[i]
		if says := oddEffect(o, row); says != "" {
			d := ofOrder(EffectRow, o)
			d.Version, d.Says, d.Found = row.Version, says, effectText(row)
			if err := r.found(d); err != nil {
				return err
			}
		}
		if row.EffectState.Live() {
			live = append(live, row)
		}
	}
	told, odd := toldBy(o)
	if odd != nil {
		d := ofOrder(EffectTold, o)
		d.Version, d.Says = odd.Version, "It does not follow from what the merchant had been told before it."
		d.Found = fmt.Sprintf("%s after %s", odd.Effect, odd.After)
		return r.found(d)
	}
	if told != o.Told {
		d := ofOrder(EffectTold, o)
		d.Says, d.Expected, d.Found = "What the merchant was told is not what its settled effects lead to.", string(told), string(o.Told)
		return r.found(d) // what is owed follows from it
	}
	return r.owed(o, live)
}

// toldBy is what the merchant was told, going by the effects that were settled, one after another; odd is the first one of which that
// cannot be. Where versions are missing it is what is written.
func toldBy(o *store.AuditOrder) (told order.Told, odd *store.AuditRow) {
	if !whole(o) {
		return o.Told, nil
	}
	told = order.ToldNothing
	for i := range o.Rows {
		row := &o.Rows[i]
		if row.EffectState != order.EffectDone && row.EffectState != order.EffectAssumed {
			continue
		}
		if odd == nil && (row.After != told || !edge(told, row.Effect)) {
			odd = row
		}
		told = order.After(told, row.Effect)
	}
	return told, odd
}

// edge reports whether an effect can follow what a merchant was told.
func edge(t order.Told, e order.Effect) bool {
	for _, w := range []order.Want{order.WantGo, order.WantPause, order.WantStop} {
		if e != order.EffectNone && order.Next(t, w) == e {
			return true
		}
	}
	return false
}

func effectText(row *store.AuditRow) string {
	if row.Effect == order.EffectNone {
		return "no effect"
	}
	return fmt.Sprintf("%s, %s, after %s, %d attempts, fence %d", row.Effect, row.EffectState, row.After, row.Attempts, row.Fence)
}

// oddEffect says what of a row's effect cannot be so; empty: nothing.
func oddEffect(o *store.AuditOrder, row *store.AuditRow) string {
	over := row.EffectState == order.EffectDone || row.EffectState == order.EffectCanceled || row.EffectState == order.EffectAssumed
	switch {
	case row.Effect == order.EffectNone && (row.Tried || row.Attempts != 0 || row.Fence != 0 || row.After != "" || row.Undoes != 0 || row.Settled):
		return "It asks for nothing, and was tried or ended."
	case row.Effect == order.EffectNone:
		return ""
	case row.Settled != over:
		return "It has the time of an end and has not ended, or the other way round."
	case row.Tried != (row.Fence > 0), row.Attempts > 0 && !row.Tried, row.Attempts < 0:
		return "Whether it was tried, how often, and under which fence do not agree."
	case row.Fence > o.Fence:
		return "Its fence is above that of the order."
	case row.EffectState == order.EffectCanceled && row.Tried:
		return "It was canceled after it had been tried: the merchant may have done it."
	case !row.Tried && row.EffectState != order.EffectOpen && row.EffectState != order.EffectCanceled:
		return "It was never tried, and stands as if it had been."
	case (row.EffectState == order.EffectOpen) != !row.NextAt.IsZero():
		return "It is open and nobody knows when it is called next, or the other way round."
	case row.EffectState == order.EffectClaimed && row.Fence != o.Fence:
		return "It is claimed under a fence that is not the last one."
	case row.EffectState == order.EffectClaimed && row.Attempts == 0:
		return "It is claimed, and no attempt was counted."
	}
	return oddUndo(o, row)
}

// oddUndo says what is wrong with the effect that an effect is the opposite of.
func oddUndo(o *store.AuditOrder, row *store.AuditRow) string {
	if row.Undoes == 0 {
		return ""
	}
	if row.Tried {
		return "It was tried, and could still be taken back for another one."
	}
	if row.Undoes >= row.Version || row.Undoes < 1 || o.Rows[row.Undoes-1].Effect == order.EffectNone {
		return fmt.Sprintf("It undoes the effect of version %d, which has none.", row.Undoes)
	}
	if row.EffectState.Live() && o.Rows[row.Undoes-1].EffectState != order.EffectAssumed {
		return fmt.Sprintf("It undoes the effect of version %d, which nobody assumes was done.", row.Undoes)
	}
	return ""
}

// owed checks that what is owed is asked for, and nothing else.
func (r *run) owed(o *store.AuditOrder, live []*store.AuditRow) error {
	owed := order.Next(o.Told, o.View.Want)
	d := ofOrder(EffectOwed, o)
	d.Expected = string(owed)
	if len(live) > 1 {
		d.Says, d.Found = "Several effects of it are live.", fmt.Sprint(len(live))
		return r.found(d)
	}
	if len(live) == 0 {
		if owed == order.EffectNone {
			return nil
		}
		d.Says = fmt.Sprintf("The merchant was told %s and should %s, and nothing asks for what is owed.", o.Told, o.View.Want)
		return r.found(d)
	}
	e := live[0]
	d.Version, d.Found = e.Version, string(e.Effect)+" ("+string(e.EffectState)+")"
	after := order.After(o.Told, e.Effect)
	parked := e.Tried && order.Next(after, o.View.Wanted(after)) == order.EffectNone
	switch {
	case e.After != o.Told:
		d.Says = fmt.Sprintf("It was asked for when the merchant had been told %s; by now that is %s.", e.After, o.Told)
		return r.found(d)
	case e.Effect != owed && e.EffectState != order.EffectClaimed && !parked:
		d.Says = fmt.Sprintf("It is asked for and not owed: the merchant was told %s and should %s.", o.Told, o.View.Want)
		return r.found(d)
	}
	return r.promise(o, e, owed)
}

// patience is how far the clock of the database may have been set back.
const patience = time.Minute

// promise checks that somebody will look at an order that owes something. Who looks too early does no harm, and who is late has
// not broken it.
func (r *run) promise(o *store.AuditOrder, e *store.AuditRow, owed order.Effect) error {
	var due time.Time
	switch {
	case e.EffectState == order.EffectClaimed:
		due = e.ClaimedUntil
	case e.EffectState == order.EffectOpen && e.Effect == owed:
		due = e.NextAt
	default:
		return nil // a person retries it, or it waits until it is wanted
	}
	latest := due
	if r.sum.At.After(latest) {
		latest = r.sum.At
	}
	if o.WakeAt != nil && !o.WakeAt.After(latest.Add(patience)) {
		return nil
	}
	d := ofOrder(EffectPromise, o)
	d.Version, d.Says, d.Expected = e.Version, "Something is to be done, and nobody will look at it by then.", "a look at "+due.UTC().Format(time.RFC3339)+" at the latest"
	if o.WakeAt != nil {
		d.Found = o.WakeAt.UTC().Format(time.RFC3339)
	}
	return r.found(d)
}
