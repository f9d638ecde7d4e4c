package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
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

func keyColumns(keys []eventKey) (accounts, sources, ids []string) {
	for _, k := range slices.SortedFunc(slices.Values(keys), eventKey.compare) {
		accounts, sources, ids = append(accounts, k.account), append(sources, k.source), append(ids, k.id)
	}
	return accounts, sources, ids
}

// keptBytes are the deliveries that brought events, as far as retention has left them.
func keptBytes(ctx context.Context, q querier, events []*heldEvent) (map[eventKey]StoredDelivery, error) {
	keys := make([]eventKey, len(events))
	for i, h := range events {
		keys[i] = h.key
	}
	slices.SortFunc(keys, eventKey.compare)
	accounts, sources, ids := keyColumns(keys)
	var at []eventKey
	rows, _ := q.Query(ctx, `
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
		name(c.key.account, nil, c.ref)
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
