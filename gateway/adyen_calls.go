package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// adyenCalls are the modifications of the Checkout API: captures, refunds and cancels of a payment. Adyen only takes them in
// ("received"); what it makes of them it tells with the CAPTURE, REFUND or CANCELLATION that carries the pspReference of the
// modification, and as merchantReference our id of the movement. So an answer is pending, and its fact has the lowest Seq there
// is: whatever a notification says of the same pspReference is later, by its date or by its stage.
//
// There is no API that tells what became of a modification. Where no answer came, the same request under the same key is
// answered what the first one was, for a week at least; after that only the notification tells, or a person in the Customer Area.
//
// Refusals by a payment's state (refunded already, insufficient balance) do not come as answers: Adyen takes the request in, and
// its notification has success false. So nothing that is refused at once can have been brought about by an earlier try.
//
// https://docs.adyen.com/online-payments/refund, …/capture, …/cancel; https://docs.adyen.com/api-explorer/Checkout/71/overview
var adyenCalls = &Calls{
	// In live mode every company has an address of its own, which api_url names:
	// https://docs.adyen.com/development-resources/live-endpoints
	Test:      "https://checkout-test.adyen.com",
	KeyHeader: "Idempotency-Key",
	// "valid for a minimum period of 7 days after first submission"; the key is compared within one company account and region:
	// https://docs.adyen.com/development-resources/api-idempotency
	KeyLife:   7 * 24 * time.Hour,
	Ready:     adyenReady,
	Make:      adyenMake,
	Authorize: adyenAuthorize,
	Read:      adyenRead,
}

func adyenReady(s Source) error {
	switch {
	case s.AccessToken == "":
		return callErrorf("has no access_token: an API key is needed to capture, refund or cancel")
	case len(s.MerchantAccounts) == 0:
		return callErrorf("has no merchant_accounts: the first of them is the account that is called")
	case s.Mode == Live && s.APIURL == "":
		return callErrorf("has no api_url: in live mode Adyen is called at an address of your own, https://PREFIX-checkout-live.adyenpayments.com/checkout")
	}
	return nil
}

// adyenActions are where the modifications of a payment are sent.
var adyenActions = map[order.MovementKind]string{
	order.MovementCapture: "captures", order.MovementRefund: "refunds", order.MovementVoid: "cancels",
}

// adyenReasons are those that Adyen knows of a refund; other words of the merchant's have no place in a request.
var adyenReasons = []string{"FRAUD", "CUSTOMER REQUEST", "RETURN", "DUPLICATE", "OTHER"}

type adyenAmount struct {
	Currency string `json:"currency"`
	Value    int64  `json:"value"`
}

type adyenModification struct {
	MerchantAccount string       `json:"merchantAccount"`
	Amount          *adyenAmount `json:"amount,omitempty"`
	Reference       string       `json:"reference"`
	Reason          string       `json:"merchantRefundReason,omitempty"`
}

func adyenMake(s Source, m order.Movement) (Call, error) {
	action, known := adyenActions[m.Kind]
	if !known {
		return Call{}, callErrorf("there is no %s at Adyen", m.Kind)
	}
	if err := adyenReady(s); err != nil {
		return Call{}, err
	}
	psp, err := adyenPayment(m)
	if err != nil {
		return Call{}, err
	}
	ask := adyenModification{MerchantAccount: s.MerchantAccounts[0], Reference: m.ID}
	if m.Kind != order.MovementVoid { // a cancel is of all that is left
		n, err := adyenExponents.theirs(m.Amount.Minor, m.Amount.Currency)
		if err != nil {
			return Call{}, callErrorf("the amount cannot be written as Adyen counts: %v", err)
		}
		ask.Amount = &adyenAmount{m.Amount.Currency, n}
	}
	if reason := strings.ToUpper(m.Reason); m.Kind == order.MovementRefund && slices.Contains(adyenReasons, reason) {
		ask.Reason = reason
	}
	body, err := json.Marshal(ask)
	if err != nil {
		return Call{}, callErrorf("the request cannot be written: %v", err)
	}
	return Call{
		Method: http.MethodPost, Path: "/v71/payments/" + psp + "/" + action, Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}, nil
}

// adyenPSP is what a pspReference looks like: 16 letters and digits, by the documentation, and more in years to come.
var adyenPSP = regexp.MustCompile(`^[0-9A-Za-z]{8,32}$`)

// adyenPayment is the pspReference of the payment that is modified. Notifications know a payment by that of its authorisation
// alone, since all others name it as their original; the pspReferences of modifications are never ids of payments. So a payment
// that has several was joined of several by a checkout's word, each with an authorisation of its own, and which of them holds the
// money is not known.
func adyenPayment(m order.Movement) (string, error) {
	psps := slices.DeleteFunc(slices.Clone(m.Payment), func(id string) bool { return !adyenPSP.MatchString(id) })
	switch len(psps) {
	case 1:
		return psps[0], nil
	case 0:
		return "", callErrorf("the payment has no pspReference that can be called")
	}
	return "", callErrorf("the payment is known under %d pspReferences: which of them is to be called cannot be told", len(psps))
}

func adyenAuthorize(s Source, c Call) Call { return withHeader(c, "X-Api-Key", s.AccessToken) }

// adyenRead reads what Adyen answers to a modification.
//
// Errors: https://docs.adyen.com/development-resources/error-codes; transient ones, and 704 for a key whose first request is not
// answered yet: https://docs.adyen.com/development-resources/api-idempotency. What is not in the table goes by its errorType.
func adyenRead(_ Source, m order.Movement, r Reply) Verdict {
	transient := strings.ToLower(r.Header.Get("Transient-Error"))
	if transient == "true" {
		return laterVerdict(r, "it answered %d, and that asking again is safe", r.Status)
	}
	if v, ok := statusVerdict(r); ok {
		if v.Ruling == Later && transient == "false" {
			return Verdict{Ruling: Unsure, Detail: v.Detail + ", and that asking again is of no use"}
		}
		return v
	}
	if r.Status/100 == 2 {
		return adyenReceived(m, r)
	}
	return adyenRefused(r, transient)
}

// adyenRulings are the error codes of answers 4xx that are no plain refusals.
var adyenRulings = map[string]Ruling{
	"010": Denied, // not allowed: the credential lacks a role
	"901": Denied, // invalid merchant account: or the credential has no access to it
	"703": Later,  // required resource temporarily unavailable
	"704": Later,  // request already processed or in progress
}

var adyenRulingsOf = map[string]Ruling{"security": Denied, "internal": Later}

func adyenRefused(r Reply, transient string) Verdict {
	doc, fault := parseJSON(r.Body)
	if fault != nil {
		return laterVerdict(r, "it answered %d with what is no answer of Adyen's", r.Status)
	}
	o, err := doc.members([]string{"errorCode", "errorType"})
	code, typ := "", ""
	if err == nil {
		code, typ = codeWord(o.get("errorCode").Str), codeWord(o.get("errorType").Str)
	}
	if code == "" && typ == "" {
		return laterVerdict(r, "it answered %d with what is no error of Adyen's", r.Status)
	}
	ruling, known := adyenRulings[code]
	if !known {
		if ruling, known = adyenRulingsOf[typ]; !known {
			ruling = Declined
		}
	}
	if ruling == Later && transient == "false" {
		// Documented as not to be repeated. Without the header it is asked again all the same: under one key nothing is done
		// twice, and the first request's answer may be there by then.
		ruling = Unsure
	}
	v := Verdict{Ruling: ruling, Code: code}
	if ruling == Later {
		v.After = retryAfter(r)
	}
	v.Detail = fmt.Sprintf("it answered %d", r.Status) + coded("errorCode", code) + coded("errorType", typ)
	return v
}

// adyenReceived reads the receipt of a modification.
func adyenReceived(m order.Movement, r Reply) Verdict {
	psp, err := adyenPayment(m)
	if err != nil {
		return unsure(r, "the payment cannot be told any more")
	}
	doc, fault := parseJSON(r.Body)
	if fault != nil {
		return unsure(r, "what is no answer of Adyen's")
	}
	o, err := doc.members([]string{"paymentPspReference", "pspReference", "reference", "status", "amount"})
	if err != nil {
		return unsure(r, "the answer cannot be read")
	}
	ref, ok := o.get("pspReference").text()
	switch {
	case o.get("status").Str != "received":
		return unsure(r, "the request was not received")
	case o.get("paymentPspReference").Str != psp, !ok, !adyenPSP.MatchString(ref), ref == psp:
		return unsure(r, "the answer is not about a modification of this payment")
	case !o.get("reference").absent() && o.get("reference").Str != m.ID:
		return unsure(r, "the answer is about another request")
	}
	v := Verdict{Ruling: Done, Ref: ref}
	if m.Kind == order.MovementVoid {
		return v // a cancellation that may still be refused is no fact
	}
	ev := order.Event{Type: adyenActions[m.Kind] + ".received", Payment: []string{psp}}
	e := &adyenEvent{Event: &ev, o: o, psp: ref}
	if got := e.money(); e.broken() || got != m.Amount {
		return unsure(r, "the answer is about another amount")
	}
	kind := order.KindCaptured
	if m.Kind == order.MovementRefund {
		kind = order.KindRefunded
	}
	e.add(order.Fact{Kind: kind, Ref: ref, Status: order.StatusPending}, m.Amount)
	v.Events = []order.Event{ev}
	return v
}
