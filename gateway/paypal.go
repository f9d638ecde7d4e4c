package gateway

import (
	"crypto/x509"
	_ "embed" // the example's keys
	"encoding/pem"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// PayPal maps webhook events of PayPal's REST API, of both versions of its
// payments. Its rules:
//
//   - A payment is an authorisation with the captures that took from it, else a
//     capture (of version 1: a sale). A checkout order is none: it may have several,
//     of several orders of the merchant. How ids are told apart: paypal_ids.go.
//   - CHECKOUT.ORDER.APPROVED says that the buyer agreed. No money has moved.
//   - A refund names its capture by the link "up" (version 1: sale_id). Refunds
//     come one by one and as the total that PayPal sends along. What PayPal took
//     by itself (REVERSED) is not a refund that the merchant gave.
//   - A dispute's money, if it is lost, comes as a reversal of its own too. It is
//     decided by dispute_outcome; while it names none, the dispute stays open.
//   - The reference is custom_id, else invoice_id (version 1: custom,
//     invoice_number).
//   - The signature is over a CRC-32 of the body, which is no cryptographic hash:
//     whoever gets hold of the headers of one genuine delivery can make another
//     body for them, of any id, which no deduplication bounds. So the signature
//     itself is not kept with what is stored, and a tolerance is offered.
//   - No byte of the body tells live from sandbox. webhook_id does, which is
//     signed; and a live source takes no certificate of the sandbox.
//
// Types: https://developer.paypal.com/api/rest/webhooks/event-names/, objects:
// https://github.com/paypal/paypal-rest-api-specifications (payments_payment_v2,
// customer_disputes_v1).
var PayPal = &Gateway{
	Name:     "paypal",
	Title:    "PayPal",
	Docs:     "https://developer.paypal.com/api/rest/webhooks/",
	Scheme:   "paypal",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "There is none. Developer Dashboard → Apps & Credentials → the app → Webhooks shows the **Webhook ID**, which is signed along; PayPal's certificate is fetched from its own host.",
		EventID:  "`id` (`WH-…`), the same over all tries; the transmission id is another one each time.",
		Retries:  "Up to 25 times over three days.",
		Ordering: "None is promised.",
		Calls: "Captures, refunds, voids and lists need `client_id` and `client_secret`; without them PayPal only calls us. " +
			"An authorisation is known as such once an event of version 2 has told of it; what version 1 made can be refunded at most, and PayPal may not know it there. " +
			"A refund is of one capture, the smallest that is large enough: what was refunded of which is not known, so PayPal may refuse one that another capture would have covered. " +
			"Refunds carry the call's id in `custom_id`. Captures have room for it in `invoice_id` only, which the payer reads too: it is `{order}/paidonce-{id}` instead of the authorisation's, and PayPal itself refuses a second one of it. " +
			"A capture is never the final one: what is left stays held until the authorisation runs out. " +
			"A call that is in doubt is looked up in the checkout order; where no event named that, a person must look.",
		Notes: "**The signature covers a CRC-32 of the body only**, so whoever gets hold of the `PAYPAL-*` headers of one genuine delivery can sign other bodies with them, with event ids of their own: " +
			"deduplication does not stop that. Treat these headers as secrets, also in the logs of your proxies; Paidonce keeps no `PAYPAL-TRANSMISSION-SIG` anywhere. " +
			"`tolerance` ends it after a while: `96h` if deliveries that PayPal repeats keep their time, which could not be confirmed. " +
			"Nor could it be whether PayPal itself looks at more than the checksum when it is asked (`verify_by: api`). " +
			"Events of the webhooks simulator cannot be verified with `verify_by: api`. " +
			"Subscribe to `PAYMENT.*` and `CUSTOMER.DISPUTE.*`. " +
			"All payments of a subscription (`PAYMENT.SALE.*`) carry its one `custom_id`, so that renewals add up on one order, which is flagged as overpaid. " +
			"Lists of events go back 30 days. An event may stand there with its object as it is by now: if that says more than the webhook did, it is flagged as `id_reused` and counts once all the same. " +
			"Not confirmed: the deadline, which object `PAYMENT.SALE.REVERSED` of version 1 carries (one that names no sale is quarantined), " +
			"how late an event may come into the list, whether sales of version 1 are refunded by version 2, and what PayPal answers to a key that comes with another request (taken for an alarm).",
	},
	Covers: Coverage{Of: "body", Fields: []string{"Paypal-Transmission-Id", "Paypal-Transmission-Time"}},
	// PayPal names none; this is what senders usually wait.
	Deadline: 10 * time.Second,
	KeepHeaders: []string{
		"Content-Type", "User-Agent", "Paypal-Transmission-Id", "Paypal-Transmission-Time", "Paypal-Cert-Url", "Paypal-Auth-Algo",
	},
	Options: append([]Option{
		{"webhook_id", true, "PayPal's id of the endpoint, as the dashboard shows it"},
		{"root_pem", false, "certificates in PEM: the only roots that PayPal's certificate may chain to. Default: the system's"},
		{"verify_by", false, "`certificate` (default), or `api`: ask PayPal about every delivery"},
		{"tolerance", false, "how old the signed time may be (\"96h\"). Default: any age"},
		{"client_id", false, "of the app: what PayPal's API is called with, for captures, refunds and voids, for lists of events, and for `verify_by: api`"},
		{"client_secret", false, "of the app, beside `client_id`"},
		optionSigningKeys,
	}, optionsAPI...),
	CheckMore: checkPayPal,
	Parse:     parsePayPal,
	Remote:    &paypalRemote,
	Fetch:     &paypalFetch,
	Calls:     &paypalCalls,
	Listing:   &paypalListing,
	Types:     func(Source) []Type { return paypalNames() },
	Sample:    samplePayPal,
	Example: func(seed string) Source {
		return Source{
			Gateway: "paypal", Mode: Test, WebhookID: "EXAMPLE" + derive(10, "paypal", seed),
			RootPEM: paypalExampleRoot, SigningKeys: []string{paypalExampleKey},
			ClientID: "EXAMPLE" + derive(20, "paypal app", seed), ClientSecret: exampleSecret("paypal app", seed),
		}
	},
}

// The example's keys: see example/README.md.
var (
	//go:embed example/paypal-root.pem
	paypalExampleRoot string
	//go:embed example/paypal-cert.pem
	paypalExampleCert string
	//go:embed example/paypal-key.pem
	paypalExampleKey string
)

// paypalTypes are the types that are mapped.
var paypalTypes = []paypalType{
	{"PAYMENT.AUTHORIZATION.CREATED", "money is authorised and can be captured", (*paypalEvent).authorized},
	{"PAYMENT.AUTHORIZATION.VOIDED", "an authorisation was voided, or ran out", (*paypalEvent).voided},
	{"PAYMENT.CAPTURE.PENDING", "a capture is on its way", paypalCapture(order.StatusPending, order.StatusProcessing)},
	{"PAYMENT.CAPTURE.COMPLETED", "the money was captured", paypalCapture(order.StatusOK, "")},
	{"PAYMENT.CAPTURE.DECLINED", "a capture was declined", paypalCapture(order.StatusDenied, order.StatusFailed)},
	{"PAYMENT.CAPTURE.DENIED", "a capture was denied", paypalCapture(order.StatusDenied, order.StatusFailed)},
	{"PAYMENT.CAPTURE.REFUNDED", "a capture was refunded, in part or in full", paypalRefund(order.StatusOK, false)},
	{"PAYMENT.CAPTURE.REVERSED", "PayPal took a captured payment back", paypalRefund(order.StatusOK, true)},
	{"PAYMENT.REFUND.PENDING", "a refund is on its way", paypalRefund(order.StatusPending, false)},
	{"PAYMENT.REFUND.FAILED", "a refund failed", paypalRefund(order.StatusFailed, false)},
	{"PAYMENT.SALE.PENDING", "a sale (version 1) is on its way", paypalCapture(order.StatusPending, order.StatusProcessing)},
	{"PAYMENT.SALE.COMPLETED", "a sale (version 1) was paid", paypalCapture(order.StatusOK, "")},
	{"PAYMENT.SALE.DENIED", "a sale (version 1) was denied", paypalCapture(order.StatusDenied, order.StatusFailed)},
	{"PAYMENT.SALE.REFUNDED", "a sale (version 1) was refunded, in part or in full", paypalRefund(order.StatusOK, false)},
	{"PAYMENT.SALE.REVERSED", "PayPal took a sale (version 1) back", paypalRefund(order.StatusOK, true)},
	{"CUSTOMER.DISPUTE.CREATED", "the buyer disputes a payment", (*paypalEvent).dispute},
	{"CUSTOMER.DISPUTE.UPDATED", "a dispute changed", (*paypalEvent).dispute},
	{"CUSTOMER.DISPUTE.RESOLVED", "a dispute was decided", (*paypalEvent).dispute},
}

// paypalSilent are types that are known to say nothing of money: what was
// approved or completed as an order tells its captures in events of their own.
var paypalSilent = map[string]bool{
	"CHECKOUT.ORDER.APPROVED": true, "CHECKOUT.ORDER.COMPLETED": true, "CHECKOUT.ORDER.SAVED": true,
	"CHECKOUT.PAYMENT-APPROVAL.REVERSED": true,
}

type paypalType struct {
	name, meaning string
	facts         func(*paypalEvent)
}

var paypalTypeOf = func() map[string]*paypalType {
	m := make(map[string]*paypalType, len(paypalTypes))
	for i := range paypalTypes {
		m[paypalTypes[i].name] = &paypalTypes[i]
	}
	return m
}()

func paypalNames() []Type {
	types := make([]Type, len(paypalTypes))
	for i, t := range paypalTypes {
		types[i] = Type{t.name, t.meaning}
	}
	return types
}

func parsePayPal(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"id", "event_type", "create_time", "resource"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	id, ok := top.get("id").text()
	if !ok {
		return nil, parseError("no_event_id", "id is missing or no plain text")
	}
	e := &paypalEvent{draft: draft{order.Event{ID: id, Type: unreadableType, At: rfc3339(top.get("create_time"))}}}
	name, ok := top.get("event_type").kind()
	if !ok {
		e.fail("event_type is missing or no plain text")
		return e.done(), nil
	}
	e.Type = name
	t, known := paypalTypeOf[name]
	if !known {
		e.Ignored = UnknownType
		if paypalSilent[name] {
			e.Ignored = NoFact
		}
		return e.done(), nil
	}
	e.o = e.members(top.get("resource"), "resource", paypalFields...)
	t.facts(e)
	e.refer(s, doc)
	events := e.done()
	for _, other := range e.others {
		other.refer(s, doc)
		events = append(events, other.done()...)
	}
	return events, nil
}

func checkPayPal(c *Checker) {
	s := c.s
	if s.WebhookID != "" && (!isName(s.WebhookID) || strings.ContainsAny(s.WebhookID, ":| ")) {
		c.add("webhook_id", "is no id of a webhook")
	}
	switch s.VerifyBy {
	case "", verifyByCertificate:
		if (s.ClientID == "") != (s.ClientSecret == "") {
			c.add("client_id", "and client_secret go together; one of them is missing")
		}
	case verifyByAPI:
		if s.ClientID == "" || s.ClientSecret == "" {
			c.add("client_id", "and client_secret are needed for verify_by: api")
		}
		if s.RootPEM != "" {
			c.add("root_pem", "is not used with verify_by: api; take it out")
		}
	default:
		c.add("verify_by", "must be certificate or api")
	}
	if s.RootPEM == "" {
		return
	}
	n := 0
	for rest := []byte(s.RootPEM); ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if strings.TrimSpace(string(rest)) != "" || n == 0 {
				c.add("root_pem", "is not certificates in PEM, which begin with -----BEGIN CERTIFICATE-----")
			}
			return
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil || block.Type != "CERTIFICATE" {
			c.add("root_pem", "holds something that is no certificate")
			return
		}
		if example, _ := pem.Decode([]byte(paypalExampleRoot)); s.Mode == Live && string(block.Bytes) == string(example.Bytes) {
			c.add("root_pem", "is the root of our example, whose keys everybody has; take it out")
		}
	}
}
