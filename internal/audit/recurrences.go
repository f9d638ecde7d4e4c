package audit

import (
	"context"
	"fmt"

	"github.com/paidonce/paidonce/period"
	"github.com/paidonce/paidonce/store"
)

// periodsAtOnce is of how many periods of a recurrence the orders are looked for in one statement.
const periodsAtOnce = 500

// recurrences checks that every period that was made has its order, which its name makes the only one, and that the next period
// follows.
func (r *run) recurrences(ctx context.Context, page []store.Recurrence) error {
	for _, rec := range page {
		r.sum.Recurrences++
		if err := r.recurrence(ctx, rec); err != nil {
			return err
		}
	}
	r.progress(len(page))
	return nil
}

func (r *run) recurrence(ctx context.Context, rec store.Recurrence) error {
	d := Difference{Kind: RecurrenceNext, Subject: "recurrence " + rec.Ref}
	schedule, err := rec.Schedule()
	if err != nil {
		d.Says = "Its periods cannot be told: " + err.Error() + "."
		return r.found(d)
	}
	p, ok := schedule.First()
	var refs []string
	for range rec.Created {
		if !ok {
			break
		}
		if refs = append(refs, store.OrderRef(rec.Ref, p.Name)); len(refs) == periodsAtOnce {
			if err := r.periods(ctx, rec, refs); err != nil {
				return err
			}
			refs = refs[:0]
		}
		p, ok = schedule.Next(p)
	}
	if err := r.periods(ctx, rec, refs); err != nil {
		return err
	}
	if rec.NextPeriod == nil {
		return nil // it has ended
	}
	if next, known := schedule.Named(*rec.NextPeriod); !known || ok && next.Name == p.Name {
		return nil // of a day that its zone does not know any more, nothing can be told
	}
	d.Says = fmt.Sprintf("%d periods of it were made, and the next one does not follow them.", rec.Created)
	d.Expected, d.Found = name(p, ok), *rec.NextPeriod
	return r.found(d)
}

func name(p period.Period, ok bool) string {
	if !ok {
		return ""
	}
	return p.Name
}

// periods checks that orders of periods are there and registered.
func (r *run) periods(ctx context.Context, rec store.Recurrence, refs []string) error {
	if len(refs) == 0 {
		return nil
	}
	found, err := r.a.Registered(ctx, r.account, refs)
	if err != nil {
		return err
	}
	for _, ref := range refs {
		if found[ref] {
			continue
		}
		d := Difference{Kind: RecurrenceOrder, Order: ref, Subject: "recurrence " + rec.Ref + " order " + ref, Says: "Its period was made, and its order is not registered.", Expected: ref}
		if err := r.found(d); err != nil {
			return err
		}
	}
	return nil
}
