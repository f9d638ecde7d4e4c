package order

// sums are what payments come to, one or all of an order.
type sums struct {
	captured, refunded, lost, kept, risk, authorized int64

	ever   bool  // money was here once
	live   int   // payments of which something that counts is known
	closed int   // of these, the ones that are over; matters only where no payment has money
	last   Phase // the latest phase of a closed one; equal ones are equal in their status, so no id has to decide
}

// shownCurrency returns the currency in which a payment of a stub is shown: the only one as a rule, else the first.
func shownCurrency(money map[string]*Money) string {
	first := ""
	for cur := range money {
		if first == "" || cur < first {
			first = cur
		}
	}
	return first
}

// counted is what counts of the payment: the gateway's word, or the checkout's as long as there is no other.
func (l *Ledger) counted() map[string]*Money {
	if !l.Confirming() {
		return l.Money
	}
	money := make(map[string]*Money, len(l.Confirmed))
	for cur, c := range l.Confirmed {
		money[cur] = &Money{Authorized: c.Authorized, CapturedTotal: Total{Amount: c.Captured}}
	}
	return money
}

// belied reports whether a checkout was told that money was captured, and the gateway that the payment came to nothing:
// whatever was delivered on that word has to come back.
func (l *Ledger) belied(currency string) bool {
	return l.told() && l.Phase.closed() && l.Confirmed[currency].Captured > 0
}

// sums counts the payment in the order's currency, and returns what is odd about it. In a stub each payment counts in the
// currency that it shows.
func (l *Ledger) sums(registered bool, currency string) (s sums, odd Flags) {
	money := l.counted()
	if !registered {
		currency = shownCurrency(money)
	}
	for cur := range money {
		if registered && cur != currency {
			odd |= FlagCurrencyMismatch
		}
	}
	m := money[currency]
	if m == nil {
		m = &Money{}
	}

	captured, unknown := m.captured()
	if unknown {
		odd |= FlagAmountUnknown
	}
	refunded, forced := m.refunded()
	if refunded != All {
		refunded = sub(refunded, m.Released)
		if captured > 0 && refunded > captured {
			odd |= FlagOverRefunded
		}
	}
	refunded = min(refunded, captured) // capped per payment, so that one cannot eat another
	forced = min(forced, refunded)

	rest := captured - refunded
	lost, risk, foreign := l.disputed(currency, captured, refunded)
	if foreign && registered {
		odd |= FlagCurrencyMismatch
	}
	lost = min(lost, rest)
	risk = min(risk, rest-lost)

	s = sums{
		captured: captured, refunded: refunded - forced, lost: lost + forced,
		kept: rest - lost, risk: risk, ever: m.ever() || l.belied(currency),
	}
	if !l.Phase.closed() {
		s.authorized = m.Authorized
	}
	if len(money) > 0 || len(l.Disputes) > 0 || l.Phase.Status != "" {
		s.live = 1
		if l.Phase.closed() {
			s.closed, s.last = 1, l.Phase
		}
	}
	return s, odd
}

// plus adds the payments of t to those of s.
func (s sums) plus(t sums) sums {
	return sums{
		captured:   total(s.captured, t.captured),
		refunded:   total(s.refunded, t.refunded),
		lost:       total(s.lost, t.lost),
		kept:       total(s.kept, t.kept),
		risk:       total(s.risk, t.risk),
		authorized: total(s.authorized, t.authorized),
		ever:       s.ever || t.ever,
		live:       s.live + t.live,
		closed:     s.closed + t.closed,
		last:       s.last.join(t.last),
	}
}

// bounded makes the sums add up again where one of them stopped at the limit: kept is what was captured and neither
// refunded nor lost. Below the limit it changes nothing.
func (s sums) bounded() sums {
	s.refunded = min(s.refunded, s.captured)
	s.lost = min(s.lost, s.captured-s.refunded)
	s.kept = s.captured - s.refunded - s.lost
	s.risk = min(s.risk, s.kept)
	return s
}

// captured returns the larger of two lower bounds: what the captures that are ok add up to, and what the running total
// leaves once the captures that failed are taken off. A capture that is ok without a number (it had failed, "all of it")
// counts nothing: it must not take away what others brought.
func (m *Money) captured() (amount int64, unknown bool) {
	var ok, undone int64
	for _, it := range m.Captures {
		switch {
		case it.Status == StatusOK && it.Amount == All:
			unknown = true
		case it.Status == StatusOK:
			ok = total(ok, it.Amount)
		case it.Status == StatusFailed:
			undone = add(undone, it.Amount)
		}
	}
	return max(ok, sub(m.CapturedTotal.Amount, undone)), unknown
}

// refunded returns the same of refunds, and how much of it was forced. A total of [All] stays all, whatever failed: it
// must not come to less than a number would.
func (m *Money) refunded() (amount, forced int64) {
	var ok, undone int64
	for _, it := range m.Refunds {
		switch it.Status {
		case StatusOK:
			ok = add(ok, it.Amount)
			if it.Forced {
				forced = add(forced, it.Amount)
			}
		case StatusFailed:
			undone = add(undone, it.Amount)
		}
	}
	if m.RefundedTotal.Amount == All {
		return All, forced
	}
	return max(ok, sub(m.RefundedTotal.Amount, undone)), forced
}

// disputed returns what lost and open disputes take, before any cap. What is in another currency cannot be counted, so
// everything that is left is at stake. A lost dispute that also comes as a refund counts until that refund is seen.
func (l *Ledger) disputed(currency string, captured, refunded int64) (lost, risk int64, foreign bool) {
	var via int64
	for _, d := range l.Disputes {
		amount := d.Amount
		if amount != 0 && d.Currency != currency {
			amount, foreign = All, true
		}
		switch {
		case d.Status == StatusOpen:
			risk = add(risk, amount)
		case d.Status == StatusLost && d.Via:
			via = add(via, amount)
		case d.Status == StatusLost:
			lost = add(lost, amount)
		}
	}
	return add(lost, sub(min(via, captured), refunded)), risk, foreign
}

func (m *Money) ever() bool {
	for _, it := range m.Captures {
		if it.Was && it.Amount > 0 {
			return true
		}
	}
	return m.Ever
}
