package gateway

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Shopify asks a shop's Admin API about the orders and disputes that its
// webhooks name. Its rules:
//
//   - The body is signed; the topic, the id of the webhook and the shop stand in
//     headers that are not. So a delivery is known by a hash of its body, and
//     what it is about by the body's shape: an order has financial_status, a
//     refund refund_line_items, a transaction kind, a dispute reason and
//     initiated_at. The last three name their order in order_id.
//   - A payment is a Shopify order, by its number. What the API answers about it
//     is a snapshot: financial_status says what its totals mean, and refunds
//     come one by one, by the ids of their transactions. Its version is updated_at
//     in milliseconds.
//   - total_price stays when an order is edited, so what was paid is read from
//     current_total_price and total_outstanding where those are told.
//   - A dispute is no part of the order, so it is asked about itself; it has no
//     version, so the newest call is the newest state.
//   - The merchant's reference is the note attribute order_id.
//   - An order that is a test is flagged on a live source. A shop under development
//     also has orders that are none, so nothing is flagged on a test source.
var Shopify = &Gateway{
	Name:     "shopify",
	Title:    "Shopify",
	Docs:     "https://shopify.dev/docs/apps/build/webhooks",
	Scheme:   "shopify",
	Evidence: Solid,
	Manual: Manual{
		Secret: "The client secret of the app that made the subscription; for webhooks made in the admin, Settings → Notifications → Webhooks. " +
			"`access_token` is the app's Admin API access token of this shop (`shpat_…`, scopes `read_orders` and, for disputes, `read_shopify_payments_disputes`), " +
			"`shop` its host (`example.myshopify.com`).",
		EventID:  "A hash of the body: the ids of the webhook and of the event stand in headers that are not signed. An event is then a state of the order, as the API tells it.",
		Retries:  "Eight times within four hours, with the same body; a subscription whose deliveries all fail is removed.",
		Ordering: "None is promised. Snapshots are ordered by the order's `updated_at`.",
		Notes: "Subscribe to `orders/*`, `refunds/create`, `order_transactions/create` and `disputes/*`. Put your reference into the note attribute `order_id`, " +
			"or say where it stands with `reference` (`/order/name`). Orders older than 60 days need the scope `read_all_orders`. " +
			"Test notifications sent from the admin are signed with another secret. A partly paid order needs `total_outstanding` in the answer. " +
			"Not confirmed: whether `total_outstanding` falls below zero when too much was paid; if not, an order that is edited after it was paid counts with its new total.",
	},
	Covers: Coverage{Of: "body"},
	// https://shopify.dev/docs/apps/build/webhooks/subscribe/https
	Deadline:    5 * time.Second,
	KeepHeaders: []string{"Content-Type", "X-Shopify-Api-Version", "X-Shopify-Event-Id", "X-Shopify-Hmac-Sha256", "X-Shopify-Shop-Domain", "X-Shopify-Topic", "X-Shopify-Triggered-At", "X-Shopify-Webhook-Id"},
	Options: append([]Option{
		optionSecrets, optionAccessToken,
		{"shop", true, "the host of the shop that is asked: `example.myshopify.com`"},
	}, optionsAPI...),
	Parse: parseShopify,
	Fetch: &Fetch{
		Live: "https://{shop}", Test: "https://{shop}", Always: true,
		Objects: shopifyObjects, Call: shopifyCall, Parse: shopifyAnswered, Sample: shopifyAnswer,
	},
	Types:  func(Source) []Type { return shopifyTypes },
	Sample: sampleShopify,
	Example: func(seed string) Source {
		return Source{
			Gateway: "shopify", Mode: Test, Secrets: []string{exampleSecret("shopify", seed)},
			AccessToken: "shpat_" + exampleSecret("shopify token", seed), Shop: "example.myshopify.com",
		}
	},
}

// shopifyVersion is the version of the Admin API that is asked. One that is no
// longer supported answers as the oldest that is.
// https://shopify.dev/docs/api/usage/versioning
const shopifyVersion = "2026-01"

var shopifyKinds = map[string]*regexp.Regexp{
	"order":   regexp.MustCompile(`^[0-9]{1,20}$`),
	"dispute": regexp.MustCompile(`^[0-9]{1,20}$`),
}

// shopifyDelivery is what a body tells: what shape it has, and what has to be
// asked about, the most telling first.
func shopifyDelivery(body []byte) (shape string, objects []Object, err error) {
	doc, fault := parseJSON(body)
	if fault != nil {
		return "", nil, fault
	}
	o, err := doc.members([]string{"id", "order_id", "financial_status", "refund_line_items", "kind", "reason", "initiated_at"})
	if err != nil {
		return "", nil, parseError("duplicate_key", "%v", err)
	}
	id := func(kind, member string) {
		text, _ := o.get(member).name()
		if object := (Object{kind, text}); askable(object, shopifyKinds) {
			objects = append(objects, object)
		}
	}
	switch {
	case o.get("financial_status").Exists():
		shape = "order"
		id("order", "id")
	case o.get("refund_line_items").Exists():
		shape = "refund"
		id("order", "order_id")
	case o.get("kind").Exists() && o.get("order_id").Exists():
		shape = "order_transaction"
		id("order", "order_id")
	case o.get("initiated_at").Exists() && o.get("reason").Exists():
		shape = "dispute"
		id("dispute", "id")
		id("order", "order_id")
	}
	return shape, objects, nil
}

func shopifyObjects(_ Source, d Delivery) ([]Object, error) {
	_, objects, err := shopifyDelivery(d.Body)
	return objects, err
}

// parseShopify makes the event that waits until the API was asked.
func parseShopify(_ Source, d Delivery) ([]order.Event, error) {
	shape, objects, err := shopifyDelivery(d.Body)
	if err != nil {
		return nil, err
	}
	ev := order.Event{ID: bodyID(d.Body), Type: shape}
	switch {
	case shape == "":
		ev.Type, ev.Ignored = "unknown", UnknownType
	case len(objects) == 0:
		ev.Broken = "the body names no order that can be asked about"
	default:
		ev.Fetch = objects[0].String()
	}
	return []order.Event{ev}, nil
}

func shopifyCall(s Source, o Object) (Call, error) {
	if !askable(o, shopifyKinds) {
		return Call{}, errNoObject(o)
	}
	path := "/admin/api/" + shopifyVersion + "/orders/"
	if o.Kind == "dispute" {
		path = "/admin/api/" + shopifyVersion + "/shopify_payments/disputes/"
	}
	return Call{Path: path + escaped(o) + ".json", Header: http.Header{
		"Accept": {"application/json"}, "X-Shopify-Access-Token": {s.AccessToken},
	}}, nil
}

// shopifyAnswered reads {"order": {…}} or {"dispute": {…}}.
func shopifyAnswered(s Source, o Object, a Answer) ([]order.Event, error) {
	doc, fault := parseJSON(a.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{o.Kind})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if err := isAbout(o, top.get(o.Kind), "id"); err != nil {
		return nil, err
	}
	if o.Kind == "dispute" {
		return shopifyDispute(o, top.get(o.Kind), a), nil
	}
	return shopifyOrder(s, o, doc, top.get(o.Kind), a), nil
}

// shopifyStatus is what financial_status says.
type shopifyStatus struct {
	name, meaning string
	phase         order.Status
	captured      bool
}

// https://shopify.dev/docs/api/admin-rest/latest/resources/order (financial_status)
var shopifyStatuses = []shopifyStatus{
	{"pending", "the order waits for its payment", order.StatusProcessing, false},
	{"authorized", "money is authorised and can be captured", order.StatusAuthorized, false},
	{"partially_paid", "a part of the order was paid", order.StatusAuthorized, true},
	{"paid", "the order was paid", order.StatusAuthorized, true},
	{"partially_refunded", "a part of what was paid was refunded", order.StatusAuthorized, true},
	{"refunded", "all that was paid was refunded", order.StatusAuthorized, true},
	{"voided", "the authorisation was given up", order.StatusCanceled, false},
	{"expired", "the authorisation was not captured in time", order.StatusExpired, false},
}

// shopifyDisputes are the statuses of disputes.
// https://shopify.dev/docs/api/admin-rest/latest/resources/dispute
var shopifyDisputes = []struct {
	name, meaning string
	status        order.Status
}{
	{"needs_response", "the shopper disputes the payment", order.StatusOpen},
	{"under_review", "the bank looks at the dispute", order.StatusOpen},
	{"charge_refunded", "the merchant refunded what was disputed, which the order tells", order.StatusWon},
	{"accepted", "the merchant accepted the dispute", order.StatusLost},
	{"won", "the dispute was won", order.StatusWon},
	{"lost", "the dispute was lost", order.StatusLost},
}

var shopifyTypes = func() []Type {
	var types []Type
	for _, t := range shopifyStatuses {
		types = append(types, Type{"order." + t.name, t.meaning})
	}
	for _, t := range shopifyDisputes {
		types = append(types, Type{"dispute." + t.name, t.meaning})
	}
	return types
}()

func shopifyStatusOf(name string) *shopifyStatus {
	i := slices.IndexFunc(shopifyStatuses, func(s shopifyStatus) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return &shopifyStatuses[i]
}

// shopifyOrder reads an order: a snapshot of the payment.
func shopifyOrder(s Source, o Object, doc, v value, a Answer) []order.Event {
	d := &shopifyReader{}
	f := d.members(v, "order", "financial_status", "currency", "total_price", "current_total_price", "total_outstanding", "updated_at", "test",
		"cancelled_at", "note_attributes", "refunds")
	d.Payment, d.Type, d.Strength = []string{o.ID}, unreadableType, order.StrengthPayment
	d.At = rfc3339(f.get("updated_at"))
	d.version = updated(d.At, a)
	d.Reference = d.attribute(f.get("note_attributes"), "order_id")
	d.refer(s, doc)
	name, ok := f.get("financial_status").kind()
	if !ok {
		d.fail("order.financial_status is missing or no plain text")
		return d.done()
	}
	d.Type = "order." + name
	d.status = shopifyStatusOf(name)
	if d.status == nil {
		d.Ignored = UnknownType
		return d.done()
	}
	d.total = d.decimal(f.get("total_price"), f.get("currency"), "order.total_price")
	d.snapshot(f)
	if s.Mode == Live && f.get("test").isTrue() {
		misfit(&d.Event, order.MisfitMode)
	}
	return d.done()
}

// shopifyDispute reads a dispute of an order.
func shopifyDispute(o Object, v value, a Answer) []order.Event {
	var d draft
	f := d.members(v, "dispute", "order_id", "status", "amount", "currency")
	d.Type, d.Strength = unreadableType, order.StrengthModification
	name, ok := f.get("status").kind()
	if !ok {
		d.fail("dispute.status is missing or no plain text")
		return d.done()
	}
	d.Type = "dispute." + name
	for _, t := range shopifyDisputes {
		if t.name != name {
			continue
		}
		id, ok := f.get("order_id").name()
		if !ok {
			d.fail("dispute.order_id is missing or no plain text")
			return d.done()
		}
		d.Payment = []string{id}
		d.add(order.Fact{Kind: order.KindDisputed, Ref: o.ID, Status: t.status, Seq: updated(time.Time{}, a)},
			d.decimal(f.get("amount"), f.get("currency"), "dispute.amount"))
		return d.done()
	}
	d.Ignored = UnknownType
	return d.done()
}

// shopifyPath is a path of [SampleRequest].Set in a delivery, which is the bare
// object that the API answers inside {"order": …}.
func shopifyPath(kind string) func(string) string {
	return func(path string) string { return strings.TrimPrefix(path, kind+".") }
}
