package gateway

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// PayULatam maps the confirmation pages of PayU Latam: forms that are posted once a
// transaction has come to its end. Its rules:
//
//   - Only merchant_id, reference_sale, value, currency and state_pol are signed, so
//     the event's id and facts come from these five alone. transaction_id is not
//     among them: a form that was seen once could be sent again under another one.
//   - So a payment is known by its merchant_id and reference_sale. The attempts of a
//     shopper share them, and are one payment: a refusal before or after the
//     approval does not matter. Two approvals under one reference cannot be told
//     apart from a repeated one.
//   - The merchant's reference is reference_sale.
//   - An approval gives the running total of the payment: the greatest value counts.
//   - test=1 is not signed. On a live source it is flagged and not counted, but
//     shoppers see the same signature on the response page, and the form with which
//     they pay has a test of its own that is not signed either: whoever can have a
//     test approved could post it as none. Whether PayU makes tests for a live
//     account could not be confirmed, so a live source must say that it does not
//     (unconfirmed: true). merchant_id must be ours, if the source says which.
//   - What is signed has no time.
//
// https://developers.payulatam.com/latam/en/docs/integrations/webcheckout-integration/confirmation-page.html
var PayULatam = &Gateway{
	Name:     "payu-latam",
	Title:    "PayU Latam",
	Docs:     "https://developers.payulatam.com/latam/en/docs/integrations/webcheckout-integration/confirmation-page.html",
	Scheme:   "payu-latam",
	Evidence: Solid,
	Manual: Manual{
		Secret: "PayU Module → Settings → Technical configuration: API key, and the algorithm of signatures that is set there. " +
			"Written `HMAC-SHA256:api_key:secret_key` (choose this one), `SHA256:api_key`, `SHA1:api_key` or `MD5:api_key`.",
		EventID:  "Made of the five fields that are signed. `transaction_id` is not one of them.",
		Retries:  "Without a 200, repeatedly; `attempts` counts them.",
		Ordering: "None is promised. An approval outranks the refusals of the same reference.",
		Notes: "Use a `reference_sale` once: a second payment under it cannot be told from a repetition. " +
			"Refunds, voids and chargebacks are told by no confirmation: enter them by hand. " +
			"PayU needs a certificate with an RSA key at the endpoint. " +
			"**`test` is not signed**: ask PayU whether your account carries out payment forms with `test=1`. If it does, a shopper could have a test approved and post it as a payment; " +
			"if it does not, set `unconfirmed: true`, which mode live needs. " +
			"Not confirmed: states 5 (expired), 7 (pending) and 104 (error), which grant nothing.",
	},
	Covers: Coverage{Of: "fields", Fields: payUCovered},
	// PayU gives no number. 10 s is what gateways that give one give most often.
	Deadline:    10 * time.Second,
	ContentType: formType,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options: []Option{
		optionSecrets, optionAccounts,
		{"unconfirmed", false, "true: PayU makes no test transactions for this account, as `test` is not signed; mode live needs it"},
	},
	CheckMore: func(c *Checker) {
		if c.s.Reference != "" {
			c.add("reference", "means nothing here: the reference is reference_sale, which is signed; take it out")
		}
		if c.s.Mode == Live && !c.s.Unconfirmed {
			c.add("unconfirmed", "is not true: PayU does not sign whether a transaction is a test (see paidonce gateways payu-latam); ask PayU, then set unconfirmed: true")
		}
	},
	Parse:  parsePayU,
	Types:  func(Source) []Type { return payUNames() },
	Sample: samplePayU,
	Example: func(seed string) Source {
		return Source{Gateway: "payu-latam", Mode: Test, Unconfirmed: true, Secrets: []string{
			"HMAC-SHA256:" + derive(26, "api key", seed) + ":" + exampleSecret("payu-latam", seed),
		}}
	},
}

var payUCovered = []string{"merchant_id", "reference_sale", "value", "currency", "state_pol"}

// payUStates are the values of state_pol.
var payUStates = []struct {
	state, meaning string
	phase          order.Status // "": the money was captured
}{
	{"4", "the transaction was approved", ""},
	{"5", "the transaction expired", order.StatusExpired},
	{"6", "the transaction was declined", order.StatusFailed},
	{"7", "the transaction is pending", order.StatusProcessing},
	{"104", "the transaction failed with an error", order.StatusFailed},
}

const payUType = "state_pol."

func payUNames() []Type {
	var types []Type
	for _, t := range payUStates {
		types = append(types, Type{payUType + t.state, t.meaning})
	}
	return types
}

func parsePayU(s Source, d Delivery) ([]order.Event, error) {
	form, fault := formFields(d.Body, append([]string{"test"}, payUCovered...)...)
	if fault != nil {
		return nil, fault
	}
	merchant, reference, state := form["merchant_id"], form["reference_sale"], form["state_pol"]
	if merchant == "" || reference == "" || state == "" {
		return nil, parseError("no_event_id", "merchant_id, reference_sale or state_pol is missing")
	}
	e := &draft{}
	e.ID = strings.Join([]string{merchant, reference, state, payUValue(form["value"]), form["currency"]}, ":")
	e.Type = payUType + state
	i := slices.IndexFunc(payUNames(), func(t Type) bool { return t.Name == e.Type })
	if i < 0 {
		e.Ignored = UnknownType
		return e.done(), nil
	}
	e.Payment = []string{merchant + ":" + reference}
	e.Reference, e.Strength = reference, order.StrengthPayment
	amount := e.decimal(textValue(form["value"]), textValue(form["currency"]), "value")
	if phase := payUStates[i].phase; phase != "" {
		e.phase(phase, 0)
	} else {
		e.add(order.Fact{Kind: order.KindCaptured}, amount)
	}
	e.Own = &amount
	switch {
	case e.broken():
	case s.Mode == Live && form["test"] == "1":
		misfit(&e.Event, order.MisfitMode)
	case len(s.MerchantAccounts) > 0 && !slices.Contains(s.MerchantAccounts, merchant):
		misfit(&e.Event, order.MisfitAccount)
	}
	return e.done(), nil
}

// payUValue writes a value in one way: 150, 150.0 and 150.00 are signed alike, and
// so one value could be sent as another text.
func payUValue(text string) string {
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// samplePayU makes the form of a confirmation. A path of what is set is a field.
func samplePayU(r SampleRequest) ([]byte, error) {
	state, ok := strings.CutPrefix(r.Type, payUType)
	if !ok || !slices.ContainsFunc(payUNames(), func(t Type) bool { return t.Name == r.Type }) {
		return nil, unknownSample("payu-latam", r.Type, payUNames())
	}
	r = r.withDefaults()
	amount, err := major(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(amount, ".") {
		amount += ".00" // PayU writes two decimals, whatever the currency
	}
	reference := r.Reference
	if reference == "" {
		reference = r.paymentID("sale-", 12)
	}
	test := "0"
	if r.Mode == Test {
		test = "1"
	}
	id := r.ID
	if id == "" {
		id = strings.ToLower(derive(32, "transaction", reference, r.Type, r.At.String()))
	}
	form := url.Values{
		"merchant_id": {"508029"}, "reference_sale": {reference}, "value": {amount}, "currency": {r.Amount.Currency}, "state_pol": {state},
		"transaction_id": {id}, "reference_pol": {digits(10, "pol", reference)}, "test": {test}, "attempts": {"1"},
		"transaction_date": {r.At.Format(time.DateTime)}, "payment_method_name": {"VISA"}, "response_message_pol": {payUMessages[state]},
	}
	for name, text := range r.Set {
		form.Set(name, text)
	}
	return []byte(form.Encode()), nil
}

// payUMessages are what a confirmation says of a state in words.
var payUMessages = map[string]string{
	"4": "APPROVED", "5": "EXPIRED_TRANSACTION", "6": "DECLINED", "7": "PENDING_TRANSACTION_CONFIRMATION", "104": "ERROR",
}
