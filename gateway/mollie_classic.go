package gateway

import (
	"net/url"
	"regexp"
	"time"

	"github.com/paidonce/paidonce/order"
)

// MollieClassic asks Mollie's API about the payments that its classic webhooks
// name: "id=tr_…", unsigned and without a word of what happened. Its rules:
//
//   - Refunds and chargebacks are told by the same id again, so every answer is a
//     snapshot of the whole payment, with its refunds and chargebacks embedded.
//   - Answers have no version: the call that began last is the newest.
//   - A chargeback has taken its money, and is lost unless it was reversed.
//   - The merchant's reference is metadata.order_id, or metadata itself if it is a
//     text.
//   - mode tells the mode.
//   - Only payments (tr_…) are asked about; the ids of Mollie's orders (ord_…)
//     and of others lead to nothing.
//   - It shares its payments with [Mollie], the signed form of these webhooks.
var MollieClassic = &Gateway{
	Name:     "mollie-classic",
	Title:    "Mollie (classic webhooks)",
	Docs:     "https://docs.mollie.com/reference/webhooks",
	Space:    "mollie",
	Evidence: Unsigned,
	Manual: Manual{
		EventID:  "None: the same `id` comes for every change of a payment. An event is a state of the payment, as the API tells it.",
		Retries:  "Without a 200 within 15 s, ten times within 26 hours.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "`access_token` is the API key (`live_…`, `test_…`) of the profile. Put your reference into the payment's `metadata` as `order_id`. " +
			"Not confirmed: which states of a refund `amountRefunded` already counts; single refunds count only when they are `refunded`.",
	},
	Covers: Coverage{Of: "nothing"},
	// https://docs.mollie.com/reference/webhooks
	Deadline:    15 * time.Second,
	ContentType: "application/x-www-form-urlencoded",
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options:     append([]Option{optionAccessToken}, optionsAPI...),
	CheckMore:   checkKey("live_", "test_"),
	Fetch: &Fetch{
		Live: "https://api.mollie.com", Test: "https://api.mollie.com", Always: true,
		Objects: mollieClassicObjects, Call: mollieCall, Parse: mollieAnswered, Sample: mollieAnswer,
	},
	Types:  func(Source) []Type { return mollieTypes },
	Sample: sampleMollieClassic,
	Example: func(seed string) Source {
		return Source{Gateway: "mollie-classic", Mode: Test, AccessToken: "test_" + exampleSecret("mollie-classic", seed)}
	},
}

var mollieKinds = map[string]*regexp.Regexp{
	"payment":      regexp.MustCompile(`^tr_[0-9A-Za-z]{1,60}$`),
	"payment-link": regexp.MustCompile(`^pl_[0-9A-Za-z]{1,60}$`),
}

// mollieOther is the form of ids of other things than payments.
var mollieOther = regexp.MustCompile(`^[a-z]{2,10}_[0-9A-Za-z]{1,60}$`)

func mollieClassicObjects(_ Source, d Delivery) ([]Object, error) {
	form, err := url.ParseQuery(string(d.Body))
	if err != nil || len(form["id"]) != 1 {
		return nil, parseError("no_event_id", "the form has no id, or several")
	}
	o := Object{"payment", form.Get("id")}
	switch {
	case askable(o, mollieKinds):
		return []Object{o}, nil
	case mollieOther.MatchString(o.ID):
		return nil, nil
	}
	return nil, parseError("no_event_id", "id is none of Mollie's")
}

func mollieCall(s Source, o Object) (Call, error) {
	switch {
	case !askable(o, mollieKinds):
		return Call{}, errNoObject(o)
	case o.Kind == "payment-link":
		return bearerCall(s, "/v2/payment-links/"+escaped(o)+"/payments?limit=50"), nil
	}
	return bearerCall(s, "/v2/payments/"+escaped(o)+"?embed=refunds,chargebacks"), nil
}

// mollieState is what a status says of a payment.
type mollieState struct {
	status, meaning string
	phase           order.Status
}

// https://docs.mollie.com/docs/status-changes-and-webhooks
var mollieStates = []mollieState{
	{"open", "the payment waits for the shopper", order.StatusProcessing},
	{"pending", "the payment is under way", order.StatusProcessing},
	{"authorized", "money is authorised and can be captured", order.StatusAuthorized},
	{"paid", "the money was captured; parts of it may have been refunded or charged back", order.StatusAuthorized},
	{"canceled", "the shopper canceled", order.StatusCanceled},
	{"expired", "the payment was not paid in time", order.StatusExpired},
	{"failed", "the payment failed", order.StatusFailed},
}

var mollieTypes = func() []Type {
	types := make([]Type, len(mollieStates))
	for i, t := range mollieStates {
		types[i] = Type{"payment." + t.status, t.meaning}
	}
	return types
}()

// sampleMollieClassic makes the form that leads to the payment.
func sampleMollieClassic(r SampleRequest) ([]byte, error) {
	m, err := newMollieSample("mollie-classic", r)
	if err != nil {
		return nil, err
	}
	return []byte("id=" + url.QueryEscape(m.payment)), nil
}
