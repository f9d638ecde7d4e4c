package gateway

import (
	"regexp"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// FlutterwaveV3 asks Flutterwave's API (version 3) about the transactions that its
// webhooks name. Its rules:
//
//   - verif-hash is a fixed text that proves at most who sent the delivery, and
//     nothing of its body: of that only data.id is read.
//   - A transaction is asked about at /v3/transactions/{id}/verify, as Flutterwave
//     wants it. The answer is a snapshot without a version: the call that began
//     last is the newest.
//   - The amount is amount, what the merchant asked for; fees that the shopper paid
//     on top stand in charged_amount. If that is less than amount, it is what counts.
//   - The merchant's reference is tx_ref.
//   - How the API tells of refunds and chargebacks of a transaction could not be
//     confirmed; a transaction that says nothing of them stays paid.
var FlutterwaveV3 = &Gateway{
	Name:     "flutterwave-v3",
	Title:    "Flutterwave (v3)",
	Docs:     "https://developer.flutterwave.com/v3.0/docs/webhooks",
	Scheme:   "flutterwave-v3",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "Dashboard → Settings → Webhooks → Secret hash, a text that you make up. `access_token` is the secret key (`FLWSECK-…`, `FLWSECK_TEST-…`).",
		EventID:  "None that is proved. An event is a state of the transaction, as the API tells it.",
		Retries:  "If enabled in the dashboard: three times, every 30 minutes.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "**Refunds and chargebacks are not told**: how version 3 of the API shows them of a transaction could not be confirmed. " +
			"Anybody who has seen a delivery knows the secret hash, so what it says is never believed.",
	},
	Covers: Coverage{Of: "sender"},
	// https://developer.flutterwave.com/v3.0/docs/webhooks
	Deadline:    60 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options:     append([]Option{optionSecrets, optionAccessToken}, optionsAPI...),
	CheckMore:   checkKey("FLWSECK-", "FLWSECK_TEST-"),
	Fetch: &Fetch{
		Live: "https://api.flutterwave.com", Test: "https://api.flutterwave.com", Always: true,
		Objects: flutterwaveObjects, Call: flutterwaveCall, Parse: flutterwaveAnswered, Sample: flutterwaveAnswer,
	},
	Types:  func(Source) []Type { return flutterwaveStates.types("transaction.") },
	Sample: sampleFlutterwave,
	Example: func(seed string) Source {
		return Source{
			Gateway: "flutterwave-v3", Mode: Test, Secrets: []string{exampleSecret("flutterwave-v3", seed)},
			AccessToken: "FLWSECK_TEST-" + exampleSecret("flutterwave-v3 token", seed),
		}
	},
}

var flutterwaveKinds = map[string]*regexp.Regexp{"transaction": regexp.MustCompile(`^[0-9]{1,19}$`)}

// flutterwaveStates: https://developer.flutterwave.com/v3.0/docs/transaction-verification
var flutterwaveStates = askedStates{
	{status: "pending", meaning: "the transaction is under way", phase: order.StatusProcessing},
	{status: "successful", meaning: "the money was captured", phase: order.StatusAuthorized, captured: true},
	{status: "failed", meaning: "the transaction failed", phase: order.StatusFailed},
}

// flutterwaveObjects reads data.id of charges. Other events (of transfers, which
// are payouts) have ids of their own and lead to nothing.
func flutterwaveObjects(_ Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"event", "data"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if event := top.get("event"); !event.absent() && !strings.HasPrefix(event.Str, "charge.") {
		return nil, nil
	}
	data, err := top.get("data").members([]string{"id"})
	if err != nil {
		return nil, parseError("shape", "data %v", err)
	}
	id, _ := data.get("id").name()
	o := Object{"transaction", id}
	if !askable(o, flutterwaveKinds) {
		return nil, parseError("no_event_id", "data.id is none of a transaction")
	}
	return []Object{o}, nil
}

func flutterwaveCall(s Source, o Object) (Call, error) {
	if !askable(o, flutterwaveKinds) {
		return Call{}, errNoObject(o)
	}
	return bearerCall(s, "/v3/transactions/"+escaped(o)+"/verify"), nil
}

// flutterwaveAnswered reads {"status":"success","data":{…}}.
func flutterwaveAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"data"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if err := isAbout(o, top.get("data"), "id"); err != nil {
		return nil, err
	}
	var d draft
	f := d.members(top.get("data"), "data", "status", "amount", "charged_amount", "currency", "tx_ref")
	d.Payment, d.Strength = []string{o.ID}, order.StrengthPayment
	d.Reference, _ = f.get("tx_ref").name()
	d.refer(s, doc)
	state, ok := d.state("transaction.", flutterwaveStates, f.get("status"))
	if !ok {
		return d.done(), nil
	}
	own := d.decimal(f.get("amount"), f.get("currency"), "data.amount")
	r := registers{phase: state.phase, captured: state.captured, untold: true, amount: own}
	if v := f.get("charged_amount"); state.captured && !v.absent() {
		r.amount.Minor = min(own.Minor, d.decimal(v, f.get("currency"), "data.charged_amount").Minor)
	}
	d.snapshot(o.ID, r, updated(time.Time{}, a))
	d.Own = &own
	return d.done(), nil
}

// flutterwaveData is the transaction of a sample.
func flutterwaveData(r SampleRequest) (Object, fields, error) {
	if !knownType(flutterwaveStates.types("transaction."), r.Type) {
		return Object{}, nil, unknownSample("flutterwave-v3", r.Type, flutterwaveStates.types("transaction."))
	}
	r = r.withDefaults()
	amount, err := majorNumber(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return Object{}, nil, err
	}
	id := r.Payment
	if id == "" {
		id = digits(9, "payment", r.Reference, r.Mode)
	}
	o := fields{
		"id": idValue(id), "tx_ref": nil, "flw_ref": "FLW" + derive(12, "flw", id), "amount": amount, "currency": r.Amount.Currency,
		"charged_amount": amount, "app_fee": 0, "merchant_fee": 0, "status": strings.TrimPrefix(r.Type, "transaction."), "payment_type": "card",
		"created_at": r.At.Format("2006-01-02T15:04:05.000Z"),
	}
	if r.Reference != "" {
		o["tx_ref"] = r.Reference
	}
	return Object{"transaction", id}, o, nil
}

// sampleFlutterwave makes the webhook about the transaction.
func sampleFlutterwave(r SampleRequest) ([]byte, error) {
	_, data, err := flutterwaveData(r)
	if err != nil {
		return nil, err
	}
	return render(fields{"event": "charge.completed", "data": data}, r.Set, same)
}

// flutterwaveAnswer makes what the API answers about the transaction.
func flutterwaveAnswer(r SampleRequest) (Object, []byte, error) {
	o, data, err := flutterwaveData(r)
	if err != nil {
		return Object{}, nil, err
	}
	body, err := render(fields{"status": "success", "message": "Transaction fetched successfully", "data": data}, r.Set, same)
	return o, body, err
}
