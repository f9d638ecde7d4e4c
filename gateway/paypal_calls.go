package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/paidonce/paidonce/order"
)

// paypalCalls moves money by version 2 of PayPal's payments API. Its rules:
//
//   - An authorisation is captured and voided, a capture refunded. Which id is which, the made ids of the payment say
//     (paypal_ids.go). Of several captures the smallest is refunded that is large enough.
//   - PayPal keeps the id of a movement with what it makes: paypal_marks.go.
//   - A capture is never the final one: what is left of an authorisation can be captured until it runs out.
//   - A key that comes again is answered with the latest status of what it did, so that a refund may be answered COMPLETED first
//     and FAILED later.
//   - HUF, JPY and TWD have no decimals at PayPal.
//
// Requests, statuses, issues and the life of keys: https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2);
// keys: https://developer.paypal.com/api/rest/reference/idempotency/
var paypalCalls = Calls{
	Live: paypalLive, Test: paypalSandbox,
	KeyHeader: "Paypal-Request-Id",
	KeyLife:   45 * 24 * time.Hour, // of all three: "The server stores keys for 45 days."
	Ready:     paypalReady,
	Make:      makePayPal,
	Authorize: func(s Source, c Call) Call {
		c.Grant = paypalGrant(s)
		return c
	},
	Read: readPayPal, Look: lookPayPal, Found: foundPayPal,
}

// paypalMoney is an amount as PayPal writes it.
type paypalMoney struct {
	Currency string `json:"currency_code"`
	Value    string `json:"value"`
}

// paypalWhole are the currencies that have decimals in ISO 4217 and none at PayPal.
// https://developer.paypal.com/api/rest/reference/currency-codes/
var paypalWhole = []string{"HUF", "TWD"}

func paypalMoneyOf(m order.Amount) (paypalMoney, error) {
	text, err := major(m.Minor, m.Currency)
	if err != nil {
		return paypalMoney{}, callErrorf("the amount: %v", err)
	}
	if slices.Contains(paypalWhole, m.Currency) {
		if text = wholeNumber(text); text == "" {
			return paypalMoney{}, callErrorf("%s has no decimals at PayPal", m.Currency)
		}
	}
	return paypalMoney{m.Currency, text}, nil
}

func makePayPal(_ Source, m order.Movement) (Call, error) {
	c := Call{Method: http.MethodPost, Header: http.Header{
		"Accept": {"application/json"}, "Content-Type": {"application/json"}, "Prefer": {"return=representation"},
	}}
	root, err := paypalRootOf(m)
	if err != nil {
		return Call{}, err
	}
	if m.Kind == order.MovementVoid { // of all that is left: it has no body
		c.Path = paypalPaths[paypalAuthorization] + root + "/void"
		return c, nil
	}
	amount, err := paypalMoneyOf(m.Amount)
	if err != nil {
		return Call{}, err
	}
	var body any
	switch m.Kind {
	case order.MovementCapture:
		c.Path = paypalPaths[paypalAuthorization] + root + "/capture"
		body = struct {
			Amount  paypalMoney `json:"amount"`
			Invoice string      `json:"invoice_id"`
			Final   bool        `json:"final_capture"`
		}{Amount: amount, Invoice: paypalInvoice(m)}
	case order.MovementRefund:
		c.Path = paypalPaths[paypalCaptured] + root + "/refund"
		body = struct {
			Amount paypalMoney `json:"amount"`
			Custom string      `json:"custom_id"`
		}{amount, paypalMark(m)}
	}
	if c.Body, err = json.Marshal(body); err != nil {
		return Call{}, callErrorf("the body: %v", err)
	}
	return c, nil
}

// paypalRootOf is what a movement is made of: the authorisation, or the capture that is refunded.
func paypalRootOf(m order.Movement) (string, error) {
	switch m.Kind {
	case order.MovementCapture, order.MovementVoid:
		return paypalAuthorizationOf(m)
	case order.MovementRefund:
		return paypalCaptureOf(m)
	}
	return "", callErrorf("there is no %q at PayPal", m.Kind)
}

// paypalCaptureOf is the smallest capture that is large enough for a refund, by id among equals. What was refunded of which is
// not known here; PayPal refuses more than is left.
func paypalCaptureOf(m order.Movement) (string, error) {
	var best *order.Capture
	for i, c := range m.Captures {
		if c.Minor >= m.Amount.Minor && paypalID.MatchString(c.Ref) && (best == nil || c.Minor < best.Minor || c.Minor == best.Minor && c.Ref < best.Ref) {
			best = &m.Captures[i]
		}
	}
	switch {
	case len(m.Captures) == 0:
		return "", callErrorf("the payment has no capture under PayPal's id of it")
	case best == nil:
		return "", callErrorf("a refund is of one capture, and none of the payment's %d is that large", len(m.Captures))
	}
	return best.Ref, nil
}

func readPayPal(s Source, m order.Movement, r Reply) Verdict {
	if v, ok := statusVerdict(r); ok {
		return v
	}
	switch {
	case r.Status == http.StatusOK, r.Status == http.StatusCreated:
		return paypalMade(s, m, r)
	case r.Status/100 == 2: // 202 and 204 say nothing, and were not asked for
		return unsure(r, "that is no answer to what was asked")
	}
	return paypalRefused(r)
}

// paypalMade reads the capture, refund or authorisation that a movement was answered with. It must be the one that was asked for.
func paypalMade(s Source, m order.Movement, r Reply) Verdict {
	root, err := paypalRootOf(m)
	doc, fault := parseJSON(r.Body)
	if err != nil || fault != nil {
		return unsure(r, "the answer cannot be read")
	}
	kind := map[order.MovementKind]string{
		order.MovementCapture: paypalCaptured, order.MovementRefund: paypalRefunded, order.MovementVoid: paypalAuthorization,
	}[m.Kind]
	made := paypalNow(s, kind, doc, paypalOrderOf(m.Payment), "")
	switch {
	case made.broken(), made.Ignored != "":
		return unsure(r, "the "+kind+" in the answer cannot be read")
	case !made.answers(m, root):
		return unsure(r, "the "+kind+" is another than was asked for")
	}
	return made.verdict(m, r)
}

// answers reports whether the resource is what a movement at root was to make.
func (r *paypalResource) answers(m order.Movement, root string) bool {
	if m.Kind == order.MovementVoid {
		return r.id() == root
	}
	marked := r.movement()
	return r.root() == root && r.moved() == m.Amount && (marked == m.ID || marked == "")
}

// movement is whose mark a capture or refund carries; "": nobody's.
func (r *paypalResource) movement() string {
	_, id := paypalUnmark(r.o.get(r.markField()).Str)
	return id
}

// root is what the resource was made of; "": it does not say.
func (r *paypalResource) root() string {
	if r.kind == paypalCaptured {
		return r.authorization()
	}
	return r.refunded()
}

func (r *paypalResource) markField() string {
	if r.kind == paypalCaptured {
		return "invoice_id"
	}
	return "custom_id"
}

// moved is the resource's amount.
func (r *paypalResource) moved() order.Amount {
	return r.amount(r.o.get("amount"), "resource.amount", false)
}

// verdict is what the status of what a movement made says.
func (r *paypalResource) verdict(m order.Movement, reply Reply) Verdict {
	done := []string{"COMPLETED", "PENDING", "PARTIALLY_REFUNDED", "REFUNDED"}
	if m.Kind == order.MovementVoid {
		done = []string{"VOIDED"}
	}
	switch r.status {
	case "DECLINED", "FAILED", "CANCELLED":
		return Verdict{Ruling: Declined, Code: r.status, Detail: fmt.Sprintf("the %s is %s", r.kind, r.status)}
	}
	if !slices.Contains(done, r.status) {
		return unsure(reply, fmt.Sprintf("the %s is %s", r.kind, r.status))
	}
	v := Verdict{Ruling: Done, Events: r.done()}
	if m.Kind != order.MovementVoid { // of which no fact has a ref
		v.Ref = r.id()
	}
	return v
}

// paypalIssues are the issues of refusals that are more, or less, than a refusal. All others that PayPal documents are one.
var paypalIssues = map[string]Ruling{
	"PREVIOUS_REQUEST_IN_PROGRESS": Later, "RESOURCE_CONFLICT": Later,

	// https://developer.paypal.com/api/payment-tokens/v3/errors/paypal_request_id_previously_used,
	// https://developer.paypal.com/api/deprecated/payments/v1/errors/duplicate_request_id
	"PAYPAL_REQUEST_ID_PREVIOUSLY_USED": Reused, "DUPLICATE_REQUEST_ID": Reused,

	// What an earlier try of the same movement may have brought about.
	"AUTHORIZATION_ALREADY_CAPTURED": Unsure, "AUTHORIZATION_VOIDED": Unsure, "PREVIOUSLY_VOIDED": Unsure,
	"MAX_CAPTURE_COUNT_EXCEEDED": Unsure, "MAX_CAPTURE_AMOUNT_EXCEEDED": Unsure,
	"CAPTURE_FULLY_REFUNDED": Unsure, "REFUND_AMOUNT_EXCEEDED": Unsure, "MAX_NUMBER_OF_REFUNDS_EXCEEDED": Unsure,
	"DUPLICATE_INVOICE_ID": Unsure, "DUPLICATE_TRANSACTION": Unsure,
}

// paypalRefusals are the issues of 422 that nothing of ours can have brought about.
var paypalRefusals = []string{
	"INVALID_CURRENCY_CODE", "CANNOT_BE_ZERO_OR_NEGATIVE", "CANNOT_BE_NEGATIVE", "DECIMAL_PRECISION", "DECIMALS_NOT_SUPPORTED",
	"TRANSACTION_REFUSED", "AUTH_CAPTURE_CURRENCY_MISMATCH", "PAYER_CANNOT_PAY", "AUTHORIZATION_DENIED", "AUTHORIZATION_EXPIRED",
	"PAYEE_ACCOUNT_LOCKED_OR_CLOSED", "PAYER_ACCOUNT_LOCKED_OR_CLOSED", "PAYEE_ACCOUNT_RESTRICTED", "COMPLIANCE_VIOLATION",
	"PREVIOUSLY_CAPTURED", "CANNOT_BE_VOIDED",
	"CURRENCY_MISMATCH", "REFUND_CAPTURE_CURRENCY_MISMATCH", "REFUND_NOT_ALLOWED", "REFUND_TIME_LIMIT_EXCEEDED", "REFUND_AMOUNT_TOO_LOW",
	"REFUND_FAILED_INSUFFICIENT_FUNDS", "PARTIAL_REFUND_NOT_ALLOWED", "PENDING_CAPTURE", "REFUND_NOT_PERMITTED_DUE_TO_CHARGEBACK",
	"TRANSACTION_DISPUTED", "REFUND_IS_RESTRICTED", "PLATFORM_FEE_EXCEEDED", "PLATFORM_FEE_NOT_ENABLED",
}

// paypalRefused reads a refusal: {"name","details":[{"issue"}]}. One of the business (422) that is not documented may be about
// what an earlier try did.
// https://developer.paypal.com/api/rest/responses/#failed-requests
func paypalRefused(r Reply) Verdict {
	issue := paypalIssue(r.Body)
	ruling, known := paypalIssues[issue]
	switch {
	case known:
	case issue == "": // it is not PayPal that answered, or not as it documents
		return laterVerdict(r, "it answered %d, and names no issue", r.Status)
	case r.Status == http.StatusConflict:
		ruling = Later
	case r.Status == http.StatusUnprocessableEntity && !slices.Contains(paypalRefusals, issue):
		ruling = Unsure
	default:
		ruling = Declined
	}
	if ruling == Later {
		return laterVerdict(r, "it answered %d%s", r.Status, coded("issue", issue))
	}
	return Verdict{Ruling: ruling, Code: issue, Detail: fmt.Sprintf("it answered %d", r.Status) + coded("issue", issue)}
}

// paypalIssue is the first issue of an error, else its name; "" if it has neither.
func paypalIssue(body []byte) string {
	doc, fault := parseJSON(body)
	if fault != nil {
		return ""
	}
	top, err := doc.members([]string{"name", "details"})
	if err != nil {
		return ""
	}
	for _, detail := range top.get("details").elements(1) {
		if d, err := detail.members([]string{"issue"}); err == nil && codeWord(d.get("issue").Str) != "" {
			return codeWord(d.get("issue").Str)
		}
	}
	return codeWord(top.get("name").Str)
}
