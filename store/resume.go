package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// resumeBatch is how many stored events one transaction of Resume folds.
const resumeBatch = 128

// Resume folds what arrived while a source was paused: its events that wait for that reason, oldest first, in batches
// of one transaction each. It returns how many were folded. Several processes may resume one source at once.
func (s *Store) Resume(ctx context.Context, account, source string) (int, error) {
	total := 0
	for {
		n, err := retry(ctx, &s.retried, func() (int, error) {
			var n int
			err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
				n, err = s.resumeSome(ctx, tx, account, source)
				return err
			})
			return n, err
		})
		total += n
		if err != nil {
			return total, fmt.Errorf("resume source %s: %w", source, err)
		}
		if n < resumeBatch {
			return total, nil
		}
	}
}

func (s *Store) resumeSome(ctx context.Context, tx pgx.Tx, account, source string) (int, error) {
	if _, err := tx.Exec(ctx, sqlSettings); err != nil {
		return 0, err
	}
	// The oldest are chosen first and then locked in key order, like everywhere.
	rows, _ := tx.Query(ctx, `
		WITH oldest AS (
			SELECT event_id FROM processed_events
			WHERE account_id = $1 AND source_id = $2 AND outcome = 'waiting' AND reason = $3
			ORDER BY received_at, event_id LIMIT $4)
		SELECT e.event_id, e.type, e.realm, e.occurred_at, e.facts
		FROM processed_events e
		WHERE e.account_id = $1 AND e.source_id = $2 AND e.event_id IN (SELECT event_id FROM oldest)
			AND e.outcome = 'waiting' AND e.reason = $3
		ORDER BY e.event_id
		FOR NO KEY UPDATE`, account, source, ReasonSourcePaused, resumeBatch)
	items, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*item, error) {
		return scanItem(row, account, source)
	})
	if err != nil || len(items) == 0 {
		return 0, err
	}
	bt := newBatch()
	var b pgx.Batch
	bt.queuePayments(&b, items)
	if err := send(ctx, tx, &b); err != nil {
		return 0, err
	}
	return len(items), s.foldItems(ctx, tx, bt, items)
}

// scanItem reads a stored event back into what it was when it was entered.
func scanItem(row pgx.CollectableRow, account, source string) (*item, error) {
	var e scannedEvent
	if err := row.Scan(&e.id, &e.typ, &e.realm, &e.at, &e.doc); err != nil {
		return nil, err
	}
	return e.item(account, source)
}

// scannedEvent is what processed_events says of an event's meaning.
type scannedEvent struct {
	id, typ, realm string
	at             *time.Time
	doc            []byte
}

func (s scannedEvent) item(account, source string) (*item, error) {
	var m meaning
	if err := json.Unmarshal(s.doc, &m); err != nil {
		return nil, fmt.Errorf("facts of event %s: %w", s.id, err)
	}
	return s.itemOf(account, source, m), nil
}

// itemOf is item with the facts as they were read.
func (s scannedEvent) itemOf(account, source string, m meaning) *item {
	e := &Event{Account: account, Source: source, OnUnknown: m.OnUnknown, Event: order.Event{
		ID: reusedID.ReplaceAllString(s.id, ""), Type: s.typ, At: deref(s.at), Realm: s.realm, Payment: m.Payment, Reference: m.Reference,
		Strength: m.Strength, Renewal: m.Renewal, Facts: m.Facts, Own: m.Own, Command: m.Command, Ignored: m.Ignored, Broken: m.Broken, Fetch: m.Fetch,
	}}
	return &item{Event: e, id: s.id, comp: -1}
}

// foldItems folds events whose rows stand in processed_events, locked, and writes what became of them.
func (s *Store) foldItems(ctx context.Context, tx pgx.Tx, bt *batch, items []*item) error {
	comps, err := bt.components(items)
	if err != nil {
		return err
	}
	if err := s.lockPlaces(ctx, tx, bt, comps, items); err != nil {
		return err
	}
	sortByTime(items)
	jobs, err := s.fold(bt, comps, items)
	if err != nil {
		return err
	}
	if err := s.enqueue(ctx, tx, jobs); err != nil {
		return err
	}
	_, err = s.write(ctx, tx, bt, items, items, len(jobs) > 0, false)
	return err
}
