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

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) orderEndpoints() {
	add(a, endpoint{
		ID: "createOrder", Method: http.MethodPost, Path: "/v1/orders", Tag: tagOrders, Role: roleWrite,
		Summary: "Register an order",
		Description: "Registers what is sold. Payments find it by metadata.external_ref; without one it gets a reference of ours, to be handed to the gateway.\n\n" +
			"201: this request registered the order, new or a webhook's stub. 200: the reference was registered before; the order is shown as it stands, " +
			"and nothing of this request is taken, or a gateway's amount had made it with another total (flag total_differs).\n\n" +
			"A request with an external_ref may be sent again at any time, with an Idempotency-Key or without one. Without either, each is another order.",
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
	Amount    minor        `json:"amount"`
	Currency  currencyCode `json:"currency"`
	Items     []anyObject  `json:"items,omitempty" maxItems:"1000" doc:"What is sold; objects of your own, kept as they are."`
	Metadata  metadata     `json:"metadata,omitempty"`
	ExpiresAt deadline     `json:"expires_at,omitempty"`
}

// command is the registration that a request asks for.
func (d newOrderDoc) command() (*order.Command, error) {
	details, err := d.details()
	if err != nil {
		return nil, err
	}
	expires, err := d.ExpiresAt.time()
	if err != nil {
		return nil, err
	}
	return &order.Command{
		Register: &order.Amount{Minor: int64(d.Amount), Currency: string(d.Currency)}, Details: details, ExpiresAt: expires,
	}, nil
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

// noteBodyDiffers is logged, and counted, where a reference was registered before with another body. It is answered as any repeat:
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
	cmd, err := said.command()
	if err != nil {
		return nil, err
	}
	var out *orderOut
	err = a.unit(ctx, func(tx store.Tx) error {
		res, err := a.command(ctx, tx, c, order.Event{
			ID: store.RegisterID(ref), Type: "order.registered", Reference: ref, Strength: order.StrengthPerson, Command: cmd,
		}, store.Condition{})
		if err != nil {
			return fmt.Errorf("register: %w", err)
		}
		c.order, c.note = res.Order.String(), ""
		repeated := res.Outcome == store.Duplicate
		if res.Differs {
			c.note = noteBodyDiffers
		}
		if !repeated {
			// A repeat may come when the time is over, and is answered all the same.
			if err := a.inFuture(ctx, tx, cmd.ExpiresAt); err != nil {
				return err
			}
		}
		if out, err = a.commanded(ctx, tx, c, http.StatusCreated, res.Order); err != nil {
			return err
		}
		if repeated || slices.Contains(out.Body.Data.Flags, order.FlagTotalDiffers.String()) {
			out.Status = http.StatusOK
		}
		return nil
	})
	return out, err
}

// inFuture refuses a time limit that is over: nobody means that an order was never to be paid, but time zones are easily
// mistaken. The clock is the database's, by which orders expire.
func (a *API) inFuture(ctx context.Context, tx store.Tx, at *time.Time) error {
	if at == nil {
		return nil
	}
	now, err := a.store.Clock(ctx, tx)
	if err != nil {
		return err
	}
	if !at.After(now) {
		return invalid([]FieldError{{Pointer: "/data/expires_at", Code: "in_the_past", Detail: "must be a time in the future"}})
	}
	return nil
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
