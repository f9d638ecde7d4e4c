package order

// Booked returns what the gateway has told of the payment's money in a currency, in minor units: how much of it is captured, and
// how much went back in all, whoever wanted that. An uncaptured rest that the gateway books as if it were refunded is none of it.
// Unlike an order's sums these are not capped by each other, so that they can be held against the gateway's own books; refunded
// may be [All].
func (l *Ledger) Booked(currency string) (captured, refunded int64) {
	m := l.Money[currency]
	if m == nil {
		return 0, 0
	}
	captured, _ = m.captured()
	if refunded, _ = m.refunded(); refunded != All {
		refunded = sub(refunded, m.Released)
	}
	return captured, refunded
}
