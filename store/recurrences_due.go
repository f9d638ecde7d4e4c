package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/period"
)

// MaxPeriods is how many periods of one recurrence are made in one transaction.
const MaxPeriods = 100

// The keys that the metadata of a scheduled order has beside the merchant's own.
const (
	MetadataRef        = "external_ref"
	MetadataRecurrence = "recurrence_id"
	MetadataPeriod     = "period"
)

// DueRecurrence is a recurrence with a period that has begun and was not made yet.
type DueRecurrence struct {
	Account string
	ID      uuid.UUID
	Late    time.Duration // since its oldest such period began, by the database's clock
}

// DueRecurrences returns recurrences that are due, in order of account and lateness: of each account the limit that are
// the latest, and none of except.
func (s *Store) DueRecurrences(ctx context.Context, limit int, except []uuid.UUID) ([]DueRecurrence, error) {
	rows, _ := s.pool.Query(ctx, `
		WITH RECURSIVE accounts_due (account_id) AS (
			(SELECT account_id FROM recurrences WHERE next_start IS NOT NULL ORDER BY account_id LIMIT 1)
		UNION ALL
			SELECT n.account_id FROM accounts_due a
			CROSS JOIN LATERAL (
				SELECT r.account_id FROM recurrences r WHERE r.next_start IS NOT NULL AND r.account_id > a.account_id
				ORDER BY r.account_id LIMIT 1) n
		)
		SELECT d.account_id, d.id, clock_timestamp() - d.next_start
		FROM accounts_due a
		CROSS JOIN LATERAL (
			SELECT r.account_id, r.id, r.next_start FROM recurrences r
			WHERE r.account_id = a.account_id AND r.next_start <= (SELECT clock_timestamp()) AND r.id <> ALL (coalesce($2::uuid[], '{}'))
			ORDER BY r.next_start LIMIT $1) d
		ORDER BY d.account_id, d.next_start, d.id`, limit, except)
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[DueRecurrence])
	if err != nil {
		return nil, fmt.Errorf("list recurrences that are due: %w", err)
	}
	return due, nil
}

// CreatedOrders is what one transaction of [Store.CreateDueOrders] did.
type CreatedOrders struct {
	Orders int  // that were registered: made, or a webhook's stub filled
	Known  int  // that had been registered before under the same reference, and were left as they are
	More   bool // other periods have begun as well
	Busy   bool // another transaction is at the recurrence, and nothing was done
}

// CreateDueOrders registers the orders of the periods of a recurrence that have begun, oldest first, at most [MaxPeriods].
// Each is the event that POST /v1/orders would be for that reference, so that it happens once, whoever comes first. What
// commits together: the orders, their events and jobs, and how far the schedule has come; or nothing of it. By the
// database's clock under the row's lock, a period is never made before it begins. Any number of processes may call it at
// once.
func (s *Store) CreateDueOrders(ctx context.Context, account string, id uuid.UUID) (CreatedOrders, error) {
	return retry(ctx, &s.retried, func() (made CreatedOrders, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
			r, err := getRecurrence(ctx, tx, account, id, " FOR NO KEY UPDATE SKIP LOCKED")
			if errors.Is(err, ErrNotFound) {
				made.Busy = true
				return nil
			}
			if err != nil {
				return err
			}
			made, err = s.createDue(ctx, tx, &r)
			return err
		})
		return made, err
	})
}

// createDue makes what is due of a recurrence that the transaction has locked, or has inserted.
func (s *Store) createDue(ctx context.Context, tx pgx.Tx, r *Recurrence) (made CreatedOrders, err error) {
	if r.NextPeriod == nil {
		return made, nil
	}
	schedule, err := r.Schedule()
	if err != nil {
		return made, fmt.Errorf("recurrence %s: %w", r.ID, err)
	}
	now, err := s.Clock(ctx, tx)
	if err != nil {
		return made, err
	}
	now = now.UTC()
	// The start that is stored only says when to look: the zone's rules may have changed since.
	planned := *r.NextStart
	next, ok := r.upcoming(schedule)
	r.proceed(next, ok, now)
	var events []Event
	for r.NextPeriod != nil && !next.Start.After(now) && len(events) < MaxPeriods {
		e, err := r.registration(next, now)
		if err != nil {
			return made, fmt.Errorf("recurrence %s: %w", r.ID, err)
		}
		events = append(events, e)
		r.Created++
		next, ok = schedule.Next(next)
		r.proceed(next, ok, now)
	}
	if len(events) == 0 && r.NextStart != nil && r.NextStart.Equal(planned) {
		return made, nil
	}
	results, err := s.ApplyTx(ctx, tx, events)
	if err != nil {
		return made, fmt.Errorf("orders of recurrence %s: %w", r.ID, err)
	}
	for _, res := range results {
		if res.Outcome == Duplicate {
			made.Known++
		} else {
			made.Orders++
		}
	}
	made.More = r.NextStart != nil && !r.NextStart.After(now)
	return made, r.update(ctx, tx)
}

// upcoming is the next period of r as the zone's rules are today. Where they do not know the day any more on which it was
// to begin, it is the first that begins then or later.
func (r *Recurrence) upcoming(s period.Schedule) (period.Period, bool) {
	if r.NextPeriod == nil {
		return period.Period{}, false
	}
	if p, ok := s.Named(*r.NextPeriod); ok {
		return p, true
	}
	return s.After(r.NextStart.Add(-1))
}

// registration is the event that registers the order of a period.
func (r *Recurrence) registration(p period.Period, now time.Time) (Event, error) {
	ref := OrderRef(r.Ref, p.Name)
	details, err := r.detailsOf(ref, p.Name)
	if err != nil {
		return Event{}, err
	}
	total := r.Amount
	return Event{
		Event: order.Event{
			ID: RegisterID(ref), Type: "order.registered", At: now, Reference: ref, Strength: order.StrengthPerson,
			Command: &order.Command{Register: &total, Details: details},
		},
		Account: r.Account, Source: APISource,
	}, nil
}

// detailsOf is what the merchant gave the recurrence, with what tells this order from the others.
func (r *Recurrence) detailsOf(ref, name string) (json.RawMessage, error) {
	details, metadata := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if len(r.Details) > 0 {
		if err := json.Unmarshal(r.Details, &details); err != nil {
			return nil, fmt.Errorf("details: %w", err)
		}
	}
	if doc := details["metadata"]; doc != nil {
		if err := json.Unmarshal(doc, &metadata); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	for key, text := range map[string]string{MetadataRef: ref, MetadataRecurrence: r.ID.String(), MetadataPeriod: name} {
		doc, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		metadata[key] = doc
	}
	doc, err := json.Marshal(metadata)
	if err != nil {
		return nil, err
	}
	details["metadata"] = doc
	return json.Marshal(details)
}
