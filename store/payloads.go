package store

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// StoredDelivery is one HTTP request of a gateway whose bytes are kept.
type StoredDelivery struct {
	Account, Source string
	Delivery        uuid.UUID
	ReceivedAt      time.Time
	Header          map[string]string
	Body            []byte
}

// Key is where the delivery stands among all of them.
func (d StoredDelivery) Key() DeliveryKey { return DeliveryKey{d.ReceivedAt, d.Delivery} }

// DeliveryKey is where a kept delivery stands among all of them: the oldest come first. The zero value is before all.
type DeliveryKey struct {
	At       time.Time
	Delivery uuid.UUID
}

// Compare is how two deliveries stand to each other: below 0 if k is the older one.
func (k DeliveryKey) Compare(other DeliveryKey) int {
	return cmp.Or(k.At.Compare(other.At), bytes.Compare(k.Delivery[:], other.Delivery[:]))
}

// String is what [ParseDeliveryKey] reads: a time of the database in UTC, and an id.
func (k DeliveryKey) String() string {
	return k.At.UTC().Format(time.RFC3339Nano) + "/" + k.Delivery.String()
}

// ParseDeliveryKey reads what String writes.
func ParseDeliveryKey(text string) (k DeliveryKey, err error) {
	at, id, ok := strings.Cut(text, "/")
	if k.At, err = time.Parse(time.RFC3339Nano, at); err != nil || !ok {
		return DeliveryKey{}, fmt.Errorf("%q is no time/id", text)
	}
	if k.Delivery, err = uuid.Parse(id); err != nil {
		return DeliveryKey{}, fmt.Errorf("%q is no time/id", text)
	}
	return k, nil
}

// keptPayloads are all bytes there are: those of retention's partitions, and those that are kept beyond it.
const keptPayloads = `WITH payloads AS NOT MATERIALIZED (SELECT * FROM event_payloads UNION ALL SELECT * FROM event_payloads_kept) `

// deliveries is the query of the kept deliveries that a filter chooses, by their keys. What is asked of bytes alone (account, sources,
// times) is asked of them, so that they are found even where processed_events has lost their events; what is asked of events holds
// for one of those that a delivery brought.
func (f *ReevaluateFilter) deliveries(after DeliveryKey, columns string) (string, []any) {
	var c conditions
	from := `payloads b`
	if f.Type != "" || f.Outcome != "" || f.Reason != "" || f.Event != "" || f.Events != nil || f.Mapping > 0 {
		events := *f
		events.Since, events.Until = time.Time{}, time.Time{}
		c.args = events.args()
		from = `(SELECT DISTINCT p.delivery FROM ` + events.from() + `
				CROSS JOIN LATERAL (
					SELECT p.delivery FROM payloads p
					WHERE p.account_id = e.account_id AND p.source_id = e.source_id AND p.event_id = e.event_id OFFSET 0) p
				WHERE ` + chosenEvents + `) chosen
			CROSS JOIN LATERAL (SELECT * FROM payloads b WHERE b.delivery = chosen.delivery AND b.body IS NOT NULL OFFSET 0) b`
	}
	c.add("b.body IS NOT NULL AND b.source_id <> ?", APISource) // what the merchant said itself is no gateway's delivery
	if f.Account != "" {
		c.add("b.account_id = ?", f.Account)
	}
	if f.Sources != nil {
		c.add("b.source_id = ANY(?)", f.Sources)
	}
	if !f.Since.IsZero() {
		c.add("b.received_at >= ?", f.Since)
	}
	if !f.Until.IsZero() {
		c.add("b.received_at < ?", f.Until)
	}
	if !after.At.IsZero() {
		// The first is what leaves partitions out.
		c.add("b.received_at >= ? AND (b.received_at, b.delivery) > (?, ?)", after.At, after.At, pgUUID(after.Delivery))
	}
	return keptPayloads + `SELECT ` + columns + ` FROM (SELECT DISTINCT b.received_at, b.delivery FROM ` + from + c.where() + `) d`, c.args
}

// OfBytes is what a filter asks of bytes alone, and so of every event of a delivery: without what it asks of events.
func (f *ReevaluateFilter) OfBytes() ReevaluateFilter {
	return ReevaluateFilter{Account: f.Account, Sources: f.Sources, Since: f.Since, Until: f.Until}
}

// CountKept returns how many kept deliveries a filter chooses behind one of them.
func (s *Store) CountKept(ctx context.Context, f ReevaluateFilter, after DeliveryKey) (n int, err error) {
	sql, args := f.deliveries(after, "count(*)")
	if err := s.pool.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count kept deliveries: %w", err)
	}
	return n, nil
}

// ListKept returns the next kept deliveries that a filter chooses, the oldest first, without their bytes.
func (s *Store) ListKept(ctx context.Context, f ReevaluateFilter, after DeliveryKey, limit int) ([]DeliveryKey, error) {
	sql, args := f.deliveries(after, "d.received_at, d.delivery")
	rows, _ := s.pool.Query(ctx, fmt.Sprintf(`%s ORDER BY d.received_at, d.delivery LIMIT %d`, sql, limit), args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DeliveryKey])
	if err != nil {
		return nil, fmt.Errorf("list kept deliveries: %w", err)
	}
	return found, nil
}

// ReadKept returns kept deliveries with their bytes, in the order given; those that are gone by now are left out.
func (s *Store) ReadKept(ctx context.Context, keys []DeliveryKey) ([]StoredDelivery, error) {
	ids, times := make([]pgtype.UUID, len(keys)), make([]time.Time, len(keys))
	for i, k := range keys {
		ids[i], times[i] = pgUUID(k.Delivery), k.At
	}
	rows, _ := s.pool.Query(ctx, keptPayloads+`
		SELECT b.account_id, b.source_id, b.delivery, b.received_at, b.header, b.body
		FROM unnest($1::uuid[], $2::timestamptz[]) WITH ORDINALITY AS x(delivery, at, n)
		CROSS JOIN LATERAL (
			SELECT * FROM payloads b WHERE b.delivery = x.delivery AND b.received_at = x.at AND b.body IS NOT NULL LIMIT 1) b
		ORDER BY x.n`, ids, times)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[StoredDelivery])
	if err != nil {
		return nil, fmt.Errorf("read kept deliveries: %w", err)
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
