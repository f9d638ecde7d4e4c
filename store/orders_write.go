package store

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// Under the lock WHERE version = the one read is an invariant: the division by zero makes a miss abort the
// transaction before a commit that is already on its way.
const sqlUpdateOrders = `
	WITH u AS (
		UPDATE orders o
		SET registered = x.registered, registered_at = CASE WHEN x.registered THEN coalesce(o.registered_at, now()) END,
			total = x.total, currency = x.currency, canceled = x.canceled, create_from_payment = x.creates,
			marks = string_to_array(x.marks, ','), dismissed = string_to_array(x.dismissed, ','), details = coalesce(x.details::jsonb, o.details),
			state = x.state, flags = string_to_array(x.flags, ','), want = x.want,
			captured = x.captured, refunded = x.refunded, lost = x.lost, kept = x.kept, at_risk = x.at_risk, authorized = x.authorized,
			told = x.told, fence = x.fence, wake_at = x.wake, version = x.version, updated_at = now()
		FROM unnest($1::text[], $2::uuid[], $3::int[], $4::int[], $5::bool[], $6::bigint[], $7::text[], $8::bool[], $9::bool[], $10::text[],
			$11::text[], $12::text[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bigint[], $19::bigint[],
			$20::bigint[], $21::text[], $22::bigint[], $23::timestamptz[],
			$24::text[])
			AS x(account, id, read, version, registered, total, currency, canceled, creates, marks, details, state, flags, want,
				captured, refunded, lost, kept, at_risk, authorized, told, fence, wake, dismissed)
		WHERE o.account_id = x.account AND o.id = x.id AND o.version = x.read
		RETURNING 1)
	SELECT 1 / (CASE WHEN count(*) = cardinality($1::text[]) THEN 1 ELSE 0 END) FROM u`

const sqlUpdateRows = `
	UPDATE order_transitions t
	SET effect_state = x.state, attempts = x.attempts, tried = x.tried, fence = x.fence, claimed_until = x.until, next_at = x.next,
		undoes = x.undoes, last_error = x.err, why = x.why,
		settled_at = CASE WHEN x.state IN ('done', 'canceled', 'assumed') THEN clock_timestamp() END
	FROM unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::int[], $6::bool[], $7::bigint[], $8::timestamptz[], $9::timestamptz[],
		$10::int[], $11::text[], $12::text[]) AS x(account, id, version, state, attempts, tried, fence, until, next, undoes, err, why)
	WHERE t.account_id = x.account AND t.order_id = x.id AND t.version = x.version`

const sqlInsertRows = `
	INSERT INTO order_transitions (account_id, order_id, version, from_state, to_state, cause, source_id, event_id, kept, flags,
		effect, effect_state, after, attempts, tried, fence, claimed_until, next_at, undoes, last_error, why, settled_at)
	SELECT account, id, version, from_state, to_state, cause, source, event, kept, string_to_array(flags, ','),
		effect, state, after, attempts, tried, fence, until, next, undoes, err, why,
		CASE WHEN state IN ('done', 'canceled', 'assumed') THEN clock_timestamp() END
	FROM unnest($1::text[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bigint[], $10::text[],
		$11::text[], $12::text[], $13::text[], $14::int[], $15::bool[], $16::bigint[], $17::timestamptz[], $18::timestamptz[], $19::int[],
		$20::text[], $21::text[])
		AS x(account, id, version, from_state, to_state, cause, source, event, kept, flags, effect, state, after, attempts, tried, fence,
			until, next, undoes, err, why)`

// What is new is looked at again when it runs out.
const sqlUpdateExpiry = `UPDATE orders SET expires_at = $3, expired_at = NULL WHERE account_id = $1 AND id = $2`

// queueOrders writes orders that changed and the rows of their books: rows that close, then rows that live, then new
// ones, as statements of their own, since the index that allows one open effect is checked row by row.
func queueOrders(b *pgx.Batch, orders []*lockedOrder) {
	sortOrders(orders)
	var (
		head           orderWrite
		closed, reopen rowUpdate
		fresh          rowInsert
	)
	for _, o := range orders {
		if !o.changed() {
			continue
		}
		head.add(o)
		if o.expiry != nil {
			b.Queue(sqlUpdateExpiry, o.account, pgUUID(o.id), o.expiry.At)
		}
		c, r := o.book.Changed()
		for _, row := range c {
			closed.add(o, row)
		}
		for _, row := range r {
			reopen.add(o, row)
		}
		if o.isNew {
			fresh.add(o, &order.Row{Version: 1, To: order.StatePending, Cause: "created"}, o.rows[1])
		}
		for _, row := range o.book.New() {
			fresh.add(o, row, o.rows[row.Version])
		}
	}
	if len(head.account) > 0 {
		b.Queue(sqlUpdateOrders, head.args()...)
	}
	for _, u := range []*rowUpdate{&closed, &reopen} {
		if len(u.account) > 0 {
			b.Queue(sqlUpdateRows, u.args()...)
		}
	}
	if len(fresh.account) > 0 {
		b.Queue(sqlInsertRows, fresh.args()...)
	}
}

// orderWrite collects the columns of sqlUpdateOrders, an array each.
type orderWrite struct {
	account                                                 []string
	id                                                      []pgtype.UUID
	read, version                                           []int32
	registered, canceled, creates                           []bool
	total                                                   []*int64
	currency, details                                       []*string
	marks, dismissed, state, flags, want, told              []string
	captured, refunded, lost, kept, risk, authorized, fence []int64
	wake                                                    []*time.Time
}

func (w *orderWrite) add(o *lockedOrder) {
	v := o.book.View
	w.account, w.id = append(w.account, o.account), append(w.id, pgUUID(o.id))
	w.read, w.version = append(w.read, int32(o.read)), append(w.version, int32(o.book.Version))
	w.registered, w.canceled = append(w.registered, o.in.Registered), append(w.canceled, o.in.Canceled)
	w.creates = append(w.creates, o.in.Create)
	var total *int64
	if v.Registered {
		total = &v.Total
	}
	w.total, w.currency = append(w.total, total), append(w.currency, nullText(v.Currency))
	if total == nil {
		w.currency[len(w.currency)-1] = nil // a stub may show a currency that is not yet its own
	}
	w.marks, w.details = append(w.marks, o.in.Marks.String()), append(w.details, nullJSON(o.details))
	w.dismissed = append(w.dismissed, o.in.Dismissed.String())
	w.state, w.flags = append(w.state, string(v.State)), append(w.flags, v.Flags.String())
	w.want, w.told = append(w.want, string(v.Want)), append(w.told, string(o.book.Told))
	w.captured, w.refunded = append(w.captured, v.Captured), append(w.refunded, v.Refunded)
	w.lost, w.kept = append(w.lost, v.Lost), append(w.kept, v.Kept)
	w.risk, w.authorized = append(w.risk, v.AtRisk), append(w.authorized, v.Authorized)
	w.fence, w.wake = append(w.fence, o.book.Fence), append(w.wake, nullTime(o.wake))
}

func (w *orderWrite) args() []any {
	return []any{
		w.account, w.id, w.read, w.version, w.registered, w.total, w.currency, w.canceled, w.creates, w.marks,
		w.details, w.state, w.flags, w.want, w.captured, w.refunded, w.lost, w.kept, w.risk,
		w.authorized, w.told, w.fence, w.wake, w.dismissed,
	}
}

// rowUpdate collects the columns of sqlUpdateRows.
type rowUpdate struct {
	account     []string
	id          []pgtype.UUID
	version     []int32
	state       []string
	attempts    []int32
	tried       []bool
	fence       []int64
	until, next []*time.Time
	undoes      []*int32
	err, why    []*string
}

func (u *rowUpdate) add(o *lockedOrder, r *order.Row) {
	u.account, u.id = append(u.account, o.account), append(u.id, pgUUID(o.id))
	u.version, u.state = append(u.version, int32(r.Version)), append(u.state, string(r.EffectState))
	u.attempts, u.tried, u.fence = append(u.attempts, int32(r.Attempts)), append(u.tried, r.Tried), append(u.fence, r.Fence)
	u.until, u.next = append(u.until, nullTime(r.ClaimedUntil)), append(u.next, nullTime(r.NextAt))
	u.undoes = append(u.undoes, undoes(r))
	u.err, u.why = append(u.err, nullText(r.LastError)), append(u.why, nullText(r.Why))
}

func (u *rowUpdate) args() []any {
	return []any{u.account, u.id, u.version, u.state, u.attempts, u.tried, u.fence, u.until, u.next, u.undoes, u.err, u.why}
}

// rowInsert collects the columns of sqlInsertRows.
type rowInsert struct {
	rowUpdate
	from, source, event  []*string
	to, cause, flags     []string
	kept                 []int64
	effect, after, state []*string
}

func (n *rowInsert) add(o *lockedOrder, r *order.Row, c rowCause) {
	n.rowUpdate.add(o, r)
	n.from, n.to, n.cause = append(n.from, nullText(string(r.From))), append(n.to, string(r.To)), append(n.cause, r.Cause)
	var source, event *string
	view := o.book.View
	if c.item != nil {
		source, event, view = &c.item.Source, &c.item.id, c.view
	}
	n.source, n.event = append(n.source, source), append(n.event, event)
	n.kept, n.flags = append(n.kept, view.Kept), append(n.flags, view.Flags.String())
	n.effect, n.state = append(n.effect, nullText(string(r.Effect))), append(n.state, nullText(string(r.EffectState)))
	var after *string
	if r.Effect != order.EffectNone {
		after = nullText(string(r.After))
	}
	n.after = append(n.after, after)
}

func (n *rowInsert) args() []any {
	return []any{
		n.account, n.id, n.version, n.from, n.to, n.cause, n.source, n.event, n.kept, n.flags,
		n.effect, n.state, n.after, n.attempts, n.tried, n.fence, n.until, n.next, n.undoes, n.err, n.why,
	}
}

func undoes(r *order.Row) *int32 {
	if r.Undoes == nil {
		return nil
	}
	v := int32(r.Undoes.Version)
	return &v
}

func nullJSON(j json.RawMessage) *string {
	if len(j) == 0 {
		return nil
	}
	s := string(slices.Clone(j))
	return &s
}
