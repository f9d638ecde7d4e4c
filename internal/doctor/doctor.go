// Package doctor says what needs a person: everything that will not mend itself, or only too late, with since when it stands so and the
// command or call that resolves it. The most urgent comes first: money whose fate is not known, then merchants who do not know of
// money, then what nobody can book.
//
// The rules are here, what is there is read by [store.Store.Attention]. Nothing is written, and no clock is read but the database's. It is the
// same for `paidonce doctor`, GET /v1/attention and the metrics of `work`.
package doctor

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// Kind is a code word for what is the matter. Where a flag of an order is, it is the flag's name.
type Kind string

// The kinds that are no flags.
const (
	TransactionUncertain Kind = "transaction_uncertain"
	TransactionKeyReused Kind = "transaction_key_reused"
	TransactionDenied    Kind = "transaction_denied"
	TransactionLate      Kind = "transaction_late"
	EffectDead           Kind = "effect_dead"
	EffectLate           Kind = "effect_late"
	OrderUnregistered    Kind = "order_unregistered"
	OrderAuthorized      Kind = "order_authorized"
	OrderPending         Kind = "order_pending"
	EventQuarantined     Kind = "event_quarantined"
	PaymentUnplaced      Kind = "payment_without_order"
	FetchDead            Kind = "fetch_dead"
	SourceSilent         Kind = "source_silent"
)

// Urgency is how soon a person should look.
type Urgency string

// The urgencies: Now if money may be lost or moved twice, or a merchant acts on what is not so; Today if somebody waits for it; Soon if
// it will become one of the others.
const (
	Now   Urgency = "now"
	Today Urgency = "today"
	Soon  Urgency = "soon"
)

// KindInfo says what a kind is about.
type KindInfo struct {
	Kind    Kind
	Urgency Urgency
	Title   string // of a list of these
}

// Kinds returns every kind, the most urgent first.
func Kinds() []KindInfo {
	flag := func(f order.Flags, u Urgency, title string) KindInfo { return KindInfo{Kind(f.String()), u, title} }
	return []KindInfo{
		{TransactionUncertain, Now, "Calls that move money, of which it is not known whether they did"},
		{TransactionKeyReused, Now, "Calls that move money, whose key the gateway took for another's"},
		{TransactionDenied, Now, "Calls that move money, and that the gateway does not let in"},
		{EffectDead, Now, "Effects that were given up"},
		{EffectLate, Now, "Effects that merchants have not confirmed for long"},
		flag(order.FlagPaidAfterCancel, Now, "Orders that were paid after they were canceled"),
		flag(order.FlagOverRefunded, Now, "Payments of which more was refunded than captured"),
		flag(order.FlagUnexpectedMove, Now, "Orders that moved without a known cause"),
		flag(order.FlagAmountUnknown, Today, "Captures without a usable amount"),
		flag(order.FlagCurrencyMismatch, Today, "Money in another currency than the order's"),
		flag(order.FlagAccountMismatch, Today, "Events of another merchant account"),
		flag(order.FlagModeMismatch, Today, "Test events among live ones, or the other way round"),
		flag(order.FlagReferenceConflict, Today, "Payments that name several orders"),
		flag(order.FlagOverpaid, Today, "Orders of which too much is kept"),
		{PaymentUnplaced, Today, "Money that names no order"},
		{OrderUnregistered, Today, "Orders with a payment, that nobody has registered"},
		{EventQuarantined, Today, "Events that could not be read"},
		{OrderAuthorized, Today, "Authorizations that may soon end"},
		flag(order.FlagIDReused, Today, "Event ids that stand for two things"),
		flag(order.FlagTotalDiffers, Today, "Orders that were registered with another total than their payment's"),
		{TransactionLate, Today, "Calls that move money, and that are not answered for long"},
		{OrderPending, Soon, "Payments of which nothing is heard any more"},
		flag(order.FlagUnderpaid, Soon, "Orders of which a part is paid"),
		{FetchDead, Soon, "Objects that gateways were asked about in vain"},
		{SourceSilent, Soon, "Sources that receive nothing any more"},
	}
}

// DefaultAges are how long something may stand before it needs a person. An hour is for what heals itself within minutes or not at
// all. Three days are the time in which PayPal honors an authorization, the shortest of all gateways, and in which slow ways to pay end as a
// rule (https://developer.paypal.com/docs/checkout/standard/customize/authorization-honor/).
func DefaultAges() store.AttentionAges {
	const days = 24 * time.Hour
	return store.AttentionAges{
		Stub: time.Hour, Unplaced: time.Hour, Effect: time.Hour, Movement: time.Hour,
		Authorized: 3 * days, Pending: 3 * days, Underpaid: 3 * days, Silent: 1 * days,
	}
}

// Options say what is looked for. The zero value looks for everything but silent sources.
type Options struct {
	Account string               // only of this account; empty: of all
	Ages    *store.AttentionAges // default [DefaultAges]

	// Limit is how many of a kind are counted at most. Default 1000.
	Limit int

	// Sources are the configured ones: of others it is nothing to note that they receive nothing. Default: none.
	Sources []store.SourceKey

	// NoCallback reports whether an account has no callback, so that nobody can be told. Default: none lacks one.
	NoCallback func(account string) bool
}

// Store is what a look needs; *store.Store is one.
type Store interface {
	Attention(ctx context.Context, f store.AttentionFilter) (store.Attention, error)
}

// Report is what needs a person, as of one moment.
type Report struct {
	At    time.Time // by the database's clock
	Piles []Pile    // the most urgent first; none is empty
	Notes []string  // in sentences, what was not looked through
}

// Count is how many there are in all, at least.
func (r Report) Count() (n int) {
	for _, p := range r.Piles {
		n += p.Count
	}
	return n
}

// Pile is all that there is of a kind.
type Pile struct {
	KindInfo
	Count  int
	More   bool      // counting ended there: there may be more
	Oldest time.Time // since when the first of Items stands so
	Items  []Item    // the oldest first
}

// Look says what needs a person.
func Look(ctx context.Context, st Store, opts Options) (Report, error) {
	if st == nil {
		return Report{}, errors.New("doctor: nil store")
	}
	ages := DefaultAges()
	if opts.Ages != nil {
		ages = *opts.Ages
	}
	if opts.Limit <= 0 {
		opts.Limit = 1000
	}
	a, err := st.Attention(ctx, store.AttentionFilter{Account: opts.Account, Ages: ages, Limit: opts.Limit, Sources: opts.Sources})
	if err != nil {
		return Report{}, err
	}
	return report(a, opts), nil
}

func report(a store.Attention, opts Options) Report {
	w := words{at: a.At, noCallback: opts.NoCallback}
	found := map[Kind][]Item{}
	add := func(i Item) { found[i.Kind] = append(found[i.Kind], i) }
	each(a.Unknown, w.transaction, add)
	each(a.Late, w.transaction, add)
	each(a.Dead, w.effect, add)
	each(a.Owed, w.effect, add)
	for _, notes := range [][]store.OrderNote{a.Flagged, a.Stubs, a.Authorized, a.Underpaid, a.Pending} {
		each(notes, w.order, add)
	}
	each(a.Quarantined, w.event, add)
	each(a.Unplaced, w.event, add)
	each(a.Fetches, w.fetch, add)
	for _, q := range a.Silent {
		if unusual(q, a.At) {
			add(w.source(q))
		}
	}
	r := Report{At: a.At, Notes: notes(a)}
	for _, k := range Kinds() {
		items := found[k.Kind]
		if len(items) == 0 {
			continue
		}
		slices.SortStableFunc(items, func(a, b Item) int { return a.Since.Compare(b.Since) })
		for i := range items {
			items[i].Urgency = k.Urgency
		}
		r.Piles = append(r.Piles, Pile{KindInfo: k, Count: len(items), More: len(items) >= opts.Limit, Oldest: items[0].Since, Items: items})
	}
	return r
}

func each[T any](list []T, item func(T) Item, add func(Item)) {
	for _, x := range list {
		add(item(x))
	}
}

// unusual reports whether a source that received at least ten events is silent for more than ten times the time that lay between
// two of them: of events that come by chance one such pause is in twenty thousand.
func unusual(q store.Silence, now time.Time) bool {
	const enough = 10
	return q.Events >= enough && now.Sub(q.At) > enough*q.At.Sub(q.First)/time.Duration(q.Events-1)
}

// notes say what was not looked through.
func notes(a store.Attention) []string {
	var out []string
	for _, n := range []struct {
		is   bool
		text string
	}{
		{a.Partly.Owed, "There are more effects under way than are looked through: those of the oldest orders were."},
		{a.Partly.Flagged, "There are more flagged orders than are looked through: the oldest were."},
		{a.Partly.Pending, "There are more pending orders than are looked through: the newest were."},
		{a.Partly.Unplaced, "There are more events that came without an order than are looked through: the newest were."},
	} {
		if n.is {
			out = append(out, n.text)
		}
	}
	return out
}
