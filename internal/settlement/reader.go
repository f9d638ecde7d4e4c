package settlement

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/paidonce/paidonce/order"
)

// Options say what a file does not say itself. The zero value is right for the files of the gateways.
type Options struct {
	// Columns is for a file of one's own: the header of each field. [OwnFields] lists them.
	Columns map[Field]string

	// Currency is that of amounts beside which there is none.
	Currency string

	// DecimalComma: amounts are written as 1.234,56.
	DecimalComma bool
}

// HeaderError says that no row of a file is the header of a report that is known.
type HeaderError struct {
	First []string // the cells of the first row
	Need  []string // headers that are missing, where the caller has named some
}

func (e *HeaderError) Error() string {
	if len(e.Need) > 0 {
		return fmt.Sprintf("there is no row with the columns %s; the first row is %q", strings.Join(e.Need, ", "), e.First)
	}
	return fmt.Sprintf("the columns are of no report that is known; the first row is %q", e.First)
}

// LineError says why a line cannot be read. Those behind it can.
type LineError struct{ Why string }

func (e *LineError) Error() string { return e.Why }

func unreadable(format string, args ...any) error { return &LineError{fmt.Sprintf(format, args...)} }

// Reader reads the lines of a report, one at a time.
type Reader struct {
	rows   *rows
	format *Format
	at     *layout
	o      Options
}

// NewReader reads a file up to its header row, which must be within its first 64 KiB. Text is UTF-8 or UTF-16, with or without a
// byte order mark; cells are parted by commas, semicolons, tabs or bars, and columns stand in any order. The error is a
// [*HeaderError] if the file is of no format.
func NewReader(r io.Reader, o Options) (*Reader, error) {
	formats := Formats()
	if o.Columns != nil {
		own, err := ownFormat(o.Columns)
		if err != nil {
			return nil, err
		}
		formats = []*Format{own}
	}
	text := bufio.NewReaderSize(decoded(r), headSize)
	head, err := text.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	var first []string
	for _, separator := range []rune{',', ';', '\t', '|'} {
		f, n, row := recognise(head, separator, formats)
		if len(row) > len(first) {
			first = row
		}
		if f == nil {
			continue
		}
		reader := &Reader{rows: newRows(text, separator), format: f, o: o}
		return reader, reader.skipTo(n)
	}
	return nil, &HeaderError{First: first, Need: slices.Sorted(valuesOf(o.Columns))}
}

// recognise finds the first row that is a header of one of the formats; n is its number, from 0.
func recognise(head []byte, separator rune, formats []*Format) (f *Format, n int, first []string) {
	rows := newRows(bytes.NewReader(head), separator)
	for n = 0; ; n++ {
		row, _, err := rows.next()
		var broken *csv.ParseError
		if errors.As(err, &broken) {
			continue
		}
		if err != nil {
			return nil, 0, first
		}
		if first == nil {
			first = slices.Clone(row)
		}
		for _, f := range formats {
			if _, ok := f.layout(row); ok {
				return f, n, first
			}
		}
	}
}

// skipTo reads up to the header row, which is the n-th.
func (r *Reader) skipTo(n int) error {
	for i := 0; ; i++ {
		row, _, err := r.rows.next()
		var broken *csv.ParseError
		if err != nil && !errors.As(err, &broken) {
			return err
		}
		if i == n {
			return r.layOut(row)
		}
	}
}

func (r *Reader) layOut(header []string) error {
	r.at, _ = r.format.layout(header)
	if r.at == nil {
		return &HeaderError{First: header}
	}
	if len(r.at.faults) > 0 {
		return fmt.Errorf("there are two columns called %s: which one counts?", strings.Join(r.at.faults, ", "))
	}
	return nil
}

// Format is what the file was recognised as.
func (r *Reader) Format() *Format { return r.format }

// Next returns the next line. With a [*LineError] the line has its number and nothing else, and the reading goes on; io.EOF is the
// end of the file.
func (r *Reader) Next() (Line, error) {
	for {
		cells, number, err := r.rows.next()
		var broken *csv.ParseError
		switch {
		case errors.As(err, &broken):
			return Line{Number: number}, unreadable("the quotation marks of its cells do not fit")
		case err != nil:
			return Line{}, err
		}
		if !slices.ContainsFunc(cells, func(c string) bool { return strings.TrimSpace(c) != "" }) {
			continue
		}
		if r.format.marked {
			switch strings.TrimSpace(cells[0]) {
			case "SB":
			case "CH":
				if err := r.layOut(cells); err != nil {
					return Line{}, err
				}
				continue
			default:
				continue // headers and footers of files, sections and pages, with their counts and balances
			}
		}
		line, err := r.line(cells)
		if err == nil && line.Kind == "" {
			continue
		}
		if err != nil {
			line = Line{}
		}
		line.Number = number
		return line, err
	}
}

func (r *Reader) line(cells []string) (Line, error) {
	switch extra := cells[min(len(cells), r.at.width):]; {
	case len(cells) < r.at.width:
		return Line{}, unreadable("it has %d cells, and the header %d", len(cells), r.at.width)
	case slices.ContainsFunc(extra, func(c string) bool { return strings.TrimSpace(c) != "" }):
		return Line{}, unreadable("it has %d cells, and the header %d", len(cells), r.at.width)
	}
	line, err := r.format.read(&row{cells: cells, at: r.at, f: r.format, o: r.o})
	if err != nil || line.Kind == "" {
		return line, err
	}
	line.Same = same(line, cells)
	return line, nil
}

// same is the identity of a booking: its id, with what kind of booking it is, since a hold and its end may share one; or all that
// the row says.
func same(line Line, cells []string) string {
	parts := cells
	if line.ID != "" {
		parts = []string{line.ID, line.Word, string(line.Kind)}
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// row is one row while it becomes a line.
type row struct {
	cells []string
	at    *layout
	f     *Format
	o     Options
}

// all returns what the columns of a field hold, without what is empty or there twice.
func (r *row) all(field Field) []string {
	var found []string
	for _, i := range r.at.cells[field] {
		// What is kept must not keep the whole row.
		if text := strings.TrimSpace(r.cells[i]); text != "" && !slices.Contains(found, text) {
			found = append(found, strings.Clone(strings.ToValidUTF8(text, "\uFFFD")))
		}
	}
	return found
}

// one returns the first of them.
func (r *row) one(field Field) string {
	if all := r.all(field); len(all) > 0 {
		return all[0]
	}
	return ""
}

func (r *row) has(field Field) bool { return len(r.at.cells[field]) > 0 }

// currency is a currency that a column tells, or that the caller has.
func (r *row) currency(field Field) (string, error) {
	cur := strings.ToUpper(r.one(field))
	if cur == "" {
		cur = r.o.Currency
	}
	if cur == "" {
		return "", unreadable("it tells no currency")
	}
	if _, known := order.Exponent(cur); !known {
		return "", unreadable("%q is not a currency of ISO 4217", cur)
	}
	return cur, nil
}

// money is an amount, and whether there is one.
func (r *row) money(field Field, currency string) (int64, bool, error) {
	text := r.one(field)
	if text == "" {
		return 0, false, nil
	}
	n := r.f.notation
	n.comma = n.comma || r.o.DecimalComma
	v, err := n.read(text, currency)
	if err != nil {
		return 0, true, unreadable("%s %q %s", field, text, err)
	}
	return v, true, nil
}

// sides is an amount with its sign: that of one column, or credit less debit.
func (r *row) sides(amount, credit, debit Field, currency string) (int64, bool, error) {
	v, told, err := r.money(amount, currency)
	if told || err != nil {
		return v, told, err
	}
	plus, toldPlus, err := r.money(credit, currency)
	if err != nil {
		return 0, false, err
	}
	minus, toldMinus, err := r.money(debit, currency)
	switch {
	case err != nil:
		return 0, false, err
	case plus < 0 || minus < 0:
		return 0, false, unreadable("a debit or a credit is less than 0")
	}
	return plus - minus, toldPlus || toldMinus, nil
}

// gross is what was moved, and net what became of it in the balance.
func (r *row) gross() (int64, string, bool, error) {
	cur, err := r.currency(FieldCurrency)
	if err != nil {
		return 0, "", false, err
	}
	v, told, err := r.sides(FieldAmount, FieldCredit, FieldDebit, cur)
	return v, cur, told, err
}

// base is a line with all that needs no thought.
func (r *row) base() Line {
	return Line{
		Kind: r.f.kind(r.one(FieldType)), Word: r.one(FieldType), ID: r.one(FieldID), Payment: r.all(FieldPayment), Ref: r.one(FieldRef),
		Reference: r.one(FieldReference),
	}
}

// book sets the amount of a line, which must fit its kind: a capture does not take money away.
func (l *Line) book(minor int64, currency string) error {
	if l.Kind.OfPayment() && minor != 0 && minor > 0 != l.Kind.adds() {
		return unreadable("%s is a %s, and its amount has the wrong sign", l.Word, l.Kind)
	}
	l.Amount = order.Amount{Minor: max(minor, -minor), Currency: currency}
	return nil
}
