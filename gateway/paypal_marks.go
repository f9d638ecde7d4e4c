package gateway

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/paidonce/paidonce/order"
)

// What we make at PayPal carries our mark, so that it can be found: a refund in custom_id, which only the merchant sees, a capture in
// invoice_id, since it has room for nothing else. The payer reads an invoice_id, so the merchant's reference stands before the mark:
//
//	ord_1001/paidonce-0199f1c2-7a54-7c31-9b1e-3f2a5d0c8e11
//
// PayPal refuses an invoice_id that was captured before (DUPLICATE_INVOICE_ID), which guards longer than any key.

var paypalMarked = regexp.MustCompile(`^(?:(.*)/)?paidonce-([0-9a-f-]{36})$`)

// maxInvoice is how long an invoice_id may be.
// https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2, capture_request)
const maxInvoice = 127

// paypalMark is the mark of a movement.
func paypalMark(m order.Movement) string { return "paidonce-" + m.ID }

// paypalInvoice is the mark after the merchant's reference, if that fits.
func paypalInvoice(m order.Movement) string {
	mark := paypalMark(m)
	if whole := m.Reference + "/" + mark; m.Reference != "" && len(whole) <= maxInvoice && !strings.ContainsFunc(m.Reference, unicode.IsControl) {
		return whole
	}
	return mark
}

// paypalUnmark takes our mark off a custom_id or an invoice_id: the merchant's reference that is left, and whose mark it was.
func paypalUnmark(text string) (reference, movement string) {
	parts := paypalMarked.FindStringSubmatch(text)
	if parts == nil {
		return text, ""
	}
	return parts[1], parts[2]
}
