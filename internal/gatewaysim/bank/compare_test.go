package bank_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

func TestCompare(t *testing.T) {
	t.Parallel()
	refund := func(given, key, ref string, cents int64) bank.Movement {
		return bank.Movement{Kind: order.MovementRefund, Amount: order.Amount{Minor: cents, Currency: "EUR"}, Given: given, Key: key, Ref: ref, Status: order.StatusOK}
	}
	pay := func(captured, refunded int64, ids []string, moves ...bank.Movement) bank.Payment {
		return bank.Payment{Source: "s", IDs: ids, Sums: map[string]bank.Sums{"EUR": {Authorized: 9000, Captured: captured, Refunded: refunded}}, Movements: moves}
	}
	pi := []string{"pi_1", "ch_1"}
	failed := refund("m-1", "k", "re", 1000)
	failed.Status = order.StatusFailed
	opening := refund("", "", "cap", 5000)
	opening.Opening = true
	for name, row := range map[string]struct {
		theirs, ours []bank.Payment
		want         string
	}{
		"nothing": {nil, nil, ""},
		"the same": {
			[]bank.Payment{pay(5000, 1000, pi, opening, refund("m-1", "k", "re", 1000))},
			[]bank.Payment{pay(5000, 1000, []string{"ch_1"}, refund("m-1", "", "", 1000))},
			"",
		},
		"by key":    {[]bank.Payment{pay(5000, 0, pi, refund("", "k", "re", 1000))}, []bank.Payment{pay(5000, 0, pi, refund("m-1", "k", "", 1000))}, ""},
		"by ref":    {[]bank.Payment{pay(5000, 0, pi, refund("", "", "re", 1000))}, []bank.Payment{pay(5000, 0, pi, refund("m-1", "k", "re", 1000))}, ""},
		"by amount": {[]bank.Payment{pay(5000, 0, pi, refund("", "", "", 1000))}, []bank.Payment{pay(5000, 0, pi, refund("m-1", "k", "re", 1000))}, ""},
		"sums": {
			[]bank.Payment{pay(5000, 1000, pi)},
			[]bank.Payment{pay(4000, 0, pi)},
			"s pi_1/ch_1: the bank has captured 50.00 EUR, we have 40.00\ns pi_1/ch_1: the bank has refunded 10.00 EUR, we have 0.00",
		},
		"another currency": {
			[]bank.Payment{pay(5000, 0, pi)},
			[]bank.Payment{{Source: "s", IDs: pi, Sums: map[string]bank.Sums{"EUR": {Captured: 5000}, "JPY": {Captured: 7}}}},
			"s pi_1/ch_1: the bank has captured 0 JPY, we have 7",
		},
		"authorized is not compared": {[]bank.Payment{pay(0, 0, pi)}, nil, ""},
		"another source":             {[]bank.Payment{pay(5000, 0, pi)}, []bank.Payment{{Source: "t", IDs: pi, Sums: map[string]bank.Sums{"EUR": {Captured: 5000}}}}, "s pi_1/ch_1: the bank has captured 50.00 EUR, we have 0.00\nt pi_1/ch_1: the bank has captured 0.00 EUR, we have 50.00"},
		"unknown to us": {
			[]bank.Payment{pay(5000, 1000, pi, refund("m-1", "k", "re", 1000))},
			[]bank.Payment{pay(5000, 1000, pi)},
			"s pi_1/ch_1: we do not know of a refund of 10.00 EUR, given m-1, key k, ref re",
		},
		"unknown to them": {
			[]bank.Payment{pay(5000, 1000, pi)},
			[]bank.Payment{pay(5000, 1000, pi, refund("m-1", "", "", 1000))},
			"s pi_1/ch_1: the bank does not know of a refund of 10.00 EUR, given m-1",
		},
		"twice": {
			[]bank.Payment{pay(5000, 2000, pi, refund("m-1", "k-1", "re_1", 1000), refund("m-1", "k-2", "re_2", 1000))},
			[]bank.Payment{pay(5000, 2000, pi, refund("m-1", "k-1", "re_1", 1000))},
			"s pi_1/ch_1: the bank has done m-1 2 times\ns pi_1/ch_1: we do not know of a refund of 10.00 EUR, given m-1, key k-2, ref re_2",
		},
		"failed and again": {
			[]bank.Payment{pay(5000, 1000, pi, failed, refund("m-1", "k-2", "re_2", 1000))},
			[]bank.Payment{pay(5000, 1000, pi, failed, refund("m-1", "k-2", "re_2", 1000))},
			"",
		},
		"failed, and we think it is not": {
			[]bank.Payment{pay(5000, 0, pi, failed)},
			[]bank.Payment{pay(5000, 0, pi, refund("m-1", "k", "re", 1000))},
			"s pi_1/ch_1: the bank has a refund of 10.00 EUR, given m-1, key k, ref re, failed; we have a refund of 10.00 EUR, given m-1, key k, ref re",
		},
		"failed, and never was": {[]bank.Payment{pay(5000, 0, pi)}, []bank.Payment{pay(5000, 0, pi, failed)}, ""},
		"another amount": {
			[]bank.Payment{pay(5000, 1000, pi, refund("m-1", "", "", 1000))},
			[]bank.Payment{pay(5000, 1000, pi, refund("m-1", "", "", 1001))},
			"s pi_1/ch_1: the bank has a refund of 10.00 EUR, given m-1; we have a refund of 10.01 EUR, given m-1",
		},
		"two payments that are one to them": {
			[]bank.Payment{pay(5000, 1000, []string{"auth", "cap"}, refund("m-1", "", "", 1000))},
			[]bank.Payment{pay(0, 0, []string{"auth"}), pay(5000, 1000, []string{"cap"}, refund("m-1", "", "", 1000))},
			"",
		},
		"two that turn out to be one": {
			[]bank.Payment{pay(3000, 0, []string{"a"}), pay(2000, 0, []string{"b"})}, []bank.Payment{pay(5000, 0, []string{"a", "b"})}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, row.want, bank.Compare(bank.Books{Payments: row.theirs}, bank.Books{Payments: row.ours}))
		})
	}
}
