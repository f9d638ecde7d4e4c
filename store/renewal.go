package store

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
)

// A renewal says that a payment is for one period of something that the gateway calls by the merchant's reference, or by
// an id of its own. Where that is the external_ref of a recurrence, the order of that period is meant, whether or not the
// schedule makes it, or has made it yet. Neither name nor zone nor first day of a recurrence ever changes, so that the
// answer can only change from none to one.

// OrderRef is the reference of the order of one period of a recurrence.
func OrderRef(recurrence, period string) string { return recurrence + ":" + period }

// sqlRenewed are the recurrences of some names. Nothing is locked: what is read of them never changes.
const sqlRenewed = `
	SELECT r.account_id, r.external_ref, r.interval, r.every, r.time_zone, r.starts_on
	FROM (SELECT DISTINCT a, ref FROM unnest($1::text[], $2::text[]) AS x(a, ref)) x
	CROSS JOIN LATERAL (
		SELECT r.* FROM recurrences r WHERE r.account_id = x.a AND r.external_ref = x.ref LIMIT 1) r`

// renewals are the recurrences that the renewals of a batch may be of.
type renewals struct {
	items []*item
	found map[orderRef]*calendar
}

// calendar is when the periods of a recurrence begin, with its zone still a name.
type calendar struct {
	interval string
	every    int
	zone     string
	startsOn time.Time
}

func (c *calendar) schedule() (period.Schedule, error) {
	zone, err := period.LoadZone(c.zone)
	if err != nil {
		return period.Schedule{}, err
	}
	return period.Schedule{Interval: period.Interval(c.interval), Every: c.every, From: period.DateOf(c.startsOn), Zone: zone}, nil
}

// queueRenewals looks for the recurrences that events may renew; nil, and nothing is queued, if no event is a renewal.
func queueRenewals(b *pgx.Batch, items []*item) *renewals {
	r := &renewals{found: map[orderRef]*calendar{}}
	var accounts, refs []string
	for _, it := range items {
		if it.Renewal == nil {
			continue
		}
		r.items = append(r.items, it)
		for _, ref := range it.Renewal.Of {
			accounts, refs = append(accounts, it.Account), append(refs, ref)
		}
	}
	if len(r.items) == 0 {
		return nil
	}
	b.Queue(sqlRenewed, accounts, refs).Query(func(rows pgx.Rows) error {
		var (
			k orderRef
			c calendar
		)
		_, err := pgx.ForEachRow(rows, []any{&k.account, &k.ref, &c.interval, &c.every, &c.zone, &c.startsOn}, func() error {
			found := c
			r.found[k] = &found
			return nil
		})
		return err
	})
	return r
}

// resolve gives each renewal the reference of the order that it is for, where there is a recurrence.
func (r *renewals) resolve() error {
	for _, it := range r.items {
		ref, err := r.orderOf(it)
		if err != nil {
			return &EventError{Index: it.index, Err: err}
		}
		if ref == "" {
			continue
		}
		if err := it.refer(ref); err != nil {
			return &EventError{Index: it.index, Err: err}
		}
	}
	return nil
}

// orderOf is the reference of the order of the period that a renewal is for; empty if no recurrence has one.
func (r *renewals) orderOf(it *item) (string, error) {
	for _, name := range it.Renewal.Of {
		c := r.found[orderRef{it.Account, name}]
		if c == nil {
			continue
		}
		s, err := c.schedule()
		if err != nil {
			return "", fmt.Errorf("renewal of recurrence %s: %w", name, err)
		}
		if p, ok := renewed(s, it.Renewal); ok {
			return OrderRef(name, p.Name), nil
		}
	}
	return "", nil
}

// renewed is the period that a renewal is for. A day without a time is one of the schedule's own calendar.
func renewed(s period.Schedule, r *order.Renewal) (period.Period, bool) {
	if r.On == "" {
		return s.At(r.Start)
	}
	day, err := period.ParseDate(r.On)
	if err != nil {
		return period.Period{}, false
	}
	return s.At(day.Start(s.Zone))
}

// refer makes the item one of another order than its event names. The hash stays that of the event as it came: a
// delivery that is repeated after the recurrence was made is still the same one.
func (it *item) refer(ref string) (err error) {
	e := *it.Event // the caller's stays as it was handed in
	e.Reference, e.Strength = ref, max(e.Strength, order.StrengthPayment)
	it.Event = &e
	it.facts, err = factsOf(&e)
	return err
}
