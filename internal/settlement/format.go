package settlement

import "strings"

// Format is a kind of report that is recognised.
type Format struct {
	Name    string // a code word
	Title   string
	Gateway string // whose payments it is about
	Docs    string // the page that tells of it
	Columns []Column
	Words   map[string]Kind // what the report calls its lines, in small letters; see also Notes
	Notes   string          // for docs/settlement.md: Markdown, whole sentences

	notation notation
	marked   bool                      // the first cell of a row says what it is: CH the header, SB a line
	read     func(*row) (Line, error)  // the line of a row; a zero Kind is a row that is no booking
	more     func(string) (Kind, bool) // words that are known by how they begin
}

// Column is what is read from one place of a row.
type Column struct {
	Field   Field
	Headers []string // of [FieldPayment] all that there are; else the first one that is filled in
	Must    bool     // a file without any of them is not of this format
}

// Field is what a column is taken for.
type Field string

// The fields. Amounts with two columns are credit less debit.
const (
	FieldID        Field = "id"        // the report's own id of the booking
	FieldType      Field = "type"      // what kind of booking it is
	FieldPayment   Field = "payment"   // an id of the payment
	FieldRef       Field = "ref"       // the id of the capture, refund or dispute
	FieldReference Field = "reference" // the merchant's own name
	FieldAmount    Field = "amount"    // gross: before fees
	FieldDebit     Field = "debit"     // the same, if it is taken away
	FieldCredit    Field = "credit"    // the same, if it is added
	FieldCurrency  Field = "currency"  // of these
	FieldFee       Field = "fee"       // what the gateway kept of it
	FieldNet       Field = "net"       // what it did to the balance
	FieldNetDebit  Field = "net_debit"
	FieldNetCredit Field = "net_credit"
	FieldSettled   Field = "settled" // the currency of the balance, where it may be another one

	// Only in some formats.
	FieldPaid      Field = "paid"      // what the customer paid, where amount is what became of it in the balance's currency
	FieldPaidIn    Field = "paid_in"   // the currency of that
	FieldDirection Field = "direction" // CR or DR
	FieldFeeSide   Field = "fee_direction"
	FieldFeeIn     Field = "fee_currency"
	FieldRelation  Field = "relation" // what kind of id payment is
	FieldStatus    Field = "status"
	FieldRecord    Field = "record"
)

// Formats returns the formats that are recognised, in the order in which documents list them.
func Formats() []*Format {
	return []*Format{stripeItemized, adyenSettlement, paypalReport, mercadoReleased, mercadoSettlement}
}

// kind is the kind of a line that the report calls by that word.
func (f *Format) kind(word string) Kind {
	word = strings.ToLower(strings.TrimSpace(word))
	if k, ok := f.Words[word]; ok {
		return k
	}
	if f.more != nil {
		if k, ok := f.more(word); ok {
			return k
		}
	}
	return Unknown
}

// normal is a header as it is compared: however it is spaced, and in small letters.
func normal(header string) string { return strings.ToLower(strings.Join(strings.Fields(header), " ")) }

// layout says in which cells of a row the fields of a format stand.
type layout struct {
	cells  map[Field][]int
	width  int
	faults []string // headers that are read and stand there twice
}

// layout returns where a header row has the columns of the format, and whether it has those that must be there.
func (f *Format) layout(header []string) (*layout, bool) {
	if f.marked && (len(header) == 0 || strings.TrimSpace(header[0]) != "CH") {
		return nil, false
	}
	at := map[string][]int{}
	for i, h := range header {
		at[normal(h)] = append(at[normal(h)], i)
	}
	l := &layout{cells: map[Field][]int{}, width: len(header)}
	for _, c := range f.Columns {
		for _, h := range c.Headers {
			found := at[normal(h)]
			if len(found) > 1 {
				l.faults = append(l.faults, h)
			}
			if len(found) > 0 {
				l.cells[c.Field] = append(l.cells[c.Field], found[0])
			}
		}
		if c.Must && len(l.cells[c.Field]) == 0 {
			return nil, false
		}
	}
	return l, true
}
