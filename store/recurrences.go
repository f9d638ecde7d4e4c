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

// MaxRecurrenceRef bounds the external_ref of a recurrence, in bytes: its orders are called {external_ref}:{period}.
const MaxRecurrenceRef = order.MaxReference - len(":") - period.MaxName

// NewRecurrence is what a recurrence is made of.
type NewRecurrence struct {
	Account string
	Ref     string // external_ref: unique in its account for ever, at most MaxRecurrenceRef bytes

	Amount  order.Amount    // the total of each of its orders
	Details json.RawMessage // what each is registered with beside it (items, metadata): a JSON object, or nil

	Interval period.Interval
	Every    int // intervals per period, 1 to period.MaxEvery
	TimeZone string
	StartsOn period.Date // the day on which the first period begins

	EndsOn    period.Date // no period begins after this day; zero: it does not end by itself
	EndsAfter int         // no more periods than this; 0: any number
}

// Recurrence is a schedule that makes one order per period.
type Recurrence struct {
	Account   string          `json:"account"`
	ID        uuid.UUID       `json:"id"`
	Ref       string          `json:"external_ref"`
	Amount    order.Amount    `json:"amount"`
	Details   json.RawMessage `json:"details,omitempty"`
	Interval  period.Interval `json:"interval"`
	Every     int             `json:"every"`
	TimeZone  string          `json:"time_zone"` // that of the account when the recurrence was made, for ever
	StartsOn  period.Date     `json:"starts_on"`
	EndsOn    *period.Date    `json:"ends_on"`    // no period begins after this day
	EndsAfter *int            `json:"ends_after"` // no more periods than this

	// NextPeriod is the first period that was not made yet, and NextStart when it begins; nil: no more will come.
	NextPeriod *string    `json:"next_period"`
	NextStart  *time.Time `json:"next_start"`

	Created   int        `json:"created"`  // periods that were made: each has its order
	EndedAt   *time.Time `json:"ended_at"` // since when no more will come; nil: more will
	Version   int        `json:"version"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
}

// ErrEndsEarlier says that a recurrence ends before the day on which it was asked to end. An end is never put off.
var ErrEndsEarlier = errors.New("the recurrence ends earlier")

// Schedule is when the periods of r begin.
func (r *Recurrence) Schedule() (period.Schedule, error) {
	zone, err := period.LoadZone(r.TimeZone)
	if err != nil {
		return period.Schedule{}, err
	}
	return period.Schedule{Interval: r.Interval, Every: r.Every, From: r.StartsOn, Zone: zone}, nil
}

// ends reports whether a period that would be the next one is not made any more.
func (r *Recurrence) ends(next period.Period) bool {
	return r.EndsOn != nil && r.EndsOn.Before(next.On) || r.EndsAfter != nil && r.Created >= *r.EndsAfter
}

// proceed makes next the next period, or ends r at the time now, if there is none or it comes too late.
func (r *Recurrence) proceed(next period.Period, ok bool, now time.Time) {
	if !ok || r.ends(next) {
		r.NextPeriod, r.NextStart, r.EndedAt = nil, nil, &now
		return
	}
	r.NextPeriod, r.NextStart = &next.Name, &next.Start
}

const recurrenceColumns = `r.account_id, r.id, r.external_ref, r.amount, r.currency, r.details, r.interval, r.every, r.time_zone,
	r.starts_on, r.ends_on, r.ends_after, r.next_period, r.next_start, r.created_count, r.ended_at, r.version, r.created_at, r.updated_at`

func scanRecurrence(row pgx.CollectableRow) (r Recurrence, err error) {
	var (
		startsOn time.Time
		endsOn   *time.Time
	)
	err = row.Scan(&r.Account, &r.ID, &r.Ref, &r.Amount.Minor, &r.Amount.Currency, &r.Details, &r.Interval, &r.Every, &r.TimeZone,
		&startsOn, &endsOn, &r.EndsAfter, &r.NextPeriod, &r.NextStart, &r.Created, &r.EndedAt, &r.Version, &r.CreatedAt, &r.UpdatedAt)
	for _, at := range []*time.Time{&r.CreatedAt, &r.UpdatedAt, r.NextStart, r.EndedAt} {
		if at != nil {
			*at = at.UTC()
		}
	}
	r.StartsOn = period.DateOf(startsOn)
	if endsOn != nil {
		d := period.DateOf(*endsOn)
		r.EndsOn = &d
	}
	return r, err
}

// check returns the first period of n, or what is wrong with n.
func (n *NewRecurrence) check() (period.Period, error) {
	zone, err := period.LoadZone(n.TimeZone)
	if err != nil {
		return period.Period{}, err
	}
	s := period.Schedule{Interval: n.Interval, Every: n.Every, From: n.StartsOn, Zone: zone}
	first, ok := s.First()
	switch {
	case n.Account == "":
		return first, errors.New("no account")
	case !order.IsReference(n.Ref) || len(n.Ref) > MaxRecurrenceRef:
		return first, fmt.Errorf("external_ref is no reference of at most %d bytes", MaxRecurrenceRef)
	case s.Validate() != nil:
		return first, s.Validate()
	case !ok:
		return first, errors.New("no period begins")
	case n.Amount.Minor < 0:
		return first, fmt.Errorf("amount %d", n.Amount.Minor)
	case !n.EndsOn.IsZero() && (!n.EndsOn.Valid() || n.EndsOn.Before(first.On)):
		return first, fmt.Errorf("ends on %s, before the first period begins", n.EndsOn)
	case n.EndsAfter < 0:
		return first, fmt.Errorf("ends after %d periods", n.EndsAfter)
	}
	return first, nil
}

// CreateRecurrence makes a recurrence in the caller's transaction, and the orders of those of its periods that have begun:
// as many as [MaxPeriods], the schedule makes the rest. Where the account has one of that external_ref, also one that has
// ended, it returns that one as it stands, and false.
func (s *Store) CreateRecurrence(ctx context.Context, tx Tx, n NewRecurrence) (r Recurrence, created bool, err error) {
	first, err := n.check()
	if err != nil {
		return r, false, fmt.Errorf("recurrence %s: %w", n.Ref, err)
	}
	var endsAfter *int
	if n.EndsAfter > 0 {
		endsAfter = &n.EndsAfter
	}
	rows, _ := tx.Query(ctx, `
		INSERT INTO recurrences AS r (account_id, id, external_ref, amount, currency, details, interval, every, time_zone, starts_on,
			ends_on, ends_after, next_period, next_start)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
		ON CONFLICT ON CONSTRAINT recurrences_external_ref DO NOTHING
		RETURNING `+recurrenceColumns,
		n.Account, pgUUID(newID()), n.Ref, n.Amount.Minor, n.Amount.Currency, nullJSON(n.Details), string(n.Interval), n.Every, n.TimeZone,
		n.StartsOn.UTC(), dateArg(n.EndsOn), endsAfter, first.Name, first.Start)
	r, err = pgx.CollectExactlyOneRow(rows, scanRecurrence)
	if errors.Is(err, pgx.ErrNoRows) {
		rows, _ = tx.Query(ctx, `SELECT `+recurrenceColumns+` FROM recurrences r WHERE r.account_id = $1 AND r.external_ref = $2`, n.Account, n.Ref)
		if r, err = pgx.CollectExactlyOneRow(rows, scanRecurrence); err == nil {
			return r, false, nil
		}
	}
	if err != nil {
		return r, false, fmt.Errorf("make recurrence %s: %w", n.Ref, err)
	}
	if _, err := s.createDue(ctx, tx, &r); err != nil {
		return r, false, err
	}
	return r, true, nil
}

// GetRecurrence returns one recurrence of an account, or an error that is [ErrNotFound].
func (s *Store) GetRecurrence(ctx context.Context, account string, id uuid.UUID) (Recurrence, error) {
	return getRecurrence(ctx, s.pool, account, id, "")
}

func getRecurrence(ctx context.Context, q interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
}, account string, id uuid.UUID, lock string,
) (Recurrence, error) {
	rows, _ := q.Query(ctx, `SELECT `+recurrenceColumns+` FROM recurrences r WHERE r.account_id = $1 AND r.id = $2`+lock, account, pgUUID(id))
	r, err := pgx.CollectExactlyOneRow(rows, scanRecurrence)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return r, fmt.Errorf("recurrence %s: %w", id, err)
	}
	return r, nil
}

// RecurrenceFilter chooses recurrences; zero fields choose all.
type RecurrenceFilter struct {
	Account string
	Ref     string    // external_ref
	Ended   *bool     // only those that have ended, or only those that have not
	Before  uuid.UUID // of the page before: its last id
	Limit   int       // default 50, at most 1000
}

// ListRecurrences returns recurrences, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ListRecurrences(ctx context.Context, f RecurrenceFilter) ([]Recurrence, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	rows, _ := s.pool.Query(ctx, `
		SELECT `+recurrenceColumns+` FROM recurrences r
		WHERE ($1 = '' OR r.account_id = $1) AND ($2 = '' OR r.external_ref = $2)
			AND ($3::boolean IS NULL OR $3 = (r.ended_at IS NOT NULL)) AND ($4::uuid IS NULL OR r.id < $4)
		ORDER BY r.id DESC LIMIT $5`, f.Account, f.Ref, f.Ended, pgUUID(f.Before), limit+1)
	found, err := pgx.CollectRows(rows, scanRecurrence)
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list recurrences: %w", err)
	}
	if len(found) > limit {
		return found[:limit], found[limit-1].ID, nil
	}
	return found, uuid.Nil, nil
}

// EndRecurrence ends a recurrence in the caller's transaction: no period that begins after the day on is made. The zero
// day means now: the period that is running is the last, and none that begins later is made. What had begun before and
// was not made yet still is. Ending one again changes nothing; one that ends before on is an error that is
// [ErrEndsEarlier], as one that there is not is [ErrNotFound].
func (s *Store) EndRecurrence(ctx context.Context, tx Tx, account string, id uuid.UUID, on period.Date) (Recurrence, error) {
	r, err := getRecurrence(ctx, tx, account, id, " FOR NO KEY UPDATE")
	if err != nil {
		return r, err
	}
	now, err := s.Clock(ctx, tx)
	if err != nil {
		return r, err
	}
	now = now.UTC()
	schedule, err := r.Schedule()
	if err != nil {
		return r, fmt.Errorf("recurrence %s: %w", id, err)
	}
	last := on
	if on.IsZero() {
		last = r.StartsOn.Yesterday()
		if running, ok := schedule.At(now); ok {
			last = running.On
		}
	}
	if r.EndedAt != nil || r.EndsOn != nil && r.EndsOn.Compare(last) <= 0 {
		if r.EndsOn != nil && r.EndsOn.Before(on) {
			return r, fmt.Errorf("recurrence %s ends on %s: %w", id, r.EndsOn, ErrEndsEarlier)
		}
		return r, nil
	}
	r.EndsOn = &last
	next, ok := r.upcoming(schedule)
	r.proceed(next, ok, now)
	if err := r.update(ctx, tx); err != nil {
		return r, err
	}
	return r, nil
}

// update writes what changes of a recurrence, under its lock.
func (r *Recurrence) update(ctx context.Context, tx pgx.Tx) error {
	var endsOn period.Date
	if r.EndsOn != nil {
		endsOn = *r.EndsOn
	}
	err := tx.QueryRow(ctx, `
		UPDATE recurrences
		SET ends_on = $3, next_period = $4, next_start = $5, created_count = $6, ended_at = $7, version = version + 1, updated_at = now()
		WHERE account_id = $1 AND id = $2 AND version = $8
		RETURNING version, updated_at`,
		r.Account, pgUUID(r.ID), dateArg(endsOn), r.NextPeriod, r.NextStart, r.Created, r.EndedAt, r.Version).Scan(&r.Version, &r.UpdatedAt)
	r.UpdatedAt = r.UpdatedAt.UTC()
	if err != nil {
		return fmt.Errorf("change recurrence %s: %w", r.ID, err)
	}
	return nil
}

// dateArg is a day as a parameter; the zero day is NULL.
func dateArg(d period.Date) *time.Time {
	if d.IsZero() {
		return nil
	}
	t := d.UTC()
	return &t
}
