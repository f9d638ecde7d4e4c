package settlement

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/paidonce/paidonce/order"
)

// Reason is why a line cannot be explained.
type Reason string

// The reasons.
const (
	Unreadable      Reason = "unreadable"
	UnknownType     Reason = "unknown_type"
	NoPaymentID     Reason = "no_payment_id"
	UnknownPayment  Reason = "unknown_payment"
	Twice           Reason = "twice"
	CurrencyDiffers Reason = "currency_differs"
	AmountDiffers   Reason = "amount_differs"
	NotCaptured     Reason = "not_captured"
	UnknownRefund   Reason = "unknown_refund"
	UnknownDispute  Reason = "unknown_dispute"
	StatusDiffers   Reason = "status_differs"
	TooMany         Reason = "too_many"
	NotInFile       Reason = "not_in_file" // the only one of what has no line
)

var reasons = []struct {
	reason   Reason
	sentence string
}{
	{Unreadable, "the row cannot be read exactly"},
	{UnknownType, "it is about a payment, and called by a word that is not known"},
	{NoPaymentID, "it names no payment"},
	{UnknownPayment, "no payment here is known under its ids"},
	{Twice, "the same booking stands in the file before"},
	{CurrencyDiffers, "the payment is in another currency here"},
	{AmountDiffers, "it is another amount here"},
	{NotCaptured, "the payment is known, and no such capture"},
	{UnknownRefund, "the payment is known, and no such refund"},
	{UnknownDispute, "the payment is known, and no such dispute"},
	{StatusDiffers, "the very thing is known, and stands otherwise here"},
	{TooMany, "more lines are about the payment than are looked at"},
	{NotInFile, "the payment was captured here in the span of the file, and is in no line"},
}

// Reasons returns every reason, in the order in which documents list them.
func Reasons() []Reason {
	all := make([]Reason, len(reasons))
	for i, r := range reasons {
		all[i] = r.reason
	}
	return all
}

// Sentence says in a few words what the reason means.
func (r Reason) Sentence() string {
	for _, of := range reasons {
		if of.reason == r {
			return of.sentence
		}
	}
	return string(r)
}

// Finding is a line that nothing explains, or a payment of ours that is in no line.
type Finding struct {
	Line   Line // Number 0: there is none, and Payment and Amount are what is known here
	Reason Reason
	Ours   *order.Amount // what is known here instead, if that is an amount
	Detail string        // more about it, for people

	Account string // of the payment, if it is known
	Order   string // the reference of its order, if it has one
}

// Check holds all lines of a file about one payment against its ledger, and returns those that it does not explain, in the order
// of the file.
//
// What is known by the id of a capture, a refund or a dispute is compared with that. What is not, together, with what the ledger
// has beyond those, since many gateways tell totals only; and if that does not fit, one by one by its amount. A dispute may
// also have come as a refund that was taken. The gateway's file is not asked to hold everything that the ledger has.
func Check(lines []Line, l *order.Ledger) []Finding {
	c := checker{ledger: l}
	by := map[string][]*Line{}
	for i := range lines {
		by[lines[i].Amount.Currency] = append(by[lines[i].Amount.Currency], &lines[i])
	}
	for _, cur := range slices.Sorted(maps.Keys(by)) {
		c.check(cur, by[cur])
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int { return cmp.Compare(a.Line.Number, b.Line.Number) })
	return c.found
}

type checker struct {
	ledger *order.Ledger
	found  []Finding
}

func (c *checker) find(l *Line, r Reason, ours *order.Amount, detail string) {
	c.found = append(c.found, Finding{Line: *l, Reason: r, Ours: ours, Detail: detail})
}

// check is about the lines in one currency.
func (c *checker) check(cur string, lines []*Line) {
	of := map[Kind][]*Line{}
	for _, l := range lines {
		of[l.Kind] = append(of[l.Kind], l)
	}
	m := c.ledger.Money[cur]
	if m == nil {
		m = &order.Money{}
	}
	rest := c.disputes(cur, of[Dispute], of[DisputeReversed], m.Refunds)
	if others := slices.Sorted(maps.Keys(c.ledger.Money)); len(others) > 0 && c.ledger.Money[cur] == nil {
		for _, l := range slices.Concat(of[Capture], of[CaptureReversed], of[Refund], of[RefundReversed], rest) {
			captured, refunded := c.ledger.Booked(others[0])
			ours := order.Amount{Minor: captured, Currency: others[0]}
			if l.Kind != Capture && l.Kind != CaptureReversed {
				ours.Minor = refunded
			}
			c.find(l, CurrencyDiffers, &ours, "")
		}
		return
	}
	captured, refunded := c.ledger.Booked(cur)
	c.side(side{
		currency: cur, came: of[Capture], back: of[CaptureReversed], items: m.Captures, total: captured,
		gone: max(m.Authorized-captured, 0),
	})
	c.side(side{currency: cur, came: append(of[Refund], rest...), back: of[RefundReversed], items: m.Refunds, total: refunded})
}

// side is what a file says of the captures of a payment, or of its refunds, beside what is known here.
type side struct {
	currency   string
	came, back []*Line
	items      map[string]order.Item
	total      int64 // known here, items and all; [order.All]: everything
	gone       int64 // what may have been taken off again without a word here: what was authorized and never captured
}

func (c *checker) side(s side) {
	undone := map[string]bool{}
	for _, l := range s.back {
		undone[l.Ref] = true
	}
	ours, used := s.total, map[string]bool{}
	var rest, back []*Line
	for _, l := range s.came {
		it, known := s.items[l.Ref]
		if l.Ref == "" || !known || used[l.Ref] {
			rest = append(rest, l)
			continue
		}
		used[l.Ref] = true
		if it.Status == order.StatusOK {
			ours = less(ours, it.Amount)
		}
		amount := &order.Amount{Minor: it.Amount, Currency: s.currency}
		switch {
		case it.Status != order.StatusOK && !it.Was && !undone[l.Ref]:
			c.find(l, StatusDiffers, amount, "it is "+string(it.Status)+" here")
		case it.Amount != order.All && it.Amount != l.Amount.Minor:
			c.find(l, AmountDiffers, amount, "")
		}
	}
	for _, l := range s.back {
		it, known := s.items[l.Ref]
		amount := &order.Amount{Minor: it.Amount, Currency: s.currency}
		switch {
		case l.Ref == "" || !known:
			back = append(back, l)
		case it.Status != order.StatusFailed && it.Status != order.StatusDenied:
			c.find(l, StatusDiffers, amount, "it is "+string(it.Status)+" here")
		case it.Amount != order.All && it.Amount != l.Amount.Minor:
			c.find(l, AmountDiffers, amount, "")
		}
	}
	c.together(s, rest, back, ours, used)
}

// together is about lines of which no id is known here: they come to ours, or to what items are still left.
func (c *checker) together(s side, rest, back []*Line, ours int64, used map[string]bool) {
	fits := func(rest []*Line) bool {
		return ours == order.All || sum(rest)-sum(back) == ours || len(rest) == 0 && len(back) == 0
	}
	if fits(rest) {
		return
	}
	var left []*Line
	for _, l := range rest {
		if ref, ok := s.itemOf(l.Amount.Minor, used); ok {
			used[ref] = true
			ours = less(ours, l.Amount.Minor)
		} else {
			left = append(left, l)
		}
	}
	switch came := sum(back); {
	case fits(left):
		return
	case len(left) == 0 && (s.total == 0 || came == s.gone || s.failed(came)):
		return // what it takes off again was booked in another file
	}
	detail := ""
	if all := slices.Concat(left, back); len(all) > 1 {
		detail = fmt.Sprintf("%d lines come to %s", len(all), order.Format(sum(left)-sum(back), s.currency))
	}
	amount := order.Amount{Minor: ours, Currency: s.currency}
	for _, l := range slices.Concat(left, back) {
		switch none := c.none(l); {
		case len(left) == 0:
			total := order.Amount{Minor: s.total, Currency: s.currency}
			c.find(l, StatusDiffers, &total, detail)
		case ours <= 0:
			c.find(l, none, nil, detail)
		default:
			c.find(l, AmountDiffers, &amount, detail)
		}
	}
}

// none is the reason of a line where nothing of its kind is known here.
func (c *checker) none(l *Line) Reason {
	switch l.Kind {
	case Capture, CaptureReversed:
		return NotCaptured
	case Dispute, DisputeReversed:
		return UnknownDispute
	}
	return UnknownRefund
}

// itemOf returns one of the items that are there and unused, by its amount.
func (s side) itemOf(minor int64, used map[string]bool) (string, bool) {
	for _, ref := range slices.Sorted(maps.Keys(s.items)) {
		if it := s.items[ref]; !used[ref] && it.Status == order.StatusOK && it.Amount == minor {
			return ref, true
		}
	}
	return "", false
}

// failed reports whether an item of that amount was there once, and is not any more.
func (s side) failed(minor int64) bool {
	for _, it := range s.items {
		if it.Status == order.StatusFailed && (it.Amount == minor || it.Amount == order.All) {
			return true
		}
	}
	return false
}

// disputes explains what was taken and given back by the disputes that are known. It returns what was taken and is none of
// them: it may have come as a refund.
func (c *checker) disputes(cur string, taken, given []*Line, refunds map[string]order.Item) (rest []*Line) {
	balance := map[string]int{} // how much more often it was taken than given
	for _, l := range taken {
		if _, ok := refunds[l.Ref]; ok && l.Ref != "" {
			rest = append(rest, l)
			continue
		}
		ref, d, ok := c.dispute(l, cur, balance)
		if !ok {
			rest = append(rest, l)
			continue
		}
		balance[ref]++
		c.compare(l, d, cur)
	}
	for _, l := range given {
		ref, d, ok := c.dispute(l, cur, nil)
		switch {
		case !ok:
			c.find(l, UnknownDispute, nil, "")
			continue
		case d.Status != order.StatusWon && balance[ref] < 2: // else it was taken a second time
			c.find(l, StatusDiffers, nil, "the dispute is "+string(d.Status)+" here")
			continue
		}
		c.compare(l, d, cur)
	}
	return rest
}

func (c *checker) compare(l *Line, d order.Dispute, cur string) {
	amount := &order.Amount{Minor: d.Amount, Currency: d.Currency}
	switch {
	case d.Currency != "" && d.Currency != cur:
		c.find(l, CurrencyDiffers, amount, "")
	case d.Amount != order.All && d.Amount != l.Amount.Minor:
		c.find(l, AmountDiffers, amount, "")
	}
}

// dispute finds the dispute of a line: by its id, else by its amount, one that no line has had so far before the others.
func (c *checker) dispute(l *Line, cur string, had map[string]int) (string, order.Dispute, bool) {
	if d, ok := c.ledger.Disputes[l.Ref]; ok && d.Status != order.StatusNone {
		return l.Ref, d, true
	}
	best := ""
	for _, ref := range slices.Sorted(maps.Keys(c.ledger.Disputes)) {
		d := c.ledger.Disputes[ref]
		if d.Status == order.StatusNone || d.Amount != order.All && (d.Amount != l.Amount.Minor || d.Currency != cur) {
			continue
		}
		if best == "" || had[ref] < had[best] {
			best = ref
		}
	}
	return best, c.ledger.Disputes[best], best != ""
}

// sum is what lines come to. It stops below [order.All].
func sum(lines []*Line) (total int64) {
	for _, l := range lines {
		if total > order.All-1-l.Amount.Minor {
			return order.All - 1
		}
		total += l.Amount.Minor
	}
	return total
}

// less takes b from a, where all stays all.
func less(a, b int64) int64 {
	if a == order.All || b == order.All {
		return a
	}
	return a - b
}
