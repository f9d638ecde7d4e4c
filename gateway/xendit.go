package gateway

import (
	"regexp"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Xendit asks Xendit's API about the invoices, payment requests and refunds that
// its webhooks name. Its rules:
//
//   - x-callback-token is a fixed text that proves at most who sent the delivery,
//     and nothing of its body: of that only ids are read.
//   - An invoice is a payment, and so is a payment request; refunds name the one
//     that they belong to and come by their ids, since neither tells of them.
//   - Answers are snapshots whose version is updated, in milliseconds.
//   - An invoice counts with what was paid (paid_amount), if that is told.
//   - A payment request that is captured by hand may be captured in part, and does
//     not say so: unless captured_amount does, it is kept aside for a person.
//   - The merchant's reference is an invoice's external_id and a payment request's
//     reference_id.
var Xendit = &Gateway{
	Name:     "xendit",
	Title:    "Xendit",
	Docs:     "https://docs.xendit.co/apidocs/webhook-behavior",
	Scheme:   "xendit",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Settings → Webhooks → Webhook verification token. `access_token` is a secret key (`xnd_production_…`, `xnd_development_…`) that may read invoices, payment requests and refunds.",
		EventID:  "None that is proved. An event is a state of the object, as the API tells it.",
		Retries:  "Six times within 24 hours; an answer that takes longer than 30 s is **not** tried again.",
		Ordering: "None is promised. Snapshots are ordered by `updated`.",
		Notes: "Subscribe to invoices, or to payments of the Payments API (version 2: `pr-…`), and to refunds; an invoice that is also announced as a payment request would be two payments. " +
			"Version 3 of the Payments API, virtual accounts and e-wallets of the older APIs are not asked about. " +
			"Anybody who has seen a delivery knows the token, so what it says is never believed. " +
			"Not confirmed: chargebacks, and how a capture in part is told.",
	},
	Covers: Coverage{Of: "sender"},
	// https://docs.xendit.co/apidocs/webhook-behavior
	Deadline:    30 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "Webhook-Id"},
	Options:     append([]Option{optionSecrets, optionAccessToken}, optionsAPI...),
	CheckMore:   checkKey("xnd_production_", "xnd_development_"),
	Fetch: &Fetch{
		Live: "https://api.xendit.co", Test: "https://api.xendit.co", Always: true,
		Objects: xenditObjects, Call: xenditCall, Parse: xenditAnswered, Sample: xenditAnswer,
	},
	Types:  func(Source) []Type { return xenditTypes },
	Sample: sampleXendit,
	Example: func(seed string) Source {
		return Source{
			Gateway: "xendit", Mode: Test, Secrets: []string{exampleSecret("xendit", seed)},
			AccessToken: "xnd_development_" + exampleSecret("xendit token", seed),
		}
	},
}

var xenditKinds = map[string]*regexp.Regexp{
	"invoice":         regexp.MustCompile(`^[0-9a-f]{24}$`),
	"payment_request": regexp.MustCompile(`^pr-[0-9a-f-]{8,64}$`),
	"refund":          regexp.MustCompile(`^rfd-[0-9a-f-]{8,64}$`),
}

// xenditPaths are where each kind is asked about.
// https://github.com/xendit/xendit-node: invoice, payment_request and refund APIs
var xenditPaths = map[string]string{"invoice": "/v2/invoices/", "payment_request": "/payment_requests/", "refund": "/refunds/"}

var xenditStates = map[string]askedStates{
	"invoice": {
		{status: "PENDING", meaning: "the invoice waits for the shopper", phase: order.StatusProcessing},
		{status: "PAID", meaning: "the invoice was paid", phase: order.StatusAuthorized, captured: true},
		{status: "SETTLED", meaning: "the money reached the merchant", phase: order.StatusAuthorized, captured: true},
		{status: "EXPIRED", meaning: "the invoice was not paid in time", phase: order.StatusExpired},
	},
	"payment_request": {
		{status: "PENDING", meaning: "the payment is under way", phase: order.StatusProcessing},
		{status: "REQUIRES_ACTION", meaning: "the payment waits for the shopper", phase: order.StatusProcessing},
		{status: "AWAITING_CAPTURE", meaning: "money is authorised and can be captured", phase: order.StatusAuthorized},
		{status: "SUCCEEDED", meaning: "the money was captured", phase: order.StatusAuthorized, captured: true},
		{status: "FAILED", meaning: "the payment failed", phase: order.StatusFailed},
		{status: "CANCELED", meaning: "the payment was canceled", phase: order.StatusCanceled},
		{status: "VOIDED", meaning: "the authorisation was given up", phase: order.StatusCanceled},
		{status: "EXPIRED", meaning: "the payment was not made in time", phase: order.StatusExpired},
	},
	"refund": {
		{status: "PENDING", meaning: "a refund is under way", item: order.StatusPending},
		{status: "SUCCEEDED", meaning: "a refund was paid", item: order.StatusOK},
		{status: "FAILED", meaning: "a refund failed", item: order.StatusFailed},
		{status: "CANCELLED", meaning: "a refund was canceled", item: order.StatusFailed},
	},
}

var xenditTypes = func() []Type {
	var types []Type
	for _, kind := range []string{"invoice", "payment_request", "refund"} {
		types = append(types, xenditStates[kind].types(kind+".")...)
	}
	return types
}()

// xenditObjects reads an invoice's own callback, or an event of the newer APIs:
// {"event":"payment.succeeded","data":{…}}.
func xenditObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"id", "event", "data"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	o := Object{"invoice", top.get("id").Str}
	if event := top.get("event"); !event.absent() {
		data, err := top.get("data").members([]string{"id", "payment_request_id"})
		if err != nil {
			return nil, parseError("shape", "data %v", err)
		}
		switch name, _, _ := strings.Cut(event.Str, "."); name {
		case "refund":
			o = Object{"refund", data.get("id").Str}
		case "payment", "capture":
			o = Object{"payment_request", data.get("payment_request_id").Str}
		default:
			return nil, nil // a payment method, a payout
		}
	}
	if !askable(o, xenditKinds) {
		return nil, parseError("no_event_id", "the id of the %s is none of Xendit's", o.Kind)
	}
	return []Object{o}, nil
}

func xenditCall(s Source, o Object) (Call, error) {
	if !askable(o, xenditKinds) {
		return Call{}, errNoObject(o)
	}
	return basicCall(s, xenditPaths[o.Kind]+escaped(o)), nil
}
