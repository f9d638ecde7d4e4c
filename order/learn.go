package order

import (
	"cmp"
	"slices"
)

// Learns reports whether e says something of the payment that changes what it comes to: a sum in any currency, how far it is, or
// what somebody should look at. What is said in other words, under other ids, or of another order is nothing new.
func (l *Ledger) Learns(e Event) bool {
	with := l.Clone()
	with.JoinEvent(e)
	currencies := []string{""} // of a stub
	for _, f := range e.Facts {
		currencies = append(currencies, f.Currency)
	}
	slices.Sort(currencies)
	for _, cur := range slices.Compact(currencies) {
		if l.alone(cur) != with.alone(cur) {
			return true
		}
	}
	return false
}

// alone is the view of an order in that currency that has this payment only; currency "": of a stub.
func (l *Ledger) alone(currency string) View {
	o := Order{Registered: currency != "", Total: All, Currency: currency, Payments: map[string]*Ledger{"": l}}
	return o.View()
}

// Difference is what a gateway says of a payment now and what our ledger says. Amounts are minor units of Currency.
type Difference struct {
	Kind     Kind   // captured or refunded
	Ref      string // one capture or refund; empty: the payment's running total
	Ours     int64
	Theirs   int64
	Currency string
}

// Contradictions returns where e, which tells how the payment stands by now, says that less was captured or refunded than l, which
// has joined it: facts are never taken back, so that such an answer moves nothing. What e does not speak of is no contradiction. A
// payment that is over, of which e tells no capture, has none by its word.
func (l *Ledger) Contradictions(e Event) []Difference {
	var (
		found []Difference
		over  bool
		says  = map[string]bool{} // currencies of whose captures it speaks
	)
	for _, f := range e.Facts {
		if f.Misfit != "" || f.Validate() != nil {
			continue
		}
		over = over || f.Kind == KindPhase && (Phase{Status: f.Status}).closed()
		if !f.itemised() {
			continue
		}
		says[f.Currency] = says[f.Currency] || f.Kind == KindCaptured
		if ours, less := l.more(f); less {
			theirs := f.Amount
			if f.Ref != "" {
				theirs = 0
			}
			found = append(found, Difference{f.Kind, f.Ref, ours, theirs, f.Currency})
		}
	}
	for cur, m := range l.Money {
		if captured, _ := m.captured(); over && !says[cur] && captured > 0 {
			found = append(found, Difference{KindCaptured, "", captured, 0, cur})
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Ref, b.Ref), cmp.Compare(a.Currency, b.Currency))
	})
	return found
}

// more reports whether l holds more than f says, and how much it holds: of a total, or of a capture or refund that never was, or was
// undone.
func (l *Ledger) more(f Fact) (ours int64, more bool) {
	m := l.Money[f.Currency]
	switch {
	case m == nil:
		return 0, false
	case f.Ref != "":
		items := m.Captures
		if f.Kind == KindRefunded {
			items = m.Refunds
		}
		it := items[f.Ref]
		return it.Amount, it.Status == StatusOK && (f.Status == StatusDenied || f.Status == StatusFailed)
	case f.Kind == KindCaptured:
		ours, _ = m.captured()
	default:
		ours, _ = m.refunded()
	}
	return ours, ours > f.Amount
}
