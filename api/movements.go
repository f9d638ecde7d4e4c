package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

type createMovementIn struct {
	ID   string `path:"id" format:"uuid" doc:"The order's id."`
	Body dataOf[newMovementDoc]
}

// newMovementDoc is what is said when money is to be captured or refunded. An amount that is null is refused: it comes from a
// program that has lost what it meant to send, and would mean all.
type newMovementDoc struct {
	Amount   minor        `json:"amount,omitempty" minimum:"1" doc:"Absent: all that can move."`
	Currency currencyCode `json:"currency,omitempty" doc:"Absent: the order's."`
	Payment  namedPayment `json:"payment,omitempty"`
	Reason   name         `json:"reason,omitempty" doc:"For the gateway's records, where it keeps any."`
	Metadata metadata     `json:"metadata,omitempty"`
}

type createVoidIn struct {
	ID   string `path:"id" format:"uuid" doc:"The order's id."`
	Body dataOf[newVoidDoc]
}

// newVoidDoc is what is said when an authorization is to be let go of: all of it, always.
type newVoidDoc struct {
	Currency currencyCode `json:"currency,omitempty" doc:"Absent: the order's."`
	Payment  namedPayment `json:"payment,omitempty"`
	Reason   name         `json:"reason,omitempty" doc:"For the gateway's records, where it keeps any."`
	Metadata metadata     `json:"metadata,omitempty"`
}

func (a *API) createCapture(ctx context.Context, c *call, in *createMovementIn) (*transactionOut, error) {
	return a.move(ctx, c, order.MovementCapture, in.ID, in.Body.Data)
}

func (a *API) createRefund(ctx context.Context, c *call, in *createMovementIn) (*transactionOut, error) {
	return a.move(ctx, c, order.MovementRefund, in.ID, in.Body.Data)
}

func (a *API) createVoid(ctx context.Context, c *call, in *createVoidIn) (*transactionOut, error) {
	said := in.Body.Data
	return a.move(ctx, c, order.MovementVoid, in.ID, newMovementDoc{Currency: said.Currency, Payment: said.Payment, Reason: said.Reason, Metadata: said.Metadata})
}

// move answers 201 where the request entered the transaction, and 200 with the transaction as it stands where its reference was
// used before.
func (a *API) move(ctx context.Context, c *call, kind order.MovementKind, text string, said newMovementDoc) (*transactionOut, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return nil, orderNotFound()
	}
	n := store.NewTransaction{
		Account: c.key.Account, Order: id, Kind: kind, Payment: string(said.Payment), Amount: int64(said.Amount), Currency: string(said.Currency), Reason: string(said.Reason),
	}
	if n.Ref, err = said.Metadata.externalRef(); err != nil {
		return nil, err
	}
	if n.Metadata, err = canonical(json.RawMessage(said.Metadata)); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	n.Realms, n.Prepare = a.callable(c.key.Account)
	var entered store.EnteredTransaction
	err = a.unit(ctx, func(tx store.Tx) (err error) {
		entered, err = a.store.CreateTransaction(ctx, tx, n)
		return err
	})
	if err != nil {
		c.order = id.String()
		return nil, a.notMoved(n, err)
	}
	c.order = entered.Order.String()
	idempotency.SetResource(ctx, resourceTransaction, entered.ID)
	if entered.Differs {
		c.note = noteBodyDiffers
	}
	status := http.StatusOK
	if entered.New {
		status = http.StatusCreated
	}
	out := shownTransaction(status, entered.Transaction)
	out.Location = transactionPath(entered.ID)
	return out, nil
}

// notMoved is the problem of a movement that was not entered. Errors that are none pass.
func (a *API) notMoved(n store.NewTransaction, err error) error {
	var (
		twin *store.DuplicateError
		not  *gateway.CallError
		no   *store.MoveRefusal
	)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return orderNotFound()
	case errors.As(err, &twin):
		return possibleDuplicate(twin)
	case errors.As(err, &not):
		return problem(CodeNotCallable, "The call cannot be made: "+sentence(not.Detail))
	case errors.As(err, &no):
		return a.refusedMove(n, no)
	}
	return fmt.Errorf("enter a %s: %w", n.Kind, err)
}

func (a *API) refusedMove(n store.NewTransaction, no *store.MoveRefusal) error {
	var p *Problem
	switch no.Code {
	case store.MoveNoPayment:
		if n.Payment == "" {
			return problem(CodeNothingToMove, "No payment is known for this order.")
		}
		p = problem(CodePaymentNotFound, "This order has no payment of that name.")
		p.Errors = []FieldError{{Pointer: "/data/payment", Code: string(CodePaymentNotFound), Detail: "is no payment of this order"}}
	case store.MoveNothing:
		why, code := explain.NotMovable(n.Kind, no.Why), string(no.Why)
		if no.Under > 0 {
			why += fmt.Sprintf(" Under way are %d minor units: GET /v1/transactions?order_id=%s.", no.Under, n.Order)
		}
		if code == "" {
			code = "under_way"
		}
		p = problem(CodeNothingToMove, why)
		p.Errors = []FieldError{{Pointer: "/data", Code: code, Detail: "asks for what is not there"}}
	case store.MovePaymentAmbiguous:
		names := strings.Join(no.Names, ", ")
		p = problemf(CodePaymentAmbiguous, "Several payments of this order can be meant. Add payment and one of: %s.", names)
		p.Errors = []FieldError{{Pointer: "/data/payment", Code: "ambiguous", Detail: "must be one of " + names}}
	case store.MoveExceeds:
		p = problemf(CodeAmountExceeds, "There is less to %s than that. What calls that are under way move is taken off already.", n.Kind)
		detail := fmt.Sprintf("must be at most %d (minor units of %s)", no.Left.Minor, no.Left.Currency)
		if no.Under > 0 {
			detail += fmt.Sprintf("; %d are under way", no.Under)
		}
		p.Errors = []FieldError{{Pointer: "/data/amount", Code: string(CodeAmountExceeds), Detail: detail}}
		p.Left = &leftDoc{Amount: no.Left.Minor, Currency: no.Left.Currency, UnderWay: no.Under}
	case store.MoveNotCallable:
		return problem(CodeNotCallable, a.whyNotCallable(n.Account, no.Origins))
	default:
		return no
	}
	return p
}
