package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// DLocal maps the notifications of dLocal's payins: the payment, refund or
// chargeback that changed, as it is now. Its rules:
//
//   - A notification has no type and no event id. The type is the object and its
//     status ("payment.PAID"), the id that of the object and the status, so all
//     tries of one change are one event.
//   - What names a payment_id is a refund or a chargeback. Their statuses differ,
//     but for PENDING: that is a chargeback's if its id begins with CHAR or its
//     status_detail says so, else a refund's, which moves nothing.
//   - A payment has no version and no time of its change, so statuses rank: an
//     authorisation that was cancelled stays cancelled, whatever comes late.
//   - The capture of an authorisation is a payment of its own at dLocal; where it
//     names its authorization_id it is counted there, by its id, and its order_id,
//     which is the capture's, only finds an order. That the authorisation itself
//     is PAID then is the same money, so a payment that is no capture tells a total.
//   - Amounts are major units, and written as JSON numbers: 72.00.
//   - A chargeback that is COMPLETED took the money. One that is contested after
//     that is open again, until it is REVERSAL (won) or DISPUTE_LOST.
//
// https://docs.dlocal.com/docs/receive-notifications
var DLocal = &Gateway{
	Name:     "dlocal",
	Title:    "dLocal",
	Docs:     "https://docs.dlocal.com/docs/receive-notifications",
	Scheme:   "dlocal",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Merchant Dashboard → Settings → Integration: X-Login and Secret Key, written `x_login:secret_key`.",
		EventID:  "There is none: the id of the object and its status.",
		Retries:  "Until a 2xx: every hour for six hours, then every twelve hours for four days, twelve tries in all (older pages: hourly for seven days).",
		Ordering: "None is promised, and payments carry no version: statuses rank.",
		Notes: "A refund is always in the local currency: of a payment that was made in another (USD) it flags currency_mismatch and is not counted. " +
			"Not confirmed: that the notification of a capture names its authorization_id; without, the capture is a payment under its own order_id, so give it the order's. " +
			"VERIFIED (a card was checked) moves nothing. Payouts sign in another way and are refused.",
	},
	Covers: Coverage{Of: "body", Fields: []string{"X-Date"}},
	// dLocal gives no number. 10 s is what gateways that give one give most often.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Date", "X-Login", "X-Version"},
	Options: []Option{
		optionSecrets,
		{"tolerance", false, "how far X-Date may be from now. Default: any, since a notification is repeated for days"},
	},
	Parse:  parseDLocal,
	Types:  func(Source) []Type { return dlocalNames() },
	Sample: sampleDLocal,
	Example: func(seed string) Source {
		return Source{Gateway: "dlocal", Mode: Test, Secrets: []string{"login" + derive(8, seed) + ":" + exampleSecret("dlocal", seed)}}
	},
}

// dlocalTypes are what an object can be: https://docs.dlocal.com/reference/payment-status-codes,
// …/refund-status-codes, …/chargeback-status. EXPIRED is not in the first, and is sent for tickets.
var dlocalTypes = []dlocalType{
	{"payment.PENDING", "the payment is on its way", (*dlocalEvent).pending},
	{"payment.AUTHORIZED", "money is authorised and can be captured", (*dlocalEvent).authorized},
	{"payment.PAID", "the payment was paid", (*dlocalEvent).paid},
	{"payment.REJECTED", "the payment was rejected", dlocalClosed(order.StatusFailed)},
	{"payment.CANCELLED", "the payment or authorisation was cancelled", dlocalClosed(order.StatusCanceled)},
	{"payment.EXPIRED", "a ticket was not paid in time", dlocalClosed(order.StatusExpired)},
	{"refund.PENDING", "a refund is on its way", dlocalRefund(order.StatusPending)},
	{"refund.SUCCESS", "a refund was paid", dlocalRefund(order.StatusOK)},
	{"refund.REJECTED", "a refund was rejected: the money is still there", dlocalRefund(order.StatusFailed)},
	{"refund.CANCELLED", "a refund was cancelled: the money is still there", dlocalRefund(order.StatusFailed)},
	{"chargeback.INQUIRY", "the bank asks about a payment", dlocalDispute(order.StatusOpen, 1)},
	{"chargeback.PENDING", "a chargeback is coming", dlocalDispute(order.StatusOpen, 2)},
	{"chargeback.DISPUTE_RECEIVED", "our documents were received", dlocalDispute(order.StatusOpen, 3)},
	{"chargeback.COMPLETED", "the money was taken", dlocalDispute(order.StatusLost, 4)},
	{"chargeback.IN_DISPUTE", "our documents were sent to the acquirer", dlocalDispute(order.StatusOpen, 5)},
	{"chargeback.DISPUTE_LOST", "the dispute was lost", dlocalDispute(order.StatusLost, 6)},
	{"chargeback.REVERSAL", "the dispute was won: the money came back", dlocalDispute(order.StatusWon, 6)},
}

type dlocalType struct {
	name, meaning string
	facts         func(*dlocalEvent)
}

func dlocalTypeOf(name string) *dlocalType {
	for i := range dlocalTypes {
		if dlocalTypes[i].name == name {
			return &dlocalTypes[i]
		}
	}
	return nil
}

func dlocalNames() []Type {
	types := make([]Type, len(dlocalTypes))
	for i, t := range dlocalTypes {
		types[i] = Type{t.name, t.meaning}
	}
	return types
}

var dlocalTop = []string{
	"id", "payment_id", "authorization_id", "amount", "currency", "status", "status_detail", "order_id", "created_date", "approved_date",
}

// dlocalEvent is a notification while it is read.
type dlocalEvent struct {
	draft
	id      string       // of the object
	capture bool         // a payment that captures an authorisation
	amount  order.Amount // of the object
}

func parseDLocal(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members(dlocalTop)
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	id, ok := top.get("id").text()
	if !ok {
		return nil, parseError("no_event_id", "id is missing or no plain text")
	}
	e := &dlocalEvent{id: id, draft: draft{order.Event{ID: id, Type: unreadableType}}}
	status, ok := top.get("status").kind()
	if !ok {
		e.fail("status is missing or no plain text")
		return e.done(), nil
	}
	e.ID = id + ":" + status
	e.Type = dlocalObject(id, status, top) + "." + status
	if e.At = isoTime(top.get("approved_date")); e.At.IsZero() || status != "PAID" {
		e.At = isoTime(top.get("created_date"))
	}
	t := dlocalTypeOf(e.Type)
	if t == nil {
		e.Ignored = UnknownType
		if e.Type == "payment.VERIFIED" {
			e.Ignored = NoFact
		}
		return e.done(), nil
	}
	e.read(s, doc, top)
	if !e.broken() {
		t.facts(e)
	}
	return e.done(), nil
}

// dlocalObject tells what a notification is about.
func dlocalObject(id, status string, top object) string {
	switch {
	case top.get("payment_id").absent():
		return "payment"
	case dlocalTypeOf("chargeback."+status) == nil:
		return "refund"
	case status == "PENDING" && !strings.HasPrefix(id, "CHAR") &&
		!strings.Contains(strings.ToLower(top.get("status_detail").Str), "chargeback"):
		return "refund"
	}
	return "chargeback"
}

// read reads what all objects have.
func (e *dlocalEvent) read(s Source, doc value, top object) {
	e.amount = e.decimal(top.get("amount"), top.get("currency"), "amount")
	e.Reference, _ = top.get("order_id").name()
	e.Strength = order.StrengthModification
	if !strings.HasPrefix(e.Type, "payment.") {
		e.Payment = distinct([]string{e.text(top.get("payment_id"), "payment_id")})
	} else {
		authorization := e.textOr(top.get("authorization_id"), "authorization_id")
		e.capture = authorization != ""
		e.Payment = distinct([]string{authorization, e.id})
		if !e.capture {
			e.Strength = order.StrengthPayment
			e.Own = &e.amount
		}
	}
	e.refer(s, doc)
}

func (e *dlocalEvent) pending() {
	if e.capture {
		e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id, Status: order.StatusPending}, e.amount)
		return
	}
	e.phase(order.StatusProcessing, 0)
}

func (e *dlocalEvent) authorized() {
	e.phase(order.StatusAuthorized, 0)
	e.add(order.Fact{Kind: order.KindAuthorized}, e.amount)
}

func (e *dlocalEvent) paid() {
	if e.capture {
		e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id, Status: order.StatusOK}, e.amount)
		return
	}
	e.add(order.Fact{Kind: order.KindCaptured}, e.amount)
}

// dlocalClosed: a payment that came to nothing; of a capture only that one did.
func dlocalClosed(phase order.Status) func(*dlocalEvent) {
	return func(e *dlocalEvent) {
		if e.capture {
			e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id, Status: order.StatusDenied}, e.amount)
			return
		}
		e.phase(phase, 0)
	}
}

func dlocalRefund(status order.Status) func(*dlocalEvent) {
	return func(e *dlocalEvent) {
		e.add(order.Fact{Kind: order.KindRefunded, Ref: e.id, Status: status}, e.amount)
	}
}

func dlocalDispute(status order.Status, stage int64) func(*dlocalEvent) {
	return func(e *dlocalEvent) {
		e.add(order.Fact{Kind: order.KindDisputed, Ref: e.id, Status: status, Seq: stage}, e.amount)
	}
}

// sampleDLocal makes the body of a notification.
func sampleDLocal(r SampleRequest) ([]byte, error) {
	if dlocalTypeOf(r.Type) == nil {
		return nil, unknownSample("dlocal", r.Type, dlocalNames())
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("D-4-", 32)
	kind, status, _ := strings.Cut(r.Type, ".")
	created := r.At.Format("2006-01-02T15:04:05.000-0700")
	body := fields{
		"id": payment, "amount": amount, "currency": r.Amount.Currency, "status": status,
		"status_detail": "The " + kind + " is " + strings.ToLower(status) + ".", "status_code": "100",
		"created_date": created, "notification_url": "https://shop.example/webhooks/dlocal",
	}
	if r.Reference != "" {
		body["order_id"] = r.Reference
	}
	switch kind {
	case "payment":
		body["country"], body["payment_method_id"], body["payment_method_type"], body["payment_method_flow"] = "BR", "CARD", "CARD", "DIRECT"
		if status == "PAID" {
			body["approved_date"] = created
		}
	case "refund":
		body["id"], body["payment_id"] = r.refID("REF", 8, payment), payment
	default:
		body["id"], body["payment_id"] = r.refID("CHAR", 8, payment), payment
	}
	return render(body, r.Set, same)
}
