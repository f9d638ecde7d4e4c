package settlement

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/paidonce/paidonce/order"
)

// Summary is what a report came to.
type Summary struct {
	Format   *Format `json:"-"`
	Lines    int     `json:"lines"`    // that are bookings, with those that cannot be read
	Payments int     `json:"payments"` // that lines were found to be about
	InSpan   int     `json:"in_span"`  // payments of ours that were captured in the span, if there is one

	Explained   []Total        `json:"explained"` // lines about payments, by kind: what was moved
	Others      []Total        `json:"others"`    // lines about none, by kind and word: what they did to the balance
	Fees        []Total        `json:"fees"`      // what the gateway kept of the lines about payments
	Unexplained map[Reason]int `json:"unexplained"`
}

// Total is what some lines come to.
type Total struct {
	Kind     Kind   `json:"kind"`
	Word     string `json:"type,omitempty"`
	Currency string `json:"currency"`
	Lines    int    `json:"lines"`
	Minor    int64  `json:"minor"`              // in minor units; what took from the balance is less than 0
	TooMuch  bool   `json:"too_much,omitempty"` // the sum does not fit 64 bits: Minor is as much as does
}

// maxWords is how many sums are kept apart; what comes by further words is added up as one.
const maxWords = 1000

func newSummary(f *Format) Summary {
	return Summary{Format: f, Explained: []Total{}, Others: []Total{}, Fees: []Total{}, Unexplained: map[Reason]int{}}
}

// Odd is how many findings there are.
func (s *Summary) Odd() (n int) {
	for _, of := range s.Unexplained {
		n += of
	}
	return n
}

func (s *Summary) unexplained(f Finding) { s.Unexplained[f.Reason]++ }

func (s *Summary) explained(l Line) {
	minor := l.Amount.Minor
	if !l.Kind.adds() {
		minor = -minor
	}
	add(&s.Explained, Total{Kind: l.Kind, Currency: l.Amount.Currency, Minor: minor})
}

func (s *Summary) fee(l Line) {
	if l.Fee != 0 {
		add(&s.Fees, Total{Kind: Fee, Currency: l.NetCurrency, Minor: -l.Fee})
	}
}

func (s *Summary) other(l Line) {
	add(&s.Others, Total{Kind: l.Kind, Word: l.Word, Currency: l.NetCurrency, Minor: l.Net})
}

// add adds a line to the sum of its kind, word and currency.
func add(totals *[]Total, t Total) {
	same := func(a, b Total) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Word, b.Word), cmp.Compare(a.Currency, b.Currency))
	}
	i, known := slices.BinarySearchFunc(*totals, t, same)
	if !known && len(*totals) >= maxWords && t.Word != "" {
		t.Word = ""
		i, known = slices.BinarySearchFunc(*totals, t, same)
	}
	if !known {
		*totals = slices.Insert(*totals, i, Total{Kind: t.Kind, Word: t.Word, Currency: t.Currency})
	}
	of := &(*totals)[i]
	of.Lines++
	switch sum := of.Minor + t.Minor; {
	case of.TooMuch:
	case of.Minor > 0 && t.Minor > 0 && sum < 0:
		of.Minor, of.TooMuch = order.All, true
	case of.Minor < 0 && t.Minor < 0 && sum >= 0:
		of.Minor, of.TooMuch = -order.All, true
	default:
		of.Minor = sum
	}
}

func byNumber(lines []Line) []Line {
	slices.SortFunc(lines, func(a, b Line) int { return cmp.Compare(a.Number, b.Number) })
	return lines
}

func itoa(n int) string { return strconv.Itoa(n) }
