package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// LemonSqueezy maps the events of Lemon Squeezy. Its rules:
//
//   - A payment is an order, or the invoice of a subscription's renewal, known as
//     "orders/1" and "subscription-invoices/1": the numbers of the two are not
//     apart. Each event carries the whole object: captured, refunded and phase are
//     set by the latest, in the order of updated_at.
//   - The first invoice of a subscription is the money of its order, and says
//     nothing beside it, until it is refunded: that is kept as a payment of its own,
//     for a person to see.
//   - The merchant's reference is order_id or external_ref in the custom data of
//     the checkout, of orders alone: renewals repeat it and are another sale.
//   - Events have no id: one is made of name, object and updated_at.
//   - test_mode must be a JSON boolean that fits the source's mode.
var LemonSqueezy = &Gateway{
	Name:     "lemonsqueezy",
	Title:    "Lemon Squeezy",
	Docs:     "https://docs.lemonsqueezy.com/help/webhooks",
	Scheme:   "lemonsqueezy",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "Lemon Squeezy → Settings → Webhooks → Signing secret, which you choose yourself (6 to 40 characters).",
		EventID:  "Made of `meta.event_name`, type and id of the object, and its `updated_at`: Lemon Squeezy sends none that is signed.",
		Retries:  "Three more tries, after about 5, 25 and 125 seconds; then only by hand, from the settings. Anything but 200 is a failure.",
		Ordering: "None is promised; `updated_at` orders them.",
		Notes: "Put the order's reference into `checkout[custom][order_id]`. Renewals of a subscription carry the custom data of its first order, so that they get no reference; " +
			"for orders of your own per renewal, add a second source with `reference: /data/id` for `subscription_payment_*`. " +
			"Disputes are told by email only. What could not be confirmed: the units of currencies without decimals (hundredths are assumed, which makes too little of them if wrong), " +
			"the status `fraudulent` (it takes everything back), how long Lemon Squeezy waits for an answer (10 s is assumed), and that refunding a subscription's first payment also sends `order_refunded`.",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Event-Name", "X-Signature"},
	Options:     []Option{optionSecrets, optionAccounts},
	Parse:       lemonsqueezy.parse,
	Types:       lemonsqueezy.rows.types,
	Sample:      sampleLemonSqueezy,
	Example: func(seed string) Source {
		return Source{Gateway: "lemonsqueezy", Mode: Test, Secrets: []string{exampleSecret("lemonsqueezy", seed)}}
	},
}

var lemonsqueezy = layout{
	typ:   "/meta/event_name",
	at:    func(r *reader) time.Time { return r.date(lemonsqueezyAt + "updated_at") },
	units: hundredths,
	made: func(r *reader) string {
		return madeID(r.Type, r.first("/data/type"), r.first("/data/id"), r.first(lemonsqueezyAt+"updated_at"))
	},
	rows: eventRows{
		{"order_created", "an order was placed", order.StrengthPayment, lemonsqueezyOrder},
		{"order_refunded", "an order was refunded, in part or in full", order.StrengthModification, lemonsqueezyOrder},
		{"subscription_payment_success", "a renewal was paid", order.StrengthPayment, lemonsqueezyInvoice},
		{"subscription_payment_failed", "an attempt to pay a renewal failed", order.StrengthPayment, lemonsqueezyInvoice},
		{"subscription_payment_recovered", "a renewal was paid after a failed attempt", order.StrengthPayment, lemonsqueezyInvoice},
		{"subscription_payment_refunded", "a renewal was refunded, in part or in full", order.StrengthModification, lemonsqueezyInvoice},
	},
	misfit: func(r *reader) order.Misfit {
		test := r.at(lemonsqueezyAt + "test_mode")
		if r.source.Mode == Live && !test.isFalse() || r.source.Mode != Live && !test.isTrue() {
			return order.MisfitMode
		}
		return r.account(lemonsqueezyAt + "store_id")
	},
}

const lemonsqueezyAt = "/data/attributes/"

// lemonsqueezyPhases are the statuses of orders and invoices.
// https://docs.lemonsqueezy.com/api/orders/the-order-object,
// https://docs.lemonsqueezy.com/api/subscription-invoices/the-subscription-invoice-object
var lemonsqueezyPhases = map[string]order.Status{
	"pending": order.StatusProcessing, "failed": order.StatusFailed, "void": order.StatusCanceled, "fraudulent": order.StatusCanceled,
	"paid": order.StatusAuthorized, "refunded": order.StatusAuthorized, "partial_refund": order.StatusAuthorized,
}

func lemonsqueezyOrder(r *reader) {
	r.Reference = r.first("/meta/custom_data/order_id", "/meta/custom_data/external_ref")
	lemonsqueezySnapshot(r, "orders")
}

func lemonsqueezyInvoice(r *reader) {
	if r.text(lemonsqueezyAt+"billing_reason") == "initial" && r.Type != "subscription_payment_refunded" {
		return
	}
	lemonsqueezySnapshot(r, "subscription-invoices")
}

// lemonsqueezySnapshot: the object as it is at updated_at.
func lemonsqueezySnapshot(r *reader, kind string) {
	if r.text("/data/type") != kind {
		r.fail("/data/type is not %s", kind)
	}
	r.Payment = []string{kind + "/" + r.text("/data/id")}
	phase, known := lemonsqueezyPhases[r.text(lemonsqueezyAt+"status")]
	if !known {
		r.fail("%sstatus is none that is known", lemonsqueezyAt)
	}
	if r.Type == "subscription_payment_failed" && phase == order.StatusProcessing {
		phase = order.StatusFailed
	}
	cur := r.currency(lemonsqueezyAt + "currency")
	total := r.minor(lemonsqueezyAt+"total", cur)
	captured, refunded := order.Amount{Currency: cur}, order.Amount{Currency: cur}
	if phase == order.StatusAuthorized {
		captured, refunded = total, lemonsqueezyRefunded(r, total)
	}
	r.own(total)
	r.phase(phase, r.order())
	r.add(order.Fact{Kind: order.KindCaptured, Seq: r.order()}, captured)
	r.add(order.Fact{Kind: order.KindRefunded, Seq: r.order()}, refunded)
}

// lemonsqueezyRefunded: older payloads have no refunded_amount; then there were
// only refunds of everything.
func lemonsqueezyRefunded(r *reader, total order.Amount) order.Amount {
	status := r.at(lemonsqueezyAt + "status").Str
	switch {
	case !r.at(lemonsqueezyAt + "refunded_amount").absent():
		return r.minor(lemonsqueezyAt+"refunded_amount", total.Currency)
	case status == "refunded" || r.at(lemonsqueezyAt+"refunded").isTrue():
		return total
	case status == "partial_refund":
		r.fail("%srefunded_amount is missing", lemonsqueezyAt)
	}
	return order.Amount{Currency: total.Currency}
}

// sampleLemonSqueezy makes an event. Ids of payments are given without their
// kind, or with it.
func sampleLemonSqueezy(r SampleRequest) ([]byte, error) {
	if lemonsqueezy.rows.find(r.Type) == nil {
		return nil, unknownSample("lemonsqueezy", r.Type, lemonsqueezy.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := hundredths.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	kind, at := "subscription-invoices", r.At.Format("2006-01-02T15:04:05.000000Z")
	attributes := fields{
		"store_id": 1, "customer_id": 1, "currency": r.Amount.Currency, "status": "paid", "refunded": false, "refunded_at": nil,
		"subtotal": n, "discount_total": 0, "tax": 0, "total": n, "refunded_amount": 0,
		"created_at": at, "updated_at": at, "test_mode": r.Mode != Live,
	}
	if len(r.Source.MerchantAccounts) > 0 {
		attributes["store_id"] = r.Source.MerchantAccounts[0]
	}
	meta := fields{"test_mode": r.Mode != Live, "event_name": r.Type}
	switch r.Type {
	case "order_created", "order_refunded":
		kind = "orders"
		attributes["identifier"], attributes["order_number"] = derive(32, "identifier", r.Reference, r.Payment), 1
	default:
		attributes["subscription_id"], attributes["billing_reason"] = 1, "renewal"
	}
	if r.Reference != "" {
		meta["custom_data"] = fields{"order_id": r.Reference}
	}
	switch r.Type {
	case "order_refunded", "subscription_payment_refunded":
		attributes["status"], attributes["refunded"], attributes["refunded_at"], attributes["refunded_amount"] = "refunded", true, at, n
	case "subscription_payment_failed":
		attributes["status"] = "pending"
	}
	data := fields{"type": kind, "id": lemonsqueezySampleID(r, kind), "attributes": attributes}
	return render(fields{"meta": meta, "data": data}, r.Set, same)
}

func lemonsqueezySampleID(r SampleRequest, kind string) string {
	if id, found := strings.CutPrefix(r.Payment, kind+"/"); found {
		return id
	}
	return r.paymentID("", 8)
}
