package order_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

func TestBooked(t *testing.T) {
	t.Parallel()
	ledger := func(facts ...order.Fact) *order.Ledger {
		l := order.NewLedger()
		for _, f := range facts {
			require.NoError(t, f.Validate())
			l.Join(f)
		}
		return l
	}
	captured := func(minor int64) order.Fact {
		return order.Fact{Kind: order.KindCaptured, Amount: minor, Currency: "EUR"}
	}
	refund := func(ref string, status order.Status, minor int64, forced bool) order.Fact {
		return order.Fact{Kind: order.KindRefunded, Ref: ref, Status: status, Amount: minor, Currency: "EUR", Forced: forced}
	}
	for name, tt := range map[string]struct {
		of                 *order.Ledger
		captured, refunded int64
	}{
		"nothing":             {ledger(), 0, 0},
		"captured":            {ledger(captured(5000)), 5000, 0},
		"forced or not":       {ledger(captured(5000), refund("a", order.StatusOK, 1000, false), refund("b", order.StatusOK, 500, true)), 5000, 1500},
		"pending and failed":  {ledger(captured(5000), refund("a", order.StatusPending, 1000, false), refund("b", order.StatusFailed, 500, false)), 5000, 0},
		"more than captured":  {ledger(captured(5000), refund("a", order.StatusOK, 6000, false)), 5000, 6000},
		"an uncaptured rest":  {ledger(captured(5000), order.Fact{Kind: order.KindReleased, Amount: 1000, Currency: "EUR"}, order.Fact{Kind: order.KindRefunded, Amount: 1200, Currency: "EUR"}), 5000, 200},
		"everything":          {ledger(captured(5000), order.Fact{Kind: order.KindRefunded, Amount: order.All, Currency: "EUR"}), 5000, order.All},
		"a capture that fell": {ledger(captured(5000), order.Fact{Kind: order.KindCaptured, Ref: "c", Status: order.StatusFailed, Amount: order.All, Currency: "EUR"}), 0, 0},
		"another currency":    {ledger(order.Fact{Kind: order.KindCaptured, Amount: 5000, Currency: "USD"}), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := tt.of.Booked("EUR")
			require.Equal(t, []int64{tt.captured, tt.refunded}, []int64{c, r})
		})
	}
}
