package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// FlutterwaveV4 maps the webhooks of Flutterwave's API v4. Its rules:
//
//   - The event id is made of the type and the id and status of the object: whether
//     webhook_id stays over retries is not documented.
//   - charge.completed also tells of charges that failed; data.status decides.
//   - A payment is known by the charge's id (chg_…), and refunds and chargebacks
//     name it as charge_id.
//   - The merchant's reference is data.reference of a charge. Those of refunds and
//     chargebacks are not the order's.
//   - Amounts are major units, written as JSON numbers.
//   - Nothing tells live from test.
//
// How v4 signs could not be confirmed: integrators verify base64 of HMAC-SHA256
// over the body with the secret hash, and so does package signature; a stored copy
// of Flutterwave's own page compares the header with the secret hash itself, which
// is no signature and is refused. Refunds and chargebacks are known from API
// descriptions of others. So a source must say unconfirmed: true.
//
// https://developer.flutterwave.com/docs/webhooks
var FlutterwaveV4 = &Gateway{
	Name:     "flutterwave-v4",
	Title:    "Flutterwave (API v4)",
	Docs:     "https://developer.flutterwave.com/docs/webhooks",
	Scheme:   "flutterwave-v4",
	Evidence: Unconfirmed,
	Manual: Manual{
		Secret:   "Dashboard → Settings → Webhooks → Secret hash, which you choose yourself: use 32 random characters.",
		EventID:  "Made of the type and the id and status of the object: `webhook_id` is not documented to stay the same over retries.",
		Retries:  "If they are switched on in the dashboard: three times, half an hour apart (so documented for API v3).",
		Ordering: "None is promised, and objects carry no version: statuses rank.",
		Notes: "Check in the sandbox, before `unconfirmed: true`, that deliveries verify (header `flutterwave-signature`, base64 of HMAC-SHA256 of the body). " +
			"Not confirmed: the types and fields of refunds (`charge_id`, `amount_refunded`, `status`) and chargebacks. " +
			"Give every charge its own `reference` and let it be the order's, or point `reference` at `/data/meta/order_id`.",
	},
	Covers: Coverage{Of: "body"},
	// Flutterwave gives no number for v4; 60 s is the timeout that its v3 names, and
	// 10 s leaves it room.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "Flutterwave-Signature", "User-Agent"},
	Options: []Option{
		optionSecrets,
		{"unconfirmed", false, "true: a delivery was verified in the sandbox"},
	},
	Parse:  flutterV4.parse,
	Types:  flutterV4.rows.types,
	Sample: sampleFlutterV4,
	Example: func(seed string) Source {
		return Source{Gateway: "flutterwave-v4", Mode: Test, Secrets: []string{exampleSecret("flutterwave-v4", seed)}, Unconfirmed: true}
	},
}

var flutterV4 = &layout{
	typ: "/type",
	at:  func(r *reader) time.Time { return millis(r.at("/timestamp")) },
	made: func(r *reader) string {
		return madeID(r.Type, r.first("/data/id"), r.first("/data/status"))
	},
	rows: eventRows{
		{"charge.completed", "a charge came to its end; data.status says to which", order.StrengthPayment, (*reader).flutterCharge},
		{"charge.failed", "a charge failed", order.StrengthPayment, (*reader).flutterCharge},
		{"refund.completed", "a refund came to its end; data.status says to which", order.StrengthModification, (*reader).flutterRefund},
		{"refund.failed", "a refund failed: the money is still there", order.StrengthModification, (*reader).flutterRefund},
		{"chargeback.created", "the shopper disputes a charge", order.StrengthModification, (*reader).flutterChargeback},
		{"chargeback.updated", "a dispute changed", order.StrengthModification, (*reader).flutterChargeback},
	},
}

// flutterCharge: a charge, by its status.
func (r *reader) flutterCharge() {
	id := r.text("/data/id")
	r.Payment, r.Reference = []string{id}, r.first("/data/reference")
	amount := r.major("/data/amount", r.currency("/data/currency"))
	status := strings.ToLower(r.text("/data/status"))
	switch {
	case r.broken():
		return
	case status == "failed":
		r.phase(order.StatusFailed, 0)
	case r.Type == "charge.failed":
		r.fail("a charge that failed has another status")
		return
	case status == "succeeded":
		r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: order.StatusOK}, amount)
	case status == "pending" || status == "processing":
		r.phase(order.StatusProcessing, 0)
	case status == "voided" || status == "cancelled": // whatever it was before, its money is not here
		r.phase(order.StatusCanceled, 0)
		r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: order.StatusFailed}, amount)
	default:
		r.fail("/data/status is none that a charge has")
		return
	}
	r.own(amount)
}

// flutterRefunds are the statuses of refunds.
var flutterRefunds = map[string]order.Status{
	"succeeded": order.StatusOK, "successful": order.StatusOK, "completed": order.StatusOK,
	"new": order.StatusPending, "pending": order.StatusPending, "processing": order.StatusPending,
	"failed": order.StatusFailed,
}

// flutterRefund: one refund of a charge, by its id.
func (r *reader) flutterRefund() {
	r.Payment = distinct([]string{r.text("/data/charge_id")})
	at := "/data/amount_refunded"
	if r.at(at).absent() {
		at = "/data/amount"
	}
	amount := r.major(at, r.currency("/data/currency"))
	status, known := flutterRefunds[strings.ToLower(r.text("/data/status"))]
	if !known || r.Type == "refund.failed" && status != order.StatusFailed {
		r.fail("/data/status is none that such a refund has")
	}
	r.add(order.Fact{Kind: order.KindRefunded, Ref: r.text("/data/id"), Status: status}, amount)
}

// flutterChargeback: one chargeback of a charge. What is neither won nor lost is open.
func (r *reader) flutterChargeback() {
	r.Payment = distinct([]string{r.text("/data/charge_id")})
	f := order.Fact{Kind: order.KindDisputed, Ref: r.text("/data/id"), Status: order.StatusOpen, Seq: 1}
	switch strings.ToLower(r.text("/data/status")) {
	case "won":
		f.Status, f.Seq = order.StatusWon, 2
	case "lost", "accepted":
		f.Status, f.Seq = order.StatusLost, 2
	}
	r.add(f, r.major("/data/amount", r.currency("/data/currency")))
}

// sampleFlutterV4 makes the body of a webhook.
func sampleFlutterV4(r SampleRequest) ([]byte, error) {
	if flutterV4.rows.find(r.Type) == nil {
		return nil, unknownSample("flutterwave-v4", r.Type, flutterV4.rows.types(r.Source))
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("chg_", 10)
	kind, what, _ := strings.Cut(r.Type, ".")
	data := fields{
		"id": payment, "amount": amount, "currency": r.Amount.Currency, "meta": fields{},
		"created_datetime": r.At.Format("2006-01-02T15:04:05.000Z07:00"),
	}
	switch kind {
	case "charge":
		data["status"] = map[string]string{"completed": "succeeded", "failed": "failed"}[what]
		data["reference"] = r.Reference
		if r.Reference == "" {
			data["reference"] = nil
		}
		data["customer"] = fields{"id": "cus_" + derive(10, "customer", payment), "email": "shopper@shop.example"}
		data["payment_method"] = fields{"type": "card", "id": "pmd_" + derive(10, "method", payment)}
	case "refund":
		data["id"], data["charge_id"], data["amount_refunded"] = r.refID("rfd_", 10, payment), payment, amount
		data["status"] = map[string]string{"completed": "succeeded", "failed": "failed"}[what]
		delete(data, "amount")
	default:
		data["id"], data["charge_id"] = r.refID("chb_", 10, payment), payment
		data["status"] = map[string]string{"created": "initiated", "updated": "won"}[what]
	}
	id := r.ID
	if id == "" {
		id = "wbk_" + derive(20, r.Type, payment, r.At.String())
	}
	return render(fields{"webhook_id": id, "timestamp": r.At.UnixMilli(), "type": r.Type, "data": data}, r.Set, same)
}
