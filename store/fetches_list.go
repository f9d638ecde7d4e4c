package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// States of a [Fetch].
const (
	FetchOpen = "open" // announced, and not asked about since with success
	FetchDone = "done"
	FetchDead = "dead" // given up until it is announced again
)

// Fetch is an object that a gateway was or is to be asked about.
type Fetch struct {
	Account     string     `json:"account"`
	Source      string     `json:"source"`
	Object      string     `json:"object"` // "kind/id"
	Gateway     string     `json:"gateway"`
	State       string     `json:"state"`
	Attempts    int        `json:"attempts"` // that failed in a row
	AnnouncedAt time.Time  `json:"announced_at"`
	AskedAt     *time.Time `json:"asked_at,omitempty"`
	NextAt      *time.Time `json:"next_at,omitempty"` // open: when it is asked about; while a call is out: its end
	LastError   string     `json:"last_error,omitempty"`
}

// FetchFilter chooses objects; every field that is set must match.
type FetchFilter struct {
	Account, Source, Object string
	States                  []string // none: open and dead
}

// where is f as a condition on fetches f, with the arguments $1 to $3. States are written out, for the small indexes that
// open and dead rows have.
func (f FetchFilter) where() (string, []any, error) {
	states := f.States
	if len(states) == 0 {
		states = []string{FetchOpen, FetchDead}
	}
	conds := make([]string, len(states))
	for i, state := range states {
		switch state {
		case FetchOpen:
			conds[i] = "f.next_at IS NOT NULL"
		case FetchDone:
			conds[i] = "f.state = 'done'"
		case FetchDead:
			conds[i] = "f.state = 'dead'"
		default:
			return "", nil, fmt.Errorf("there is no fetch state %q", state)
		}
	}
	return `($1 = '' OR f.account_id = $1) AND ($2 = '' OR f.source_id = $2) AND ($3 = '' OR f.object = $3) AND (` +
		strings.Join(conds, " OR ") + ")", []any{f.Account, f.Source, f.Object}, nil
}

// Fetches returns up to limit objects that match f, by account, source and name. To go on, pass the last one as after;
// nil begins.
func (s *Store) Fetches(ctx context.Context, f FetchFilter, after *Fetch, limit int) ([]Fetch, error) {
	where, args, err := f.where()
	if err != nil {
		return nil, err
	}
	var last Fetch
	if after != nil {
		last = *after
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT f.account_id, f.source_id, f.object, f.gateway, f.state, f.attempts, f.announced_at, f.asked_at, f.next_at,
			coalesce(f.last_error, '')
		FROM fetches f
		WHERE `+where+` AND (f.account_id, f.source_id, f.object) > ($4, $5, $6)
		ORDER BY f.account_id, f.source_id, f.object
		LIMIT $7`, append(args, last.Account, last.Source, last.Object, limit)...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Fetch])
	if err != nil {
		return nil, fmt.Errorf("list fetches: %w", err)
	}
	return found, nil
}

// CountFetches returns how many objects match f.
func (s *Store) CountFetches(ctx context.Context, f FetchFilter) (n int, err error) {
	where, args, err := f.where()
	if err != nil {
		return 0, err
	}
	if err := s.pool.QueryRow(ctx, `SELECT count(*) FROM fetches f WHERE `+where, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count fetches: %w", err)
	}
	return n, nil
}

// retryFetches is how many objects one transaction of RetryFetches makes due.
const retryFetches = 500

// RetryFetches makes the objects that match f due now, as if they had been announced, and forgets their failed attempts.
// Those that are being asked about are left alone. It returns how many it made due; objects and jobs commit together, so
// many at a time.
func (s *Store) RetryFetches(ctx context.Context, f FetchFilter) (total int, err error) {
	where, args, err := f.where()
	if err != nil {
		return 0, err
	}
	var last FetchArgs
	for {
		page, err := retry(ctx, &s.retried, func() (page []FetchArgs, err error) {
			err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
				rows, _ := tx.Query(ctx, `
					WITH chosen AS MATERIALIZED (
						SELECT f.account_id, f.source_id, f.object FROM fetches f
						WHERE `+where+` AND f.claimed_until IS NULL AND (f.account_id, f.source_id, f.object) > ($4, $5, $6)
						ORDER BY f.account_id, f.source_id, f.object LIMIT $7
						FOR NO KEY UPDATE)
					UPDATE fetches f SET state = 'open', next_at = clock_timestamp(), attempts = 0, failing = NULL,
						announced_at = CASE WHEN f.state = 'open' THEN f.announced_at ELSE clock_timestamp() END
					FROM chosen c
					WHERE f.account_id = c.account_id AND f.source_id = c.source_id AND f.object = c.object
					RETURNING f.account_id, f.source_id, f.object`,
					slices.Concat(args, []any{last.Account, last.Source, last.Object, retryFetches})...)
				if page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[FetchArgs]); err != nil {
					return err
				}
				jobs := make([]fetchJob, len(page))
				for i, args := range page {
					jobs[i] = fetchJob{FetchArgs: args}
				}
				return s.enqueueFetches(ctx, tx, jobs)
			})
			return page, err
		})
		total += len(page)
		if err != nil {
			return total, fmt.Errorf("retry fetches: %w", err)
		}
		if len(page) < retryFetches {
			return total, nil
		}
		for _, args := range page { // an UPDATE returns in no order
			if args.after(last) {
				last = args
			}
		}
	}
}

// after reports whether a comes after b, by key.
func (a FetchArgs) after(b FetchArgs) bool {
	switch {
	case a.Account != b.Account:
		return a.Account > b.Account
	case a.Source != b.Source:
		return a.Source > b.Source
	}
	return a.Object > b.Object
}
