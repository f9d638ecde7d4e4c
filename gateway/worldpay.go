package gateway

import (
	"time"

	"github.com/paidonce/paidonce/order"
)

// Worldpay maps the events of Access Worldpay. Its rules:
//
//   - A payment is known by transactionReference, which is the merchant's own name
//     of it and so the reference of the order too.
//   - sentForSettlement is the capture: the money leaves the shopper. settled tells
//     the same money again, and counts nothing.
//   - sentForRefund is the refund, refunded tells it again. A refund is known by
//     its reference; one without is known by its event, so that two never become
//     one, and cannot fail.
//   - A settlement that failed undoes the one of its reference. Without a reference
//     it may be any of them: then that much money is taken off besides.
//   - informationRequested opens a dispute, chargedBack loses it. No type is known
//     that gives one back, so that it stays so until a person looks.
//   - eventTimestamp has no zone, so that the event has no time; what happened to
//     one thing is ordered by what it is.
//
// How deliveries are signed could not be confirmed in full: a source needs
// unconfirmed: true.
//
// Types and fields: https://docs.worldpay.com/access/products/events/openapi
var Worldpay = &Gateway{
	Name:     "worldpay",
	Title:    "Access Worldpay",
	Docs:     "https://developer.worldpay.com/products/access/events/",
	Scheme:   "worldpay",
	Evidence: Unconfirmed,
	Manual: Manual{
		Secret:   "From your Implementation Manager, who also turns signing on: the shared secret of the key that `Event-Signature` names.",
		EventID:  "`eventId`.",
		Retries:  "Until it is acknowledged with 200; Worldpay's pages say no more that could be read. What is not acknowledged delays later events, or loses them.",
		Ordering: "None is promised.",
		Notes: "Not confirmed: **the encoding of the signature** (hexadecimal is taken), whether the secret is decoded first, the deadline, the zone of `eventTimestamp`, and that currencies without decimals are counted in hundredths too, as the page says (if wrong, it makes too little of them). " +
			"Try it in the sandbox before you set `unconfirmed: true`. Give every partial settlement and refund a `reference` of its own: " +
			"partial settlements without one count once, refunds without one cannot be told to have failed. `settlementFailed` and `informationRequested` are sent in certain cases only: ask your Implementation Manager to turn them on. Of disputes `informationRequested` and `chargedBack` are known, and nothing that ends one well: record that by hand.",
	},
	Covers: Coverage{Of: "body"},
	// Worldpay's pages name none that could be read.
	Deadline:             10 * time.Second,
	QuarantineUnreadable: true,
	KeepHeaders:          []string{"Content-Type", "User-Agent", "Event-Signature"},
	Options: []Option{
		optionSecrets,
		{"unconfirmed", false, "true: you have checked in the sandbox that deliveries verify"},
	},
	Parse:  worldpay.parse,
	Types:  worldpay.rows.types,
	Sample: sampleWorldpay,
	Example: func(seed string) Source {
		return Source{Gateway: "worldpay", Mode: Test, Secrets: []string{exampleSecret("worldpay", seed)}, Unconfirmed: true}
	},
}

var worldpay = layout{
	id:  "/eventId",
	typ: "/eventDetails/type",
	// "This is a whole number with an exponent of 2", it says of all currencies:
	// https://docs.worldpay.com/access/products/events/openapi/payment/chargedbackpayment
	units: hundredths,
	at:    func(r *reader) time.Time { return r.date("/eventTimestamp") }, // if it should have a zone one day
	rows: eventRows{
		{"sentForAuthorization", "the shopper's bank is asked", order.StrengthPayment, worldpayPhase(order.StatusProcessing)},
		{"authorized", "money is authorised and can be settled", order.StrengthPayment, worldpayAuthorized},
		{"sentForSettlement", "the money was captured", order.StrengthPayment, worldpayCaptured},
		{"settlementFailed", "a settlement failed: the money did not come", order.StrengthModification, worldpayFailed},
		{"refused", "the shopper's bank refused", order.StrengthPayment, worldpayPhase(order.StatusFailed)},
		{"error", "the payment went wrong", order.StrengthPayment, worldpayPhase(order.StatusFailed)},
		{"cancelled", "the payment was canceled before it was settled", order.StrengthPayment, worldpayPhase(order.StatusCanceled)},
		{"expired", "the payment was not settled in time", order.StrengthPayment, worldpayPhase(order.StatusExpired)},
		{"sentForRefund", "a refund was made", order.StrengthModification, worldpayRefund(order.StatusOK)},
		{"refundFailed", "a refund failed: the money came back", order.StrengthModification, worldpayRefund(order.StatusFailed)},
		{"informationRequested", "the shopper disputes the payment", order.StrengthModification, worldpayDispute(order.StatusOpen)},
		{"chargedBack", "the payment was charged back", order.StrengthModification, worldpayDispute(order.StatusLost)},
	},
	silent: []string{"settled", "refunded", "tokenCreated"},
}

// worldpayPayment is the payment, which is the reference too.
func worldpayPayment(r *reader) string {
	id := r.text("/eventDetails/transactionReference")
	r.Payment, r.Reference = []string{id}, id
	return id
}

func worldpayMoney(r *reader) order.Amount {
	return r.minor("/eventDetails/amount/value", r.currency("/eventDetails/amount/currencyCode"))
}

func worldpayPhase(status order.Status) func(*reader) {
	return func(r *reader) {
		worldpayPayment(r)
		r.phase(status, 0)
	}
}

func worldpayAuthorized(r *reader) {
	worldpayPayment(r)
	m := worldpayMoney(r)
	r.own(m)
	r.phase(order.StatusAuthorized, 0)
	r.add(order.Fact{Kind: order.KindAuthorized}, m)
}

// worldpayCaptured: settlements by their reference. Those without one are one:
// then less money is taken to be there.
func worldpayCaptured(r *reader) {
	ref := worldpayPayment(r)
	if own := r.first("/eventDetails/reference"); own != "" {
		ref = own
	}
	r.add(order.Fact{Kind: order.KindCaptured, Ref: ref, Status: order.StatusOK}, worldpayMoney(r))
}

// worldpayFailed: the settlement of the same reference. One without may have been
// made with a reference all the same, and its money must not stay counted.
func worldpayFailed(r *reader) {
	ref := worldpayPayment(r)
	m := worldpayMoney(r)
	own := r.first("/eventDetails/reference")
	if own != "" {
		ref = own
	}
	r.add(order.Fact{Kind: order.KindCaptured, Ref: ref, Status: order.StatusFailed}, m)
	if own == "" {
		r.add(order.Fact{Kind: order.KindRefunded, Ref: r.ID, Status: order.StatusOK, Forced: true}, m)
	}
}

func worldpayRefund(status order.Status) func(*reader) {
	return func(r *reader) {
		worldpayPayment(r)
		ref := r.first("/eventDetails/reference")
		switch {
		case ref != "":
		case status == order.StatusFailed:
			return // of which refund nobody knows
		default:
			ref = r.ID
		}
		r.add(order.Fact{Kind: order.KindRefunded, Ref: ref, Status: status}, worldpayMoney(r))
	}
}

func worldpayDispute(status order.Status) func(*reader) {
	return func(r *reader) {
		id := worldpayPayment(r)
		r.add(order.Fact{Kind: order.KindDisputed, Ref: id, Status: status}, worldpayMoney(r))
	}
}

// sampleWorldpay makes an event. Its payment is its reference, so that a payment
// that is asked for takes the reference's place.
func sampleWorldpay(r SampleRequest) ([]byte, error) {
	if worldpay.rows.find(r.Type) == nil {
		return nil, unknownSample("worldpay", r.Type, worldpay.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := hundredths.theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.Payment
	if payment == "" {
		payment = r.Reference
	}
	if payment == "" {
		payment = r.paymentID("", 16)
	}
	details := fields{
		"classification": "payment", "downstreamReference": derive(10, "downstream", payment), "transactionReference": payment, "type": r.Type,
		"date": r.At.Format(time.DateOnly), "amount": fields{"value": n, "currencyCode": r.Amount.Currency}, "_links": fields{"payment": fields{"href": ""}},
	}
	switch r.Type {
	case "sentForRefund", "refundFailed":
		details["reference"] = r.refID("", 10, payment)
	case "settlementFailed":
		if r.Ref != "" {
			details["reference"] = r.Ref
		}
	case "informationRequested", "chargedBack":
		details["classification"] = "chargeback"
	case "sentForSettlement":
		if r.Ref != "" {
			details["reference"] = r.Ref
		}
	}
	id := r.ID
	if id == "" {
		id = derive(32, r.Type, payment, r.Ref, r.Amount.Currency, r.At.String(), r.Mode)
	}
	return render(fields{"eventId": id, "eventTimestamp": r.At.Format("2006-01-02T15:04:05.000"), "eventDetails": details}, r.Set, same)
}
