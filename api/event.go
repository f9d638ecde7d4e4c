package api

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const tagEvents = "events"

// eventDoc is an event as it was entered, and what it did.
type eventDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID              string        `json:"id" doc:"The gateway's own; with # and a hash where the id came again with other facts."`
	Source          string        `json:"source" doc:"The source that brought it; api: your own commands."`
	Type            string        `json:"type"`
	Realm           string        `json:"realm,omitempty" doc:"The name space of its payment ids: gateway, gateway account and mode."`
	OrderID         *uuid.UUID    `json:"order_id" format:"uuid" nullable:"true"`
	ReceivedAt      time.Time     `json:"received_at"`
	OccurredAt      *time.Time    `json:"occurred_at" doc:"When it happened, as the sender says. Null: it does not say."`
	Deliveries      int           `json:"deliveries" doc:"How often it came; a lower bound."`
	LastDeliveredAt time.Time     `json:"last_delivered_at"`
	Outcome         store.Outcome `json:"outcome" doc:"What it did."`
	Reason          string        `json:"reason,omitempty" doc:"Why, in a word; behind a colon may stand more."`
	Before          *int          `json:"order_version_before"`
	After           *int          `json:"order_version_after"`
	DismissedAt     *time.Time    `json:"dismissed_at,omitempty" doc:"When a person has dealt with it."`
	MappingVersion  int           `json:"mapping_version"`
	Payment         list[string]  `json:"payment" doc:"Every id that it knows its payment under."`
	Reference       string        `json:"reference,omitempty" doc:"The external_ref that it names."`
	Renewal         *renewalDoc   `json:"renewal,omitempty" doc:"Of which period the payment is. If a recurrence has it, reference is the order of that period."`
	Facts           list[factDoc] `json:"facts" doc:"What it says, in our terms."`
	Command         anyObject     `json:"command,omitempty" doc:"What you asked for, of events of source api."`
	Fetch           string        `json:"fetch,omitempty" doc:"What the gateway has to be asked about: the event itself carries no fact."`
	Asking          *askingDoc    `json:"asking,omitempty" doc:"How that stands, while the event waits for it."`

	// What is shown of one event alone.
	Explanation *reportDoc     `json:"explanation,omitempty" doc:"Not in lists."`
	MeantBefore list[meantDoc] `json:"meant_before,omitempty" doc:"What it was taken to mean until it was read again, the first meaning first. Not in lists."`
	Payload     *payloadDoc    `json:"payload,omitempty" doc:"What brought it, if it was asked for and is still kept."`
}

// factDoc is one thing that an event says.
type factDoc struct {
	_ struct{} `additionalProperties:"true"`

	Kind     string `json:"kind" doc:"authorized, captured, refunded, released, disputed or phase."`
	Ref      string `json:"ref,omitempty" doc:"Which capture, refund or dispute; absent: the payment as a whole."`
	Status   string `json:"status,omitempty"`
	Amount   int64  `json:"amount" doc:"Minor units of currency."`
	All      bool   `json:"all,omitempty" doc:"Of all that was captured, which the gateway does not name."`
	Currency string `json:"currency,omitempty"`
	Misfit   string `json:"misfit,omitempty" doc:"Why it is not counted: mode or account."`
}

// askingDoc is how an object stands that the gateway is to be asked about.
type askingDoc struct {
	_ struct{} `additionalProperties:"true"`

	State     string     `json:"state" doc:"open, done, or dead: given up until it is announced again."`
	Attempts  int        `json:"attempts"`
	NextAt    *time.Time `json:"next_at,omitempty"`
	LastError string     `json:"last_error,omitempty"`
}

func eventOf(e store.StoredEvent) (eventDoc, error) {
	doc := eventDoc{
		ID: e.ID, Source: e.Source, Type: e.Type, Realm: e.Realm, OrderID: e.OrderID, ReceivedAt: e.ReceivedAt, OccurredAt: e.OccurredAt,
		Deliveries: e.Deliveries, LastDeliveredAt: e.LastDeliveredAt, Outcome: e.Outcome, Reason: e.Reason, Before: e.Before, After: e.After, DismissedAt: e.DismissedAt,
		MappingVersion: e.MappingVersion, Payment: e.Payment, Reference: e.Reference, Facts: factsOf(e.Facts), Fetch: e.Fetch,
	}
	if r := e.Renewal; r != nil {
		doc.Renewal = &renewalDoc{Of: r.Of, On: r.On}
		if !r.Start.IsZero() {
			doc.Renewal.Start = &r.Start
		}
	}
	if e.Command != nil {
		command, err := json.Marshal(e.Command)
		if err != nil {
			return doc, fmt.Errorf("command of event %s: %w", e.ID, err)
		}
		doc.Command = command
	}
	if e.Asking != nil {
		doc.Asking = &askingDoc{State: e.Asking.State, Attempts: e.Asking.Attempts, NextAt: e.Asking.NextAt, LastError: e.Asking.LastError}
	}
	return doc, nil
}

func factsOf(facts []order.Fact) list[factDoc] {
	var docs list[factDoc]
	for _, f := range facts {
		d := factDoc{Kind: string(f.Kind), Ref: f.Ref, Status: string(f.Status), Amount: f.Amount, Currency: f.Currency, Misfit: string(f.Misfit)}
		if f.Amount == order.All {
			d.Amount, d.All = 0, true
		}
		docs = append(docs, d)
	}
	return docs
}

// reportDoc says in sentences why something is as it is.
type reportDoc struct {
	_ struct{} `additionalProperties:"true"`

	Answer string       `json:"answer" doc:"One sentence."`
	Why    list[string] `json:"why" doc:"What led to it, a sentence each."`
	Todo   list[string] `json:"todo" doc:"What a person can do about it."`
}

func reportOf(r explain.Report) reportDoc {
	return reportDoc{Answer: r.Answer, Why: r.Why, Todo: r.Todo}
}

// findEvent returns the event of an id, in one of the account's sources. Two sources may use one id; then the caller has
// to say which is meant.
func (a *API) findEvent(ctx context.Context, c *call, id, source string) (store.StoredEvent, error) {
	if !storable(id) {
		return store.StoredEvent{}, eventNotFound()
	}
	found, err := a.store.EventsByID(ctx, c.key.Account, id)
	if err != nil {
		return store.StoredEvent{}, err
	}
	return oneEvent(found, source)
}

// oneEvent picks the event of a source among those of one id, or the only one if no source is named.
func oneEvent(found []store.StoredEvent, source string) (store.StoredEvent, error) {
	var sources []string
	for _, e := range found {
		if e.Source == source {
			return e, nil
		}
		sources = append(sources, e.Source)
	}
	switch {
	case source != "" || len(found) == 0:
		return store.StoredEvent{}, eventNotFound()
	case len(found) > 1:
		return store.StoredEvent{}, problemf(CodeEventAmbiguous, "Several sources have an event of that id. Add ?source= and one of: %s.", strings.Join(sources, ", "))
	}
	return found[0], nil
}

func eventNotFound() *Problem {
	return problem(CodeEventNotFound, "This account has no event of that id.")
}

// storable reports whether Postgres can hold a text, and so whether there can be a row of that name.
func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

const eventExample = `{"data": {
  "id": "evt_1PtoA2", "source": "stripe", "type": "payment_intent.succeeded", "realm": "stripe:live",
  "order_id": "0199a1b2-0000-7000-8000-000000000001", "received_at": "2026-10-01T09:00:03Z", "occurred_at": "2026-10-01T09:00:02Z",
  "deliveries": 1, "last_delivered_at": "2026-10-01T09:00:03Z", "outcome": "applied", "order_version_before": 1, "order_version_after": 2,
  "mapping_version": 1, "payment": ["pi_1"], "reference": "ord_123",
  "facts": [{"kind": "captured", "amount": 5000, "currency": "EUR"}]}}`
