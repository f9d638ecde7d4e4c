package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// eventKey is the primary key of processed_events: the thing that makes an event happen once.
type eventKey struct{ account, source, id string }

func (it *item) key() eventKey { return eventKey{it.Account, it.Source, it.id} }

func (k eventKey) compare(l eventKey) int {
	return cmp.Or(cmp.Compare(k.account, l.account), cmp.Compare(k.source, l.source), cmp.Compare(k.id, l.id))
}

const eventColumns = `account_id, source_id, event_id, type, realm, payment, occurred_at, facts, facts_hash, mapping_version`

// A row waits here for the transaction that is entering the same id; afterwards it is either ours or a duplicate.
const (
	sqlInsertEvents = `
		INSERT INTO processed_events (` + eventColumns + `)
		SELECT account, source, id, type, realm, payment, at, facts::jsonb, hash, mapping
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[], $9::bytea[],
			$10::smallint[]) AS x(account, source, id, type, realm, payment, at, facts, hash, mapping)
		ORDER BY account, source, id
		ON CONFLICT DO NOTHING
		RETURNING account_id, source_id, event_id`

	sqlKnownEvents = `
		SELECT x.n - 1, e.facts_hash, e.order_id, e.order_version_after
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(account, source, id, n)
		CROSS JOIN LATERAL (
			SELECT e.facts_hash, e.order_id, e.order_version_after FROM processed_events e
			WHERE e.account_id = x.account AND e.source_id = x.source AND e.event_id = x.id LIMIT 1) e`
)

// gate is the first round trip: which of a batch's ids are new.
type gate struct {
	first []*item // one per id, by key
	other []*item // the same id in this batch, with other facts
	fresh map[eventKey]bool
	known map[eventKey]knownEvent
}

type knownEvent struct {
	hash    []byte
	order   uuid.UUID
	version int
}

func queueGate(b *pgx.Batch, items []*item) *gate {
	g := &gate{fresh: map[eventKey]bool{}, known: map[eventKey]knownEvent{}}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b *item) int {
		return cmp.Or(a.key().compare(b.key()), bytes.Compare(a.hash, b.hash))
	})
	for i, it := range sorted {
		switch {
		case i == 0 || sorted[i-1].key() != it.key():
			g.first = append(g.first, it)
		case bytes.Equal(sorted[i-1].hash, it.hash):
			it.same = original(sorted[i-1])
		case it.Source == APISource:
			it.same, it.res.Differs = original(sorted[i-1]), true
		default:
			g.other = append(g.other, it)
		}
	}
	queueInsertEvents(b, g.first, g.fresh)
	var accounts, sources, ids []string
	for _, it := range g.first {
		accounts, sources, ids = append(accounts, it.Account), append(sources, it.Source), append(ids, it.id)
	}
	b.Queue(sqlKnownEvents, accounts, sources, ids).Query(func(rows pgx.Rows) error {
		var (
			n       int64
			k       knownEvent
			ord     pgtype.UUID
			version *int
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &k.hash, &ord, &version}, func() error {
			g.known[g.first[n].key()] = knownEvent{slices.Clone(k.hash), uuid.UUID(ord.Bytes), deref(version)}
			return nil
		})
		return err
	})
	return g
}

func original(it *item) *item {
	if it.same != nil {
		return it.same
	}
	return it
}

// sort tells new ids from known ones, and known ids with other facts (they become rows of their own) from duplicates.
func (g *gate) sort() (fresh, reused []*item) {
	for _, it := range g.first {
		if g.fresh[it.key()] {
			fresh = append(fresh, it)
			continue
		}
		k := g.known[it.key()]
		if bytes.Equal(k.hash, it.hash) || it.Source == APISource {
			it.res = Result{Outcome: Duplicate, Order: k.order, Before: k.version, After: k.version, Differs: !bytes.Equal(k.hash, it.hash)}
			continue
		}
		reused = append(reused, it)
	}
	for _, it := range g.other {
		if k := g.known[it.key()]; bytes.Equal(k.hash, it.hash) {
			it.res = Result{Outcome: Duplicate, Order: k.order, Before: k.version, After: k.version}
			continue
		}
		reused = append(reused, it)
	}
	for _, it := range reused {
		it.id = it.ID + "#" + hex.EncodeToString(it.hash)
	}
	return fresh, reused
}

// reusedGate is the second sorted insert: known ids with other facts, under {id}#{hash}.
type reusedGate struct {
	items []*item
	fresh map[eventKey]bool
}

func queueReused(b *pgx.Batch, items []*item) *reusedGate {
	g := &reusedGate{items: items, fresh: map[eventKey]bool{}}
	if len(items) > 0 {
		slices.SortFunc(items, func(a, b *item) int { return a.key().compare(b.key()) })
		queueInsertEvents(b, items, g.fresh)
	}
	return g
}

// sort returns the items whose row is new, and marks the others as duplicates.
func (g *reusedGate) sort() (fresh []*item) {
	for _, it := range g.items {
		if g.fresh[it.key()] {
			fresh = append(fresh, it)
		} else {
			it.res.Outcome = Duplicate
		}
	}
	return fresh
}

func queueInsertEvents(b *pgx.Batch, items []*item, fresh map[eventKey]bool) {
	var (
		accounts, sources, ids, types, realms, facts []string
		payments                                     []*string
		at                                           []*time.Time
		hashes                                       [][]byte
		mappings                                     []int16
	)
	for _, it := range items {
		accounts, sources, ids = append(accounts, it.Account), append(sources, it.Source), append(ids, it.id)
		types, realms, facts = append(types, it.Type), append(realms, it.Realm), append(facts, string(it.facts))
		var main *string
		if len(it.Payment) > 0 {
			main = &it.Payment[0]
		}
		payments, at, hashes = append(payments, main), append(at, nullTime(it.At)), append(hashes, it.hash)
		mappings = append(mappings, max(it.MappingVersion, 1))
	}
	b.Queue(sqlInsertEvents, accounts, sources, ids, types, realms, payments, at, facts, hashes, mappings).
		Query(func(rows pgx.Rows) error {
			var k eventKey
			_, err := pgx.ForEachRow(rows, []any{&k.account, &k.source, &k.id}, func() error {
				fresh[k] = true
				return nil
			})
			return err
		})
}

// queuePayloads keeps the bytes of new events: a delivery's body stands in the row of its first new event.
func queuePayloads(b *pgx.Batch, items []*item) {
	var (
		accounts, sources, ids, headers []string
		deliveries                      []pgtype.UUID
		bodies                          [][]byte
	)
	stored := map[uuid.UUID]bool{}
	for _, it := range items {
		if it.Payload == nil {
			continue
		}
		header, err := json.Marshal(it.Header)
		if err != nil || it.Header == nil {
			header = []byte("{}")
		}
		delivery, body := it.Delivery, it.Payload
		if delivery == uuid.Nil {
			delivery = newID()
		}
		if stored[delivery] {
			body = nil
		}
		stored[delivery] = true
		accounts, sources, ids = append(accounts, it.Account), append(sources, it.Source), append(ids, it.id)
		headers, deliveries, bodies = append(headers, string(header)), append(deliveries, pgUUID(delivery)), append(bodies, body)
	}
	if len(ids) > 0 {
		b.Queue(`
			INSERT INTO event_payloads (account_id, source_id, event_id, header, delivery, body)
			SELECT account, source, id, header::jsonb, delivery, body
			FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::bytea[])
				AS x(account, source, id, header, delivery, body)`,
			accounts, sources, ids, headers, deliveries, bodies)
	}
}

// queueOutcomes records what became of new events, in the rows that this transaction inserted.
func queueOutcomes(b *pgx.Batch, items []*item) {
	var (
		accounts, sources, ids, outcomes []string
		reasons                          []*string
		orders                           []pgtype.UUID
		before, after                    []*int
	)
	for _, it := range items {
		accounts, sources, ids = append(accounts, it.Account), append(sources, it.Source), append(ids, it.id)
		outcomes, reasons = append(outcomes, string(it.res.Outcome)), append(reasons, nullText(it.res.Reason))
		orders = append(orders, pgUUID(it.res.Order))
		var v, w *int
		if it.res.Order != uuid.Nil {
			v, w = &it.res.Before, &it.res.After
		}
		before, after = append(before, v), append(after, w)
	}
	if len(ids) > 0 {
		b.Queue(`
			UPDATE processed_events e
			SET outcome = x.outcome, reason = x.reason, order_id = x.ord, order_version_before = x.before, order_version_after = x.after
			FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::uuid[], $7::int[], $8::int[])
				AS x(account, source, id, outcome, reason, ord, before, after)
			WHERE e.account_id = x.account AND e.source_id = x.source AND e.event_id = x.id`,
			accounts, sources, ids, outcomes, reasons, orders, before, after)
	}
}
