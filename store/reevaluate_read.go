package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// changedEvent is an event whose bytes say something else today.
type changedEvent struct {
	key   eventKey
	next  Event
	ref   string  // the order of the period that next renews; empty: the one that it names
	enter []Event // what its bytes hold instead
}

// rereader reads stored events again, from the bytes that brought them.
type rereader struct {
	q    batcher
	read func(StoredDelivery) ([]Event, error)
	same func(id string, today Event) bool // may be nil
}

// batcher is a pool or a transaction.
type batcher interface {
	querier
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// rereadEvent is a stored event beside what its bytes say today.
type rereadEvent struct {
	held *heldEvent
	next Event
	item *item // of next; its order is that of the period that it renews, if there is one

	// Where the event is not found in its bytes: one of the Skip constants, and why; and what they hold instead, if they can be read.
	code, why string
	delivery  StoredDelivery
	events    []Event
}

// reread reads the bytes of events again, each delivery once.
func (r *rereader) reread(ctx context.Context, turn []*heldEvent) ([]rereadEvent, error) {
	kept, err := keptBytes(ctx, r.q, turn)
	if err != nil {
		return nil, err
	}
	read := map[uuid.UUID][]Event{}
	failed := map[uuid.UUID]error{}
	all := make([]rereadEvent, len(turn))
	for i, h := range turn {
		t := &all[i]
		t.held = h
		d, ok := kept[h.key]
		if !ok {
			t.code, t.why = SkipPayloadGone, "its bytes are not kept any more"
			continue
		}
		if _, ok := read[d.Delivery]; !ok && failed[d.Delivery] == nil {
			events, err := r.read(d)
			if err != nil {
				failed[d.Delivery] = err
			}
			read[d.Delivery] = events
		}
		if err := failed[d.Delivery]; err != nil {
			t.code, t.why = SkipUnreadable, err.Error()
			continue
		}
		t.delivery, t.events = d, read[d.Delivery]
		t.next, t.code = r.theEvent(h, t.events)
		switch t.code {
		case SkipOtherID:
			t.why = "its bytes hold no event of this id today; what they hold can be entered with: paidonce replay --from-db"
			continue
		case SkipAmbiguous:
			t.why = "its bytes hold several events of this id, and none of them is the stored one"
			continue
		}
		t.next.Account, t.next.Source = h.key.account, h.key.source
		if t.item, err = newItem(0, &t.next); err != nil {
			t.code, t.why = SkipUnreadable, err.Error()
		}
	}
	return all, resolveRenewals(ctx, r.q, all)
}

// reread reads the bytes of events again and returns those that changed. It reports what cannot be read.
func (r *reevaluation) reread(ctx context.Context, turn []*heldEvent, out *Reevaluated) ([]changedEvent, error) {
	today, err := (&rereader{r.s.pool, r.o.Read, r.o.Same}).reread(ctx, turn)
	if err != nil {
		return nil, err
	}
	bases, err := r.s.baseHashes(ctx, turn)
	if err != nil {
		return nil, err
	}
	var (
		changed []changedEvent
		stale   []eventKey
		mapping int16
	)
	for _, t := range today {
		h := t.held
		switch {
		case t.code == SkipOtherID && h.item.Ignored == ReasonReread:
			continue // its events were entered
		case t.code == SkipOtherID && h.item.Broken != "":
			changed = append(changed, insteadOf(h, t.delivery, t.events))
			continue
		case t.code != "":
			out.Skipped = append(out.Skipped, SkippedEvent{h.key.account, h.key.source, h.key.id, t.code, t.why})
			continue
		}
		same, err := h.means(t.item)
		switch {
		case err != nil:
			return nil, err
		case !same, bytes.Equal(bases[h.key], h.hash):
			c := changedEvent{key: h.key, next: t.next}
			if t.item.Reference != t.next.Reference {
				c.ref = t.item.Reference
			}
			changed = append(changed, c)
		case h.mapping < t.next.MappingVersion:
			stale, mapping = append(stale, h.key), t.next.MappingVersion
		}
	}
	return changed, r.restamp(ctx, stale, mapping)
}

// resolveRenewals finds, as an ingest does, the orders of events that are renewals.
func resolveRenewals(ctx context.Context, q batcher, events []rereadEvent) error {
	items := make([]*item, 0, len(events))
	for _, t := range events {
		if t.code == "" {
			items = append(items, t.item)
		}
	}
	var b pgx.Batch
	renewed := queueRenewals(&b, items)
	if renewed == nil {
		return nil
	}
	if err := send(ctx, q, &b); err != nil {
		return fmt.Errorf("find what %d events renew: %w", len(items), err)
	}
	return renewed.resolve()
}

// baseHashes returns, for events that were flagged because their id had come before with other facts, the hash of what had
// come before as it is today: that was perhaps read again just when they came.
func (s *Store) baseHashes(ctx context.Context, events []*heldEvent) (map[eventKey][]byte, error) {
	var keys []eventKey
	for _, h := range events {
		if h.item.id != h.item.ID && h.outcome == Flagged && h.reason == ReasonIDReused {
			keys = append(keys, h.key)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	slices.SortFunc(keys, eventKey.compare)
	accounts, sources, ids := keyColumns(keys)
	for i, id := range ids {
		ids[i] = reusedID.ReplaceAllString(id, "")
	}
	rows, _ := s.pool.Query(ctx, sqlKnownEvents, accounts, sources, ids)
	hashes := map[eventKey][]byte{}
	var (
		n       int64
		hash    []byte
		ord     pgtype.UUID
		version *int
	)
	_, err := pgx.ForEachRow(rows, []any{&n, &hash, &ord, &version}, func() error {
		hashes[keys[n]] = slices.Clone(hash)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find what came before: %w", err)
	}
	return hashes, nil
}

// theEvent finds a stored event among those of its bytes.
func (r *rereader) theEvent(h *heldEvent, events []Event) (Event, string) {
	var found []Event
	for _, e := range events {
		if e.ID == h.item.ID {
			found = append(found, e)
		}
	}
	if len(found) == 0 && r.same != nil {
		for _, e := range events {
			if r.same(h.item.ID, e) {
				e.ID = h.item.ID
				found = append(found, e)
			}
		}
	}
	switch len(found) {
	case 0:
		return Event{}, SkipOtherID
	case 1:
		return found[0], ""
	}
	for i := range found { // one id twice in one delivery
		if it, err := newItem(0, &found[i]); err == nil && bytes.Equal(it.hash, h.hash) {
			return found[i], ""
		}
	}
	return Event{}, SkipAmbiguous
}

// insteadOf is what becomes of bytes that could not be read, not even what they are called: the events that they hold
// today are entered, and what stood for them is done with.
func insteadOf(h *heldEvent, d StoredDelivery, events []Event) changedEvent {
	c := changedEvent{key: h.key, enter: slices.Clone(events)}
	for i := range c.enter {
		e := &c.enter[i]
		e.Account, e.Source, e.Delivery, e.Payload, e.Header = h.key.account, h.key.source, d.Delivery, d.Body, d.Header
		c.next.MappingVersion = e.MappingVersion
	}
	c.next.Account, c.next.Source = h.key.account, h.key.source
	c.next.Event = order.Event{ID: h.item.ID, Type: h.item.Type, At: h.item.At, Realm: h.item.Realm, Ignored: ReasonReread}
	return c
}

// enter enters events that are held by bytes which could not be read before. In a dry run they are taken back.
func (r *reevaluation) enter(ctx context.Context, changed []changedEvent, out *Reevaluated) error {
	var events []Event
	for _, c := range changed {
		events = append(events, c.enter...)
	}
	if len(events) == 0 {
		return nil
	}
	do := r.s.DryRun
	if r.o.Apply {
		do = r.s.Apply
	}
	results, err := do(ctx, events)
	if err != nil {
		return fmt.Errorf("enter %d events that could not be read before: %w", len(events), err)
	}
	for i, e := range events {
		res := results[i]
		out.Entered = append(out.Entered, EnteredEvent{
			Account: e.Account, Source: e.Source, ID: e.ID, OrderVersionBefore: res.Before, OrderVersionAfter: res.After,
			EventMeaning: meaningAt(&item{Event: &events[i]}, "", res.Outcome, res.Reason, max(e.MappingVersion, 1)),
		})
	}
	return nil
}

// restamp notes that events mean to today's mapping what they meant to an older one, so that a filter by mapping_version
// does not find them again.
func (r *reevaluation) restamp(ctx context.Context, keys []eventKey, mapping int16) error {
	if len(keys) == 0 || !r.o.Apply {
		return nil
	}
	accounts, sources, ids := keyColumns(keys)
	_, err := retry(ctx, &r.s.retried, func() (struct{}, error) {
		_, err := r.s.pool.Exec(ctx, `
			WITH held AS MATERIALIZED (
				SELECT e.account_id, e.source_id, e.event_id
				FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, s, i)
				JOIN processed_events e ON e.account_id = x.a AND e.source_id = x.s AND e.event_id = x.i
				ORDER BY e.account_id, e.source_id, e.event_id
				FOR NO KEY UPDATE OF e)
			UPDATE processed_events e SET mapping_version = $4
			FROM held h
			WHERE e.account_id = h.account_id AND e.source_id = h.source_id AND e.event_id = h.event_id AND e.mapping_version < $4`,
			accounts, sources, ids, mapping)
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("note that %d events mean the same: %w", len(keys), err)
	}
	return nil
}
