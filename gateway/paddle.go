package gateway

import (
	"strings"
	"time"

	"github.com/paidonce/paidonce/order"
)

// Paddle maps the events of Paddle Billing. Its rules:
//
//   - A payment is a transaction (txn_…), however often the shopper tries. Each of
//     its events carries the whole transaction: what is captured and in which phase
//     it is are set by the latest, in the order of occurred_at.
//   - A transaction that is paid or completed holds details.totals.grand_total:
//     what was due after discounts, taxes and credits.
//   - The merchant's reference is order_id or external_ref in the transaction's
//     custom_data. What a subscription charges later has it copied from the first
//     sale and is another one: it has no reference. A renewal (origin
//     subscription_recurring) is of the period that billing_period begins, where
//     that reference or the subscription's id is a recurrence. Adjustments have no
//     reference either; they name the transaction.
//   - Refunds are adjustments, by id, with a status of their own. Chargebacks are
//     adjustments too, but what ends one is another adjustment that names only the
//     transaction; so a transaction has one dispute, under its own id, which the
//     latest of them decides.
//   - Credits go to the customer's balance at Paddle and move no money of an order.
//   - Amounts are texts of digits in the smallest unit of the currency.
//   - No byte tells the sandbox from live. Events of the simulator do, by their id:
//     to a live source they are of the wrong mode.
var Paddle = &Gateway{
	Name:     "paddle",
	Title:    "Paddle Billing",
	Docs:     "https://developer.paddle.com/webhooks/overview",
	Scheme:   "paddle",
	Evidence: Solid,
	Manual: Manual{
		Secret:   "Paddle → Developer tools → Notifications → the destination → Secret key (`pdl_ntfset_…`). Each destination has its own.",
		EventID:  "`event_id` (`evt_…`), the same for all destinations and tries. `notification_id` is of the destination, and changes with a replay.",
		Retries:  "60 tries in three days for live accounts, 3 in 15 minutes in the sandbox (remembered, not confirmed).",
		Ordering: "None is promised; `occurred_at` orders them.",
		Notes: "The payload does not tell the sandbox from live. Events of Paddle's simulator (`ntfsimevt_…`) do not count on a live source; set the destination's usage type to platform only. Put the order's reference into `custom_data.order_id` of the transaction. " +
			"Renewals, upgrades and one-time charges of a subscription carry the custom data of its first transaction, so that they get no reference, " +
			"unless a recurrence has that reference or the subscription's id (`sub_…`) as its `external_ref`: a renewal then pays the order of its billing period; " +
			"for orders of your own per charge, set `reference`. " +
			"What a customer pays from a credit balance is not part of `grand_total`, and so not of what is captured. " +
			"Chargebacks of one transaction are one dispute: the amount of the latest counts. " +
			"Subscribe to `adjustment.*` besides `transaction.*`. The time in the signature may be 5 minutes off; `tolerance` changes that.",
	},
	Covers: Coverage{Of: "body"},
	// "Returns 200 within five seconds":
	// https://developer.paddle.com/webhooks/respond-to-webhooks
	Deadline:    5 * time.Second,
	KeepHeaders: []string{"Content-Type", "Paddle-Signature", "User-Agent"},
	Options:     []Option{optionSecrets, optionTolerance},
	Parse:       paddle.parse,
	Types:       paddle.rows.types,
	Sample:      samplePaddle,
	Example: func(seed string) Source {
		return Source{Gateway: "paddle", Mode: Test, Secrets: []string{"pdl_ntfset_" + exampleSecret("paddle", seed)}}
	},
}

var paddle = layout{
	id:  "/event_id",
	typ: "/event_type",
	at:  func(r *reader) time.Time { return r.date("/occurred_at") },
	rows: eventRows{
		{"transaction.created", "a transaction was made", order.StrengthPayment, paddleTransaction},
		{"transaction.ready", "a transaction can be paid", order.StrengthPayment, paddleTransaction},
		{"transaction.billed", "an invoice was issued", order.StrengthPayment, paddleTransaction},
		{"transaction.updated", "a transaction changed", order.StrengthPayment, paddleTransaction},
		{"transaction.revised", "the customer's data on a transaction changed", order.StrengthPayment, paddleTransaction},
		{"transaction.payment_failed", "an attempt to pay failed", order.StrengthPayment, paddleFailed},
		{"transaction.past_due", "a renewal was not paid in time", order.StrengthPayment, paddleTransaction},
		{"transaction.paid", "the money was captured", order.StrengthPayment, paddleTransaction},
		{"transaction.completed", "a paid transaction was worked through", order.StrengthPayment, paddleTransaction},
		{"transaction.canceled", "a transaction was canceled", order.StrengthPayment, paddleTransaction},
		{"adjustment.created", "a refund, credit or chargeback was made", order.StrengthModification, paddleAdjustment},
		{"adjustment.updated", "a refund was decided, or a chargeback reversed", order.StrengthModification, paddleAdjustment},
	},
	// A destination may take the simulator's traffic besides the platform's, signed
	// with the same secret: https://developer.paddle.com/webhooks/simulator/test-webhooks
	misfit: func(r *reader) order.Misfit {
		if r.source.Mode == Live && strings.HasPrefix(r.ID, "ntfsimevt_") {
			return order.MisfitMode
		}
		return ""
	},
}

// paddlePhases are the statuses of transactions.
// https://developer.paddle.com/api-reference/transactions/overview
var paddlePhases = map[string]order.Status{
	"draft": order.StatusProcessing, "ready": order.StatusProcessing, "billed": order.StatusProcessing,
	"paid": order.StatusAuthorized, "completed": order.StatusAuthorized,
	"past_due": order.StatusFailed, "canceled": order.StatusCanceled,
}

// paddleTransaction: the transaction as it is at the time of the event.
func paddleTransaction(r *reader) { paddleSnapshot(r, "") }

// paddleFailed: the status stays as it was ("ready"), so that the type says it.
func paddleFailed(r *reader) { paddleSnapshot(r, order.StatusFailed) }

func paddleSnapshot(r *reader, failed order.Status) {
	r.Payment = []string{r.text("/data/id")}
	// https://developer.paddle.com/build/transactions/custom-data (copied to later
	// transactions); changing the card of a subscription is a transaction too.
	ref := r.first("/data/custom_data/order_id", "/data/custom_data/external_ref")
	switch origin := r.at("/data/origin").Str; {
	case origin == "subscription_recurring":
		r.Renewal = renews(r.source, r.date("/data/billing_period/starts_at"), r.first("/data/subscription_id"), ref)
	case !strings.HasPrefix(origin, "subscription_"):
		r.Reference = ref
	}
	phase, known := paddlePhases[r.text("/data/status")]
	if !known {
		r.fail("/data/status is none that a transaction has")
	}
	m := order.Amount{Currency: r.currency("/data/currency_code")}
	switch {
	case phase == order.StatusAuthorized:
		m = r.minorText("/data/details/totals/grand_total", m.Currency)
		r.own(m)
	case failed != "" && phase == order.StatusProcessing:
		phase = failed
	}
	r.phase(phase, r.order())
	r.add(order.Fact{Kind: order.KindCaptured, Seq: r.order()}, m)
}

// paddleRefunds are the statuses of adjustments. A refund that Paddle does not
// approve never happened.
// https://developer.paddle.com/api-reference/adjustments/overview
var paddleRefunds = map[string]order.Status{
	"pending_approval": order.StatusPending, "approved": order.StatusOK,
	"rejected": order.StatusDenied, "reversed": order.StatusFailed,
}

// paddleDisputes are what the actions of adjustments mean that are about
// chargebacks. Paddle makes one of action chargeback when the customer has
// disputed successfully, and defends it by itself.
var paddleDisputes = map[string]order.Status{
	"chargeback_warning": order.StatusOpen, "chargeback_warning_reverse": order.StatusWon,
	"chargeback": order.StatusLost, "chargeback_reverse": order.StatusWon,
}

func paddleAdjustment(r *reader) {
	payment := r.text("/data/transaction_id")
	r.Payment = []string{payment}
	action := r.text("/data/action")
	status, known := paddleRefunds[r.text("/data/status")]
	if !known {
		r.fail("/data/status is none that an adjustment has")
	}
	m := r.minorText("/data/totals/total", r.currency("/data/currency_code"))
	switch dispute := paddleDisputes[action]; {
	case action == "refund":
		r.add(order.Fact{Kind: order.KindRefunded, Ref: r.text("/data/id"), Status: status, Seq: r.order()}, m)
	case dispute != "":
		if status == order.StatusFailed { // reversed
			dispute = order.StatusWon
		}
		r.add(order.Fact{Kind: order.KindDisputed, Ref: payment, Status: dispute, Seq: r.order()}, m)
	case action != "credit" && action != "credit_reverse":
		r.fail("/data/action is none that an adjustment has")
	}
}

// samplePaddle makes an event in the shape of API version 1. An adjustment is a
// refund, unless Set makes it something else.
func samplePaddle(r SampleRequest) ([]byte, error) {
	if paddle.rows.find(r.Type) == nil {
		return nil, unknownSample("paddle", r.Type, paddle.rows.types(r.Source))
	}
	r = r.withDefaults()
	n, err := exponents(nil).theirsText(r.Amount.Minor, r.Amount.Currency)
	if err != nil {
		return nil, err
	}
	at := r.At.Format("2006-01-02T15:04:05.000000Z")
	txn := r.paymentID("txn_", 26)
	data := paddleSampleTransaction(r, txn, n, at)
	if r.Type == "adjustment.created" || r.Type == "adjustment.updated" {
		status := "pending_approval"
		if r.Type == "adjustment.updated" {
			status = "approved"
		}
		data = fields{
			"id": r.refID("adj_", 26, txn), "action": "refund", "type": "partial", "transaction_id": txn, "status": status,
			"reason": "requested_by_customer", "currency_code": r.Amount.Currency, "items": []any{},
			"totals":     fields{"subtotal": n, "tax": "0", "total": n, "fee": "0", "earnings": n, "currency_code": r.Amount.Currency},
			"created_at": at, "updated_at": at,
		}
	}
	id := r.ID
	if id == "" {
		id = "evt_" + derive(26, r.Type, txn, r.Ref, n, r.Amount.Currency, at, r.Mode)
	}
	return render(fields{
		"event_id": id, "event_type": r.Type, "occurred_at": at, "notification_id": "ntf_" + derive(26, "notification", id), "data": data,
	}, r.Set, same)
}

func paddleSampleTransaction(r SampleRequest, txn, n, at string) fields {
	status := map[string]string{
		"transaction.created": "draft", "transaction.billed": "billed", "transaction.past_due": "past_due", "transaction.paid": "paid",
		"transaction.completed": "completed", "transaction.revised": "completed", "transaction.canceled": "canceled",
	}[r.Type]
	if status == "" {
		status = "ready"
	}
	balance := n
	if paddlePhases[status] == order.StatusAuthorized {
		balance = "0"
	}
	custom := any(nil)
	if r.Reference != "" {
		custom = fields{"order_id": r.Reference}
	}
	return fields{
		"id": txn, "status": status, "origin": "web", "collection_mode": "automatic", "currency_code": r.Amount.Currency,
		"custom_data": custom, "items": []any{}, "payments": []any{}, "created_at": at, "updated_at": at,
		"details": fields{"totals": fields{
			"subtotal": n, "tax": "0", "discount": "0", "total": n, "credit": "0", "balance": balance, "grand_total": n,
			"currency_code": r.Amount.Currency,
		}},
	}
}
