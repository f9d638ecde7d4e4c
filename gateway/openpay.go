package gateway

import (
	"regexp"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Openpay asks Openpay's API about the charges that its webhooks name; they are
// not signed. Its rules:
//
//   - Of a body only transaction.id and customer_id are read. A charge of a
//     customer is asked about at that customer's address, any other at the
//     merchant's.
//   - A charge is a snapshot without a version: the call that began last is the
//     newest. Refunds come by their ids, as far as the answer names them: one that
//     an earlier answer named stays.
//   - A charge that is in_progress may be an authorisation or wait for cash; it is
//     not told which, and counts as neither.
//   - chargeback_adjustment is not explained by Openpay; the money stays at stake.
//   - The merchant's reference is order_id.
//   - The first webhook of an endpoint carries a verification_code, which a person
//     enters in the dashboard: it is answered and logged.
var Openpay = &Gateway{
	Name:     "openpay",
	Title:    "Openpay",
	Docs:     "https://www.openpay.mx/docs/webhooks.html",
	Evidence: Unsigned,
	Manual: Manual{
		EventID:  "None. An event is a state of the charge, as the API tells it.",
		Retries:  "Until an answer of success; how often is not documented.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "`access_token` is the private key (`sk_…`), `client_id` the merchant's id (`m…`). The verification code of a new webhook is in the log. " +
			"Set a user and password for the webhook in the dashboard and as `basic`, to keep strangers from making us ask. " +
			"In Colombia and Peru set `api_url` (`https://api.openpay.co`, `https://api.openpay.pe`). " +
			"Not confirmed: what `amount` says of an authorisation that was captured in part (it counts as captured), whether an answer names more than the last of several partial refunds (each that was ever named counts), and what `chargeback_adjustment` means.",
	},
	Covers: Coverage{Of: "nothing"},
	// Not documented; as short as that of others.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options: append([]Option{
		optionAccessToken,
		{"client_id", true, "the merchant's id (`m…`), which stands in the addresses of the API"},
		{"basic", false, "`user:password` that the webhook is configured with; deliveries must then carry them"},
	}, optionsAPI...),
	CheckMore: func(c *Checker) {
		if s := c.s.ClientID; s != "" && !openpayID.MatchString(s) {
			c.add("client_id", "is no merchant's id: they look like mzdtln0bmtms6o3kck8f")
		}
	},
	Probe: openpayProbe,
	Fetch: &Fetch{
		Live: "https://api.openpay.mx", Test: "https://sandbox-api.openpay.mx", Always: true,
		Objects: openpayObjects, Call: openpayCall, Parse: openpayAnswered, Sample: openpayAnswer,
	},
	Types:  func(Source) []Type { return openpayStates.types("charge.") },
	Sample: sampleOpenpay,
	Example: func(seed string) Source {
		return Source{
			Gateway: "openpay", Mode: Test, AccessToken: "sk_" + exampleSecret("openpay", seed),
			ClientID: "m" + strings.ToLower(derive(19, "openpay merchant", seed)),
		}
	},
}

// openpayID is the form of all ids.
var openpayID = regexp.MustCompile(`^[0-9a-z]{10,40}$`)

// openpayKinds: a charge of a customer is named customer.charge.
var openpayKinds = map[string]*regexp.Regexp{
	"charge":          openpayID,
	"customer-charge": regexp.MustCompile(`^[0-9a-z]{10,40}\.[0-9a-z]{10,40}$`),
}

// openpayStates: https://www.openpay.mx/en/docs/api/ (TransactionStatus)
var openpayStates = askedStates{
	{status: "in_progress", meaning: "the charge is under way, or authorised", phase: order.StatusProcessing, dispute: order.StatusNone},
	{status: "charge_pending", meaning: "the charge waits for the shopper", phase: order.StatusProcessing, dispute: order.StatusNone},
	{status: "completed", meaning: "the money was captured; parts of it may have been refunded", phase: order.StatusAuthorized, captured: true, dispute: order.StatusNone},
	{status: "refunded", meaning: "all of it was refunded", phase: order.StatusAuthorized, captured: true, dispute: order.StatusNone},
	{status: "chargeback_pending", meaning: "the shopper disputes the charge", phase: order.StatusAuthorized, captured: true, dispute: order.StatusOpen},
	{status: "chargeback_adjustment", meaning: "a dispute was adjusted", phase: order.StatusAuthorized, captured: true, dispute: order.StatusOpen},
	{status: "chargeback_accepted", meaning: "the dispute was lost", phase: order.StatusAuthorized, captured: true, dispute: order.StatusLost},
	{status: "failed", meaning: "the charge failed", phase: order.StatusFailed, dispute: order.StatusNone},
	{status: "cancelled", meaning: "the charge was canceled, or not paid in time", phase: order.StatusCanceled, dispute: order.StatusNone},
	{status: "expired", meaning: "the charge was not paid in time", phase: order.StatusExpired, dispute: order.StatusNone},
}

// openpayRefunds are the statuses of refunds.
var openpayRefunds = map[string]order.Status{
	"completed": order.StatusOK, "in_progress": order.StatusPending, "failed": order.StatusFailed, "cancelled": order.StatusFailed,
}

var openpayCode = regexp.MustCompile(`^[0-9A-Za-z]{4,32}$`)

// openpayProbe answers the notification that carries a verification code.
func openpayProbe(_ Source, d Delivery) (Probe, bool) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return Probe{}, false
	}
	top, err := doc.members([]string{"type", "verification_code"})
	if err != nil || top.get("type").Str != "verification" || !openpayCode.MatchString(top.get("verification_code").Str) {
		return Probe{}, false
	}
	return Probe{Note: "Openpay verifies the webhook: enter the code " + top.get("verification_code").Str + " in its dashboard"}, true
}

func openpayObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"transaction"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if top.get("transaction").absent() {
		return nil, nil // a verification, a report, a payout of ours
	}
	t, err := top.get("transaction").members([]string{"id", "customer_id", "transaction_type"})
	if err != nil {
		return nil, parseError("shape", "transaction %v", err)
	}
	if kind := t.get("transaction_type"); !kind.absent() && kind.Str != "charge" {
		return nil, nil // a payout, a fee, a transfer
	}
	o := Object{"charge", t.get("id").Str}
	if customer := t.get("customer_id"); !customer.absent() {
		o = Object{"customer-charge", customer.Str + "." + o.ID}
	}
	if !askable(o, openpayKinds) {
		return nil, parseError("no_event_id", "transaction.id or customer_id is none of Openpay's")
	}
	return []Object{o}, nil
}

func openpayCall(s Source, o Object) (Call, error) {
	if !askable(o, openpayKinds) || !openpayID.MatchString(s.ClientID) {
		return Call{}, errNoObject(o)
	}
	path := "/v1/" + s.ClientID
	customer, charge, ok := strings.Cut(o.ID, ".")
	if !ok {
		return basicCall(s, path+"/charges/"+escaped(o)), nil
	}
	return basicCall(s, path+"/customers/"+customer+"/charges/"+charge), nil
}

func openpayAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	charge := o
	if _, id, ok := strings.Cut(o.ID, "."); ok {
		charge.ID = id
	}
	doc, err := readAnswer(charge, a.Body)
	if err != nil {
		return nil, err
	}
	var d draft
	f := d.members(doc, "the charge", "status", "amount", "currency", "order_id", "refund", "refunds")
	d.Payment, d.Strength = []string{charge.ID}, order.StrengthPayment
	d.Reference, _ = f.get("order_id").name()
	d.refer(s, doc)
	state, ok := d.state("charge.", openpayStates, f.get("status"))
	if !ok {
		return d.done(), nil
	}
	r := registers{phase: state.phase, captured: state.captured, dispute: state.dispute}
	r.amount = d.decimal(f.get("amount"), f.get("currency"), "amount")
	if state.status == "refunded" {
		r.refunded = r.amount.Minor
	}
	version := updated(time.Time{}, a)
	d.snapshot(charge.ID, r, version)
	list := d.list(f.get("refunds"), "refunds", maxRefunds)
	if one := f.get("refund"); !one.absent() {
		list = append(list, one)
	}
	for i, v := range list {
		o := d.members(v, "a refund", "id", "status", "amount")
		status, known := openpayRefunds[strings.ToLower(o.get("status").Str)]
		if !known {
			d.fail("the status of refund %d is none that a refund has", i)
		}
		d.add(order.Fact{Kind: order.KindRefunded, Ref: d.text(o.get("id"), "the id of a refund"), Status: status, Seq: version},
			d.decimal(o.get("amount"), f.get("currency"), "the amount of a refund"))
	}
	return d.done(), nil
}

// openpayCharge is the charge of a sample.
func openpayCharge(r SampleRequest) (Object, fields, error) {
	status := strings.TrimPrefix(r.Type, "charge.")
	if !knownType(openpayStates.types("charge."), r.Type) {
		return Object{}, nil, unknownSample("openpay", r.Type, openpayStates.types("charge."))
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return Object{}, nil, err
	}
	id := r.Payment
	if id == "" {
		id = "tr" + strings.ToLower(derive(18, "payment", r.Reference, r.Mode))
	}
	o := fields{
		"id": id, "authorization": "801585", "operation_type": "in", "method": "card", "transaction_type": "charge", "status": status,
		"conciliated": false, "creation_date": r.At.Format(time.RFC3339), "operation_date": r.At.Format(time.RFC3339),
		"description": "An order", "error_message": nil, "order_id": nil, "amount": amount, "currency": r.Amount.Currency,
	}
	if r.Reference != "" {
		o["order_id"] = r.Reference
	}
	if status == "refunded" {
		ref := r.Ref
		if ref == "" {
			ref = "tr" + strings.ToLower(derive(18, "refund", id))
		}
		o["refund"] = fields{"id": ref, "transaction_type": "refund", "status": "completed", "amount": amount, "currency": r.Amount.Currency}
	}
	return Object{"charge", id}, o, nil
}

// sampleOpenpay makes the webhook about the charge.
func sampleOpenpay(r SampleRequest) ([]byte, error) {
	_, charge, err := openpayCharge(r)
	if err != nil {
		return nil, err
	}
	return render(fields{
		"type": "charge.succeeded", "event_date": r.withDefaults().At.Format(time.RFC3339), "transaction": charge,
	}, r.Set, func(path string) string { return "transaction." + path })
}

// openpayAnswer makes what the API answers about the charge.
func openpayAnswer(r SampleRequest) (Object, []byte, error) {
	o, charge, err := openpayCharge(r)
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(charge, r.Set, same)
	return o, body, err
}
