package gateway

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Adyen maps standard notifications (JSON, signed by HMAC). Its rules:
//
//   - The HMAC covers eight fields of an item. Where the source has Basic
//     credentials, which vouch for the sender, three more are believed:
//     eventDate, disputeStatus and modification.action.
//   - A payment is known by the pspReference of its authorisation, which
//     modifications and disputes call originalReference.
//   - The event id is pspReference:eventCode:success, with the sender's
//     credentials :eventDate too. Without the date, a capture that Adyen makes
//     again after CAPTURE_FAILED cannot be told from a repetition of the first
//     one, and is dropped.
//   - Of two events about one thing the later eventDate counts; without the
//     sender's credentials, the later stage of its life (a failure comes after
//     what failed). A source should have the credentials from the beginning.
//   - live stands in the envelope, unsigned: it can only flag.
//   - A dispute that can still be defended is open if disputeStatus says so, and
//     lost without it.
//
// Types, fields and their meaning:
// https://docs.adyen.com/development-resources/webhooks/webhook-types
var Adyen = &Gateway{
	Name:     "adyen",
	Title:    "Adyen",
	Docs:     "https://docs.adyen.com/development-resources/webhooks",
	Scheme:   "adyen",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Customer Area → Developers → Webhooks → the webhook → Security → HMAC key (64 hexadecimal digits); set Basic authentication there too.",
		EventID:  "pspReference:eventCode:success, with the sender's credentials also :eventDate; Adyen's events have no id of their own.",
		Retries:  "After 9, 18 and 27 s, then with pauses of 2 minutes up to 8 hours, for 30 days. The queue of an endpoint waits for the delivery that failed.",
		Ordering: "None is promised.",
		Calls: "With `access_token` (an API key) captures, refunds and cancels of the Checkout API (v71), in the first of `merchant_accounts`; in live mode `api_url` is your own address, " +
			"`https://PREFIX-checkout-live.adyenpayments.com/checkout`. Adyen answers that it has received the call, and tells with CAPTURE, REFUND or CANCELLATION what became of it; until then the money is pending. " +
			"By default the rest of an authorization is canceled with its first capture. `reference` is our id. There is nothing to look up: a call whose answer is not known is repeated under the same key, " +
			"and settled by its answer, by the notification that has our id as merchantReference, or by a person in the Customer Area. Not confirmed: what Adyen answers to a key that was used for another request.",
	},
	Covers: Coverage{
		Of: "fields",
		Fields: []string{
			"pspReference", "originalReference", "merchantAccountCode", "merchantReference",
			"amount.value", "amount.currency", "eventCode", "success",
		},
		Sender: []string{"eventDate", "additionalData.disputeStatus", "additionalData.modification.action"},
	},
	// The body was demanded before Adyen went by status codes, and is still taken.
	AckBody: "[accepted]",
	AckType: "text/plain; charset=utf-8",
	// https://docs.adyen.com/development-resources/webhooks/handle-webhook-events
	Deadline:             10 * time.Second,
	QuarantineUnreadable: true,
	KeepHeaders:          []string{"Content-Type", "User-Agent"},
	Options: append([]Option{
		{"hmac_keys", true, "HMAC keys, 64 hexadecimal digits each; all are live"},
		{"basic", false, "`user:password` of the notifications; needed for dates, disputes and modifications to be believed"},
		optionAccounts,
		{"capture", false, "`automatic` (default) or `manual`"},
		{"access_token", false, "an API key with the role for Checkout's modifications: payments can then be captured, refunded and canceled. Default: they cannot"},
	}, optionsAPI...),
	CheckMore: checkAdyen,
	Secrets:   func(s Source) []string { return s.HMACKeys },
	Parse:     parseAdyen,
	Calls:     adyenCalls,
	Types:     func(Source) []Type { return adyenNames() },
	Sample:    sampleAdyen,
	Example: func(seed string) Source {
		return Source{
			Gateway: "adyen", Mode: Test, HMACKeys: []string{derive(64, "adyen", seed)},
			Basic: "paidonce:" + exampleSecret("adyen", "basic"), MerchantAccounts: []string{"ExampleShopECOM"},
		}
	},
}

// adyenTypes are the event codes that are mapped; everything else is ignored.
var adyenTypes = []adyenType{
	{"AUTHORISATION", "the payment was authorised, or success is false", "", (*adyenEvent).authorisation},
	{"PENDING", "the payment is on its way", "", (*adyenEvent).pending},
	{"OFFER_CLOSED", "the shopper left the payment unfinished", "", (*adyenEvent).expired},
	{"CAPTURE", "a capture was made, or refused", "capture", (*adyenEvent).capture},
	{"CAPTURE_FAILED", "a capture failed afterwards", "capture", (*adyenEvent).captureFailed},
	{"CANCELLATION", "the authorisation was canceled", "cancel", (*adyenEvent).canceled},
	{"TECHNICAL_CANCEL", "the authorisation was canceled by the merchant's reference", "cancel", (*adyenEvent).canceled},
	{"CANCEL_OR_REFUND", "canceled if not yet captured, else refunded", "cancel", (*adyenEvent).cancelOrRefund},
	{"EXPIRE", "the authorisation was not captured in time", "cancel", (*adyenEvent).expired},
	{"REFUND", "a refund was made, or refused", "refund", (*adyenEvent).refund},
	{"REFUND_FAILED", "a refund failed afterwards: the money came back", "refund", (*adyenEvent).refundFailed},
	{"REFUNDED_REVERSED", "a refund was sent back: the money came back", "refund", (*adyenEvent).refundFailed},
	{"REQUEST_FOR_INFORMATION", "the shopper's bank asks about the payment", "dispute", adyenDispute(1, order.StatusOpen)},
	{"NOTIFICATION_OF_CHARGEBACK", "a dispute begins", "dispute", adyenDispute(1, order.StatusOpen)},
	{"CHARGEBACK", "the disputed money was taken", "dispute", (*adyenEvent).chargeback},
	{"CHARGEBACK_REVERSED", "the dispute was defended: the money came back", "dispute", adyenDispute(3, order.StatusWon)},
	{"PREARBITRATION_WON", "the dispute was won", "dispute", adyenDispute(4, order.StatusWon)},
	{"PREARBITRATION_LOST", "the dispute was lost", "dispute", adyenDispute(4, order.StatusLost)},
	{"SECOND_CHARGEBACK", "the dispute was lost in the second round", "dispute", adyenDispute(4, order.StatusLost)},
}

type adyenType struct {
	code, meaning string
	about         string // what pspReference names, if not the payment
	facts         func(*adyenEvent)
}

var adyenTypeOf = func() map[string]*adyenType {
	m := make(map[string]*adyenType, len(adyenTypes))
	for i := range adyenTypes {
		m[adyenTypes[i].code] = &adyenTypes[i]
	}
	return m
}()

func adyenNames() []Type {
	types := make([]Type, len(adyenTypes))
	for i, t := range adyenTypes {
		types[i] = Type{t.code, t.meaning}
	}
	return types
}

// The fields that are read: those the HMAC covers, then those that need the
// sender's credentials.
var (
	adyenCovered = []string{
		"pspReference", "originalReference", "merchantAccountCode", "merchantReference", "amount", "eventCode", "success",
	}
	adyenBelieved = append(slices.Clone(adyenCovered), "eventDate", "additionalData")
)

func parseAdyen(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	// An envelope with two live is as unclear as one with none.
	top, err := doc.members([]string{"notificationItems", "live"})
	if err != nil {
		if top, err = doc.members([]string{"notificationItems"}); err != nil {
			return nil, parseError("duplicate_key", "%v", err)
		}
		top = object{names: []string{"notificationItems", "live"}, values: []value{top.get("notificationItems"), {}}}
	}
	items := top.get("notificationItems").elements(len(d.Body))
	if len(items) == 0 {
		return nil, parseError("shape", "there are no notificationItems")
	}
	wantLive := "false"
	if s.Mode == Live {
		wantLive = "true"
	}
	rightMode := top.get("live").Str == wantLive

	events := make([]order.Event, len(items))
	for i, item := range items {
		readAdyen(s, item, rightMode, &events[i])
	}
	return events, nil
}

// adyenEvent is an item while it is read. The first fault breaks it.
type adyenEvent struct {
	*order.Event
	s       Source
	o       object
	psp     string
	success bool
	date    time.Time // only with the sender's credentials
}

// readAdyen fills ev from one item. It always gives the event an id: a signed
// item that cannot be understood must not hold up its neighbours.
func readAdyen(s Source, v value, rightMode bool, ev *order.Event) {
	e := &adyenEvent{Event: ev, s: s}
	fields := adyenCovered
	if s.Basic != "" {
		fields = adyenBelieved
	}
	ev.Type = unreadableType
	w, err := v.members([]string{"NotificationRequestItem"})
	if err == nil {
		e.o, err = w.get("NotificationRequestItem").members(fields)
	}
	if err != nil {
		ev.ID = hashID(v.Raw)
		e.fail("the item %v", err)
		return
	}
	e.names()
	t, known := adyenTypeOf[ev.Type]
	if e.broken() {
		return
	}
	if !known {
		ev.Ignored = UnknownType
		return
	}
	ev.Strength = order.StrengthPayment
	if t.about != "" {
		ev.Strength = order.StrengthModification
	}
	ref := "merchantReference"
	if s.Reference != "" {
		ref = s.Reference[1:]
	}
	if slices.Contains(adyenCovered, ref) {
		ev.Reference, _ = e.o.get(ref).text()
	}
	t.facts(e)
	account, _ := e.o.get("merchantAccountCode").text()
	switch {
	case e.broken():
	case len(ev.Facts) == 0:
		ev.Ignored = NoFact
	case !rightMode:
		misfit(ev, order.MisfitMode)
	case len(s.MerchantAccounts) > 0 && !slices.Contains(s.MerchantAccounts, account):
		misfit(ev, order.MisfitAccount)
	}
}

// names reads what identifies the item: id, type, payment, time.
func (e *adyenEvent) names() {
	psp, ok := e.o.get("pspReference").text()
	code, ok2 := e.o.get("eventCode").kind()
	success := e.o.get("success").Str
	if !ok || !ok2 || success != "true" && success != "false" {
		// Named by what is signed, so that a repetition has the same name.
		raw := make([]string, len(adyenCovered))
		for i, f := range adyenCovered {
			raw[i] = e.o.get(f).Raw
		}
		e.ID = hashID(strings.Join(raw, "\n"))
		e.fail("pspReference, eventCode or success is missing or no plain text")
		return
	}
	e.psp, e.Type, e.success = psp, code, success == "true"
	e.ID = psp + ":" + code + ":" + success
	if e.s.Basic != "" {
		if e.date = rfc3339(e.o.get("eventDate")); !e.date.IsZero() {
			e.At = e.date
			e.ID += ":" + e.date.Format(time.RFC3339Nano)
		}
	}
	if len(e.ID) > maxText {
		e.ID = hashID(e.ID)
	}
	original := e.o.get("originalReference")
	switch id, ok := original.text(); {
	case ok:
		e.Payment = []string{id}
	case original.absent() || original.Str == "" && original.Raw == `""`:
		e.Payment = []string{psp}
	default:
		e.fail("originalReference is no plain text")
	}
}

func (e *adyenEvent) broken() bool { return e.Broken != "" }

func (e *adyenEvent) fail(format string, args ...any) {
	if !e.broken() {
		e.Broken = fmt.Sprintf(format, args...)
	}
}

// hashID names what has no readable id.
func hashID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "item:" + hex.EncodeToString(sum[:16])
}

func checkAdyen(c *Checker) {
	s := c.s
	if user, password, ok := strings.Cut(s.Basic, ":"); s.Basic != "" && (!ok || user == "" || password == "") {
		c.add("basic", "must be user:password")
	}
	if s.Capture != "" && s.Capture != CaptureAutomatic && s.Capture != CaptureManual {
		c.add("capture", "must be automatic or manual")
	}
	if ref := s.Reference; ref != "" && !slices.Contains([]string{"/merchantReference", "/pspReference", "/originalReference"}, ref) {
		c.add("reference", "must be /merchantReference, /pspReference or /originalReference: nothing else in an item is signed and names an order")
	}
}
