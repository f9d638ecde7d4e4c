package settlement

import "strings"

// mercadoReleased is Mercado Pago's report of released money ("liberaciones"), whose lines are told apart by DESCRIPTION.
// Its glossary: guides/additional-content/reports/released-money/glossary in https://github.com/mercadopago/devsite-docs
var mercadoReleased = &Format{
	Name: "mercadopago-released", Title: "Mercado Pago: released money (liberaciones)", Gateway: "mercadopago",
	Docs: "https://www.mercadopago.com.br/developers/en/docs/additional-content/reports/released-money/report-fields",
	Columns: []Column{
		{FieldType, []string{"DESCRIPTION"}, true},
		{FieldRecord, []string{"RECORD_TYPE"}, false},
		{FieldPayment, []string{"SOURCE_ID"}, true},
		{FieldReference, []string{"EXTERNAL_REFERENCE"}, false},
		{FieldAmount, []string{"GROSS_AMOUNT"}, false},
		{FieldCurrency, []string{"CURRENCY", "SETTLEMENT_CURRENCY"}, false},
		{FieldNetCredit, []string{"NET_CREDIT_AMOUNT"}, true},
		{FieldNetDebit, []string{"NET_DEBIT_AMOUNT"}, true},
	},
	Words: map[string]Kind{
		"payment": Capture, "refund": Refund, "chargeback": Dispute, "dispute": Dispute, "mediation": Dispute,
		"mediation_cancel": DisputeReversed, "chargeback_cancel": DisputeReversed,
		"restriction": Reserve, "judgment_bacen": Reserve, "fraud": Reserve, "trava_de_recibibles": Reserve, "trava_de_recebivel": Reserve,
		"cashback": Other, "credit_payment": Other, "shipping_return": Fee,
	},
	more: func(word string) (Kind, bool) {
		for _, g := range []struct {
			begins string
			kind   Kind
		}{
			{"reserve_for_", Reserve},
			{"payout", Payout},
			{"withdrawal", Payout},
			{"tax_", Fee},
			{"shipping", Fee},
			{"fee_", Fee},
			{"fee-", Fee},
			{"asset_management", Other},
		} {
			if strings.HasPrefix(word, g.begins) {
				return g.kind, true
			}
		}
		return "", false
	},
	Notes: "What is credited and what is debited decides: a `payment` that is debited is one that you made, a `refund`, `chargeback`, `dispute` or `mediation` that is credited is money that came back. " +
		"Words that begin with `reserve_for_` are reserves, `payout` and `withdrawal` payouts, `tax_`, `shipping` and `fee` fees, `asset_management` others. Initial balances, subtotals and totals are left out. " +
		"Refunds have no id of their own here, so they are found by their amount. The report need not tell a currency (`--currency` does, if it has no column `CURRENCY`). Headers and words that were translated (`report_translation`) are not known. " +
		"A source that subscribes to orders knows payments by ids (`PAY…`) that this report does not have: none of its lines is found.",
	read: readReleased,
}

// mercadoSettlement is Mercado Pago's report of the account's balance ("settlement report", all transactions).
var mercadoSettlement = &Format{
	Name: "mercadopago-settlement", Title: "Mercado Pago: account balance (settlement report)", Gateway: "mercadopago",
	Docs: "https://www.mercadopago.com.br/developers/en/docs/additional-content/reports/account-money/report-fields",
	Columns: []Column{
		{FieldType, []string{"TRANSACTION_TYPE"}, true},
		{FieldPayment, []string{"SOURCE_ID"}, true},
		{FieldReference, []string{"EXTERNAL_REFERENCE"}, false},
		{FieldAmount, []string{"TRANSACTION_AMOUNT"}, true},
		{FieldCurrency, []string{"TRANSACTION_CURRENCY"}, true},
		{FieldNet, []string{"SETTLEMENT_NET_AMOUNT"}, false},
		{FieldSettled, []string{"SETTLEMENT_CURRENCY"}, false},
	},
	Words: map[string]Kind{
		"settlement": Capture, "refund": Refund, "chargeback": Dispute, "dispute": Dispute,
		"settlement_shipping": Fee, "refund_shipping": Fee, "chargeback_shipping": Fee, "dispute_shipping": Fee,
		"withdrawal": Payout, "withdrawal_cancel": Payout, "payout": Payout, "payouts": Payout,
		"cashback": Other, "trava_de_recebivel": Reserve,
	},
	Notes: "The sign of `TRANSACTION_AMOUNT` decides as credit and debit do in the report of released money.",
	read:  readMercadoSettlement,
}

func readReleased(r *row) (Line, error) {
	switch strings.ToLower(r.one(FieldRecord)) {
	case "initial_available_balance", "available_balance", "subtotal", "total":
		return Line{}, nil
	}
	l := r.base()
	cur, err := r.currency(FieldCurrency)
	if err != nil {
		return l, err
	}
	net, told, err := r.sides(FieldNet, FieldNetCredit, FieldNetDebit, cur)
	if err == nil && !told {
		err = unreadable("it has neither %s nor %s", "NET_CREDIT_AMOUNT", "NET_DEBIT_AMOUNT")
	}
	if err != nil {
		return l, err
	}
	gross, told, err := r.money(FieldAmount, cur)
	if err != nil {
		return l, err
	}
	if !told {
		gross = net
	}
	gross = signed(max(gross, -gross), net < 0)
	return l, l.mercado(gross, net, cur)
}

func readMercadoSettlement(r *row) (Line, error) {
	l := r.base()
	gross, cur, told, err := r.gross()
	if err == nil && !told {
		err = unreadable("it has no %s", "TRANSACTION_AMOUNT")
	}
	if err != nil {
		return l, err
	}
	net := gross
	if settled := strings.ToUpper(r.one(FieldSettled)); settled == "" || settled == cur {
		n, told, err := r.money(FieldNet, cur)
		if err != nil {
			return l, err
		}
		if told {
			net = n
		}
	}
	return l, l.mercado(gross, net, cur)
}

// mercado turns a line into what its sign says, and sets its amounts.
func (l *Line) mercado(gross, net int64, currency string) error {
	switch {
	case l.Kind == Capture && gross < 0:
		l.Kind = Other // a payment of ours to somebody
	case l.Kind == Refund && gross > 0:
		l.Kind = RefundReversed
	case l.Kind == Dispute && gross > 0:
		l.Kind = DisputeReversed
	}
	if !l.Kind.OfPayment() && l.Kind != Unknown {
		l.Payment = nil // the id of a withdrawal, a tax, …
	}
	l.Net, l.Fee, l.NetCurrency = net, 0, currency
	if l.Kind == Capture {
		l.Fee = gross - net
	}
	return l.book(gross, currency)
}
