package settlement

import "github.com/paidonce/paidonce/order"

// stripeItemized are the itemized reports of Stripe's balance: payout reconciliation, balance change from activity, ending balance
// and payouts, in every version, from the Dashboard or the API. Amounts are decimals of major units ("CSV and API monetary formats
// differ", https://docs.stripe.com/reports/api).
var stripeItemized = &Format{
	Name: "stripe", Title: "Stripe: itemized balance and payout reconciliation reports", Gateway: "stripe",
	Docs: "https://docs.stripe.com/reports/report-types/payout-reconciliation",
	Columns: []Column{
		{FieldID, []string{"balance_transaction_id"}, true},
		{FieldType, []string{"reporting_category"}, true},
		{FieldPayment, []string{"payment_intent_id", "charge_id", "invoice_id"}, false},
		{FieldRef, []string{"source_id"}, false},
		{FieldReference, []string{"payment_metadata[order_id]", "payment_metadata[external_ref]"}, false},
		{FieldAmount, []string{"gross"}, true},
		{FieldCurrency, []string{"currency"}, true},
		{FieldPaid, []string{"customer_facing_amount"}, false},
		{FieldPaidIn, []string{"customer_facing_currency"}, false},
		{FieldFee, []string{"fee"}, false},
		{FieldNet, []string{"net"}, false},
	},
	// https://docs.stripe.com/reports/reporting-categories
	Words: map[string]Kind{
		"charge": Capture, "partial_capture_reversal": CaptureReversed, "charge_failure": CaptureReversed,
		"refund": Refund, "refund_failure": RefundReversed,
		"dispute": Dispute, "dispute_reversal": DisputeReversed,
		"fee": Fee, "stripe_fee": Fee, "stripe_fee_tax": Fee, "network_cost": Fee, "tax": Fee, "platform_fee": Fee,
		"payout": Payout, "payout_reversal": Payout,
		"risk_reserved_funds": Reserve, "connect_reserved_funds": Reserve, "payment_network_reserved_funds": Reserve,
		"minimum_balance_hold": Reserve,
		"topup":                Other, "topup_reversal": Other, "transfer": Other, "transfer_reversal": Other,
		"connect_collection_transfer": Other, "platform_earning": Other, "platform_earning_refund": Other,
		"contribution": Other, "climate_order_purchase": Other, "climate_order_refund": Other,
		"advance": Other, "advance_funding": Other, "anticipation_repayment": Other, "currency_conversion": Other,
		"financing_paydown": Other, "financing_paydown_reversal": Other, "financing_payout": Other, "financing_payout_reversal": Other,
		"issuing_authorization_hold": Other, "issuing_authorization_release": Other, "issuing_dispute": Other, "issuing_transaction": Other,
		"obligation": Other, "other_adjustment": Other, "unreconciled_customer_funds": Other,
	},
	Notes: "Include `payment_intent_id` and `charge_id` (a report that was made with `columns` may be without them): by its `source_id` alone a refund or a " +
		"dispute cannot be found. Include `customer_facing_amount` and `customer_facing_currency` if you are paid out in another currency than your customers " +
		"pay in: what is told in the balance's currency alone differs from what was captured. Its sign is not looked at. What was captured of an authorization is the " +
		"charge less its `partial_capture_reversal`; both have to be in the file. A PaymentIntent that was captured several times is explained only by a file that holds " +
		"all of it, since Stripe's events tell what was captured of it in all.",
	read: readStripe,
}

func readStripe(r *row) (Line, error) {
	l := r.base()
	gross, settled, told, err := r.gross()
	if err == nil && !told {
		err = unreadable("it has no %s", "gross")
	}
	if err != nil {
		return l, err
	}
	paid, cur := gross, settled
	if r.one(FieldPaid) != "" && r.one(FieldPaidIn) != "" && l.Kind.OfPayment() {
		if cur, err = r.currency(FieldPaidIn); err != nil {
			return l, err
		}
		if paid, _, err = r.money(FieldPaid, cur); err != nil {
			return l, err
		}
		paid = signed(max(paid, -paid), gross < 0)
	}
	if l.Kind == Capture && len(l.Payment) == 0 && l.Ref != "" {
		l.Payment = []string{l.Ref} // the charge itself
	}
	if err := l.book(paid, cur); err != nil {
		return l, err
	}
	return l, r.settle(&l, settled, gross)
}

// settle sets what a line did to the balance: what the report says, else its gross amount less the fee.
func (r *row) settle(l *Line, currency string, gross int64) error {
	fee, _, err := r.money(FieldFee, currency)
	if err != nil {
		return err
	}
	net, told, err := r.sides(FieldNet, FieldNetCredit, FieldNetDebit, currency)
	if err != nil {
		return err
	}
	if !told {
		net = gross - fee
	}
	if net == order.All || -net == order.All {
		return unreadable("its amounts are out of range")
	}
	l.Net, l.Fee, l.NetCurrency = net, fee, currency
	return nil
}
