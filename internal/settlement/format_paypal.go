package settlement

import "strings"

// paypalReport are PayPal's settlement report (STL) and transaction detail report (TRR), which have one shape: rows that say what
// they are (CH column headers, SB a booking; the others count and add up), and unsigned integers of minor units beside CR or DR.
// https://developer.paypal.com/docs/reports/sftp-reports/transaction-detail/
var paypalReport = &Format{
	Name: "paypal", Title: "PayPal: settlement report (STL) and transaction detail report (TRR)", Gateway: "paypal",
	Docs: "https://developer.paypal.com/docs/reports/sftp-reports/settlement-report/",
	Columns: []Column{
		{FieldID, []string{"Transaction ID", "TransactionID"}, true},
		{FieldType, []string{"Transaction Event Code", "TransactionEventCode"}, true},
		{FieldPayment, []string{"PayPal Reference ID", "PayPalReferenceID"}, true},
		{FieldRelation, []string{"PayPal Reference ID Type", "PayPalReferenceIDType"}, false},
		{FieldReference, []string{"Custom Field", "CustomField", "Invoice ID", "InvoiceID"}, false},
		{FieldDirection, []string{"Transaction Debit or Credit", "TransactionDebitOrCredit"}, true},
		{FieldAmount, []string{"Gross Transaction Amount", "GrossTransactionAmount"}, true},
		{FieldCurrency, []string{"Gross Transaction Currency", "GrossTransactionCurrency"}, true},
		{FieldFeeSide, []string{"Fee Debit or Credit", "FeeDebitOrCredit"}, false},
		{FieldFee, []string{"Fee Amount", "FeeAmount"}, false},
		{FieldFeeIn, []string{"Fee Currency", "FeeCurrency"}, false},
		{FieldStatus, []string{"Transactional Status"}, false},
	},
	// By credit; [paypalKind] turns what is debited. https://developer.paypal.com/docs/reports/reference/tcodes/
	Words: map[string]Kind{
		"t1107": RefundReversed, "t1106": DisputeReversed, "t1201": DisputeReversed,
		"t1105": Reserve, "t1110": Reserve, "t1111": Reserve, "t1108": Fee,
	},
	more: paypalGroup,
	Notes: "A payment is known by the `Transaction ID` of its line, and a refund (`T1107`), a reversal (`T1106`) or a chargeback (`T1201`) by the payment in `PayPal Reference ID`, if its type is `TXN`. " +
		"Of the other codes the first three characters decide: `T00` is a payment that was received (or, debited, one that you made), `T01` a fee, `T03`, `T05`, `T07` to `T10`, `T14`, `T16`, `T18`, `T19`, `T22` and `T02` are others, `T04`, `T06`, `T17` and `T20` payouts, " +
		"`T15` and `T21` reserves, and `T13` (authorizations) moves nothing. Rows of a TRR whose status is `P` (pending) or `D` (denied) moved nothing either. Not confirmed: whether the amounts of HUF and TWD, of which PayPal knows no decimals, are counted with those of ISO 4217; they are read so.",
	notation: notation{minor: true},
	marked:   true,
	read:     readPayPal,
}

// paypalGroup is the kind of a code by its group, credited.
func paypalGroup(code string) (Kind, bool) {
	if len(code) != 5 || code[0] != 't' {
		return "", false
	}
	switch code[1:3] {
	case "00":
		return Capture, true
	case "01":
		return Fee, true
	case "02", "03", "05", "07", "08", "09", "10", "14", "16", "18", "19", "22":
		return Other, true
	case "04", "06", "17", "20":
		return Payout, true
	case "15", "21":
		return Reserve, true
	}
	return "", false
}

func readPayPal(r *row) (Line, error) {
	l := r.base()
	l.Payment = nil
	if strings.HasPrefix(strings.ToUpper(l.Word), "T13") {
		return Line{}, nil
	}
	if s := strings.ToUpper(r.one(FieldStatus)); s == "P" || s == "D" {
		return Line{}, nil
	}
	credit, err := r.direction(FieldDirection)
	if err != nil {
		return l, err
	}
	if !credit {
		switch l.Kind {
		case RefundReversed:
			l.Kind = Refund
		case DisputeReversed:
			l.Kind = Dispute
		case Capture:
			l.Kind = Other // a payment of ours to somebody
		}
	}
	relation := strings.ToUpper(r.one(FieldRelation))
	switch {
	case l.Kind == Capture:
		l.Payment, l.Ref = []string{l.ID}, l.ID
	case relation == "TXN" || relation == "":
		l.Payment, l.Ref = r.all(FieldPayment), l.ID
	}
	cur, err := r.currency(FieldCurrency)
	if err != nil {
		return l, err
	}
	gross, told, err := r.money(FieldAmount, cur)
	if err == nil && !told {
		err = unreadable("it has no %s", "Gross Transaction Amount")
	}
	if err != nil {
		return l, err
	}
	gross = signed(gross, !credit)
	if err := l.book(gross, cur); err != nil {
		return l, err
	}
	l.Net, l.NetCurrency = gross, cur
	if r.one(FieldFee) == "" {
		return l, nil
	}
	feeIn := cur
	if r.one(FieldFeeIn) != "" {
		if feeIn, err = r.currency(FieldFeeIn); err != nil {
			return l, err
		}
	}
	fee, _, err := r.money(FieldFee, feeIn)
	if err != nil {
		return l, err
	}
	back := false
	if r.one(FieldFeeSide) != "" {
		if back, err = r.direction(FieldFeeSide); err != nil {
			return l, err
		}
	}
	if feeIn == cur {
		l.Fee = signed(fee, back)
		l.Net -= l.Fee
	}
	return l, nil
}

// direction reports whether a column says CR, and not DR.
func (r *row) direction(field Field) (bool, error) {
	switch text := strings.ToUpper(r.one(field)); text {
	case "CR":
		return true, nil
	case "DR":
		return false, nil
	default:
		return false, unreadable("%s %q is neither CR nor DR", field, text)
	}
}
