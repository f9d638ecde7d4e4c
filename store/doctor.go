package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// AttentionFlags are the flags that a person must look at until they are dismissed. The others say how far an order has come, or what
// its gateway's own dispute is about. The index orders_attention has the same list: a flag that is added here needs a migration.
const AttentionFlags = order.FlagAccountMismatch | order.FlagAmountUnknown | order.FlagCurrencyMismatch | order.FlagIDReused | order.FlagModeMismatch |
	order.FlagOverRefunded | order.FlagOverpaid | order.FlagPaidAfterCancel | order.FlagReferenceConflict | order.FlagTotalDiffers | order.FlagUnexpectedMove

// AttentionAges are how long something may stand as it is before a person has to look at it. Zero: no time at all.
type AttentionAges struct {
	Stub       time.Duration // an order that nobody registers, since it was made
	Unplaced   time.Duration // an event whose payment belongs to no order, since it was received
	Effect     time.Duration // an effect that is owed and not done, since it was asked for
	Movement   time.Duration // a call that moves money and is not answered, since it was first sent
	Authorized time.Duration // an order that is authorized, since it became so
	Pending    time.Duration // an order that is pending although it has a payment, since that was first heard of
	Underpaid  time.Duration // an order of which a part is paid, since it is so
	Silent     time.Duration // a source that receives nothing, since it last did
}

// AttentionFilter says what is looked for.
type AttentionFilter struct {
	Account string // empty: all
	Ages    AttentionAges

	// Limit bounds each list. Where a list is as long, there may be more. Default 1000.
	Limit int

	// Sources are those that should receive. Of others it is nothing to note that they do not.
	Sources []SourceKey
}

// Attention is what may need a person, as of one moment; every list begins with what stands there the longest.
type Attention struct {
	At time.Time // by the database's clock

	Unknown     []Transaction // of which it is not known what became of them, and that no call of ours will find out; or whose key was taken for another's
	Late        []Transaction // which are denied by the gateway, or not answered for long
	Dead        []Effect      // that were given up
	Owed        []Effect      // that have been open for long, and are wanted
	Flagged     []OrderNote   // one per order and flag of AttentionFlags
	Stubs       []OrderNote
	Authorized  []OrderNote
	Pending     []OrderNote
	Underpaid   []OrderNote // those flagged so: a person may have dismissed it
	Quarantined []StoredEvent
	Unplaced    []StoredEvent // with money, or of no payment, and that belong to no order
	Fetches     []Fetch       // that were given up
	Silent      []Silence

	// Partly says of which lists there was more to look through than is looked through at once, so that they may lack some: all but
	// the newest of Pending and Unplaced, and all but the oldest orders' of Owed and Flagged.
	Partly struct{ Owed, Flagged, Pending, Unplaced bool }
}

// OrderNote is an order that somebody may have to look at, without its details.
type OrderNote struct {
	Order
	Flag     string    // which of its flags this is about; empty: it is about its state
	Since    time.Time // when it came to be so
	Payments []string  // the first names of its first three payments
}

// Silence is a source that has not received for long.
type Silence struct {
	SourceKey
	At time.Time // of its last event, give or take two hours

	// Events is how many of the account's last events before were this source's, and First when the first of these was received: how
	// often it receives as a rule.
	Events int
	First  time.Time
}

// attentionRows is about how many rows of a kind are looked through at most, shared out among the accounts.
const attentionRows = 20_000

// Attention looks for what may need a person. It reads by indexes, bounded for each kind and account, writes nothing and takes no
// locks.
func (s *Store) Attention(ctx context.Context, f AttentionFilter) (Attention, error) {
	if f.Limit <= 0 {
		f.Limit = 1000
	}
	var a Attention
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, sqlSettings); err != nil {
			return err
		}
		accounts := []string{f.Account}
		if f.Account == "" {
			rows, _ := tx.Query(ctx, `SELECT id FROM accounts ORDER BY id`)
			var err error
			if accounts, err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
				return err
			}
		}
		if err := tx.QueryRow(ctx, sqlClock).Scan(&a.At); err != nil {
			return err
		}
		r := attentionReader{tx: tx, accounts: accounts, f: f, a: &a}
		r.rows = max(100, min(attentionRows/max(1, len(accounts)), attentionRows/2))
		return r.read(ctx)
	})
	if err != nil {
		return a, fmt.Errorf("look for what needs a person: %w", err)
	}
	return a, nil
}

// attentionReader is one look.
type attentionReader struct {
	tx       pgx.Tx
	accounts []string
	f        AttentionFilter
	a        *Attention
	rows     int // that are looked through, of each kind and account
	err      error
}

func (r *attentionReader) read(ctx context.Context) error {
	before := func(age time.Duration) time.Time { return r.a.At.Add(-age) }
	// Ids of orders are by age: what has stood so for long was made before that.
	made := func(age time.Duration) uuid.UUID { return firstID(before(age).Add(idSlack)) }
	a, ages := r.a, r.f.Ages
	collect(ctx, r, &a.Unknown, scanTransaction, sqlAttentionUnknown)
	collect(ctx, r, &a.Late, scanTransaction, sqlAttentionLate, r.rows, before(ages.Movement))
	collect(ctx, r, &a.Dead, scanEffect, sqlAttentionDead)
	collect(ctx, r, &a.Owed, scanEffect, sqlAttentionOwed, r.rows, before(ages.Effect))
	collect(ctx, r, &a.Flagged, scanOrderNote, sqlAttentionFlagged, r.rows)
	collect(ctx, r, &a.Stubs, scanOrderNote, sqlAttentionStubs, r.rows, before(ages.Stub))
	collect(ctx, r, &a.Authorized, scanOrderNote, sqlAttentionAuthorized, r.rows, before(ages.Authorized), made(ages.Authorized))
	collect(ctx, r, &a.Underpaid, scanOrderNote, sqlAttentionUnderpaid, r.rows, before(ages.Underpaid), made(ages.Underpaid))
	collect(ctx, r, &a.Pending, scanOrderNote, sqlAttentionPending, r.rows, before(ages.Pending), made(ages.Pending))
	collect(ctx, r, &a.Quarantined, scanStoredEvent, sqlAttentionQuarantined)
	collect(ctx, r, &a.Unplaced, scanStoredEvent, sqlAttentionUnplaced, r.rows, before(ages.Unplaced))
	collect(ctx, r, &a.Fetches, pgx.RowToStructByPos[Fetch], sqlAttentionFetches)
	accounts, ids := columns(r.f.Sources)
	collect(ctx, r, &a.Silent, scanSilence, sqlAttentionSilent, before(ages.Silent), accounts, ids)
	r.more(ctx, &a.Partly.Owed, moreEffects)
	r.more(ctx, &a.Partly.Flagged, moreFlagged)
	r.more(ctx, &a.Partly.Pending, morePending, made(ages.Pending))
	r.more(ctx, &a.Partly.Unplaced, moreUnplaced, before(ages.Unplaced))
	return r.err
}

// collect reads a list, unless an earlier one could not be read. $1 are the accounts and $2 the limit.
func collect[T any](ctx context.Context, r *attentionReader, into *[]T, scan pgx.RowToFunc[T], sql string, args ...any) {
	if r.err != nil {
		return
	}
	rows, _ := r.tx.Query(ctx, sql, append([]any{r.accounts, r.f.Limit}, args...)...)
	*into, r.err = pgx.CollectRows(rows, scan)
}

// more reports whether there are more rows of which than are looked through. $1 are the accounts and $2 how many these are.
func (r *attentionReader) more(ctx context.Context, into *bool, which string, args ...any) {
	if r.err != nil {
		return
	}
	sql := `SELECT EXISTS (SELECT FROM unnest($1::text[]) AS a(id) CROSS JOIN LATERAL (SELECT FROM ` + which + ` OFFSET $2 LIMIT 1) x)`
	r.err = r.tx.QueryRow(ctx, sql, append([]any{r.accounts, r.rows}, args...)...).Scan(into)
}

func scanOrderNote(row pgx.CollectableRow) (n OrderNote, err error) {
	o := &n.Order
	err = row.Scan(&o.Account, &o.ID, &o.Ref, &o.Registered, &o.RegisteredAt, &o.Total, &o.Currency, &o.Canceled, &o.ExpiresAt, &o.Dismissed, &o.Details,
		&o.State, &o.Flags, &o.Want, &o.Captured, &o.Refunded, &o.Lost, &o.Kept, &o.AtRisk, &o.Authorized, &o.Told, &o.WakeAt, &o.Version,
		&o.CreatedAt, &o.UpdatedAt, &n.Flag, &n.Since, &n.Payments)
	return n, err
}

func scanSilence(row pgx.CollectableRow) (q Silence, err error) {
	return q, row.Scan(&q.Account, &q.ID, &q.At, &q.Events, &q.First)
}
