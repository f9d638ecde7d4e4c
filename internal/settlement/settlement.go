// Package settlement holds the report of a gateway about the money that it has paid out against what our ledgers say.
//
// A report is a file of lines, one per booking in the merchant's balance at the gateway. A [Reader] recognises whose report it is
// by its header row, and turns its rows into [Line]s; [Run] finds the payment of each line, lays all lines of a payment beside its
// ledger ([Check]), and tells which of them nothing here explains. Lines that are about no payment, such as fees and payouts, are
// added up.
//
// The package writes nothing but a temporary file, and only where a report has more lines than it wants to keep in memory: lines
// of one payment may stand anywhere in it, so they are sorted. However long the report is, memory is bounded.
//
// Amounts are exact: decimals are read with the exponent of their currency (ISO 4217), and never pass through a float. What cannot
// be read exactly is a line that cannot be explained.
//
// Which columns are read, and the pages that tell of them, stand in [Formats] and, from there, in docs/settlement.md.
package settlement

import "github.com/paidonce/paidonce/order"

// Kind is what a line of a report is, in our terms.
type Kind string

// The kinds of lines. The first six are about a payment.
const (
	Capture         Kind = "capture"          // money of a payment came
	CaptureReversed Kind = "capture_reversed" // some of it was taken off again, as never captured or failed
	Refund          Kind = "refund"           // money went back
	RefundReversed  Kind = "refund_reversed"  // a refund failed, and its money came back
	Dispute         Kind = "dispute"          // the gateway took money, because somebody disputes the payment
	DisputeReversed Kind = "dispute_reversed" // and gave it back

	Fee     Kind = "fee"     // of the gateway, with taxes and costs that it passes on
	Payout  Kind = "payout"  // to the merchant's bank, or back from it
	Reserve Kind = "reserve" // money that is kept back, or let go
	Other   Kind = "other"   // anything else that is about no payment of a customer

	// Unknown is what the report calls by a word that this package does not know.
	Unknown Kind = "unknown"
)

// OfPayment reports whether lines of that kind are about a customer's payment, and have to be explained by one.
func (k Kind) OfPayment() bool {
	switch k {
	case Capture, CaptureReversed, Refund, RefundReversed, Dispute, DisputeReversed:
		return true
	}
	return false
}

// adds reports whether a line of that kind adds to the merchant's balance; it holds for those about payments.
func (k Kind) adds() bool { return k == Capture || k == RefundReversed || k == DisputeReversed }

// Line is one line of a report.
type Line struct {
	// Number is the line of the file on which it begins, from 1.
	Number int

	Kind Kind
	Word string // what the report itself calls it

	// ID is the report's own id of the booking; "" if it has none.
	ID string

	// Payment is every id under which the line names its payment, and Ref the id of the capture, refund or dispute.
	Payment []string
	Ref     string

	// Reference is the merchant's own name for it, as the report has it. It is shown, and matches nothing.
	Reference string

	// Amount is what was moved, in minor units and at least 0: Kind says in which direction. Of a line about a payment it is in
	// the currency in which the customer paid, if the report tells that.
	Amount order.Amount

	// Net is what the line did to the merchant's balance, in minor units of NetCurrency: less than 0 took from it. Fee is what of
	// it the gateway kept, more than 0 if it kept something. Both are 0 without a currency where the report does not tell.
	Net, Fee    int64
	NetCurrency string

	// Same is equal in lines that are the same booking twice.
	Same string
}
