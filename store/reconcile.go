package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// How gateways are asked what happened, so that what their webhooks lost is found. A row of reconcile_cursors says how far the list
// of a source was read; one process works on it at a time.
//
//	claim   the source, for the time of a lease, and commit; the run has a row of its own from here on
//	list    no transaction, no lock; what is new is ingested like any event, objects are announced like any object
//	save    after each span, if the claim still stands: the cursor, the report so far, and the lease anew
//	end     what came of the run, and when the next one is due
//
// Whoever is killed in the middle leaves a claim that lapses; the next run repeats the span, which changes nothing. A claim that was
// taken over moves no cursor any more.

// ReconcileKey names a source and says what can be done about it, as the configuration has it now.
type ReconcileKey struct {
	Account, Source, Gateway string

	Lists, Asks bool   // whether its gateway's list can be read, and whether it can be asked about a payment
	Note        string // why not more, in sentences; empty: all of it can be done
}

// NoteReconcile enters sources that are not known, and what has changed of the others.
func (s *Store) NoteReconcile(ctx context.Context, list []ReconcileKey) error {
	var (
		accounts, sources, gateways, notes []string
		lists, asks                        []bool
	)
	for _, k := range list {
		accounts, sources, gateways = append(accounts, k.Account), append(sources, k.Source), append(gateways, k.Gateway)
		lists, asks, notes = append(lists, k.Lists), append(asks, k.Asks), append(notes, storable(k.Note))
	}
	_, err := s.pool.Exec(ctx, `
		INSERT INTO reconcile_cursors AS c (account_id, source_id, gateway, lists, asks, note)
		SELECT a, s, g, l, k, nullif(n, '') FROM unnest($1::text[], $2::text[], $3::text[], $4::bool[], $5::bool[], $6::text[]) AS x(a, s, g, l, k, n)
		ORDER BY a, s
		ON CONFLICT ON CONSTRAINT reconcile_cursors_pk DO UPDATE
			SET gateway = excluded.gateway, lists = excluded.lists, asks = excluded.asks, note = excluded.note, updated_at = clock_timestamp()
			WHERE (c.gateway, c.lists, c.asks) <> (excluded.gateway, excluded.lists, excluded.asks) OR c.note IS DISTINCT FROM excluded.note`,
		accounts, sources, gateways, lists, asks, notes)
	if err != nil {
		return fmt.Errorf("note what can be reconciled: %w", err)
	}
	return nil
}

// DueReconciles returns those of the sources whose next run is due and on which nobody works.
func (s *Store) DueReconciles(ctx context.Context, list []SourceKey) ([]SourceKey, error) {
	accounts, ids := columns(list)
	rows, _ := s.pool.Query(ctx, `
		SELECT c.account_id, c.source_id FROM unnest($1::text[], $2::text[]) AS x(a, s)
		JOIN reconcile_cursors c ON c.account_id = x.a AND c.source_id = x.s
		WHERE `+reconcileDue+` AND `+reconcileFree+`
		ORDER BY c.next_at, c.account_id, c.source_id`, accounts, ids)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[SourceKey])
	if err != nil {
		return nil, fmt.Errorf("find what is to be reconciled: %w", err)
	}
	return found, nil
}

const (
	reconcileDue  = `c.next_at <= clock_timestamp()`
	reconcileFree = `(c.claimed_until IS NULL OR c.claimed_until <= clock_timestamp()) AND (c.held_until IS NULL OR c.held_until <= clock_timestamp())`
)

// ReconcileCause says who began a run.
type ReconcileCause string

// The causes of runs.
const (
	ReconcileBySchedule ReconcileCause = "schedule"
	ReconcileByCommand  ReconcileCause = "command"
)

// ReconcileStart says how a run begins.
type ReconcileStart struct {
	ReconcileKey
	Cause ReconcileCause
	Lease time.Duration

	// Since is from where on the list is read; a cursor that has got further is set back to it. Zero: from the cursor.
	Since time.Time

	// Same are the sources that know the same payments, this one among them: the first event that any of them received is where
	// the first run of a source begins, but not further back than Reach.
	Same  []string
	Reach time.Duration
}

// ReconcileClaim is a source on which a run works, and the right to say how far it has come until the lease ends.
type ReconcileClaim struct {
	Account, Source, Gateway string

	Run   uuid.UUID
	Fence int64
	Lease time.Duration
	Now   time.Time // when it was claimed, by the database's clock

	Reached time.Time // all that happened before was taken in; zero: the list was never read
	First   time.Time // where a list that was never read begins; zero: no event was ever received
	Scanned time.Time // events received up to then were looked through for orders that wait; zero: none

	Failures int // runs that failed in a row
}

// ReconcileBusyError says why a run does not begin: another one works on the source, the gateway has asked to wait, or it is not due.
type ReconcileBusyError struct {
	Source string
	Held   bool      // the gateway asked to wait; otherwise another run is at work, or it is not due
	Until  time.Time // when that ends, at the latest
}

func (e *ReconcileBusyError) Error() string {
	if e.Held {
		return fmt.Sprintf("source %s: its gateway has asked to wait until %s", e.Source, e.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("source %s: another run is at work on it; if that was killed, its claim ends at %s", e.Source, e.Until.UTC().Format(time.RFC3339))
}

// ErrReconcileLost says that a claim has lapsed and was taken over: nothing was written.
var ErrReconcileLost = errors.New("the claim of this run was taken over by another")

const (
	sqlClaimReconcile = `
		UPDATE reconcile_cursors c SET
			fence = c.fence + 1, claimed_until = clock_timestamp() + $3::interval, updated_at = clock_timestamp(),
			reached_at = CASE WHEN $4::timestamptz IS NULL THEN c.reached_at ELSE least(c.reached_at, $4, clock_timestamp()) END
		WHERE c.account_id = $1 AND c.source_id = $2 AND ` + reconcileFree + ` AND (NOT $5 OR ` + reconcileDue + `)
		RETURNING c.fence, clock_timestamp(), c.reached_at, c.scanned_at, c.failures`

	// sqlFirstReceived reads one account's events of the time that the gateway's list goes back, once in the life of a source.
	sqlFirstReceived = `
		SELECT min(e.received_at) FROM processed_events e
		WHERE e.account_id = $1 AND e.received_at >= clock_timestamp() - $3::interval AND e.source_id = ANY($2)`

	sqlLoseRuns = `
		UPDATE reconcile_runs SET result = 'lost', ended_at = clock_timestamp(), eventful = true
		WHERE account_id = $1 AND source_id = $2 AND result = 'running'`

	sqlBeginRun = `
		INSERT INTO reconcile_runs (account_id, id, source_id, gateway, cause, fence) VALUES ($1, $2, $3, $4, $5, $6)`
)

// ClaimReconcile claims a source for a run, which has a row from then on. A run that was killed in its middle is marked lost. The
// error is a [*ReconcileBusyError] if the run must not begin; one that the schedule begins must also be due.
func (s *Store) ClaimReconcile(ctx context.Context, start ReconcileStart) (ReconcileClaim, error) {
	if err := s.NoteReconcile(ctx, []ReconcileKey{start.ReconcileKey}); err != nil {
		return ReconcileClaim{}, err
	}
	c, err := retry(ctx, &s.retried, func() (c ReconcileClaim, err error) {
		err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			c, err = claimReconcile(ctx, tx, start)
			return err
		})
		return c, err
	})
	var busy *ReconcileBusyError
	if err != nil && !errors.As(err, &busy) {
		err = fmt.Errorf("claim source %s for a reconciliation: %w", start.Source, err)
	}
	return c, err
}

func claimReconcile(ctx context.Context, tx pgx.Tx, start ReconcileStart) (ReconcileClaim, error) {
	c := ReconcileClaim{Account: start.Account, Source: start.Source, Gateway: start.Gateway, Run: newID(), Lease: start.Lease}
	if _, err := tx.Exec(ctx, sqlSettings); err != nil {
		return c, err
	}
	var reached, scanned, first *time.Time
	err := tx.QueryRow(ctx, sqlClaimReconcile, start.Account, start.Source, start.Lease, nullTime(start.Since), start.Cause == ReconcileBySchedule).
		Scan(&c.Fence, &c.Now, &reached, &scanned, &c.Failures)
	if errors.Is(err, pgx.ErrNoRows) {
		return c, reconcileBusy(ctx, tx, start)
	}
	if err != nil {
		return c, err
	}
	c.Reached, c.Scanned = deref(reached), deref(scanned)
	if c.Reached.IsZero() {
		if err := tx.QueryRow(ctx, sqlFirstReceived, start.Account, start.Same, start.Reach).Scan(&first); err != nil {
			return c, err
		}
		c.First = deref(first)
	}
	if _, err := tx.Exec(ctx, sqlLoseRuns, start.Account, start.Source); err != nil {
		return c, err
	}
	_, err = tx.Exec(ctx, sqlBeginRun, start.Account, pgUUID(c.Run), start.Source, start.Gateway, string(start.Cause), c.Fence)
	return c, err
}

// ReconcileOutlook is what a claim would say now, for a run that writes nothing: nothing is claimed. The error is a
// [*ReconcileBusyError] if the gateway has asked to wait.
func (s *Store) ReconcileOutlook(ctx context.Context, start ReconcileStart) (ReconcileClaim, error) {
	c := ReconcileClaim{Account: start.Account, Source: start.Source, Gateway: start.Gateway}
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var reached, scanned, held, first *time.Time
		err := tx.QueryRow(ctx, `
			SELECT clock_timestamp(), CASE WHEN $3::timestamptz IS NULL THEN c.reached_at ELSE least(c.reached_at, $3, clock_timestamp()) END, c.scanned_at,
				CASE WHEN c.held_until > clock_timestamp() THEN c.held_until END
			FROM (SELECT 1) one LEFT JOIN reconcile_cursors c ON c.account_id = $1 AND c.source_id = $2`,
			start.Account, start.Source, nullTime(start.Since)).Scan(&c.Now, &reached, &scanned, &held)
		if err != nil {
			return err
		}
		if held != nil {
			return &ReconcileBusyError{Source: start.Source, Held: true, Until: *held}
		}
		c.Reached, c.Scanned = deref(reached), deref(scanned)
		if !c.Reached.IsZero() {
			return nil
		}
		err = tx.QueryRow(ctx, sqlFirstReceived, start.Account, start.Same, start.Reach).Scan(&first)
		c.First = deref(first)
		return err
	})
	var busy *ReconcileBusyError
	if err != nil && !errors.As(err, &busy) {
		err = fmt.Errorf("look at the reconciliation of source %s: %w", start.Source, err)
	}
	return c, err
}

func reconcileBusy(ctx context.Context, tx pgx.Tx, start ReconcileStart) error {
	e := &ReconcileBusyError{Source: start.Source}
	var claimed, held *time.Time
	var now, next time.Time
	err := tx.QueryRow(ctx, `
		SELECT claimed_until, held_until, next_at, clock_timestamp() FROM reconcile_cursors WHERE account_id = $1 AND source_id = $2`,
		start.Account, start.Source).Scan(&claimed, &held, &next, &now)
	if err != nil {
		return err
	}
	e.Until = next
	if claimed != nil && claimed.After(now) {
		e.Until = *claimed
	} else if held != nil && held.After(now) {
		e.Held, e.Until = true, *held
	}
	return e
}

// ReconcileProgress is how far a run has come.
type ReconcileProgress struct {
	Reached time.Time // zero: as before
	Scanned time.Time // zero: as before
	Report  ReconcileReport
}

// SaveReconcile records how far a run has come, and keeps the claim for another lease. The error wraps [ErrReconcileLost] if the
// claim was taken over: then nothing was written, and the run must end.
func (s *Store) SaveReconcile(ctx context.Context, c ReconcileClaim, p ReconcileProgress) error {
	return s.settleReconcile(ctx, c, p, `claimed_until = clock_timestamp() + $6::interval`, []any{c.Lease}, `
		UPDATE reconcile_runs SET report = $3::jsonb WHERE account_id = $1 AND id = $2`, nil)
}

// ReconcileResult is how a run ended.
type ReconcileResult string

// The results of runs.
const (
	ReconcileRunning ReconcileResult = "running"
	ReconcileDone    ReconcileResult = "done"    // all that there was
	ReconcileMore    ReconcileResult = "more"    // as much as a run may; the next one goes on
	ReconcileFailed  ReconcileResult = "failed"  // the report says why
	ReconcileStopped ReconcileResult = "stopped" // the process was told to end
	ReconcileLost    ReconcileResult = "lost"    // it was killed, or its claim lapsed
)

// ReconcileEnd is how a run ended, and when the next one is due.
type ReconcileEnd struct {
	ReconcileProgress
	Result ReconcileResult

	Wait time.Duration // until the next run of the schedule
	Hold time.Duration // no run begins before, whoever asks for it: the gateway wants it so; 0: it does not
}

// EndReconcile records how a run ended and gives the claim back. The error is as for [Store.SaveReconcile].
func (s *Store) EndReconcile(ctx context.Context, c ReconcileClaim, e ReconcileEnd) error {
	return s.settleReconcile(ctx, c, e.ReconcileProgress, `claimed_until = NULL, next_at = clock_timestamp() + $6::interval,
		held_until = CASE WHEN $7::interval > '0' THEN clock_timestamp() + $7::interval END,
		failures = CASE WHEN $8 THEN c.failures + 1 ELSE 0 END, last_error = $9,
		succeeded_at = CASE WHEN $10 THEN clock_timestamp() ELSE c.succeeded_at END`,
		[]any{max(0, e.Wait), max(0, e.Hold), e.Result == ReconcileFailed, nullText(storable(e.Report.Error)), e.Result == ReconcileDone}, `
		UPDATE reconcile_runs SET report = $3::jsonb, result = $4, ended_at = clock_timestamp(), eventful = $5 WHERE account_id = $1 AND id = $2`,
		[]any{string(e.Result), e.Result == ReconcileFailed || e.Report.Eventful()})
}

// settleReconcile writes the cursor, with set and its arguments from $6 on, and the run, with its arguments from $4 on.
func (s *Store) settleReconcile(ctx context.Context, c ReconcileClaim, p ReconcileProgress, set string, args []any, run string, runArgs []any) error {
	report, err := json.Marshal(p.Report)
	if err != nil {
		return fmt.Errorf("report on source %s: %w", c.Source, err)
	}
	_, err = retry(ctx, &s.retried, func() (struct{}, error) {
		return struct{}{}, pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlSettings); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `
				UPDATE reconcile_cursors c SET reached_at = coalesce($4, c.reached_at), scanned_at = coalesce($5, c.scanned_at),
					updated_at = clock_timestamp(), `+set+`
				WHERE c.account_id = $1 AND c.source_id = $2 AND c.fence = $3 AND c.claimed_until IS NOT NULL`,
				append([]any{c.Account, c.Source, c.Fence, nullTime(p.Reached), nullTime(p.Scanned)}, args...)...)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return ErrReconcileLost
			}
			_, err = tx.Exec(ctx, run, append([]any{c.Account, pgUUID(c.Run), string(report)}, runArgs...)...)
			return err
		})
	})
	if err != nil {
		return fmt.Errorf("record the reconciliation of source %s: %w", c.Source, err)
	}
	return nil
}
