package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/paidonce/paidonce/order"
)

func ledgerOf(events ...order.Event) *order.Ledger {
	l := order.NewLedger()
	for _, e := range events {
		l.JoinEvent(e)
	}
	return l
}

func said(facts ...order.Fact) order.Event {
	return order.Event{ID: "e", Payment: []string{"pi_1"}, Facts: facts}
}

func TestLearns(t *testing.T) {
	t.Parallel()
	total := order.Fact{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR", Seq: 7}
	item := order.Fact{Kind: order.KindCaptured, Ref: "ch_1", Status: order.StatusOK, Amount: 5000, Currency: "EUR"}
	with := func(f order.Fact, change func(*order.Fact)) order.Event {
		change(&f)
		return said(f)
	}
	other := said(item)
	other.Payment, other.Reference, other.Strength = []string{"ch_1", "in_1"}, "ord_9", order.StrengthPayment
	for name, tt := range map[string]struct {
		known  order.Event
		e      order.Event
		learns bool
	}{
		"the same":                        {said(total), said(total), false},
		"the same, later":                 {said(total), with(total, func(f *order.Fact) { f.Seq++ }), false},
		"a total as a capture":            {said(total), said(item), false},
		"under other ids, of other order": {said(total), other, false},
		"more":                            {said(total), with(total, func(f *order.Fact) { f.Seq, f.Amount = 8, 6000 }), true},
		"less, later":                     {said(total), with(total, func(f *order.Fact) { f.Seq, f.Amount = 8, 4000 }), true},
		"less, earlier":                   {said(total), with(total, func(f *order.Fact) { f.Seq, f.Amount = 6, 4000 }), false},
		"another currency":                {said(total), with(total, func(f *order.Fact) { f.Currency = "USD" }), true},
		"that it is of another mode":      {said(total), with(total, func(f *order.Fact) { f.Misfit = order.MisfitMode }), true},
		"that it is over":                 {said(), said(order.Fact{Kind: order.KindPhase, Status: order.StatusCanceled}), true},
		"a refund":                        {said(total), said(order.Fact{Kind: order.KindRefunded, Ref: "re_1", Status: order.StatusOK, Amount: 1, Currency: "EUR"}), true},
		"nothing of nothing":              {said(), said(), false},
		"all of nothing":                  {order.Event{}, said(total), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := ledgerOf(tt.known)
			before := l.Clone()
			require.Equal(t, tt.learns, l.Learns(tt.e))
			require.Equal(t, before, l, "it only looks")
		})
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	captured := func(amount, seq int64) order.Fact {
		return order.Fact{Kind: order.KindCaptured, Amount: amount, Currency: "EUR", Seq: seq}
	}
	item := func(kind order.Kind, status order.Status) order.Fact {
		return order.Fact{Kind: kind, Ref: "x_1", Status: status, Amount: 5000, Currency: "EUR"}
	}
	phase := func(status order.Status) order.Fact { return order.Fact{Kind: order.KindPhase, Status: status} }
	misfit := captured(0, 9)
	misfit.Misfit = order.MisfitMode
	for name, tt := range map[string]struct {
		known, answer order.Event
		want          []order.Difference
	}{
		"they say the same":      {said(captured(5000, 1)), said(captured(5000, 2)), nil},
		"they say more":          {said(captured(5000, 2)), said(captured(6000, 1)), nil},
		"they do not say":        {said(captured(5000, 2)), said(order.Fact{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}), nil},
		"another currency":       {said(captured(5000, 2)), said(order.Fact{Kind: order.KindCaptured, Amount: 0, Currency: "USD"}), nil},
		"a misfit":               {said(captured(5000, 2)), said(misfit), nil},
		"they say less":          {said(captured(5000, 9)), said(captured(0, 1)), []order.Difference{{Kind: order.KindCaptured, Ours: 5000, Currency: "EUR"}}},
		"a capture that was not": {said(item(order.KindCaptured, order.StatusOK)), said(item(order.KindCaptured, order.StatusDenied)), []order.Difference{{Kind: order.KindCaptured, Ref: "x_1", Ours: 5000, Currency: "EUR"}}},
		"a refund that was not":  {said(captured(5000, 1), item(order.KindRefunded, order.StatusOK)), said(item(order.KindRefunded, order.StatusDenied)), []order.Difference{{Kind: order.KindRefunded, Ref: "x_1", Ours: 5000, Currency: "EUR"}}},
		"less was refunded":      {said(captured(5000, 1), order.Fact{Kind: order.KindRefunded, Amount: 900, Currency: "EUR", Seq: 9}), said(order.Fact{Kind: order.KindRefunded, Amount: 100, Currency: "EUR", Seq: 1}), []order.Difference{{Kind: order.KindRefunded, Ours: 900, Theirs: 100, Currency: "EUR"}}},
		"it came to nothing":     {said(item(order.KindCaptured, order.StatusOK)), said(phase(order.StatusCanceled)), []order.Difference{{Kind: order.KindCaptured, Ours: 5000, Currency: "EUR"}}},
		"it is under way":        {said(item(order.KindCaptured, order.StatusOK)), said(phase(order.StatusProcessing)), nil},
		"over, and captured":     {said(captured(5000, 1)), said(phase(order.StatusCanceled), captured(5000, 2)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, ledgerOf(tt.known, tt.answer).Contradictions(tt.answer))
		})
	}
}

// Whatever a ledger has joined in the order in which a gateway numbers it, the last of it is no contradiction.
func TestTheLastWordIsNoContradiction(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := order.NewLedger()
		var last order.Event
		for seq := range int64(rapid.IntRange(1, 5).Draw(t, "answers")) {
			last = said(
				order.Fact{Kind: order.KindCaptured, Amount: rapid.Int64Range(0, 3).Draw(t, "captured"), Currency: "EUR", Seq: seq},
				order.Fact{Kind: order.KindRefunded, Amount: rapid.Int64Range(0, 3).Draw(t, "refunded"), Currency: "EUR", Seq: seq},
			)
			l.JoinEvent(last)
			require.False(t, l.Learns(last), "what was joined is nothing new")
		}
		require.Empty(t, l.Contradictions(last))
	})
}
