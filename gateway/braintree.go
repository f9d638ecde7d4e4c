package gateway

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

// Braintree maps the notifications of Braintree: a form with XML in it. Its rules:
//
//   - A payment is a transaction; a local payment is known by its payment-id too,
//     which is all that some notifications name.
//   - A transaction is captured by its id when it settles, when a subscription
//     charged it, or when a local payment was funded. A settlement that is declined
//     undoes that: it may come after transaction_settled.
//   - A transaction of type credit is a refund of another (refunded-transaction-id).
//   - local_payment_completed says that the shopper approved. The money is ours
//     with the transaction that is made of it.
//   - A subscription lists its transactions, and the one that was created last is
//     the one that was charged.
//   - The merchant's reference is order-id of the transaction. One without it, of a
//     subscription, is of the billing period that it names, where the
//     subscription's id is a recurrence.
//   - Notifications have no id. It is a hash of the XML.
//   - Keys belong to the sandbox or to production, so that no byte has to tell.
//
// The XML is read as the JSON that says the same (kind, subject.transaction.id …):
// that is what reference points into.
//
// Kinds and subjects: https://github.com/braintree/braintree_node
// (webhook_notification.js, webhook_testing_gateway.js), meaning:
// https://developer.paypal.com/braintree/docs/reference/general/webhooks/transaction
var Braintree = &Gateway{
	Name:     "braintree",
	Title:    "Braintree",
	Docs:     "https://developer.paypal.com/braintree/docs/guides/webhooks/overview",
	Scheme:   "braintree",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Control Panel → Settings → API → API Keys: the public key and the private key, written `public_key:private_key`.",
		EventID:  "A hash of the XML: notifications have no id.",
		Retries:  "Every hour, for 24 hours (3 in the sandbox).",
		Ordering: "None is promised.",
		Notes: "**Sales by card send no notification**: only ACH and SEPA debits, local payments, subscriptions, refunds that fail and disputes do. " +
			"For cards confirm the order from your own code when `Transaction: Sale` returns. " +
			"The check of the URL (`bt_challenge`) is answered, with the first of several secrets. " +
			"A charge of a subscription pays the order of its billing period where a recurrence has the subscription's id as its `external_ref`. " +
			"Not confirmed: the deadline, that a retry repeats the bytes of the first try (if not, its facts are the same and join to nothing new), " +
			"and that a subscription lists its newest transaction with `created-at`.",
	},
	Covers: Coverage{Of: "fields", Fields: []string{"bt_payload"}},
	// Braintree's pages that could be read name none; 30 s is reported.
	Deadline:    10 * time.Second,
	ContentType: formType,
	KeepHeaders: []string{"Content-Type", "User-Agent"},
	Options:     []Option{optionSecrets, optionAccounts},
	Parse:       parseBraintree,
	Probe:       probeBraintree,
	Types:       braintree.rows.types,
	Sample:      sampleBraintree,
	Example: func(seed string) Source {
		return Source{Gateway: "braintree", Mode: Test, Secrets: []string{"example_public_key:" + exampleSecret("braintree", seed)}}
	},
}

var braintree = layout{
	typ: "/kind",
	at:  func(r *reader) time.Time { return r.date("/timestamp") },
	rows: eventRows{
		{"transaction_settled", "a direct debit settled, or a refund of one", order.StrengthPayment, braintreeSettled},
		{"transaction_settlement_declined", "a settlement was declined, perhaps after it had settled", order.StrengthPayment, braintreeDeclined},
		{"transaction_disbursed", "the money of a transaction was paid out", order.StrengthPayment, braintreeSettled},
		{"refund_failed", "a refund failed: the money came back", order.StrengthModification, braintreeRefundFailed},
		{"subscription_charged_successfully", "a subscription was charged", order.StrengthPayment, braintreeCharged},
		{"subscription_charged_unsuccessfully", "a subscription could not be charged", order.StrengthPayment, braintreeNotCharged},
		{"local_payment_completed", "the shopper approved a local payment", order.StrengthPayment, braintreeApproved},
		{"local_payment_funded", "a local payment was funded", order.StrengthPayment, braintreeFunded},
		{"local_payment_expired", "a local payment was not made in time", order.StrengthPayment, braintreeLocal(order.StatusExpired)},
		{"local_payment_reversed", "a local payment went back to the shopper", order.StrengthPayment, braintreeLocal(order.StatusCanceled)},
		{"dispute_opened", "the shopper disputes a transaction", order.StrengthModification, braintreeDispute(order.StatusOpen)},
		{"dispute_disputed", "evidence against a dispute was handed in", order.StrengthModification, braintreeDispute(order.StatusOpen)},
		{"dispute_under_review", "a dispute is looked at", order.StrengthModification, braintreeDispute(order.StatusOpen)},
		{"dispute_won", "a dispute was won", order.StrengthModification, braintreeDispute(order.StatusWon)},
		{"dispute_lost", "a dispute was lost", order.StrengthModification, braintreeDispute(order.StatusLost)},
		{"dispute_accepted", "the merchant accepted a dispute", order.StrengthModification, braintreeDispute(order.StatusLost)},
		{"dispute_auto_accepted", "a dispute was accepted by itself", order.StrengthModification, braintreeDispute(order.StatusLost)},
		{"dispute_expired", "a dispute was not answered in time", order.StrengthModification, braintreeDispute(order.StatusLost)},
	},
	silent: []string{
		"check", "transaction_retried", "transaction_reviewed", "disbursement", "subscription_canceled", "subscription_expired",
		"subscription_billing_skipped", "subscription_trial_ended", "subscription_went_active", "subscription_went_past_due",
		"account_updater_daily_report",
	},
	misfit: braintreeMisfit,
}

func parseBraintree(s Source, d Delivery) ([]order.Event, error) {
	payload, fault := formField(d.Body, "bt_payload")
	if fault != nil {
		return nil, fault
	}
	text, err := base64.StdEncoding.DecodeString(payload) // passes over line breaks
	if err != nil || len(text) == 0 {
		return nil, parseError("shape", "bt_payload is missing or not base64")
	}
	doc, fault := parseXML(text, "notification")
	if fault != nil {
		return nil, fault
	}
	return braintree.read(s, doc, text)
}

// probeBraintree answers the GET with which Braintree checks a URL.
func probeBraintree(s Source, d Delivery) (Probe, bool) {
	query, err := url.ParseQuery(d.Query)
	if d.Method != http.MethodGet || err != nil || len(query["bt_challenge"]) != 1 || len(s.Secrets) == 0 {
		return Probe{}, false
	}
	answer, err := signature.BraintreeChallenge(s.Secrets[0], query.Get("bt_challenge"))
	if err != nil {
		return Probe{}, false
	}
	return Probe{Body: answer, Type: "text/plain; charset=utf-8", Note: "answered the challenge of Braintree"}, true
}

const (
	braintreeTransactionAt = "/subject/transaction"
	braintreeDisputeAt     = "/subject/dispute"
)

// braintreeMoney is the amount of a transaction.
func braintreeMoney(r *reader, at string) order.Amount {
	return r.major(at+"/amount", r.currency(at+"/currency-iso-code"))
}

// braintreePayment reads which payment a transaction is, and whose order.
func braintreePayment(r *reader, at string) string {
	id := r.text(at + "/id")
	r.Payment = append([]string{id}, r.Payment...)
	r.Reference = r.first(at + "/order-id")
	return id
}

// braintreeSettled: the money of a sale, or of a refund, moved.
func braintreeSettled(r *reader) {
	braintreeMoved(r, order.StatusOK)
}

func braintreeDeclined(r *reader) {
	if !braintreeMoved(r, order.StatusFailed) {
		r.phase(order.StatusFailed, 0)
	}
}

// braintreeMoved: a transaction by its id, and whether it is a refund.
func braintreeMoved(r *reader, status order.Status) (refund bool) {
	const at = braintreeTransactionAt
	switch r.at(at + "/type").Str {
	case "credit":
		braintreeRefund(r, status)
		return true
	case "sale", "":
		id := braintreePayment(r, at)
		m := braintreeMoney(r, at)
		r.own(m)
		r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: status}, m)
	default:
		r.fail("%s/type is none that a transaction has", at)
	}
	return false
}

// braintreeRefund: one that names no sale is a credit of its own, and none of ours.
func braintreeRefund(r *reader, status order.Status) {
	const at = braintreeTransactionAt
	r.Strength = order.StrengthModification
	of := r.first(at+"/refunded-transaction-id", at+"/refunded-transaction-fk")
	if of == "" {
		return
	}
	r.Payment = []string{of}
	r.Reference = r.first(at + "/order-id")
	r.add(order.Fact{Kind: order.KindRefunded, Ref: r.text(at + "/id"), Status: status}, braintreeMoney(r, at))
}

func braintreeRefundFailed(r *reader) { braintreeRefund(r, order.StatusFailed) }

// braintreeNewest is where the newest transaction of a subscription stands; "" if
// it has none.
func braintreeNewest(r *reader) string {
	const list = "/subject/subscription/transactions"
	all := r.at(list).elements(100)
	newest, at := "", time.Time{}
	for i := range all {
		one := list + "/" + strconv.Itoa(i)
		created := r.date(one + "/created-at")
		if created.IsZero() && len(all) > 1 {
			r.fail("%s has no created-at that can be read", one)
		}
		if newest == "" || created.After(at) {
			newest, at = one, created
		}
	}
	return newest
}

// braintreeRenewal: the transaction says on which day the billing period begins
// that it is for, and no time. The merchant may choose the subscription's id.
func braintreeRenewal(r *reader, at string) {
	r.Renewal = renews(r.source, time.Time{}, r.first("/subject/subscription/id"))
	if on := r.at(at + "/subscription/billing-period-start-date").Str; isDay(on) {
		r.Renewal.On = on
	}
}

func braintreeCharged(r *reader) {
	if at := braintreeNewest(r); at != "" {
		id := braintreePayment(r, at)
		braintreeRenewal(r, at)
		m := braintreeMoney(r, at)
		r.own(m)
		r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: order.StatusOK}, m)
	}
}

func braintreeNotCharged(r *reader) {
	if at := braintreeNewest(r); at != "" {
		braintreePayment(r, at)
		braintreeRenewal(r, at)
		r.phase(order.StatusFailed, 0)
	}
}

// braintreeApproved: the money left the shopper and waits for a transaction. One
// that is there already says how far it is.
func braintreeApproved(r *reader) {
	const at = "/subject/local-payment"
	r.Payment = []string{r.text(at + "/payment-id")}
	if r.at(at + "/transaction").absent() {
		r.phase(order.StatusProcessing, 0)
		return
	}
	id := braintreePayment(r, at+"/transaction")
	switch r.at(at + "/transaction/status").Str {
	case "settled", "settlement_confirmed":
		r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: order.StatusOK}, braintreeMoney(r, at+"/transaction"))
	default:
		r.phase(order.StatusProcessing, 0)
	}
}

func braintreeFunded(r *reader) {
	const at = "/subject/local-payment-funded"
	r.Payment = []string{r.text(at + "/payment-id")}
	id := braintreePayment(r, at+"/transaction")
	m := braintreeMoney(r, at+"/transaction")
	r.own(m)
	r.add(order.Fact{Kind: order.KindCaptured, Ref: id, Status: order.StatusOK}, m)
}

// braintreeLocal: a local payment that ended without a transaction.
func braintreeLocal(phase order.Status) func(*reader) {
	at := map[order.Status]string{order.StatusExpired: "/subject/local-payment-expired", order.StatusCanceled: "/subject/local-payment-reversed"}[phase]
	return func(r *reader) {
		r.Payment = []string{r.text(at + "/payment-id")}
		r.phase(phase, 0)
	}
}

// braintreeDispute: by the kind of the notification, in the order of their times.
func braintreeDispute(status order.Status) func(*reader) {
	return func(r *reader) {
		const at = braintreeDisputeAt
		r.Payment = []string{r.text(at + "/transaction/id")}
		r.Reference = r.first(at + "/transaction/order-id")
		amount := at + "/amount-disputed"
		if r.at(amount).absent() {
			amount = at + "/amount"
		}
		m := r.major(amount, r.currency(at+"/currency-iso-code"))
		f := order.Fact{Kind: order.KindDisputed, Ref: r.text(at + "/id"), Status: status, Seq: r.order()}
		// A retrieval only asks for documents: whoever does not answer loses no money
		// by it, and a chargeback may follow, which is a dispute of its own.
		if status == order.StatusLost && r.at(at+"/kind").Str == "retrieval" {
			f.Status = order.StatusWon
		}
		r.add(f, m)
	}
}

// braintreeMisfit: not every notification names the merchant account. One that
// tells of money must, where the source names its own.
func braintreeMisfit(r *reader) order.Misfit {
	places := []string{
		braintreeTransactionAt, braintreeDisputeAt, "/subject/local-payment/transaction", "/subject/local-payment-funded/transaction",
	}
	if newest := braintreeNewest(r); newest != "" {
		places = append(places, newest)
	}
	for _, at := range places {
		if !r.at(at + "/merchant-account-id").absent() {
			return r.account(at + "/merchant-account-id")
		}
	}
	money := slices.ContainsFunc(r.Facts, func(f order.Fact) bool { return f.Kind != order.KindPhase })
	if money && len(r.source.MerchantAccounts) > 0 {
		return order.MisfitAccount
	}
	return ""
}
