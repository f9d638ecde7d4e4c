package gateway

import (
	"fmt"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Conekta maps the events of Conekta. Its rules:
//
//   - A payment is an order (ord_…), also known by its charges: an order may be paid
//     by several. The merchant's reference is order_id or external_ref in the
//     order's metadata; charges have none.
//   - Events of orders carry the whole order: captured, refunded and phase are set
//     by the latest, in the order of the event's created_at. A charge that is paid,
//     declined, reversed (cash) or refunded in full comes by its id too.
//   - A chargeback is known by its charge. An order that is charged_back has lost
//     it; a chargeback that is won gives it back. Events of chargebacks may tell no
//     amount: then all of the payment is at stake, in the currency XXX, which flags
//     the order.
//   - livemode must be a JSON boolean that fits the source's mode.
var Conekta = &Gateway{
	Name:     "conekta",
	Title:    "Conekta",
	Docs:     "https://developers.conekta.com/docs/webhooks",
	Scheme:   "conekta",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "Make a key pair with POST /webhook_keys of Conekta's API; the secret is the public key that it returns, in PEM. Live and test have their own.",
		EventID:  "`id`, the same over all tries; `webhook_logs` changes with each.",
		Retries:  "Conekta tries again until it is answered with 200; how often could not be confirmed.",
		Ordering: "None is promised; `created_at` orders them.",
		Notes: "Put the order's reference into `metadata.order_id` of the order. What could not be confirmed against a genuine delivery: that DIGEST is base64 of an RSA signature with PKCS #1 v1.5, " +
			"what the events `charge.chargeback.*` carry, whether `order.charged_back` comes when a chargeback begins or when it is lost (it counts as lost), and how long Conekta waits for an answer (10 s is assumed).",
	},
	Covers:      Coverage{Of: "body"},
	Deadline:    10 * time.Second, // not documented
	KeepHeaders: []string{"Content-Type", "Digest", "User-Agent"},
	Options:     []Option{optionSecrets, optionSigningKeys},
	Parse:       conekta.parse,
	Types:       conekta.rows.types,
	Sample:      sampleConekta,
	Example: func(seed string) Source {
		public, private := exampleRSA("conekta", seed)
		return Source{Gateway: "conekta", Mode: Test, Secrets: []string{public}, SigningKeys: []string{private}}
	},
}

// The types: https://developers.conekta.com/docs/order and /charge
var conekta = layout{
	typ:   "/type",
	at:    func(r *reader) time.Time { return r.seconds("/created_at") },
	made:  func(r *reader) string { return r.first("/id") },
	units: hundredths,
	rows: eventRows{
		{"order.created", "an order was made", order.StrengthPayment, conektaOrder},
		{"order.pending_payment", "an order waits for its payment", order.StrengthPayment, conektaOrder},
		{"order.pre_authorized", "money is authorised", order.StrengthPayment, conektaOrder},
		{"order.paid", "an order was paid", order.StrengthPayment, conektaOrder},
		{"order.declined", "the payment was declined", order.StrengthPayment, conektaOrder},
		{"order.expired", "an order was not paid in time", order.StrengthPayment, conektaOrder},
		{"order.canceled", "an order was canceled", order.StrengthPayment, conektaOrder},
		{"order.voided", "an authorisation was given up", order.StrengthPayment, conektaOrder},
		{"order.updated", "an order changed", order.StrengthPayment, conektaOrder},
		{"order.partially_refunded", "a part of an order was refunded", order.StrengthModification, conektaOrder},
		{"order.refunded", "an order was refunded in full", order.StrengthModification, conektaOrder},
		{"order.charged_back", "an order was charged back", order.StrengthModification, conektaOrder},
		{"charge.paid", "a charge was paid", order.StrengthModification, conektaCharge(order.KindCaptured, order.StatusOK)},
		{"charge.declined", "a charge was declined", order.StrengthModification, conektaCharge(order.KindCaptured, order.StatusDenied)},
		{"charge.reversed", "a payment in cash was taken back", order.StrengthModification, conektaCharge(order.KindCaptured, order.StatusFailed)},
		{"charge.refunded", "a charge was refunded in full", order.StrengthModification, conektaCharge(order.KindRefunded, order.StatusOK)},
		{"charge.chargeback.created", "the shopper disputes a charge", order.StrengthModification, conektaChargeback(order.StatusOpen)},
		{"charge.chargeback.updated", "a chargeback changed", order.StrengthModification, conektaChargeback(order.StatusOpen)},
		{"charge.chargeback.under_review", "a chargeback is looked at", order.StrengthModification, conektaChargeback(order.StatusOpen)},
		{"charge.chargeback.won", "a chargeback was won", order.StrengthModification, conektaChargeback(order.StatusWon)},
		{"charge.chargeback.lost", "a chargeback was lost", order.StrengthModification, conektaChargeback(order.StatusLost)},
	},
	misfit: func(r *reader) order.Misfit {
		live := r.at("/livemode")
		if r.source.Mode == Live && !live.isTrue() || r.source.Mode != Live && !live.isFalse() {
			return order.MisfitMode
		}
		return ""
	},
}

const conektaAt = "/data/object/"

// conektaPhases are the values of an order's payment_status; an order that was just
// made has none.
var conektaPhases = map[string]order.Status{
	"": order.StatusProcessing, "pending_payment": order.StatusProcessing, "pre_authorized": order.StatusAuthorized,
	"paid": order.StatusAuthorized, "partially_refunded": order.StatusAuthorized, "refunded": order.StatusAuthorized,
	"charged_back": order.StatusAuthorized, "declined": order.StatusFailed, "expired": order.StatusExpired,
	"canceled": order.StatusCanceled, "voided": order.StatusCanceled,
}

func conektaOrder(r *reader) {
	r.is("order")
	id := r.text(conektaAt + "id")
	r.Payment = append([]string{id}, r.charges()...)
	r.Reference = r.first(conektaAt+"metadata/order_id", conektaAt+"metadata/external_ref")
	status := r.first(conektaAt + "payment_status")
	phase, known := conektaPhases[status]
	if !known {
		r.fail("%spayment_status is none that an order has", conektaAt)
	}
	cur := r.currency(conektaAt + "currency")
	amount := r.minor(conektaAt+"amount", cur)
	r.own(amount)
	r.phase(phase, r.order())
	captured, refunded := order.Amount{Currency: cur}, order.Amount{Currency: cur}
	switch {
	case status == "pre_authorized":
		r.add(order.Fact{Kind: order.KindAuthorized}, amount)
	case phase == order.StatusAuthorized:
		captured = amount
		if status != "paid" || !r.at(conektaAt+"amount_refunded").absent() {
			refunded = r.minor(conektaAt+"amount_refunded", cur)
		}
	}
	r.add(order.Fact{Kind: order.KindCaptured, Seq: r.order()}, captured)
	r.add(order.Fact{Kind: order.KindRefunded, Seq: r.order()}, refunded)
	if status == "charged_back" {
		r.add(order.Fact{Kind: order.KindDisputed, Ref: r.chargedBack(id), Status: order.StatusLost, Seq: r.order()}, amount)
	}
}

// is checks that the event carries the kind of object that its type is about.
func (r *reader) is(kind string) {
	if object := r.at(conektaAt + "object"); !object.absent() && object.Str != kind {
		r.fail("%sobject is not %s", conektaAt, kind)
	}
}

// charges are the ids of an order's charges, the newest ten.
func (r *reader) charges() []string {
	var ids []string
	for _, charge := range r.at(conektaAt + "charges/data").elements(maxListed) {
		id, err := charge.at("/id")
		if err != nil {
			r.fail("%scharges: %v", conektaAt, err)
		}
		if text, ok := id.text(); ok {
			ids = append(ids, text)
		}
	}
	return ids
}

// chargedBack is the charge of an order that was charged back, under which the
// events of the chargeback know it: not one that was declined before. The order's
// own id if none is listed.
func (r *reader) chargedBack(id string) string {
	ref := id
	for i := range r.at(conektaAt + "charges/data").elements(maxListed) {
		at := fmt.Sprintf("%scharges/data/%d/", conektaAt, i)
		charge := r.first(at + "id")
		switch status := r.first(at + "status"); {
		case charge == "":
		case status == "charged_back":
			return charge
		case status == "paid" || ref == id:
			ref = charge
		}
	}
	return ref
}

// conektaCharge: one charge of an order. Its refunds are listed with negative
// amounts, and only the event of a full one exists, so that its own amount counts.
func conektaCharge(kind order.Kind, status order.Status) func(*reader) {
	return func(r *reader) {
		r.is("charge")
		charge := r.text(conektaAt + "id")
		r.Payment = []string{r.first(conektaAt + "order_id"), charge}
		r.add(order.Fact{Kind: kind, Ref: charge, Status: status}, r.minor(conektaAt+"amount", r.currency(conektaAt+"currency")))
	}
}

// conektaChargeback: the object is the chargeback, which names its charge, or the
// charge itself.
func conektaChargeback(status order.Status) func(*reader) {
	return func(r *reader) {
		charge := r.first(conektaAt + "charge_id")
		if charge == "" {
			r.is("charge")
			charge = r.text(conektaAt + "id")
		}
		r.Payment = []string{r.first(conektaAt + "order_id"), charge}
		m := order.Amount{Minor: order.All, Currency: "XXX"}
		if !r.at(conektaAt + "amount").absent() {
			m = r.minor(conektaAt+"amount", r.currency(conektaAt+"currency"))
		}
		r.add(order.Fact{Kind: order.KindDisputed, Ref: charge, Status: status, Seq: r.order()}, m)
	}
}

// sampleConekta makes an event of an order with one charge.
func sampleConekta(r SampleRequest) ([]byte, error) {
	if conekta.rows.find(r.Type) == nil {
		return nil, unknownSample("conekta", r.Type, conekta.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := hundredths.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	live, id := r.Mode == Live, r.paymentID("ord_", 17)
	charge := fields{
		"object": "charge", "id": r.refID("", 24, id), "order_id": id, "amount": n, "currency": r.Amount.Currency, "livemode": live,
		"created_at": r.At.Unix(), "payment_method": fields{"type": "credit", "object": "card_payment"},
	}
	kind, status, _ := strings.Cut(r.Type, ".")
	object := charge
	if kind == "order" {
		switch status {
		case "created", "updated":
			status = "pending_payment"
		}
		refunded := int64(0)
		if strings.HasSuffix(status, "refunded") {
			refunded = n
		}
		charge["status"] = status
		metadata := fields{}
		if r.Reference != "" {
			metadata["order_id"] = r.Reference
		}
		object = fields{
			"object": "order", "id": id, "amount": n, "currency": r.Amount.Currency, "livemode": live, "payment_status": status,
			"amount_refunded": refunded, "metadata": metadata, "created_at": r.At.Unix(), "updated_at": r.At.Unix(),
			"charges": fields{"object": "list", "has_more": false, "total": 1, "data": []any{charge}},
		}
	} else {
		object["status"] = strings.TrimPrefix(status, "chargeback.")
	}
	event := r.ID
	if event == "" {
		event = strings.ToLower(derive(24, r.Type, id, r.Ref, r.Amount.Currency, r.At.String(), r.Mode))
	}
	return render(fields{
		"object": "event", "id": event, "type": r.Type, "created_at": r.At.Unix(), "livemode": live, "webhook_status": "pending",
		"webhook_logs": []any{}, "data": fields{"object": object, "previous_attributes": fields{}},
	}, r.Set, same)
}
