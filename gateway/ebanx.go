package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// EBANX asks EBANX's API about the payments that its notifications name. Its rules:
//
//   - A notification is a form with the hashes of payments, signed with RSA over
//     SHA-1. SHA-1 is broken, so the signature only keeps strangers out: what a
//     notification says besides hashes is not read.
//   - A payment is asked about by POST /ws/query. It has no version, only a local
//     time without a zone: the call that began last is the newest.
//   - The amount is amount_ext in currency_ext, the merchant's own currency.
//   - Refunds come one by one, by their ids; nothing tells a total.
//   - How the API tells of chargebacks is known from clients of others: chargeback
//     is an object or a list of some. A payment that has one lost all of its money.
//     What a chargeback_credit brought back is not told, so with one all stays at
//     stake until a person looks.
//   - The merchant's reference is merchant_payment_code.
var EBANX = &Gateway{
	Name:     "ebanx",
	Title:    "EBANX",
	Docs:     "https://docs.ebanx.com/docs/payments/guides/features/payment-notifications",
	Scheme:   "ebanx",
	Evidence: Usable,
	Manual: Manual{
		Secret:   "EBANX's public certificate for notifications, in PEM, from its documentation. `access_token` is the integration key of the same environment.",
		EventID:  "None. An event is a state of the payment, as the API tells it.",
		Retries:  "Not documented.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "Not confirmed: how the answer shows a chargeback. `chargeback` in it counts as lost, with `chargeback_credit` as open; a payment that says nothing of one stays paid. " +
			"SHA-1 is broken: the signature is a filter, and every payment is asked about. " +
			"To take `order_number` for the reference, set `reference: /payment/order_number`.",
	},
	Covers: Coverage{Of: "body"},
	// Not documented; as short as that of others.
	Deadline:    10 * time.Second,
	ContentType: "application/x-www-form-urlencoded",
	KeepHeaders: []string{
		"Content-Type", "User-Agent", "X-Signature-Content", "X-Signature-Fingerprint", "X-Signature-Type",
	},
	Options: append([]Option{optionSecrets, optionSigningKeys, optionAccessToken}, optionsAPI...),
	Fetch: &Fetch{
		Live: "https://api.ebanx.com", Test: "https://sandbox.ebanx.com", Always: true,
		Objects: ebanxObjects, Call: ebanxCall, Parse: ebanxAnswered, Sample: ebanxAnswer,
	},
	Types:  func(Source) []Type { return ebanxStates.types("payment.") },
	Sample: sampleEBANX,
	Example: func(seed string) Source {
		public, private := exampleRSA("ebanx", seed)
		return Source{
			Gateway: "ebanx", Mode: Test, Secrets: []string{public}, SigningKeys: []string{private}, AccessToken: exampleSecret("ebanx token", seed),
		}
	},
}

var ebanxKinds = map[string]*regexp.Regexp{"payment": regexp.MustCompile(`^[0-9a-f]{16,64}$`)}

// maxEBANX is the most hashes of one notification.
const maxEBANX = 200

// ebanxStates: https://docs.ebanx.com/docs/reports/transactions-reports/payments-report
// (API_STATUS)
var ebanxStates = askedStates{
	{status: "OP", meaning: "the payment waits for the shopper", phase: order.StatusProcessing},
	{status: "PE", meaning: "the payment is under way, or authorised if it can be captured", phase: order.StatusProcessing},
	{status: "CO", meaning: "the money was captured; parts of it may have been refunded", phase: order.StatusAuthorized, captured: true},
	{status: "CA", meaning: "the payment was canceled, or failed", phase: order.StatusCanceled},
}

// ebanxRefunds: https://docs.ebanx.com/docs/payments/guides/after-payments/refund-payment
var ebanxRefunds = map[string]order.Status{
	"RE": order.StatusPending, "PE": order.StatusPending, "CO": order.StatusOK, "CA": order.StatusFailed,
}

func ebanxObjects(_ Source, d Delivery) ([]Object, error) {
	form, err := url.ParseQuery(string(d.Body))
	if err != nil || len(form["hash_codes"]) != 1 {
		return nil, parseError("no_event_id", "the form has no hash_codes, or several")
	}
	hashes := strings.Split(form.Get("hash_codes"), ",")
	if len(hashes) > maxEBANX {
		return nil, parseError("shape", "hash_codes has more than %d hashes", maxEBANX)
	}
	var objects []Object
	for _, hash := range hashes {
		o := Object{"payment", strings.TrimSpace(hash)}
		if !askable(o, ebanxKinds) {
			return nil, parseError("no_event_id", "a hash of hash_codes is none of EBANX's")
		}
		if !slices.Contains(objects, o) {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// ebanxCall: https://docs.ebanx.com/docs/payments/guides/after-payments/retrieve-payment
func ebanxCall(s Source, o Object) (Call, error) {
	if !askable(o, ebanxKinds) {
		return Call{}, errNoObject(o)
	}
	body, err := json.Marshal(map[string]string{"integration_key": s.AccessToken, "hash": o.ID})
	if err != nil {
		return Call{}, err
	}
	return Call{
		Method: http.MethodPost, Path: "/ws/query", Body: body,
		Header: http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}},
	}, nil
}

// ebanxAnswered reads {"status":"SUCCESS","payment":{…}}.
func ebanxAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"payment"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if err := isAbout(o, top.get("payment"), "hash"); err != nil {
		return nil, err
	}
	var d draft
	f := d.members(top.get("payment"), "payment", "status", "amount_ext", "currency_ext", "merchant_payment_code", "refunds", "capture_available", "chargeback", "chargeback_credit")
	d.Payment, d.Strength = []string{o.ID}, order.StrengthPayment
	d.Reference, _ = f.get("merchant_payment_code").name()
	d.refer(s, doc)
	state, ok := d.state("payment.", ebanxStates, f.get("status"))
	if !ok {
		return d.done(), nil
	}
	if state.status == "PE" && f.get("capture_available").isTrue() {
		state.phase = order.StatusAuthorized
	}
	version := updated(time.Time{}, a)
	d.snapshot(o.ID, registers{
		phase: state.phase, captured: state.captured, untold: true, dispute: d.ebanxChargeback(f),
		amount: d.decimal(f.get("amount_ext"), f.get("currency_ext"), "payment.amount_ext"),
	}, version)
	for i, v := range d.list(f.get("refunds"), "payment.refunds", maxRefunds) {
		r := d.members(v, "a refund", "id", "status", "amount_ext")
		id, ok := r.get("id").name()
		status, known := ebanxRefunds[r.get("status").Str]
		if !ok || !known {
			d.fail("refund %d has no id, or a status that none has", i)
		}
		d.add(order.Fact{Kind: order.KindRefunded, Ref: id, Status: status, Seq: version},
			d.decimal(r.get("amount_ext"), f.get("currency_ext"), "the amount of a refund"))
	}
	return d.done(), nil
}

// ebanxChargeback is where the chargebacks of a payment stand.
func (d *draft) ebanxChargeback(f object) order.Status {
	all := d.list(f.get("chargeback"), "payment.chargeback", maxRefunds)
	if one := f.get("chargeback"); !one.absent() && !one.IsArray() {
		all = []value{one}
	}
	credited := 0
	for _, v := range all {
		if d.members(v, "a chargeback", "chargeback_credit").get("chargeback_credit").isTrue() {
			credited++
		}
	}
	switch {
	case len(all) == 0:
		return order.StatusNone
	case credited == len(all), f.get("chargeback_credit").isTrue():
		return order.StatusOpen
	}
	return order.StatusLost
}

// ebanxHash is the payment of a sample.
func ebanxHash(r SampleRequest) (string, error) {
	if !knownType(ebanxStates.types("payment."), r.Type) {
		return "", unknownSample("ebanx", r.Type, ebanxStates.types("payment."))
	}
	if r.Payment != "" {
		return r.Payment, nil
	}
	return strings.ToLower(derive(48, "payment", r.Reference, r.withDefaults().Mode)), nil
}

// sampleEBANX makes the notification about the payment.
func sampleEBANX(r SampleRequest) ([]byte, error) {
	hash, err := ebanxHash(r)
	if err != nil {
		return nil, err
	}
	return []byte("operation=payment_status_change&notification_type=update&hash_codes=" + url.QueryEscape(hash)), nil
}

// ebanxAnswer makes what the API answers about the payment.
func ebanxAnswer(r SampleRequest) (Object, []byte, error) {
	hash, err := ebanxHash(r)
	if err != nil {
		return Object{}, nil, err
	}
	r = r.withDefaults()
	amount, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return Object{}, nil, err
	}
	payment := fields{
		"hash": hash, "pin": digits(9, hash), "country": "br", "merchant_payment_code": nil, "order_number": nil, "payment_type_code": "visa",
		"status": strings.TrimPrefix(r.Type, "payment."), "status_date": r.At.Format(time.DateTime), "open_date": r.At.Format(time.DateTime),
		"amount_ext": amount, "currency_ext": r.Amount.Currency, "refunds": []any{},
	}
	if r.Reference != "" {
		payment["merchant_payment_code"] = r.Reference
	}
	body, err := render(fields{"payment": payment, "status": "SUCCESS"}, r.Set, same)
	return Object{"payment", hash}, body, err
}
