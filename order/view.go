package order

// Order is everything that decides what an order is: what the merchant said, and its payments.
type Order struct {
	Registered bool   // by the merchant, through our API
	Total      int64  // in minor units of Currency; read only if Registered
	Currency   string // ISO 4217
	Canceled   bool   // by the merchant, through our API

	// Create lets a gateway register the order: its total is then the greatest own amount of its payments, until the
	// merchant registers it.
	Create bool

	// Marks are flags that cannot be derived from the payments and are kept beside them.
	Marks Flags

	// Payments are the ledgers of the order's payments. The key names the payment (the least of its ids); nothing here
	// depends on it.
	Payments map[string]*Ledger
}

// View is what an order is. It is comparable: two views are the same if they are equal.
// Amounts are in minor units of Currency, summed over the payments; each sum stops one below [All].
type View struct {
	State      State  `json:"state"`
	Flags      Flags  `json:"flags"`
	Want       Want   `json:"want"`
	Registered bool   `json:"registered"` // by the merchant, or by a gateway's amount where that is allowed
	Total      int64  `json:"total"`      // 0 of a stub, whose total is unknown
	Currency   string `json:"currency"`   // of a stub: the one that all its money is in; empty if it has none or several

	Captured   int64 `json:"captured"`
	Refunded   int64 `json:"refunded"` // given back by the merchant
	Lost       int64 `json:"lost"`     // taken back: lost disputes and reversals
	Kept       int64 `json:"kept"`     // captured, and neither refunded nor lost
	AtRisk     int64 `json:"at_risk"`  // of what is kept, in open disputes
	Authorized int64 `json:"authorized"`
}

// sums are the sums of an order and what its payments are as a whole.
type sums struct {
	captured, refunded, lost, kept, risk, authorized int64

	ever   bool  // money was here once
	live   int   // payments of which something that counts is known
	closed int   // of these, the ones that are over without money
	last   Phase // the latest phase of a closed one; equal ones are equal in their status, so no id has to decide
}

// View folds the order. It is a pure function: neither the iteration of a map nor the history of o matters.
func (o *Order) View() View {
	v := View{Registered: o.Registered, Total: o.Total, Currency: o.Currency, Flags: o.Marks}
	own, known := o.own()
	switch {
	case o.Registered:
		if o.Create && known && own != (Amount{o.Total, o.Currency}) {
			v.Flags |= FlagTotalDiffers
		}
	case o.Create && known:
		v.Registered, v.Total, v.Currency = true, own.Minor, own.Currency
	default:
		v.Total, v.Currency = 0, o.stubCurrency()
		v.Flags |= FlagUnregistered
	}

	var s sums
	for _, l := range o.Payments {
		v.Flags |= l.Flags | s.add(l, v.Registered, v.Currency)
	}
	v.Captured, v.Refunded, v.Lost = s.captured, s.refunded, s.lost
	v.Kept, v.AtRisk, v.Authorized = s.kept, s.risk, s.authorized

	price := v.Total
	if !v.Registered {
		price = All // what a stub costs is unknown: no amount is enough
	}
	v.State = s.state(price, o.Canceled)
	v.Flags |= s.flags(v, o.Canceled)
	v.Want = s.want(v, o.Canceled)
	return v
}

// own returns the greatest amount that a payment has of its own.
func (o *Order) own() (greatest Amount, known bool) {
	for _, l := range o.Payments {
		if l.Own != nil && (!known || l.Own.compare(greatest) > 0) {
			greatest, known = *l.Own, true
		}
	}
	return greatest, known
}

// stubCurrency returns the currency that every payment of a stub shows, if it is one.
func (o *Order) stubCurrency() string {
	cur := ""
	for _, l := range o.Payments {
		switch shown := l.shownCurrency(); {
		case shown == "":
		case cur == "":
			cur = shown
		case cur != shown:
			return ""
		}
	}
	return cur
}

// shownCurrency returns the currency in which a payment of a stub is shown: the only one as a rule, else the first.
func (l *Ledger) shownCurrency() string {
	first := ""
	for cur := range l.Money {
		if first == "" || cur < first {
			first = cur
		}
	}
	return first
}

// add adds a payment, counted in the order's currency, and returns what is odd about it. In a stub each payment counts
// in the currency that it shows.
func (s *sums) add(l *Ledger, registered bool, currency string) Flags {
	var odd Flags
	if !registered {
		currency = l.shownCurrency()
	}
	for cur := range l.Money {
		if registered && cur != currency {
			odd |= FlagCurrencyMismatch
		}
	}
	m := l.Money[currency]
	if m == nil {
		m = &Money{}
	}

	captured, _ := counted(m.Captures, m.CapturedTotal, 0)
	if captured == All { // no number: nothing to compare with a total
		captured, odd = 0, odd|FlagAmountUnknown
	}
	refunded, forced := counted(m.Refunds, m.RefundedTotal, add(captured, m.Released))
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

	s.captured = total(s.captured, captured)
	s.refunded = total(s.refunded, refunded-forced)
	s.lost = total(s.lost, lost+forced)
	s.kept = total(s.kept, rest-lost)
	s.risk = total(s.risk, risk)
	s.ever = s.ever || m.ever()
	if !l.Phase.closed() {
		s.authorized = total(s.authorized, m.Authorized)
	}
	if len(l.Money) == 0 && len(l.Disputes) == 0 && l.Phase.Status == "" {
		return odd
	}
	s.live++
	if l.Phase.closed() && captured == 0 {
		s.closed++
		s.last = s.last.join(l.Phase)
	}
	return odd
}

// counted returns the larger of two lower bounds: what the ids that are ok add up to, and what a running total leaves
// once the ids that failed are taken off. It also returns how much of it was forced. A total of [All] means whatever
// there is.
func counted(items map[string]Item, total Total, there int64) (amount, forced int64) {
	var ok, undone int64
	for _, it := range items {
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
	if total.Amount == All {
		total.Amount = there
	}
	return max(ok, sub(total.Amount, undone)), forced
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
