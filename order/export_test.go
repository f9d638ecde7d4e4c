package order

// Sums is what of a payment an order can see. Two ledgers with the same sums are the same to every order, which is what
// makes the enumeration of moves finite and quick.
type Sums = sums

// SumsOf returns the sums of a payment in a currency.
func SumsOf(l *Ledger, currency string) Sums {
	s, _ := l.sums(true, currency)
	return s
}

// Captured returns what was captured.
func (s sums) Captured() int64 { return s.captured }

// Returned returns what was refunded or reversed.
func (s sums) Returned() int64 { return s.refunded + s.lost }

// StateOf returns the state of an order of a price (All: a stub) with the payments a and b.
func StateOf(a, b Sums, price int64, canceled bool) State { return a.plus(b).state(price, canceled) }

// Causes returns the causes of one fact.
func (f Fact) Causes() Causes { return f.causes() }
