package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

func xenditAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, err := readAnswer(o, a.Body)
	if err != nil {
		return nil, err
	}
	var d draft
	f := d.members(doc, "the "+o.Kind, "status", "amount", "paid_amount", "captured_amount", "capture_method", "currency", "updated",
		"external_id", "reference_id", "payment_request_id", "payment_id", "invoice_id")
	d.At = rfc3339(f.get("updated"))
	d.Strength = order.StrengthPayment
	switch o.Kind {
	case "invoice":
		d.Reference, _ = f.get("external_id").name()
	case "payment_request":
		d.Reference, _ = f.get("reference_id").name()
	default: // a refund's reference_id is its own
		d.Strength = order.StrengthModification
	}
	d.refer(s, doc)
	state, ok := d.state(o.Kind+".", xenditStates[o.Kind], f.get("status"))
	if !ok {
		return d.done(), nil
	}
	version := updated(d.At, a)
	amount := d.decimal(f.get("amount"), f.get("currency"), "amount")
	if o.Kind == "refund" {
		d.Payment = xenditRefunded(f)
		if len(d.Payment) == 0 {
			d.fail("the refund names no payment")
		}
		d.add(order.Fact{Kind: order.KindRefunded, Ref: o.ID, Status: state.item, Seq: version}, amount)
		return d.done(), nil
	}
	d.Payment = []string{o.ID}
	xenditPayment(&d, f, o, state, amount, version)
	return d.done(), nil
}

// xenditRefunded is the payment that a refund belongs to: the invoice if there is
// one, else the payment request, which older refunds name as payment_id. Other ids
// there are of what no payment is known by.
func xenditRefunded(f object) []string {
	if invoice := f.get("invoice_id").Str; invoice != "" {
		return []string{invoice}
	}
	requests := []string{f.get("payment_request_id").Str}
	if older := (Object{"payment_request", f.get("payment_id").Str}); askable(older, xenditKinds) {
		requests = append(requests, older.ID)
	}
	if requests = distinct(requests); len(requests) > 1 {
		return requests[:1]
	}
	return requests
}

// xenditPayment sets the registers of an invoice or payment request. What was
// refunded is told by refunds alone.
func xenditPayment(d *draft, f object, o Object, state askedState, amount order.Amount, version int64) {
	d.phase(state.phase, version)
	captured := order.Amount{Currency: amount.Currency}
	switch {
	case !state.captured && state.phase == order.StatusAuthorized:
		d.add(order.Fact{Kind: order.KindAuthorized}, amount)
	case state.captured:
		captured = xenditCaptured(d, f, o, amount)
	}
	d.add(order.Fact{Kind: order.KindCaptured, Seq: version}, captured)
	d.Own = &amount
}

func xenditCaptured(d *draft, f object, o Object, amount order.Amount) order.Amount {
	told := f.get("captured_amount")
	if o.Kind == "invoice" {
		told = f.get("paid_amount")
	}
	switch {
	case !told.absent():
		return d.decimal(told, f.get("currency"), "what was paid")
	case f.get("capture_method").Str == "MANUAL":
		d.fail("a payment that is captured by hand does not say how much was captured")
	}
	return amount
}

// xenditSample is what a delivery and the API's answer have in common.
type xenditSample struct {
	SampleRequest
	object       Object
	status       string
	payment, ref string
	amount       any
}

func newXenditSample(r SampleRequest) (*xenditSample, error) {
	kind, status, _ := strings.Cut(r.Type, ".")
	if !knownType(xenditTypes, r.Type) {
		return nil, unknownSample("xendit", r.Type, xenditTypes)
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	x := &xenditSample{SampleRequest: r, status: status, payment: r.Payment, ref: r.Ref, amount: amount}
	switch {
	case x.payment != "":
	case kind == "payment_request":
		x.payment = "pr-" + strings.ToLower(derive(32, "payment request", r.Reference, r.Mode))
	default:
		x.payment = strings.ToLower(derive(24, "payment", r.Reference, r.Mode))
	}
	if x.ref == "" {
		x.ref = "rfd-" + strings.ToLower(derive(32, "refund", x.payment))
	}
	x.object = Object{kind, x.payment}
	if kind == "refund" {
		x.object.ID = x.ref
	}
	return x, nil
}

// sampleXendit makes the callback of an invoice, or the event of a newer API.
func sampleXendit(r SampleRequest) ([]byte, error) {
	x, err := newXenditSample(r)
	if err != nil {
		return nil, err
	}
	o := x.fields()
	if x.object.Kind == "invoice" {
		return render(o, r.Set, same)
	}
	event := map[string]string{"payment_request": "payment.succeeded", "refund": "refund.succeeded"}[x.object.Kind]
	if x.object.Kind == "payment_request" {
		o["payment_request_id"], o["id"] = x.payment, "py-"+strings.ToLower(derive(32, "py", x.payment))
	}
	return render(fields{"event": event, "business_id": "biz_example", "created": x.At.Format(time.RFC3339), "data": o},
		r.Set, func(path string) string { return "data." + path })
}

// xenditAnswer makes what the API answers about the object.
func xenditAnswer(r SampleRequest) (Object, []byte, error) {
	x, err := newXenditSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(x.fields(), r.Set, same)
	return x.object, body, err
}

func (x *xenditSample) fields() fields {
	at := x.At.Format("2006-01-02T15:04:05.000Z")
	o := fields{"id": x.object.ID, "status": x.status, "amount": x.amount, "currency": x.Amount.Currency, "created": at, "updated": at}
	reference := any(nil)
	if x.Reference != "" {
		reference = x.Reference
	}
	switch x.object.Kind {
	case "invoice":
		o["external_id"], o["payment_method"] = reference, "EWALLET"
		if s, _ := xenditStates["invoice"].find(x.status); s.captured {
			o["paid_amount"], o["paid_at"] = x.amount, at
		}
	case "payment_request":
		o["reference_id"], o["capture_method"], o["country"] = reference, "AUTOMATIC", "ID"
	default:
		o["reference_id"], o["channel_code"] = "refund-1", "GCASH"
		if strings.HasPrefix(x.payment, "pr-") {
			o["payment_request_id"] = x.payment
		} else {
			o["invoice_id"] = x.payment
		}
	}
	return o
}
