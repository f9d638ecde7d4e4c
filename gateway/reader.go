package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// reader is a draft that is read from a JSON body by JSON pointers from its root,
// for gateways whose deliveries carry one event each.
type reader struct {
	draft
	source Source
	doc    value
	units  exponents
	row    *eventRow
	base   string // where the object stands that the event is about, for gateways that send several
}

// eventRow is a type of event that a gateway maps.
type eventRow struct {
	name, meaning string
	strength      order.Strength
	read          func(*reader) // payment, reference and facts
}

type eventRows []eventRow

func (rows eventRows) find(name string) *eventRow {
	for i := range rows {
		if rows[i].name == name {
			return &rows[i]
		}
	}
	return nil
}

// types lists the rows in the form of [Gateway].Types.
func (rows eventRows) types(Source) []Type {
	types := make([]Type, len(rows))
	for i, row := range rows {
		types[i] = Type{row.name, row.meaning}
	}
	return types
}

// layout is how the deliveries of a gateway are read that carry one event each,
// as a JSON object.
type layout struct {
	id    string // where the event's id stands; "": it has none, made makes one
	typ   string // where its type stands
	units exponents
	rows  eventRows

	// silent are types that are known to move nothing.
	silent []string

	// at reads the event's own time. nil: there is none.
	at func(*reader) time.Time

	// made makes an id of what the event is about, of covered text alone. Where it
	// cannot (it returns "") the id is a hash of the body.
	made func(*reader) string

	// misfit says why an event must not count, "" if it may. nil: nothing tells.
	misfit func(*reader) order.Misfit
}

// parse is the Parse of a [Gateway].
func (l *layout) parse(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	return l.read(s, doc, d.Body)
}

// read reads a document that was found in a delivery; body is the text of it that
// is signed.
func (l *layout) read(s Source, doc value, body []byte) ([]order.Event, error) {
	r := &reader{source: s, doc: doc, units: l.units}
	r.ID, r.Type = bodyID(body), unreadableType
	if l.id != "" {
		id, err := doc.at(l.id)
		if err != nil {
			return nil, parseError("duplicate_key", "%v", err)
		}
		text, ok := id.text()
		if !ok {
			return nil, parseError("no_event_id", "%s is missing or no plain text", l.id)
		}
		r.ID = text
	}
	name, ok := r.at(l.typ).kind()
	if !ok {
		r.fail("%s is missing or no plain text", l.typ)
	}
	if r.broken() {
		return []order.Event{r.Event}, nil
	}
	r.Type = name
	if l.at != nil {
		r.At = l.at(r)
	}
	if l.made != nil {
		if id := l.made(r); id != "" {
			r.ID = id
		}
	}
	r.row = l.rows.find(name)
	if r.row == nil {
		r.Ignored = UnknownType
		if slices.Contains(l.silent, name) {
			r.Ignored = NoFact
		}
		return []order.Event{r.Event}, nil
	}
	r.complete(l)
	return r.done(), nil
}

// complete reads what the event's row says.
func (r *reader) complete(l *layout) {
	r.Strength = r.row.strength
	r.row.read(r)
	r.Payment = distinct(r.Payment)
	r.refer(r.source, r.doc)
	if r.broken() || r.Ignored != "" || l.misfit == nil {
		return
	}
	if m := l.misfit(r); m != "" {
		misfit(&r.Event, m)
	}
}

// bodyID is the id of an event that has none and of which none can be made: the
// same bytes are the same event.
func bodyID(body []byte) string {
	sum := sha256.Sum256(body)
	return "body:" + hex.EncodeToString(sum[:])
}

// madeID joins the parts of a made id; "" if one is missing.
func madeID(parts ...string) string {
	for _, part := range parts {
		if part == "" {
			return ""
		}
	}
	return strings.Join(parts, ":")
}

// at is what stands at a place; an object on the way that has the key twice
// breaks the event.
func (r *reader) at(pointer string) value {
	v, err := r.doc.at(pointer)
	if err != nil {
		r.fail("%v", err)
	}
	return v
}

// text is a text, or the digits of an integer, that must be there.
func (r *reader) text(pointer string) string {
	text, ok := r.at(pointer).name()
	if !ok {
		r.fail("%s is missing or no plain text", pointer)
	}
	return text
}

// first is the text, or the digits of an integer, at the first of the places that
// has one; "" if none has.
func (r *reader) first(pointers ...string) string {
	for _, pointer := range pointers {
		if text, ok := r.at(pointer).name(); ok {
			return text
		}
	}
	return ""
}

// seconds is a time in seconds since the Unix epoch; zero if it is none.
func (r *reader) seconds(pointer string) time.Time {
	t, _ := unixTime(r.at(pointer))
	return t
}

// date is a time in RFC 3339; zero if it is none.
func (r *reader) date(pointer string) time.Time { return rfc3339(r.at(pointer)) }

// order is the event's own time in microseconds, by which facts of one thing
// follow each other: it must be there.
func (r *reader) order() int64 { return r.orderBy(r.At, "the event") }

// orderBy is a time that must be there in microseconds.
func (r *reader) orderBy(t time.Time, of string) int64 {
	if t.IsZero() {
		r.fail("%s has no time that can be read", of)
		return 0
	}
	return t.UnixMicro()
}

// currency is an ISO 4217 code that must be there.
func (r *reader) currency(pointer string) string {
	cur, err := currency(r.at(pointer))
	if err != nil {
		r.fail("%s: %v", pointer, err)
	}
	return cur
}

// minor is an amount of the gateway's minor units.
func (r *reader) minor(pointer, cur string) order.Amount {
	return r.money(pointer, cur, r.units.amount)
}

// minorText is an amount of the gateway's minor units that is written as a text
// of digits: "5000".
func (r *reader) minorText(pointer, cur string) order.Amount {
	return r.money(pointer, cur, r.units.textAmount)
}

// major is an amount of major units: "50.00", or 50.00.
func (r *reader) major(pointer, cur string) order.Amount {
	return r.money(pointer, cur, decimal)
}

func (r *reader) money(pointer, cur string, read func(value, string) (int64, error)) order.Amount {
	if r.broken() {
		return order.Amount{}
	}
	n, err := read(r.at(pointer), cur)
	if err != nil {
		r.fail("%s: %v", pointer, err)
	}
	return order.Amount{Minor: n, Currency: cur}
}

// own says what the payment's own amount is.
func (r *reader) own(m order.Amount) { r.Own = &m }

// account says that an event is of another account than the source's
// merchant_accounts, where the source names any.
func (r *reader) account(pointer string) order.Misfit {
	accounts := r.source.MerchantAccounts
	if text, _ := r.at(pointer).name(); len(accounts) > 0 && !slices.Contains(accounts, text) {
		return order.MisfitAccount
	}
	return ""
}
