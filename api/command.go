package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// command enters one event of the caller's account. It fills in what all of them have: the database's time, which settles
// which of two commands came later, and the bytes that were sent.
func (a *API) command(ctx context.Context, tx store.Tx, c *call, e order.Event, cond store.Condition) (store.Result, error) {
	now, err := a.store.Clock(ctx, tx)
	if err != nil {
		return store.Result{}, err
	}
	delivery, err := uuid.NewV7()
	if err != nil {
		return store.Result{}, fmt.Errorf("make a delivery id: %w", err)
	}
	e.At = now
	return a.store.Command(ctx, tx, store.Event{
		Event: e, Account: c.key.Account, Source: store.APISource, Delivery: delivery, Payload: c.body,
	}, cond)
}

// orderTx reads the order that a request names. What is read without its lock may have changed by the time of the
// command, but for its reference, which never does.
func (a *API) orderTx(ctx context.Context, tx store.Tx, c *call, text string) (store.Order, error) {
	id, err := uuid.Parse(text)
	if err != nil {
		return store.Order{}, orderNotFound()
	}
	o, err := a.store.OrderTx(ctx, tx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return store.Order{}, orderNotFound()
	}
	if err != nil {
		return store.Order{}, err
	}
	c.order = o.ID.String()
	return o, nil
}

// commanded is the answer to a command: the order as the command left it.
func (a *API) commanded(ctx context.Context, tx store.Tx, c *call, status int, id uuid.UUID) (*orderOut, error) {
	o, err := a.store.OrderTx(ctx, tx, c.key.Account, id)
	if err != nil {
		// Not the caller's 404: the command was about it.
		return nil, fmt.Errorf("read order %s: %w", id, err)
	}
	idempotency.SetResource(ctx, resourceOrder, o.ID)
	return shown(status, o)
}

// onOrder carries out one command about the order of a path, and shows the order.
func (a *API) onOrder(ctx context.Context, c *call, id string, what func(tx store.Tx, o store.Order) (order.Event, error)) (out *orderOut, err error) {
	err = a.unit(ctx, func(tx store.Tx) error {
		o, err := a.orderTx(ctx, tx, c, id)
		if err != nil {
			return err
		}
		e, err := what(tx, o)
		if err != nil {
			return err
		}
		if _, err := a.command(ctx, tx, c, e, store.Condition{}); err != nil {
			return refused(err)
		}
		out, err = a.commanded(ctx, tx, c, http.StatusOK, o.ID)
		return err
	})
	return out, err
}

// refused is the problem of a command that was not carried out. Errors that are none pass.
func refused(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return orderNotFound()
	}
	var r *store.Refusal
	if !errors.As(err, &r) {
		return err
	}
	var p *Problem
	switch r.Code {
	case store.RefusedVersion:
		p = problem(CodeVersionMismatch, "The order has changed since; read it again, and decide anew.")
	case store.RefusedUnregistered:
		p = problem(CodeUnregistered, "Nobody has registered this order yet: only a webhook has named it. Register it first.")
	case store.RefusedCaptured:
		p = problem(CodeCaptured, "Money was captured for this order, so its total stays. Refund it at the gateway, or sell the rest as another order.")
	case store.RefusedMoneyKept:
		p = problem(CodeMoneyKept, "Money is kept for this order. Refund it (POST /v1/orders/{id}/refunds, or at the gateway itself); the order follows by itself.")
	case store.RefusedDetails:
		return invalid([]FieldError{{Pointer: "/data", Code: "type", Detail: "leaves something else than an object"}})
	default:
		return err
	}
	p.etag = etagOf(r.Version)
	return p
}

// newEventID makes the id of an event that a repeat is not the same as.
func newEventID(kind string) (string, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("make an event id: %w", err)
	}
	return kind + ":" + id.String(), nil
}
