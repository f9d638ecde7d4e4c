package gateway

import (
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Wompi asks Wompi's API (Colombia) about the transactions that its events name.
// Its rules:
//
//   - An event signs the id, status and amount_in_cents of the transaction and its
//     timestamp, and neither reference nor currency: those of another order could
//     be put there. So it is believed only as a reason to ask
//     GET /v1/transactions/{id}, which tells all of them.
//   - Every answer is a snapshot of all that is known of the transaction. It has no
//     version; snapshots follow each other by when they were asked for.
//   - VOIDED undoes a card payment as a whole: nothing is captured any more.
//   - The merchant's reference is reference. Amounts are cents of COP.
//
// https://docs.wompi.co/en/docs/colombia/eventos/
var Wompi = &Gateway{
	Name:     "wompi",
	Title:    "Wompi (Colombia)",
	Docs:     "https://docs.wompi.co/en/docs/colombia/eventos/",
	Scheme:   "wompi",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Developers → Secrets for technical integration → Events (`prod_events_…`, `test_events_…`).",
		EventID:  "None: an event is a state of the transaction, as the API tells it.",
		Retries:  "Without a 200, three times: after 30 minutes, 3 hours and 24 hours.",
		Ordering: "None is promised. Answers of the API are ordered by when they were asked for.",
		Notes: "Refunds of other payments than cards, and chargebacks, are handled outside of the API and told by no event: enter them by hand. " +
			"Events of payouts to third parties are signed in another way and are refused.",
	},
	Covers: Coverage{Of: "fields", Fields: []string{"transaction.id", "transaction.status", "transaction.amount_in_cents", "timestamp"}},
	// Wompi gives no number. 10 s is what gateways that give one give most often.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Event-Checksum"},
	Options: append([]Option{
		optionSecrets,
		{"access_token", false, "a private key (`prv_…`) that the API is asked with. Default: none, transactions can be read by their id"},
	}, optionsAPI...),
	Fetch: &Fetch{
		Live: "https://production.wompi.co", Test: "https://sandbox.wompi.co", Always: true,
		Objects: wompiObjects, Call: wompiCall, Parse: parseWompi, Sample: wompiAnswer,
	},
	Types:  func(Source) []Type { return wompiNames() },
	Sample: sampleWompi,
	Example: func(seed string) Source {
		return Source{Gateway: "wompi", Mode: Test, Secrets: []string{"test_events_" + exampleSecret("wompi", seed)}}
	},
}

// wompiKinds: ids look like 1234-1610641025-49201.
var wompiKinds = map[string]*regexp.Regexp{"transaction": regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z_-]{0,63}$`)}

// wompiObjects reads data.transaction.id. The verifier saw to it that it is signed.
func wompiObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	id, err := doc.at("/data/transaction/id")
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	o := Object{Kind: "transaction", ID: id.Str}
	if !askable(o, wompiKinds) {
		return nil, parseError("no_event_id", "data.transaction.id is no id of a transaction")
	}
	return []Object{o}, nil
}

func wompiCall(s Source, o Object) (Call, error) {
	if !askable(o, wompiKinds) {
		return Call{}, errNoObject(o)
	}
	call := Call{Path: "/v1/transactions/" + escaped(o), Header: http.Header{"Accept": {"application/json"}}}
	if s.AccessToken != "" {
		call.Header.Set("Authorization", "Bearer "+s.AccessToken)
	}
	return call, nil
}

// wompiState is what a status says of a transaction.
// https://docs.wompi.co/en/docs/colombia/transacciones-estados/
type wompiState struct {
	status, meaning string
	phase           order.Status
	captured        bool
}

var wompiStates = []wompiState{
	{"PENDING", "the transaction is on its way", order.StatusProcessing, false},
	{"APPROVED", "the money was captured", order.StatusAuthorized, true},
	{"DECLINED", "the transaction was declined", order.StatusFailed, false},
	{"ERROR", "the transaction failed at the other side", order.StatusFailed, false},
	{"VOIDED", "a card payment was undone", order.StatusCanceled, false},
}

func wompiStateOf(status string) *wompiState {
	for i := range wompiStates {
		if wompiStates[i].status == status {
			return &wompiStates[i]
		}
	}
	return nil
}

func wompiNames() []Type {
	types := make([]Type, len(wompiStates))
	for i, t := range wompiStates {
		types[i] = Type{t.status, t.meaning}
	}
	return types
}

func parseWompi(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	data, err := doc.at("/data")
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if err := isAbout(o, data, "id"); err != nil {
		return nil, err
	}
	w := &draft{}
	top := w.members(data, "data", "id", "status", "amount_in_cents", "currency", "reference", "created_at")
	w.Type = unreadableType
	w.At = rfc3339(top.get("created_at"))
	id, _ := top.get("id").name()
	w.Payment = distinct([]string{id})
	w.Reference, _ = top.get("reference").name()
	w.Strength = order.StrengthPayment
	w.refer(s, doc)
	status, ok := top.get("status").kind()
	if !ok {
		w.fail("data.status is missing or no plain text")
		return w.done(), nil
	}
	w.Type = status
	state := wompiStateOf(status)
	switch {
	case w.broken():
	case state == nil:
		w.Ignored = UnknownType
	default:
		w.wompi(*state, w.minor(top.get("amount_in_cents"), top.get("currency"), "data.amount_in_cents"), updated(time.Time{}, a))
	}
	return w.done(), nil
}

// wompi sets every register of the payment that Wompi tells.
func (d *draft) wompi(state wompiState, amount order.Amount, seq int64) {
	captured := order.Amount{Currency: amount.Currency}
	if state.captured {
		captured = amount
	}
	d.phase(state.phase, seq)
	d.add(order.Fact{Kind: order.KindCaptured, Seq: seq}, captured)
	d.Own = &amount
}

// wompiSample is the transaction of a sample.
func wompiSample(r SampleRequest) (fields, SampleRequest, error) {
	if wompiStateOf(r.Type) == nil {
		return nil, r, unknownSample("wompi", r.Type, wompiNames())
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirs(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, r, err
	}
	if r.Payment == "" {
		r.Payment = digits(4, "shop", r.Mode) + "-" + digits(10, "payment", r.Reference, r.Mode) + "-" + digits(5, r.Reference)
	}
	t := fields{
		"id": r.Payment, "amount_in_cents": n, "reference": nil, "currency": r.Amount.Currency, "payment_method_type": "CARD", "status": r.Type,
		"created_at": r.At.Format("2006-01-02T15:04:05.000Z07:00"), "customer_email": "shopper@shop.example",
	}
	if r.Reference != "" {
		t["reference"] = r.Reference
	}
	return t, r, nil
}

// sampleWompi makes the event that leads to the state of the type.
func sampleWompi(r SampleRequest) ([]byte, error) {
	t, r, err := wompiSample(r)
	if err != nil {
		return nil, err
	}
	environment := "prod"
	if r.Mode == Test {
		environment = "test"
	}
	return render(fields{
		"event": "transaction.updated", "data": fields{"transaction": t}, "environment": environment,
		"timestamp": number(strconv.FormatInt(r.At.Unix(), 10)), "sent_at": r.At.Format(time.RFC3339),
	}, r.Set, same)
}

// wompiAnswer makes what the API answers about the transaction.
func wompiAnswer(r SampleRequest) (Object, []byte, error) {
	t, r, err := wompiSample(r)
	if err != nil {
		return Object{}, nil, err
	}
	answer, err := render(fields{"data": t, "meta": fields{}}, r.Set, same)
	return Object{"transaction", r.Payment}, answer, err
}
