package bank_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

// TestLook finds what was done, and proves of what was not that it was not.
func TestLook(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		if g.Calls.Look == nil {
			t.Skip("it cannot be asked")
		}
		for title, row := range map[string]struct {
			kind     order.MovementKind
			captured bool
		}{"refund": {order.MovementRefund, true}, "capture": {order.MovementCapture, false}, "void": {order.MovementVoid, false}} {
			for fault, want := range map[bank.Fault]gateway.Ruling{bank.LostAfter: gateway.Done, bank.LostBefore: gateway.Absent} {
				s := open(t, bank.Options{})
				l := newLedgers(t, s, g.Name)
				s.pay(g.Name, "A-1", row.captured)
				s.Pump(t.Context())
				l.webhooks()
				cents := int64(1000)
				if row.kind == order.MovementVoid {
					cents = 5000
				}
				m := l.movement(1, row.kind, "A-1", cents)
				if row.kind == order.MovementRefund { // another's, of the same amount
					v, err := l.try(l.movement(2, row.kind, "A-1", cents), key(2, 1))
					require.NoError(t, err)
					require.Equal(t, gateway.Done, v.Ruling)
				}
				s.Script(bank.Match{Kind: bank.Kind(row.kind)}, bank.Step{fault})
				_, err := l.try(m, key(1, 1))
				require.Error(t, err)
				v, err := l.look(m)
				require.NoError(t, err)
				require.Equal(t, want, v.Ruling, "%s %s: %s", title, fault, v.Detail)
				if want != gateway.Done {
					continue
				}
				again, err := l.try(m, key(1, 1))
				require.NoError(t, err)
				if again.Ruling == gateway.Done { // where there is no key it is refused by now
					require.Equal(t, v.Ref, again.Ref)
				}
				l.take(v)
				s.Settle(t.Context())
				l.webhooks()
				book := s.Books().Payments[0].Sums["EUR"]
				require.Equal(t, bank.Sums{Captured: book.Captured, Refunded: book.Refunded}, l.sums("A-1"), title)
			}
		}
	})
}

// TestLookFindsWhatIsUnderWay: a refund that is pending was made, and one that does not show whose it is proves nothing.
func TestLookFindsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	called(t, func(t *testing.T, g *gateway.Gateway) {
		if g.Calls.Look == nil {
			t.Skip("it cannot be asked")
		}
		for unmarked, want := range map[bool]gateway.Ruling{false: gateway.Done, true: gateway.Unsure} {
			if unmarked && g.Name != "mercadopago" {
				continue
			}
			s := open(t, bank.Options{})
			l := newLedgers(t, s, g.Name)
			_, err := s.Open(bank.Opening{
				Source: l.src.ID, Reference: "A-1", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: true, Unmarked: unmarked,
			})
			require.NoError(t, err)
			s.Pump(t.Context())
			l.webhooks()
			m := l.movement(1, order.MovementRefund, "A-1", 1000)
			s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.LostAfter, bank.RefundPends})
			_, err = l.try(m, key(1, 1))
			require.Error(t, err)
			v, err := l.look(m)
			require.NoError(t, err)
			require.Equal(t, want, v.Ruling, v.Detail)
		}
	})
}
