package settlement

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
)

// ownFields are the fields of a file of one's own, each with whether it must be there.
var ownFields = []struct {
	field Field
	must  bool
	is    string
}{
	{FieldPayment, true, "an id of the payment at the gateway; several headers may be named, parted by +"},
	{FieldAmount, false, "what was moved before fees: less than 0 took money from you; else credit and debit"},
	{FieldCredit, false, "the amount, if it came"},
	{FieldDebit, false, "the amount, if it went"},
	{FieldCurrency, false, "its currency; else --currency"},
	{FieldType, false, "what kind of line it is; without it, what came is a capture and what went a refund"},
	{FieldID, false, "the file's own id of the line"},
	{FieldRef, false, "the id of the capture, refund or dispute"},
	{FieldReference, false, "your name of the order; only shown"},
	{FieldFee, false, "what the gateway kept"},
	{FieldNet, false, "what came of it; else the amount less the fee"},
}

// OwnFields lists the fields that [Options].Columns may name.
func OwnFields() iter.Seq2[Field, string] {
	return func(yield func(Field, string) bool) {
		for _, f := range ownFields {
			if !yield(f.field, f.is) {
				return
			}
		}
	}
}

// ownWords are the words for kinds of lines in a file of one's own.
var ownWords = map[string]Kind{
	"capture": Capture, "charge": Capture, "payment": Capture, "sale": Capture, "settled": Capture, "settlement": Capture, "purchase": Capture,
	"capture_reversed": CaptureReversed, "capture_reversal": CaptureReversed,
	"refund": Refund, "refunded": Refund,
	"refund_reversed": RefundReversed, "refund_reversal": RefundReversed, "refund_failed": RefundReversed, "refund_failure": RefundReversed,
	"dispute": Dispute, "chargeback": Dispute, "reversal": Dispute,
	"dispute_reversed": DisputeReversed, "dispute_reversal": DisputeReversed, "chargeback_reversed": DisputeReversed, "chargeback_reversal": DisputeReversed,
	"fee": Fee, "fees": Fee, "commission": Fee, "tax": Fee, "cost": Fee,
	"payout": Payout, "withdrawal": Payout, "transfer": Payout,
	"reserve": Reserve, "hold": Reserve, "release": Reserve,
	"adjustment": Other, "other": Other,
}

func ownFormat(columns map[Field]string) (*Format, error) {
	f := &Format{Name: "own", Title: "a file of one's own", Words: ownWords, read: readOwn}
	known := map[Field]bool{}
	for _, o := range ownFields {
		known[o.field] = true
		headers, named := columns[o.field]
		if !named && o.must {
			return nil, fmt.Errorf("a file of one's own needs the column of %s", o.field)
		}
		if named {
			f.Columns = append(f.Columns, Column{o.field, strings.Split(headers, "+"), true})
		}
	}
	for field := range columns {
		if !known[field] {
			return nil, fmt.Errorf("there is no field %q", field)
		}
	}
	if columns[FieldAmount] == "" && (columns[FieldCredit] == "" || columns[FieldDebit] == "") {
		return nil, fmt.Errorf("a file of one's own needs the column of %s, or those of %s and %s", FieldAmount, FieldCredit, FieldDebit)
	}
	return f, nil
}

func readOwn(r *row) (Line, error) {
	l := r.base()
	gross, cur, told, err := r.gross()
	if err == nil && !told {
		err = unreadable("it has no amount")
	}
	if err != nil {
		return l, err
	}
	if !r.has(FieldType) {
		if l.Kind = Capture; gross < 0 {
			l.Kind = Refund
		}
	}
	// Some write refunds without a sign: their kind has it.
	if r.has(FieldType) && l.Kind.OfPayment() && r.has(FieldAmount) {
		gross = signed(max(gross, -gross), !l.Kind.adds())
	}
	if err := l.book(gross, cur); err != nil {
		return l, err
	}
	return l, r.settle(&l, cur, gross)
}

func valuesOf(m map[Field]string) iter.Seq[string] { return maps.Values(m) }

// OwnWords returns the words for a kind of line in a file of one's own.
func OwnWords(k Kind) []string {
	var words []string
	for word, kind := range ownWords {
		if kind == k {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}
