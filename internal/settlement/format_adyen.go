package settlement

// adyenSettlement is Adyen's settlement details report. Types are its journal types:
// https://docs.adyen.com/developers/reporting/settlement-detail-report/settlement-detail-report-structure/journal-types
var adyenSettlement = &Format{
	Name: "adyen", Title: "Adyen: settlement details report", Gateway: "adyen",
	Docs: "https://docs.adyen.com/reporting/settlement-reconciliation/transaction-level/settlement-details-report",
	Columns: []Column{
		{FieldType, []string{"Type"}, true},
		{FieldPayment, []string{"Psp Reference"}, true},
		{FieldRef, []string{"Modification Reference"}, false},
		{FieldReference, []string{"Merchant Reference"}, false},
		{FieldCredit, []string{"Gross Credit (GC)"}, true},
		{FieldDebit, []string{"Gross Debit (GC)"}, true},
		{FieldCurrency, []string{"Gross Currency"}, true},
		{FieldNetCredit, []string{"Net Credit (NC)"}, true},
		{FieldNetDebit, []string{"Net Debit (NC)"}, true},
		{FieldSettled, []string{"Net Currency"}, true},
	},
	Words: map[string]Kind{
		"settled": Capture, "refunded": Refund, "refundedreversed": RefundReversed,
		"chargeback": Dispute, "secondchargeback": Dispute, "chargebackreversed": DisputeReversed,
		"fee": Fee, "misccosts": Fee, "paymentcost": Fee, "authorisationschemefee": Fee, "invoicededuction": Fee,
		"merchantpayout": Payout, "bankinstructionreturned": Payout, "internalcompanypayout": Payout, "paidout": Payout, "paidoutreversed": Payout, "epapaid": Payout,
		"depositcorrection": Reserve,
		"balancetransfer":   Other, "matchedstatement": Other, "manualcorrected": Other,
	},
	Notes: "The fee of a line is what is missing between its gross and its net amount, where both are in one currency. A payment that is settled in instalments has a line for " +
		"each of them, and is explained only by a file that holds all.",
	read: readAdyen,
}

func readAdyen(r *row) (Line, error) {
	l := r.base()
	settled := ""
	var net int64
	var err error
	if r.one(FieldNetCredit) != "" || r.one(FieldNetDebit) != "" {
		if settled, err = r.currency(FieldSettled); err != nil {
			return l, err
		}
		if net, _, err = r.sides(FieldNet, FieldNetCredit, FieldNetDebit, settled); err != nil {
			return l, err
		}
	}
	if r.one(FieldCredit) == "" && r.one(FieldDebit) == "" {
		if l.Kind.OfPayment() {
			return l, unreadable("it has neither %s nor %s", "Gross Credit (GC)", "Gross Debit (GC)")
		}
		l.Net, l.NetCurrency = net, settled
		return l, l.book(net, settled)
	}
	gross, cur, _, err := r.gross()
	if err != nil {
		return l, err
	}
	l.Net, l.NetCurrency = net, settled
	if cur == settled {
		l.Fee = gross - net
	}
	return l, l.book(gross, cur)
}
