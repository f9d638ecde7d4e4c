package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// lead is where a row of payment_ids leads: to the payment that is left after all merges.
type lead struct {
	root  uuid.UUID
	knows bool // the payment's ledger has the id
	empty bool // its ledger has nothing
}

const sqlLeads = withRoots + `
	SELECT r.n - 1, r.id, coalesce(q.ledger -> 'ids' ? ($3::text[])[r.n::int], false), q.ledger = '{}'::jsonb
	FROM r
	CROSS JOIN LATERAL (SELECT q.ledger FROM payments q WHERE q.account_id = r.a AND q.id = r.id LIMIT 1) q
	WHERE r.up IS NULL`

// queueLeads asks where the payment ids of events lead.
func queueLeads(b *pgx.Batch, page []*AuditEvent) map[gatewayID]lead {
	asked := map[gatewayID]bool{}
	for _, e := range page {
		if e.Folds() {
			for _, id := range idsOf(e.item) {
				asked[id] = true
			}
		}
	}
	leads := make(map[gatewayID]lead, len(asked))
	if len(asked) == 0 {
		return leads
	}
	ids := slices.SortedFunc(maps.Keys(asked), gatewayID.compare)
	accounts, realms, names := idColumns(ids)
	b.Queue(sqlLeads, accounts, realms, names).Query(func(rows pgx.Rows) error {
		var (
			n int64
			l lead
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &l.root, &l.knows, &l.empty}, func() error {
			leads[ids[n]] = l
			return nil
		})
		return err
	})
	return leads
}

// follow fills in the payments of events. An id that leads astray leads to the payment that knows it, once that is known.
func (a *AuditSnapshot) follow(page []*AuditEvent, leads map[gatewayID]lead) {
	for _, e := range page {
		e.roots = nil
		if !e.Folds() {
			continue
		}
		for _, id := range idsOf(e.item) {
			root := leads[id].root
			if to, ok := a.leads[id]; ok {
				root = to
			}
			if root != uuid.Nil && !slices.Contains(e.roots, root) {
				e.roots = append(e.roots, root)
			}
		}
	}
}

// AuditStray is a payment id that events name and that does not lead to a payment which knows it.
type AuditStray struct {
	Account, Realm, ID string
	Leads              uuid.UUID   // where it leads; zero: nowhere
	Known              []uuid.UUID // the payments that know it
	Events             []EventKey  // that name it; some of them, if they are many

	empty bool
	roots map[uuid.UUID]bool // the payments of its events
}

// maxStrays bounds how many ids that lead astray are told of: where there are more, a table was lost.
const maxStrays = 10_000

// eventsOfStray bounds how many events are told of each.
const eventsOfStray = 10

// noteStrays remembers ids that do not lead to a payment which knows them.
func (a *AuditSnapshot) noteStrays(page []*AuditEvent, leads map[gatewayID]lead) {
	for _, e := range page {
		if !e.Folds() {
			continue
		}
		for _, id := range idsOf(e.item) {
			l, found := leads[id]
			if found && l.knows {
				continue
			}
			s := a.strays[id]
			if s == nil {
				if len(a.strays) == maxStrays {
					continue
				}
				s = &AuditStray{Account: id.account, Realm: id.realm, ID: id.id, Leads: l.root, empty: l.empty, roots: map[uuid.UUID]bool{}}
				a.strays[id] = s
			}
			if len(s.Events) < eventsOfStray {
				s.Events = append(s.Events, e.EventKey)
			}
			for _, root := range e.roots {
				s.roots[root] = true
			}
		}
	}
}

// Strays returns the ids that led astray among those of the events that were read so far, by id. What is read afterwards
// goes by the payments that know them, so that one wrong row is told of once; and where an id's own payment has lost it, that
// payment is read with the events of that name.
func (a *AuditSnapshot) Strays(ctx context.Context) ([]AuditStray, error) {
	if len(a.strays) == 0 {
		return nil, nil
	}
	ids := slices.SortedFunc(maps.Keys(a.strays), gatewayID.compare)
	known, err := a.whoKnows(ctx, ids)
	if err != nil {
		return nil, err
	}
	var out []AuditStray
	for _, id := range ids {
		s := a.strays[id]
		s.Known = known[id]
		if s.empty && slices.ContainsFunc(s.Known, func(p uuid.UUID) bool { return s.roots[p] }) {
			continue // two payments that stay apart, and an event that knows both: all that is known of the second stands with the first
		}
		switch {
		case len(s.Known) == 1:
			a.leads[id] = s.Known[0]
		case len(s.Known) == 0 && s.Leads != uuid.Nil:
			k := paymentKey{id.account, s.Leads}
			a.extra[k] = append(a.extra[k], id.id)
			continue // it is the ledger that has lost it
		}
		out = append(out, *s)
	}
	clear(a.strays)
	return out, nil
}

// whoKnows finds the payments whose ledgers have the ids, but for those that have one from another name space. It reads all
// payments of the accounts, which is done only where something is wrong.
func (a *AuditSnapshot) whoKnows(ctx context.Context, ids []gatewayID) (map[gatewayID][]uuid.UUID, error) {
	accounts, _, names := idColumns(ids)
	type found struct {
		Account string
		ID      uuid.UUID
		IDs     []byte
	}
	rows, _ := a.tx.Query(ctx, `
		SELECT p.account_id, p.id, p.ledger -> 'ids' FROM payments p
		WHERE p.account_id = ANY($1) AND p.merged_into IS NULL AND p.ledger -> 'ids' ?| $2::text[] ORDER BY p.account_id, p.id`, accounts, names)
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[found])
	if err != nil {
		return nil, fmt.Errorf("find the payments that know %d ids: %w", len(ids), err)
	}
	type place struct {
		account, id string
		root        uuid.UUID
	}
	elsewhere := map[place]string{} // name spaces in which the id leads to that payment
	rows, _ = a.tx.Query(ctx, `
		SELECT i.account_id, i.realm, i.id, i.payment_id FROM payment_ids i WHERE i.account_id = ANY($1) AND i.id = ANY($2)`, accounts, names)
	var (
		k    gatewayID
		root uuid.UUID
	)
	if _, err := pgx.ForEachRow(rows, []any{&k.account, &k.realm, &k.id, &root}, func() error {
		elsewhere[place{k.account, k.id, root}] = k.realm
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find name spaces of %d ids: %w", len(ids), err)
	}
	asked := map[[2]string][]gatewayID{} // by account and id
	for _, id := range ids {
		asked[[2]string{id.account, id.id}] = append(asked[[2]string{id.account, id.id}], id)
	}
	known := map[gatewayID][]uuid.UUID{}
	for _, f := range all {
		var names []string
		if err := json.Unmarshal(f.IDs, &names); err != nil {
			continue // its ledger cannot be read, which is told where it is
		}
		for _, name := range names {
			for _, id := range asked[[2]string{f.Account, name}] {
				if realm, other := elsewhere[place{f.Account, name, f.ID}]; !other || realm == id.realm {
					known[id] = append(known[id], f.ID)
				}
			}
		}
	}
	return known, nil
}
