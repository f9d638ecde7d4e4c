package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

const (
	sqlHeldByKey = `
		SELECT e.* FROM (SELECT a, s, i FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, s, i) ORDER BY a, s, i) k
		CROSS JOIN LATERAL (
			SELECT ` + heldColumns + ` FROM processed_events e
			WHERE e.account_id = k.a AND e.source_id = k.s AND e.event_id = k.i LIMIT 1) e`

	sqlLockHeld = `
		SELECT e.* FROM (SELECT a, s, i FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, s, i) ORDER BY a, s, i) k
		CROSS JOIN LATERAL (
			SELECT ` + heldColumns + ` FROM processed_events e
			WHERE e.account_id = k.a AND e.source_id = k.s AND e.event_id = k.i
			FOR NO KEY UPDATE OF e) e`

	sqlHeldByPayment = `
		SELECT e.* FROM (SELECT DISTINCT a, r, i FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, r, i)) k
		CROSS JOIN LATERAL (
			SELECT ` + heldColumns + ` FROM processed_events e
			WHERE e.account_id = k.a AND e.payment = k.i AND e.realm = k.r
			OFFSET 0) e`

	// The rows are locked before any payment, since a split points some of them elsewhere.
	sqlLockIDs = `
		SELECT FROM (SELECT a, r, i FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, r, i) ORDER BY a, r, i) k
		CROSS JOIN LATERAL (
			SELECT FROM payment_ids p WHERE p.account_id = k.a AND p.realm = k.r AND p.id = k.i
			FOR NO KEY UPDATE OF p) p`

	// What else the payments are called that these ids lead to.
	sqlOtherNames = withRoots + `
		SELECT r.n - 1, i.name
		FROM r
		CROSS JOIN LATERAL (SELECT q.ledger FROM payments q WHERE q.account_id = r.a AND q.id = r.id LIMIT 1) q
		CROSS JOIN LATERAL jsonb_array_elements_text(q.ledger -> 'ids') AS i(name)
		WHERE r.up IS NULL`
)

// rebuild replaces the facts of some events and folds the payments and orders that these concern anew, in one
// transaction that takes its locks in the order of the package comment.
type rebuild struct {
	bt      *batch
	changed map[eventKey]*item      // as they are to be
	old     map[eventKey]*heldEvent // the changed ones as they stand
	all     map[eventKey]*heldEvent // of the payments concerned
	ids     map[gatewayID]bool      // of the payments concerned: as many as events connect
	bases   map[eventKey][]byte     // hashes of what came first under an id that was used twice
	twins   map[eventKey]bool       // came again with other facts, it was thought; today they are the same

	comps map[int]*rebuilt

	events  []EventChange
	changes []OrderChange
}

func newRebuild(changed []changedEvent) (*rebuild, error) {
	g := &rebuild{
		bt: newBatch(), changed: map[eventKey]*item{}, old: map[eventKey]*heldEvent{}, all: map[eventKey]*heldEvent{},
		ids: map[gatewayID]bool{}, bases: map[eventKey][]byte{}, twins: map[eventKey]bool{},
	}
	for i, c := range changed {
		e := c.next // a copy: what pauses is said below
		it, err := newItem(i, &e)
		if err != nil {
			return nil, err
		}
		if c.ref != "" {
			if err := it.refer(c.ref); err != nil {
				return nil, err
			}
		}
		it.id = c.key.id
		g.changed[c.key] = it
	}
	return g, nil
}

// effective is what an event of the payments concerned says from now on; nil if it is not folded.
func (g *rebuild) effective(h *heldEvent) *item {
	it := g.changed[h.key]
	if it == nil {
		if it = h.item; !h.folds() {
			return nil
		}
	}
	if !it.folds() {
		return nil
	}
	return it
}

func idsOf(it *item) []gatewayID {
	ids := make([]gatewayID, len(it.Payment))
	for i, id := range it.Payment {
		ids[i] = gatewayID{it.Account, it.Realm, id}
	}
	return ids
}

// lockEvents finds what has to be rebuilt and locks the rows of the events that are written.
func (g *rebuild) lockEvents(ctx context.Context, tx pgx.Tx) error {
	keys := slices.Collect(maps.Keys(g.changed))
	found, err := heldByKey(ctx, tx, sqlHeldByKey, keys)
	if err != nil {
		return err
	}
	if len(found) < len(keys) {
		return errMoved
	}
	var seeds []gatewayID
	for k, it := range g.changed {
		h := found[k]
		if done, err := h.means(it); err != nil {
			return err
		} else if done && (h.outcome != Flagged || h.reason != ReasonIDReused) {
			delete(g.changed, k) // somebody else was faster
			continue
		}
		if h.folds() {
			it.Paused = false // it counts already, and what counts is not taken out by a pause
			seeds = append(seeds, idsOf(h.item)...)
		}
		if it.folds() {
			seeds = append(seeds, idsOf(it)...)
		}
	}
	if err := g.close(ctx, tx, seeds); err != nil {
		return err
	}
	if err := g.findTwins(ctx, tx); err != nil {
		return err
	}
	for k, it := range g.changed {
		if h := found[k]; g.reused(it, it.hash) && bytes.Equal(h.hash, it.hash) {
			if same, err := h.means(it); err != nil {
				return err
			} else if same {
				delete(g.changed, k) // it is flagged with good reason
			}
		}
	}
	keys = slices.Concat(slices.Collect(maps.Keys(g.changed)), slices.Collect(maps.Keys(g.twins)))
	g.old, err = heldByKey(ctx, tx, sqlLockHeld, keys)
	if err != nil {
		return err
	}
	for _, k := range keys {
		h := g.old[k]
		before := found[k]
		if before == nil {
			before = g.all[k]
		}
		if h == nil || !h.same(before) {
			return errMoved
		}
	}
	return nil
}

// means reports whether an event is taken to say what it says.
func (h *heldEvent) means(it *item) (bool, error) {
	was, err := canon(h.item)
	if err != nil {
		return false, err
	}
	is, err := canon(it)
	return was == is, err
}

// same reports whether nothing happened to an event since.
func (h *heldEvent) same(g *heldEvent) bool {
	means, err := h.means(g.item)
	return err == nil && means && h.outcome == g.outcome && h.reason == g.reason && bytes.Equal(h.hash, g.hash)
}

func heldByKey(ctx context.Context, tx pgx.Tx, sql string, keys []eventKey) (map[eventKey]*heldEvent, error) {
	accounts, sources, ids := keyColumns(keys)
	return collectHeld(tx.Query(ctx, sql, accounts, sources, ids))
}

func collectHeld(rows pgx.Rows, _ error) (map[eventKey]*heldEvent, error) {
	found, err := pgx.CollectRows(rows, scanHeld)
	held := make(map[eventKey]*heldEvent, len(found))
	for _, h := range found {
		held[h.key] = h
	}
	return held, err
}

// close collects every id and event that has to do with the payments of the seeds: what an event names together, and what
// a payment is called.
func (g *rebuild) close(ctx context.Context, tx pgx.Tx, seeds []gatewayID) error {
	for frontier := g.add(seeds); len(frontier) > 0; {
		accounts, realms, names := idColumns(frontier)
		var next []gatewayID
		var b pgx.Batch
		b.Queue(sqlOtherNames, accounts, realms, names).Query(func(rows pgx.Rows) error {
			var n int64
			var name string
			_, err := pgx.ForEachRow(rows, []any{&n, &name}, func() error {
				next = append(next, gatewayID{accounts[n], realms[n], name})
				return nil
			})
			return err
		})
		b.Queue(sqlHeldByPayment, accounts, realms, names).Query(func(rows pgx.Rows) error {
			held, err := collectHeld(rows, nil)
			for k, h := range held {
				g.all[k] = h
				if it := g.effective(h); it != nil {
					next = append(next, idsOf(it)...)
				}
				if h.folds() {
					next = append(next, idsOf(h.item)...)
				}
			}
			return err
		})
		if err := send(ctx, tx, &b); err != nil {
			return fmt.Errorf("find the events of payments: %w", err)
		}
		frontier = g.add(next)
	}
	return nil
}

// add returns the ids that are new.
func (g *rebuild) add(ids []gatewayID) []gatewayID {
	var fresh []gatewayID
	for _, id := range ids {
		if !g.ids[id] {
			g.ids[id] = true
			fresh = append(fresh, id)
		}
	}
	return fresh
}

func idColumns(ids []gatewayID) (accounts, realms, names []string) {
	for _, k := range ids {
		accounts, realms, names = append(accounts, k.account), append(realms, k.realm), append(names, k.id)
	}
	return accounts, realms, names
}

// findTwins compares events whose id had come before with what came first.
func (g *rebuild) findTwins(ctx context.Context, tx pgx.Tx) error {
	var ask []eventKey
	base := func(it *item) {
		if it.id != it.ID {
			ask = append(ask, eventKey{it.Account, it.Source, it.ID})
		}
	}
	for _, h := range g.all {
		base(h.item)
	}
	for _, it := range g.changed { // may have had no payment
		base(it)
	}
	if len(ask) == 0 {
		return nil
	}
	held, err := heldByKey(ctx, tx, sqlHeldByKey, ask)
	if err != nil {
		return err
	}
	for k, h := range held {
		g.bases[k] = h.hash
		if it := g.changed[k]; it != nil {
			g.bases[k] = it.hash
		}
	}
	for k, h := range g.all {
		if g.changed[k] == nil && !g.reused(h.item, h.hash) && h.outcome == Flagged && h.reason == ReasonIDReused {
			g.twins[k] = true
		}
	}
	return nil
}

// reused reports whether an event's id had come before with other facts.
func (g *rebuild) reused(it *item, hash []byte) bool {
	if it.id == it.ID {
		return false
	}
	base, ok := g.bases[eventKey{it.Account, it.Source, it.ID}]
	return !ok || !bytes.Equal(base, hash)
}

// lockPayments locks every payment concerned, and checks that these are still all of them: what is folded is read after
// the locks were granted.
func (g *rebuild) lockPayments(ctx context.Context, tx pgx.Tx) error {
	var asking []*item
	for id := range g.ids { // each for itself: what belongs together is seen below
		asking = append(asking, &item{Event: &Event{Account: id.account, Event: order.Event{Realm: id.realm, Payment: []string{id.id}}}, comp: -1})
	}
	for _, it := range g.changed {
		if it.folds() {
			asking = append(asking, it)
		}
	}
	if len(asking) == 0 {
		return nil
	}
	accounts, realms, names := idColumns(slices.Collect(maps.Keys(g.ids)))
	locked := map[eventKey]*heldEvent{}
	var b pgx.Batch
	g.bt.queuePaymentsVia(&b, asking, sqlLockIDs)
	b.Queue(sqlHeldByPayment, accounts, realms, names).Query(func(rows pgx.Rows) (err error) {
		locked, err = collectHeld(rows, nil)
		return err
	})
	if err := send(ctx, tx, &b); err != nil {
		return fmt.Errorf("lock payments of %d events: %w", len(g.changed), err)
	}
	realmOf := map[uuid.UUID]string{}
	for id, root := range g.bt.roots {
		if g.bt.locked[paymentKey{id.account, root}] == nil {
			return errMoved
		}
		realmOf[root] = id.realm
	}
	for id := range g.ids {
		if _, ok := g.bt.roots[id]; !ok {
			return errMoved
		}
	}
	for _, p := range g.bt.locked {
		for _, name := range p.ledger.IDs {
			if !g.ids[gatewayID{p.account, realmOf[p.id], name}] {
				return errMoved
			}
		}
	}
	for k, h := range locked {
		was := g.all[k]
		if was != nil && g.changed[k] == nil && g.twins[k] && !h.same(was) {
			return errMoved
		}
		if it := g.effective(h); it != nil {
			for _, id := range idsOf(it) {
				if !g.ids[id] {
					return errMoved
				}
			}
		}
		if was == nil && h.item.id != h.item.ID {
			return errMoved // is it a twin?
		}
	}
	g.all = locked
	return nil
}
