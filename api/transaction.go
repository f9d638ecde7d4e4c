package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const (
	tagTransactions     = "transactions"
	resourceTransaction = "transaction"
)

// transactionDoc is a call that moves money, as the merchant sees it. Neither what is sent nor credentials are part of it.
type transactionDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID          uuid.UUID               `json:"id" format:"uuid" doc:"The gateway keeps it with what it makes, where it can."`
	ExternalRef *string                 `json:"external_ref" doc:"Your own name of it. Null: it has none."`
	OrderID     uuid.UUID               `json:"order_id" format:"uuid"`
	OrderRef    string                  `json:"order_ref" doc:"That order's external_ref."`
	Kind        order.MovementKind      `json:"kind"`
	Amount      int64                   `json:"amount" doc:"Minor units of currency. Of a void: what was held."`
	Currency    string                  `json:"currency"`
	Payment     list[string]            `json:"payment" doc:"Every id that its payment was known under."`
	Source      string                  `json:"source" doc:"The source with whose credentials the gateway is called."`
	Gateway     string                  `json:"gateway"`
	Status      store.TransactionStatus `json:"status"`
	Text        string                  `json:"text" doc:"How it stands, and what is being done about it, in a sentence."`

	Epoch          int    `json:"epoch" doc:"Counts the keys: another one is taken only where nothing was done under the one before."`
	IdempotencyKey string `json:"idempotency_key" doc:"With which the gateway is called. You find the call by it there."`
	Attempts       int    `json:"attempts" doc:"How often it was sent, always with the same bytes and this key."`

	GatewayRef *string   `json:"gateway_ref" doc:"The gateway's id of what it made: the refund, the capture."`
	Code       *string   `json:"code" doc:"Why it stands so: a code word of the gateway's or of ours."`
	Detail     *string   `json:"detail" doc:"The same for people."`
	Reason     *string   `json:"reason" doc:"As it was asked for."`
	Metadata   anyObject `json:"metadata,omitempty" doc:"As it was asked for."`

	CreatedAt time.Time  `json:"created_at"`
	SentAt    *time.Time `json:"sent_at" doc:"When it was sent first, with this key."`
	NextAt    *time.Time `json:"next_at" doc:"When it is sent or looked up next. Null: it waits for its turn, a webhook or a person, or is settled."`
	SettledAt *time.Time `json:"settled_at" doc:"When it succeeded or failed."`
}

func transactionOf(t store.Transaction) transactionDoc {
	return transactionDoc{
		ID: t.ID, ExternalRef: textOrNull(t.Ref), OrderID: t.Order, OrderRef: t.OrderRef, Kind: t.Kind, Amount: t.Amount.Minor, Currency: t.Amount.Currency,
		Payment: t.Movement.Payment, Source: t.Source, Gateway: t.Gateway, Status: t.Status, Text: explain.Transaction(t),
		Epoch: t.Epoch, IdempotencyKey: t.Key, Attempts: t.Attempts,
		GatewayRef: textOrNull(t.GatewayRef), Code: textOrNull(t.Code), Detail: textOrNull(t.Detail), Reason: textOrNull(t.Reason), Metadata: anyObject(t.Metadata),
		CreatedAt: t.CreatedAt, SentAt: t.SentAt, NextAt: t.NextAt, SettledAt: t.SettledAt,
	}
}

// transactionOut is an answer that shows a transaction.
type transactionOut struct {
	Status   int
	Location string `header:"Location" doc:"Where the transaction is; of 201 and 200 to a POST that asks for one."`
	Body     dataOf[transactionDoc]
}

func shownTransaction(status int, t store.Transaction) *transactionOut {
	return &transactionOut{Status: status, Body: dataOf[transactionDoc]{transactionOf(t)}}
}

func transactionPath(id uuid.UUID) string { return "/v1/transactions/" + id.String() }

func transactionNotFound() *Problem {
	return problem(CodeTransactionNotFound, "This account has no transaction of that id.")
}

type (
	movementKindWord      string
	transactionStatusWord string
)

// Schema documents the kinds there are.
func (movementKindWord) Schema(huma.Registry) *huma.Schema {
	return words(order.MovementKinds(), "")
}

// Schema documents the statuses there are.
func (transactionStatusWord) Schema(huma.Registry) *huma.Schema {
	return words(store.TransactionStatuses(), "pending: not sent yet. sent: sent, or about to be; the answer is awaited, or was none. "+
		"succeeded: the gateway has done it or taken it on. failed: it has not done it. uncertain: nobody knows; it is looked up, or a person must look.")
}

const transactionExample = `{"data": {
  "id": "0199a1b2-0000-7000-8000-000000000004", "external_ref": "ord_123:return-1", "order_id": "0199a1b2-0000-7000-8000-000000000001", "order_ref": "ord_123",
  "kind": "refund", "amount": 2000, "currency": "EUR", "payment": ["ch_1", "pi_1"], "source": "stripe", "gateway": "stripe", "status": "pending",
  "text": "Refund of 20.00 EUR of ch_1 = pi_1 (ord_123:return-1) was asked for; stripe is called next.",
  "epoch": 1, "idempotency_key": "6f4c2a51-6f0e-5a43-9a35-2f4c7b6f1d10", "attempts": 0,
  "gateway_ref": null, "code": null, "detail": null, "reason": "size did not fit", "metadata": {"external_ref": "ord_123:return-1"},
  "created_at": "2026-10-05T09:00:00Z", "sent_at": null, "next_at": "2026-10-05T09:00:00Z", "settled_at": null}}`

// movementCodes are what a movement may be refused for.
var movementCodes = []Code{CodeOrderNotFound, CodePaymentNotFound, CodePaymentAmbiguous, CodeNothingToMove, CodeAmountExceeds, CodeNotCallable, CodePossibleDuplicate}

const movementAbout = "\n\n201: this request entered the transaction, which is carried out from then on; its status is `pending`, and `GET /v1/transactions/{id}` tells how it goes on. " +
	"200: its metadata.external_ref was used before; the transaction is shown as it stands, and nothing of this request is taken.\n\n" +
	"How much there is to move is decided under the order's lock, by what the gateway has told and by what was asked for before. Without an external_ref, " +
	"the same amount of the same payment is taken once in a minute of the clock (UTC), with an Idempotency-Key or without one: 409 `possible_duplicate`. " +
	"The order's sums change with the gateway's own events, not with this answer."

func (a *API) transactionEndpoints() {
	const request = `{"data": {"amount": 2000, "reason": "size did not fit", "metadata": {"external_ref": "ord_123:return-1"}}}`
	add(a, endpoint{
		ID: "createCapture", Method: http.MethodPost, Path: "/v1/orders/{id}/captures", Tag: tagTransactions, Role: roleWrite,
		Summary:     "Capture an authorized payment",
		Description: "Has the gateway take what is authorized: all that is left of it, or the amount that is named." + movementAbout,
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK}, Codes: movementCodes,
		Request: `{"data": {"amount": 2000, "metadata": {"external_ref": "ord_123:parcel-1"}}}`,
		Response: `{"data": ` + replaced(transactionExample, `"kind": "refund"`, `"kind": "capture"`, "Refund of", "Capture of", "ord_123:return-1", "ord_123:parcel-1",
			`"reason": "size did not fit"`, `"reason": null`) + `}`,
	}, a.createCapture)
	add(a, endpoint{
		ID: "createRefund", Method: http.MethodPost, Path: "/v1/orders/{id}/refunds", Tag: tagTransactions, Role: roleWrite,
		Summary:     "Refund a payment",
		Description: "Has the gateway give back what was captured: all that is left of it, or the amount that is named." + movementAbout,
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK}, Codes: movementCodes,
		Request: request, Response: transactionExample,
	}, a.createRefund)
	add(a, endpoint{
		ID: "createVoid", Method: http.MethodPost, Path: "/v1/orders/{id}/voids", Tag: tagTransactions, Role: roleWrite,
		Summary: "Let go of an authorized payment",
		Description: "Has the gateway release what it holds, all of it: only while nothing was captured (409 `nothing_to_move`; refund that). " +
			"Canceling an order does this by itself." + movementAbout,
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK}, Codes: movementCodes,
		Request: `{"data": {"payment": "pi_1"}}`,
		Response: `{"data": ` + replaced(transactionExample, `"kind": "refund"`, `"kind": "void"`, "Refund of 20.00", "Void of 50.00", `"amount": 2000`, `"amount": 5000`,
			` (ord_123:return-1)`, "", `"external_ref": "ord_123:return-1",`, `"external_ref": null,`,
			`"reason": "size did not fit", "metadata": {"external_ref": "ord_123:return-1"}`, `"reason": null`) + `}`,
	}, a.createVoid)
	add(a, endpoint{
		ID: "listTransactions", Method: http.MethodGet, Path: "/v1/transactions", Tag: tagTransactions, Role: roleRead,
		Summary: "List transactions, the newest first", Description: "All filters must hold. status=uncertain are those that may want a person.",
		Codes: []Code{CodeInvalidCursor}, Response: pageExample(transactionExample),
	}, a.listTransactions)
	add(a, endpoint{
		ID: "getTransaction", Method: http.MethodGet, Path: "/v1/transactions/{id}", Tag: tagTransactions, Role: roleRead,
		Summary: "Show a transaction", Description: "How the call stands. What it brought about is in its order's timeline.",
		Codes: []Code{CodeTransactionNotFound}, Response: transactionExample,
	}, a.getTransaction)
	add(a, endpoint{
		ID: "resolveTransaction", Method: http.MethodPost, Path: "/v1/transactions/{id}/resolve", Tag: tagTransactions, Role: roleOperate,
		Summary: "Say what became of an uncertain transaction",
		Description: "A person has looked at the gateway, by the transaction's idempotency_key or id, and says what was found there.\n\n" +
			"`succeeded`: it was done. `failed`: it was not done, and is not to be. Both settle the transaction and move nothing: the order follows the gateway's events. " +
			"`not_done`: it was not done, and **is called anew, under another key**. If it was done after all, money moves twice; so say it only of what you have seen.\n\n" +
			"Only while its status is uncertain, and nobody looks it up at this moment: else 409 `not_uncertain`. So sent again without an Idempotency-Key it says nothing twice.",
		Idempotency: protected, Codes: []Code{CodeTransactionNotFound, CodeNotUncertain},
		Request: `{"data": {"outcome": "succeeded", "gateway_ref": "re_1", "note": "the refund is in the dashboard"}}`,
		Response: `{"data": ` + replaced(transactionExample, `"status": "pending"`, `"status": "succeeded"`,
			"was asked for; stripe is called next.", "was asked of stripe, and succeeded (re_1) at 2026-10-05 12:00:00 (a person says: the refund is in the dashboard).",
			`"attempts": 0`, `"attempts": 9`, `"gateway_ref": null, "code": null, "detail": null`, `"gateway_ref": "re_1", "code": "person", "detail": "the refund is in the dashboard"`,
			`"sent_at": null, "next_at": "2026-10-05T09:00:00Z", "settled_at": null`, `"sent_at": "2026-10-05T09:00:00Z", "next_at": null, "settled_at": "2026-10-05T12:00:00Z"`) + `}`,
	}, a.resolveTransaction)
}
