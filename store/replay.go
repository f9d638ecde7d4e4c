package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// Replay enters events once more, as [Store.Apply] does, and says which of them were missing and how the orders moved that these
// concern. Without apply it is taken back. What is known changes nothing, not even the count of its deliveries; and bytes that are kept
// under an event's id are not kept again.
func (s *Store) Replay(ctx context.Context, events []Event, apply bool) (Reevaluated, error) {
	if len(events) == 0 {
		return Reevaluated{}, nil
	}
	events, err := s.withoutKeptBytes(ctx, events)
	if err != nil {
		return Reevaluated{}, err
	}
	return retry(ctx, &s.retried, func() (out Reevaluated, err error) {
		out.Read = len(events)
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			bt := newBatch()
			results, err := s.enterBatch(ctx, tx, bt, events, false)
			if err != nil {
				return err
			}
			bt.report(events, results, &out)
			if !apply {
				return errDryRun
			}
			return nil
		})
		if errors.Is(err, errDryRun) {
			err = nil
		}
		return out, err
	})
}

// withoutKeptBytes returns the events without those bytes that are kept.
func (s *Store) withoutKeptBytes(ctx context.Context, events []Event) ([]Event, error) {
	events = slices.Clone(events)
	accounts, sources, ids := make([]string, len(events)), make([]string, len(events)), make([]string, len(events))
	for i, e := range events {
		accounts[i], sources[i], ids[i] = e.Account, e.Source, e.ID
	}
	rows, _ := s.pool.Query(ctx, keptPayloads+`
		SELECT x.n - 1 FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(a, s, i, n)
		WHERE EXISTS (SELECT FROM payloads p WHERE p.account_id = x.a AND p.source_id = x.s AND p.event_id = x.i)`, accounts, sources, ids)
	var n int64
	_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
		events[n].Payload = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find the bytes of %d events: %w", len(events), err)
	}
	return events, nil
}

// report says what of a batch was new, and which orders moved.
func (bt *batch) report(events []Event, results []Result, out *Reevaluated) {
	for i, r := range results {
		if r.Outcome == Duplicate {
			continue
		}
		e := &events[i]
		ref := ""
		if o := bt.orders[orderKey{e.Account, r.Order}]; o != nil {
			ref = o.ref
		}
		out.Entered = append(out.Entered, EnteredEvent{
			Account: e.Account, Source: e.Source, ID: e.ID, OrderVersionBefore: r.Before, OrderVersionAfter: r.After,
			EventMeaning: meaningAt(&item{Event: e}, ref, r.Outcome, r.Reason, max(e.MappingVersion, 1)),
		})
	}
	var moved []*lockedOrder
	for _, o := range bt.orders {
		if o.isNew && o.used || !o.isNew && o.book.Version != o.read {
			moved = append(moved, o)
		}
	}
	sortOrders(moved)
	for _, o := range moved {
		out.Orders = append(out.Orders, o.change())
	}
}

// Recognition is how an event that kept bytes hold stands in processed_events.
type Recognition int

// An event that bytes hold is missing, is known as it is, or is known and was taken to say something else.
const (
	HeldMissing Recognition = iota
	HeldKnown
	HeldOther
)

// HeldEvents are the events that the bytes of a kept delivery hold today.
type HeldEvents struct {
	StoredDelivery
	Events []Event
}

// HeldError says which delivery holds an event that cannot be stored today, and why.
type HeldError struct {
	Index int // in the slice given to [Store.Recognise]
	Err   error
}

func (e *HeldError) Error() string { return e.Err.Error() }
func (e *HeldError) Unwrap() error { return e.Err }

// Recognise says of each event of some deliveries how it stands. same reports whether an event of today is the one that is stored
// under an id, though its own id is another today; nil: never.
//
// An id that is known with other facts is another event if these came in another delivery. If they came in this one, it is the
// same event, and what is read of it differs. The error is a [*HeldError] if an event could not be stored.
func (s *Store) Recognise(ctx context.Context, deliveries []HeldEvents, same func(id string, today Event) bool) ([][]Recognition, error) {
	items := make([][]*item, len(deliveries))
	var all []*item
	for i, d := range deliveries {
		of, err := newItems(d.Events)
		if err != nil {
			return nil, &HeldError{i, err}
		}
		items[i], all = of, append(all, of...)
	}
	known, err := s.knownHashes(ctx, all)
	if err != nil {
		return nil, err
	}
	out := make([][]Recognition, len(deliveries))
	for i, d := range deliveries {
		out[i] = make([]Recognition, len(items[i]))
		var odd []*item
		for n, it := range items[i] {
			_, again := known[it.reusedKey()]
			if again || bytes.Equal(known[it.key()], it.hash) {
				out[i][n] = HeldKnown
			} else {
				odd = append(odd, it)
			}
		}
		if len(odd) == 0 {
			continue
		}
		b := brought{s: s, d: d, today: map[string]bool{}, same: same}
		for _, it := range items[i] {
			b.today[it.ID] = true
		}
		for _, it := range odd {
			_, taken := known[it.key()]
			if other, err := b.has(ctx, it, taken); err != nil {
				return nil, err
			} else if other {
				out[i][it.index] = HeldOther
			}
		}
	}
	return out, nil
}

// reusedKey is the key of an event whose id is taken by other facts.
func (it *item) reusedKey() eventKey {
	return eventKey{it.Account, it.Source, it.ID + "#" + hex.EncodeToString(it.hash)}
}

// knownHashes are the facts that the ids of events are known with, also those that are known a second time.
func (s *Store) knownHashes(ctx context.Context, items []*item) (map[eventKey][]byte, error) {
	var keys []eventKey
	for _, it := range items {
		keys = append(keys, it.key(), it.reusedKey())
	}
	slices.SortFunc(keys, eventKey.compare)
	accounts, sources, ids := keyColumns(keys)
	known := map[eventKey][]byte{}
	var (
		n       int64
		hash    []byte
		ord     pgtype.UUID
		version *int
	)
	rows, _ := s.pool.Query(ctx, sqlKnownEvents, accounts, sources, ids)
	_, err := pgx.ForEachRow(rows, []any{&n, &hash, &ord, &version}, func() error {
		known[keys[n]] = slices.Clone(hash)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find %d events: %w", len(items), err)
	}
	return known, nil
}

// brought is what a delivery is known to have brought.
type brought struct {
	s     *Store
	d     HeldEvents
	today map[string]bool // the ids that its bytes hold now
	same  func(id string, today Event) bool

	quick, all map[string]bool // nil: not asked yet
}

// has reports whether an event is one that the delivery has brought, and that said something else then.
func (b *brought) has(ctx context.Context, it *item, taken bool) (bool, error) {
	if err := b.ask(ctx, &b.quick, sqlBroughtQuickly); err != nil {
		return false, err
	}
	is := func(id string) bool {
		return reusedID.ReplaceAllString(id, "") == it.ID || b.same != nil && !b.today[id] && b.same(id, *it.Event)
	}
	unsure := taken
	for id := range b.quick {
		if is(id) {
			return true, nil
		}
		// Another state of the same object came along: this one may have, too, in other words.
		unsure = unsure || b.same != nil && b.same(id, *it.Event)
	}
	if !unsure {
		return false, nil
	}
	if err := b.ask(ctx, &b.all, sqlBrought); err != nil {
		return false, err
	}
	for id := range b.all {
		if is(id) {
			return true, nil
		}
	}
	return false, nil
}

const (
	// The row that has the body, and those of the ids that the bytes hold today, are found by an index.
	sqlBroughtQuickly = keptPayloads + `
		SELECT p.event_id
		FROM (
			SELECT p.event_id FROM payloads p WHERE p.delivery = $3 AND p.body IS NOT NULL
			UNION
			SELECT p.event_id FROM unnest($5::text[]) AS x(id)
			CROSS JOIN LATERAL (
				SELECT p.event_id FROM payloads p WHERE p.account_id = $1 AND p.source_id = $2 AND p.event_id = x.id AND p.delivery = $3 AND $4::timestamptz IS NOT NULL) p
		) p
		JOIN processed_events e ON e.account_id = $1 AND e.source_id = $2 AND e.event_id = p.event_id`

	// All of its rows were written at once, which leads to one partition at least.
	sqlBrought = keptPayloads + `
		SELECT p.event_id FROM payloads p
		JOIN processed_events e ON e.account_id = p.account_id AND e.source_id = p.source_id AND e.event_id = p.event_id
		WHERE p.account_id = $1 AND p.source_id = $2 AND p.delivery = $3 AND p.received_at = $4 AND $5::text[] IS NOT NULL`
)

func (b *brought) ask(ctx context.Context, into *map[string]bool, sql string) error {
	if *into != nil {
		return nil
	}
	rows, _ := b.s.pool.Query(ctx, sql, b.d.Account, b.d.Source, pgUUID(b.d.Delivery), b.d.ReceivedAt, slices.Collect(maps.Keys(b.today)))
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("find what delivery %s brought: %w", b.d.Delivery, err)
	}
	*into = map[string]bool{}
	for _, id := range ids {
		(*into)[id] = true
	}
	return nil
}
