package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// StoredDelivery is one HTTP request of a gateway whose bytes are kept.
type StoredDelivery struct {
	Account, Source string
	Delivery        uuid.UUID
	ReceivedAt      time.Time
	Header          map[string]string
	Body            []byte
}

// DeliveryFilter chooses deliveries; zero fields choose all.
type DeliveryFilter struct {
	Account, Source string
	Since, Until    time.Time // when they were received: from the first on, before the second
}

// Deliveries returns up to limit kept deliveries, the oldest first. To go on, pass the last one as after; nil begins.
// It reads the kept bytes alone, so it finds what was received even where processed_events has lost it.
func (s *Store) Deliveries(ctx context.Context, f DeliveryFilter, after *StoredDelivery, limit int) ([]StoredDelivery, error) {
	var last StoredDelivery
	if after != nil {
		last = *after
	}
	rows, _ := s.pool.Query(ctx, `
		WITH payloads AS NOT MATERIALIZED (SELECT * FROM event_payloads UNION ALL SELECT * FROM event_payloads_kept)
		SELECT DISTINCT ON (p.received_at, p.delivery) p.account_id, p.source_id, p.delivery, p.received_at, p.header, p.body
		FROM payloads p
		WHERE p.body IS NOT NULL AND ($1 = '' OR p.account_id = $1) AND ($2 = '' OR p.source_id = $2)
			AND ($3::timestamptz IS NULL OR p.received_at >= $3) AND ($4::timestamptz IS NULL OR p.received_at < $4)
			AND ($5::timestamptz IS NULL OR (p.received_at, p.delivery) > ($5, $6))
		ORDER BY p.received_at, p.delivery LIMIT $7`,
		f.Account, f.Source, nullTime(f.Since), nullTime(f.Until), nullTime(last.ReceivedAt), last.Delivery, limit)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoredDelivery])
	if err != nil {
		return nil, fmt.Errorf("list deliveries: %w", err)
	}
	return found, nil
}

// errDryRun takes a transaction back.
var errDryRun = errors.New("dry run")

// DryRun says what Apply would do with events now, and does none of it. It takes the locks that Apply takes until it is
// done, and, having a transaction that ends otherwise, goes the way of ApplyTx.
func (s *Store) DryRun(ctx context.Context, events []Event) ([]Result, error) {
	var results []Result
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
		if results, err = s.ApplyTx(ctx, tx, events); err != nil {
			return err
		}
		return errDryRun
	})
	if !errors.Is(err, errDryRun) {
		return nil, err
	}
	return results, nil
}
