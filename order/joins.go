package order

import "cmp"

func (t Total) join(u Total) Total {
	if cmp.Or(cmp.Compare(u.Seq, t.Seq), cmp.Compare(u.Amount, t.Amount)) > 0 {
		return u
	}
	return t
}

func (a Item) join(b Item) Item {
	r := a
	if cmp.Or(cmp.Compare(b.Seq, a.Seq), cmp.Compare(itemRank(b.Status), itemRank(a.Status))) > 0 {
		r = b
	}
	r.Amount = max(a.Amount, b.Amount)
	r.Forced = a.Forced || b.Forced
	r.Was = a.Was || b.Was
	return r
}

func (d Dispute) join(e Dispute) Dispute {
	if d.compare(e) < 0 {
		return e
	}
	return d
}

func (d Dispute) compare(e Dispute) int {
	return cmp.Or(
		cmp.Compare(d.Seq, e.Seq),
		cmp.Compare(disputeRank(d.Status), disputeRank(e.Status)),
		cmp.Compare(d.Amount, e.Amount),
		cmp.Compare(d.Currency, e.Currency),
		cmp.Compare(btoi(d.Via), btoi(e.Via)),
	)
}

func (p Phase) join(q Phase) Phase {
	if p.compare(q) < 0 {
		return q
	}
	return p
}

func (p Phase) compare(q Phase) int {
	return cmp.Or(cmp.Compare(p.Seq, q.Seq), cmp.Compare(phaseRank(p.Status), phaseRank(q.Status)))
}

// closed reports whether the payment will not bring money any more, as far as its phase says.
func (p Phase) closed() bool {
	return p.Status == StatusFailed || p.Status == StatusExpired || p.Status == StatusCanceled
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// add is a sum that stops at [All], sub a difference that stops at 0. Both take amounts that are not negative; add is
// commutative and associative, so sums do not depend on the iteration of a map.
func add(a, b int64) int64 {
	if a > All-b {
		return All
	}
	return a + b
}

// total is add for the sums of an order, which stay below [All]: no sum is ever "everything", or as much as a stub costs.
func total(a, b int64) int64 { return min(add(a, b), All-1) }

func sub(a, b int64) int64 { return max(a-b, 0) }
