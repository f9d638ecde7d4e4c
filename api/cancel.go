package api

import (
	"context"
	"net/http"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) cancelEndpoint() {
	add(a, endpoint{
		ID: "cancelOrder", Method: http.MethodPost, Path: "/v1/orders/{id}/cancel", Tag: tagOrders, Role: roleWrite,
		Summary: "Cancel an order",
		Description: "Nothing is to be paid or delivered any more. Only while no money is kept for it: refund that at the gateway first. Money that comes " +
			"after all is flagged paid_after_cancel, and nothing is fulfilled for it.\n\n" +
			"A canceled order stays so; canceling it again changes nothing and answers 200, with an Idempotency-Key or without one.",
		Idempotency: protected, Codes: []Code{CodeOrderNotFound, CodeUnregistered, CodeMoneyKept}, Response: orderExample,
	}, a.cancelOrder)
}

type orderPathIn struct {
	ID string `path:"id" format:"uuid" doc:"The order's id."`
}

func (a *API) cancelOrder(ctx context.Context, c *call, in *orderPathIn) (*orderOut, error) {
	return a.onOrder(ctx, c, in.ID, func(_ store.Tx, o store.Order) (order.Event, error) {
		return order.Event{
			// One id for ever: whoever says it again says nothing new.
			ID: store.EventID("cancel", o.ID.String()), Type: "order.canceled", Reference: o.Ref, Strength: order.StrengthPerson,
			Command: &order.Command{Cancel: true},
		}, nil
	})
}
