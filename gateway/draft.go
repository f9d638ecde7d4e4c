package gateway

import (
	"fmt"

	"github.com/paidonce/paidonce/order"
)

// draft is an event while it is read. The first fault breaks it, and what is
// read after that no longer matters. No byte of the payload may stand in a fault.
type draft struct{ order.Event }

func (d *draft) broken() bool { return d.Broken != "" }

// fail breaks the event, if nothing has yet.
func (d *draft) fail(format string, args ...any) {
	if !d.broken() {
		d.Broken = fmt.Sprintf(format, args...)
	}
}

// members reads members of the object that stands at where. After a fault all of
// them are absent.
func (d *draft) members(v value, where string, names ...string) object {
	o, err := v.members(names)
	if err != nil {
		d.fail("%s %v", where, err)
		return object{names: names, values: make([]value, len(names))}
	}
	return o
}

// optional is members of an object that need not be there.
func (d *draft) optional(v value, where string, names ...string) object {
	if v.absent() {
		return object{names: names, values: make([]value, len(names))}
	}
	return d.members(v, where, names...)
}

// text is an id that must be there.
func (d *draft) text(v value, where string) string {
	text, ok := v.text()
	if !ok {
		d.fail("%s is missing or no plain text", where)
	}
	return text
}

// textOr is an id that may be absent: then "".
func (d *draft) textOr(v value, where string) string {
	if v.absent() {
		return ""
	}
	return d.text(v, where)
}

// decimal reads an amount of major units in the currency that stands beside it.
func (d *draft) decimal(amount, cur value, where string) order.Amount {
	return d.money(amount, cur, where, decimal)
}

// minor reads an amount of the minor units of ISO 4217.
func (d *draft) minor(amount, cur value, where string) order.Amount {
	return d.money(amount, cur, where, exponents(nil).amount)
}

func (d *draft) money(amount, cur value, where string, read func(value, string) (int64, error)) order.Amount {
	code, err := currency(cur)
	if err != nil {
		d.fail("the currency of %s: %v", where, err)
		return order.Amount{}
	}
	n, err := read(amount, code)
	if err != nil {
		d.fail("%s: %v", where, err)
	}
	return order.Amount{Minor: n, Currency: code}
}

// list returns the elements of an array; none if v is no array. What it leaves
// out could be money, so more than limit break the event.
func (d *draft) list(v value, where string, limit int) []value {
	all := v.elements(limit + 1)
	if len(all) > limit {
		d.fail("there are more than %d of %s", limit, where)
		return nil
	}
	return all
}

// add adds a fact about an amount.
func (d *draft) add(f order.Fact, m order.Amount) {
	f.Amount, f.Currency = m.Minor, m.Currency
	d.Facts = append(d.Facts, f)
}

// phase says that the payment as a whole is in that phase.
func (d *draft) phase(status order.Status, seq int64) {
	d.Facts = append(d.Facts, order.Fact{Kind: order.KindPhase, Status: status, Seq: seq})
}

// refer takes what the source's reference points at for the merchant's
// reference, where the source has one.
func (d *draft) refer(s Source, doc value) {
	if s.Reference == "" {
		return
	}
	ref, err := doc.at(s.Reference)
	if err != nil {
		d.fail("%v", err)
	}
	d.Reference, _ = ref.name()
}

// done is the event, once everything was read.
func (d *draft) done() []order.Event {
	d.Payment = distinct(d.Payment)
	if !d.broken() && d.Ignored == "" && d.Fetch == "" && len(d.Facts) == 0 {
		d.Ignored = NoFact
	}
	return []order.Event{d.Event}
}
