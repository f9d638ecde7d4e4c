package gateway

import (
	"bytes"
	"slices"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Kushki maps the webhooks of Kushki's payments: cards, cash, transfers, refunds
// and chargebacks. Its rules:
//
//   - Kushki writes some webhooks in snake case (card payments) and others in camel
//     case; a field is read by whichever name it has.
//   - A webhook has no type and no event id. The type is the transaction's type and
//     status ("SALE.APPROVAL"), for cash and transfers the status alone
//     ("approvedTransaction"); the id is the type and the transaction's ticket.
//   - A payment is known by its ticket number, transaction reference and
//     transaction id. Refunds and chargebacks name those of the sale.
//   - The merchant's reference is metadata.order_id, else metadata.orderId, else
//     metadata.external_ref.
//   - Amounts are major units, written as JSON numbers. Of a payment the approved
//     amount counts, of a refund the sum of its parts (subtotals, taxes).
//   - A void of a preauthorisation cancels it; of a sale it is a refund.
//   - Of a chargeback no amount is told: all of the payment is at stake.
//   - Kushki's pages contradict each other on whether APPROVAL of a chargeback is
//     for the shop or for the shopper, and do not say how captures are told. With
//     unconfirmed: true APPROVAL is a chargeback that was won, and CAPTURE.APPROVAL
//     a capture; without, such a chargeback stays open, and such a capture unknown.
//
// https://docs.kushki.com/ec/en/notifications/one-time-payments/webhook-card
var Kushki = &Gateway{
	Name:     "kushki",
	Title:    "Kushki",
	Docs:     "https://docs.kushki.com/co/en/notifications/webhooks/overview",
	Scheme:   "kushki",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Console → Developers → Webhooks: Webhook signature ID.",
		EventID:  "There is none: the transaction's type, status and ticket number.",
		Retries:  "After anything but a 200, with growing pauses.",
		Ordering: "None is promised, and transactions carry no version: statuses rank.",
		Notes: "Put the order into `metadata.order_id` of the charge; Kushki has no other place for it. " +
			"Not confirmed: what APPROVAL of a chargeback means (for Ecuador: decided for the shop; for Colombia and Chile: for \"your client\") and how a capture is told. " +
			"Ask Kushki, then set `unconfirmed: true`; until then such a chargeback stays open and such a capture is ignored. " +
			"Webhooks of payouts are ignored. A body `{}` is a test of the endpoint and is answered with 200.",
	},
	Covers: Coverage{Of: "body", Fields: []string{"X-Kushki-Id"}},
	// Kushki gives no number. 10 s is what gateways that give one give most often.
	Deadline:    10 * time.Second,
	KeepHeaders: []string{"Content-Type", "User-Agent", "X-Kushki-Id", "X-Kushki-Key", "X-Kushki-Signature"},
	Options: []Option{
		optionSecrets,
		optionAccounts,
		{"tolerance", false, "how far X-Kushki-Id, the signed time, may be from now. Default: any"},
		{"unconfirmed", false, "true: Kushki has confirmed that APPROVAL of a chargeback is for the shop, and that CAPTURE.APPROVAL is a capture"},
	},
	Parse: parseKushki,
	Probe: func(_ Source, d Delivery) (Probe, bool) {
		return Probe{Note: "empty object"}, string(bytes.TrimSpace(d.Body)) == "{}"
	},
	Types:  kushkiNames,
	Sample: sampleKushki,
	Example: func(seed string) Source {
		return Source{Gateway: "kushki", Mode: Test, Secrets: []string{exampleSecret("kushki", seed)}, Unconfirmed: true}
	},
}

// kushkiTypes are what a transaction can be.
// https://docs.kushki.com/co/en/notifications/one-time-payments/webhook-card,
// …/webhook-cash-in, …/webhook-transfer-in, …/refunds-chagebacks/webhook-refunds-voids, …/webhook-chargeback
var kushkiTypes = []kushkiType{
	{"SALE.APPROVAL", "a card payment was approved", false, (*kushkiEvent).captured},
	{"SALE.DECLINED", "a card payment was declined", false, kushkiPhase(order.StatusFailed)},
	{"PREAUTHORIZATION.APPROVAL", "money is authorised and can be captured", false, (*kushkiEvent).authorized},
	{"PREAUTHORIZATION.DECLINED", "an authorisation was declined", false, kushkiPhase(order.StatusFailed)},
	{"CAPTURE.APPROVAL", "an authorisation was captured", true, (*kushkiEvent).captured},
	{"CAPTURE.DECLINED", "a capture was declined", true, (*kushkiEvent).denied},
	{"VOID.APPROVAL", "a payment was undone, in part or in full", false, (*kushkiEvent).voided},
	{"REFUND.APPROVAL", "a refund was made", false, kushkiRefund(order.StatusOK)},
	{"REFUND.DECLINED", "a refund was declined: the money is still there", false, kushkiRefund(order.StatusDenied)},
	{"initializedTransaction", "a payment by transfer began", false, kushkiPhase(order.StatusProcessing)},
	{"approvedTransaction", "a payment in cash or by transfer arrived", false, (*kushkiEvent).captured},
	{"declinedTransaction", "a payment in cash or by transfer was declined", false, kushkiPhase(order.StatusFailed)},
	{"expiredTransaction", "a payment in cash or by transfer was not made in time", false, kushkiPhase(order.StatusExpired)},
	{"CHARGEBACK.INITIALIZED", "the shopper disputes a payment", false, kushkiDispute(order.StatusOpen, 1)},
	{"CHARGEBACK.PENDING", "a chargeback waits for our documents", false, kushkiDispute(order.StatusOpen, 2)},
	{"CHARGEBACK.REVIEW", "our documents are being looked at", false, kushkiDispute(order.StatusOpen, 3)},
	{"CHARGEBACK.APPROVAL", "a chargeback was decided for us", false, kushkiDispute(order.StatusWon, 4)},
	{"CHARGEBACK.DECLINED", "a chargeback was decided against us", false, kushkiDispute(order.StatusLost, 4)},
	{"CHARGEBACK.EXPIRED", "a chargeback was lost because no documents came", false, kushkiDispute(order.StatusLost, 4)},
}

type kushkiType struct {
	name, meaning string
	unconfirmed   bool // known only to sources that say unconfirmed: true
	facts         func(*kushkiEvent)
}

func kushkiTypeOf(s Source, name string) *kushkiType {
	for i := range kushkiTypes {
		if t := &kushkiTypes[i]; t.name == name && (s.Unconfirmed || !t.unconfirmed) {
			return t
		}
	}
	return nil
}

func kushkiNames(s Source) []Type {
	var types []Type
	for _, t := range kushkiTypes {
		if s.Unconfirmed || !t.unconfirmed {
			types = append(types, Type{t.name, t.meaning})
		}
	}
	return types
}

func kushkiPhase(status order.Status) func(*kushkiEvent) {
	return func(e *kushkiEvent) { e.phase(status, 0) }
}

func (e *kushkiEvent) captured() {
	m := e.paid()
	e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id, Status: order.StatusOK}, m)
	if e.Strength == order.StrengthPayment {
		e.Own = &m
	}
}

func (e *kushkiEvent) denied() {
	e.add(order.Fact{Kind: order.KindCaptured, Ref: e.id, Status: order.StatusDenied}, e.paid())
}

func (e *kushkiEvent) authorized() {
	m := e.paid()
	e.phase(order.StatusAuthorized, 0)
	e.add(order.Fact{Kind: order.KindAuthorized}, m)
	e.Own = &m
}

func (e *kushkiEvent) voided() {
	if e.get("saleTransactionType", "sale_transaction_type").Str == "PREAUTHORIZATION" {
		e.phase(order.StatusCanceled, 0)
		return
	}
	kushkiRefund(order.StatusOK)(e)
}

func kushkiRefund(status order.Status) func(*kushkiEvent) {
	return func(e *kushkiEvent) {
		e.add(order.Fact{Kind: order.KindRefunded, Ref: e.id, Status: status}, e.returned())
	}
}

func kushkiDispute(status order.Status, stage int64) func(*kushkiEvent) {
	return func(e *kushkiEvent) {
		status := status
		if status == order.StatusWon && !e.source.Unconfirmed {
			status = order.StatusOpen
		}
		cur := e.currency()
		e.add(order.Fact{Kind: order.KindDisputed, Ref: e.Payment[0], Status: status, Seq: stage}, order.Amount{Minor: order.All, Currency: cur})
	}
}

// wrongAccount reports whether a webhook is another merchant's.
func (e *kushkiEvent) wrongAccount() bool {
	id, _ := e.get("merchant_id", "merchantId", "publicMerchantId").name()
	return len(e.source.MerchantAccounts) > 0 && !slices.Contains(e.source.MerchantAccounts, id)
}
