package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// goCardlessAnswered reads {"payments": {…}} or {"refunds": {…}}.
func goCardlessAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	envelope := o.Kind + "s"
	top, err := doc.members([]string{envelope})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	v := top.get(envelope)
	if err := isAbout(o, v, "id"); err != nil {
		return nil, err
	}
	var d draft
	f := d.members(v, "the "+o.Kind, "id", "status", "amount", "amount_refunded", "currency", "metadata", "links")
	d.Type, d.Strength = unreadableType, order.StrengthPayment
	if o.Kind == "refund" {
		d.Strength = order.StrengthModification
	}
	if metadata := f.get("metadata"); metadata.IsObject() {
		d.Reference, _ = d.members(metadata, "metadata", "order_id").get("order_id").name()
	}
	d.refer(s, doc)
	status, ok := f.get("status").kind()
	if !ok {
		d.fail("status is missing or no plain text")
		return d.done(), nil
	}
	d.Type = envelope + "." + status
	states := goCardlessPayments
	if o.Kind == "refund" {
		states = goCardlessRefunds
	}
	state, known := goCardlessStateOf(states, status)
	switch {
	case !known:
		d.Ignored = UnknownType
	case o.Kind == "refund":
		goCardlessRefund(&d, f, o.ID, state, updated(time.Time{}, a))
	default:
		goCardlessPayment(&d, f, o.ID, state, updated(time.Time{}, a))
	}
	return d.done(), nil
}

func goCardlessStateOf(states []goCardlessState, status string) (goCardlessState, bool) {
	for _, s := range states {
		if s.status == status {
			return s, true
		}
	}
	return goCardlessState{}, false
}

// goCardlessPayment sets every register of the payment.
func goCardlessPayment(d *draft, f object, id string, state goCardlessState, version int64) {
	d.Payment = []string{id}
	amount := d.minor(f.get("amount"), f.get("currency"), "amount")
	captured, refunded := order.Amount{Currency: amount.Currency}, order.Amount{Currency: amount.Currency}
	if state.captured {
		captured = amount
	}
	if v := f.get("amount_refunded"); !v.absent() {
		refunded = d.minor(v, f.get("currency"), "amount_refunded")
	}
	d.phase(state.phase, version)
	d.add(order.Fact{Kind: order.KindCaptured, Seq: version}, captured)
	d.add(order.Fact{Kind: order.KindRefunded, Seq: version}, refunded)
	dispute := order.Fact{Kind: order.KindDisputed, Ref: id, Status: order.StatusNone, Seq: version}
	if state.status == "charged_back" {
		dispute.Status = order.StatusLost
		d.add(dispute, amount)
	} else {
		d.Facts = append(d.Facts, dispute)
	}
	d.Own = &amount
}

// goCardlessRefund is one refund, by its id.
func goCardlessRefund(d *draft, f object, id string, state goCardlessState, version int64) {
	links := d.optional(f.get("links"), "links", "payment")
	payment := d.text(links.get("payment"), "links.payment")
	if payment != "" {
		d.Payment = []string{payment}
	}
	d.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: state.refund, Seq: version}, d.minor(f.get("amount"), f.get("currency"), "amount"))
}

// goCardlessSample is what a delivery and the API's answer have in common.
type goCardlessSample struct {
	SampleRequest
	kind, status string
	payment, ref string
	amount       int64
}

func newGoCardlessSample(r SampleRequest) (*goCardlessSample, error) {
	resource, status, _ := strings.Cut(r.Type, ".")
	states := map[string][]goCardlessState{"payments": goCardlessPayments, "refunds": goCardlessRefunds}[resource]
	if _, known := goCardlessStateOf(states, status); !known {
		return nil, unknownSample("gocardless", r.Type, goCardlessTypes)
	}
	r = r.withDefaults()
	amount, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	payment := r.paymentID("PM", 12)
	return &goCardlessSample{r, strings.TrimSuffix(resource, "s"), status, payment, r.refID("RF", 12, payment), amount}, nil
}

func (g *goCardlessSample) object() Object {
	if g.kind == "refund" {
		return Object{"refund", g.ref}
	}
	return Object{"payment", g.payment}
}

// sampleGoCardless makes a delivery of one event, whose action is the status.
func sampleGoCardless(r SampleRequest) ([]byte, error) {
	g, err := newGoCardlessSample(r)
	if err != nil {
		return nil, err
	}
	id := g.ID
	if id == "" {
		id = "EV" + derive(12, "event", g.payment, g.ref, r.Type, g.At.String())
	}
	return render(fields{
		"events": []any{fields{
			"id": id, "created_at": g.At.Format("2006-01-02T15:04:05.000Z"), "resource_type": g.kind + "s", "action": g.status,
			"links":   fields{g.kind: g.object().ID},
			"details": fields{"origin": "gocardless", "cause": g.kind + "_" + g.status, "description": "A sample."}, "metadata": fields{},
		}},
		"meta": fields{"webhook_id": "WB" + derive(12, "webhook", id)},
	}, r.Set, same)
}

// goCardlessAnswer makes what the API answers about the payment or refund.
func goCardlessAnswer(r SampleRequest) (Object, []byte, error) {
	g, err := newGoCardlessSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	metadata := fields{}
	if g.Reference != "" {
		metadata["order_id"] = g.Reference
	}
	o := fields{
		"id": g.object().ID, "created_at": g.At.Format("2006-01-02T15:04:05.000Z"), "amount": g.amount, "currency": g.Amount.Currency,
		"status": g.status, "metadata": metadata,
	}
	if g.kind == "refund" {
		o["links"] = fields{"payment": g.payment}
	} else {
		o["amount_refunded"] = 0
		o["links"] = fields{"mandate": "MD" + derive(12, "mandate", g.payment)}
	}
	body, err := render(fields{g.kind + "s": o}, r.Set, same)
	return g.object(), body, err
}
