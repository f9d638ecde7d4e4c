package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// payment is a payment whose row this transaction has locked, or that belongs to an order it has locked.
type payment struct {
	account string
	id      uuid.UUID
	order   uuid.UUID // zero: none
	ledger  *order.Ledger
	into    uuid.UUID // merged away in this transaction
	dirty   bool
}

// gatewayID is a payment's id within its name space.
type gatewayID struct{ account, realm, id string }

func (k gatewayID) compare(l gatewayID) int {
	return cmp.Or(cmp.Compare(k.account, l.account), cmp.Compare(k.realm, l.realm), cmp.Compare(k.id, l.id))
}

type paymentKey struct {
	account string
	id      uuid.UUID
}

const (
	// Missing ids get a payment that an id of their component already has, else a fresh one. Both inserts stand in one
	// statement, since the foreign key goes against the order in which the tables are locked.
	sqlPaymentIDs = `
		WITH x AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[], $5::uuid[]) AS x(account, realm, id, comp, fresh)),
		known AS MATERIALIZED (
			SELECT x.*, p.payment_id
			FROM x LEFT JOIN LATERAL (
				SELECT p.payment_id FROM payment_ids p
				WHERE p.account_id = x.account AND p.realm = x.realm AND p.id = x.id LIMIT 1) p ON true),
		chosen AS (
			SELECT account, realm, id, payment_id, coalesce(min(payment_id::text) OVER (PARTITION BY comp)::uuid, fresh) AS target
			FROM known),
		ins AS (
			INSERT INTO payment_ids (account_id, realm, id, payment_id)
			SELECT account, realm, id, target FROM chosen WHERE payment_id IS NULL
			ORDER BY account, realm, id
			ON CONFLICT DO NOTHING
			RETURNING account_id, payment_id)
		INSERT INTO payments (account_id, id)
		SELECT DISTINCT account_id, payment_id FROM ins WHERE payment_id = ANY($5::uuid[])`

	// Only roots are locked, in key order: a row that was merged away while its lock was awaited drops out.
	sqlLockPayments = `
		WITH RECURSIVE r(a, id) AS (
			SELECT x.a, p.payment_id
			FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, realm, i)
			CROSS JOIN LATERAL (
				SELECT p.payment_id FROM payment_ids p WHERE p.account_id = x.a AND p.realm = x.realm AND p.id = x.i LIMIT 1) p
			UNION
			SELECT r.a, p.merged_into FROM r
			CROSS JOIN LATERAL (SELECT p.merged_into FROM payments p WHERE p.account_id = r.a AND p.id = r.id LIMIT 1) p
			WHERE p.merged_into IS NOT NULL)
		SELECT p.* FROM (SELECT a, id FROM r ORDER BY a, id) k
		CROSS JOIN LATERAL (
			SELECT p.account_id, p.id, p.order_id, p.ledger FROM payments p
			WHERE p.account_id = k.a AND p.id = k.id AND p.merged_into IS NULL
			FOR NO KEY UPDATE OF p) p`

	// withRoots leads from ids to the payments they are names of, and on to what those were merged into: where up is
	// NULL stands the one that is left.
	withRoots = `
		WITH RECURSIVE r(n, a, id, up) AS (
			SELECT x.n, x.a, q.id, q.merged_into
			FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(a, realm, i, n)
			CROSS JOIN LATERAL (
				SELECT p.payment_id FROM payment_ids p WHERE p.account_id = x.a AND p.realm = x.realm AND p.id = x.i LIMIT 1) p
			CROSS JOIN LATERAL (
				SELECT q.id, q.merged_into FROM payments q WHERE q.account_id = x.a AND q.id = p.payment_id LIMIT 1) q
			UNION ALL
			SELECT r.n, r.a, q.id, q.merged_into FROM r
			CROSS JOIN LATERAL (SELECT q.id, q.merged_into FROM payments q WHERE q.account_id = r.a AND q.id = r.up LIMIT 1) q)`

	sqlRoots = withRoots + `
		SELECT n - 1, id FROM r WHERE up IS NULL`

	sqlOrderPayments = `SELECT p.* FROM ` + orderKeys + `
		CROSS JOIN LATERAL (
			SELECT p.account_id, p.id, p.order_id, p.ledger FROM payments p WHERE p.account_id = k.a AND p.order_id = k.i
			OFFSET 0) p`

	sqlUpdatePayments = `
		UPDATE payments p SET order_id = x.o, merged_into = x.m, ledger = x.l::jsonb
		FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[]) AS x(a, i, o, m, l)
		WHERE p.account_id = x.a AND p.id = x.i`
)

// queuePayments makes sure that every id the items know has a payment, and locks the payments they lead to.
func (bt *batch) queuePayments(b *pgx.Batch, items []*item) { bt.queuePaymentsVia(b, items, "") }

// queuePaymentsVia is queuePayments with a statement, if there is one, between the ids and the payments. It takes the
// ids as $1 (account), $2 (realm) and $3.
func (bt *batch) queuePaymentsVia(b *pgx.Batch, items []*item, via string) {
	n := connect(items)
	if n == 0 {
		return
	}
	fresh := make([]uuid.UUID, n)
	for i := range fresh {
		fresh[i] = newID()
	}
	comp := map[gatewayID]int{}
	for _, it := range items {
		for _, id := range it.Payment {
			comp[gatewayID{it.Account, it.Realm, id}] = it.comp
		}
	}
	ids := make([]gatewayID, 0, len(comp))
	for k := range comp {
		ids = append(ids, k)
	}
	slices.SortFunc(ids, gatewayID.compare)
	var (
		accounts, realms, names []string
		comps                   []int32
		targets                 []pgtype.UUID
	)
	for _, k := range ids {
		accounts, realms, names = append(accounts, k.account), append(realms, k.realm), append(names, k.id)
		comps, targets = append(comps, int32(comp[k])), append(targets, pgUUID(fresh[comp[k]]))
	}
	b.Queue(sqlPaymentIDs, accounts, realms, names, comps, targets)
	if via != "" {
		b.Queue(via, accounts, realms, names)
	}
	b.Queue(sqlLockPayments, accounts, realms, names).Query(func(rows pgx.Rows) error {
		return scanPayments(rows, func(p *payment) { bt.locked[paymentKey{p.account, p.id}] = p })
	})
	b.Queue(sqlRoots, accounts, realms, names).Query(func(rows pgx.Rows) error {
		var at int64
		var root uuid.UUID
		_, err := pgx.ForEachRow(rows, []any{&at, &root}, func() error {
			bt.roots[ids[at]] = root
			return nil
		})
		return err
	})
}

func scanPayments(rows pgx.Rows, each func(*payment)) error {
	var (
		account string
		id      uuid.UUID
		ord     pgtype.UUID
		doc     []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&account, &id, &ord, &doc}, func() error {
		l := order.NewLedger()
		if err := json.Unmarshal(doc, l); err != nil {
			return fmt.Errorf("ledger of payment %s: %w", id, err)
		}
		each(&payment{account: account, id: id, order: uuid.UUID(ord.Bytes), ledger: l})
		return nil
	})
	return err
}

// connect numbers the connected components of the payment ids that the items name: ids that stand in one event belong
// to one payment. It returns their number; items without payment ids keep -1.
func connect(items []*item) int {
	up := map[gatewayID]gatewayID{}
	var find func(gatewayID) gatewayID
	find = func(k gatewayID) gatewayID {
		p, ok := up[k]
		if !ok || p == k {
			up[k] = k
			return k
		}
		root := find(p)
		up[k] = root
		return root
	}
	for _, it := range items {
		for _, id := range it.Payment {
			first := find(gatewayID{it.Account, it.Realm, it.Payment[0]})
			if other := find(gatewayID{it.Account, it.Realm, id}); other != first {
				up[other] = first
			}
		}
	}
	number := map[gatewayID]int{}
	for _, it := range items {
		if len(it.Payment) == 0 {
			continue
		}
		root := find(gatewayID{it.Account, it.Realm, it.Payment[0]})
		n, ok := number[root]
		if !ok {
			n = len(number)
			number[root] = n
		}
		it.comp = n
	}
	return len(number)
}

// component is one payment of a batch: all that its events name, with the payments it was found under.
type component struct {
	found  map[uuid.UUID]*payment
	keep   *payment // the least of found: the others merge into it
	links  order.Links
	person bool            // the batch holds a person's word about where the payment belongs
	refs   map[string]bool // orders that own events of the payment name
	create bool            // on_unknown_order: create
	makes  bool            // some event may make the order's row
	ignore bool            // no event may
	placed bool
	apart  bool // it stays the payments that were found, each on the registered order on which it stands
}

// components unites what the items name by the payments they lead to, now that these are locked: ids that no event of
// the batch connects may still be one payment in the database.
func (bt *batch) components(items []*item) (map[int]*component, error) {
	up := map[int]int{}
	var find func(int) int
	find = func(i int) int {
		if j, ok := up[i]; ok && j != i {
			return find(j)
		}
		return i
	}
	byRoot := map[paymentKey]int{}
	for _, it := range items {
		for _, id := range it.Payment {
			root, ok := bt.roots[gatewayID{it.Account, it.Realm, id}]
			k := paymentKey{it.Account, root}
			if !ok || bt.locked[k] == nil {
				return nil, errMoved
			}
			if c, ok := byRoot[k]; !ok {
				byRoot[k] = it.comp
			} else if a, b := find(c), find(it.comp); a != b {
				up[b] = a
			}
		}
	}
	comps := map[int]*component{}
	for _, it := range items {
		if it.comp < 0 {
			continue
		}
		it.comp = find(it.comp)
		c := comps[it.comp]
		if c == nil {
			c = &component{found: map[uuid.UUID]*payment{}, refs: map[string]bool{}}
			comps[it.comp] = c
		}
		for _, id := range it.Payment {
			p := bt.locked[paymentKey{it.Account, bt.roots[gatewayID{it.Account, it.Realm, id}]}]
			c.found[p.id] = p
		}
		c.links = c.links.Join(it.Links())
		c.person = c.person || it.Links().Person.Strength != 0
		if it.Reference != "" && it.Strength == order.StrengthPayment {
			c.refs[it.Reference] = true
		}
		c.makes = c.makes || it.createsOrder()
		c.create = c.create || it.OnUnknown == OnUnknownCreate
		c.ignore = c.ignore || it.OnUnknown == OnUnknownIgnore
	}
	for _, c := range comps {
		for _, p := range c.found {
			if c.keep == nil || bytes.Compare(p.id[:], c.keep.id[:]) < 0 {
				c.keep = p
			}
			c.links = c.links.Join(p.ledger.Links())
			if l := p.ledger.Link; l.Strength == order.StrengthPayment {
				c.refs[l.Ref] = true
			}
		}
	}
	return comps, nil
}

// leastRoot is, of the payments that the ids of an event lead to, the least: the one that an event counts for where they
// stay apart.
func (bt *batch) leastRoot(it *item) *payment {
	var least *payment
	for _, id := range idsOf(it) {
		p := bt.locked[paymentKey{id.account, bt.roots[id]}]
		if least == nil || bytes.Compare(p.id[:], least.id[:]) < 0 {
			least = p
		}
	}
	return least
}

// standing are the orders that the payments of the component belong to so far, in key order.
func (c *component) standing(orders map[orderKey]*lockedOrder) []*lockedOrder {
	var stood []*lockedOrder
	for _, p := range c.found {
		if o := orders[orderKey{p.account, p.order}]; p.order != uuid.Nil && o != nil {
			stood = append(stood, o)
		}
	}
	sortOrders(stood)
	return slices.Compact(stood)
}

// standsOn reports whether a payment of the component belongs to the order so far.
func (c *component) standsOn(order uuid.UUID) bool {
	for _, p := range c.found {
		if p.order == order {
			return true
		}
	}
	return false
}

// merge joins every payment of the component into the one that stays.
func (c *component) merge() {
	for _, p := range c.found {
		if p != c.keep {
			c.keep.ledger.Merge(p.ledger)
			p.ledger, p.into, p.order, p.dirty = order.NewLedger(), c.keep.id, uuid.Nil, true
		}
	}
}

// queueUpdatePayments writes the payments that changed.
func (bt *batch) queueUpdatePayments(b *pgx.Batch) error {
	var changed []*payment
	for _, p := range bt.locked {
		if p.dirty {
			changed = append(changed, p)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.SortFunc(changed, func(a, b *payment) int {
		return orderKey{a.account, a.id}.compare(orderKey{b.account, b.id})
	})
	var (
		accounts, ledgers []string
		ids, orders, into []pgtype.UUID
	)
	for _, p := range changed {
		doc, err := json.Marshal(p.ledger)
		if err != nil {
			return fmt.Errorf("ledger of payment %s: %w", p.id, err)
		}
		accounts, ledgers = append(accounts, p.account), append(ledgers, string(doc))
		ids, orders, into = append(ids, pgUUID(p.id)), append(orders, pgUUID(p.order)), append(into, pgUUID(p.into))
	}
	b.Queue(sqlUpdatePayments, accounts, ids, orders, into, ledgers)
	return nil
}

// newID is a UUIDv7: new rows stand together at the end of their index.
func newID() uuid.UUID { return uuid.Must(uuid.NewV7()) }
