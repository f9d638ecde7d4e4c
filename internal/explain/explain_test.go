package explain_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares the cases' texts with testdata/<name>.golden, in which each stands under its title.
func golden(t *testing.T, name string, cases []section) {
	t.Helper()
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "=== %s\n%s\n", c.title, c.text)
	}
	path := filepath.Join("testdata", name+".golden")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./internal/explain -update writes it")
}

type section struct{ title, text string }

// The moments and names that all cases share.
var (
	noon    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	orderID = uuid.MustParse("0195b1a0-0000-7000-8000-000000000001")
	eur     = "EUR"
)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

func ptr[T any](v T) *T { return &v }

// registered is an order over 50.00 EUR that the merchant registered.
func registered(state order.State) store.Order {
	return store.Order{
		Account: "shop", ID: orderID, Ref: "ord_1", Registered: true, RegisteredAt: ptr(noon), Total: ptr[int64](5000), Currency: &eur,
		State: state, Want: order.WantWait, Told: order.ToldNothing, Version: 2,
	}
}

// stub is the order of an event that came before the merchant registered it.
func stub() store.Order {
	return store.Order{Account: "shop", ID: orderID, Ref: "ord_1", State: order.StatePending, Want: order.WantWait, Told: order.ToldNothing, Version: 1, Flags: []string{"unregistered"}}
}

func captured(minor int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Amount: minor, Currency: "EUR"}
}

// event is one that says that the payment was captured.
func event(id string, outcome store.Outcome, reason string, facts ...order.Fact) store.StoredEvent {
	return store.StoredEvent{
		Account: "shop", Source: "stripe", ID: id, Type: "payment_intent.succeeded", Realm: "stripe:live",
		ReceivedAt: at(1), Deliveries: 1, LastDeliveredAt: at(1), Outcome: outcome, Reason: reason,
		Payment: []string{"pi_1"}, Reference: "ord_1", Strength: order.StrengthPayment, Facts: facts,
	}
}

func moved(e store.StoredEvent, before, after int) store.StoredEvent {
	e.OrderID, e.Before, e.After = &orderID, &before, &after
	return e
}

// register is the merchant's own event.
func register() store.StoredEvent {
	return store.StoredEvent{
		Account: "shop", Source: store.APISource, ID: "register:ord_1", Type: "order.registered", ReceivedAt: at(0), Deliveries: 1,
		LastDeliveredAt: at(0), Outcome: store.Applied, Reference: "ord_1", Strength: order.StrengthPerson,
		Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
	}
}

// rows are the versions of an order that was registered first and paid then.
func rows() []store.Version {
	return []store.Version{
		{Version: 1, To: order.StatePending, Cause: "created", Source: store.APISource, EventID: "register:ord_1", At: at(0)},
		{Version: 2, From: order.StatePending, To: order.StatePending, Cause: "order.registered", Source: store.APISource, EventID: "register:ord_1", At: at(0)},
		{Version: 3, From: order.StatePending, To: order.StatePaid, Cause: "payment_intent.succeeded", Source: "stripe", EventID: "evt_1", At: at(1)},
	}
}

// eventCase is an event with the timeline of its order; nil if it has none.
type eventCase struct {
	title string
	e     store.StoredEvent
	t     *store.Timeline
}

func paidTimeline(events ...store.StoredEvent) *store.Timeline {
	o := registered(order.StatePaid)
	o.Captured, o.Kept, o.Version, o.Want, o.Told = 5000, 5000, 3, order.WantGo, order.ToldFulfilled
	l := order.NewLedger()
	l.JoinEvent(order.Event{Payment: []string{"pi_1"}, Facts: []order.Fact{captured(5000)}})
	return &store.Timeline{
		Order: o, Payments: []store.Payment{{ID: orderID, Ledger: l}}, Versions: rows(), Events: events, Now: at(60),
	}
}

func eventCases() []eventCase {
	paid := moved(event("evt_1", store.Applied, "", captured(5000)), 2, 3)
	again := moved(event("evt_2", store.NoChange, store.ReasonAlreadyKnown, captured(5000)), 3, 3)
	less := moved(event("evt_3", store.NoChange, store.ReasonAlreadyKnown, order.Fact{Kind: order.KindAuthorized, Amount: 4000, Currency: "EUR"}), 3, 3)
	link := moved(event("evt_4", store.NoChange, store.ReasonAlreadyKnown), 3, 3)
	link.Type = "checkout.session.completed"
	reg := moved(register(), 1, 2)
	cancel := moved(register(), 3, 3)
	cancel.ID, cancel.Type, cancel.Outcome, cancel.Reason = "cancel:ord_1", "order.canceled", store.NoChange, store.ReasonAlreadyKnown
	cancel.Command = &order.Command{Cancel: true}
	regAgain := moved(register(), 3, 3)
	regAgain.Outcome, regAgain.Reason = store.NoChange, store.ReasonAlreadyKnown

	first := moved(event("evt_1", store.Applied, "", captured(5000)), 1, 2)
	created := paidTimeline(first)
	created.Versions = []store.Version{
		{Version: 1, To: order.StatePending, Cause: "created", Source: "stripe", EventID: "evt_1", At: at(1)},
		{Version: 2, From: order.StatePending, To: order.StatePaid, Cause: "payment_intent.succeeded", Source: "stripe", EventID: "evt_1", At: at(1)},
	}
	only := moved(event("evt_1", store.Applied, ""), 1, 1)
	same := moved(event("evt_1", store.Applied, "", order.Fact{Kind: order.KindRefunded, Ref: "re_1", Status: order.StatusOK, Amount: 500, Currency: "EUR"}), 3, 4)
	still := paidTimeline(same)
	still.Versions = append(still.Versions, store.Version{Version: 4, From: order.StatePaid, To: order.StatePaid, Source: "stripe", EventID: "evt_1", At: at(1)})

	waits := moved(event("evt_1", store.Waiting, store.ReasonUnregistered, captured(5000)), 1, 2)
	waiting := &store.Timeline{Order: stub(), Now: at(60), Events: []store.StoredEvent{waits}}
	later := register()
	later.ReceivedAt = at(30)
	counted := paidTimeline(waits, later)
	counted.Versions = []store.Version{
		{Version: 1, To: order.StatePending, Source: "stripe", EventID: "evt_1", At: at(1)},
		{Version: 2, From: order.StatePending, To: order.StatePartiallyPaid, Source: "stripe", EventID: "evt_1", At: at(1)},
		{Version: 3, From: order.StatePartiallyPaid, To: order.StatePaid, Source: store.APISource, EventID: later.ID, At: at(30)},
	}
	byAmount := paidTimeline(waits)
	lost := event("evt_1", store.Waiting, store.ReasonNoReference, captured(5000))
	lost.Reference, lost.Strength = "", 0
	unnamed := event("evt_1", store.Waiting, store.ReasonUnregistered, captured(5000))
	unnamed.Reference = ""

	flagged := func(reason string, f order.Fact, m order.Misfit) eventCase {
		f.Misfit = m
		return eventCase{"flagged " + reason, moved(event("evt_1", store.Flagged, reason, f), 2, 3), paidTimeline()}
	}
	usd := captured(5000)
	usd.Currency = "USD"
	reused := moved(event("evt_1#0123456789abcdef0123456789abcdef", store.Flagged, store.ReasonIDReused, captured(6000)), 2, 3)
	reread := moved(event("evt_1", store.Applied, "", captured(5000)), 3, 4)
	corrected := paidTimeline(reread)
	corrected.Versions[2].To = order.StatePartiallyPaid
	corrected.Versions = append(corrected.Versions, store.Version{
		Version: 4, From: order.StatePartiallyPaid, To: order.StatePaid, Cause: store.CauseReevaluated, Source: "stripe", EventID: "evt_1", At: at(50),
	})
	repeated := paid
	repeated.Deliveries, repeated.LastDeliveredAt = 51, at(40)
	plain := func(outcome store.Outcome, reason string) store.StoredEvent {
		e := event("evt_1", outcome, reason)
		e.Payment, e.Reference, e.Strength = nil, "", 0
		return e
	}
	pointer := func(a *store.Asking) store.StoredEvent {
		e := plain(store.Waiting, store.ReasonNeedsFetch+": payment/42")
		e.Type, e.Fetch, e.Asking = "payment", "payment/42", a
		return e
	}
	asked := plain(store.NoChange, store.ReasonFetched+": payment/42")
	asked.Type, asked.Fetch = "payment", "payment/42"
	next := at(90)
	return append(commandCases(), []eventCase{
		{"applied", paid, paidTimeline(paid)},
		{"applied, read again", reread, corrected},
		{"applied, delivered again", repeated, paidTimeline(repeated)},
		{"applied, it created the order", only, created},
		{"applied, it created and moved the order", first, created},
		{"applied, the state stays", same, still},
		{"applied, registration", reg, paidTimeline(reg)},
		{"applied, nothing known of the order", event("evt_1", store.Applied, "", captured(5000)), nil},
		{"no_change already_known", again, paidTimeline(paid, again)},
		{"no_change already_known, no event says it alone", less, paidTimeline(paid, less)},
		{"no_change already_known, it only links", link, paidTimeline(paid, link)},
		{"no_change already_known, registered again", regAgain, paidTimeline(paid, regAgain)},
		{"no_change already_known, canceled again", cancel, paidTimeline(paid, cancel)},
		{"waiting unregistered", waits, waiting},
		{"waiting unregistered, registered since", waits, counted},
		{"waiting unregistered, made by a payment's amount since", waits, byAmount},
		{"waiting unregistered, without a reference of its own", unnamed, waiting},
		{"waiting no_reference", lost, nil},
		{"waiting no_reference, named since", lost, paidTimeline(lost)},
		{"waiting no_reference, a renewal", renewal(event("evt_1", store.Waiting, store.ReasonNoReference, captured(5000)), ""), nil},
		{"waiting unregistered, a renewal", renewal(event("evt_1", store.Waiting, store.ReasonUnregistered, captured(5000)), "club_1:2026-11"), nil},
		{"applied, a renewal", renewal(paid, "club_1:2026-11"), paidTimeline(paid)},
		{"applied, a renewal that names another order", renewal(paid, "ord_1"), paidTimeline(paid)},
		{"applied, a renewal of a day", dayOnly(renewal(paid, "sub_1:2026-11")), paidTimeline(paid)},
		{"waiting source_paused", event("evt_1", store.Waiting, store.ReasonSourcePaused, captured(5000)), nil},
		{"waiting needs_fetch", pointer(&store.Asking{State: "open", NextAt: &next}), nil},
		{"waiting needs_fetch, announced by nobody yet", pointer(nil), nil},
		{"waiting needs_fetch, tried before", pointer(&store.Asking{State: "open", Attempts: 2, NextAt: &next, LastError: "status 503"}), nil},
		{"waiting needs_fetch, given up", pointer(&store.Asking{State: "dead", Attempts: 6, LastError: "status 404"}), nil},
		{"no_change fetched", asked, nil},
		{"waiting, a reason of tomorrow", event("evt_1", store.Waiting, "of_tomorrow", captured(5000)), nil},
		{"ignored unknown_order", event("evt_1", store.Ignored, store.ReasonUnknownOrder, captured(5000)), nil},
		{"ignored unknown_order, counted since", event("evt_1", store.Ignored, store.ReasonUnknownOrder, captured(5000)), paidTimeline()},
		{"waiting no_reference, a change that names an order", event("evt_1", store.Waiting, store.ReasonNoReference, captured(5000)), nil},
		{"ignored unknown_type", plain(store.Ignored, "unknown_type"), nil},
		{"ignored reread", plain(store.Ignored, store.ReasonReread), nil},
		{"ignored no_fact", plain(store.Ignored, "no_fact"), nil},
		{"ignored needs_fetch", plain(store.Ignored, "needs_fetch"), nil},
		{"ignored, a reason of tomorrow", plain(store.Ignored, "of_tomorrow"), nil},
		{"flagged currency_mismatch", moved(event("evt_1", store.Flagged, store.ReasonCurrencyMismatch, usd), 2, 3), paidTimeline()},
		flagged(store.ReasonModeMismatch, captured(5000), order.MisfitMode),
		flagged(store.ReasonAccountMismatch, captured(5000), order.MisfitAccount),
		{"flagged id_reused", reused, paidTimeline(reused)},
		{"flagged, a reason of tomorrow", event("evt_1", store.Flagged, "of_tomorrow", captured(5000)), nil},
		{"quarantined unreadable", plain(store.Quarantined, store.ReasonUnreadable+": amount_received is -5"), nil},
		{"duplicate", as(paid, store.Duplicate), paidTimeline(paid)},
	}...)
}

// renewal makes an event one of the first of November, of the order ref.
func renewal(e store.StoredEvent, ref string) store.StoredEvent {
	e.Reference = ref
	e.Renewal = &order.Renewal{Of: []string{"club_1", "sub_1"}, Start: time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC)}
	return e
}

func dayOnly(e store.StoredEvent) store.StoredEvent {
	e.Renewal = &order.Renewal{Of: e.Renewal.Of, On: "2026-11-01"}
	return e
}

func as(e store.StoredEvent, o store.Outcome) store.StoredEvent {
	e.Outcome = o
	return e
}

func TestEvents(t *testing.T) {
	t.Parallel()
	var got []section
	for _, c := range eventCases() {
		got = append(got, section{c.title, explain.Event(c.e, c.t).Text()})
	}
	golden(t, "events", got)
}

// stateCases are orders in every state, with the sums that bring it there.
func stateCases() []section {
	sums := func(s order.State, set func(*store.Order)) section {
		o := registered(s)
		set(&o)
		title := string(s)
		if s == order.StateCanceled && !o.Canceled {
			title += ", by the gateway"
		}
		return section{title, explain.Order(store.Timeline{Order: o, Now: at(60)}).Answer}
	}
	free := registered(order.StatePaid)
	free.Total = ptr[int64](0)
	return []section{
		sums(order.StatePending, func(*store.Order) {}),
		sums(order.StateAuthorized, func(o *store.Order) { o.Authorized = 5000 }),
		sums(order.StatePartiallyPaid, func(o *store.Order) { o.Captured, o.Kept = 3000, 3000 }),
		sums(order.StatePaid, func(o *store.Order) { o.Captured, o.Kept = 5000, 5000 }),
		{"paid, free", explain.Order(store.Timeline{Order: free, Now: at(60)}).Answer},
		sums(order.StatePartiallyRefunded, func(o *store.Order) { o.Captured, o.Refunded, o.Kept = 5000, 1000, 4000 }),
		sums(order.StateRefunded, func(o *store.Order) { o.Captured, o.Refunded = 5000, 5000 }),
		sums(order.StateDisputed, func(o *store.Order) { o.Captured, o.Kept, o.AtRisk = 5000, 5000, 5000 }),
		sums(order.StateChargedBack, func(o *store.Order) { o.Captured, o.Lost, o.Refunded = 5000, 4000, 1000 }),
		sums(order.StateFailed, func(*store.Order) {}),
		sums(order.StateCanceled, func(o *store.Order) { o.Canceled = true }),
		sums(order.StateCanceled, func(*store.Order) {}),
		sums(order.StateExpired, func(*store.Order) {}),
		{"a stub", explain.Order(store.Timeline{Order: stub(), Now: at(60)}).Text()},
		{"named by nothing", explain.Order(store.Timeline{Order: registered(order.StatePending), Now: at(60)}).Text()},
		{"named by what does not count", explain.Order(store.Timeline{Order: registered(order.StatePending), Now: at(60), Events: []store.StoredEvent{
			register(),
			event("evt_1", store.Quarantined, store.ReasonUnreadable+": amount_received is -5"),
			event("evt_2", store.Waiting, store.ReasonSourcePaused, captured(5000)),
			event("evt_3", store.Ignored, store.ReasonUnknownOrder, captured(5000)),
			event("evt_4", store.Ignored, store.ReasonUnknownOrder, captured(5000)),
			event("evt_5", store.Waiting, store.ReasonNoReference, captured(5000)),
		}}).Text()},
	}
}

func TestStates(t *testing.T) {
	t.Parallel()
	golden(t, "states", stateCases())
}

// allFlags are the names of every flag that there is.
func allFlags() []string {
	var names []string
	for bit := order.Flags(1); bit.String() != ""; bit <<= 1 {
		names = append(names, bit.String())
	}
	return names
}

func TestFlags(t *testing.T) {
	t.Parallel()
	o := registered(order.StatePartiallyPaid)
	o.Captured, o.Kept, o.AtRisk = 4000, 6000, 1000 // no order has all of it; each sentence reads one
	without := explain.Order(store.Timeline{Order: o}).Why
	var got []section
	for _, name := range append(allFlags(), "of_tomorrow") {
		o.Flags = []string{name}
		why := explain.Order(store.Timeline{Order: o}).Why
		require.Len(t, why, len(without)+1, name)
		said := why[len(without)]
		require.True(t, strings.HasPrefix(said, "Flag "+name), said)
		if name != "of_tomorrow" {
			require.True(t, strings.HasPrefix(said, "Flag "+name+": "), "flag %s has no sentence: %q", name, said)
		}
		got = append(got, section{name, said})
	}
	golden(t, "flags", got)
}

// effectTimeline is a paid order whose third version asked for an effect.
func effectTimeline(v store.Version, told order.Told, want order.Want) store.Timeline {
	t := *paidTimeline()
	t.Order.Told, t.Order.Want = told, want
	last := &t.Versions[2]
	v.Version, v.From, v.To, v.Source, v.EventID, v.Cause, v.At = last.Version, last.From, last.To, last.Source, last.EventID, last.Cause, last.At
	*last = v
	return t
}

func TestEffects(t *testing.T) {
	t.Parallel()
	row := func(e order.Effect, s order.EffectState) store.Version {
		return store.Version{Effect: e, EffectState: s, Attempts: 2, LastError: "the merchant answered 503 Service Unavailable"}
	}
	fresh := row(order.EffectFulfil, order.EffectOpen)
	fresh.Attempts, fresh.LastError, fresh.NextAt = 0, "", ptr(at(1))
	later := row(order.EffectFulfil, order.EffectOpen)
	later.NextAt = ptr(at(90))
	due := row(order.EffectFulfil, order.EffectOpen)
	due.NextAt = ptr(at(59))
	claimed := row(order.EffectFulfil, order.EffectClaimed)
	claimed.ClaimedUntil = ptr(at(70))
	done := row(order.EffectFulfil, order.EffectDone)
	done.Attempts, done.SettledAt = 1, ptr(at(2))
	canceled := row(order.EffectHold, order.EffectCanceled)
	canceled.Attempts, canceled.LastError, canceled.SettledAt, canceled.Why = 0, "", ptr(at(2)), "never tried, and the order is paid"
	assumed := row(order.EffectFulfil, order.EffectAssumed)
	assumed.SettledAt, assumed.Why = ptr(at(2)), "it may have reached the merchant, and the order is refunded"

	var got []section
	add := func(title string, v store.Version, told order.Told, want order.Want) {
		got = append(got, section{title, explain.Order(effectTimeline(v, told, want)).Text()})
	}
	add("open", fresh, order.ToldNothing, order.WantGo)
	add("open, tried", later, order.ToldNothing, order.WantGo)
	add("open, tried and due", due, order.ToldNothing, order.WantGo)
	add("open, not wanted at present", due, order.ToldNothing, order.WantWait)
	add("claimed", claimed, order.ToldNothing, order.WantGo)
	add("done", done, order.ToldFulfilled, order.WantGo)
	add("canceled", canceled, order.ToldNothing, order.WantWait)
	add("assumed", assumed, order.ToldRevoked, order.WantStop)
	add("dead", row(order.EffectFulfil, order.EffectDead), order.ToldNothing, order.WantGo)
	add("hold", row(order.EffectHold, order.EffectDone), order.ToldHeld, order.WantPause)
	add("release", row(order.EffectRelease, order.EffectDone), order.ToldFulfilled, order.WantGo)
	add("revoke", row(order.EffectRevoke, order.EffectDone), order.ToldRevoked, order.WantStop)
	golden(t, "effects", got)
}

// Every kind and status of a fact, in the ledger of a payment and in an event.
func TestFacts(t *testing.T) {
	t.Parallel()
	money := func(k order.Kind, ref string, s order.Status) order.Fact {
		return order.Fact{Kind: k, Ref: ref, Status: s, Amount: 5000, Currency: "EUR"}
	}
	facts := []order.Fact{
		money(order.KindAuthorized, "", ""), money(order.KindReleased, "", ""),
		money(order.KindCaptured, "", ""), money(order.KindRefunded, "", ""),
		{Kind: order.KindRefunded, Ref: "re_all", Status: order.StatusOK, Amount: order.All, Currency: "EUR"},
		{Kind: order.KindCaptured, Amount: 5000, Currency: "JPY"},
		{Kind: order.KindCaptured, Amount: 5000, Currency: "KWD"},
	}
	for _, s := range []order.Status{order.StatusPending, order.StatusDenied, order.StatusOK, order.StatusFailed} {
		facts = append(facts, money(order.KindCaptured, "ca_1", s), money(order.KindRefunded, "re_1", s))
	}
	for _, s := range []order.Status{order.StatusNone, order.StatusOpen, order.StatusWon, order.StatusLost} {
		facts = append(facts, money(order.KindDisputed, "dp_1", s))
	}
	for _, s := range []order.Status{order.StatusProcessing, order.StatusFailed, order.StatusAuthorized, order.StatusExpired, order.StatusCanceled} {
		facts = append(facts, order.Fact{Kind: order.KindPhase, Status: s})
	}
	var got []section
	for _, f := range facts {
		require.NoError(t, f.Validate())
		l := order.NewLedger()
		l.JoinEvent(order.Event{Payment: []string{"pi_1", "ch_1"}, Facts: []order.Fact{f}})
		tl := store.Timeline{Order: registered(order.StatePending), Payments: []store.Payment{{ID: orderID, Ledger: l}}}
		e := event("evt_1", store.Applied, "", f)
		got = append(got, section{
			strings.Join(strings.Fields(fmt.Sprint(f.Kind, " ", f.Ref, " ", f.Status, " ", f.Currency)), " "),
			explain.Order(tl).Why[0] + "\n" + explain.Event(e, nil).Answer + "\n",
		})
	}
	for _, s := range []order.Status{order.StatusAuthorized, order.StatusCanceled} {
		l := order.NewLedger()
		l.JoinEvent(order.Event{Payment: []string{"pi_1"}, Facts: []order.Fact{captured(5000), {Kind: order.KindPhase, Status: s}}})
		tl := store.Timeline{Order: registered(order.StatePending), Payments: []store.Payment{{ID: orderID, Ledger: l}}}
		got = append(got, section{"captured, and phase " + string(s), explain.Order(tl).Why[0] + "\n"})
	}
	bare := store.Timeline{Order: registered(order.StatePending), Payments: []store.Payment{{ID: orderID, Ledger: order.NewLedger()}}}
	got = append(got, section{"nothing", explain.Order(bare).Why[0] + "\n"})
	golden(t, "facts", got)
}

// An order that went through everything: the whole of what is printed for it.
func TestWholeOrder(t *testing.T) {
	t.Parallel()
	paid := moved(event("evt_1", store.Applied, "", captured(5000)), 2, 3)
	odd := moved(event("evt_9", store.Flagged, store.ReasonCurrencyMismatch, order.Fact{Kind: order.KindCaptured, Amount: 700, Currency: "USD"}), 3, 4)
	odd.ReceivedAt = at(5)
	refund := moved(event("evt_2", store.Applied, "", order.Fact{Kind: order.KindRefunded, Ref: "re_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}), 4, 5)
	refund.Type, refund.ReceivedAt = "refund.updated", at(20)
	tl := paidTimeline(moved(register(), 1, 2), paid, odd, refund)
	o := &tl.Order
	o.State, o.Captured, o.Refunded, o.Kept, o.Flags, o.Version = order.StateRefunded, 5000, 5000, 0, []string{"currency_mismatch"}, 5
	o.Want, o.Told = order.WantStop, order.ToldFulfilled
	l := order.NewLedger()
	for _, e := range tl.Events {
		l.JoinEvent(order.Event{Payment: e.Payment, Facts: e.Facts})
	}
	tl.Payments = []store.Payment{{ID: orderID, Ledger: l}}
	v := &tl.Versions[2]
	v.Effect, v.EffectState, v.Attempts, v.SettledAt = order.EffectFulfil, order.EffectDone, 1, ptr(at(3))
	tl.Versions = append(tl.Versions,
		store.Version{Version: 4, From: order.StatePaid, To: order.StatePaid, Source: "stripe", EventID: "evt_9", At: at(5)},
		store.Version{
			Version: 5, From: order.StatePaid, To: order.StateRefunded, Source: "stripe", EventID: "evt_2", At: at(20),
			Effect: order.EffectRevoke, EffectState: order.EffectOpen, Attempts: 1, NextAt: ptr(at(90)), LastError: "no answer in time: context deadline exceeded",
		})
	refunded := section{"refunded", explain.Order(*tl).Text()}
	tl.Versions = append(tl.Versions,
		store.Version{Version: 6, From: order.StateRefunded, To: order.StatePaid, Cause: store.CauseReevaluated, Source: "stripe", EventID: "evt_2", At: at(50)},
		store.Version{Version: 7, From: order.StatePaid, To: order.StatePaid, Cause: store.CauseReevaluated, Source: "stripe", EventID: "evt_9", At: at(51)})
	golden(t, "order", []section{refunded, {"read again", explain.Order(*tl).Text()}})
}
