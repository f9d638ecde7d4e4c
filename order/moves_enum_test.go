package order_test

import (
	"fmt"

	"github.com/paidonce/paidonce/order"
)

// The enumeration of moves goes through every ledger that a list of facts can make. Fields of a ledger join
// independently, so those ledgers are a product; and an order sees little of a payment, so most of them are the same to
// it. Both together make millions of ledgers a matter of a second.

// axis is one dimension of what a payment can be: ledgers, the empty one first, and how single facts lead from one to
// another.
type axis struct {
	ledgers []*order.Ledger
	steps   []step
}

type step struct {
	from, to int
	cause    order.Causes
}

// field is the axis of one field of a ledger: whatever these facts can make of it.
func field(facts ...order.Fact) axis {
	var a axis
	index := map[string]int{}
	add := func(l *order.Ledger) int {
		data, err := l.MarshalJSON()
		if err != nil {
			panic(err)
		}
		if _, known := index[string(data)]; !known {
			index[string(data)] = len(a.ledgers)
			a.ledgers = append(a.ledgers, l)
		}
		return index[string(data)]
	}
	add(order.NewLedger())
	for i := 0; i < len(a.ledgers); i++ {
		for _, f := range facts {
			l := a.ledgers[i].Clone()
			l.Join(f)
			if to := add(l); to != i {
				a.steps = append(a.steps, step{i, to, f.Causes()})
			}
		}
	}
	return a
}

// probe is what else a payment may hold: two ledgers that look the same beside every probe are taken for the same.
type probe []order.Fact

// product multiplies axes and keeps one ledger of each class that looks the same beside all probes.
func product(probes []probe, axes ...axis) axis {
	var (
		out     axis
		looks   [][]order.Sums // of each class, beside each probe
		classOf []int
		index   = map[string]int{}
	)
	var rec func(i int, l *order.Ledger)
	rec = func(i int, l *order.Ledger) {
		if i < len(axes) {
			for _, v := range axes[i].ledgers {
				m := l.Clone()
				m.Merge(v)
				rec(i+1, m)
			}
			return
		}
		look := make([]order.Sums, len(probes))
		for j, facts := range probes {
			m := l.Clone()
			for _, f := range facts {
				m.Join(f)
			}
			look[j] = order.SumsOf(m, "EUR")
		}
		key := fmt.Sprint(look)
		if _, known := index[key]; !known {
			index[key] = len(out.ledgers)
			out.ledgers, looks = append(out.ledgers, l), append(looks, look)
		}
		classOf = append(classOf, index[key])
	}
	rec(0, order.NewLedger())

	seen := map[step]bool{}
	stride := len(classOf)
	for _, a := range axes {
		n := len(a.ledgers)
		stride /= n
		for _, s := range a.steps {
			for at, from := range classOf {
				if at/stride%n != s.from {
					continue
				}
				to := classOf[at+(s.to-s.from)*stride]
				if c := (step{from, to, which(s.cause, looks[from][0], looks[to][0])}); from != to && !seen[c] {
					seen[c] = true
					out.steps = append(out.steps, c)
				}
			}
		}
	}
	return out
}

// which returns the one cause to which a step is put down. A fact that may raise or lower money, by its version, has
// both causes; which one it was shows in the money.
func which(c order.Causes, from, to order.Sums) order.Causes {
	switch c {
	case order.CauseCaptured | order.CauseCaptureFailed:
		if to.Captured() < from.Captured() {
			return order.CauseCaptureFailed
		}
		return order.CauseCaptured
	case order.CauseRefunded | order.CauseRefundFailed:
		if to.Returned() < from.Returned() {
			return order.CauseRefundFailed
		}
		return order.CauseRefunded
	}
	return c
}

// onePayment is everything that a payment of an order of 4 or 8 can be: parts of it, all of it and everything; every
// status before and after every other one.
func onePayment() axis {
	const many = 16 // more than the fields below come to
	captures := product([]probe{
		{},
		{refund("probe", order.StatusOK, 1, 0)},
		{dispute("probe", order.StatusLost, 1, 0)},
	},
		field(capture("x", order.StatusOK, 2, 1), capture("x", order.StatusFailed, 2, 1), capture("x", order.StatusOK, 2, 2),
			capture("x", order.StatusDenied, 2, 3)),
		field(capture("y", order.StatusOK, 2, 0), capture("y", order.StatusFailed, 2, 0)),
		field(capture("z", order.StatusFailed, all, 0)),
		field(capturedTotal(4, 0), capturedTotal(0, 1), capturedTotal(4, 2)),
	)
	refunds := product([]probe{
		{capturedTotal(many, 9)},
		{},
		{capturedTotal(2, 9)},
		{capturedTotal(4, 9)},
	},
		field(refund("p", order.StatusOK, 1, 0), refund("p", order.StatusFailed, 1, 0)),
		field(refund("q", order.StatusOK, 4, 0), refund("q", order.StatusFailed, 4, 1), reversal("q", 4),
			refund("q", order.StatusDenied, 4, 2), refund("q", order.StatusOK, 4, 3)),
		field(refund("s", order.StatusOK, all, 0), refund("s", order.StatusFailed, all, 0)),
		field(refundedTotal(8, 1), refundedTotal(0, 2)),
		field(released(2)),
	)
	disputes := product([]probe{
		{capturedTotal(many, 9)},
		{},
		{capturedTotal(many, 9), refund("probe", order.StatusOK, many/2, 0)},
		{capturedTotal(4, 9), refund("probe", order.StatusOK, 1, 0)},
	},
		field(dispute("d", order.StatusOpen, all, 1), dispute("d", order.StatusWon, all, 2), dispute("d", order.StatusLost, all, 3),
			dispute("d", order.StatusOpen, 1, 4), dispute("d", order.StatusOpen, 0, 5), dispute("d", order.StatusWon, all, 6)),
		field(dispute("e", order.StatusOpen, 1, 0), dispute("e", order.StatusLost, 1, 0)),
		field(via(dispute("f", order.StatusOpen, 3, 0)), via(dispute("f", order.StatusLost, 3, 0))),
	)
	var statuses []order.Fact
	for _, s := range phaseStatuses {
		statuses = append(statuses, phase(s, 1), phase(s, 2))
	}
	return product([]probe{{}}, captures, refunds, disputes, field(statuses...), field(authorized(4)))
}

// input is what an order itself may be.
type input struct {
	price    int64 // All: a stub
	canceled bool
}

func inputs() (all []input) {
	for _, canceled := range []bool{false, true} {
		for _, price := range []int64{order.All, 0, 4, 8} {
			all = append(all, input{price, canceled})
		}
	}
	return all
}

// leadsTo reports whether the merchant can make b of a: orders are never unregistered, and canceled for good.
func (a input) leadsTo(b input) bool {
	return a != b && (b.price != order.All || a.price == order.All) && (b.canceled || !a.canceled)
}

// enumerateMoves tries every single fact on every order of up to two payments, and every command of the merchant.
func enumerateMoves() table {
	one := onePayment()
	moves := table{}
	sums := make([]order.Sums, len(one.ledgers))
	for i, l := range one.ledgers {
		sums[i] = order.SumsOf(l, "EUR")
	}
	for _, other := range sums {
		states := map[input][]order.State{}
		for _, in := range inputs() {
			states[in] = make([]order.State, len(sums))
			for i, s := range sums {
				states[in][i] = order.StateOf(s, other, in.price, in.canceled)
			}
			for _, s := range one.steps {
				moves.add(states[in][s.from], states[in][s.to], s.cause)
			}
		}
		for _, a := range inputs() {
			for _, b := range inputs() {
				for i := range sums {
					if a.leadsTo(b) {
						moves.add(states[a][i], states[b][i], order.CauseOrder)
					}
				}
			}
		}
	}
	return moves
}
