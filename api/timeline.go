package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/paidonce/paidonce/internal/explain"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

func (a *API) timelineEndpoints() {
	add(a, endpoint{
		ID: "getOrderTimeline", Method: http.MethodGet, Path: "/v1/orders/{id}/timeline", Tag: tagOrders, Role: roleRead,
		Summary: "Say why an order is as it is",
		Description: "Every event that concerns it, with its outcome and reason, every version it had, what your callback was to be told, and what gateways were " +
			"asked to move, in sentences and as data, by time.",
		Codes: []Code{CodeOrderNotFound},
		Response: `{"data": {"order": ` + inner(orderExample) + `,
  "explanation": {"answer": "Order ord_123 is not paid, it is pending: nothing of 50.00 EUR was captured yet.", "why": ["No payment is known for it: no event named ord_123."], "todo": []},
  "entries": [{"at": "2026-10-01T09:00:00Z", "kind": "version", "text": "v1: created as pending, because of register:ord_123.",
    "version": {"version": 1, "to": "pending", "source": "api", "event_id": "register:ord_123", "kept": 0, "flags": []}}]}}`,
	}, a.getTimeline)
}

type getTimelineIn struct {
	ID string `path:"id" format:"uuid" doc:"The order's id."`
}

type getTimelineOut struct {
	Body dataOf[timelineDoc]
}

// timelineDoc is everything that is known of an order.
type timelineDoc struct {
	_ struct{} `additionalProperties:"true"`

	Order       orderDoc       `json:"order"`
	Explanation reportDoc      `json:"explanation"`
	Entries     list[entryDoc] `json:"entries" doc:"What happened, by time."`
}

// entryDoc is one thing that happened: an event, a version, what became of an effect, or of a call that moves money.
type entryDoc struct {
	_ struct{} `additionalProperties:"true"`

	At   time.Time `json:"at"`
	Kind string    `json:"kind" enum:"event,version,effect,transaction" doc:"Which of event, version, effect and transaction there is below."`
	Text string    `json:"text" doc:"What happened, in a sentence."`

	Event   *eventDoc   `json:"event,omitempty"`
	Version *versionDoc `json:"version,omitempty"`
	Effect  *effectDoc  `json:"effect,omitempty" doc:"With how often you were called for it, and what came of the last call."`

	Transaction *transactionDoc `json:"transaction,omitempty" doc:"As it stands now: one entry for when it was asked for, and one for what became of it."`
}

// versionDoc is one change of an order.
type versionDoc struct {
	_ struct{} `additionalProperties:"true"`

	Version int          `json:"version"`
	From    order.State  `json:"from,omitempty" doc:"Absent: the order was made."`
	To      order.State  `json:"to"`
	Cause   string       `json:"cause,omitempty" doc:"The type of what caused it."`
	Source  string       `json:"source,omitempty" doc:"Of the event that caused it."`
	EventID string       `json:"event_id,omitempty" doc:"The event that caused it."`
	Kept    int64        `json:"kept"`
	Flags   list[string] `json:"flags"`
}

func (a *API) getTimeline(ctx context.Context, c *call, in *getTimelineIn) (*getTimelineOut, error) {
	id, err := uuid.Parse(in.ID)
	if err != nil {
		return nil, orderNotFound()
	}
	t, err := a.store.Timeline(ctx, c.key.Account, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, orderNotFound()
	}
	if err != nil {
		return nil, err
	}
	c.order = t.Order.ID.String()
	out := &getTimelineOut{}
	doc := &out.Body.Data
	if doc.Order, err = orderOf(t.Order); err != nil {
		return nil, err
	}
	report := explain.Order(t)
	doc.Explanation = reportOf(report)
	doc.Entries, err = entriesOf(t, report)
	return out, err
}

// entriesOf puts what happened beside the sentences about it. There is one sentence per event, in their order; those of
// versions, effects and transactions name theirs. A version that moved no state has none, and gets one here.
func entriesOf(t store.Timeline, report explain.Report) (list[entryDoc], error) {
	versions := map[string]store.Version{}
	effects := map[string]store.Version{}
	transactions := map[string]store.Transaction{}
	for _, x := range t.Transactions {
		transactions[x.ID.String()] = x
	}
	for _, v := range t.Versions {
		versions[strconv.Itoa(v.Version)] = v
		if v.Effect != order.EffectNone {
			effects[effectAt(t.Order, v).Key()] = v
		}
	}
	var entries list[entryDoc]
	events := 0
	for _, l := range report.Lines {
		e := entryDoc{At: l.At, Kind: l.Kind, Text: l.Text}
		switch l.Kind {
		case "event":
			if events == len(t.Events) {
				return nil, fmt.Errorf("order %s: more sentences than events", t.Order.ID)
			}
			doc, err := eventOf(t.Events[events])
			if err != nil {
				return nil, err
			}
			e.Event = &doc
			events++
		case "version":
			doc := versionOf(versions[l.ID])
			e.Version = &doc
			delete(versions, l.ID)
		case "effect":
			doc := effectOf(effectAt(t.Order, effects[l.ID]))
			e.Effect = &doc
		case "transaction":
			doc := transactionOf(transactions[l.ID])
			e.Transaction = &doc
		}
		entries = append(entries, e)
	}
	return withSilent(entries, t, versions), nil
}

// withSilent adds the versions that no sentence is about, each before what came later.
func withSilent(entries list[entryDoc], t store.Timeline, silent map[string]store.Version) list[entryDoc] {
	for _, v := range t.Versions {
		if _, ok := silent[strconv.Itoa(v.Version)]; !ok {
			continue
		}
		doc := versionOf(v)
		e := entryDoc{At: v.At, Kind: "version", Text: fmt.Sprintf("v%d: still %s.", v.Version, v.To), Version: &doc}
		i := 0
		for i < len(entries) && !entries[i].At.After(v.At) {
			i++
		}
		entries = append(entries[:i], append(list[entryDoc]{e}, entries[i:]...)...)
	}
	return entries
}

func versionOf(v store.Version) versionDoc {
	return versionDoc{
		Version: v.Version, From: v.From, To: v.To, Cause: v.Cause, Source: v.Source, EventID: v.EventID, Kept: v.Kept, Flags: v.Flags,
	}
}

// effectAt is the effect of a version.
func effectAt(o store.Order, v store.Version) store.Effect {
	return store.Effect{
		Account: o.Account, Order: o.ID, Ref: o.Ref, Version: v.Version, Effect: v.Effect, State: v.EffectState,
		Attempts: v.Attempts, AskedAt: v.At, NextAt: v.NextAt, ClaimedUntil: v.ClaimedUntil, SettledAt: v.SettledAt,
		LastError: v.LastError, Why: v.Why, OrderState: o.State,
		Parked: v.EffectState == order.EffectOpen && order.Next(o.Told, o.Want) != v.Effect,
	}
}
