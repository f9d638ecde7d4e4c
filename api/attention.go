package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/doctor"
	"github.com/paidonce/paidonce/store"
)

const tagAttention = "attention"

func (a *API) attentionEndpoint() {
	add(a, endpoint{
		ID: "getAttention", Method: http.MethodGet, Path: "/v1/attention", Tag: tagAttention, Role: roleRead,
		Summary: "List what needs a person",
		Description: "What does not mend itself, or only too late: the most urgent kind first, and of each what stands so the longest. resolve is what ends it: a call of " +
			"this API, or a command for whoever runs Paidonce; of words in capitals you have to say which. Nothing to list is an empty list.",
		Response: `{"data": {"at": "2026-10-01T12:00:00Z", "count": 1, "kinds": [{"kind": "overpaid", "urgency": "today", "title": "Orders of which too much is kept",
  "count": 1, "more": false, "oldest": "2026-10-01T09:00:03Z", "items": [{"what": "order ord_123", "since": "2026-10-01T09:00:03Z",
  "text": "Flag overpaid: 60.00 EUR is kept, more than the total of 50.00 EUR.", "do": "Give back what is too much, or keep it and dismiss the flag.",
  "resolve": "POST /v1/orders/0199a1b2-0000-7000-8000-000000000001/dismiss {\"data\": {\"flags\": [\"overpaid\"], \"dismissed\": true}}",
  "request": {"method": "POST", "path": "/v1/orders/0199a1b2-0000-7000-8000-000000000001/dismiss", "body": "{\"data\": {\"flags\": [\"overpaid\"], \"dismissed\": true}}"},
  "order_id": "0199a1b2-0000-7000-8000-000000000001", "external_ref": "ord_123"}]}], "notes": []}}`,
	}, a.getAttention)
}

type getAttentionIn struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"10" doc:"How many items of a kind there are at most."`
}

type getAttentionOut struct {
	Body dataOf[attentionDoc]
}

type attentionDoc struct {
	_ struct{} `additionalProperties:"true"`

	At    time.Time              `json:"at" doc:"The moment of which this is true."`
	Count int                    `json:"count" doc:"Of all kinds, at least."`
	Kinds list[attentionKindDoc] `json:"kinds" doc:"Those of which there is something, the most urgent first."`
	Notes list[string]           `json:"notes" doc:"What was not looked through, in sentences."`
}

type attentionKindDoc struct {
	_ struct{} `additionalProperties:"true"`

	Kind    doctor.Kind            `json:"kind" doc:"A code word; where a flag of an order is meant, its name."`
	Urgency doctor.Urgency         `json:"urgency" doc:"now: money may be lost or moved twice, or you act on what is not so; today: somebody waits for it; soon: it will become one of these."`
	Title   string                 `json:"title"`
	Count   int                    `json:"count" doc:"Up to 1000."`
	More    bool                   `json:"more" doc:"There may be more than were counted."`
	Oldest  time.Time              `json:"oldest" doc:"Since when the first of them stands so."`
	Items   list[attentionItemDoc] `json:"items" doc:"The oldest first, at most limit."`
}

type attentionItemDoc struct {
	_ struct{} `additionalProperties:"true"`

	What    string               `json:"what"`
	Since   time.Time            `json:"since" doc:"When it came to stand so."`
	Text    string               `json:"text" doc:"What is the matter."`
	Do      string               `json:"do" doc:"What to do about it."`
	Resolve string               `json:"resolve" doc:"What ends it, in one line."`
	Request *attentionRequestDoc `json:"request,omitempty" doc:"The same, where it is a call of this API."`

	OrderID       *uuid.UUID `json:"order_id,omitempty" format:"uuid"`
	ExternalRef   string     `json:"external_ref,omitempty" doc:"Of the order."`
	Source        string     `json:"source,omitempty"`
	EventID       string     `json:"event_id,omitempty"`
	TransactionID *uuid.UUID `json:"transaction_id,omitempty" format:"uuid"`
	Object        string     `json:"object,omitempty" doc:"At the gateway, as kind/id."`
}

type attentionRequestDoc struct {
	_ struct{} `additionalProperties:"true"`

	Method string `json:"method"`
	Path   string `json:"path"`
	Body   string `json:"body,omitempty" doc:"JSON, once the words in capitals are filled in."`
}

func (a *API) getAttention(ctx context.Context, c *call, in *getAttentionIn) (*getAttentionOut, error) {
	account := c.key.Account
	var sources []store.SourceKey
	for _, s := range a.opts.Sources(account) {
		sources = append(sources, store.SourceKey{Account: account, ID: s.ID})
	}
	r, err := doctor.Look(ctx, a.store, doctor.Options{Account: account, Sources: sources})
	if err != nil {
		return nil, err
	}
	doc := attentionDoc{At: r.At, Count: r.Count(), Kinds: list[attentionKindDoc]{}, Notes: append(list[string]{}, r.Notes...)}
	for _, p := range r.Piles {
		kind := attentionKindDoc{Kind: p.Kind, Urgency: p.Urgency, Title: p.Title, Count: p.Count, More: p.More, Oldest: p.Oldest}
		for _, i := range p.Items[:min(in.Limit, len(p.Items))] {
			kind.Items = append(kind.Items, attentionItemOf(i))
		}
		doc.Kinds = append(doc.Kinds, kind)
	}
	return &getAttentionOut{Body: dataOf[attentionDoc]{doc}}, nil
}

func attentionItemOf(i doctor.Item) attentionItemDoc {
	doc := attentionItemDoc{
		What: i.What, Since: i.Since, Text: i.Text, Do: i.Do, Resolve: i.Resolve(), OrderID: i.OrderID, ExternalRef: i.ExternalRef,
		Source: i.Source, EventID: i.EventID, TransactionID: i.Transaction, Object: i.Object,
	}
	if i.Request != nil {
		doc.Request = &attentionRequestDoc{Method: i.Request.Method, Path: i.Request.Path, Body: i.Request.Body}
	}
	return doc
}
