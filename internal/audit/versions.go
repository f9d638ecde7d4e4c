package audit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// causeCreated is the cause of every first version.
const causeCreated = "created"

// ownCauses are the causes of versions that no event caused.
var ownCauses = []string{order.CauseSettle, order.CauseExpire, order.CauseRetry, store.CauseExpired}

// versions checks the chain of an order's versions.
func (r *run) versions(o *store.AuditOrder) error {
	whole := whole(o)
	if !whole {
		d := ofOrder(VersionRows, o)
		d.Says, d.Expected, d.Found = "Its versions are not one row each.", fmt.Sprintf("1 to %d", o.Version), numbers(o.Rows)
		if err := r.found(d); err != nil {
			return err
		}
	}
	var before *store.AuditRow
	for i := range o.Rows {
		row := &o.Rows[i]
		if err := r.chained(o, before, row); err != nil {
			return err
		}
		if err := r.caused(o, row); err != nil {
			return err
		}
		before = row
	}
	if !whole {
		return nil
	}
	return r.last(o)
}

// whole reports whether the order has its versions, each once.
func whole(o *store.AuditOrder) bool {
	for i, row := range o.Rows {
		if row.Version != i+1 {
			return false
		}
	}
	return len(o.Rows) == o.Version
}

// numbers lists versions in ranges.
func numbers(rows []store.AuditRow) string {
	var parts []string
	for i := 0; i < len(rows); {
		j := i
		for j+1 < len(rows) && rows[j+1].Version == rows[j].Version+1 {
			j++
		}
		part := fmt.Sprint(rows[i].Version)
		if j > i {
			part += fmt.Sprintf(" to %d", rows[j].Version)
		}
		parts, i = append(parts, part), j+1
	}
	return strings.Join(parts, ", ")
}

// chained checks that a version begins where the one before ended.
func (r *run) chained(o *store.AuditOrder, before, row *store.AuditRow) error {
	d := ofOrder(VersionChain, o)
	d.Version, d.Found = row.Version, string(row.From)
	switch {
	case row.Version == 1:
		if row.From == "" && row.To == order.StatePending {
			return nil
		}
		d.Says, d.Expected, d.Found = "An order begins as pending, from nothing.", "to pending", fmt.Sprintf("%s to %s", row.From, row.To)
	case before == nil || before.Version != row.Version-1:
		return nil // the one before is missing, which was told
	case row.From == before.To:
		return nil
	default:
		d.Says, d.Expected = "It does not begin in the state that the version before led to.", string(before.To)
	}
	return r.found(d, row.Event)
}

// last checks that the last version is how the order stands.
func (r *run) last(o *store.AuditOrder) error {
	row := o.Rows[len(o.Rows)-1]
	type end struct {
		State order.State `json:"state"`
		Kept  int64       `json:"kept"`
		Flags []string    `json:"flags"`
	}
	flags := slices.Sorted(slices.Values(row.Flags))
	if flags == nil {
		flags = []string{}
	}
	d := ofOrder(VersionLast, o)
	d.Expected, d.Found = differing(end{o.View.State, o.View.Kept, o.View.Flags.Names()}, end{row.To, row.Kept, flags})
	if d.Expected+d.Found == "" {
		return nil
	}
	d.Version, d.Says = row.Version, "It is the last version, and not how the order stands."
	return r.found(d, row.Event)
}

// caused checks that a version and its event know each other.
func (r *run) caused(o *store.AuditOrder, row *store.AuditRow) error {
	d := ofOrder(VersionCause, o)
	d.Version = row.Version
	e := row.Event
	if row.EventID == "" {
		if row.Version > 1 && slices.Contains(ownCauses, row.Cause) {
			return nil
		}
		d.Says, d.Found = "It names no event, and its cause is one.", row.Cause
		return r.found(d)
	}
	if e == nil {
		d.Says, d.Found = "It names an event that there is not.", row.EventID
		d.Events = []Event{{row.Source, row.EventID}}
		return r.found(d)
	}
	if e.Reread || e.Twin || e.Unreadable != "" || e.Received.After(row.At) {
		return nil // or it was lost, and entered again from its bytes
	}
	cause := e.Event.Type
	switch {
	case row.Version == 1:
		cause = causeCreated
	case row.Cause == store.CauseReevaluated:
		cause = row.Cause
	}
	switch {
	case !e.Folds():
		d.Says = "Its event counts for nothing."
	case row.Cause != cause:
		d.Says, d.Expected, d.Found = "Its cause is not the type of its event.", cause, row.Cause
	case e.Order != o.ID && len(e.Event.Payment) == 0:
		d.Says, d.Expected, d.Found = "Its event is about another order.", o.ID.String(), idText(e.Order)
	case e.Order != o.ID, row.Cause == store.CauseReevaluated:
		return nil
	case e.Before < row.Version && row.Version <= e.After, row.Version == 1 && e.Before == 1:
		return nil
	default:
		d.Says = "Its event says that it led from one version to another, and this one is none of them."
		d.Expected, d.Found = fmt.Sprint(row.Version), fmt.Sprintf("%d to %d", e.Before, e.After)
	}
	return r.found(d, e)
}
