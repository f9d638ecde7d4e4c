package store

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// OrderFilter chooses orders; zero fields choose all.
type OrderFilter struct {
	Account string
	Ref     string // the merchant's external_ref
	State   string
	Flag    string // has this flag
	Stubs   bool   // only orders that nobody registered and that have a payment
	Older   time.Duration

	CreatedFrom, CreatedUntil time.Time // from the first on, before the second

	Before uuid.UUID // of the page before: its last id
	Limit  int       // default 50, at most 1000
}

func (f OrderFilter) conditions() (*conditions, error) {
	c := &conditions{}
	if f.Account != "" {
		c.add("o.account_id = ?", f.Account)
	}
	if f.Ref != "" {
		c.add("o.external_ref = ?", f.Ref)
	}
	if f.State != "" {
		if !slices.Contains(order.States(), order.State(f.State)) {
			return nil, fmt.Errorf("there is no state %q", f.State)
		}
		c.add("o.state = '" + f.State + "'") // written out, since orders_unpaid leaves out what most orders are
	}
	if f.Flag != "" {
		c.add("? = ANY(o.flags) AND o.flags <> '{}'", f.Flag)
	}
	if f.Stubs {
		c.add(`NOT o.registered AND o.total IS NULL AND EXISTS (
			SELECT FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id)`)
	}
	if f.Older > 0 {
		c.add("o.created_at <= now() - ?::interval", f.Older)
	}
	c.created("o", f.CreatedFrom, f.CreatedUntil)
	if f.Before != uuid.Nil {
		c.add("o.id < ?", f.Before)
	}
	return c, nil
}

// ListOrders returns orders, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ListOrders(ctx context.Context, f OrderFilter) ([]Order, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	c, err := f.conditions()
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list orders: %w", err)
	}
	rows, _ := s.pool.Query(ctx, `SELECT `+orderRecord+` FROM orders o`+c.where()+` ORDER BY o.id DESC LIMIT `+c.arg(limit+1), c.args...)
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Order])
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list orders: %w", err)
	}
	if len(orders) > limit {
		return orders[:limit], orders[limit-1].ID, nil
	}
	return orders, uuid.Nil, nil
}

// EventFilter chooses events; zero fields choose all.
type EventFilter struct {
	Account, Source string
	Outcome         Outcome
	Reason          string // exactly, or the word before a colon
	Type            string
	Since, Until    time.Time
	Before          EventCursor // of the page before
	Limit           int         // default 50, at most 1000
}

// EventCursor names the last event of a page.
type EventCursor struct {
	At         time.Time
	Source, ID string
}

func (f EventFilter) conditions() (*conditions, error) {
	c := &conditions{}
	if f.Account != "" {
		c.add("e.account_id = ?", f.Account)
	}
	if f.Source != "" {
		c.add("e.source_id = ?", f.Source)
	}
	if f.Outcome != "" {
		if !knownOutcome(f.Outcome) {
			return nil, fmt.Errorf("there is no outcome %q", f.Outcome)
		}
		c.add("e.outcome = '" + string(f.Outcome) + "'")
	}
	if f.Reason != "" {
		c.add("(e.reason = ? OR split_part(e.reason, ':', 1) = ?)", f.Reason, f.Reason)
	}
	if f.Type != "" {
		c.add("e.type = ?", f.Type)
	}
	if !f.Since.IsZero() {
		c.add("e.received_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.add("e.received_at < ?", f.Until)
	}
	if !f.Before.At.IsZero() {
		// The first is what an index on the time can use.
		c.add("e.received_at <= ? AND (e.received_at, e.source_id, e.event_id) < (?, ?, ?)", f.Before.At, f.Before.At, f.Before.Source, f.Before.ID)
	}
	return c, nil
}

func knownOutcome(o Outcome) bool {
	switch o {
	case Applied, NoChange, Waiting, Ignored, Flagged, Quarantined:
		return true
	}
	return false
}

// ListEvents returns events, the last received first, and the cursor of the next page (zero: there is none).
func (s *Store) ListEvents(ctx context.Context, f EventFilter) ([]StoredEvent, EventCursor, error) {
	limit := pageSize(f.Limit)
	c, err := f.conditions()
	if err != nil {
		return nil, EventCursor{}, fmt.Errorf("list events: %w", err)
	}
	rows, _ := s.pool.Query(ctx, `SELECT `+eventRecord+` FROM processed_events e`+c.where()+`
		ORDER BY e.received_at DESC, e.source_id DESC, e.event_id DESC LIMIT `+c.arg(limit+1), c.args...)
	events, err := pgx.CollectRows(rows, scanStoredEvent)
	if err != nil {
		return nil, EventCursor{}, fmt.Errorf("list events: %w", err)
	}
	if len(events) > limit {
		last := events[limit-1]
		return events[:limit], EventCursor{last.ReceivedAt, last.Source, last.ID}, nil
	}
	return events, EventCursor{}, nil
}

// EventsByID returns the events of an account that have exactly this id, one per source that uses it; none: no error.
// Unlike [Store.FindEvents] it looks nowhere else, and is quick however many events there are.
func (s *Store) EventsByID(ctx context.Context, account, id string) ([]StoredEvent, error) {
	return eventsByID(ctx, s.pool, account, id)
}

// EventsByIDTx is [Store.EventsByID] inside a transaction: it sees what that transaction has written.
func (s *Store) EventsByIDTx(ctx context.Context, tx Tx, account, id string) ([]StoredEvent, error) {
	return eventsByID(ctx, tx, account, id)
}

func eventsByID(ctx context.Context, q querier, account, id string) ([]StoredEvent, error) {
	rows, _ := q.Query(ctx, `
		WITH RECURSIVE sources(id) AS (
			(SELECT e.source_id FROM processed_events e WHERE e.account_id = $1 ORDER BY e.source_id LIMIT 1)
			UNION ALL
			SELECT n.source_id FROM sources s CROSS JOIN LATERAL (
				SELECT e.source_id FROM processed_events e WHERE e.account_id = $1 AND e.source_id > s.id ORDER BY e.source_id LIMIT 1) n)
		SELECT `+eventRecord+`
		FROM sources s JOIN processed_events e ON e.account_id = $1 AND e.source_id = s.id AND e.event_id = $2
		ORDER BY e.source_id`, account, id)
	events, err := pgx.CollectRows(rows, scanStoredEvent)
	if err != nil {
		return nil, fmt.Errorf("find event %q: %w", id, err)
	}
	return events, nil
}

// StoredPayload is what a gateway sent: raw body and allow-listed headers.
type StoredPayload struct {
	ReceivedAt time.Time
	Header     map[string]string
	Body       []byte
}

// Payload returns the bytes that brought an event; ErrNotFound once retention dropped them.
func (s *Store) Payload(ctx context.Context, key EventKey) (StoredPayload, error) {
	rows, _ := s.pool.Query(ctx, `
		WITH payloads AS NOT MATERIALIZED (SELECT * FROM event_payloads UNION ALL SELECT * FROM event_payloads_kept)
		SELECT p.received_at, p.header, coalesce(p.body, (
			SELECT q.body FROM payloads q WHERE q.delivery = p.delivery AND q.body IS NOT NULL LIMIT 1))
		FROM payloads p
		WHERE p.account_id = $1 AND p.source_id = $2 AND p.event_id = $3
		ORDER BY p.received_at DESC LIMIT 1`, key.Account, key.Source, key.ID)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoredPayload])
	if err != nil {
		return StoredPayload{}, fmt.Errorf("payload of event %s: %w", key.ID, err)
	}
	if len(found) == 0 {
		return StoredPayload{}, fmt.Errorf("payload of event %s: %w", key.ID, ErrNotFound)
	}
	return found[0], nil
}

func pageSize(n int) int {
	if n <= 0 {
		return 50
	}
	return min(n, 1000)
}
