package gateway

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// GoCardless asks GoCardless's API about the payments and refunds that the events
// of its webhooks name. Its rules:
//
//   - One delivery carries up to 250 events of unrelated things, each with an id of
//     its own (EV…); meta.webhook_id is the delivery's and means nothing.
//   - Events carry neither an amount nor a reference: payments and refunds are
//     asked about, whatever the action. All other resources are ignored.
//   - A payment is a snapshot without a version: the call that began last is the
//     newest. It is captured from confirmed on; a late failure takes that back; a
//     chargeback is lost unless it is canceled, which the status then tells.
//   - Refunds are asked about one by one. Those that bounced or came back failed;
//     whether amount_refunded of the payment still counts them does not matter.
//   - The merchant's reference is metadata.order_id.
//   - Nothing in the answers tells live from test: the addresses and the tokens do.
var GoCardless = &Gateway{
	Name:     "gocardless",
	Title:    "GoCardless",
	Docs:     "https://developer.gocardless.com/api-reference/#appendix-webhooks",
	Scheme:   "gocardless",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Developers → Webhook endpoints → the endpoint's secret. `access_token` is a read-only access token of the same environment.",
		EventID:  "`id` (`EV…`) of each event, the same over all tries; `meta.webhook_id` is the delivery's.",
		Retries:  "Up to eight times with growing pauses.",
		Ordering: "None is promised, and answers of the API have no version: the newest call counts.",
		Notes: "Put your reference into the payment's `metadata` as `order_id`. A wrong signature is answered with 401, not with the 498 of GoCardless's examples; both count as failed. " +
			"Not confirmed: whether `amount_refunded` still counts a refund that bounced.",
	},
	Covers: Coverage{Of: "body"},
	// https://developer.gocardless.com/getting-started/api/staying-up-to-date-with-webhooks/
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "Webhook-Signature"},
	Options:     append([]Option{optionSecrets, optionAccessToken}, optionsAPI...),
	Parse:       parseGoCardless,
	Fetch: &Fetch{
		Live: "https://api.gocardless.com", Test: "https://api-sandbox.gocardless.com", Always: true,
		Objects: goCardlessObjects, Call: goCardlessCall, Parse: goCardlessAnswered, Sample: goCardlessAnswer,
	},
	Types:  func(Source) []Type { return goCardlessTypes },
	Sample: sampleGoCardless,
	Example: func(seed string) Source {
		return Source{
			Gateway: "gocardless", Mode: Test, Secrets: []string{exampleSecret("gocardless", seed)},
			AccessToken: "sandbox_" + exampleSecret("gocardless token", seed),
		}
	},
}

// maxGoCardless is the most events of one delivery; GoCardless stays below 250.
const maxGoCardless = 1000

// goCardlessKinds: ids look like PM000ABC and RF000ABC; those of test events are
// made up by whoever sends them.
var goCardlessKinds = map[string]*regexp.Regexp{
	"payment": regexp.MustCompile(`^[0-9A-Za-z_]{2,60}$`),
	"refund":  regexp.MustCompile(`^[0-9A-Za-z_]{2,60}$`),
}

func goCardlessObjects(_ Source, d Delivery) ([]Object, error) {
	events, err := goCardlessEvents(d.Body)
	if err != nil {
		return nil, err
	}
	var objects []Object
	for _, ev := range events {
		if o, ok := ParseObject(ev.Fetch); ok && !slices.Contains(objects, o) {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

func parseGoCardless(_ Source, d Delivery) ([]order.Event, error) { return goCardlessEvents(d.Body) }

// goCardlessEvents reads the events of a delivery, which wait until the API was
// asked.
func goCardlessEvents(body []byte) ([]order.Event, error) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"events"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	list := top.get("events").elements(maxGoCardless + 1)
	if len(list) == 0 || len(list) > maxGoCardless {
		return nil, parseError("shape", "events is no list of 1 to %d events", maxGoCardless)
	}
	events := make([]order.Event, 0, len(list))
	for _, v := range list {
		ev, err := goCardlessEvent(v)
		if err != nil {
			return nil, err
		}
		events = append(events, ev)
	}
	return events, nil
}

func goCardlessEvent(v value) (order.Event, error) {
	o, err := v.members([]string{"id", "created_at", "resource_type", "action", "links"})
	if err != nil {
		return order.Event{}, parseError("shape", "an event %v", err)
	}
	id, ok := o.get("id").text()
	if !ok {
		return order.Event{}, parseError("no_event_id", "the id of an event is missing or no plain text")
	}
	var d draft
	d.ID, d.Type, d.At = id, unreadableType, rfc3339(o.get("created_at"))
	resource, ok := o.get("resource_type").kind()
	action, also := o.get("action").text()
	if !ok || !also || len(resource)+len(action) >= maxType {
		d.fail("resource_type or action is missing or no plain text")
		return d.Event, nil
	}
	d.Type = resource + "." + action
	kind, known := strings.CutSuffix(resource, "s")
	if !known || goCardlessKinds[kind] == nil {
		d.Ignored = UnknownType
		return d.Event, nil
	}
	links := d.optional(o.get("links"), "links", kind)
	object := Object{kind, links.get(kind).Str}
	if !askable(object, goCardlessKinds) {
		d.fail("links names no %s", kind)
		return d.Event, nil
	}
	d.Fetch = object.String()
	return d.Event, nil
}

func goCardlessCall(s Source, o Object) (Call, error) {
	if !askable(o, goCardlessKinds) {
		return Call{}, errNoObject(o)
	}
	call := bearerCall(s, "/"+o.Kind+"s/"+escaped(o))
	call.Header.Set("GoCardless-Version", "2015-07-06")
	return call, nil
}

// goCardlessState is what a status says of a payment or a refund.
type goCardlessState struct {
	status, meaning string
	phase           order.Status // of payments
	refund          order.Status // of refunds
	captured        bool
}

// https://developer.gocardless.com/api-reference/#core-endpoints-payments (status)
var goCardlessPayments = []goCardlessState{
	{status: "pending_customer_approval", meaning: "the payer has to approve", phase: order.StatusProcessing},
	{status: "pending_submission", meaning: "the payment will be submitted to the bank", phase: order.StatusProcessing},
	{status: "submitted", meaning: "the payment was submitted to the bank", phase: order.StatusProcessing},
	{status: "confirmed", meaning: "the money was collected", phase: order.StatusAuthorized, captured: true},
	{status: "paid_out", meaning: "the money is on its way to the merchant", phase: order.StatusAuthorized, captured: true},
	{status: "cancelled", meaning: "the payment was canceled", phase: order.StatusCanceled},
	{status: "customer_approval_denied", meaning: "the payer did not approve", phase: order.StatusFailed},
	{status: "failed", meaning: "the bank could not collect, or took it back", phase: order.StatusFailed},
	{status: "charged_back", meaning: "the payer had the bank take the money back", phase: order.StatusAuthorized, captured: true},
}

// https://developer.gocardless.com/api-reference/#core-endpoints-refunds (status)
var goCardlessRefunds = []goCardlessState{
	{status: "created", meaning: "a refund was made", refund: order.StatusPending},
	{status: "pending_submission", meaning: "a refund will be submitted to the bank", refund: order.StatusPending},
	{status: "submitted", meaning: "a refund was submitted to the bank", refund: order.StatusPending},
	{status: "paid", meaning: "a refund was paid to the payer", refund: order.StatusOK},
	{status: "cancelled", meaning: "a refund was canceled", refund: order.StatusFailed},
	{status: "bounced", meaning: "a refund could not be paid", refund: order.StatusFailed},
	{status: "funds_returned", meaning: "a refund came back to the merchant", refund: order.StatusFailed},
}

var goCardlessTypes = func() []Type {
	var types []Type
	for _, t := range goCardlessPayments {
		types = append(types, Type{"payments." + t.status, t.meaning})
	}
	for _, t := range goCardlessRefunds {
		types = append(types, Type{"refunds." + t.status, t.meaning})
	}
	return types
}()
