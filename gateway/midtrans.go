package gateway

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Midtrans asks Midtrans's API about the orders that its HTTP notifications name.
// Its rules:
//
//   - A notification signs order_id, status_code and gross_amount, and neither
//     transaction_status nor fraud_status: one that was seen once could be sent
//     again with another status. So it is believed only as a reason to ask
//     GET /v2/{order_id}/status.
//   - The merchant's reference is order_id, and a payment is known by its
//     transaction_id: an order_id may be tried again after a refusal.
//   - Every answer is a snapshot of all that is known of the payment. It has no
//     version; snapshots follow each other by when they were asked for.
//   - A capture counts if fraud_status is accept. What is challenged is not paid
//     until the merchant approves it.
//   - refund_amount is the running total. Refunds are not taken one by one: one
//     that is gone from the list says nothing about itself.
//   - A chargeback takes all that is left. Of a partial one the amount is not told:
//     all is at stake until a person looks.
//   - Times are of the zone GMT+7. https://docs.midtrans.com/reference/get-transaction-status
var Midtrans = &Gateway{
	Name:     "midtrans",
	Title:    "Midtrans",
	Docs:     "https://docs.midtrans.com/docs/https-notification-webhooks",
	Scheme:   "midtrans",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Settings → Access Keys → Server Key. The API is asked with it too, unless there is an `access_token`.",
		EventID:  "None: an event is a state of the order's payment, as the API tells it.",
		Retries:  "By the answer: 500 once, 503 four times, 400 and 404 twice, other failures five times, 2xx never; within hours.",
		Ordering: "None is promised: settlement may come before pending. Answers of the API are ordered by when they were asked for.",
		Notes: "Not confirmed: what the API says of a chargeback that was won. Once it says `settlement` again the order is paid again. " +
			"DANA and BI-SNAP payments are asked about by transaction id, which is not signed, so they are not supported here; " +
			"neither are SNAP-BI notifications (X-SIGNATURE).",
	},
	Covers: Coverage{Of: "fields", Fields: []string{"order_id", "status_code", "gross_amount"}},
	// https://docs.midtrans.com/docs/https-notification-webhooks: best practice, 15 s
	Deadline:    15 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options: append([]Option{
		{"secrets", true, "server keys; all are live, and the API is asked with the first"},
		{"access_token", false, "the server key that the API is asked with. Default: the first of secrets"},
	}, optionsAPI...),
	CheckMore: func(c *Checker) {
		for _, key := range append(slices.Clone(c.s.Secrets), c.s.AccessToken) {
			if c.s.Mode == Live && strings.HasPrefix(key, "SB-") {
				c.add("mode", "is live, and a server key is the sandbox's (SB-…)")
				return
			}
		}
	},
	Fetch: &Fetch{
		Live: "https://api.midtrans.com", Test: "https://api.sandbox.midtrans.com", Always: true,
		Objects: midtransObjects, Call: midtransCall, Parse: parseMidtrans, Sample: midtransAnswer,
	},
	Types:  func(Source) []Type { return midtransNames() },
	Sample: sampleMidtrans,
	Example: func(seed string) Source {
		return Source{Gateway: "midtrans", Mode: Test, Secrets: []string{"Mid-server-" + exampleSecret("midtrans", seed)}}
	},
}

// midtransKinds: an order_id has up to 50 letters, digits, hyphens, underscores,
// tildes and dots. One of dots alone would lead elsewhere in a path.
var midtransKinds = map[string]*regexp.Regexp{
	"order": regexp.MustCompile(`^\.{0,9}[A-Za-z0-9_~-][A-Za-z0-9._~-]{0,49}$`),
}

func midtransObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"order_id"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	o := Object{Kind: "order", ID: top.get("order_id").Str}
	if !askable(o, midtransKinds) {
		return nil, parseError("no_event_id", "order_id is none that an order can have")
	}
	return []Object{o}, nil
}

// midtransCall asks with the server key as the user and no password.
// https://docs.midtrans.com/docs/api-authorization-headers
func midtransCall(s Source, o Object) (Call, error) {
	if !askable(o, midtransKinds) {
		return Call{}, errNoObject(o)
	}
	key := s.AccessToken
	if key == "" && len(s.Secrets) > 0 {
		key = s.Secrets[0]
	}
	return Call{Path: "/v2/" + escaped(o) + "/status", Header: http.Header{
		"Accept":        {"application/json"},
		"Authorization": {basicHeader(key + ":")},
	}}, nil
}

// midtransState is what a transaction_status says.
// https://docs.midtrans.com/docs/https-notification-webhooks#status-definition
type midtransState struct {
	status, meaning string
	phase           order.Status
	captured        bool
	dispute         order.Status // "": none
}

var midtransStates = []midtransState{
	{"pending", "the payment waits for the shopper", order.StatusProcessing, false, ""},
	{"authorize", "money is authorised and can be captured", order.StatusAuthorized, false, ""},
	{"capture", "a card payment was captured; it counts if fraud_status is accept", order.StatusAuthorized, true, ""},
	{"settlement", "the money was settled", order.StatusAuthorized, true, ""},
	{"deny", "the payment was refused", order.StatusFailed, false, ""},
	{"failure", "the payment failed", order.StatusFailed, false, ""},
	{"cancel", "the payment was canceled, also after its capture", order.StatusCanceled, false, ""},
	{"expire", "the payment was not made in time", order.StatusExpired, false, ""},
	{"refund", "all of it was refunded", order.StatusAuthorized, true, ""},
	{"partial_refund", "parts of it were refunded", order.StatusAuthorized, true, ""},
	{"chargeback", "it is charged back", order.StatusAuthorized, true, order.StatusLost},
	{"partial_chargeback", "a part of it is charged back; which, is not told", order.StatusAuthorized, true, order.StatusOpen},
}

func midtransStateOf(status string) *midtransState {
	for i := range midtransStates {
		if midtransStates[i].status == status {
			return &midtransStates[i]
		}
	}
	return nil
}

func midtransNames() []Type {
	types := make([]Type, len(midtransStates))
	for i, t := range midtransStates {
		types[i] = Type{t.status, t.meaning}
	}
	return types
}

var midtransTop = []string{
	"order_id", "transaction_id", "transaction_status", "fraud_status", "gross_amount", "currency", "refund_amount", "transaction_time",
}

func parseMidtrans(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members(midtransTop)
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if top.get("order_id").Str != o.ID {
		return nil, parseError("shape", "the answer is not about the order that was asked about")
	}
	m := &draft{}
	m.Type = unreadableType
	m.At = localTime(top.get("transaction_time"), time.DateTime, "Asia/Jakarta")
	m.Payment = distinct([]string{m.text(top.get("transaction_id"), "transaction_id")})
	m.Reference, m.Strength = o.ID, order.StrengthPayment
	m.refer(s, doc)
	status, ok := top.get("transaction_status").kind()
	if !ok {
		m.fail("transaction_status is missing or no plain text")
		return m.done(), nil
	}
	m.Type = strings.ToLower(status) // DANA's and ShopeePay's are in capitals
	state := midtransStateOf(m.Type)
	switch {
	case m.broken():
	case state == nil:
		m.Ignored = UnknownType
	default:
		m.midtrans(*state, top, updated(time.Time{}, a))
	}
	return m.done(), nil
}

// midtrans sets every register of the payment.
func (d *draft) midtrans(state midtransState, top object, seq int64) {
	cur := top.get("currency")
	if cur.absent() { // of older payment methods; the documentation says IDR
		cur = textValue("IDR")
	}
	amount := d.decimal(top.get("gross_amount"), cur, "gross_amount")
	captured, refunded := order.Amount{Currency: amount.Currency}, order.Amount{Currency: amount.Currency}
	if fraud := top.get("fraud_status").Str; state.status == "capture" && fraud != "accept" {
		state.captured, state.phase = false, order.StatusProcessing
		if fraud == "deny" {
			state.phase = order.StatusFailed
		}
	}
	if state.captured {
		captured = amount
	}
	switch total := top.get("refund_amount"); {
	case !total.absent():
		refunded = d.decimal(total, cur, "refund_amount")
	case state.status == "refund":
		refunded = amount
	case state.status == "partial_refund":
		d.fail("refund_amount is missing")
	}
	d.phase(state.phase, seq)
	if state.status == "authorize" {
		d.add(order.Fact{Kind: order.KindAuthorized}, amount)
	}
	d.add(order.Fact{Kind: order.KindCaptured, Seq: seq}, captured)
	d.add(order.Fact{Kind: order.KindRefunded, Seq: seq}, refunded)
	dispute := order.Fact{Kind: order.KindDisputed, Ref: d.Payment[0], Status: cmp.Or(state.dispute, order.StatusNone), Seq: seq}
	if state.dispute != "" {
		dispute.Amount, dispute.Currency = order.All, amount.Currency
	}
	d.Facts = append(d.Facts, dispute)
	d.Own = &amount
}
