package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// rebuilt is one payment, as its events make it today.
type rebuilt struct {
	*component
	events []*item
	ids    []gatewayID
	named  map[string]bool // orders that any event of it names
	fresh  bool            // its payment has no row yet
}

// divide tells the payments apart that the events make today, and gives each one a row: of those that its ids lead to,
// the first that no other one has taken.
func (g *rebuild) divide() {
	var items []*item
	for k, h := range g.all {
		if it := g.effective(h); it != nil && g.changed[k] == nil {
			items = append(items, it)
		}
	}
	for _, it := range g.changed {
		if it.folds() {
			items = append(items, it)
		}
	}
	connect(items)
	g.comps = map[int]*rebuilt{}
	left := maps.Clone(g.ids) // ids that no event names any more
	for _, it := range items {
		if it.comp < 0 {
			continue
		}
		c := g.comps[it.comp]
		if c == nil {
			c = &rebuilt{component: &component{found: map[uuid.UUID]*payment{}, refs: map[string]bool{}}, named: map[string]bool{}}
			g.comps[it.comp] = c
		}
		c.add(it)
		for _, id := range idsOf(it) {
			delete(left, id)
		}
	}
	for id := range left {
		n := -1 - len(g.comps) // no event has it
		g.comps[n] = &rebuilt{component: &component{found: map[uuid.UUID]*payment{}}, ids: []gatewayID{id}}
	}
	taken := map[paymentKey]bool{}
	for _, c := range g.inOrder() {
		account := c.ids[0].account
		for _, id := range c.ids {
			if k := (paymentKey{account, g.bt.roots[id]}); !taken[k] {
				c.found[k.id] = g.bt.locked[k]
			}
		}
		for _, p := range c.found {
			taken[paymentKey{account, p.id}] = true
			if c.keep == nil || slices.Compare(p.id[:], c.keep.id[:]) < 0 {
				c.keep = p
			}
		}
		if c.keep == nil {
			c.keep, c.fresh = &payment{account: account, id: newID()}, true
			c.found[c.keep.id] = c.keep
			g.bt.locked[paymentKey{account, c.keep.id}] = c.keep
		}
	}
}

func (c *rebuilt) add(it *item) {
	c.events = append(c.events, it)
	for _, id := range idsOf(it) {
		if !slices.Contains(c.ids, id) {
			c.ids = append(c.ids, id)
		}
	}
	c.links = c.links.Join(it.Links())
	if it.Reference != "" {
		c.named[it.Reference] = true
		if it.Strength == order.StrengthPayment {
			c.refs[it.Reference] = true
		}
	}
	c.makes = c.makes || it.createsOrder()
	c.ignore = c.ignore || it.OnUnknown == OnUnknownIgnore
}

// inOrder is the sequence in which payments take their rows: those with events first, by their least id.
func (g *rebuild) inOrder() []*rebuilt {
	for _, c := range g.comps {
		slices.SortFunc(c.ids, gatewayID.compare)
	}
	return slices.SortedFunc(maps.Values(g.comps), func(a, b *rebuilt) int {
		return cmp.Or(cmp.Compare(min(len(b.events), 1), min(len(a.events), 1)), a.ids[0].compare(b.ids[0]))
	})
}

// lockOrders makes the orders that are named for the first time, and locks them, those on which the payments stood, and
// those that their events named before.
func (g *rebuild) lockOrders(ctx context.Context, tx pgx.Tx, s *Store) error {
	comps := make(map[int]*component, len(g.comps)+len(g.old))
	for n, c := range g.comps {
		comps[n] = c.component
	}
	for _, p := range g.bt.locked {
		comps[-1-len(comps)-len(g.comps)] = &component{found: map[uuid.UUID]*payment{p.id: p}, keep: p}
	}
	for _, h := range g.old {
		if h.item.Reference != "" && h.folds() {
			comps[-1-len(comps)-len(g.comps)] = &component{
				keep: &payment{account: h.key.account}, refs: map[string]bool{h.item.Reference: true},
			}
		}
	}
	return s.lockPlaces(ctx, tx, g.bt, comps, nil)
}

// stood is the order on which a payment was found; nil: none.
func (g *rebuild) stood(p *payment) *lockedOrder {
	if p.order == uuid.Nil {
		return nil
	}
	return g.bt.orders[orderKey{p.account, p.order}]
}

// place folds every payment from its events and puts it on the order that they name today. It returns the orders on
// which a payment stood or stands.
func (g *rebuild) place() map[*lockedOrder]bool {
	touched := map[*lockedOrder]bool{}
	to := map[*payment]*lockedOrder{}
	for _, c := range g.inOrder() {
		g.choose(c, to)
	}
	for _, p := range g.bt.locked {
		p.dirty = true
		if o := g.stood(p); o != nil {
			delete(o.payments, p.id)
			touched[o] = true
		}
		p.order = uuid.Nil
		if o := to[p]; o != nil {
			p.order = o.id
			o.payments[p.id] = p
			o.used, touched[o] = true, true
		}
	}
	return touched
}

// choose folds the payment of c, and says where it belongs: to the order that the strongest reference names, or to the
// one on which it stands, if that is registered and its events still name it; then both are flagged, unless a person
// has linked it.
func (g *rebuild) choose(c *rebuilt, to map[*payment]*lockedOrder) {
	var stood []*lockedOrder // where it may stay
	for _, p := range c.found {
		if o := g.stood(p); o != nil && c.named[o.ref] {
			stood = append(stood, o)
		}
	}
	sortOrders(stood)
	stood = slices.Compact(stood)
	var registered []*lockedOrder
	for _, o := range stood {
		if o.book.View.Registered {
			registered = append(registered, o)
		}
	}
	person := c.links.Best().Strength == order.StrengthPerson
	c.apart = len(registered) > 1 && !person
	for _, p := range c.found {
		p.ledger = order.NewLedger()
		switch {
		case c.apart:
			if o := g.stood(p); o != nil && c.named[o.ref] {
				to[p] = o
			}
		case p != c.keep:
			p.into = c.keep.id
		}
	}
	for _, it := range c.events {
		p := c.keep
		if c.apart {
			p = g.bt.leastRoot(it)
		}
		p.ledger.JoinEvent(it.Event.Event)
		if g.reused(it, g.hashOf(it)) {
			p.ledger.Flags |= order.FlagIDReused
		}
	}
	if c.apart {
		for p := range to {
			if len(p.ledger.IDs) == 0 {
				delete(to, p)
			}
		}
		return
	}
	place := g.bt.byRef[orderRef{c.keep.account, c.links.Best().Ref}]
	switch {
	case len(registered) > 0 && !person:
		place = registered[0]
	case place == nil && len(stood) > 0:
		place = stood[0]
	}
	if place != nil {
		to[c.keep] = place
	}
}

func (g *rebuild) hashOf(it *item) []byte {
	k := it.key()
	if c := g.changed[k]; c != nil {
		return c.hash
	}
	return g.all[k].hash
}

// homeOf is the order of an event's payment; nil: none.
func (g *rebuild) homeOf(it *item) *lockedOrder {
	c := g.comps[it.comp]
	if it.comp < 0 || c == nil {
		return nil
	}
	p := c.keep
	if c.apart {
		p = g.bt.leastRoot(it)
	}
	return g.stood(p)
}

// conflicts are the orders of which the rebuilt payments say that another one is named too.
func (g *rebuild) conflicts() map[*lockedOrder]bool {
	due := map[*lockedOrder]bool{}
	for _, c := range g.comps {
		if c.apart {
			for _, p := range c.found {
				if o := g.stood(p); o != nil && o.book.View.Registered {
					due[o] = true
				}
			}
		}
		at := g.stood(c.keep)
		if at == nil || c.links.Best().Strength == order.StrengthPerson {
			continue
		}
		for ref := range c.refs {
			if ref == at.ref {
				continue
			}
			due[at] = true
			if o := g.bt.byRef[orderRef{at.account, ref}]; o != nil && (!o.isNew || o.used) {
				due[o] = true
			}
		}
	}
	return due
}

// remark sets what an order keeps beside its payments: that a payment may register it, and that references conflict.
// Both are forgotten where they came from what was read wrongly: no event of the order's payments says so any more. A
// conflict of which the order is the one that did not get the payment, and another payment than those here the reason,
// is then told by the other order alone.
func (g *rebuild) remark(ctx context.Context, tx pgx.Tx, touched map[*lockedOrder]bool) error {
	due := g.conflicts()
	suspect := maps.Clone(touched)
	for _, h := range g.old {
		if o := g.bt.byRef[orderRef{h.key.account, h.item.Reference}]; o != nil && h.folds() {
			suspect[o] = true
		}
	}
	others := map[*lockedOrder]bool{}
	for o := range suspect {
		if o.in.Create || o.in.Marks.Has(order.FlagReferenceConflict) {
			others[o] = true
		}
	}
	creates, conflicts, err := g.others(ctx, tx, others)
	if err != nil {
		return err
	}
	for _, c := range g.comps {
		for _, it := range c.events {
			if o := g.homeOf(it); o != nil && it.OnUnknown == OnUnknownCreate {
				creates[o] = true
			}
		}
	}
	for _, o := range g.bt.orders {
		if suspect[o] && !conflicts[o] {
			o.in.Marks &^= order.FlagReferenceConflict
		}
		if due[o] {
			o.in.Marks |= order.FlagReferenceConflict
		}
		if suspect[o] {
			o.in.Create = creates[o]
		}
		if o.in.Marks != o.readIn.Marks || o.in.Create != o.readIn.Create {
			touched[o] = true
		}
	}
	return nil
}

// others asks the events of the payments that are not rebuilt. Under the order's lock, nobody adds to them.
func (g *rebuild) others(ctx context.Context, tx pgx.Tx, orders map[*lockedOrder]bool) (creates, conflicts map[*lockedOrder]bool, err error) {
	creates, conflicts = map[*lockedOrder]bool{}, map[*lockedOrder]bool{}
	at := map[paymentKey]*lockedOrder{}
	var accounts, names []string
	for o := range orders {
		for _, p := range o.payments {
			if k := (paymentKey{p.account, p.id}); g.bt.locked[k] == nil {
				at[k] = o
				for _, id := range p.ledger.IDs {
					accounts, names = append(accounts, p.account), append(names, id)
				}
			}
		}
	}
	if len(names) == 0 {
		return creates, conflicts, nil
	}
	held, err := collectHeld(tx.Query(ctx, `
		SELECT e.* FROM (SELECT DISTINCT a, i FROM unnest($1::text[], $2::text[]) AS x(a, i)) k
		CROSS JOIN LATERAL (
			SELECT `+heldColumns+` FROM processed_events e WHERE e.account_id = k.a AND e.payment = k.i
			OFFSET 0) e`, accounts, names))
	if err != nil {
		return nil, nil, fmt.Errorf("read the events of other payments: %w", err)
	}
	// The same id may be another payment's in another realm.
	var ids []gatewayID
	for _, h := range held {
		if h.folds() {
			ids = append(ids, idsOf(h.item)...)
		}
	}
	roots, err := rootsOf(ctx, tx, ids)
	if err != nil {
		return nil, nil, err
	}
	for _, h := range held {
		if !h.folds() {
			continue
		}
		for _, id := range idsOf(h.item) {
			o := at[paymentKey{id.account, roots[id]}]
			if o == nil {
				continue
			}
			creates[o] = creates[o] || h.item.OnUnknown == OnUnknownCreate
			if p := o.payments[roots[id]]; p.ledger.Links().Best().Strength == order.StrengthPerson {
				continue
			}
			foreign := h.item.Reference != o.ref && h.item.Strength == order.StrengthPayment && h.item.Reference != ""
			parted := slices.ContainsFunc(idsOf(h.item), func(other gatewayID) bool { return roots[other] != roots[id] })
			conflicts[o] = conflicts[o] || foreign || parted
		}
	}
	return creates, conflicts, nil
}

func rootsOf(ctx context.Context, tx pgx.Tx, ids []gatewayID) (map[gatewayID]uuid.UUID, error) {
	accounts, realms, names := idColumns(ids)
	rows, _ := tx.Query(ctx, sqlRoots, accounts, realms, names)
	roots := map[gatewayID]uuid.UUID{}
	var n int64
	var root uuid.UUID
	_, err := pgx.ForEachRow(rows, []any{&n, &root}, func() error {
		roots[ids[n]] = root
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find payments by id: %w", err)
	}
	return roots, nil
}
