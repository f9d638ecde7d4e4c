package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// run does all of it in tx.
func (g *rebuild) run(ctx context.Context, tx pgx.Tx, s *Store) error {
	if _, err := tx.Exec(ctx, sqlSettings); err != nil {
		return err
	}
	if err := g.lockEvents(ctx, tx); err != nil {
		return err
	}
	if len(g.changed) == 0 {
		return nil
	}
	if err := g.lockPayments(ctx, tx); err != nil {
		return err
	}
	g.divide()
	if err := g.lockOrders(ctx, tx, s); err != nil {
		return err
	}
	touched := g.place()
	if err := g.remark(ctx, tx, touched); err != nil {
		return err
	}
	items := g.written()
	jobs := g.step(touched, items)
	g.report(touched)
	if err := g.queueIDs(ctx, tx); err != nil {
		return err
	}
	if err := g.replace(ctx, tx); err != nil {
		return err
	}
	if err := s.enqueue(ctx, tx, jobs); err != nil {
		return err
	}
	_, err := s.write(ctx, tx, g.bt, items, items, len(jobs) > 0, false)
	return err
}

// written are the events whose rows are written, in the order in which events fold.
func (g *rebuild) written() []*item {
	items := slices.Collect(maps.Values(g.changed))
	for k := range g.twins {
		items = append(items, g.all[k].item)
	}
	slices.SortFunc(items, func(a, b *item) int {
		return cmp.Or(cmp.Compare(micros(a.At), micros(b.At)), a.key().compare(b.key()))
	})
	return items
}

// step moves every order that is concerned at most once, and says what became of the events.
func (g *rebuild) step(touched map[*lockedOrder]bool, items []*item) []job {
	home := map[*item]*lockedOrder{}
	cause := map[*lockedOrder]*item{}
	name := func(o *lockedOrder, it *item) {
		if o != nil && cause[o] == nil {
			cause[o] = it
		}
	}
	for _, it := range items {
		if it.folds() {
			home[it] = g.homeOf(it)
		}
		name(home[it], it)
	}
	for _, it := range items { // the orders that only lost something
		name(g.bt.orders[orderKey{it.Account, g.old[it.key()].order}], it)
	}
	var jobs []job
	for o := range touched {
		o.rows = map[int]rowCause{}
		o.in.Payments = map[string]*order.Ledger{}
		for _, p := range o.payments {
			o.in.Payments[p.id.String()] = p.ledger
		}
		by := cause[o]
		if by == nil {
			by = items[0]
		}
		o.in.Recall(o.book.View, 0)
		before, view := o.book.Version, o.in.View()
		if o.isNew {
			o.rows[1] = rowCause{by, o.book.View}
		}
		o.book.Step(CauseReevaluated, view, g.bt.now)
		for v := before + 1; v <= o.book.Version; v++ {
			o.rows[v] = rowCause{by, view}
		}
		if at, ok := o.wakeAfterIngest(g.bt.now); ok {
			jobs = append(jobs, o.drainAt(at, g.bt.now))
		}
	}
	made := map[*lockedOrder]bool{}
	for _, it := range items {
		if !it.folds() {
			it.res.Outcome, it.res.Reason = it.parked()
			continue
		}
		o := home[it]
		if o != nil {
			it.res.Order, it.res.Before, it.res.After = o.id, o.read, o.book.Version
			it.res.NewOrder, made[o] = o.isNew && !made[o], true
		}
		if !g.reused(it, g.hashOf(it)) {
			once := *it // an id that is not used twice after all
			once.id = once.ID
			it.res.Outcome, it.res.Reason = once.outcome(o)
			continue
		}
		it.res.Outcome, it.res.Reason = it.outcome(o)
	}
	return jobs
}

// refOf is what the merchant calls an order that is concerned; empty for another one.
func (g *rebuild) refOf(account string, id uuid.UUID) string {
	if o := g.bt.orders[orderKey{account, id}]; o != nil {
		return o.ref
	}
	return ""
}

// report notes what changes.
func (g *rebuild) report(touched map[*lockedOrder]bool) {
	keys := slices.SortedFunc(maps.Keys(g.changed), eventKey.compare)
	for _, k := range keys {
		it, h := g.changed[k], g.old[k]
		g.events = append(g.events, EventChange{
			Account: k.account, Source: k.source, ID: k.id,
			Before: meaningAt(h.item, g.refOf(k.account, h.order), h.outcome, h.reason, h.mapping),
			After:  meaningAt(it, g.refOf(k.account, it.res.Order), it.res.Outcome, it.res.Reason, max(it.MappingVersion, 1)),
		})
	}
	moved := slices.DeleteFunc(slices.Collect(maps.Keys(touched)), func(o *lockedOrder) bool {
		return !o.isNew && o.book.Version == o.read
	})
	sortOrders(moved)
	for _, o := range moved {
		g.changes = append(g.changes, o.change())
	}
}

// change is how an order stood when it was locked, and how it stands now.
func (o *lockedOrder) change() OrderChange {
	c := OrderChange{
		Account: o.account, ID: o.id, Ref: o.ref, New: o.isNew,
		After: OrderStanding{o.book.View, o.book.Version, o.book.Told, order.Next(o.book.Told, o.book.View.Want)},
	}
	if !o.isNew {
		c.Before = OrderStanding{o.readView, o.read, o.readTo, order.Next(o.readTo, o.readView.Want)}
	}
	return c
}

// queueIDs makes the payments that are new and points ids to the payment that they belong to today. Nothing else ever
// points an id elsewhere, and who has read the old way finds, once it has that payment's lock, that it has moved.
func (g *rebuild) queueIDs(ctx context.Context, tx pgx.Tx) error {
	var (
		b                       pgx.Batch
		freshAt                 []string
		fresh, targets          []pgtype.UUID
		accounts, realms, names []string
	)
	for _, c := range g.inOrder() {
		if c.fresh {
			freshAt, fresh = append(freshAt, c.keep.account), append(fresh, pgUUID(c.keep.id))
		}
		for _, id := range c.ids {
			if c.found[g.bt.roots[id]] == nil {
				accounts, realms, names = append(accounts, id.account), append(realms, id.realm), append(names, id.id)
				targets = append(targets, pgUUID(c.keep.id))
			}
		}
	}
	if len(fresh) > 0 {
		b.Queue(`INSERT INTO payments (account_id, id) SELECT a, i FROM unnest($1::text[], $2::uuid[]) AS x(a, i) ORDER BY a, i`, freshAt, fresh)
	}
	if len(names) > 0 {
		b.Queue(`
			UPDATE payment_ids p SET payment_id = x.to_id
			FROM unnest($1::text[], $2::text[], $3::text[], $4::uuid[]) AS x(a, r, i, to_id)
			WHERE p.account_id = x.a AND p.realm = x.r AND p.id = x.i`, accounts, realms, names, targets)
	}
	if err := send(ctx, tx, &b); err != nil {
		return fmt.Errorf("part %d payment ids: %w", len(names), err)
	}
	return nil
}

// replace writes what the changed events say today, and keeps what they said before.
func (g *rebuild) replace(ctx context.Context, tx pgx.Tx) error {
	var (
		types, realms, facts []string
		payments             []*string
		at                   []*time.Time
		hashes               [][]byte
		mappings             []int16
	)
	keys := slices.SortedFunc(maps.Keys(g.changed), eventKey.compare)
	accounts, sources, ids := keyColumns(keys)
	for _, k := range keys {
		it := g.changed[k]
		types, realms, facts = append(types, it.Type), append(realms, it.Realm), append(facts, string(it.facts))
		var main *string
		if len(it.Payment) > 0 {
			main = &it.Payment[0]
		}
		payments, at, hashes = append(payments, main), append(at, nullTime(it.At)), append(hashes, it.hash)
		mappings = append(mappings, max(it.MappingVersion, 1))
	}
	var b pgx.Batch
	b.Queue(`
		INSERT INTO event_meanings (account_id, source_id, event_id, type, realm, occurred_at, outcome, reason, order_id,
			order_version_before, order_version_after, facts, facts_hash, mapping_version)
		SELECT e.account_id, e.source_id, e.event_id, e.type, e.realm, e.occurred_at, e.outcome, e.reason, e.order_id,
			e.order_version_before, e.order_version_after, e.facts, e.facts_hash, e.mapping_version
		FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, s, i)
		JOIN processed_events e ON e.account_id = x.a AND e.source_id = x.s AND e.event_id = x.i`, accounts, sources, ids)
	b.Queue(`
		UPDATE processed_events e
		SET type = x.type, realm = x.realm, payment = x.payment, occurred_at = x.at, facts = x.facts::jsonb, facts_hash = x.hash,
			mapping_version = x.mapping
		FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::timestamptz[], $8::text[], $9::bytea[],
			$10::smallint[]) AS x(a, s, i, type, realm, payment, at, facts, hash, mapping)
		WHERE e.account_id = x.a AND e.source_id = x.s AND e.event_id = x.i`,
		accounts, sources, ids, types, realms, payments, at, facts, hashes, mappings)
	if err := send(ctx, tx, &b); err != nil {
		return fmt.Errorf("replace the facts of %d events: %w", len(keys), err)
	}
	return nil
}
