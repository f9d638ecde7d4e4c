package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

const tagReconciliation = "reconciliation"

func (a *API) reconciliationEndpoints() {
	add(a, endpoint{
		ID: "getReconciliation", Method: http.MethodGet, Path: "/v1/reconciliation", Tag: tagReconciliation, Role: roleRead,
		Summary: "Say how far gateways were asked what their webhooks lost",
		Description: "For each source how far its gateway's list was read, and what the last run found: events that no webhook had brought and how late they were, " +
			"orders whose gateway should have told by now how they go on, answers that say otherwise than our ledger, and transactions that are uncertain for long.",
		Response: `{"data": {"sources": [` + reconciliationExample + `]}}`,
	}, a.getReconciliation)
	add(a, endpoint{
		ID: "listReconciliationRuns", Method: http.MethodGet, Path: "/v1/reconciliation/runs", Tag: tagReconciliation, Role: roleRead,
		Summary:     "List runs over your sources, the newest first",
		Description: "Runs that found nothing are kept for two days, the others for 90. All filters must hold.",
		Codes:       []Code{CodeInvalidCursor}, Response: pageExample(`{"data": ` + reconcileRunExample + `}`),
	}, a.listReconcileRuns)
}

type (
	getReconciliationIn  struct{}
	getReconciliationOut struct{ Body dataOf[reconciliationDoc] }
)

// reconciliationDoc says how the sources of an account stand.
type reconciliationDoc struct {
	_ struct{} `additionalProperties:"true"`

	Sources list[reconciledSourceDoc] `json:"sources"`
}

// reconciledSourceDoc is how far the reconciliation of one source has come.
type reconciledSourceDoc struct {
	_ struct{} `additionalProperties:"true"`

	Source      string           `json:"source"`
	Gateway     string           `json:"gateway"`
	Lists       bool             `json:"lists" doc:"The gateway's list of what happened is read."`
	Asks        bool             `json:"asks" doc:"The gateway is asked about orders that wait."`
	Note        string           `json:"note,omitempty" doc:"Why not more, in sentences."`
	ReachedAt   *time.Time       `json:"reached_at" doc:"All that happened before is taken in. Null: the list was never read."`
	Lag         *int64           `json:"lag_seconds" doc:"How far that is behind now. Some minutes of it are the overlap that a list needs."`
	SucceededAt *time.Time       `json:"succeeded_at" doc:"The end of the last run that did all there was to do."`
	Running     bool             `json:"running" doc:"A run is at work."`
	NextAt      *time.Time       `json:"next_at" doc:"When the next one is due."`
	Failures    int              `json:"failures" doc:"Runs in a row that failed."`
	LastError   string           `json:"last_error,omitempty"`
	Open        int              `json:"open" doc:"Orders whose gateway should have told by now how they go on."`
	LastRun     *reconcileRunDoc `json:"last_run,omitempty" doc:"Absent: there was none, or it is forgotten."`
}

// reconcileRunDoc is one run over one source. Its lists hold 100 at most, its counts all.
type reconcileRunDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID        uuid.UUID             `json:"id" format:"uuid"`
	Source    string                `json:"source"`
	Gateway   string                `json:"gateway"`
	Cause     store.ReconcileCause  `json:"cause"`
	Result    store.ReconcileResult `json:"result"`
	StartedAt time.Time             `json:"started_at"`
	EndedAt   *time.Time            `json:"ended_at"`
	Error     string                `json:"error,omitempty" doc:"Why it failed."`
	Notes     list[string]          `json:"notes" doc:"What could not be done, and why, a sentence each."`

	From        *time.Time `json:"from" doc:"Where the list was read from; null: it was not."`
	Until       *time.Time `json:"until" doc:"Up to where the cursor moved; null: it did not."`
	Calls       int        `json:"calls" doc:"To the list."`
	Listed      int        `json:"listed" doc:"Events and objects that stood in the list."`
	Duplicates  int        `json:"duplicates" doc:"Of these, what was known."`
	Healed      int        `json:"healed" doc:"What no webhook had brought."`
	Moved       int        `json:"moved" doc:"Of that, what moved an order."`
	LateP50     int64      `json:"late_p50_seconds" doc:"How late half of it was, at most."`
	LateMax     int64      `json:"late_max_seconds" doc:"How late the latest was."`
	Differs     int        `json:"differs" doc:"Events that were known otherwise, and say more: entered as a second meaning of their id."`
	KeptAside   int        `json:"kept_aside" doc:"Events that cannot be read: in quarantine."`
	Announced   int        `json:"announced" doc:"Objects of the list that are asked about."`
	Asked       int        `json:"asked" doc:"Orders that wait and are asked about."`
	Open        int        `json:"open" doc:"Orders that wait."`
	Unexplained int        `json:"unexplained" doc:"Answers that say otherwise than our ledger and moved nothing."`
	Uncertain   int        `json:"uncertain" doc:"Transactions that are uncertain for long."`

	Events         list[healedDoc]        `json:"events"`
	Orders         list[waitingDoc]       `json:"orders"`
	Contradictions list[contradictionDoc] `json:"contradictions"`
	Transactions   list[uncertainDoc]     `json:"transactions"`
}

// healedDoc is something that no webhook had brought.
type healedDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID         string        `json:"id" doc:"The event's."`
	Type       string        `json:"type"`
	Outcome    store.Outcome `json:"outcome"`
	OrderID    *uuid.UUID    `json:"order_id" format:"uuid" nullable:"true"`
	OccurredAt *time.Time    `json:"occurred_at"`
	Late       int64         `json:"late_seconds" doc:"0 if it does not say when it happened."`
	Asked      bool          `json:"asked" doc:"The gateway was asked about it; otherwise it stood in its list."`
}

// waitingDoc is an order whose gateway should have told by now how it goes on.
type waitingDoc struct {
	_ struct{} `additionalProperties:"true"`

	OrderID  uuid.UUID   `json:"order_id" format:"uuid"`
	OrderRef string      `json:"order_ref"`
	State    order.State `json:"state"`
	Stub     bool        `json:"stub" doc:"Nobody has registered it."`
	Since    time.Time   `json:"since" doc:"Its last change."`
	Asks     int         `json:"asks" doc:"How often it was asked about."`
	AskedAt  *time.Time  `json:"asked_at"`
	NextAt   *time.Time  `json:"next_at" doc:"Null: it is not asked about any more, or cannot be."`
}

// contradictionDoc is an answer that says otherwise than our ledger.
type contradictionDoc struct {
	_ struct{} `additionalProperties:"true"`

	Object   string     `json:"object" doc:"What was asked about, as kind/id."`
	OrderID  *uuid.UUID `json:"order_id" format:"uuid" nullable:"true"`
	What     string     `json:"what" enum:"captured,refunded"`
	Ours     int64      `json:"ours" doc:"Minor units of currency."`
	Theirs   int64      `json:"theirs" doc:"Minor units of currency."`
	Currency string     `json:"currency"`
	Text     string     `json:"text" doc:"A sentence."`
}

// uncertainDoc is a transaction of which it is not known for long what became of it.
type uncertainDoc struct {
	_ struct{} `additionalProperties:"true"`

	ID       uuid.UUID          `json:"id" format:"uuid"`
	OrderID  uuid.UUID          `json:"order_id" format:"uuid"`
	Kind     order.MovementKind `json:"kind"`
	Amount   int64              `json:"amount" doc:"Minor units of currency."`
	Currency string             `json:"currency"`
	SentAt   *time.Time         `json:"sent_at"`
	Code     string             `json:"code,omitempty"`
}

// notReconciled is the note of a source that no run has looked at.
const notReconciled = "No run has looked at it yet: reconcile.every is 0, or work does not run."

func (a *API) getReconciliation(ctx context.Context, c *call, _ *getReconciliationIn) (*getReconciliationOut, error) {
	cursors, err := a.store.ReconcileCursors(ctx, c.key.Account)
	if err != nil {
		return nil, err
	}
	known := map[string]store.ReconcileCursor{}
	for _, cur := range cursors {
		known[cur.Source] = cur
	}
	out := &getReconciliationOut{}
	for _, s := range a.opts.Sources(c.key.Account) {
		cur, ok := known[s.ID]
		if !ok {
			out.Body.Data.Sources = append(out.Body.Data.Sources, reconciledSourceDoc{Source: s.ID, Gateway: s.Gateway, Note: notReconciled})
			continue
		}
		doc := reconciledSourceDoc{
			Source: cur.Source, Gateway: cur.Gateway, Lists: cur.Lists, Asks: cur.Asks, Note: cur.Note, ReachedAt: cur.ReachedAt, SucceededAt: cur.SucceededAt,
			Running: cur.RunningTill != nil, NextAt: &cur.NextAt, Failures: cur.Failures, LastError: cur.LastError, Open: cur.Open,
		}
		if cur.ReachedAt != nil {
			lag := int64(cur.Lag / time.Second)
			doc.Lag = &lag
		}
		last, _, err := a.store.ReconcileRuns(ctx, store.ReconcileRunFilter{Account: c.key.Account, Source: s.ID, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(last) > 0 {
			run := reconcileRunOf(last[0])
			doc.LastRun = &run
		}
		out.Body.Data.Sources = append(out.Body.Data.Sources, doc)
	}
	return out, nil
}

type listReconcileRunsIn struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"How many a page has at most."`
	Cursor string `query:"cursor" maxLength:"2000" doc:"next of the page before. Rows that are made meanwhile neither repeat nor hide others."`

	Source   string `query:"source" maxLength:"64" doc:"Only over this source."`
	Eventful bool   `query:"eventful" doc:"true: only those that found something, or failed."`
}

type listReconcileRunsOut struct {
	Body pageOf[reconcileRunDoc]
}

func (a *API) listReconcileRuns(ctx context.Context, c *call, in *listReconcileRunsIn) (*listReconcileRunsOut, error) {
	at, err := cursorOf(listReconcileRuns, in.Cursor)
	if err != nil {
		return nil, err
	}
	runs, next, err := a.store.ReconcileRuns(ctx, store.ReconcileRunFilter{
		Account: c.key.Account, Source: in.Source, Eventful: in.Eventful, Before: at.ID, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := &listReconcileRunsOut{}
	for _, r := range runs {
		out.Body.Data = append(out.Body.Data, reconcileRunOf(r))
	}
	if next != uuid.Nil {
		out.Body.Next, err = cursor{List: listReconcileRuns, ID: next}.next()
	}
	return out, err
}

func reconcileRunOf(r store.ReconcileRun) reconcileRunDoc {
	doc := reconcileRunDoc{
		ID: r.ID, Source: r.Source, Gateway: r.Gateway, Cause: r.Cause, Result: r.Result, StartedAt: r.StartedAt, EndedAt: r.EndedAt, Error: r.Error, Notes: r.Notes,
		From: r.From, Until: r.Until, Calls: r.Calls, Listed: r.Listed, Duplicates: r.Duplicates, Healed: r.Healed, Moved: r.Moved, LateP50: r.LateP50, LateMax: r.LateMax,
		Differs: r.Differs, KeptAside: r.KeptAside, Announced: r.Announced, Asked: r.Asked, Open: r.Open, Unexplained: r.Unexplained, Uncertain: r.Uncertain,
	}
	for _, h := range r.Events {
		doc.Events = append(doc.Events, healedDoc{
			ID: h.ID, Type: h.Type, Outcome: h.Outcome, OrderID: h.Order, OccurredAt: h.OccurredAt, Late: h.Late, Asked: h.Asked,
		})
	}
	for _, o := range r.Orders {
		doc.Orders = append(doc.Orders, waitingDoc{
			OrderID: o.Order, OrderRef: o.Ref, State: o.State, Stub: o.Stub, Since: o.Since, Asks: o.Asks, AskedAt: o.AskedAt, NextAt: o.NextAt,
		})
	}
	for _, d := range r.Contradictions {
		doc.Contradictions = append(doc.Contradictions, contradictionDoc{
			Object: d.Object, OrderID: d.Order, What: d.What, Ours: d.Ours, Theirs: d.Theirs, Currency: d.Currency, Text: d.Detail,
		})
	}
	for _, t := range r.Transactions {
		doc.Transactions = append(doc.Transactions, uncertainDoc{
			ID: t.ID, OrderID: t.Order, Kind: t.Kind, Amount: t.Amount, Currency: t.Currency, SentAt: t.SentAt, Code: t.Code,
		})
	}
	return doc
}

type (
	reconcileCauseWord  string
	reconcileResultWord string
)

// Schema documents the causes there are.
func (reconcileCauseWord) Schema(huma.Registry) *huma.Schema {
	return words([]store.ReconcileCause{store.ReconcileBySchedule, store.ReconcileByCommand}, "schedule: it was due. command: a person ran paidonce reconcile.")
}

// Schema documents the results there are.
func (reconcileResultWord) Schema(huma.Registry) *huma.Schema {
	return words([]store.ReconcileResult{
		store.ReconcileRunning, store.ReconcileDone, store.ReconcileMore, store.ReconcileFailed, store.ReconcileStopped, store.ReconcileLost,
	}, "done: all that there was. more: as much as a run may; the next one goes on. stopped: the process ended in good order. lost: it was killed.")
}

const reconcileRunExample = `{
  "id": "0199a1b2-0000-7000-8000-000000000009", "source": "stripe", "gateway": "stripe", "cause": "schedule", "result": "done",
  "started_at": "2026-10-05T09:00:00Z", "ended_at": "2026-10-05T09:00:02Z", "notes": [],
  "from": "2026-10-05T08:40:00Z", "until": "2026-10-05T08:48:00Z", "calls": 1, "listed": 14, "duplicates": 13, "healed": 1, "moved": 1,
  "late_p50_seconds": 905, "late_max_seconds": 905, "differs": 0, "kept_aside": 0, "announced": 0, "asked": 0, "open": 0, "unexplained": 0, "uncertain": 0,
  "events": [{"id": "evt_1PtoA2", "type": "payment_intent.succeeded", "outcome": "applied", "order_id": "0199a1b2-0000-7000-8000-000000000001",
    "occurred_at": "2026-10-05T08:44:56Z", "late_seconds": 905, "asked": false}],
  "orders": [], "contradictions": [], "transactions": []}`

const reconciliationExample = `{
  "source": "stripe", "gateway": "stripe", "lists": true, "asks": true, "reached_at": "2026-10-05T08:48:00Z", "lag_seconds": 742,
  "succeeded_at": "2026-10-05T09:00:02Z", "running": false, "next_at": "2026-10-05T09:05:02Z", "failures": 0, "open": 0,
  "last_run": ` + reconcileRunExample + `}`
