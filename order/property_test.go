package order_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

var (
	itemStatuses    = []order.Status{order.StatusPending, order.StatusDenied, order.StatusOK, order.StatusFailed}
	disputeStatuses = []order.Status{order.StatusNone, order.StatusOpen, order.StatusWon, order.StatusLost}
	phaseStatuses   = []order.Status{
		order.StatusProcessing, order.StatusFailed, order.StatusAuthorized, order.StatusExpired, order.StatusCanceled,
	}
	mixedCurrencies = []string{"EUR", "EUR", "EUR", "EUR", "EUR", "EUR", "USD"}
)

// anyFact draws a valid fact. Amounts are small, so that sums meet totals of 4 often.
func anyFact(currencies ...string) *rapid.Generator[order.Fact] {
	return rapid.Custom(func(t *rapid.T) order.Fact {
		f := order.Fact{
			Kind: rapid.SampledFrom([]order.Kind{
				order.KindAuthorized, order.KindCaptured, order.KindRefunded, order.KindReleased, order.KindDisputed,
				order.KindPhase,
			}).Draw(t, "kind"),
			Currency: rapid.SampledFrom(currencies).Draw(t, "currency"),
			Seq:      rapid.Int64Range(0, 3).Draw(t, "seq"),
		}
		amount := rapid.SampledFrom([]int64{0, 1, 2, 3, 4, 4, all})
		switch f.Kind {
		case order.KindAuthorized:
			f.Amount = rapid.SampledFrom([]int64{1, 4}).Draw(t, "amount")
		case order.KindReleased:
			f.Amount = rapid.SampledFrom([]int64{0, 1, 3}).Draw(t, "amount")
		case order.KindCaptured, order.KindRefunded:
			f.Ref = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "ref")
			f.Amount = amount.Draw(t, "amount")
			if f.Ref != "" {
				f.Status = rapid.SampledFrom(itemStatuses).Draw(t, "status")
			}
			f.Forced = f.Kind == order.KindRefunded && rapid.IntRange(0, 5).Draw(t, "forced") == 0
		case order.KindDisputed:
			f.Ref = rapid.SampledFrom([]string{"d", "e"}).Draw(t, "ref")
			f.Amount = amount.Draw(t, "amount")
			f.Status = rapid.SampledFrom(disputeStatuses).Draw(t, "status")
			f.Via = rapid.IntRange(0, 3).Draw(t, "via") == 0
		case order.KindPhase:
			f.Status = rapid.SampledFrom(phaseStatuses).Draw(t, "status")
		}
		if f.Amount == all && f.Validate() != nil {
			f.Amount = 4
		}
		f.Misfit = rapid.SampledFrom(append(make([]order.Misfit, 40), order.MisfitMode, order.MisfitAccount)).Draw(t, "misfit")
		return f
	})
}

// about is an event about the payment that a test calls so.
type about struct {
	payment string
	order.Event
}

// anyEvent draws an event about one of two payments: facts, some of the ids under which it is known, perhaps a reference
// and an amount of its own. Ids come from a small set, so that some are used for two different events.
func anyEvent() *rapid.Generator[about] {
	return rapid.Custom(func(t *rapid.T) about {
		p := rapid.SampledFrom([]string{"A", "B"}).Draw(t, "payment")
		e := about{p, order.Event{
			ID:        "evt_" + rapid.StringMatching("[0-9]").Draw(t, "id"),
			Payment:   []string{p},
			Reference: rapid.SampledFrom([]string{"", "o1", "o2"}).Draw(t, "reference"),
			Strength:  order.Strength(rapid.IntRange(0, 3).Draw(t, "strength")),
			Facts:     rapid.SliceOfN(anyFact(mixedCurrencies...), 0, 3).Draw(t, "facts"),
		}}
		if rapid.Bool().Draw(t, "another id") {
			e.Payment = append(e.Payment, p+rapid.StringMatching("[0-9]").Draw(t, "suffix"))
		}
		if rapid.Bool().Draw(t, "timed") {
			e.At = epoch.Add(time.Duration(rapid.IntRange(-2, 2).Draw(t, "at")) * time.Microsecond)
		}
		switch rapid.IntRange(0, 9).Draw(t, "command") {
		case 0:
			e.Command = &order.Command{Confirm: true}
		case 1:
			e.Command, e.Facts, e.Strength = &order.Command{Link: true}, nil, order.StrengthPerson
		}
		if rapid.IntRange(0, 3).Draw(t, "has own") == 0 {
			e.Own = &order.Amount{
				Minor:    rapid.SampledFrom([]int64{0, 1, 4, 4}).Draw(t, "own"),
				Currency: rapid.SampledFrom([]string{"EUR", "USD"}).Draw(t, "own currency"),
			}
		}
		return e
	})
}

// drawOrder draws what the merchant says of an order, apart from its payments.
func drawOrder(t *rapid.T) order.Order {
	return order.Order{
		Registered: rapid.IntRange(0, 5).Draw(t, "registered") > 0,
		Total:      rapid.SampledFrom([]int64{0, 1, 4, 4, 4, 8}).Draw(t, "total"),
		Currency:   "EUR",
		Canceled:   rapid.IntRange(0, 7).Draw(t, "canceled") == 0,
		Create:     rapid.Bool().Draw(t, "create"),
		Marks:      rapid.SampledFrom([]order.Flags{0, 0, order.FlagUnexpectedMove}).Draw(t, "marks"),
	}
}

// arrival is one way in which events reach an order that is registered at some point.
type arrival struct {
	order   *order.Order
	book    *order.Book
	ledgers string // all of them, as they are stored
}

// arrive lets the events come in a drawn order, some of them twice, in drawn batches, the registration anywhere; each
// batch reads and writes the ledgers as they are stored.
func arrive(t *rapid.T, label string, final order.Order, events []about) arrival {
	queue := slices.Clone(events)
	for i := rapid.IntRange(0, 3).Draw(t, label+" duplicates"); i > 0 && len(events) > 0; i-- {
		queue = append(queue, rapid.SampledFrom(events).Draw(t, label+" duplicate"))
	}
	queue = rapid.Permutation(queue).Draw(t, label+" permutation")
	registration := rapid.IntRange(0, len(queue)).Draw(t, label+" registration")

	o := stub()
	o.Create = final.Create
	b := order.NewBook(0, order.ToldNothing, order.View{}, 0, nil)
	for i := 0; i <= len(queue); {
		n := 1
		if i < len(queue) {
			n = rapid.IntRange(1, len(queue)-i).Draw(t, label+" batch")
		}
		for ; n > 0; n-- {
			if i == registration {
				o.Registered, o.Total, o.Currency = final.Registered, final.Total, final.Currency
				o.Canceled, o.Marks = final.Canceled, final.Marks
				b.Step("registered", o.View(), epoch)
			}
			if i < len(queue) {
				e := queue[i]
				if o.Payments[e.payment] == nil {
					o.Payments[e.payment] = order.NewLedger()
				}
				o.Payments[e.payment].JoinEvent(e.Event)
				b.Step("facts", o.View(), epoch)
			}
			i++
		}
		for p, l := range o.Payments {
			o.Payments[p] = stored(t, l)
		}
	}
	ledgers, err := json.Marshal(o.Payments)
	require.NoError(t, err)
	return arrival{o, b, string(ledgers)}
}

// stored is l written and read again, and checks that this changes nothing.
func stored(t require.TestingT, l *order.Ledger) *order.Ledger {
	data, err := json.Marshal(l)
	require.NoError(t, err)
	var back order.Ledger
	require.NoError(t, json.Unmarshal(data, &back), "%s", data)
	require.Equal(t, l, &back)
	again, err := json.Marshal(&back)
	require.NoError(t, err)
	require.Equal(t, string(data), string(again))
	return &back
}

// TestConfluence: whatever the order, the copies and the batches in which events arrive, and whenever the order is
// registered, the ledgers, the view and the effect owed are the same.
func TestConfluence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(anyEvent(), 0, 8).Draw(t, "events")
		final := drawOrder(t)
		a, b := arrive(t, "a", final, events), arrive(t, "b", final, events)

		require.Equal(t, a.ledgers, b.ledgers)
		v := a.order.View()
		require.Equal(t, v, b.order.View())
		require.Equal(t, v, a.book.View)
		require.Equal(t, owed(v), live(t, a.book))
		require.Equal(t, owed(v), live(t, b.book))

		require.Equal(t, v.Kept, v.Captured-v.Refunded-v.Lost, "%+v", v)
		for _, sum := range []int64{v.Captured, v.Refunded, v.Lost, v.Kept, v.AtRisk, v.Authorized} {
			require.GreaterOrEqual(t, sum, int64(0), "%+v", v)
		}
		require.LessOrEqual(t, v.AtRisk, v.Kept)
		if !v.Registered {
			require.Equal(t, order.WantWait, v.Want)
			require.True(t, v.Flags.Has(order.FlagUnregistered))
		}
	})
}

// live returns the live effect of a book, of which there is at most one.
func live(t require.TestingT, b *order.Book) order.Effect {
	found := order.EffectNone
	for _, r := range b.New() {
		if r.EffectState.Live() {
			require.Equal(t, order.EffectNone, found)
			require.Same(t, b.Open, r)
			found = r.Effect
		}
	}
	return found
}

// TestSplitAndMerge: facts joined apart and then merged are the facts joined together, whichever way round.
func TestSplitAndMerge(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(anyEvent(), 0, 8).Draw(t, "events")
		whole, left, right := order.NewLedger(), order.NewLedger(), order.NewLedger()
		for i, e := range events {
			whole.JoinEvent(e.Event)
			side := left
			if rapid.Bool().Draw(t, fmt.Sprint("right ", i)) {
				side = right
			}
			side.JoinEvent(e.Event)
		}
		before := right.Clone()
		merged, reverse := left.Clone(), right.Clone()
		merged.Merge(right)
		reverse.Merge(left)
		require.Equal(t, whole, merged)
		require.Equal(t, whole, reverse)
		require.Equal(t, before, right, "merging changed the other side")

		merged.Merge(merged.Clone())
		require.Equal(t, whole, merged)

		// Nothing is shared: what the copy learns, the others do not.
		left.Join(capture("x", order.StatusFailed, 9, 9))
		right.Join(dispute("d", order.StatusLost, all, 9))
		right.JoinEvent(order.Event{ID: "evt_new", Payment: []string{"0"}, Own: &order.Amount{Minor: 99, Currency: "EUR"}})
		require.Equal(t, whole, merged)
	})
}

// TestMonotone: phases, authorisations, and captures and refunds that were refused never change money, nor what the
// merchant should do, nor a state that has money in it.
func TestMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := registered(4)
		for _, f := range rapid.SliceOfN(anyFact(mixedCurrencies...), 0, 10).Draw(t, "facts") {
			join(o, rapid.SampledFrom([]string{"A", "B"}).Draw(t, "payment"), f)
		}
		before := o.View()
		any3 := rapid.SampledFrom([]string{"A", "B", "C"})
		join(o, any3.Draw(t, "p1"), phase(rapid.SampledFrom(phaseStatuses).Draw(t, "status"), rapid.Int64Range(0, 9).Draw(t, "seq")))
		join(o, any3.Draw(t, "p2"), authorized(4))
		join(o, "C", capture("z", order.StatusDenied, 4, 0), refund("z", order.StatusDenied, 4, 0))
		after := o.View()
		require.Equal(t, before.Want, after.Want)
		require.Equal(t, before.Kept, after.Kept)
		if before.Captured > 0 {
			require.Equal(t, before.State, after.State)
		}
	})
}

// TestOtherAttemptsFailureLeavesPaid: nothing that a failed attempt can say takes an order out of paid.
func TestOtherAttemptsFailureLeavesPaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := registered(rapid.SampledFrom([]int64{0, 1, 4}).Draw(t, "total"))
		for _, f := range rapid.SliceOfN(anyFact("EUR"), 0, 6).Draw(t, "facts") {
			join(o, "A", f)
		}
		join(o, "C", capturedTotal(4, 9))
		require.Equal(t, order.StatePaid, o.View().State)
		for _, f := range rapid.SliceOfN(anyFact("EUR"), 1, 6).Draw(t, "other") {
			switch {
			case f.Kind == order.KindPhase && f.Status != order.StatusAuthorized:
			case f.Kind == order.KindCaptured && f.Ref != "" && f.Status != order.StatusOK:
			default:
				continue
			}
			join(o, "B", f)
			require.Equal(t, order.StatePaid, o.View().State, "%+v", f)
			require.Equal(t, order.WantGo, o.View().Want)
		}
	})
}
