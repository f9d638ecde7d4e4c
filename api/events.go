package api

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/store"
)

func (a *API) eventEndpoints() {
	add(a, endpoint{
		ID: "listEvents", Method: http.MethodGet, Path: "/v1/events", Tag: tagEvents, Role: roleRead,
		Summary: "List events, the last received first", Description: "All filters must hold.",
		Codes: []Code{CodeInvalidCursor}, Response: pageExample(eventExample),
	}, a.listEvents)
	add(a, endpoint{
		ID: "getEvent", Method: http.MethodGet, Path: "/v1/events/{id}", Tag: tagEvents, Role: roleRead,
		Summary: "Show an event, and say what it did",
		Description: "The id is escaped in the path: payment/tr_1 is payment%2Ftr_1. With payload=true, for a key that has the role operate too, " +
			"also the bytes that brought it.",
		Codes:    []Code{CodeEventNotFound, CodeEventAmbiguous},
		Response: with(eventExample, `"explanation": {"answer": "Event evt_1PtoA2, payment_intent.succeeded (captured 50.00 EUR), was applied: order ord_123 v1 → v2, pending → paid.", "why": ["Its payment is pi_1."], "todo": []}, "meant_before": []`),
	}, a.getEvent)
}

type listEventsIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	Source        string        `query:"source" maxLength:"64" doc:"Only of this source; api: your own commands."`
	Outcome       store.Outcome `query:"outcome" doc:"Only those that did this."`
	Reason        string        `query:"reason" maxLength:"512" doc:"Only with this reason, exactly or the word before its colon."`
	Type          string        `query:"type" maxLength:"256" doc:"Only of this type."`
	ReceivedFrom  time.Time     `query:"received_from" doc:"Only those received at or after this time."`
	ReceivedUntil time.Time     `query:"received_until" doc:"Only those received before this time."`
}

type listEventsOut struct {
	Body pageOf[eventDoc]
}

func (a *API) listEvents(ctx context.Context, c *call, in *listEventsIn) (*listEventsOut, error) {
	at, err := cursorOf(listEvents, in.Cursor)
	if err != nil {
		return nil, err
	}
	found, next, err := a.store.ListEvents(ctx, store.EventFilter{
		Account: c.key.Account, Source: in.Source, Outcome: in.Outcome, Reason: in.Reason, Type: in.Type,
		Since: in.ReceivedFrom, Until: in.ReceivedUntil,
		Before: store.EventCursor{At: at.At, Source: at.Source, ID: at.Event}, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &listEventsOut{}
	for _, e := range found {
		doc, err := eventOf(e)
		if err != nil {
			return nil, err
		}
		out.Body.Data = append(out.Body.Data, doc)
	}
	if next.ID != "" {
		out.Body.Next, err = cursor{List: listEvents, At: next.At.UTC(), Source: next.Source, Event: next.ID}.next()
	}
	return out, err
}

type getEventIn struct {
	ID      string `path:"id" doc:"The event's id."`
	Source  string `query:"source" maxLength:"64" doc:"Whose event it is, where two sources use one id."`
	Payload bool   `query:"payload" doc:"true: with the bytes that brought it; the key needs the role operate too."`
}

type meantDoc struct {
	_ struct{} `additionalProperties:"true"`

	Until   time.Time  `json:"until"`
	Meaning meaningDoc `json:"meaning"`
}

// payloadDoc is a request as the gateway sent it.
type payloadDoc struct {
	_ struct{} `additionalProperties:"true"`

	ReceivedAt time.Time         `json:"received_at"`
	Header     map[string]string `json:"header" doc:"The headers that are kept."`
	Body       string            `json:"body" encoding:"base64" doc:"The bytes, in base64."`
}

type getEventOut struct {
	Body dataOf[eventDoc]
}

func (a *API) getEvent(ctx context.Context, c *call, in *getEventIn) (*getEventOut, error) {
	if in.Payload && !c.key.has(roleOperate) {
		return nil, problem(CodeForbidden, "The bytes that brought an event are shown to keys with the role operate.")
	}
	e, err := a.findEvent(ctx, c, in.ID, in.Source)
	if err != nil {
		return nil, err
	}
	key := store.EventKey{Account: e.Account, Source: e.Source, ID: e.ID}
	out := &getEventOut{}
	doc := &out.Body.Data
	if *doc, err = eventOf(e); err != nil {
		return nil, err
	}
	var timeline *store.Timeline
	if e.OrderID != nil && *e.OrderID != uuid.Nil {
		c.order = e.OrderID.String()
		t, err := a.store.Timeline(ctx, e.Account, *e.OrderID)
		if err != nil {
			return nil, err
		}
		timeline = &t
	}
	report := reportOf(explain.Event(e, timeline))
	doc.Explanation = &report
	before, err := a.store.ReplacedMeanings(ctx, key)
	if err != nil {
		return nil, err
	}
	for _, m := range before {
		doc.MeantBefore = append(doc.MeantBefore, meantDoc{Until: m.Until, Meaning: meaningOf(m.EventMeaning)})
	}
	if !in.Payload {
		return out, nil
	}
	p, err := a.store.Payload(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	doc.Payload = &payloadDoc{ReceivedAt: p.ReceivedAt, Header: p.Header, Body: base64.StdEncoding.EncodeToString(p.Body)}
	return out, nil
}
