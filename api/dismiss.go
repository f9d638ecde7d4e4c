package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) dismissEndpoints() {
	add(a, endpoint{
		ID: "dismissFlags", Method: http.MethodPost, Path: "/v1/orders/{id}/dismiss", Tag: tagOrders, Role: roleOperate,
		Summary: "Dismiss flags of an order",
		Description: "A person has dealt with what the flags are about: they are shown as dismissed, and alarm nobody, until they arise anew. dismissed: false " +
			"shows them again. Flags that the order does not have are passed over. Nothing else about the order changes, and nothing is held back by a flag anyway.\n\n" +
			"Sent again without an Idempotency-Key it says the same once more, which matters only if a flag has arisen anew in between.",
		Idempotency: protected, Codes: []Code{CodeOrderNotFound},
		Request:  `{"data": {"flags": ["overpaid"], "dismissed": true}}`,
		Response: orderExample,
	}, a.dismissFlags)
	add(a, endpoint{
		ID: "dismissEvent", Method: http.MethodPost, Path: "/v1/events/{id}/dismiss", Tag: tagEvents, Role: roleOperate,
		Summary: "Dismiss an event",
		Description: "A person has dealt with an event that was flagged or put in quarantine: it is no more among those to look at. dismissed: false puts it back. " +
			"Neither its outcome nor any order changes.\n\n" +
			"It may be sent again at any time, with an Idempotency-Key or without one.",
		Idempotency: protected, Codes: []Code{CodeEventNotFound, CodeEventAmbiguous},
		Request:  `{"data": {"dismissed": true}}`,
		Response: eventExample,
	}, a.dismissEvent)
}

// flagWord is a flag that a person can dismiss.
type flagWord string

// Schema documents those there are.
func (flagWord) Schema(huma.Registry) *huma.Schema {
	return words(order.Dismissible.Names(), "")
}

type dismissFlagsIn struct {
	ID   string `path:"id" format:"uuid" doc:"The order's id."`
	Body dataOf[dismissFlagsDoc]
}

type dismissFlagsDoc struct {
	Flags     []flagWord `json:"flags" nullable:"false" minItems:"1" maxItems:"32"`
	Dismissed bool       `json:"dismissed" doc:"False shows them again."`
}

func (a *API) dismissFlags(ctx context.Context, c *call, in *dismissFlagsIn) (*orderOut, error) {
	said := in.Body.Data
	names := make([]string, len(said.Flags))
	for i, f := range said.Flags {
		names[i] = string(f)
	}
	flags, err := order.ParseFlags(names)
	if err != nil {
		return nil, fmt.Errorf("flags that were found in order: %w", err)
	}
	id, err := newEventID("dismiss")
	if err != nil {
		return nil, err
	}
	cmd := &order.Command{Dismiss: flags}
	if !said.Dismissed {
		cmd = &order.Command{Restore: flags}
	}
	return a.onOrder(ctx, c, in.ID, func(_ store.Tx, o store.Order) (order.Event, error) {
		return order.Event{ID: id, Type: "order.dismissed", Reference: o.Ref, Strength: order.StrengthPerson, Command: cmd}, nil
	})
}

type dismissEventIn struct {
	ID     string `path:"id" doc:"The event's id."`
	Source string `query:"source" maxLength:"64" doc:"Whose event it is, where two sources use one id."`
	Body   dataOf[dismissEventDoc]
}

type dismissEventDoc struct {
	Dismissed bool `json:"dismissed" doc:"False puts it back."`
}

func (a *API) dismissEvent(ctx context.Context, c *call, in *dismissEventIn) (*getEventOut, error) {
	if !storable(in.ID) {
		return nil, eventNotFound()
	}
	out := &getEventOut{}
	err := a.unit(ctx, func(tx store.Tx) error {
		e, err := a.eventTx(ctx, tx, c, in)
		if err != nil {
			return err
		}
		key := store.EventKey{Account: e.Account, Source: e.Source, ID: e.ID}
		if err := a.store.DismissEvent(ctx, tx, key, in.Body.Data.Dismissed); errors.Is(err, store.ErrNotFound) {
			return eventNotFound()
		} else if err != nil {
			return err
		}
		if e, err = a.eventTx(ctx, tx, c, in); err != nil {
			return err
		}
		out.Body.Data, err = eventOf(e)
		return err
	})
	return out, err
}

func (a *API) eventTx(ctx context.Context, tx store.Tx, c *call, in *dismissEventIn) (store.StoredEvent, error) {
	found, err := a.store.EventsByIDTx(ctx, tx, c.key.Account, in.ID)
	if err != nil {
		return store.StoredEvent{}, err
	}
	return oneEvent(found, in.Source)
}
