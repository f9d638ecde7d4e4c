package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// OrderFilter chooses orders; zero fields choose all.
type OrderFilter struct {
	Account string
	State   string
	Flag    string // has this flag
	Stubs   bool   // only orders that nobody registered and that have a payment
	Older   time.Duration
	Before  uuid.UUID // of the page before: its last id
	Limit   int       // default 50, at most 1000
}

// ListOrders returns orders, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ListOrders(ctx context.Context, f OrderFilter) ([]Order, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	rows, _ := s.pool.Query(ctx, `
		SELECT `+orderRecord+` FROM orders o
		WHERE ($1 = '' OR o.account_id = $1) AND ($2 = '' OR o.state = $2) AND ($3 = '' OR $3 = ANY(o.flags))
			AND (NOT $4 OR NOT o.registered AND o.total IS NULL AND EXISTS (
				SELECT FROM payments p WHERE p.account_id = o.account_id AND p.order_id = o.id))
			AND o.created_at <= now() - $5::interval
			AND ($6::uuid IS NULL OR o.id < $6)
		ORDER BY o.id DESC LIMIT $7`, f.Account, f.State, f.Flag, f.Stubs, f.Older, pgUUID(f.Before), limit+1)
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

// ListEvents returns events, the last received first, and the cursor of the next page (zero: there is none).
func (s *Store) ListEvents(ctx context.Context, f EventFilter) ([]StoredEvent, EventCursor, error) {
	limit := pageSize(f.Limit)
	rows, _ := s.pool.Query(ctx, `
		SELECT `+eventRecord+` FROM processed_events e
		WHERE ($1 = '' OR e.account_id = $1) AND ($2 = '' OR e.source_id = $2) AND ($3 = '' OR e.outcome = $3)
			AND ($4 = '' OR e.reason = $4 OR split_part(e.reason, ':', 1) = $4) AND ($5 = '' OR e.type = $5)
			AND ($6::timestamptz IS NULL OR e.received_at >= $6) AND ($7::timestamptz IS NULL OR e.received_at < $7)
			AND ($8::timestamptz IS NULL OR (e.received_at, e.source_id, e.event_id) < ($8, $9, $10))
		ORDER BY e.received_at DESC, e.source_id DESC, e.event_id DESC LIMIT $11`,
		f.Account, f.Source, string(f.Outcome), f.Reason, f.Type, nullTime(f.Since), nullTime(f.Until),
		nullTime(f.Before.At), f.Before.Source, f.Before.ID, limit+1)
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
