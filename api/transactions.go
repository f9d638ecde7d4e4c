package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type transactionPathIn struct {
	ID string `path:"id" format:"uuid" doc:"The transaction's id."`
}

func (a *API) getTransaction(ctx context.Context, c *call, in *transactionPathIn) (*transactionOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, transactionNotFound()
	}
	found, err := a.store.GetTransaction(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, transactionNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read transaction %s: %w", id, err)
	}
	c.order = found.Order.String()
	return shownTransaction(http.StatusOK, found), nil
}

type listTransactionsIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	OrderID      string                  `query:"order_id" format:"uuid" doc:"Only those of this order."`
	Status       store.TransactionStatus `query:"status" doc:"Only in this status."`
	ExternalRef  string                  `query:"external_ref" maxLength:"255" doc:"Only the transaction of this name."`
	CreatedFrom  time.Time               `query:"created_from" doc:"Only those entered at or after this time."`
	CreatedUntil time.Time               `query:"created_until" doc:"Only those entered before this time."`
}

type listTransactionsOut struct {
	Body pageOf[transactionDoc]
}

func (a *API) listTransactions(ctx context.Context, c *call, in *listTransactionsIn) (*listTransactionsOut, error) {
	at, err := cursorOf(listTransactions, in.Cursor)
	if err != nil {
		return nil, err
	}
	f := store.TransactionFilter{
		Account: c.key.Account, Ref: in.ExternalRef, Status: in.Status, CreatedFrom: in.CreatedFrom, CreatedUntil: in.CreatedUntil,
		Before: at.ID, Limit: in.Limit,
	}
	if in.OrderID != "" {
		if f.Order, err = uuid.Parse(in.OrderID); err != nil {
			return nil, badParameter("order_id", "invalid_uuid", "must be a UUID")
		}
	}
	found, next, err := a.store.ListTransactions(ctx, f)
	if err != nil {
		return nil, err
	}
	out := &listTransactionsOut{}
	for _, t := range found {
		out.Body.Data = append(out.Body.Data, transactionOf(t))
	}
	if next != uuid.Nil {
		out.Body.Next, err = cursor{List: listTransactions, ID: next}.next()
	}
	return out, err
}

type resolveTransactionIn struct {
	ID   string `path:"id" format:"uuid" doc:"The transaction's id."`
	Body dataOf[resolutionDoc]
}

// resolutionDoc is what a person has found out.
type resolutionDoc struct {
	Outcome    string    `json:"outcome" enum:"succeeded,failed,not_done" doc:"not_done: nothing was done, and it is called anew, under another key."`
	GatewayRef name      `json:"gateway_ref,omitempty" doc:"The gateway's id of what it made, of succeeded."`
	Note       plainNote `json:"note"`
}

// plainNote is what a person writes down, and must.
type plainNote string

// Schema documents it.
func (plainNote) Schema(huma.Registry) *huma.Schema {
	one := 1
	return &huma.Schema{
		Type: huma.TypeString, Format: formatReference, MinLength: &one,
		Description: fmt.Sprintf("How you know: at most %d bytes of printable text without a space at either end.", order.MaxReference),
	}
}

// outcomes are what a person may say, as the store has it.
var outcomes = map[string]store.TransactionStatus{
	"succeeded": store.TransactionSucceeded, "failed": store.TransactionFailed, "not_done": store.TransactionPending,
}

func (a *API) resolveTransaction(ctx context.Context, c *call, in *resolveTransactionIn) (*transactionOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, transactionNotFound()
	}
	said := in.Body.Data
	if said.GatewayRef != "" && said.Outcome != "succeeded" {
		return nil, invalid([]FieldError{{Pointer: "/data/gateway_ref", Code: "unexpected", Detail: "belongs to the outcome succeeded: where nothing was done, nothing was made"}})
	}
	var t store.Transaction
	err = a.unit(ctx, func(tx store.Tx) (err error) {
		t, err = a.store.ResolveTransaction(ctx, tx, c.key.Account, id, store.MoveResolution{
			Status: outcomes[said.Outcome], GatewayRef: string(said.GatewayRef), Code: store.ResolvedByPerson, Detail: string(said.Note),
		})
		return err
	})
	var no *store.Refusal
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, transactionNotFound()
	case errors.As(err, &no) && no.Code == store.RefusedNotUncertain:
		c.order = no.Order.String()
		return nil, notUncertain(t)
	case err != nil:
		return nil, err
	}
	c.order = t.Order.String()
	idempotency.SetResource(ctx, resourceTransaction, id)
	return shownTransaction(http.StatusOK, t), nil
}

// notUncertain is the problem of a transaction that nobody has to say anything about.
func notUncertain(t store.Transaction) *Problem {
	switch {
	case t.Status == store.TransactionUncertain:
		return problem(CodeNotUncertain, "It is being looked up at this moment. Look at it again in a minute.")
	case t.Status.Open():
		return problemf(CodeNotUncertain, "It is %s: what becomes of it is still being found out.", t.Status)
	}
	return problemf(CodeNotUncertain, "It has %s already.", t.Status)
}
