package gateway

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// PagBank maps the notifications of PagBank's (PagSeguro's) API of orders. Its rules:
//
//   - A notification is an order (ORDE_…) with all its charges. Each charge (CHAR_…)
//     is a payment, and gives an event; its type is the charge's status.
//   - The merchant's reference is the reference_id of the order.
//   - Nothing tells when a charge changed, so that what is captured and refunded are
//     running totals, of which the greatest counts, and the status closes a payment
//     by its rank. A charge is canceled when it was given up, and when all of it was
//     refunded: the summary tells which. One that is canceled and keeps all of its
//     money contradicts itself, and is put aside for a person.
//   - An event's id is made of the charge, its status, and what was paid and refunded
//     by then.
//   - No byte tells the sandbox from live.
var PagBank = &Gateway{
	Name:     "pagbank",
	Title:    "PagBank",
	Docs:     "https://developer.pagbank.com.br/reference/webhooks",
	Scheme:   "pagbank",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "The token of the account with which the order was made: PagBank → Vendas → Integrações → Gerar token.",
		EventID:  "Made of the charge's id and status and of `summary.paid` and `summary.refunded`: PagBank sends none.",
		Retries:  "Could not be confirmed.",
		Ordering: "None is promised, and nothing tells it; it does not matter here.",
		Notes: "Notifications go to the `notification_urls` of each order; give the order's reference as its `reference_id`. The sandbox was reported to leave the signature out: such notifications are refused. " +
			"The payload does not tell the sandbox from live. Chargebacks are not told this way: record them in Paidonce. " +
			"That a charge refunded in part stays PAID, and how long PagBank waits for an answer (10 s is assumed), could not be confirmed.",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Authenticity-Token"},
	Options:     []Option{optionSecrets},
	Parse:       parsePagBank,
	Types:       pagbankRows.types,
	Sample:      samplePagBank,
	Example: func(seed string) Source {
		return Source{Gateway: "pagbank", Mode: Test, Secrets: []string{exampleSecret("pagbank", seed)}}
	},
}

// pagbankExpired is the type of the notification of a checkout that nobody used.
const pagbankExpired = "CHECKOUT.EXPIRED"

// pagbankRows are the statuses of charges.
// https://developer.pagbank.com.br/reference/objeto-charge,
// https://developer.pagbank.com.br/reference/webhooks-checkout
var pagbankRows = eventRows{
	{"WAITING", "a charge waits for its payment", order.StrengthPayment, pagbankPhase(order.StatusProcessing)},
	{"IN_ANALYSIS", "PagBank looks at the risk of a charge", order.StrengthPayment, pagbankPhase(order.StatusProcessing)},
	{"AUTHORIZED", "money is authorised and can be captured", order.StrengthPayment, pagbankAuthorized},
	{"PAID", "a charge was paid; its summary tells what was refunded since", order.StrengthPayment, pagbankTotals},
	{"DECLINED", "a charge was declined", order.StrengthPayment, pagbankPhase(order.StatusFailed)},
	{"CANCELED", "a charge was given up, or refunded in full", order.StrengthPayment, pagbankCanceled},
	{pagbankExpired, "a checkout was left unused", order.StrengthPayment, nil},
}

// maxCharges is how many charges an order may have: one for each try to pay.
const maxCharges = 100

func parsePagBank(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"id", "charges", "status"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	id, ok := top.get("id").text()
	if !ok {
		return nil, parseError("no_event_id", "id is missing or no plain text")
	}
	charges := top.get("charges").elements(maxCharges + 1)
	if len(charges) > maxCharges {
		return nil, parseError("shape", "the order has more than %d charges", maxCharges)
	}
	if len(charges) == 0 {
		return pagbankBare(s, doc, d, id, top.get("status").Str), nil
	}
	events := make([]order.Event, len(charges))
	for i := range charges {
		events[i] = readPagBank(s, doc, d, i)
	}
	return events, nil
}

// pagbankBare reads what has no charges: an order that waits for its first, or a
// checkout (CHEC_…).
func pagbankBare(s Source, doc value, d Delivery, id, status string) []order.Event {
	r := &reader{source: s, doc: doc}
	r.ID, r.Type, r.Ignored = bodyID(d.Body), "ORDER", NoFact
	if strings.HasPrefix(id, "CHEC_") {
		r.Type, r.Ignored = "CHECKOUT", UnknownType
		if status == "EXPIRED" {
			r.ID, r.Type, r.Ignored = madeID(id, status), pagbankExpired, ""
			r.At = r.date("/expiration_date")
			r.Payment, r.Strength = []string{id}, order.StrengthPayment
			r.Reference = r.first("/reference_id")
			r.phase(order.StatusExpired, 0)
			r.refer(s, doc)
		}
	}
	return r.done()
}

func readPagBank(s Source, doc value, d Delivery, i int) order.Event {
	r := &reader{source: s, doc: doc, base: fmt.Sprintf("/charges/%d/", i)}
	r.ID, r.Type = fmt.Sprintf("%s:%d", bodyID(d.Body), i), unreadableType
	status, ok := r.at(r.base + "status").kind()
	if !ok {
		r.fail("%sstatus is missing or no plain text", r.base)
		return r.Event
	}
	r.Type = status
	summary := r.base + "amount/summary/"
	if id := madeID(r.first(r.base+"id"), status); id != "" {
		r.ID = strings.Join([]string{id, r.first(summary + "paid"), r.first(summary + "refunded")}, ":")
	}
	r.At = r.date(r.base + "paid_at")
	if r.At.IsZero() {
		r.At = r.date(r.base + "created_at")
	}
	row := pagbankRows.find(status)
	if row == nil || row.read == nil {
		r.Ignored = UnknownType
		return r.Event
	}
	r.Strength = row.strength
	r.Payment = []string{r.text(r.base + "id")}
	r.Reference = r.first("/reference_id")
	r.refer(s, doc)
	row.read(r)
	return r.done()[0]
}

// pagbankAmount is the amount of the charge.
func pagbankAmount(r *reader) order.Amount {
	at := r.base + "amount/"
	return r.minor(at+"value", r.currency(at+"currency"))
}

func pagbankPhase(status order.Status) func(*reader) {
	return func(r *reader) {
		r.own(pagbankAmount(r))
		r.phase(status, 0)
	}
}

func pagbankAuthorized(r *reader) {
	m := pagbankAmount(r)
	r.own(m)
	r.phase(order.StatusAuthorized, 0)
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// pagbankTotals: what was paid and refunded by now. Without a summary, all of it was
// paid.
func pagbankTotals(r *reader) {
	m := pagbankAmount(r)
	r.own(m)
	summary := r.base + "amount/summary/"
	if !r.at(summary + "paid").absent() {
		m = r.minor(summary+"paid", m.Currency)
	}
	r.add(order.Fact{Kind: order.KindCaptured}, m)
	if !r.at(summary + "refunded").absent() {
		r.add(order.Fact{Kind: order.KindRefunded}, r.minor(summary+"refunded", m.Currency))
	}
}

// pagbankCanceled: without a summary nothing tells whether something had been paid;
// then all of what was is refunded, which is right either way.
func pagbankCanceled(r *reader) {
	r.phase(order.StatusCanceled, 0)
	if r.at(r.base + "amount/summary").absent() {
		m := pagbankAmount(r)
		r.own(m)
		r.add(order.Fact{Kind: order.KindRefunded}, order.Amount{Minor: order.All, Currency: m.Currency})
		return
	}
	pagbankTotals(r)
	if n, _ := r.at(r.base + "amount/summary/refunded").integer(); n == 0 && slices.ContainsFunc(r.Facts, pagbankPaid) {
		r.fail("%s is canceled, and its summary tells of money that was paid and not refunded", r.base)
	}
}

func pagbankPaid(f order.Fact) bool { return f.Kind == order.KindCaptured && f.Amount > 0 }

// samplePagBank makes the notification of an order with one charge, or of a checkout.
func samplePagBank(r SampleRequest) ([]byte, error) {
	if pagbankRows.find(r.Type) == nil {
		return nil, unknownSample("pagbank", r.Type, pagbankRows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	at := r.At.Format("2006-01-02T15:04:05.000Z07:00")
	object := fields{"created_at": at}
	if r.Reference != "" {
		object["reference_id"] = r.Reference
	}
	if r.Type == pagbankExpired {
		id := r.paymentID("CHEC_", 32)
		if !strings.HasPrefix(id, "CHEC_") {
			id = "CHEC_" + id
		}
		object["id"], object["status"], object["expiration_date"] = id, "EXPIRED", at
		return render(object, r.Set, same)
	}
	charge := r.paymentID("CHAR_", 32)
	paid, refunded := int64(0), int64(0)
	switch r.Type {
	case "PAID":
		paid = n
	case "CANCELED":
		paid, refunded = n, n
	}
	c := fields{
		"id": charge, "status": r.Type, "created_at": at, "description": "Sample",
		"amount":         fields{"value": n, "currency": r.Amount.Currency, "summary": fields{"total": n, "paid": paid, "refunded": refunded}},
		"payment_method": fields{"type": "CREDIT_CARD", "installments": 1, "capture": true},
	}
	if paid > 0 {
		c["paid_at"] = at
	}
	object["id"], object["charges"] = "ORDE_"+derive(32, "order", charge), []any{c}
	return render(object, r.Set, same)
}
