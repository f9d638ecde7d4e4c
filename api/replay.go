package api

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/store"
)

func (a *API) replayEndpoints() {
	add(a, endpoint{
		ID: "replayEvent", Method: http.MethodPost, Path: "/v1/events/{id}/replay", Tag: tagEvents, Role: roleOperate,
		Summary: "Read an event again",
		Description: "Reads the bytes that brought the event with the mapping and the options of today. Where they mean something else now, its facts are " +
			"replaced (the old ones are kept), and the payment and the orders that it concerns are folded anew. A dry run, the default, says what would " +
			"come of it and writes nothing.",
		Idempotency: exempt("facts become what the bytes say today: a second time finds nothing to replace"),
		Codes:       []Code{CodeEventNotFound, CodeEventAmbiguous, CodeEventNotReplayable},
		Request:     `{"data": {"dry_run": true}}`,
		Response: `{"data": {"dry_run": true, "events": [], "entered": [], "skipped": [], "orders": [{
  "id": "0199a1b2-0000-7000-8000-000000000001", "external_ref": "ord_123", "new": false,
  "before": {"version": 2, "state": "partially_paid", "flags": [], "amount": 5000, "currency": "EUR", "authorized": 0, "captured": 500,
    "refunded": 0, "lost": 0, "kept": 500, "at_risk": 0, "told": "nothing", "owed": ""},
  "after": {"version": 3, "state": "paid", "flags": [], "amount": 5000, "currency": "EUR", "authorized": 0, "captured": 5000,
    "refunded": 0, "lost": 0, "kept": 5000, "at_risk": 0, "told": "nothing", "owed": "fulfil"}}]}}`,
	}, a.replayEvent)
}

type replayEventIn struct {
	ID     string `path:"id" doc:"The event's id."`
	Source string `query:"source" maxLength:"64" doc:"Whose event it is, where two sources use one id."`
	Body   dataOf[dryRunDoc]
}

// dryRunDoc asks whether something is only to be tried.
type dryRunDoc struct {
	DryRun *bool `json:"dry_run,omitempty" nullable:"false" doc:"False does it; true, the default, only says what it would do."`
}

func (d dryRunDoc) apply() bool { return d.DryRun != nil && !*d.DryRun }

type replayEventOut struct {
	Body dataOf[replayDoc]
}

// replayDoc is what reading an event again came to, or would.
type replayDoc struct {
	_ struct{} `additionalProperties:"true"`

	DryRun  bool                  `json:"dry_run"`
	Events  list[eventChangeDoc]  `json:"events" doc:"Events that mean something else today."`
	Entered list[enteredDoc]      `json:"entered" doc:"Events that are new: their bytes could not be read at all before."`
	Orders  list[orderChangeDoc]  `json:"orders" doc:"Orders that move because of it."`
	Skipped list[skippedEventDoc] `json:"skipped" doc:"Events that were left as they are, and why."`
}

type eventChangeDoc struct {
	_ struct{} `additionalProperties:"true"`

	Source string     `json:"source"`
	ID     string     `json:"id"`
	Before meaningDoc `json:"before"`
	After  meaningDoc `json:"after"`
}

type enteredDoc struct {
	_ struct{} `additionalProperties:"true"`

	Source  string     `json:"source"`
	ID      string     `json:"id"`
	Meaning meaningDoc `json:"meaning"`
}

type skippedEventDoc struct {
	_ struct{} `additionalProperties:"true"`

	Source string `json:"source"`
	ID     string `json:"id"`
	Code   string `json:"code" doc:"payload_gone, unreadable, other_id or ambiguous."`
	Why    string `json:"why"`
}

// meaningDoc is what an event is taken to say, and what it did.
type meaningDoc struct {
	Type           string        `json:"type"`
	OccurredAt     *time.Time    `json:"occurred_at,omitempty"`
	Payment        list[string]  `json:"payment"`
	Reference      string        `json:"reference,omitempty"`
	Facts          list[factDoc] `json:"facts"`
	Ignored        string        `json:"ignored,omitempty" doc:"Why it says nothing that counts."`
	Broken         string        `json:"broken,omitempty" doc:"Why it cannot be read."`
	Fetch          string        `json:"fetch,omitempty" doc:"What the gateway has to be asked about."`
	Outcome        store.Outcome `json:"outcome"`
	Reason         string        `json:"reason,omitempty"`
	Order          string        `json:"order,omitempty" doc:"external_ref of the order of its payment."`
	MappingVersion int           `json:"mapping_version"`
}

func meaningOf(m store.EventMeaning) meaningDoc {
	return meaningDoc{
		Type: m.Type, OccurredAt: m.OccurredAt, Payment: m.Payment, Reference: m.Reference, Facts: factsOf(m.Facts),
		Ignored: m.Ignored, Broken: m.Broken, Fetch: m.Fetch, Outcome: m.Outcome, Reason: m.Reason, Order: m.Order, MappingVersion: m.MappingVersion,
	}
}

type orderChangeDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID          *uuid.UUID  `json:"id" format:"uuid" nullable:"true" doc:"Null: it would be made."`
	ExternalRef string      `json:"external_ref"`
	New         bool        `json:"new"`
	Before      standingDoc `json:"before"`
	After       standingDoc `json:"after"`
}

// standingDoc is an order at one version.
type standingDoc struct {
	_ struct{} `additionalProperties:"true"`

	Version    int          `json:"version"`
	State      string       `json:"state"`
	Flags      list[string] `json:"flags"`
	Amount     *int64       `json:"amount"`
	Currency   string       `json:"currency"`
	Authorized int64        `json:"authorized"`
	Captured   int64        `json:"captured"`
	Refunded   int64        `json:"refunded"`
	Lost       int64        `json:"lost"`
	Kept       int64        `json:"kept"`
	AtRisk     int64        `json:"at_risk"`
	Told       string       `json:"told"`
	Owed       string       `json:"owed" doc:"The effect that follows; empty: none."`
}

func standingOf(s store.OrderStanding) standingDoc {
	d := standingDoc{
		Version: s.Version, State: string(s.State), Flags: s.Flags.Names(), Currency: s.Currency, Authorized: s.Authorized, Captured: s.Captured,
		Refunded: s.Refunded, Lost: s.Lost, Kept: s.Kept, AtRisk: s.AtRisk, Told: string(s.Told), Owed: string(s.Owed),
	}
	if s.Registered {
		d.Amount = &s.Total
	}
	return d
}

func (a *API) replayEvent(ctx context.Context, c *call, in *replayEventIn) (*replayEventOut, error) {
	e, err := a.findEvent(ctx, c, in.ID, in.Source)
	if err != nil {
		return nil, err
	}
	if e.Source == store.APISource {
		return nil, problem(CodeEventNotReplayable, "What you said yourself is not read from a gateway's bytes.")
	}
	if a.opts.Replay == nil {
		return nil, problem(CodeEventNotReplayable, "This server does not read events again.")
	}
	apply := in.Body.Data.apply()
	r, err := a.opts.Replay(ctx, store.EventKey{Account: e.Account, Source: e.Source, ID: e.ID}, apply)
	if err != nil {
		return nil, err
	}
	if e.OrderID != nil {
		c.order = e.OrderID.String()
	}
	out := &replayEventOut{}
	doc := &out.Body.Data
	doc.DryRun = !apply
	for _, ch := range r.Events {
		doc.Events = append(doc.Events, eventChangeDoc{Source: ch.Source, ID: ch.ID, Before: meaningOf(ch.Before), After: meaningOf(ch.After)})
	}
	for _, en := range r.Entered {
		doc.Entered = append(doc.Entered, enteredDoc{Source: en.Source, ID: en.ID, Meaning: meaningOf(en.EventMeaning)})
	}
	for _, o := range r.Orders {
		change := orderChangeDoc{ExternalRef: o.Ref, New: o.New, Before: standingOf(o.Before), After: standingOf(o.After)}
		if apply || !o.New {
			change.ID = &o.ID
		}
		doc.Orders = append(doc.Orders, change)
	}
	for _, s := range r.Skipped {
		doc.Skipped = append(doc.Skipped, skippedEventDoc{Source: s.Source, ID: s.ID, Code: s.Code, Why: s.Why})
	}
	return out, nil
}
