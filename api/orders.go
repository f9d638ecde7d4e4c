package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) orderEndpoints() {
	add(a, endpoint{
		ID: "createOrder", Method: http.MethodPost, Path: "/v1/orders", Tag: tagOrders, Role: roleWrite,
		Summary: "Register an order",
		Description: "Registers what is sold. Payments find it by metadata.external_ref; without one it gets a reference of ours, to be handed to the gateway.\n\n" +
			"201: this request registered the order, new or a webhook's stub. 200: the reference was registered before; the order is shown as it stands, " +
			"and nothing of this request is taken, or a gateway's amount had made it with another total (flag total_differs).",
		Idempotency: protected, Status: http.StatusCreated, Also: []int{http.StatusOK},
		Request:  `{"data": {"amount": 5000, "currency": "EUR", "items": [{"sku": "A", "qty": 1}], "metadata": {"external_ref": "ord_123"}}}`,
		Response: orderExample,
	}, a.createOrder)
	add(a, endpoint{
		ID: "getOrder", Method: http.MethodGet, Path: "/v1/orders/{id}", Tag: tagOrders, Role: roleRead,
		Summary:     "Show an order",
		Description: "How it stands: what was said about it, and what of that is money. Its version is the ETag, which a change must name in If-Match.",
		Codes:       []Code{CodeOrderNotFound}, Response: orderExample,
	}, a.getOrder)
}

type createOrderIn struct {
	Body dataOf[newOrderDoc]
}

// newOrderDoc is what an order is registered with.
type newOrderDoc struct {
	Amount   minor        `json:"amount"`
	Currency currencyCode `json:"currency"`
	Items    []anyObject  `json:"items,omitempty" maxItems:"1000" doc:"What is sold; objects of your own, kept as they are."`
	Metadata metadata     `json:"metadata,omitempty"`

	ExpiresAt *time.Time `json:"expires_at,omitempty" nullable:"true" doc:"Until when it should be paid. After that it has the flag expired_unpaid, and is paid all the same if money comes. Absent or null: for ever."`
}

// details encodes what is kept beside the amount; nil if there is nothing.
func (d newOrderDoc) details() (json.RawMessage, error) {
	said := map[string]json.RawMessage{}
	if d.Items != nil {
		items, err := json.Marshal(d.Items)
		if err != nil {
			return nil, fmt.Errorf("items: %w", err)
		}
		said["items"] = items
	}
	said["metadata"] = json.RawMessage(d.Metadata)
	for name, raw := range said {
		doc, err := canonical(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if said[name] = doc; doc == nil {
			delete(said, name)
		}
	}
	if len(said) == 0 {
		return nil, nil
	}
	return json.Marshal(said)
}

// noteBodyDiffers is logged where a reference was registered before with another body. It is answered as any repeat:
// the reference alone says which order is meant.
const noteBodyDiffers = "external_ref_body_differs"

// createOrder answers 201 where the request registered the order, new or a webhook's stub, and 200 with the order as
// it stands where it had been registered before, or where a gateway's amount had made it with another total, which
// flags it total_differs.
func (a *API) createOrder(ctx context.Context, c *call, in *createOrderIn) (*orderOut, error) {
	said := in.Body.Data
	ref, err := said.Metadata.externalRef()
	if err != nil {
		return nil, err
	}
	if ref == "" {
		// An order without a name of the merchant's gets one of ours, to be handed to the gateway: payments find their
		// order by it. A repeat of this request is then another order.
		id, err := uuid.NewV7()
		if err != nil {
			return nil, fmt.Errorf("make a reference: %w", err)
		}
		ref = id.String()
	}
	details, err := said.details()
	if err != nil {
		return nil, err
	}
	delivery, err := uuid.NewV7()
	if err != nil {
		return nil, fmt.Errorf("make a delivery id: %w", err)
	}
	total := order.Amount{Minor: int64(said.Amount), Currency: string(said.Currency)}
	event := store.Event{
		Event: order.Event{
			ID: store.RegisterID(ref), Type: "order.registered", Reference: ref, Strength: order.StrengthPerson,
			Command: &order.Command{Register: &total, Details: details, ExpiresAt: said.ExpiresAt},
		},
		Account: c.key.Account, Source: store.APISource, Delivery: delivery, Payload: c.body,
	}
	var (
		res store.Result
		o   store.Order
	)
	err = a.unit(ctx, func(tx store.Tx) (err error) {
		if event.At, err = a.store.Clock(ctx, tx); err != nil {
			return err
		}
		if res, err = a.store.Command(ctx, tx, event, store.Condition{}); err != nil {
			return err
		}
		o, err = a.store.OrderTx(ctx, tx, c.key.Account, res.Order)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("register: %w", err)
	}
	idempotency.SetResource(ctx, resourceOrder, o.ID)
	c.order = o.ID.String()
	if res.Differs {
		c.note = noteBodyDiffers
	}

	status := http.StatusOK
	if res.Outcome != store.Duplicate && !slices.Contains(o.Flags, order.FlagTotalDiffers.String()) {
		status = http.StatusCreated
	}
	out, err := shown(status, o)
	if err != nil {
		return nil, err
	}
	out.Location = orderPath(o.ID)
	return out, nil
}

type getOrderIn struct {
	ID string `path:"id" format:"uuid" doc:"The order's id."`
}

func (a *API) getOrder(ctx context.Context, c *call, in *getOrderIn) (*orderOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, orderNotFound()
	}
	o, err := a.store.GetOrder(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, orderNotFound()
	}
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", id, err)
	}
	c.order = o.ID.String()
	return shown(http.StatusOK, o)
}
