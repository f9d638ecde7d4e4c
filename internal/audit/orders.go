package audit

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/idempotency/canonical"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// orders folds orders and compares them with what is written.
func (r *run) orders(page []*store.AuditOrder) error {
	for _, o := range page {
		if err := r.oneOrder(o); err != nil {
			return err
		}
		r.sum.Orders++
		r.sum.Payments += len(o.Payments)
		r.sum.Versions += len(o.Rows)
		r.progress(1 + len(o.Payments))
	}
	return nil
}

func (r *run) oneOrder(o *store.AuditOrder) error {
	if o.Unreadable != "" {
		d := ofOrder(OrderUnreadable, o)
		d.Says = "It cannot be read: " + o.Unreadable + "."
		return r.found(d)
	}
	in := registered(o.Commands)
	said := order.Order{
		Registered: in.registered, Total: in.total.Minor, Currency: in.total.Currency, Canceled: in.canceled,
		// What arrival has decided is taken as it is written.
		Create: o.In.Create, Marks: o.In.Marks, Dismissed: o.In.Dismissed,
		Payments: map[string]*order.Ledger{},
	}
	var (
		folded []*store.AuditEvent
		at     []*store.AuditPayment // that belong here
	)
	for i := range o.Payments {
		p := &o.Payments[i]
		l, err := r.ledger(p, o.Ref)
		if err != nil {
			return err
		}
		ok, err := r.place(p, l, o.Ref, o.View.Registered || o.In.Create || r.reread, o.Refs)
		if err != nil {
			return err
		}
		if ok { // else it is counted where it does not belong, which was told
			said.Payments[p.ID.String()] = l
			at = append(at, p)
		}
		folded = append(folded, p.Events...)
	}
	v := said.View()
	told, _ := toldBy(o)
	v.Want = v.Wanted(told)
	if err := r.registration(o, in, v); err != nil {
		return err
	}
	if err := r.fold(o, v, slices.Concat(o.Commands, folded)); err != nil {
		return err
	}
	if err := r.marks(o, at, said); err != nil {
		return err
	}
	if err := r.versions(o); err != nil {
		return err
	}
	return r.effects(o)
}

// inputs is what the merchant said about an order.
type inputs struct {
	registered bool
	ref        string // under which it was registered
	total      order.Amount
	canceled   bool
	details    json.RawMessage
	expires    *time.Time
	dismissed  order.Flags // at any time
}

// registered takes the commands about an order one after another. They are in the order of the versions that they made: a
// command that made none has changed nothing, save that it registers what a payment's own amount had made already.
func registered(commands []*store.AuditEvent) (in inputs) {
	commands = slices.Clone(commands)
	slices.SortStableFunc(commands, func(a, b *store.AuditEvent) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Before, b.Before), a.Event.At.Compare(b.Event.At), strings.Compare(a.ID, b.ID))
	})
	for _, e := range commands {
		c := e.Event.Command
		if c == nil {
			continue
		}
		if c.Register != nil && !in.registered {
			in.registered, in.ref, in.total = true, e.Event.Reference, *c.Register
			if c.Details != nil {
				in.details = c.Details
			}
			if c.ExpiresAt != nil {
				in.expires = c.ExpiresAt
			}
		}
		in.canceled = in.canceled || c.Cancel
		in.dismissed |= c.Dismiss
		if a := c.Amend; a != nil {
			in.amend(a)
		}
	}
	return in
}

func (in *inputs) amend(a *order.Amendment) {
	if a.Total != nil && in.registered {
		in.total = *a.Total
	}
	if details, err := a.Apply(in.details); err == nil && a.Details != nil {
		in.details = details
	}
	if a.Expiry != nil {
		in.expires = a.Expiry.At
	}
}

// standing is what of an order's row follows from commands.
type standing struct {
	Ref        string          `json:"external_ref"`
	Registered bool            `json:"registered"`
	Recorded   bool            `json:"registered_at"`
	Total      *int64          `json:"total"`
	Currency   string          `json:"currency"`
	Canceled   bool            `json:"canceled"`
	Details    json.RawMessage `json:"details"`
	Expires    string          `json:"expires_at"`
}

// registration compares what an order was registered with. v is the fold: it knows the total of an order that a payment's own
// amount has made.
func (r *run) registration(o *store.AuditOrder, in inputs, v order.View) error {
	total := func(v order.View) *int64 {
		if !v.Registered {
			return nil
		}
		return &v.Total
	}
	currency := v.Currency
	if !v.Registered {
		currency = ""
	}
	expected := standing{cmp.Or(in.ref, o.Ref), in.registered, in.registered, total(v), currency, in.canceled, plain(in.details), timeText(in.expires)}
	found := standing{o.Ref, o.In.Registered, o.Recorded, total(o.View), o.View.Currency, o.In.Canceled, plain(o.Details), timeText(o.Expires)}
	d := ofOrder(OrderRegistration, o)
	if d.Expected, d.Found = differing(expected, found); d.Expected+d.Found == "" {
		return nil
	}
	d.Says = "It is not registered as the merchant's commands say."
	return r.found(d, o.Commands...)
}

// plain is JSON in one spelling: Postgres writes it in its own way. No JSON is an empty object.
func plain(doc json.RawMessage) json.RawMessage {
	if len(doc) == 0 {
		doc = json.RawMessage("{}")
	}
	d, err := canonical.JSON(doc)
	if err != nil {
		return json.RawMessage(compact(string(doc)))
	}
	return d.Canonical()
}

func timeText(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// fold compares what an order is with what it should be. Its total and currency were compared before.
func (r *run) fold(o *store.AuditOrder, v order.View, events []*store.AuditEvent) error {
	w := o.View
	v.Registered, v.Total, v.Currency = w.Registered, w.Total, w.Currency
	d := ofOrder(OrderFold, o)
	if d.Expected, d.Found = differing(v, w); d.Expected+d.Found == "" {
		return nil
	}
	d.Says = "It is not what its payments and its registration say."
	return r.found(d, events...)
}

// marks checks what an order keeps beside its payments.
func (r *run) marks(o *store.AuditOrder, at []*store.AuditPayment, said order.Order) error {
	d := ofOrder(OrderMarks, o)
	const marks = order.FlagReferenceConflict | order.FlagUnexpectedMove | order.FlagExpiredUnpaid
	wrong := func(says, expected string, found order.Flags, events ...*store.AuditEvent) error {
		d.Says, d.Expected, d.Found = says, expected, found.String()
		return r.found(d, events...)
	}
	if odd := o.In.Marks &^ marks; odd != 0 {
		return wrong("It has marks that are derived and not kept.", "", odd)
	}
	var shown order.Flags
	for _, row := range o.Rows {
		if f, err := order.ParseFlags(row.Flags); err == nil {
			shown |= f
		}
	}
	if odd := o.In.Marks &^ shown; odd != 0 {
		return wrong("It has marks that no version of it shows.", "", odd)
	}
	if odd := o.In.Dismissed &^ registered(o.Commands).dismissed; odd != 0 {
		return wrong("It hides flags that nobody has dismissed.", "", odd, o.Commands...)
	}
	said.Dismissed = 0
	if odd := o.In.Dismissed &^ said.View().Flags; odd != 0 {
		return wrong("It hides flags that do not hold.", "", odd, o.Commands...)
	}
	creating, conflicting := evidence(o, at)
	if creating != nil && !o.In.Create && !r.reread {
		return wrong("An event lets its payment's amount register it, and the order does not know.", "create_from_payment", 0, creating)
	}
	if conflicting != nil && !o.In.Marks.Has(order.FlagReferenceConflict) {
		return wrong("Own events of its payment name another order too, and it has no mark of that.", order.FlagReferenceConflict.String(), o.In.Marks, conflicting...)
	}
	return nil
}

// evidence finds an event because of which an order must know that its payments may register it, and events of one payment
// because of which it must have the mark reference_conflict; nil where there is none for certain.
func evidence(o *store.AuditOrder, at []*store.AuditPayment) (creating *store.AuditEvent, conflicting []*store.AuditEvent) {
	for _, p := range at {
		linked := false
		var own []*store.AuditEvent // that name another order
		for _, e := range p.Events {
			if e.OnUnknown == store.OnUnknownCreate && e.Order == o.ID {
				creating = e
			}
			// Who was linked by a person, or belongs to a source that ignores unknown orders, may have come here otherwise.
			linked = linked || e.Event.Links().Person.Strength != 0 || e.OnUnknown == store.OnUnknownIgnore
			if e.Event.Strength == order.StrengthPayment && e.Event.Reference != "" && e.Event.Reference != o.Ref {
				own = append(own, e)
			}
		}
		if len(own) > 0 && !linked {
			conflicting = own
		}
	}
	return creating, conflicting
}
