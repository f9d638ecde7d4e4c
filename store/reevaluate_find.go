package store

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// ReevaluateFilter chooses events; zero fields choose all. It never chooses those of source api.
type ReevaluateFilter struct {
	Account      string
	Sources      []string // nil: all
	Type         string
	Outcome      Outcome
	Reason       string     // exactly, or the word before a colon
	Event        string     // its id, with or without the #hash of an id that was used twice
	Events       []EventKey // only of these; nil: all
	Since, Until time.Time  // when they were received: from the first on, before the second
	Mapping      int        // only those read by an older mapping than this one; 0: all
}

const heldColumns = `e.account_id, e.source_id, e.event_id, e.type, e.realm, e.occurred_at, e.facts, e.facts_hash, e.mapping_version,
	coalesce(e.outcome, ''), coalesce(e.reason, ''), e.order_id, e.received_at`

const (
	// chosenEvents is the filter, as parameters $1 to $12.
	chosenEvents = ` e.source_id <> '` + APISource + `' AND ($1 = '' OR e.account_id = $1) AND ($2::text[] IS NULL OR e.source_id = ANY($2))
		AND ($3 = '' OR e.type = $3) AND ($4 = '' OR e.outcome = $4)
		AND ($5 = '' OR e.reason = $5 OR split_part(e.reason, ':', 1) = $5)
		AND ($6 = '' OR e.event_id = $6 OR starts_with(e.event_id, $6 || '#'))
		AND ($7::text[] IS NULL OR (e.account_id, e.source_id, e.event_id) IN (
			SELECT a, s, i FROM unnest($7, $8::text[], $9::text[]) AS x(a, s, i)))
		AND ($10::timestamptz IS NULL OR e.received_at >= $10) AND ($11::timestamptz IS NULL OR e.received_at < $11)
		AND ($12 = 0 OR e.mapping_version < $12) `

	allEvents   = ` processed_events e `
	keyedEvents = ` (SELECT DISTINCT a, s, i FROM unnest($7::text[], $8::text[], $9::text[]) AS x(a, s, i)) k
		CROSS JOIN LATERAL (
			SELECT * FROM processed_events e WHERE e.account_id = k.a AND e.source_id = k.s AND e.event_id = k.i
			OFFSET 0) e `

	sqlAfter = `
		WHERE ` + chosenEvents + ` AND (e.account_id, e.source_id, e.event_id) > ($13, $14, $15)
		ORDER BY e.account_id, e.source_id, e.event_id LIMIT $16`

	sqlSiblings = `
		SELECT e.* FROM (SELECT DISTINCT a, i FROM unnest($13::text[], $14::text[]) AS x(a, i)) k
		CROSS JOIN LATERAL (
			SELECT ` + heldColumns + ` FROM processed_events e
			WHERE e.account_id = k.a AND e.payment = k.i AND ` + chosenEvents + `
			OFFSET 0) e`
)

func (f *ReevaluateFilter) args() []any {
	var accounts, sources, ids []string
	if f.Events != nil {
		accounts = []string{}
	}
	for _, k := range f.Events {
		accounts, sources, ids = append(accounts, k.Account), append(sources, k.Source), append(ids, k.ID)
	}
	return []any{
		f.Account, f.Sources, f.Type, string(f.Outcome), f.Reason, f.Event, accounts, sources, ids,
		nullTime(f.Since), nullTime(f.Until), f.Mapping,
	}
}

// from is what the filter has to look through.
func (f *ReevaluateFilter) from() string {
	if f.Events != nil {
		return keyedEvents
	}
	return allEvents
}

// CountToReevaluate returns how many events the filter chooses.
func (s *Store) CountToReevaluate(ctx context.Context, f ReevaluateFilter) (n int, err error) {
	err = s.pool.QueryRow(ctx, `SELECT count(*) FROM `+f.from()+` WHERE `+chosenEvents, f.args()...).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count events to reevaluate: %w", err)
	}
	return n, nil
}

// candidates are the next events that the filter chooses, by key.
func (s *Store) candidates(ctx context.Context, f ReevaluateFilter, after eventKey, limit int) ([]*heldEvent, error) {
	rows, _ := s.pool.Query(ctx, `SELECT `+heldColumns+` FROM `+f.from()+sqlAfter, append(f.args(), after.account, after.source, after.id, limit)...)
	found, err := pgx.CollectRows(rows, scanHeld)
	if err != nil {
		return nil, fmt.Errorf("list events to reevaluate: %w", err)
	}
	return found, nil
}

func scanHeld(row pgx.CollectableRow) (*heldEvent, error) {
	var (
		h   heldEvent
		e   scannedEvent
		ord pgtype.UUID
	)
	err := row.Scan(&h.key.account, &h.key.source, &e.id, &e.typ, &e.realm, &e.at, &e.doc, &h.hash, &h.mapping,
		&h.outcome, &h.reason, &ord, &h.received)
	if err != nil {
		return nil, err
	}
	h.key.id, h.order = e.id, uuid.UUID(ord.Bytes)
	h.item, err = e.item(h.key.account, h.key.source)
	return &h, err
}

// changedEvent is an event whose bytes say something else today.
type changedEvent struct {
	key   eventKey
	next  Event
	enter []Event // what its bytes hold instead
}

// reread reads the bytes of events again and returns those that changed. It reports what cannot be read.
func (r *reevaluation) reread(ctx context.Context, turn []*heldEvent, out *Reevaluated) ([]changedEvent, error) {
	kept, err := r.s.keptBytes(ctx, turn)
	if err != nil {
		return nil, err
	}
	bases, err := r.s.baseHashes(ctx, turn)
	if err != nil {
		return nil, err
	}
	var changed []changedEvent
	var stale []eventKey
	var today int16
	read := map[uuid.UUID][]Event{}
	failed := map[uuid.UUID]error{}
	for _, h := range turn {
		skip := func(code, why string) {
			out.Skipped = append(out.Skipped, SkippedEvent{h.key.account, h.key.source, h.key.id, code, why})
		}
		d, ok := kept[h.key]
		if !ok {
			skip(SkipPayloadGone, "its bytes are not kept any more")
			continue
		}
		if _, ok := read[d.Delivery]; !ok && failed[d.Delivery] == nil {
			events, err := r.o.Read(d)
			if err != nil {
				failed[d.Delivery] = err
			}
			read[d.Delivery] = events
		}
		if err := failed[d.Delivery]; err != nil {
			skip(SkipUnreadable, err.Error())
			continue
		}
		next, code := r.theEvent(h, read[d.Delivery])
		switch code {
		case SkipOtherID:
			if h.item.Ignored == ReasonReread {
				continue // its events were entered
			}
			if h.item.Broken != "" {
				changed = append(changed, insteadOf(h, d, read[d.Delivery]))
				continue
			}
			skip(code, "its bytes hold no event of this id today; what they hold can be entered with: paidonce replay --from-db")
			continue
		case SkipAmbiguous:
			skip(code, "its bytes hold several events of this id, and none of them is the stored one")
			continue
		}
		next.Account, next.Source = h.key.account, h.key.source
		it, err := newItem(0, &next)
		if err != nil {
			skip(SkipUnreadable, err.Error())
			continue
		}
		same, err := h.means(it)
		switch {
		case err != nil:
			return nil, err
		case !same, bytes.Equal(bases[h.key], h.hash):
			changed = append(changed, changedEvent{key: h.key, next: next})
		case h.mapping < next.MappingVersion:
			stale, today = append(stale, h.key), next.MappingVersion
		}
	}
	return changed, r.restamp(ctx, stale, today)
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
func (r *reevaluation) theEvent(h *heldEvent, events []Event) (Event, string) {
	var found []Event
	for _, e := range events {
		if e.ID == h.item.ID {
			found = append(found, e)
		}
	}
	if len(found) == 0 && r.o.Same != nil {
		for _, e := range events {
			if r.o.Same(h.item.ID, e) {
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

func keyColumns(keys []eventKey) (accounts, sources, ids []string) {
	for _, k := range slices.SortedFunc(slices.Values(keys), eventKey.compare) {
		accounts, sources, ids = append(accounts, k.account), append(sources, k.source), append(ids, k.id)
	}
	return accounts, sources, ids
}

// keptBytes are the deliveries that brought events, as far as retention has left them.
func (s *Store) keptBytes(ctx context.Context, events []*heldEvent) (map[eventKey]StoredDelivery, error) {
	keys := make([]eventKey, len(events))
	for i, h := range events {
		keys[i] = h.key
	}
	slices.SortFunc(keys, eventKey.compare)
	accounts, sources, ids := keyColumns(keys)
	var at []eventKey
	rows, _ := s.pool.Query(ctx, `
		WITH payloads AS NOT MATERIALIZED (SELECT * FROM event_payloads UNION ALL SELECT * FROM event_payloads_kept)
		SELECT x.n - 1, p.delivery, p.received_at, p.header, p.body
		FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(a, s, i, n)
		CROSS JOIN LATERAL (
			SELECT p.delivery, p.received_at, p.header, coalesce(p.body, (
				SELECT q.body FROM payloads q WHERE q.delivery = p.delivery AND q.body IS NOT NULL LIMIT 1)) AS body
			FROM payloads p
			WHERE p.account_id = x.a AND p.source_id = x.s AND p.event_id = x.i
			ORDER BY p.received_at DESC LIMIT 1) p
		WHERE p.body IS NOT NULL`, accounts, sources, ids)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d StoredDelivery, err error) {
		var n int64
		if err := row.Scan(&n, &d.Delivery, &d.ReceivedAt, &d.Header, &d.Body); err != nil {
			return d, err
		}
		d.Account, d.Source = keys[n].account, keys[n].source
		at = append(at, keys[n])
		return d, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read kept bytes: %w", err)
	}
	kept := map[eventKey]StoredDelivery{}
	for i, d := range found {
		kept[at[i]] = d
	}
	return kept, nil
}

// siblings reads again what else the filter chooses of the payments and orders that the changed events concern, as they
// were and as they are, so that an order moves once for all of it. It returns those that changed too.
func (r *reevaluation) siblings(ctx context.Context, changed []changedEvent, turn []*heldEvent) ([]changedEvent, error) {
	held := map[eventKey]*heldEvent{}
	for _, h := range turn {
		held[h.key] = h
	}
	var set orderSet
	var accounts, ids []string
	name := func(account string, payment []string, ref string) {
		for _, id := range payment {
			accounts, ids = append(accounts, account), append(ids, id)
		}
		if ref != "" {
			set.refAccounts, set.refs = append(set.refAccounts, account), append(set.refs, ref)
		}
	}
	mine := map[eventKey]bool{}
	for _, c := range changed {
		h := held[c.key]
		mine[c.key] = true
		name(c.key.account, h.item.Payment, h.item.Reference)
		name(c.key.account, c.next.Payment, c.next.Reference)
		if h.order != uuid.Nil {
			set.add(orderKey{c.key.account, h.order})
		}
	}
	rows, _ := r.s.pool.Query(ctx, sqlOrderPayments, set.args()...)
	err := scanPayments(rows, func(p *payment) { name(p.account, p.ledger.IDs, "") })
	if err != nil {
		return nil, fmt.Errorf("find payments of orders: %w", err)
	}
	rows, _ = r.s.pool.Query(ctx, sqlSiblings, append(r.o.Filter.args(), accounts, ids)...)
	found, err := pgx.CollectRows(rows, scanHeld)
	if err != nil {
		return nil, fmt.Errorf("find events of the same orders: %w", err)
	}
	found = slices.DeleteFunc(found, func(h *heldEvent) bool {
		return mine[h.key] || r.done[h.key]
	})
	var unread Reevaluated // is reported when their turn comes
	return r.reread(ctx, found, &unread)
}
