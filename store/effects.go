package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/order"
)

// How an effect reaches the merchant. orders.wake_at is a promise: a job or the ticker looks at the order at or soon
// after it. Whoever changes what an order owes does so under its row lock and may only make the promise earlier; a
// drain, which looks, may clear it or move it later, because it looked under the same lock. So no wake-up is lost, and
// jobs may be deleted, doubled or late without harm.
//
//	look    claim the effect that is due, for the time of a lease, and commit
//	call    no transaction, no lock
//	settle  what came of it, if the claim still stands; plan; perhaps claim the next one
//
// A claim is fenced by a number that only grows: the result of a call whose claim lapsed and was given to another
// writes nothing.

// Claim is an effect that is to be called out now, and the right to say what came of it until the lease ends.
type Claim struct {
	Account string
	Order   uuid.UUID
	Ref     string // the merchant's external_ref
	Version int    // of the row that owes the effect
	Effect  order.Effect
	After   order.Told // what the merchant had been told before it
	Attempt int        // from 1
	Fence   int64
	View    order.View // of the order, at the claim

	AskedAt time.Time     // when the row was written
	Lag     time.Duration // how long after it was due the effect was claimed
}

// Looked is what a look found.
type Looked struct {
	Account string
	Order   uuid.UUID
	Claim   *Claim // nil: nothing can be called now
	Expired bool   // an earlier claim had lapsed: whoever held it is taken for dead
	Dead    bool   // and that was the last attempt
}

// Look claims what the order owes, if it is due: the attempt is counted and the claim commits before Look returns. It
// leaves a live claim of another alone. With nothing to claim it renews the order's promise, if that had run out.
func (s *Store) Look(ctx context.Context, account string, id uuid.UUID, lease time.Duration) (Looked, error) {
	l, err := retry(ctx, &s.retried, func() (l Looked, err error) {
		err = s.inPipe(ctx, func(tx *pipedTx) error {
			o, now, err := s.lockOne(ctx, tx, orderKey{account, id}, "BEGIN")
			if err != nil || o == nil {
				return err
			}
			l, err = s.look(ctx, tx, o, now, lease)
			return err
		})
		return l, err
	})
	if err != nil {
		return Looked{}, fmt.Errorf("look at order %s: %w", id, err)
	}
	return l, nil
}

// Pull looks at the account's order that has been due the longest and that nobody else is looking at, as [Store.Look]
// does; found is false if there is none.
func (s *Store) Pull(ctx context.Context, account string, lease time.Duration) (l Looked, found bool, err error) {
	l, err = retry(ctx, &s.retried, func() (l Looked, err error) {
		err = s.inPipe(ctx, func(tx *pipedTx) error {
			var id uuid.UUID
			found = false
			if id, err = nextDue(ctx, tx, account); errors.Is(err, pgx.ErrNoRows) {
				return nil
			} else if err != nil {
				return err
			}
			o, now, err := s.lockOne(ctx, tx, orderKey{account, id})
			if err != nil || o == nil {
				return err
			}
			found = true
			l, err = s.look(ctx, tx, o, now, lease)
			return err
		})
		return l, err
	})
	if err != nil {
		return Looked{}, false, fmt.Errorf("pull a due order of %s: %w", account, err)
	}
	return l, found, nil
}

// nextDue begins the transaction and locks the order. The clock stands in a subquery so that it bounds the index scan:
// compared with directly, it would be asked again for every order that is due later.
func nextDue(ctx context.Context, tx *pipedTx, account string) (id uuid.UUID, err error) {
	var b pgx.Batch
	b.Queue("BEGIN")
	b.Queue(sqlSettings)
	b.Queue(`
		SELECT id FROM orders
		WHERE account_id = $1 AND wake_at <= (SELECT clock_timestamp())
		ORDER BY wake_at LIMIT 1
		FOR NO KEY UPDATE SKIP LOCKED`, account).QueryRow(func(row pgx.Row) error { return row.Scan(&id) })
	err = send(ctx, tx, &b)
	return id, err
}

// Answer is what came of a call.
type Answer struct {
	Done bool          // the merchant has done it
	Dead bool          // otherwise: it is given up
	Wait time.Duration // otherwise: try again after this
	Err  string        // why not, for people; cut to 500 bytes
}

// Settled says what an [Answer] did.
type Settled struct {
	// Stale: the claim had lapsed and been taken by another. Nothing was written.
	Stale bool
	// Dead: the effect was given up, by the answer or because it was the last attempt.
	Dead bool
	// Next is another effect of the order that was due at once and was claimed in the same transaction.
	Next *Claim
}

// Settle records what came of the call of c and plans what the order owes now, in one transaction. A lease above 0 asks
// to claim the next effect in it too, if one is due. What has happened is always recorded, whatever the order's version
// is by now: only the claim's fence decides. Settling twice is harmless.
func (s *Store) Settle(ctx context.Context, c Claim, a Answer, lease time.Duration) (Settled, error) {
	out, err := retry(ctx, &s.retried, func() (out Settled, err error) {
		err = s.inPipe(ctx, func(tx *pipedTx) error {
			o, now, err := s.lockOne(ctx, tx, orderKey{c.Account, c.Order}, "BEGIN")
			if err != nil {
				return err
			}
			out, err = s.settle(ctx, tx, o, now, c, a, lease)
			return err
		})
		return out, err
	})
	if err != nil {
		return Settled{}, fmt.Errorf("settle %s of order %s: %w", c.Effect, c.Order, err)
	}
	return out, nil
}

func (s *Store) settle(ctx context.Context, tx *pipedTx, o *lockedOrder, now time.Time, c Claim, a Answer, lease time.Duration) (Settled, error) {
	if o == nil {
		return Settled{Stale: true}, nil
	}
	row := o.book.Open
	r := order.Result{Done: a.Done, Dead: a.Dead, Next: now.Add(a.Wait), Err: storable(a.Err)}
	if !o.book.Settle(c.Version, c.Fence, r, now) {
		return Settled{Stale: true}, nil
	}
	out := Settled{Dead: row.EffectState == order.EffectDead}
	if lease > 0 {
		var err error
		if out.Next, err = s.claim(ctx, tx, o, now, lease); err != nil || out.Next != nil {
			return out, err
		}
	}
	return out, s.rest(ctx, tx, o, now)
}

// look decides, under the lock, what a drain does with an order.
func (s *Store) look(ctx context.Context, tx *pipedTx, o *lockedOrder, now time.Time, lease time.Duration) (Looked, error) {
	l := Looked{Account: o.account, Order: o.id}
	lapsed := o.book.Open
	if l.Expired = o.book.Expire(now); l.Expired {
		l.Dead = lapsed.EffectState == order.EffectDead
	}
	c, err := s.claim(ctx, tx, o, now, lease)
	if err != nil || c != nil {
		l.Claim = c
		return l, err
	}
	if !l.Expired && (o.wake.IsZero() || o.wake.After(now)) {
		return l, nil // one job too many: the promise that stands is another's, or the end of a live claim
	}
	return l, s.rest(ctx, tx, o, now)
}

// claim takes the effect that is due, if there is one, and commits.
func (s *Store) claim(ctx context.Context, tx *pipedTx, o *lockedOrder, now time.Time, lease time.Duration) (*Claim, error) {
	due := o.book.Due()
	row := o.book.Claim(now, lease)
	if row == nil {
		return nil, nil
	}
	o.wake = row.ClaimedUntil // the ticker sees to it, should this process die
	c := &Claim{
		Account: o.account, Order: o.id, Ref: o.ref, Version: row.Version, Effect: row.Effect, After: row.After,
		Attempt: row.Attempts, Fence: row.Fence, View: o.book.View, Lag: now.Sub(due),
	}
	var b pgx.Batch
	queueOrders(&b, []*lockedOrder{o})
	b.Queue(`SELECT at FROM order_transitions WHERE account_id = $1 AND order_id = $2 AND version = $3`,
		c.Account, pgUUID(c.Order), c.Version).QueryRow(func(row pgx.Row) error { return row.Scan(&c.AskedAt) })
	b.Queue("COMMIT")
	if err := send(ctx, tx, &b); err != nil {
		return nil, err
	}
	return c, nil
}

// rest leaves the order unclaimed: the promise becomes the time at which something is due, with a job at that time, or
// is cleared; and commits.
func (s *Store) rest(ctx context.Context, tx *pipedTx, o *lockedOrder, now time.Time) error {
	due := o.book.Due()
	if !due.IsZero() && due.Before(now) {
		due = now
	}
	o.wake = due
	var b pgx.Batch
	if !due.IsZero() {
		if err := s.enqueue(ctx, tx, []job{o.drainAt(due, now)}); err != nil {
			return err
		}
		if !due.After(now) && s.bell.rings(now) {
			queueBell(&b)
		}
	}
	queueOrders(&b, []*lockedOrder{o})
	b.Queue("COMMIT")
	return send(ctx, tx, &b)
}

// inPipe runs f on a connection. f begins and commits within its pipelines; what it left open is rolled back.
func (s *Store) inPipe(ctx context.Context, f func(*pipedTx) error) error {
	return s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		tx := &pipedTx{conn: c.Conn()}
		defer tx.abandon(ctx)
		return f(tx)
	})
}

// lockOne locks one order in one round trip, after the statements in first; nil if there is none. With "BEGIN" it sets
// up the transaction as well.
func (s *Store) lockOne(ctx context.Context, tx *pipedTx, k orderKey, first ...string) (*lockedOrder, time.Time, error) {
	var (
		b   pgx.Batch
		set orderSet
	)
	for _, sql := range first {
		b.Queue(sql)
		b.Queue(sqlSettings)
	}
	set.add(k)
	l := s.queueLock(&b, &set, nil)
	if err := send(ctx, tx, &b); err != nil {
		return nil, time.Time{}, err
	}
	return l.orders[k], l.now, nil
}

// maxErr is how much of an error is kept with an effect, in bytes.
const maxErr = 500

// storable makes text of others fit for a text column.
func storable(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
	if len(s) > maxErr {
		s = strings.ToValidUTF8(s[:maxErr], "")
	}
	return s
}
