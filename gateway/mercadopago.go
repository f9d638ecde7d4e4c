package gateway

import (
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/paidonce/paidonce/order"
)

// MercadoPago asks Mercado Pago's API about the payments and orders that its
// webhooks name. Its rules:
//
//   - A delivery signs the id of the URL (data.id), x-request-id and a time, and
//     nothing of its body. So it is believed only as a reason to ask. Whether the
//     id is a payment's or an order's shows in the id: payments have digits only.
//     The body's type can only keep us from asking: about a plan, a claim, a
//     merchant order, none of which move money that its payment does not tell.
//   - Payments (/v1/payments) and orders (/v1/orders) are asked about. Every
//     answer is a snapshot of all that is known of a payment, of the version
//     date_last_updated (last_updated_date) in milliseconds.
//   - An order's payments are payments of their own, by their own ids (PAY…), and
//     by one made here that says of which order they are. What /v1/payments calls the
//     same money cannot be told from the answers, so an application must subscribe
//     to one of the topics, not to both.
//   - Capturing a part of an authorisation changes transaction_amount.
//   - The merchant's reference is external_reference.
//   - live_mode tells the mode of payments. Orders have none, but those that test
//     are called ORDTST…, and count on no live source.
var MercadoPago = &Gateway{
	Name:     "mercadopago",
	Title:    "Mercado Pago",
	Docs:     "https://www.mercadopago.com.br/developers/en/docs/your-integrations/notifications/webhooks",
	Scheme:   "mercadopago",
	Evidence: Solid,
	Manual: Manual{
		Secret:  "Your integrations → the application → Webhooks → Secret signature. `access_token` is the application's access token of the same mode.",
		EventID: "None that is signed: the notification's `id` stands in the body. An event is a state of the payment, as the API tells it.",
		Retries: "Without a 200 or 201 within 22 s, every 15 minutes; after the third try with longer pauses.",
		Ordering: "None is promised. Snapshots are ordered by `date_last_updated`, " +
			"which is why a late notification never takes an order back.",
		Calls: "Payments of `/v1/payments`, with the `access_token`. Payments of orders (`/v1/orders`) are not called: move their money at Mercado Pago. " +
			"An authorisation is captured once; what was not taken is let go. " +
			"A refund carries the call's id in its `metadata` (`paidonce_transaction`); a capture and a void leave no mark, and are found by where the payment stands. " +
			"A call that is in doubt is looked up among the payment's refunds, or in the payment; where a refund of its amount says nothing of whose it is, a person must look. " +
			"Not confirmed: how long Mercado Pago knows a key (a day is assumed, as with the refunds of orders), what it answers to a key that comes with another request, " +
			"that it shows a refund's `metadata` again, and whether a change of a payment looks at the key at all; captures and voids do not need it, since there is one of each.",
		Notes: "Subscribe to *Payments* or to *Order (Mercado Pago)*, not to both: the two name the same money by ids that cannot be joined. " +
			"Say which with `topic`, and what names the other is not asked about; lists of lost payments need `topic: payment`, since they have the payments of orders too. " +
			"Notifications of QR codes and IPN are not signed and are refused. " +
			"Payments of test users made with their production credentials are live to the API: their source is `mode: live`. " +
			"Not confirmed: the statuses of an order's refunds beyond `processed`, `processing` and `failed`; others are quarantined.",
	},
	Covers: Coverage{Of: "fields", Fields: []string{"data.id (in the URL)", "x-request-id", "ts"}},
	// https://www.mercadopago.com.br/developers/en/docs/your-integrations/notifications/webhooks
	Deadline:    22 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Request-Id", "X-Signature"},
	Options:     append([]Option{optionSecrets, optionAccessToken, {"topic", false, "`payment` or `order`: which notifications the application is subscribed to; what others name is not asked about. Lists need `payment`"}, {"tolerance", false, "how old the signed time may be (\"5m\"). Default: any age, as retries carry their own time"}}, optionsAPI...),
	Fetch: &Fetch{
		Live: mercadoAPI, Test: mercadoAPI, Always: true,
		Objects: mercadoObjects, About: mercadoAbout, Call: mercadoCall, Parse: parseMercado, Sample: mercadoAnswer,
	},
	Calls:     &mercadoCalls,
	Listing:   &mercadoListing,
	CheckMore: checkMercado,
	Types:     func(Source) []Type { return mercadoTypes },
	Sample:    sampleMercado,
	Example: func(seed string) Source {
		return Source{
			Gateway: "mercadopago", Mode: Test, Secrets: []string{exampleSecret("mercadopago", seed)},
			AccessToken: "TEST-" + exampleSecret("mercadopago token", seed),
		}
	},
}

// The ids that are asked about.
var mercadoKinds = map[string]*regexp.Regexp{
	"payment": regexp.MustCompile(`^[0-9]{1,19}$`),
	"order":   regexp.MustCompile(`^[0-9A-Za-z]{8,64}$`),
}

// mercadoTopics are the types of notification after which there is something to
// ask about.
var mercadoTopics = []string{"payment", "order"}

func checkMercado(c *Checker) {
	if topic := c.s.Topic; topic != "" && !slices.Contains(mercadoTopics, topic) {
		c.add("topic", "must be payment or order")
	}
}

// mercadoObjects reads data.id of the URL, the only id that is signed.
func mercadoObjects(s Source, d Delivery) ([]Object, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members([]string{"type"})
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	if topic := top.get("type"); !topic.absent() && !slices.Contains(mercadoTopics, topic.Str) {
		return nil, nil
	}
	query, err := url.ParseQuery(d.Query)
	if err != nil || len(query["data.id"]) != 1 {
		return nil, parseError("no_event_id", "the URL has no data.id, or several")
	}
	o := Object{Kind: "payment", ID: query.Get("data.id")}
	if !isDigits(o.ID) {
		o.Kind = "order"
	}
	if !askable(o, mercadoKinds) {
		return nil, parseError("no_event_id", "data.id of the URL is no id of a %s", o.Kind)
	}
	if s.Topic != "" && s.Topic != o.Kind {
		return nil, nil // the same money, under ids that cannot be joined
	}
	return []Object{o}, nil
}

func mercadoCall(s Source, o Object) (Call, error) {
	if !askable(o, mercadoKinds) {
		return Call{}, errNoObject(o)
	}
	return bearerCall(s, "/v1/"+o.Kind+"s/"+escaped(o)), nil
}

func parseMercado(s Source, o Object, a Answer) ([]order.Event, error) {
	if o.Kind == "order" {
		return mercadoOrder(s, o, a)
	}
	doc, err := readAnswer(o, a.Body)
	if err != nil {
		return nil, err
	}
	return mercadoPayment(s, doc, a)
}

// mercadoState is what a status says of a payment.
type mercadoState struct {
	status, meaning string
	phase           order.Status
	captured        bool
	disputed        bool // status_detail says how it stands
}

// mercadoPayments: https://www.mercadopago.com.br/developers/en/reference/payments/_payments_id/get
var mercadoPayments = []mercadoState{
	{"pending", "the payment waits for the shopper", order.StatusProcessing, false, false},
	{"in_process", "the payment is under review", order.StatusProcessing, false, false},
	{"authorized", "money is authorised and can be captured", order.StatusAuthorized, false, false},
	{"approved", "the money was captured; parts of it may have been refunded", order.StatusAuthorized, true, false},
	{"refunded", "all of it was refunded", order.StatusAuthorized, true, false},
	{"in_mediation", "the shopper opened a dispute", order.StatusAuthorized, true, true},
	{"charged_back", "the shopper's bank charged it back; status_detail says how that stands", order.StatusAuthorized, true, true},
	{"rejected", "the payment failed", order.StatusFailed, false, false},
	{"cancelled", "the payment was canceled, or expired by its status_detail", order.StatusCanceled, false, false},
}

// mercadoOrders are the statuses of an order's payment:
// https://www.mercadopago.com.br/developers/en/docs/order/status-errors/payment-status
var mercadoOrders = []mercadoState{
	{"created", "the order waits for its payment", order.StatusProcessing, false, false},
	{"processing", "the order's payment is under way", order.StatusProcessing, false, false},
	{"action_required", "the order waits for the shopper, or for a capture by its status_detail", order.StatusProcessing, false, false},
	{"processed", "the order's payment was captured; parts of it may have been refunded", order.StatusAuthorized, true, false},
	{"refunded", "all of the order's payment was refunded", order.StatusAuthorized, true, false},
	{"charged_back", "the order's payment was charged back; status_detail says how that stands", order.StatusAuthorized, true, true},
	{"failed", "the order's payment failed", order.StatusFailed, false, false},
	{"canceled", "the order was canceled", order.StatusCanceled, false, false},
	{"expired", "the order was not paid in time", order.StatusExpired, false, false},
}

var mercadoTypes = func() []Type {
	var types []Type
	for _, t := range mercadoPayments {
		types = append(types, Type{"payment." + t.status, t.meaning})
	}
	for _, t := range mercadoOrders {
		types = append(types, Type{"order." + t.status, t.meaning})
	}
	return types
}()

// mercadoStateOf finds a status; nil if it is none.
func mercadoStateOf(states []mercadoState, status string) *mercadoState {
	for i := range states {
		if states[i].status == status {
			return &states[i]
		}
	}
	return nil
}
