package order_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// factsOf reads facts about two payments from bytes, eight for each: any bytes are some facts, many of them invalid.
func factsOf(data []byte) (payments []string, facts []order.Fact) {
	for ; len(data) >= 8; data = data[8:] {
		kinds := []order.Kind{
			order.KindAuthorized, order.KindCaptured, order.KindRefunded, order.KindReleased, order.KindDisputed, order.KindPhase, "?",
		}
		statuses := slices.Concat(itemStatuses, disputeStatuses, phaseStatuses, []order.Status{"", "?"})
		amounts := []int64{0, 1, 2, 3, 4, 5, 8, all, all - 1, all / 2, -1}
		refs := []string{"", "x", "y", "\xff"}
		facts = append(facts, order.Fact{
			Kind:     kinds[int(data[1])%len(kinds)],
			Ref:      refs[int(data[2])%len(refs)],
			Status:   statuses[int(data[3])%len(statuses)],
			Amount:   amounts[int(data[4])%len(amounts)],
			Currency: []string{"EUR", "EUR", "USD", "", "eur"}[int(data[5])%5],
			Seq:      int64(int8(data[6])),
			Forced:   data[7]&1 != 0,
			Via:      data[7]&2 != 0,
			Misfit:   []order.Misfit{"", "", order.MisfitMode, order.MisfitAccount}[data[7]>>2&3],
		})
		payments = append(payments, []string{"A", "B"}[data[0]%2])
	}
	return payments, facts
}

// FuzzFold: whatever facts say, folding does not panic, does not depend on order or copies, survives storage, and its
// sums add up. What is owed is what the view says.
func FuzzFold(f *testing.F) {
	f.Add([]byte{}, int64(4), uint8(1))
	f.Add([]byte{0, 1, 0, 13, 4, 0, 0, 0, 0, 2, 1, 2, 1, 0, 0, 1, 1, 5, 0, 12, 0, 0, 9, 0}, int64(4), uint8(1))
	f.Add([]byte{0, 1, 1, 3, 7, 0, 0, 0, 0, 1, 1, 2, 1, 0, 1, 0, 0, 4, 1, 5, 7, 2, 1, 2}, int64(0), uint8(7))
	f.Fuzz(func(t *testing.T, data []byte, price int64, bits uint8) {
		payments, facts := factsOf(data[:min(len(data), 8*64)])
		o := registered(max(price, 0) % all)
		o.Registered, o.Canceled, o.Create = bits&1 != 0, bits&2 != 0, bits&4 != 0
		reversed := *o
		reversed.Payments = map[string]*order.Ledger{}

		b := order.NewBook(0, order.ToldNothing, order.View{}, 0, nil)
		for i, fact := range facts {
			before := o.View()
			join(o, payments[i], fact, facts[i/2])
			if fact.Validate() != nil && facts[i/2].Validate() != nil {
				require.Equal(t, before, o.View())
			}
			b.Step("facts", o.View(), epoch)
			require.LessOrEqual(t, len(b.New()), i+1)
			j := len(facts) - 1 - i
			join(&reversed, payments[j], facts[j])
		}
		v := o.View()
		b.Step("end", v, epoch)
		require.Equal(t, owed(v), live(t, b))

		for i := range facts { // the copies above joined some facts to the other payment too
			join(&reversed, payments[i], facts[i/2])
		}
		require.Equal(t, v, reversed.View())
		for p, l := range o.Payments {
			require.Equal(t, l, reversed.Payments[p])
			o.Payments[p] = stored(t, l)
		}
		require.Equal(t, v, o.View())

		require.Equal(t, v.Kept, v.Captured-v.Refunded-v.Lost)
		for _, sum := range []int64{v.Captured, v.Refunded, v.Lost, v.Kept, v.AtRisk, v.Authorized} {
			require.GreaterOrEqual(t, sum, int64(0))
			require.Less(t, sum, int64(all))
		}
		require.LessOrEqual(t, v.AtRisk, v.Kept)
		require.Contains(t, order.States(), v.State)
		if !v.Registered {
			require.NotEqual(t, order.StatePaid, v.State)
		}
		_, err := json.Marshal(v)
		require.NoError(t, err)
	})
}
