package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Stripe maps snapshot events (objects called "event") of Stripe's API, of any
// API version. Its rules:
//
//   - A payment is known by its PaymentIntent, charges, Checkout session and
//     invoice; the main id is the PaymentIntent, else the charge, the invoice,
//     the session.
//   - The merchant's reference is metadata.order_id, else a session's
//     client_reference_id, else metadata.external_ref. For the first invoice of
//     a subscription the subscription's metadata counts too; its renewals have
//     no order unless their own metadata names one, or the subscription is a
//     recurrence: then the first line of its items tells the period.
//   - Captured and refunded amounts are running totals of the payment, so events
//     may come in any order; refunds also come one by one. Subscribe to
//     refund.* besides charge.refunded: failures are told by id only.
//   - Disputes go by the object's own status, never by their balance
//     transactions, which are in the currency of the payout.
//   - livemode must be a JSON boolean that fits the source's mode, and account
//     the source's own; else the facts are misfits.
//   - Thin events (v2.core.event) carry an id and no facts: with access_token the
//     object that they name is asked for, without it they are ignored.
var Stripe = &Gateway{
	Name:     "stripe",
	Title:    "Stripe",
	Docs:     "https://docs.stripe.com/webhooks",
	Scheme:   "stripe",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Dashboard → Developers → Webhooks → the endpoint → Signing secret (`whsec_…`). The whole text is the secret.",
		EventID:  "`id` (`evt_…`), the same over all tries.",
		Retries:  "Up to three days with growing pauses in live mode; a few hours in test mode.",
		Ordering: "None is promised.",
		Notes: "Subscribe to `refund.*` besides `charge.refunded`: failures of refunds are told by id only. Thin events need `access_token`. " +
			"An invoice of a subscription (the first one and its renewals) pays the order of its period where a recurrence has the reference in the subscription's metadata, " +
			"or the subscription's id (`sub_…`), as its `external_ref`. " +
			"Give the webhook endpoint the API version of the account: lists of events are in that one. Not confirmed: that the list of a connected account names it; if it does not, we do.",
		Calls: "`access_token` captures PaymentIntents (`…/capture`, and charges that have none), refunds (`/v1/refunds`) and voids (`…/cancel`). " +
			"A capture is final: the rest of the authorization is let go. Our id stands in the metadata of refunds and of captured PaymentIntents, `paidonce_transaction`. " +
			"A call whose answer is not known is repeated under the same key, then looked up: a refund among those of the payment (100 at most), a capture and a void by the status of the PaymentIntent. " +
			"A capture of the very amount that does not carry our id, and any of a charge without PaymentIntent, is left to a person. A charge without PaymentIntent cannot be voided.",
	},
	Covers:  Coverage{Of: "body"},
	AckBody: `{"received":true}`,
	AckType: "application/json",
	// Stripe says "quickly" and no number. 10 s is the least that is reported.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "Stripe-Signature", "User-Agent"},
	Options: append([]Option{
		optionSecrets,
		{"account", false, "the connected account (`acct_…`) whose events arrive here. Default: our own"},
		{"access_token", false, "a restricted key (`rk_…`). One that may read payments, disputes, invoices and Checkout sessions: thin events are then asked about. One that may write PaymentIntents and refunds: they are then captured, refunded and voided. One that may read events: lost ones are then found. Default: nothing is asked"},
	}, optionsAPI...),
	CheckMore: checkStripe,
	Parse:     parseStripe,
	Fetch:     stripeFetch,
	Calls:     stripeCalls,
	Listing:   stripeListing,
	Types:     func(Source) []Type { return stripeNames() },
	Sample:    sampleStripe,
	Example: func(seed string) Source {
		return Source{Gateway: "stripe", Mode: Test, Secrets: []string{"whsec_" + exampleSecret("stripe", seed)}}
	},
}

// stripeNoRelease is the first API version (2025-03-31.basil) in which Stripe no
// longer books the uncaptured rest of a charge as a refund. Before it,
// amount_refunded holds that rest.
// https://docs.stripe.com/changelog/basil
const stripeNoRelease = "2025-03-31"

// stripeTypes are the types that are mapped; everything else is ignored.
var stripeTypes = []stripeType{
	{"payment_intent.processing", "the payment is on its way", &stripeIntent, stripePhase(order.StatusProcessing)},
	{"payment_intent.payment_failed", "an attempt to pay failed", &stripeIntent, stripePhase(order.StatusFailed)},
	{"payment_intent.canceled", "the payment was canceled", &stripeIntent, stripePhase(order.StatusCanceled)},
	{"payment_intent.amount_capturable_updated", "money is authorised and can be captured", &stripeIntent, (*stripeEvent).authorized},
	{"payment_intent.succeeded", "the money was captured", &stripeIntent, (*stripeEvent).received},
	{"checkout.session.completed", "a checkout was finished; paid if payment_status says so", &stripeSession, (*stripeEvent).session},
	{"checkout.session.async_payment_succeeded", "a delayed payment of a checkout arrived", &stripeSession, (*stripeEvent).session},
	{"checkout.session.async_payment_failed", "a delayed payment of a checkout failed", &stripeSession, stripePhase(order.StatusFailed)},
	{"checkout.session.expired", "a checkout was left unfinished", &stripeSession, stripePhase(order.StatusExpired)},
	{"charge.pending", "a charge is on its way", &stripeCharge, stripePhase(order.StatusProcessing)},
	{"charge.succeeded", "a charge was authorised, and captured unless captured is false", &stripeCharge, (*stripeEvent).charge},
	{"charge.captured", "an authorised charge was captured", &stripeCharge, (*stripeEvent).charge},
	{"charge.failed", "a charge failed", &stripeCharge, (*stripeEvent).denied},
	{"charge.expired", "an authorised charge was not captured in time", &stripeCharge, stripePhase(order.StatusExpired)},
	{"charge.refunded", "a charge was refunded, in part or in full", &stripeRefunded, (*stripeEvent).charge},
	{"refund.created", "a refund was made", &stripeRefund, (*stripeEvent).refund},
	{"refund.updated", "a refund changed", &stripeRefund, (*stripeEvent).refund},
	{"refund.failed", "a refund failed: the money came back", &stripeRefund, (*stripeEvent).refund},
	{"charge.refund.updated", "a refund changed (older name)", &stripeRefund, (*stripeEvent).refund},
	{"charge.dispute.created", "the shopper disputes a charge", &stripeDispute, (*stripeEvent).dispute},
	{"charge.dispute.updated", "a dispute changed", &stripeDispute, (*stripeEvent).dispute},
	{"charge.dispute.funds_withdrawn", "the disputed money was taken", &stripeDispute, (*stripeEvent).dispute},
	{"charge.dispute.funds_reinstated", "the disputed money came back", &stripeDispute, (*stripeEvent).dispute},
	{"charge.dispute.closed", "a dispute was decided", &stripeDispute, (*stripeEvent).dispute},
	{"invoice.paid", "an invoice was paid", &stripeInvoice, (*stripeEvent).invoice},
	{"invoice.payment_succeeded", "an invoice was paid by a payment", &stripeInvoice, (*stripeEvent).invoice},
	{"invoice.payment_failed", "an attempt to pay an invoice failed", &stripeInvoice, stripePhase(order.StatusFailed)},
	{"invoice_payment.paid", "a payment went to an invoice", &stripeInvoicePayment, (*stripeEvent).invoice},
}

type stripeType struct {
	name, meaning string
	kind          *stripeKind
	facts         func(*stripeEvent)
}

// stripeKind is a kind of object that events carry.
type stripeKind struct {
	object   string // what data.object.object says
	strength order.Strength
	fields   []string // that are read
	ids      func(*stripeEvent) []string
	own      string // the field with the payment's own amount, or ""
}

// stripeTypeOf finds a row of stripeTypes by its name.
var stripeTypeOf = func() map[string]*stripeType {
	m := make(map[string]*stripeType, len(stripeTypes))
	for i := range stripeTypes {
		m[stripeTypes[i].name] = &stripeTypes[i]
	}
	return m
}()

func stripeNames() []Type {
	types := make([]Type, len(stripeTypes))
	for i, t := range stripeTypes {
		types[i] = Type{t.name, t.meaning}
	}
	return types
}

var stripeTop = []string{"id", "object", "api_version", "created", "livemode", "type", "account", "data", "related_object"}

func parseStripe(s Source, d Delivery) ([]order.Event, error) {
	doc, fault := parseJSON(d.Body)
	if fault != nil {
		return nil, fault
	}
	top, err := doc.members(stripeTop)
	if err != nil {
		return nil, parseError("duplicate_key", "%v", err)
	}
	id, ok := top.get("id").text()
	if !ok {
		return nil, parseError("no_event_id", "id is missing or no plain text")
	}
	ev := order.Event{ID: id, Type: unreadableType}
	name, ok := top.get("type").kind()
	if !ok {
		ev.Broken = "type is missing or no plain text"
		return []order.Event{ev}, nil
	}
	ev.Type = name
	if object := top.get("object").Str; strings.HasPrefix(object, "v2.") {
		ev.At = rfc3339(top.get("created"))
		switch o, ok, err := stripeThin(s, top); {
		case err != nil:
			ev.Broken = "related_object " + err.Error()
		case ok:
			ev.Fetch = o.String()
		case s.AccessToken != "":
			ev.Ignored = UnknownType
		default:
			ev.Ignored = NeedsFetch
		}
		return []order.Event{ev}, nil
	}
	ev.At, _ = unixTime(top.get("created"))

	t, known := stripeTypeOf[ev.Type]
	if !known {
		ev.Ignored = UnknownType
		return []order.Event{ev}, nil
	}
	readStripe(s, doc, top, t, &ev)
	return []order.Event{ev}, nil
}

// readStripe fills ev from the object that the event carries.
func readStripe(s Source, doc value, top object, t *stripeType, ev *order.Event) {
	e := &stripeEvent{Event: ev, kind: t.kind, created: top.get("created"), version: top.get("api_version").Str}
	e.read(top.get("data"))
	if !e.broken() {
		ev.Payment = distinct(t.kind.ids(e))
		ev.Strength = t.kind.strength
		ev.Reference = e.reference()
		ev.Renewal = e.renewal(s)
	}
	if s.Reference != "" {
		ref, err := doc.at(s.Reference)
		if err != nil {
			e.fail("%v", err)
		}
		ev.Reference, _ = ref.name()
	}
	if !e.broken() {
		e.ownAmount()
		t.facts(e)
	}
	if e.broken() {
		return
	}
	if len(ev.Facts) == 0 && !e.connects() {
		ev.Ignored = NoFact
		return
	}
	live := top.get("livemode")
	account, _ := top.get("account").text()
	switch {
	case s.Mode == Live && !live.isTrue(), s.Mode != Live && !live.isFalse():
		misfit(ev, order.MisfitMode)
	case account != s.StripeAccount, account == "" && !top.get("account").absent():
		misfit(ev, order.MisfitAccount)
	}
}

// connects reports whether an event without facts still says something: that
// two ids are one payment, or whose order it is. A session by itself is no
// payment, and would keep its order open for ever.
func (e *stripeEvent) connects() bool {
	if len(e.Payment) == 0 || strings.HasPrefix(e.Payment[0], "cs_") {
		return false
	}
	return len(e.Payment) > 1 || e.Reference != ""
}

func checkStripe(c *Checker) {
	checkKey("rk_live_", "rk_test_")(c)
	checkKey("sk_live_", "sk_test_")(c)
	if s := c.s.StripeAccount; s != "" && !isStripeAccount(s) {
		c.add("account", "is no Stripe account id: they look like acct_1A2b3C")
	}
}

func isStripeAccount(s string) bool {
	rest, ok := strings.CutPrefix(s, "acct_")
	return ok && rest != "" && !strings.ContainsFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
}
