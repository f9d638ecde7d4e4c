package order_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/paidonce/paidonce/order"
)

// TestMain raises the number of random checks per property, unless -rapid.checks says how many.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given && !testing.Short() {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

const all = order.All

// In the tests money is EUR unless a currency is named.

func authorized(amount int64) order.Fact {
	return order.Fact{Kind: order.KindAuthorized, Amount: amount, Currency: "EUR"}
}

func capturedTotal(amount, seq int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Amount: amount, Currency: "EUR", Seq: seq}
}

func capture(ref string, s order.Status, amount, seq int64) order.Fact {
	return order.Fact{Kind: order.KindCaptured, Ref: ref, Status: s, Amount: amount, Currency: "EUR", Seq: seq}
}

func refundedTotal(amount, seq int64) order.Fact {
	return order.Fact{Kind: order.KindRefunded, Amount: amount, Currency: "EUR", Seq: seq}
}

func refund(ref string, s order.Status, amount, seq int64) order.Fact {
	return order.Fact{Kind: order.KindRefunded, Ref: ref, Status: s, Amount: amount, Currency: "EUR", Seq: seq}
}

func reversal(ref string, amount int64) order.Fact {
	return order.Fact{Kind: order.KindRefunded, Ref: ref, Status: order.StatusOK, Amount: amount, Currency: "EUR", Forced: true}
}

func released(amount int64) order.Fact {
	return order.Fact{Kind: order.KindReleased, Amount: amount, Currency: "EUR"}
}

func dispute(ref string, s order.Status, amount, seq int64) order.Fact {
	return order.Fact{Kind: order.KindDisputed, Ref: ref, Status: s, Amount: amount, Currency: "EUR", Seq: seq}
}

func phase(s order.Status, seq int64) order.Fact {
	return order.Fact{Kind: order.KindPhase, Status: s, Seq: seq}
}

func via(f order.Fact) order.Fact { f.Via = true; return f }

func in(currency string, f order.Fact) order.Fact { f.Currency = currency; return f }

// registered is an order of a total in EUR without payments.
func registered(total int64) *order.Order {
	return &order.Order{Registered: true, Total: total, Currency: "EUR", Payments: map[string]*order.Ledger{}}
}

// stub is an order that nobody registered.
func stub() *order.Order { return &order.Order{Payments: map[string]*order.Ledger{}} }

// join joins facts of one payment.
func join(o *order.Order, payment string, facts ...order.Fact) {
	l := o.Payments[payment]
	if l == nil {
		l = order.NewLedger()
		o.Payments[payment] = l
	}
	for _, f := range facts {
		l.Join(f)
	}
}

// folded is the view of an order of a total with one payment.
func folded(total int64, facts ...order.Fact) order.View {
	o := registered(total)
	join(o, "A", facts...)
	return o.View()
}

// owed is what a merchant that was told nothing is owed.
func owed(v order.View) order.Effect { return order.Next(order.ToldNothing, v.Want) }

// epoch is when every test begins.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
