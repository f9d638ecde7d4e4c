package store

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// How money is moved at a gateway. A row of transactions says what is to be called, to the byte; its next_at is a promise like
// that of fetches: a job or the ticker comes at or soon after it.
//
//	enter    under the order's lock: what can still move is known, what was asked for and not told of yet is taken off
//	claim    one of a payment at a time, for the time of a lease, and commit; from the first claim on it may have been sent
//	call     no transaction, no lock; the same bytes under the same key as long as it is not known what became of them
//	settle   what the answer says happened is entered as events are, and what became of the call, in one transaction
//
//	pending → sent → succeeded | failed | uncertain; uncertain → succeeded | failed, or pending anew under another key once it is
//	proven that nothing was done

// TransactionStatus is what is known of a call that moves money.
type TransactionStatus string

// The statuses of transactions.
const (
	TransactionPending   TransactionStatus = "pending"   // entered; nothing was sent
	TransactionSent      TransactionStatus = "sent"      // sent, or about to be: what became of it is not known yet
	TransactionSucceeded TransactionStatus = "succeeded" // the gateway has done it, or taken it on: its webhooks tell how it goes on
	TransactionFailed    TransactionStatus = "failed"    // the gateway has not done it
	TransactionUncertain TransactionStatus = "uncertain" // asking again in the same way would not tell: it is looked up, or a person must look
)

// TransactionStatuses returns every status, in the order in which documents list them.
func TransactionStatuses() []TransactionStatus {
	return []TransactionStatus{TransactionPending, TransactionSent, TransactionSucceeded, TransactionFailed, TransactionUncertain}
}

// Open reports whether it is still to be found out what becomes of it.
func (s TransactionStatus) Open() bool {
	return s == TransactionPending || s == TransactionSent || s == TransactionUncertain
}

const openTransaction = `status IN ('pending', 'sent', 'uncertain')`

// Request is a call as it is stored: without key and credentials.
type Request struct {
	Method string
	Path   string            // escaped, with its query
	Header map[string]string // nothing secret
	Body   []byte
}

// Transaction is one call that moves money.
type Transaction struct {
	Account  string             `json:"account"`
	ID       uuid.UUID          `json:"id"`
	Ref      string             `json:"external_ref,omitempty"` // the merchant's
	Order    uuid.UUID          `json:"order"`
	OrderRef string             `json:"order_ref"`
	Payment  uuid.UUID          `json:"payment"` // our id of it, as it was called when the row was entered
	Source   string             `json:"source"`
	Gateway  string             `json:"gateway"`
	Kind     order.MovementKind `json:"kind"`
	Amount   order.Amount       `json:"amount"`
	Reason   string             `json:"reason,omitempty"`
	Metadata json.RawMessage    `json:"metadata,omitempty"`
	Status   TransactionStatus  `json:"status"`
	Movement order.Movement     `json:"movement"`

	Epoch    int    `json:"epoch"`
	Key      string `json:"key"`
	Attempts int    `json:"attempts"` // in this epoch
	Lookups  int    `json:"lookups"`

	GatewayRef string `json:"gateway_ref,omitempty"` // the gateway's id of what it made; empty: not known
	Code       string `json:"code,omitempty"`        // why it stands so, in a code word; empty: nothing went wrong
	Detail     string `json:"detail,omitempty"`      // in a sentence

	SentAt       *time.Time `json:"sent_at,omitempty"`       // for the first time in this epoch
	ClaimedUntil *time.Time `json:"claimed_until,omitempty"` // it is being called, or looked up, right now
	NextAt       *time.Time `json:"next_at,omitempty"`       // when it is called or looked up; nil: it waits for another one of the payment, for a webhook, or a person
	SettledAt    *time.Time `json:"settled_at,omitempty"`
	CreatedAt    time.Time  `json:"created_at"`
}

// TransactionKey is the key that the calls of one epoch of a transaction go with: a function of both and of nothing else, so that
// any process at any time comes to the same. It is a UUID (RFC 9562, version 5 in the name space of the transaction's id), 36
// characters, which every gateway takes.
func TransactionKey(id uuid.UUID, epoch int) string {
	return uuid.NewSHA1(id, fmt.Appendf(nil, "epoch:%d", epoch)).String()
}

// transactionRecord are the columns of a Transaction; t is the row and o its order.
const transactionRecord = `t.account_id, t.id, coalesce(t.external_ref, ''), t.order_id, o.external_ref, t.payment_id, t.source_id, t.gateway, t.kind,
	t.amount, t.currency, coalesce(t.reason, ''), t.metadata, t.status, t.movement, t.epoch, t.key, t.attempts, t.lookups,
	coalesce(t.gateway_ref, ''), coalesce(t.code, ''), coalesce(t.detail, ''), t.sent_at, t.claimed_until, t.next_at, t.settled_at, t.created_at`

const sqlTransactions = `SELECT ` + transactionRecord + ` FROM transactions t JOIN orders o ON o.account_id = t.account_id AND o.id = t.order_id`

const (
	byTransactionID  = ` WHERE t.account_id = $1 AND t.id = $2`
	byTransactionRef = ` WHERE t.account_id = $1 AND t.external_ref = $2`
)

func (t *Transaction) dest() []any {
	return []any{
		&t.Account, &t.ID, &t.Ref, &t.Order, &t.OrderRef, &t.Payment, &t.Source, &t.Gateway, &t.Kind,
		&t.Amount.Minor, &t.Amount.Currency, &t.Reason, &t.Metadata, &t.Status, &t.Movement, &t.Epoch, &t.Key, &t.Attempts, &t.Lookups,
		&t.GatewayRef, &t.Code, &t.Detail, &t.SentAt, &t.ClaimedUntil, &t.NextAt, &t.SettledAt, &t.CreatedAt,
	}
}

func scanTransaction(row pgx.CollectableRow) (t Transaction, err error) {
	err = row.Scan(t.dest()...)
	return t, err
}
