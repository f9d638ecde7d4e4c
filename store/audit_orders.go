package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// AuditOrder is an order as it stands, with all that it should follow from.
type AuditOrder struct {
	Account string
	ID      uuid.UUID
	Ref     string

	Unreadable string // why its row cannot be read; then the rest is not there

	In       order.Order // what the merchant said, and marks; without payments
	View     order.View  // what the fold came to, as it was written
	Told     order.Told
	Fence    int64
	WakeAt   *time.Time
	Version  int
	Details  json.RawMessage
	Expires  *time.Time
	Recorded bool // it has a time of its registration

	Rows     []AuditRow     // its versions, by number
	Payments []AuditPayment // those that stand on it
	Commands []*AuditEvent  // events that are about it and about no payment

	// Refs are, of the orders that its payments' events and ledgers name, those that there are.
	Refs map[string]uuid.UUID
}

// AuditRow is a row of order_transitions.
type AuditRow struct {
	order.Row
	At      time.Time // the start of the transaction that wrote it
	Undoes  int       // a version; 0: none
	Source  string
	EventID string
	Kept    int64
	Flags   []string
	Settled bool // it has a time at which its effect was over

	Event *AuditEvent // the cause, as far as an event is; nil: it names none, or there is none
}

// AuditPayment is a payment that is left after all merges.
type AuditPayment struct {
	Account string
	ID      uuid.UUID
	Order   uuid.UUID // zero: none
	Ledger  *order.Ledger

	Unreadable string // why the ledger cannot be read

	Events []*AuditEvent // whose ids lead to it alone
	Apart  []*AuditEvent // whose ids lead to it and to others
}

// why is the text of an error; empty for none.
func why(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

const auditOrderColumns = orderColumns + `, o.details, o.expires_at, o.registered_at IS NOT NULL`

func scanAuditOrder(row pgx.CollectableRow) (*AuditOrder, error) {
	var (
		s orderScan
		o AuditOrder
	)
	if err := row.Scan(append(s.dest(), &o.Details, &o.Expires, &o.Recorded)...); err != nil {
		return nil, err
	}
	o.Unreadable = why(s.read())
	o.Account, o.ID, o.Ref = s.key.account, s.key.id, s.ref
	o.In, o.View, o.Told, o.Fence, o.WakeAt, o.Version = s.in, s.view, s.told, s.fence, s.wake, s.version
	return &o, nil
}

// Orders calls each with all orders of an account, by id, a page at a time. Call it after [AuditSnapshot.Strays].
func (a *AuditSnapshot) Orders(ctx context.Context, account string, each func([]*AuditOrder) error) error {
	// Commands are found by no index, so they are sorted once.
	if _, err := a.tx.Exec(ctx, `
		DECLARE commands NO SCROLL CURSOR FOR
		SELECT `+auditEventColumns+` FROM processed_events e
		WHERE e.account_id = $1 AND e.payment IS NULL AND e.order_id IS NOT NULL ORDER BY e.order_id`, account); err != nil {
		return fmt.Errorf("sort commands of account %s: %w", account, err)
	}
	commands := &commandStream{a: a}
	var last uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT `+auditOrderColumns+` FROM orders o WHERE o.account_id = $1 AND o.id > $2 ORDER BY o.id LIMIT $3`, account, last, auditOrders)
		page, err := pgx.CollectRows(rows, scanAuditOrder)
		if err != nil {
			return fmt.Errorf("read orders of account %s: %w", account, err)
		}
		if len(page) == 0 {
			break
		}
		for _, o := range page {
			if o.Commands, err = commands.of(ctx, o.ID); err != nil {
				return fmt.Errorf("read commands of account %s: %w", account, err)
			}
		}
		if err := a.furnish(ctx, page); err != nil {
			return fmt.Errorf("read what orders of account %s follow from: %w", account, err)
		}
		if err := each(page); err != nil {
			return err
		}
		last = page[len(page)-1].ID
	}
	if _, err := a.tx.Exec(ctx, `CLOSE commands`); err != nil {
		return fmt.Errorf("close the cursor of commands: %w", err)
	}
	return nil
}

// Order is [AuditSnapshot.Orders] of one order; nil if there is none.
func (a *AuditSnapshot) Order(ctx context.Context, account string, id uuid.UUID) (*AuditOrder, error) {
	rows, _ := a.tx.Query(ctx, `SELECT `+auditOrderColumns+` FROM orders o WHERE o.account_id = $1 AND o.id = $2`, account, id)
	page, err := pgx.CollectRows(rows, scanAuditOrder)
	if err != nil || len(page) == 0 {
		return nil, err
	}
	rows, _ = a.tx.Query(ctx, `
		SELECT `+auditEventColumns+` FROM processed_events e WHERE e.account_id = $1 AND e.payment IS NULL AND e.order_id = $2`, account, id)
	if page[0].Commands, err = pgx.CollectRows(rows, scanAuditEvent); err != nil {
		return nil, fmt.Errorf("read commands of order %s: %w", id, err)
	}
	if err := a.furnish(ctx, page); err != nil {
		return nil, fmt.Errorf("read what order %s follows from: %w", id, err)
	}
	return page[0], nil
}

// commandStream reads commands in the order of the orders that they are about.
type commandStream struct {
	a    *AuditSnapshot
	next []*AuditEvent
	over bool
}

// of returns the commands about an order; those about lesser ones that there are not are passed over.
func (s *commandStream) of(ctx context.Context, id uuid.UUID) (found []*AuditEvent, err error) {
	for {
		if len(s.next) == 0 && !s.over {
			rows, _ := s.a.tx.Query(ctx, fmt.Sprintf(`FETCH %d FROM commands`, auditPage))
			if s.next, err = pgx.CollectRows(rows, scanAuditEvent); err != nil {
				return nil, err
			}
			s.over = len(s.next) == 0
		}
		if s.over {
			return found, nil
		}
		switch c := slices.Compare(s.next[0].Order[:], id[:]); {
		case c > 0:
			return found, nil
		case c == 0:
			found = append(found, s.next[0])
		}
		s.next = s.next[1:]
	}
}

// furnish reads versions, payments and events of orders.
func (a *AuditSnapshot) furnish(ctx context.Context, page []*AuditOrder) error {
	byID := map[orderKey]*AuditOrder{}
	var set orderSet
	for _, o := range page {
		k := orderKey{o.Account, o.ID}
		byID[k] = o
		set.add(k)
	}
	var b pgx.Batch
	b.Queue(`
		SELECT k.a, k.i, `+rowColumns+`, coalesce(t.undoes, 0), coalesce(t.source_id, ''), coalesce(t.event_id, ''), t.at, t.kept, t.flags, t.settled_at IS NOT NULL
		FROM (SELECT a, i FROM unnest($1::text[], $2::uuid[]) AS x(a, i) ORDER BY a, i) k
		CROSS JOIN LATERAL (
			SELECT * FROM order_transitions t WHERE t.account_id = k.a AND t.order_id = k.i ORDER BY t.version OFFSET 0) t`,
		set.accounts, set.ids).Query(func(rows pgx.Rows) error { return scanAuditRows(rows, byID) })
	b.Queue(`
		SELECT p.account_id, p.id, p.order_id, p.ledger
		FROM (SELECT a, i FROM unnest($1::text[], $2::uuid[]) AS x(a, i) ORDER BY a, i) k
		CROSS JOIN LATERAL (
			SELECT * FROM payments p WHERE p.account_id = k.a AND p.order_id = k.i OFFSET 0) p`,
		set.accounts, set.ids).Query(func(rows pgx.Rows) error {
		all, err := pgx.CollectRows(rows, scanAuditPayment)
		for _, p := range all {
			o := byID[orderKey{p.Account, p.Order}]
			o.Payments = append(o.Payments, p)
		}
		return err
	})
	if err := send(ctx, a.tx, &b); err != nil {
		return err
	}
	if err := a.causes(ctx, page); err != nil {
		return err
	}
	var payments []*AuditPayment
	for _, o := range page {
		slices.SortFunc(o.Payments, func(p, q AuditPayment) int { return slices.Compare(p.ID[:], q.ID[:]) })
		for i := range o.Payments {
			payments = append(payments, &o.Payments[i])
		}
	}
	if err := a.eventsOf(ctx, payments); err != nil {
		return err
	}
	refs, err := a.refsOf(ctx, payments)
	for _, o := range page {
		o.Refs = refs[o.Account]
	}
	return err
}

func scanAuditRows(rows pgx.Rows, byID map[orderKey]*AuditOrder) error {
	var (
		k    orderKey
		s    rowScan
		read AuditRow
	)
	dest := append([]any{&k.account, &k.id}, s.dest()...)
	dest = append(dest, &read.Undoes, &read.Source, &read.EventID, &read.At, &read.Kept, &read.Flags, &read.Settled)
	_, err := pgx.ForEachRow(rows, dest, func() error {
		r := read
		r.Row = *s.row()
		r.Flags = slices.Clone(read.Flags)
		o := byID[k]
		o.Rows = append(o.Rows, r)
		return nil
	})
	return err
}

func scanAuditPayment(row pgx.CollectableRow) (p AuditPayment, err error) {
	var (
		ord pgtype.UUID
		doc []byte
	)
	if err := row.Scan(&p.Account, &p.ID, &ord, &doc); err != nil {
		return p, err
	}
	p.Order, p.Ledger = ord.Bytes, order.NewLedger()
	p.Unreadable = why(json.Unmarshal(doc, p.Ledger))
	return p, nil
}

// causes finds the events that versions name.
func (a *AuditSnapshot) causes(ctx context.Context, page []*AuditOrder) error {
	var keys []EventKey
	for _, o := range page {
		for _, r := range o.Rows {
			if r.EventID != "" {
				keys = append(keys, EventKey{o.Account, r.Source, r.EventID})
			}
		}
	}
	found := make(map[EventKey]*AuditEvent, len(keys))
	for chunk := range slices.Chunk(keys, auditPage) {
		events, err := a.eventsByKey(ctx, chunk)
		if err != nil {
			return err
		}
		var b pgx.Batch
		queueReread(&b, events)
		if err := send(ctx, a.tx, &b); err != nil {
			return err
		}
		for _, e := range events {
			found[e.EventKey] = e
		}
	}
	for _, o := range page {
		for i := range o.Rows {
			r := &o.Rows[i]
			r.Event = found[EventKey{o.Account, r.Source, r.EventID}]
		}
	}
	return nil
}

// eventsOf finds the events of payments: by the names that their ledgers have, and by those that lead to them.
func (a *AuditSnapshot) eventsOf(ctx context.Context, payments []*AuditPayment) error {
	byID := make(map[paymentKey]*AuditPayment, len(payments))
	var accounts, names []string
	for _, p := range payments {
		k := paymentKey{p.Account, p.ID}
		byID[k] = p
		for _, name := range slices.Concat(p.Ledger.IDs, a.extra[k]) {
			accounts, names = append(accounts, p.Account), append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	rows, _ := a.tx.Query(ctx, `
		SELECT e.* FROM (SELECT DISTINCT a, i FROM unnest($1::text[], $2::text[]) AS x(a, i)) k
		CROSS JOIN LATERAL (
			SELECT `+auditEventColumns+` FROM processed_events e WHERE e.account_id = k.a AND e.payment = k.i OFFSET 0) e`, accounts, names)
	events, err := pgx.CollectRows(rows, scanAuditEvent)
	if err != nil {
		return err
	}
	var b pgx.Batch
	queueBases(&b, events)
	leads := queueLeads(&b, events)
	if err := send(ctx, a.tx, &b); err != nil {
		return err
	}
	a.follow(events, leads)
	for _, e := range events {
		for _, root := range e.roots {
			p := byID[paymentKey{e.Account, root}]
			switch {
			case p == nil: // another payment of that name, in another name space, or merged away from here
			case len(e.roots) == 1:
				p.Events = append(p.Events, e)
			default:
				p.Apart = append(p.Apart, e)
			}
		}
	}
	for _, p := range payments {
		slices.SortFunc(p.Events, (*AuditEvent).compare)
		slices.SortFunc(p.Apart, (*AuditEvent).compare)
	}
	return nil
}

func (e *AuditEvent) compare(f *AuditEvent) int {
	return e.item.key().compare(f.item.key())
}

// refsOf finds the orders that payments may belong to, by account and reference.
func (a *AuditSnapshot) refsOf(ctx context.Context, payments []*AuditPayment) (map[string]map[string]uuid.UUID, error) {
	var set orderSet
	name := func(account, ref string) {
		if ref != "" {
			set.refAccounts, set.refs = append(set.refAccounts, account), append(set.refs, ref)
		}
	}
	for _, p := range payments {
		name(p.Account, p.Ledger.Link.Ref)
		name(p.Account, p.Ledger.Person.Ref)
		for _, e := range slices.Concat(p.Events, p.Apart) {
			name(p.Account, e.Event.Reference)
		}
	}
	found := map[string]map[string]uuid.UUID{}
	if len(set.refs) == 0 {
		return found, nil
	}
	rows, _ := a.tx.Query(ctx, `
		SELECT k.a, k.r, q.id FROM (SELECT DISTINCT a, r FROM unnest($1::text[], $2::text[]) AS x(a, r)) k
		CROSS JOIN LATERAL (SELECT q.id FROM orders q WHERE q.account_id = k.a AND q.external_ref = k.r LIMIT 1) q`, set.refAccounts, set.refs)
	var (
		account, ref string
		id           uuid.UUID
	)
	_, err := pgx.ForEachRow(rows, []any{&account, &ref, &id}, func() error {
		if found[account] == nil {
			found[account] = map[string]uuid.UUID{}
		}
		found[account][ref] = id
		return nil
	})
	return found, err
}
