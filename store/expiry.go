package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// CauseExpired is the cause of the version in which an order got the flag expired_unpaid.
const CauseExpired = "order_expired"

// expiryPage bounds how many orders one transaction looks at.
const expiryPage = 100

// ExpireOrders notices the orders whose time has run out: those that are not paid by then are flagged expired_unpaid,
// which is for people to see and moves nothing. It returns how many were flagged. Each is looked at once, unless its
// expiry is changed; any number of processes may call it at once.
func (s *Store) ExpireOrders(ctx context.Context) (flagged int, err error) {
	for {
		page, err := retry(ctx, &s.retried, func() (p expiredPage, err error) {
			err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) (err error) {
				p, err = s.expirePage(ctx, tx)
				return err
			})
			return p, err
		})
		if err != nil {
			return flagged, fmt.Errorf("expire orders: %w", err)
		}
		flagged += page.flagged
		if page.seen < expiryPage {
			return flagged, nil
		}
	}
}

type expiredPage struct{ seen, flagged int }

func (s *Store) expirePage(ctx context.Context, tx pgx.Tx) (p expiredPage, err error) {
	// Whoever holds one of these rows now changes it, and the next run sees what it has become.
	rows, _ := tx.Query(ctx, `
		SELECT o.account_id, o.id FROM orders o
		WHERE o.expires_at <= now() AND o.expired_at IS NULL
		ORDER BY o.expires_at, o.account_id, o.id LIMIT $1
		FOR NO KEY UPDATE SKIP LOCKED`, expiryPage)
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k orderKey, err error) {
		return k, row.Scan(&k.account, &k.id)
	})
	if err != nil || len(due) == 0 {
		return p, err
	}
	var (
		b   pgx.Batch
		set orderSet
	)
	b.Queue(sqlSettings)
	for _, k := range due {
		set.add(k)
	}
	l := s.queueLock(&b, &set, nil)
	if err := send(ctx, tx, &b); err != nil {
		return p, err
	}
	p.seen = len(due)
	b = pgx.Batch{}
	var changed []*lockedOrder
	for _, k := range due {
		if o := l.orders[k]; o.expire(l.now) {
			changed = append(changed, o)
			p.flagged++
		}
	}
	queueOrders(&b, changed)
	b.Queue(`
		UPDATE orders o SET expired_at = clock_timestamp()
		FROM unnest($1::text[], $2::uuid[]) AS x(a, i) WHERE o.account_id = x.a AND o.id = x.i`, set.accounts, set.ids)
	return p, send(ctx, tx, &b)
}

// expire flags the order, unless it is paid for or nobody expects money any more, and reports whether it did.
func (o *lockedOrder) expire(now time.Time) bool {
	v := o.book.View
	if !o.in.Registered || o.in.Canceled || v.Captured > 0 && v.Captured >= v.Total || v.State == order.StatePaid {
		return false
	}
	o.in.Marks |= order.FlagExpiredUnpaid
	o.in.Dismissed &^= order.FlagExpiredUnpaid
	v.Flags |= order.FlagExpiredUnpaid
	o.rows = map[int]rowCause{}
	before := o.book.Version
	o.book.Step(CauseExpired, v, now)
	return o.book.Version > before
}
