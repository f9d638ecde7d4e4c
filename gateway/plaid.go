package gateway

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

// Plaid asks Plaid's API about the payments (Payment Initiation, Europe) that its
// webhooks name. Its rules:
//
//   - A webhook is signed with a key that its token names and Plaid's API hands
//     out. It carries no id of its own: the payment, its new status and the time
//     make one.
//   - A payment is asked about, since a webhook tells neither its amount nor what
//     was refunded. amount_refunded changes without the status, so the version is
//     not last_status_update: the call that began last is the newest.
//   - A payment counts as captured once it is SETTLED: Plaid calls that the only
//     status upon which anything may be released, and tells it only of payments to
//     its virtual accounts. INITIATED and EXECUTED are authorised: the money may
//     still not arrive. With unconfirmed: true EXECUTED (the money has left the
//     payer's account) counts as captured too.
//     https://plaid.com/docs/payment-initiation/payment-status/
//   - The merchant's reference is reference.
//   - Webhooks of transfers (United States) name no transfer, so there is nothing
//     to ask about: they are ignored.
var Plaid = &Gateway{
	Name:     "plaid",
	Title:    "Plaid",
	Docs:     "https://plaid.com/docs/api/webhooks/webhook-verification/",
	Scheme:   "plaid",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "None: the key that a webhook names is fetched with `client_id` and `client_secret` (Dashboard → Developers → Keys, those of the same environment).",
		EventID:  "`payment_id`, `new_payment_status` and `timestamp` of the webhook together, which stay over all tries. What it leads to is known by the state of the payment.",
		Retries:  "Without a 200 within 10 s, for up to 24 hours with growing pauses.",
		Ordering: "None is promised, and the newest call counts.",
		Notes: "Payment Initiation only. **`TRANSFER_EVENTS_UPDATE` is ignored**: it names no transfer, only that there is news in a list that has to be read on from where one was. " +
			"Only `PAYMENT_STATUS_SETTLED` counts as captured, which Plaid tells of payments to its virtual accounts. " +
			"Without one, enter by hand what arrived at your bank, or take the payer's bank at its word with `unconfirmed: true`: then `PAYMENT_STATUS_EXECUTED` counts too, " +
			"though Plaid warns against releasing anything upon it. `PAYMENT_STATUS_INITIATED`, at which many payments in the EU stay, never counts. " +
			"Standing orders are ignored.",
	},
	Covers: Coverage{Of: "body"},
	// https://plaid.com/docs/api/webhooks/
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "Plaid-Verification", "User-Agent"},
	Options: append([]Option{
		{"client_id", true, "the client id, with which keys and payments are asked for"},
		{"client_secret", true, "the secret of the same environment"},
		{"unconfirmed", false, "true: `PAYMENT_STATUS_EXECUTED` counts as paid, though nobody has confirmed that the money arrived"},
		optionSigningKeys,
	}, optionsAPI...),
	Secrets: func(Source) []string { return nil },
	Parse:   parsePlaid,
	Remote:  plaidRemote,
	Fetch: &Fetch{
		Live: plaidLive, Test: plaidTest, Always: true,
		Objects: plaidObjects, Call: plaidCall, Parse: plaidAnswered, Sample: plaidAnswer,
	},
	Types:  func(Source) []Type { return plaidStates.types("payment.") },
	Sample: samplePlaid,
	Example: func(seed string) Source {
		_, private := exampleJWK("plaid", seed, uuidOf("plaid kid", seed))
		return Source{
			Gateway: "plaid", Mode: Test, ClientID: strings.ToLower(derive(24, "plaid", seed)), ClientSecret: exampleSecret("plaid", seed)[:30],
			SigningKeys: []string{private},
		}
	},
}

const plaidLive, plaidTest = "https://production.plaid.com", "https://sandbox.plaid.com"

var plaidRemote = &Remote{
	Live: plaidLive, Test: plaidTest,
	Key: func(_ Source, d Delivery) (KeyRef, error) {
		id, err := signature.PlaidKeyID(d.Header)
		return KeyRef{ID: id}, err
	},
	Secret: func(_ Source, key string) string { return key },
	Example: func(s Source) (KeyRef, []byte) {
		if len(s.SigningKeys) == 0 {
			return KeyRef{}, nil
		}
		public, err := sjson.Delete(s.SigningKeys[0], "d")
		if err != nil {
			return KeyRef{}, nil
		}
		return KeyRef{ID: gjson.Get(public, "kid").String()}, []byte(public)
	},
}

var plaidKinds = map[string]*regexp.Regexp{"payment": regexp.MustCompile(`^payment-id-[0-9A-Za-z-]{8,100}$`)}

const plaidExecuted = "PAYMENT_STATUS_EXECUTED"

// plaidStates: https://plaid.com/docs/payment-initiation/payment-status/
var plaidStates = askedStates{
	{status: "PAYMENT_STATUS_INPUT_NEEDED", meaning: "the payment waits for the payer", phase: order.StatusProcessing},
	{status: "PAYMENT_STATUS_AUTHORISING", meaning: "the bank authorises the payment", phase: order.StatusProcessing},
	{status: "PAYMENT_STATUS_PROCESSING", meaning: "the payment is under way (older name)", phase: order.StatusProcessing},
	{status: "PAYMENT_STATUS_INITIATED", meaning: "the bank accepted the payment", phase: order.StatusAuthorized},
	{status: plaidExecuted, meaning: "the money has left the payer's account; it counts with `unconfirmed: true`", phase: order.StatusAuthorized},
	{status: "PAYMENT_STATUS_SETTLED", meaning: "the money has arrived", phase: order.StatusAuthorized, captured: true},
	{status: "PAYMENT_STATUS_INSUFFICIENT_FUNDS", meaning: "the payer had too little money", phase: order.StatusFailed},
	{status: "PAYMENT_STATUS_FAILED", meaning: "the payment failed", phase: order.StatusFailed},
	{status: "PAYMENT_STATUS_BLOCKED", meaning: "Plaid blocked the payment", phase: order.StatusFailed},
	{status: "PAYMENT_STATUS_REJECTED", meaning: "the bank rejected the payment", phase: order.StatusFailed},
	{status: "PAYMENT_STATUS_CANCELLED", meaning: "the payer canceled", phase: order.StatusCanceled},
}

// plaidEvent reads a webhook, which waits until the API was asked.
func plaidEvent(body []byte) (order.Event, error) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return order.Event{}, fault
	}
	top, err := doc.members([]string{"webhook_type", "webhook_code", "payment_id", "new_payment_status", "timestamp"})
	if err != nil {
		return order.Event{}, parseError("duplicate_key", "%v", err)
	}
	d := draft{order.Event{ID: bodyID(body), Type: unreadableType, At: rfc3339(top.get("timestamp"))}}
	family, ok := top.get("webhook_type").kind()
	code, also := top.get("webhook_code").text()
	if !ok || !also || len(family)+len(code) >= maxType {
		d.fail("webhook_type or webhook_code is missing or no plain text")
		return d.Event, nil
	}
	d.Type = family + "." + code
	switch {
	case family == "TRANSFER":
		d.Ignored = NeedsFetch
	case d.Type != "PAYMENT_INITIATION.PAYMENT_STATUS_UPDATE":
		d.Ignored = UnknownType
	default:
		o := Object{"payment", top.get("payment_id").Str}
		if !askable(o, plaidKinds) {
			d.fail("payment_id is none of Plaid's")
			break
		}
		d.Fetch = o.String()
		status, _ := top.get("new_payment_status").kind()
		at, _ := top.get("timestamp").text()
		if id := madeID(o.ID, status, at); id != "" && len(id) <= maxText {
			d.ID = id
		}
	}
	return d.Event, nil
}

func parsePlaid(_ Source, d Delivery) ([]order.Event, error) {
	ev, err := plaidEvent(d.Body)
	if err != nil {
		return nil, err
	}
	return []order.Event{ev}, nil
}

func plaidObjects(_ Source, d Delivery) ([]Object, error) {
	ev, err := plaidEvent(d.Body)
	if err != nil {
		return nil, err
	}
	if o, ok := ParseObject(ev.Fetch); ok {
		return []Object{o}, nil
	}
	return nil, nil
}

// plaidCall: https://plaid.com/docs/api/products/payment-initiation/#payment_initiationpaymentget
func plaidCall(s Source, o Object) (Call, error) {
	if !askable(o, plaidKinds) {
		return Call{}, errNoObject(o)
	}
	body, err := json.Marshal(map[string]string{"client_id": s.ClientID, "secret": s.ClientSecret, "payment_id": o.ID})
	if err != nil {
		return Call{}, err
	}
	return Call{
		Method: http.MethodPost, Path: "/payment_initiation/payment/get", Body: body,
		Header: http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
	}, nil
}

func plaidAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	if err := isAbout(o, doc, "payment_id"); err != nil {
		return nil, err
	}
	var d draft
	f := d.members(doc, "the payment", "status", "amount", "amount_refunded", "reference", "last_status_update")
	d.Payment, d.Strength, d.At = []string{o.ID}, order.StrengthPayment, rfc3339(f.get("last_status_update"))
	d.Reference, _ = f.get("reference").name()
	d.refer(s, doc)
	state, ok := d.state("payment.", plaidStates, f.get("status"))
	if !ok {
		return d.done(), nil
	}
	money := func(v value, where string) order.Amount {
		m := d.members(v, where, "currency", "value")
		return d.decimal(m.get("value"), m.get("currency"), where)
	}
	captured := state.captured || s.Unconfirmed && state.status == plaidExecuted
	r := registers{phase: state.phase, captured: captured, amount: money(f.get("amount"), "amount")}
	if v := f.get("amount_refunded"); !v.absent() {
		refunded := money(v, "amount_refunded")
		if refunded.Currency != r.amount.Currency {
			d.fail("amount_refunded is in another currency than amount")
		}
		r.refunded = refunded.Minor
	}
	d.snapshot(o.ID, r, updated(time.Time{}, a))
	return d.done(), nil
}

// plaidPayment is the payment of a sample.
func plaidPayment(r SampleRequest) (string, error) {
	if !knownType(plaidStates.types("payment."), r.Type) {
		return "", unknownSample("plaid", r.Type, plaidStates.types("payment."))
	}
	return r.withDefaults().paymentID("payment-id-sandbox-", 32), nil
}

// samplePlaid makes the webhook about the payment.
func samplePlaid(r SampleRequest) ([]byte, error) {
	id, err := plaidPayment(r)
	if err != nil {
		return nil, err
	}
	r = r.withDefaults()
	return render(fields{
		"webhook_type": "PAYMENT_INITIATION", "webhook_code": "PAYMENT_STATUS_UPDATE", "payment_id": id,
		"new_payment_status": strings.TrimPrefix(r.Type, "payment."), "old_payment_status": "PAYMENT_STATUS_INPUT_NEEDED",
		"original_reference": r.Reference, "timestamp": r.At.Format("2006-01-02T15:04:05.000Z"),
		"environment": map[bool]string{true: "production", false: "sandbox"}[r.Mode == Live], "error": nil,
	}, r.Set, same)
}

// plaidAnswer makes what the API answers about the payment.
func plaidAnswer(r SampleRequest) (Object, []byte, error) {
	id, err := plaidPayment(r)
	if err != nil {
		return Object{}, nil, err
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(fields{
		"payment_id": id, "status": strings.TrimPrefix(r.Type, "payment."), "reference": r.Reference, "recipient_id": "recipient-id-sandbox-1",
		"amount": fields{"currency": r.Amount.Currency, "value": amount}, "last_status_update": r.At.Format(time.RFC3339),
		"request_id": derive(15, "request", id),
	}, r.Set, same)
	return Object{"payment", id}, body, err
}
