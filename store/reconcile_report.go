package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// ReconcileReport is what a run did and found. Lists in it are bounded by [MaxFindings]; the counts are not.
type ReconcileReport struct {
	From  *time.Time `json:"from,omitempty"`  // where the list was read from; nil: it was not read
	Until *time.Time `json:"until,omitempty"` // all that happened before was taken in

	Calls      int `json:"calls"`      // to the list; what orders and objects are asked about is asked by others
	Listed     int `json:"listed"`     // events and objects that stood in the list
	Duplicates int `json:"duplicates"` // of them, what was known
	Healed     int `json:"healed"`     // of them, and of what was asked about, what no webhook had brought
	Moved      int `json:"moved"`      // of those, what moved an order
	Differs    int `json:"differs"`    // events that are known otherwise: entered as a second meaning of their id
	KeptAside  int `json:"kept_aside"` // events that cannot be read: in quarantine
	Announced  int `json:"announced"`  // objects that stood in the list and are asked about

	// How late what was healed was, in seconds: from when it happened, as far as the gateway says, until it was taken in.
	LateP50 int64 `json:"late_p50_seconds"`
	LateMax int64 `json:"late_max_seconds"`

	Asked       int `json:"asked"`       // orders that wait and were asked about
	Open        int `json:"open"`        // orders that wait
	Unexplained int `json:"unexplained"` // answers that contradict our ledger and moved nothing
	Uncertain   int `json:"uncertain"`   // transactions of which it is not known for long what became of them

	Events         []HealedEvent          `json:"events,omitempty"`
	Orders         []WaitingOrder         `json:"orders,omitempty"`
	Contradictions []Contradiction        `json:"contradictions,omitempty"`
	Transactions   []UncertainTransaction `json:"transactions,omitempty"`

	Notes []string `json:"notes,omitempty"` // sentences: what could not be done, and why
	Error string   `json:"error,omitempty"` // why the run failed
}

// MaxFindings bounds each list of a [ReconcileReport].
const MaxFindings = 100

// Eventful reports whether somebody may want to know of the run, when it is over.
func (r *ReconcileReport) Eventful() bool {
	return r.Healed+r.Differs+r.KeptAside+r.Unexplained > 0
}

// HealedEvent is something that no webhook had brought.
type HealedEvent struct {
	ID         string     `json:"id"`
	Type       string     `json:"type"`
	Outcome    Outcome    `json:"outcome"`
	Order      *uuid.UUID `json:"order_id,omitempty"`
	OccurredAt *time.Time `json:"occurred_at,omitempty"`
	Late       int64      `json:"late_seconds"` // 0 if it does not say when it happened
	Asked      bool       `json:"asked"`        // the gateway was asked about it; otherwise it stood in its list
}

// WaitingOrder is an order whose gateway should have told by now how it goes on.
type WaitingOrder struct {
	Order   uuid.UUID   `json:"order_id"`
	Ref     string      `json:"external_ref"`
	State   order.State `json:"state"`
	Stub    bool        `json:"stub"` // nobody has registered it
	Since   time.Time   `json:"since"`
	Asks    int         `json:"asks"` // how often it was asked about
	AskedAt *time.Time  `json:"asked_at,omitempty"`
	NextAt  *time.Time  `json:"next_at,omitempty"` // nil: it is not asked about any more
}

// Contradiction is an answer of a gateway that says otherwise than our ledger and moved nothing. Amounts are minor units of Currency.
type Contradiction struct {
	Object   string     `json:"object"` // that was asked about, kind/id
	Order    *uuid.UUID `json:"order_id,omitempty"`
	What     string     `json:"what"` // "captured", "refunded"
	Ours     int64      `json:"ours"`
	Theirs   int64      `json:"theirs"`
	Currency string     `json:"currency"`
	Detail   string     `json:"detail"` // a sentence
}

// UncertainTransaction is a call that moves money of which it is not known for long what became of it.
type UncertainTransaction struct {
	ID       uuid.UUID          `json:"id"`
	Order    uuid.UUID          `json:"order_id"`
	Kind     order.MovementKind `json:"kind"`
	Amount   int64              `json:"amount"`
	Currency string             `json:"currency"`
	SentAt   *time.Time         `json:"sent_at,omitempty"`
	Code     string             `json:"code,omitempty"`
}

// ReconcileRun is one run over one source, and its report.
type ReconcileRun struct {
	Account   string          `json:"account"`
	ID        uuid.UUID       `json:"id"`
	Source    string          `json:"source"`
	Gateway   string          `json:"gateway"`
	Cause     ReconcileCause  `json:"cause"`
	Result    ReconcileResult `json:"result"`
	StartedAt time.Time       `json:"started_at"`
	EndedAt   *time.Time      `json:"ended_at,omitempty"`
	ReconcileReport
}

// ReconcileRunFilter chooses runs; zero fields choose all.
type ReconcileRunFilter struct {
	Account, Source string
	Eventful        bool // only those that found something, or failed

	Before uuid.UUID // of the page before: its last id
	Limit  int       // default 50, at most 1000
}

// ReconcileRuns returns runs, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ReconcileRuns(ctx context.Context, f ReconcileRunFilter) ([]ReconcileRun, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	c := &conditions{}
	if f.Account != "" {
		c.add("r.account_id = ?", f.Account)
	}
	if f.Source != "" {
		c.add("r.source_id = ?", f.Source)
	}
	if f.Eventful {
		c.add("r.eventful")
	}
	if f.Before != uuid.Nil {
		c.add("r.id < ?", f.Before)
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT r.account_id, r.id, r.source_id, r.gateway, r.cause, r.result, r.started_at, r.ended_at, r.report
		FROM reconcile_runs r`+c.where()+` ORDER BY r.id DESC LIMIT `+c.arg(limit+1), c.args...)
	runs, err := pgx.CollectRows(rows, scanReconcileRun)
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list reconciliations: %w", err)
	}
	if len(runs) > limit {
		return runs[:limit], runs[limit-1].ID, nil
	}
	return runs, uuid.Nil, nil
}

func scanReconcileRun(row pgx.CollectableRow) (r ReconcileRun, err error) {
	err = row.Scan(&r.Account, &r.ID, &r.Source, &r.Gateway, &r.Cause, &r.Result, &r.StartedAt, &r.EndedAt, &r.ReconcileReport)
	return r, err
}

// ReconcileCursor is how far the reconciliation of a source has come.
type ReconcileCursor struct {
	Account string `json:"account"`
	Source  string `json:"source"`
	Gateway string `json:"gateway"`

	Lists bool   `json:"lists"`          // its gateway's list is read
	Asks  bool   `json:"asks"`           // its gateway is asked about orders that wait
	Note  string `json:"note,omitempty"` // why not more

	ReachedAt   *time.Time    `json:"reached_at,omitempty"` // all that happened before was taken in; nil: the list was never read
	Lag         time.Duration `json:"-"`                    // how far that is behind now
	SucceededAt *time.Time    `json:"succeeded_at,omitempty"`
	Succeeded   time.Duration `json:"-"` // how long that is ago
	RunningTill *time.Time    `json:"running_till,omitempty"`
	NextAt      time.Time     `json:"next_at"`
	HeldUntil   *time.Time    `json:"held_until,omitempty"`
	Failures    int           `json:"failures"` // runs that failed in a row
	LastError   string        `json:"last_error,omitempty"`
	Open        int           `json:"open"` // orders that wait
}

// ReconcileCursors returns how far the sources of an account have come, by account and source; account "" means all of them.
func (s *Store) ReconcileCursors(ctx context.Context, account string) ([]ReconcileCursor, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT c.account_id, c.source_id, c.gateway, c.lists, c.asks, coalesce(c.note, ''), c.reached_at,
			greatest(coalesce(n.now - c.reached_at, '0'), '0'), c.succeeded_at, greatest(coalesce(n.now - c.succeeded_at, '0'), '0'),
			CASE WHEN c.claimed_until > n.now THEN c.claimed_until END, c.next_at, CASE WHEN c.held_until > n.now THEN c.held_until END,
			c.failures, coalesce(c.last_error, ''),
			(SELECT count(*) FROM reconcile_orders w WHERE w.account_id = c.account_id AND w.source_id = c.source_id)
		FROM reconcile_cursors c, LATERAL (SELECT clock_timestamp() AS now) n
		WHERE $1 = '' OR c.account_id = $1
		ORDER BY c.account_id, c.source_id`, account)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByPos[ReconcileCursor])
	if err != nil {
		return nil, fmt.Errorf("read how far reconciliations have come: %w", err)
	}
	return found, nil
}

// ReconcileCursorOf returns how far a source has come; found is false if it was never looked at.
func (s *Store) ReconcileCursorOf(ctx context.Context, key SourceKey) (c ReconcileCursor, found bool, err error) {
	all, err := s.ReconcileCursors(ctx, key.Account)
	for _, c := range all {
		if c.Source == key.ID {
			return c, true, nil
		}
	}
	return ReconcileCursor{}, false, err
}

// uneventfulKept is how long a run that found nothing is remembered.
const uneventfulKept = 2 * 24 * time.Hour

// DropReconcileRuns deletes runs that ended longer than keep ago, and those that found nothing after two days; and what was asked about
// and never answered within keep. It returns how many rows it deleted.
func (s *Store) DropReconcileRuns(ctx context.Context, keep time.Duration) (dropped int64, err error) {
	const atOnce = 5000
	for _, d := range []struct {
		sql string
		age time.Duration
	}{
		{`DELETE FROM reconcile_runs r USING (
			SELECT account_id, id FROM reconcile_runs WHERE ended_at < clock_timestamp() - $1::interval AND NOT eventful LIMIT $2) o
			WHERE r.account_id = o.account_id AND r.id = o.id`, min(keep, uneventfulKept)},
		{`DELETE FROM reconcile_runs r USING (
			SELECT account_id, id FROM reconcile_runs WHERE ended_at < clock_timestamp() - $1::interval LIMIT $2) o
			WHERE r.account_id = o.account_id AND r.id = o.id`, keep},
		{`DELETE FROM reconcile_asks a USING (
			SELECT account_id, source_id, object FROM reconcile_asks WHERE announced_at < clock_timestamp() - $1::interval LIMIT $2) o
			WHERE a.account_id = o.account_id AND a.source_id = o.source_id AND a.object = o.object`, keep},
	} {
		for n := int64(atOnce); n == atOnce; dropped += n {
			tag, err := s.pool.Exec(ctx, d.sql, d.age, atOnce)
			if err != nil {
				return dropped, fmt.Errorf("delete old reconciliations: %w", err)
			}
			n = tag.RowsAffected()
		}
	}
	return dropped, nil
}
