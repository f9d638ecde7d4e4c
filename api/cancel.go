package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) cancelEndpoint() {
	add(a, endpoint{
		ID: "cancelOrder", Method: http.MethodPost, Path: "/v1/orders/{id}/cancel", Tag: tagOrders, Role: roleWrite,
		Summary: "Cancel an order",
		Description: "Nothing is to be paid or delivered any more. Only while no money is kept for it: refund that first. Money that comes " +
			"after all is flagged paid_after_cancel, and nothing is fulfilled for it.\n\n" +
			"What is authorized is let go of: voids are the transactions that ask the gateways for it, committed with the cancellation; todo says of each authorization " +
			"that cannot be let go of from here why, and what is left to do. The order is canceled all the same.\n\n" +
			"A canceled order stays so; canceling it again changes nothing and answers 200, with an Idempotency-Key or without one, and asks for no second void of a payment.",
		Idempotency: protected, Codes: []Code{CodeOrderNotFound, CodeUnregistered, CodeMoneyKept},
		Response: `{"data": ` + inner(orderExample) + `, "voids": [], "todo": []}`,
	}, a.cancelOrder)
}

type orderPathIn struct {
	ID string `path:"id" format:"uuid" doc:"The order's id."`
}

// cancelOut is the answer to a cancellation.
type cancelOut struct {
	ETag string `header:"ETag" doc:"The order's version, in quotes." example:"\"3\""`
	Body canceledDoc
}

// canceledDoc is the order, and what becomes of what is authorized for it.
type canceledDoc struct {
	Data  orderDoc             `json:"data"`
	Voids list[transactionDoc] `json:"voids" doc:"All that have ever been asked for."`
	Todo  list[string]         `json:"todo" doc:"What is left to do about authorizations that cannot be let go of from here, a sentence each."`
}

func (a *API) cancelOrder(ctx context.Context, c *call, in *orderPathIn) (out *cancelOut, err error) {
	err = a.unit(ctx, func(tx store.Tx) error {
		o, err := a.orderTx(ctx, tx, c, in.ID)
		if err != nil {
			return err
		}
		_, err = a.command(ctx, tx, c, order.Event{
			// One id for ever: whoever says it again says nothing new.
			ID: store.EventID("cancel", o.ID.String()), Type: "order.canceled", Reference: o.Ref, Strength: order.StrengthPerson,
			Command: &order.Command{Cancel: true},
		}, store.Condition{})
		if err != nil {
			return refused(err)
		}
		out, err = a.canceled(ctx, tx, c, o)
		return err
	})
	return out, err
}

// canceled lets go of what is authorized for a canceled order, and is the answer.
func (a *API) canceled(ctx context.Context, tx store.Tx, c *call, o store.Order) (*cancelOut, error) {
	todo, err := a.letGo(ctx, tx, o)
	if err != nil {
		return nil, err
	}
	said, err := a.commanded(ctx, tx, c, http.StatusOK, o.ID)
	if err != nil {
		return nil, err
	}
	out := &cancelOut{ETag: said.ETag, Body: canceledDoc{Data: said.Body.Data, Todo: todo}}
	all, err := a.store.OrderTransactions(ctx, tx, o.Account, o.ID)
	if err != nil {
		return nil, err
	}
	for _, t := range all {
		if t.Kind == order.MovementVoid {
			out.Body.Voids = append(out.Body.Voids, transactionOf(t))
		}
	}
	return out, nil
}

// letGo has the gateways release what is authorized for an order, and says of what they cannot be asked to why.
func (a *API) letGo(ctx context.Context, tx store.Tx, o store.Order) (todo []string, err error) {
	held, err := a.store.Reservations(ctx, tx, o.Account, o.ID)
	if err != nil {
		return nil, err
	}
	n := store.NewTransaction{Account: o.Account, Order: o.ID, Kind: order.MovementVoid, Reason: "order canceled"}
	n.Realms, n.Prepare = a.callable(o.Account)
	for _, r := range held {
		n.Payment, n.Currency = r.Payment, r.Amount.Currency
		_, err := a.store.CreateTransaction(ctx, tx, n)
		var (
			not *gateway.CallError
			no  *store.MoveRefusal
		)
		switch {
		case errors.As(err, &not):
			todo = append(todo, leftTo(r, "The call cannot be made: "+sentence(not.Detail)))
		case errors.As(err, &no) && no.Code == store.MoveNotCallable:
			todo = append(todo, leftTo(r, a.whyNotCallable(o.Account, no.Origins)))
		case err != nil:
			return nil, fmt.Errorf("void payment %s of order %s: %w", r.Payment, o.ID, err)
		}
	}
	return todo, nil
}

// leftTo says what a person has to do about an authorization.
func leftTo(r store.Reservation, why string) string {
	return fmt.Sprintf("%s %s stay authorized by %s: let go of it at its gateway. %s", order.Format(r.Amount.Minor, r.Amount.Currency), r.Amount.Currency, r.Payment, why)
}
