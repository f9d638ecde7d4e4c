package gateway

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// stripeCalls capture and cancel PaymentIntents, refund what was captured, and capture charges that have no PaymentIntent. Our id
// of a movement stands in the metadata of what is made, as paidonce_transaction, where the API takes any: not for a cancellation,
// nor for the capture of a charge.
//
// A capture is final: what is left of the authorization is let go, which is Stripe's default. A PaymentIntent is captured once.
//
// No Stripe-Version is sent, so that the account's own holds, except where a charge is answered: what its amount_refunded means
// depends on the version (see stripeNoRelease).
//
// https://docs.stripe.com/api/refunds/create, …/payment_intents/capture, …/payment_intents/cancel, …/charges/capture
var stripeCalls = &Calls{
	Live: "https://api.stripe.com", Test: "https://api.stripe.com",
	KeyHeader: "Idempotency-Key",
	// Keys may be removed once they are at least 24 hours old: https://docs.stripe.com/api/idempotent_requests
	KeyLife:   24 * time.Hour,
	Ready:     stripeReady,
	Make:      stripeMake,
	Authorize: stripeAuthorize,
	Read:      stripeRead,
	Look:      stripeLook,
	Found:     stripeFound,
}

func stripeReady(s Source) error {
	if s.AccessToken == "" {
		return callErrorf("has no access_token: a key (rk_…) that may write refunds and PaymentIntents is needed to capture, refund or void")
	}
	return nil
}

// stripeMark is the key of the metadata under which our id of a movement stands, and stripeReason that of the merchant's reason.
const (
	stripeMark   = "paidonce_transaction"
	stripeReason = "paidonce_reason"

	stripeMetadata = 500 // the longest value: https://docs.stripe.com/api/metadata
)

// What Stripe knows as reasons; other words go into the metadata.
var (
	stripeRefundReasons = []string{"duplicate", "fraudulent", "requested_by_customer"}
	stripeVoidReasons   = append([]string{"abandoned"}, stripeRefundReasons...)
)

func stripeMake(s Source, m order.Movement) (Call, error) {
	p, err := stripePaymentOf(m)
	if err != nil {
		return Call{}, err
	}
	n, err := stripeExponents.theirs(m.Amount.Minor, m.Amount.Currency)
	if err != nil {
		return Call{}, callErrorf("the amount cannot be written as Stripe counts: %v", err)
	}
	amount := strconv.FormatInt(n, 10)
	var path string
	form := url.Values{}
	switch m.Kind {
	case order.MovementRefund:
		path = "/v1/refunds"
		form.Set(p.name, p.id)
		form.Set("amount", amount)
		stripeNote(form, m, stripeRefundReasons)
	case order.MovementCapture:
		path = p.path() + "/capture"
		if p.intent() {
			form.Set("amount_to_capture", amount)
			stripeNote(form, m, nil)
		} else {
			form.Set("amount", amount)
		}
	case order.MovementVoid:
		if !p.intent() {
			return Call{}, callErrorf("a charge without PaymentIntent cannot be canceled: Stripe lets go of it by a refund, in the Dashboard")
		}
		path = p.path() + "/cancel"
		if slices.Contains(stripeVoidReasons, m.Reason) {
			form.Set("cancellation_reason", m.Reason)
		}
	default:
		return Call{}, callErrorf("there is no %s at Stripe", m.Kind)
	}
	call := Call{Method: http.MethodPost, Path: path, Header: stripeHeader(s), Body: []byte(form.Encode())} // Encode sorts by key
	call.Header.Set("Content-Type", formType)
	if m.Kind == order.MovementCapture && !p.intent() {
		call.Header.Set("Stripe-Version", stripeSampleVersion)
	}
	return call, nil
}

// stripeNote writes what the metadata and reason of a movement are.
func stripeNote(form url.Values, m order.Movement, reasons []string) {
	form.Set("metadata["+stripeMark+"]", m.ID)
	switch {
	case m.Reason == "":
	case slices.Contains(reasons, m.Reason):
		form.Set("reason", m.Reason)
	default:
		form.Set("metadata["+stripeReason+"]", cutText(m.Reason, stripeMetadata))
	}
}

// cutText is as much of a text as fits limit bytes, in whole characters.
func cutText(text string, limit int) string {
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "")
}

// stripeHeader are the headers of every call. Whose account is called is part of it.
func stripeHeader(s Source) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	if s.StripeAccount != "" {
		h.Set("Stripe-Account", s.StripeAccount)
	}
	return h
}

func stripeAuthorize(s Source, c Call) Call {
	return withHeader(c, "Authorization", "Bearer "+s.AccessToken)
}

// stripePayment is what a movement is made on: a PaymentIntent, or a charge that has none.
type stripePayment struct {
	name string // the kind of [Object], and the parameter of a refund
	id   string
}

func (p stripePayment) intent() bool { return p.name == "payment_intent" }

func (p stripePayment) kind() *stripeThinKind { return stripeThinKinds[p.name] }

func (p stripePayment) path() string { return p.kind().path + url.PathEscape(p.id) }

// stripePaymentOf finds it among the ids that the payment is known under. One PaymentIntent has a charge for every attempt, and
// money is asked for of the PaymentIntent; several, which an invoice can have, hold a part of the money each.
func stripePaymentOf(m order.Movement) (stripePayment, error) {
	for _, name := range []string{"payment_intent", "charge"} {
		ids := stripeIDs(name, m.Payment)
		switch len(ids) {
		case 0:
			continue
		case 1:
			return stripePayment{name, ids[0]}, nil
		}
		return stripePayment{}, callErrorf("the payment is made of %d objects of kind %s: which of them is to be called cannot be told", len(ids), name)
	}
	return stripePayment{}, callErrorf("the payment has no PaymentIntent and no charge that can be called")
}

// stripeIDs are the ids of objects of a kind.
func stripeIDs(name string, ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !stripeThinKinds[name].id.MatchString(id) })
}
