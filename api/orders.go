package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

func (a *API) orderEndpoints() {
	add(a, endpoint{
		ID: "getOrder", Method: http.MethodGet, Path: "/v1/orders/{id}", Tag: tagOrders, Role: roleRead,
		Summary: "Show an order", Codes: []Code{CodeOrderNotFound}, Response: orderExample,
	}, a.getOrder)
}

type getOrderIn struct {
	ID string `path:"id" format:"uuid" doc:"The order's id."`
}

func (a *API) getOrder(ctx context.Context, c *call, in *getOrderIn) (*orderOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, orderNotFound()
	}
	o, err := a.orders.GetOrder(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, orderNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", id, err)
	}
	c.order = o.ID.String()
	return shown(http.StatusOK, o)
}
