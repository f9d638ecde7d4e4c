package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// Facts that were read wrongly are no joins: what they said has to go away again. So an event's facts are replaced in
// processed_events, and every payment that they concern, as they were and as they are, is folded anew from the facts of
// all its events. Nothing is subtracted.
//
// Ids that no event connects any more part, ids that one connects now become one payment, and a payment moves to the
// order that its events name now. An order makes at most one new version for it, by the cause [CauseReevaluated], and
// its book plans from there: what the merchant was told stays told, and the opposite is owed where it was wrong.

// CauseReevaluated is the cause of versions that come from reading events again.
const CauseReevaluated = "reevaluated"

// ReevaluateOptions say which events [Store.Reevaluate] reads again, and how.
type ReevaluateOptions struct {
	Filter ReevaluateFilter

	// Read maps a kept delivery as a delivery of today would be; it is required. Its error concerns that delivery alone.
	Read func(StoredDelivery) ([]Event, error)

	// Same reports whether an event of a delivery is the stored one of this id, though its own id is another today, as
	// where the id holds a hash of what is said. Default: never.
	Same func(id string, today Event) bool

	// Apply replaces facts and moves orders. Without it, nothing is written: each group is done and taken back.
	Apply bool

	// Limit ends the work once so many events have been, or would be, replaced; 0: no limit. Events of one order are
	// never parted, so there may be a few more.
	Limit int

	// Each is told of every group once it is committed (in a dry run: taken back). An error of it ends the work.
	Each func(Reevaluated) error
}

// Reevaluated is what reading a group of events again came to.
type Reevaluated struct {
	Read    int // events that were read, with those that were skipped
	Events  []EventChange
	Orders  []OrderChange
	Entered []EnteredEvent
	Skipped []SkippedEvent
}

// EnteredEvent is an event that is new: it is held by bytes that could not be read at all before, and were kept in
// quarantine under an id of their own, or [Store.Replay] found it missing. A known one has the outcome [Duplicate].
type EnteredEvent struct {
	Account string `json:"account"`
	Source  string `json:"source"`
	ID      string `json:"event_id"`
	EventMeaning
	OrderVersionBefore int `json:"order_version_before,omitempty"`
	OrderVersionAfter  int `json:"order_version_after,omitempty"`
}

// EventChange is an event that means something else today.
type EventChange struct {
	Account string       `json:"account"`
	Source  string       `json:"source"`
	ID      string       `json:"event_id"`
	Before  EventMeaning `json:"before"`
	After   EventMeaning `json:"after"`
}

// EventMeaning is what an event is taken to say, and what it did.
type EventMeaning struct {
	Type           string         `json:"type"`
	OccurredAt     *time.Time     `json:"occurred_at,omitempty"`
	Realm          string         `json:"realm,omitempty"`
	Payment        []string       `json:"payment,omitempty"`
	Reference      string         `json:"reference,omitempty"`
	Strength       order.Strength `json:"strength,omitempty"`
	Renewal        *order.Renewal `json:"renewal,omitempty"`
	Facts          []order.Fact   `json:"facts,omitempty"`
	Own            *order.Amount  `json:"own,omitempty"`
	Ignored        string         `json:"ignored,omitempty"`
	Broken         string         `json:"broken,omitempty"`
	Fetch          string         `json:"fetch,omitempty"` // what has to be asked about: the caller announces it ([Store.Announce])
	OnUnknown      OnUnknown      `json:"on_unknown_order,omitempty"`
	Outcome        Outcome        `json:"outcome"`
	Reason         string         `json:"reason,omitempty"`
	Order          string         `json:"order,omitempty"` // the reference of the order of its payment
	MappingVersion int            `json:"mapping_version"`
}

// OrderChange is an order that moves because events mean something else, or were missing.
type OrderChange struct {
	Account string        `json:"account"`
	ID      uuid.UUID     `json:"id"` // in a dry run, of no use if New
	Ref     string        `json:"external_ref"`
	New     bool          `json:"new"` // it is made for a payment that no order had; Before is then zero
	Before  OrderStanding `json:"before"`
	After   OrderStanding `json:"after"`
}

// OrderStanding is an order at one version.
type OrderStanding struct {
	order.View
	Version int          `json:"version"`
	Told    order.Told   `json:"told"`
	Owed    order.Effect `json:"owed,omitempty"` // the effect that follows: Next(Told, Want)
}

// SkippedEvent is an event that was left as it is.
type SkippedEvent struct {
	Account string `json:"account"`
	Source  string `json:"source"`
	ID      string `json:"event_id"`
	Code    string `json:"code"` // one of the Skip constants
	Why     string `json:"why"`  // for people
}

// Why an event that the filter chose was left as it is.
const (
	SkipPayloadGone = "payload_gone" // retention has dropped its bytes
	SkipUnreadable  = "unreadable"   // today's mapping refuses its bytes, or its source is not configured
	SkipOtherID     = "other_id"     // today's mapping finds no event of this id in its bytes
	SkipAmbiguous   = "ambiguous"    // its bytes hold several events of this id, and none is the one that was stored
)

// reevaluatePage is how many events are read and folded in one transaction, not counting others of the same orders.
const reevaluatePage = 32

// Reevaluate reads kept bytes again and, where they mean something else today, replaces the facts of their events and
// rebuilds the payments and orders that these concern. What commits together: the new facts, the old ones (in
// event_meanings), payments, orders with their versions, and the jobs of what they owe; one transaction for some events
// and the orders they touch.
//
// Events of source api are never read. One that waits for its source to resume goes on waiting. What is stopped can be
// begun again: an event whose facts are today's is left alone. Events may be ingested meanwhile.
func (s *Store) Reevaluate(ctx context.Context, o ReevaluateOptions) error {
	if o.Read == nil {
		return errors.New("store: ReevaluateOptions.Read is nil")
	}
	r := &reevaluation{s: s, o: o, done: map[eventKey]bool{}}
	for {
		page, err := s.candidates(ctx, o.Filter, r.last, reevaluatePage)
		if err != nil {
			return err
		}
		if len(page) > 0 {
			if err := r.group(ctx, page); err != nil {
				return err
			}
			r.last = page[len(page)-1].key
		}
		if len(page) < reevaluatePage || o.Limit > 0 && r.changed >= o.Limit {
			return nil
		}
	}
}

// reevaluation is one call of Reevaluate.
type reevaluation struct {
	s       *Store
	o       ReevaluateOptions
	last    eventKey
	done    map[eventKey]bool // changed; perhaps before their turn, with the orders they belong to
	changed int
}

// group reads one page, with what else the filter chooses of the same orders, and rebuilds what changed.
func (r *reevaluation) group(ctx context.Context, page []*heldEvent) error {
	var turn []*heldEvent
	for _, h := range page {
		if !r.done[h.key] {
			turn = append(turn, h)
		}
	}
	var out Reevaluated
	changed, err := r.reread(ctx, turn, &out)
	if err != nil {
		return err
	}
	out.Read = len(turn)
	if limit := r.o.Limit; limit > 0 && r.changed+len(changed) > limit {
		changed = changed[:limit-r.changed]
	}
	if len(changed) > 0 {
		others, err := r.siblings(ctx, changed, turn)
		if err != nil {
			return err
		}
		out.Read += len(others)
		changed = append(changed, others...)
		for _, c := range changed {
			r.done[c.key] = true
		}
		if err := r.enter(ctx, changed, &out); err != nil {
			return err
		}
		if err := r.rebuild(ctx, changed, &out); err != nil {
			return err
		}
		r.changed += len(out.Events)
	}
	if r.o.Each == nil {
		return nil
	}
	return r.o.Each(out)
}

// rebuild is the one transaction of a group.
func (r *reevaluation) rebuild(ctx context.Context, changed []changedEvent, out *Reevaluated) error {
	s := r.s
	g, err := retry(ctx, &s.retried, func() (*rebuild, error) {
		var g *rebuild
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			if g, err = newRebuild(changed); err != nil {
				return err
			}
			if err := g.run(ctx, tx, s); err != nil {
				return err
			}
			if !r.o.Apply {
				return errDryRun
			}
			return nil
		})
		if errors.Is(err, errDryRun) {
			err = nil
		}
		return g, err
	})
	if err != nil {
		return fmt.Errorf("reevaluate %d events, the first %s: %w", len(changed), changed[0].key.id, err)
	}
	out.Events, out.Orders = g.events, g.changes
	return nil
}

// heldEvent is a row of processed_events.
type heldEvent struct {
	key      eventKey
	item     *item // as it stands
	hash     []byte
	mapping  int16
	outcome  Outcome
	reason   string
	order    uuid.UUID
	received time.Time
}

// folds reports whether the event's facts are in its payment's ledger.
func (h *heldEvent) folds() bool {
	return h.item.folds() && (h.outcome != Waiting || h.reason != ReasonSourcePaused)
}

// canon is what the event is taken to say, in bytes to compare. What it may do about unknown orders is no matter while
// it says nothing.
func canon(it *item) (string, error) {
	m := meaningOf(it.Event)
	if it.OnUnknown != OnUnknownStub && it.Ignored == "" && it.Broken == "" && it.Fetch == "" {
		m.OnUnknown = it.OnUnknown
	}
	doc, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("facts of event %s: %w", it.id, err)
	}
	return fmt.Sprintf("%s\x00%s\x00%d\x00%s", it.Type, it.Realm, micros(it.At), doc), nil
}

// meaningAt is what an item says, and what became of it; ref names its order, if it has one.
func meaningAt(it *item, ref string, outcome Outcome, reason string, mapping int16) EventMeaning {
	return EventMeaning{
		Type: it.Type, OccurredAt: nullTime(it.At), Realm: it.Realm, Payment: it.Payment, Reference: it.Reference,
		Strength: it.Strength, Renewal: it.Renewal, Facts: it.Facts, Own: it.Own, Ignored: it.Ignored, Broken: it.Broken, Fetch: it.Fetch,
		OnUnknown: it.OnUnknown, Outcome: outcome, Reason: reason, Order: ref, MappingVersion: int(mapping),
	}
}
