package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Payloads stand in one partition per day (UTC), so that retention drops tables instead of deleting rows.
const (
	partitionPrefix = "event_payloads_"
	partitionDay    = "20060102"
)

// PartitionsAhead is how many days of partitions stand ready. Beyond them no event could be stored, so that two weeks
// without upkeep are survived.
const PartitionsAhead = 14

// EnsurePartitions makes the partitions of event_payloads from today to PartitionsAhead days ahead that are missing,
// and returns how many it made. It waits for locks only briefly: ingest is never held up, the next run tries again.
func (s *Store) EnsurePartitions(ctx context.Context) (made int, err error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT d::date FROM generate_series((now() AT TIME ZONE 'UTC')::date, (now() AT TIME ZONE 'UTC')::date + $1::int, '1 day') d
		WHERE NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = 'event_payloads'::regclass
			AND i.inhrelid = to_regclass('event_payloads_' || to_char(d, 'YYYYMMDD')))
		ORDER BY 1`, PartitionsAhead)
	days, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return 0, fmt.Errorf("look for partitions: %w", err)
	}
	for _, day := range days {
		if err := s.addPartition(ctx, day); err != nil {
			return made, fmt.Errorf("add the partition of %s: %w", day.Format(time.DateOnly), err)
		}
		made++
	}
	return made, nil
}

// addPartition builds the table apart and attaches it, which locks the parent only weakly and for an instant. Processes
// that do the same at once take turns.
func (s *Store) addPartition(ctx context.Context, day time.Time) error {
	plain := partitionPrefix + day.Format(partitionDay)
	name := pgx.Identifier{plain}.Sanitize()
	from, to := day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var attached bool
		if err := tx.QueryRow(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('paidonce: event_payloads', 0)) IS NULL`).Scan(&attached); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_inherits
			WHERE inhparent = 'event_payloads'::regclass AND inhrelid = to_regclass($1))`, plain).Scan(&attached)
		if err != nil || attached {
			return err
		}
		for _, sql := range []string{
			`SET LOCAL lock_timeout = '500ms'`,
			`CREATE TABLE IF NOT EXISTS ` + name + ` (LIKE event_payloads INCLUDING DEFAULTS INCLUDING COMPRESSION INCLUDING CONSTRAINTS)`,
			`ALTER TABLE event_payloads ATTACH PARTITION ` + name +
				` FOR VALUES FROM ('` + from + ` 00:00:00+00') TO ('` + to + ` 00:00:00+00')`,
		} {
			if _, err := tx.Exec(ctx, sql); err != nil {
				return err
			}
		}
		return nil
	})
}

// unresolved says which events somebody may still have to look at; their payloads outlive retention.
const unresolved = `(e.dismissed_at IS NULL AND (
	e.outcome IN ('flagged', 'quarantined', 'ignored') OR e.outcome = 'waiting' AND (
		e.reason = 'source_paused'
		OR NOT EXISTS (
			SELECT FROM payment_ids i
			JOIN payments p ON p.account_id = i.account_id AND p.id = i.payment_id
			LEFT JOIN payments m ON m.account_id = p.account_id AND m.id = p.merged_into
			JOIN orders o ON o.account_id = p.account_id AND o.id = coalesce(m.order_id, p.order_id)
			WHERE i.account_id = e.account_id AND i.realm = e.realm AND i.id = e.payment AND o.total IS NOT NULL))))`

// DropPartitions drops the partitions of event_payloads that are wholly older than keep, after it has moved the
// payloads of unresolved events (waiting, flagged, quarantined, ignored) to event_payloads_kept; and it deletes from
// there what has been resolved since. It returns the names of the partitions that it dropped.
func (s *Store) DropPartitions(ctx context.Context, keep time.Duration) ([]string, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'event_payloads'::regclass AND c.relname ~ '^event_payloads_[0-9]{8}$'
			AND (to_date(right(c.relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' <= now() - $1::interval
		ORDER BY 1`, keep)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for old partitions: %w", err)
	}
	var dropped []string
	for _, name := range names {
		if err := s.dropPartition(ctx, name); err != nil {
			return dropped, fmt.Errorf("drop partition %s: %w", name, err)
		}
		dropped = append(dropped, name)
	}
	_, err = s.pool.Exec(ctx, `
		DELETE FROM event_payloads_kept k
		WHERE NOT EXISTS (SELECT FROM processed_events e
			WHERE e.account_id = k.account_id AND e.source_id = k.source_id AND e.event_id = k.event_id AND `+unresolved+`)`)
	if err != nil {
		return dropped, fmt.Errorf("delete kept payloads: %w", err)
	}
	return dropped, nil
}

// dropPartition detaches, copies and drops. DETACH CONCURRENTLY waits for running statements but blocks none; it can't
// run in a transaction, so a crash in between leaves a detached table, which the copy below makes harmless to drop by
// hand, and FINALIZE ends a detach that was interrupted.
func (s *Store) dropPartition(ctx context.Context, name string) error {
	table := pgx.Identifier{name}.Sanitize()
	if _, err := s.pool.Exec(ctx, `
		INSERT INTO event_payloads_kept
		SELECT p.account_id, p.source_id, p.event_id, p.received_at, p.delivery, p.header,
			coalesce(p.body, (SELECT q.body FROM `+table+` q WHERE q.delivery = p.delivery AND q.body IS NOT NULL LIMIT 1))
		FROM `+table+` p
		JOIN processed_events e ON e.account_id = p.account_id AND e.source_id = p.source_id AND e.event_id = p.event_id
		WHERE `+unresolved+` AND NOT EXISTS (SELECT FROM event_payloads_kept k
			WHERE k.account_id = p.account_id AND k.source_id = p.source_id AND k.event_id = p.event_id AND k.delivery = p.delivery)`); err != nil {
		return fmt.Errorf("keep unresolved payloads: %w", err)
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	detach := `ALTER TABLE event_payloads DETACH PARTITION ` + table
	if _, err := conn.Exec(ctx, detach+` CONCURRENTLY`); err != nil {
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "55000" {
			return err
		}
		if _, err := conn.Exec(ctx, detach+` FINALIZE`); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, `DROP TABLE `+table)
	return err
}
