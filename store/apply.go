package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/order"
)

// Apply enters events in one transaction and returns what became of each, in the order given.
//
// It takes five round trips however many events there are, two if all of them are duplicates, and one more where events
// are renewals of something that recurs. Deadlocks, serialization
// failures, lock timeouts and payments that merge meanwhile are tried again inside. On any error nothing was written; an
// [EventError] names the event that cannot be stored, other errors concern the whole batch, and the caller may split it.
func (s *Store) Apply(ctx context.Context, events []Event) ([]Result, error) {
	if len(events) == 0 {
		return nil, nil
	}
	return retry(ctx, &s.retried, func() ([]Result, error) {
		var results []Result
		err := s.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
			tx := &pipedTx{conn: c.Conn()}
			var err error
			if results, err = s.applyBatch(ctx, tx, events, true); err != nil {
				tx.abandon(ctx)
			}
			return err
		})
		return results, err
	})
}

// ApplyTx is [Store.Apply] inside the caller's transaction, for callers that must commit rows of their own with it. Its
// locks come in the order that the package comment tells: take nothing that stands later in it before the call. It
// takes a savepoint, so that a batch that has to begin again leaves the caller's rows alone.
func (s *Store) ApplyTx(ctx context.Context, tx pgx.Tx, events []Event) ([]Result, error) {
	if len(events) == 0 {
		return nil, nil
	}
	for try := 1; ; try++ {
		var results []Result
		err := pgx.BeginFunc(ctx, tx, func(sp pgx.Tx) (err error) {
			results, err = s.applyBatch(ctx, sp, events, false)
			return err
		})
		if errors.Is(err, errMoved) && try < maxTries {
			s.retried.moved.Add(1)
			continue
		}
		return results, err
	}
}

// batch is the state of one transaction of Apply.
type batch struct {
	locked map[paymentKey]*payment
	roots  map[gatewayID]uuid.UUID
	orders map[orderKey]*lockedOrder
	byRef  map[orderRef]*lockedOrder
	late   []*item // known ids with other facts: their payloads are stored once it is known that they are new
	now    time.Time
}

type orderRef struct{ account, ref string }

func newBatch() *batch {
	return &batch{
		locked: map[paymentKey]*payment{}, roots: map[gatewayID]uuid.UUID{},
		orders: map[orderKey]*lockedOrder{}, byRef: map[orderRef]*lockedOrder{},
	}
}

// The planner's choices are made for tables that have grown, not for the empty ones a connection may have met first:
// nested loops, whichever touches the fewest rows, planned once. A duplicate waits at most a second for the transaction
// that holds its id. A commit is never acknowledged before it is durable, whatever the database's default has become.
const sqlSettings = `SELECT set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
	set_config('enable_seqscan', 'off', true), set_config('cpu_tuple_cost', '10', true), set_config('cpu_index_tuple_cost', '10', true),
	set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true), set_config('lock_timeout', '1s', true),
	set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), true)`

// applyBatch is the one transaction. With own it sends BEGIN and COMMIT along with its first and last statements.
func (s *Store) applyBatch(ctx context.Context, tx pgx.Tx, events []Event, own bool) ([]Result, error) {
	return s.enterBatch(ctx, tx, newBatch(), events, own)
}

// enterBatch is applyBatch for who wants to know afterwards what the batch, which must be new, has found and moved.
func (s *Store) enterBatch(ctx context.Context, tx pgx.Tx, bt *batch, events []Event, own bool) ([]Result, error) {
	items, err := newItems(events)
	if err != nil {
		return nil, err
	}

	var b pgx.Batch
	if own {
		b.Queue("BEGIN")
	}
	b.Queue(sqlSettings)
	if renewed := queueRenewals(&b, items); renewed != nil {
		if err := send(ctx, tx, &b); err != nil {
			return nil, fmt.Errorf("find what %d events renew: %w", len(items), err)
		}
		if err := renewed.resolve(); err != nil {
			return nil, err
		}
		b = pgx.Batch{}
	}
	g := queueGate(&b, items)
	if err := send(ctx, tx, &b); err != nil {
		return nil, fmt.Errorf("enter %d events: %w", len(items), err)
	}
	fresh, reused := g.sort()
	if len(fresh)+len(reused) == 0 {
		return bt.finish(ctx, tx, items, own)
	}

	b = pgx.Batch{}
	admitted := queueReused(&b, reused)
	queuePayloads(&b, fresh)
	folding := make([]*item, 0, len(fresh)+len(reused))
	for _, it := range slices.Concat(fresh, reused) {
		if it.folds() {
			folding = append(folding, it)
		}
	}
	bt.queuePayments(&b, folding)
	if err := send(ctx, tx, &b); err != nil {
		return nil, fmt.Errorf("lock payments of %d events: %w", len(items), err)
	}
	bt.late = admitted.sort()
	fresh = append(fresh, bt.late...)
	folding = slices.DeleteFunc(folding, func(it *item) bool { return it.res.Outcome == Duplicate })

	comps, err := bt.components(folding)
	if err != nil {
		return nil, err
	}
	if err := s.lockPlaces(ctx, tx, bt, comps, folding); err != nil {
		return nil, err
	}
	sortByTime(folding)
	jobs, err := s.fold(bt, comps, folding)
	if err != nil {
		return nil, err
	}
	for _, it := range fresh {
		if !it.folds() {
			it.res.Outcome, it.res.Reason = it.parked()
		}
	}
	if err := s.enqueue(ctx, tx, jobs); err != nil {
		return nil, err
	}
	return s.write(ctx, tx, bt, items, fresh, len(jobs) > 0, own)
}

func newItems(events []Event) ([]*item, error) {
	items := make([]*item, len(events))
	for i := range events {
		it, err := newItem(i, &events[i])
		if err != nil {
			return nil, err
		}
		items[i] = it
	}
	return items, nil
}

// lockPlaces makes the orders that are named for the first time, and locks these and the ones that payments stand on.
func (s *Store) lockPlaces(ctx context.Context, tx pgx.Tx, bt *batch, comps map[int]*component, items []*item) error {
	var set orderSet
	named := map[orderRef]bool{} // true: may be made
	name := func(account, ref string, makes bool) {
		if ref != "" {
			k := orderRef{account, ref}
			named[k] = named[k] || makes
		}
	}
	known := map[orderKey]bool{}
	for _, c := range comps {
		for _, p := range c.found {
			if k := (orderKey{p.account, p.order}); p.order != uuid.Nil && !known[k] {
				known[k] = true
				set.add(k)
			}
		}
		link := c.links.Best()
		// A person who takes a link back leaves the payment where its own event says, as if nobody had linked it.
		makes := c.makes || c.person && c.links.Person.Ref == ""
		name(c.keep.account, link.Ref, makes && link.Strength > order.StrengthModification)
		for ref := range c.refs {
			name(c.keep.account, ref, false)
		}
	}
	for _, it := range items {
		if it.Command != nil {
			name(it.Account, it.Reference, it.createsOrder())
		}
	}
	refs := make([]orderRef, 0, len(named))
	for k := range named {
		refs = append(refs, k)
	}
	slices.SortFunc(refs, func(a, b orderRef) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.ref, b.ref))
	})
	var b pgx.Batch
	made := queueNewOrders(&b, refs, named)
	for _, k := range refs {
		set.refAccounts, set.refs = append(set.refAccounts, k.account), append(set.refs, k.ref)
	}
	if set.empty() {
		b.Queue(sqlClock).QueryRow(func(row pgx.Row) error { return row.Scan(&bt.now) })
		return send(ctx, tx, &b)
	}
	l := s.queueLock(&b, &set, func(l *lockedSet) {
		queueDetails(&b, &set, items, l)
		b.Queue(sqlOrderPayments, set.args()...).Query(func(rows pgx.Rows) error {
			return scanPayments(rows, func(p *payment) {
				if mine := bt.locked[paymentKey{p.account, p.id}]; mine != nil {
					p = mine // read under its own lock
				}
				if o := l.orders[orderKey{p.account, p.order}]; o != nil {
					o.payments[p.id] = p
				}
			})
		})
	})
	if err := send(ctx, tx, &b); err != nil {
		return fmt.Errorf("lock orders of %d events: %w", len(items), err)
	}
	bt.orders, bt.now = l.orders, l.now
	for k, o := range bt.orders {
		o.isNew = made[k]
		bt.byRef[orderRef{o.account, o.ref}] = o
	}
	return nil
}

func queueNewOrders(b *pgx.Batch, refs []orderRef, makes map[orderRef]bool) map[orderKey]bool {
	var accounts, names []string
	var ids []pgtype.UUID
	for _, k := range refs {
		if makes[k] {
			accounts, names, ids = append(accounts, k.account), append(names, k.ref), append(ids, pgUUID(newID()))
		}
	}
	made := map[orderKey]bool{}
	if len(names) == 0 {
		return made
	}
	b.Queue(`
		INSERT INTO orders (account_id, id, external_ref)
		SELECT a, i, r FROM unnest($1::text[], $2::uuid[], $3::text[]) AS x(a, i, r) ORDER BY a, r
		ON CONFLICT ON CONSTRAINT orders_external_ref DO NOTHING
		RETURNING account_id, id`, accounts, ids, names).Query(func(rows pgx.Rows) error {
		var k orderKey
		_, err := pgx.ForEachRow(rows, []any{&k.account, &k.id}, func() error {
			made[k] = true
			return nil
		})
		return err
	})
	return made
}

// sortByTime puts events in the order in which they fold: the sender's time, then the id.
func sortByTime(items []*item) {
	slices.SortStableFunc(items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(micros(a.At), micros(b.At)), cmp.Compare(a.id, b.id))
	})
}

// write is the last round trip: payments, orders, their rows, the outcomes, and the commit.
func (s *Store) write(ctx context.Context, tx pgx.Tx, bt *batch, items, fresh []*item, jobs, own bool) ([]Result, error) {
	var b pgx.Batch
	if err := bt.queueUpdatePayments(&b); err != nil {
		return nil, err
	}
	kept := make([]*lockedOrder, 0, len(bt.orders))
	var void orderSet
	for _, o := range bt.orders {
		if o.isNew && !o.used {
			void.add(o.orderKey) // a stub that turned out to be for nothing; waiters insert theirs
		} else {
			kept = append(kept, o)
		}
	}
	if !void.empty() {
		b.Queue(`DELETE FROM orders o USING unnest($1::text[], $2::uuid[]) AS x(a, i) WHERE o.account_id = x.a AND o.id = x.i`,
			void.accounts, void.ids)
	}
	queueOrders(&b, kept)
	queuePayloads(&b, bt.late)
	queueOutcomes(&b, fresh)
	if jobs && s.bell.rings(bt.now) {
		queueBell(&b)
	}
	if s.opts.InTx == nil {
		if own {
			b.Queue("COMMIT")
		}
		if err := send(ctx, tx, &b); err != nil {
			return nil, fmt.Errorf("write %d events: %w", len(items), err)
		}
		return results(items), nil
	}
	if err := send(ctx, tx, &b); err != nil {
		return nil, fmt.Errorf("write %d events: %w", len(items), err)
	}
	for _, o := range kept {
		for _, t := range o.transitions() {
			if err := s.opts.InTx(ctx, tx, t); err != nil {
				return nil, fmt.Errorf("rows of the caller for order %s version %d: %w", o.ref, t.Version, err)
			}
		}
	}
	return bt.finish(ctx, tx, items, own)
}

// finish commits, where the transaction is ours, and hands out the results.
func (bt *batch) finish(ctx context.Context, tx pgx.Tx, items []*item, own bool) ([]Result, error) {
	if own {
		var b pgx.Batch
		b.Queue("COMMIT")
		if err := send(ctx, tx, &b); err != nil {
			return nil, fmt.Errorf("commit %d events: %w", len(items), err)
		}
	}
	return results(items), nil
}

func results(items []*item) []Result {
	out := make([]Result, len(items))
	for i, it := range items {
		if it.same != nil {
			out[i] = it.same.res
			out[i].Outcome, out[i].Reason, out[i].NewOrder = Duplicate, "", false
			continue
		}
		out[i] = it.res
	}
	return out
}
