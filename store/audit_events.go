package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// AuditEvent is a row of processed_events, and where its pointers lead.
type AuditEvent struct {
	EventKey             // its ID as it is stored: with #hash where the id came again with other facts
	Event    order.Event // what its facts say; its ID as the gateway gave it

	Unreadable string // why the facts cannot be read; Event then holds the columns alone

	OnUnknown      OnUnknown
	Payment        string // the column by which the events of a payment are found; empty: none
	Outcome        Outcome
	Reason         string
	Order          uuid.UUID // zero: none
	Before, After  int       // the order's version; 0: none
	MappingVersion int
	Received       time.Time

	// HashFits reports whether facts_hash is that of its facts. It is true as well where nobody can tell: of details of the
	// merchant, which are not kept to the byte, and of renewals, whose own reference gave way to that of their period.
	HashFits bool

	Twin     bool // the id had come before with other facts
	TwinFits bool // and those have another hash still; true where the first one is gone

	// The following are filled where events are read by themselves ([AuditSnapshot.Events]).

	Reread       bool // its facts were replaced once ([Store.Reevaluate])
	OrderVersion int  // of Order; 0: there is no such order
	Rows         []AuditRowOf
	Bytes        *AuditBytes // nil: they were not asked for, or it has none

	roots []uuid.UUID // the payments that its ids lead to, without repetition
	item  *item
	hash  []byte
}

// AuditRowOf is a version of an event's order between Before and After, and the event that it names as its cause.
type AuditRowOf struct {
	Version    int
	Source, ID string
}

// AuditBytes is what the kept bytes of an event say today.
type AuditBytes struct {
	Same  bool
	Code  string // where they were not read: one of the Skip constants
	Why   string // for people
	Today EventMeaning
}

// Folds reports whether the event's facts count for its payment.
func (e *AuditEvent) Folds() bool {
	return e.Unreadable == "" && e.item.folds() && (e.Outcome != Waiting || e.Reason != ReasonSourcePaused)
}

// Roots are the payments that the event's ids lead to: one, or several that stay apart.
func (e *AuditEvent) Roots() []uuid.UUID { return e.roots }

// Meaning is what the event is taken to say, as [AuditBytes] shows it.
func (e *AuditEvent) Meaning() EventMeaning {
	return meaningAt(e.item, "", e.Outcome, e.Reason, int16(e.MappingVersion)) //nolint:gosec // it was read from a smallint
}

const auditEventColumns = heldColumns + `, coalesce(e.payment, ''), coalesce(e.order_version_before, 0), coalesce(e.order_version_after, 0)`

func scanAuditEvent(row pgx.CollectableRow) (*AuditEvent, error) {
	var (
		e       AuditEvent
		s       scannedEvent
		ord     pgtype.UUID
		mapping int16
	)
	err := row.Scan(&e.Account, &e.Source, &s.id, &s.typ, &s.realm, &s.at, &s.doc, &e.hash, &mapping, &e.Outcome, &e.Reason, &ord, &e.Received,
		&e.Payment, &e.Before, &e.After)
	if err != nil {
		return nil, err
	}
	e.ID, e.Order, e.MappingVersion = s.id, ord.Bytes, int(mapping)
	e.item, e.Unreadable = s.strictItem(e.Account, e.Source)
	e.Event, e.OnUnknown = e.item.Event.Event, e.item.OnUnknown
	e.Twin, e.TwinFits = e.item.id != e.item.ID, true
	e.HashFits = e.Unreadable != "" || hashFits(e.item.Event, e.hash)
	return &e, nil
}

// strictItem is item with facts that this program would have entered, or without facts and why not. What it does not know is of a
// newer program, and cannot be judged by it.
func (s scannedEvent) strictItem(account, source string) (it *item, unreadable string) {
	var m meaning
	dec := json.NewDecoder(bytes.NewReader(s.doc))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&m); err != nil {
		return s.itemOf(account, source, meaning{}), err.Error()
	}
	it = s.itemOf(account, source, m)
	if err := checkStorable(it.Event); err != nil {
		return s.itemOf(account, source, meaning{}), err.Error()
	}
	return it, ""
}

// hashFits reports whether hash can be that of what e says.
func hashFits(e *Event, hash []byte) bool {
	if c := e.Command; c != nil && (c.Details != nil || c.Amend != nil && c.Amend.Details != nil) {
		return true
	}
	if hashes(meaningOf(e), hash) {
		return true
	}
	if e.Renewal == nil {
		return false
	}
	for _, name := range e.Renewal.Of {
		if strings.HasPrefix(e.Reference, OrderRef(name, "")) {
			return true // the reference that it came with is not kept
		}
	}
	return false
}

func hashes(m meaning, hash []byte) bool {
	said, err := json.Marshal(m)
	if err != nil {
		return false
	}
	// Bytes that were no text were written as an escape, which Postgres has made a character.
	for _, doc := range [][]byte{said, bytes.ReplaceAll(said, []byte("\uFFFD"), []byte(`\ufffd`))} {
		if sum := sha256.Sum256(doc); bytes.Equal(sum[:hashSize], hash) {
			return true
		}
	}
	return false
}

// Events calls each with all events of an account, by key, a page at a time, with all that their pointers lead to. What leads
// astray is told by [AuditSnapshot.Strays] afterwards.
func (a *AuditSnapshot) Events(ctx context.Context, account string, each func([]*AuditEvent) error) error {
	var source, id string
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT `+auditEventColumns+` FROM processed_events e
			WHERE e.account_id = $1 AND (e.source_id, e.event_id) > ($2, $3)
			ORDER BY e.source_id, e.event_id LIMIT $4`, account, source, id, auditPage)
		page, err := pgx.CollectRows(rows, scanAuditEvent)
		if err != nil {
			return fmt.Errorf("read events of account %s: %w", account, err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := a.complete(ctx, page); err != nil {
			return fmt.Errorf("look up what events of account %s lead to: %w", account, err)
		}
		if err := each(page); err != nil {
			return err
		}
		source, id = page[len(page)-1].Source, page[len(page)-1].ID
	}
}

// EventsOf is [AuditSnapshot.Events] of some events alone.
func (a *AuditSnapshot) EventsOf(ctx context.Context, keys []EventKey, each func([]*AuditEvent) error) error {
	for len(keys) > 0 {
		n := min(len(keys), auditPage)
		page, err := a.eventsByKey(ctx, keys[:n])
		if err != nil {
			return err
		}
		if err := a.complete(ctx, page); err != nil {
			return fmt.Errorf("look up what events lead to: %w", err)
		}
		if err := each(page); err != nil {
			return err
		}
		keys = keys[n:]
	}
	return nil
}

func (a *AuditSnapshot) eventsByKey(ctx context.Context, keys []EventKey) ([]*AuditEvent, error) {
	var accounts, sources, ids []string
	for _, k := range keys {
		accounts, sources, ids = append(accounts, k.Account), append(sources, k.Source), append(ids, k.ID)
	}
	rows, _ := a.tx.Query(ctx, `
		SELECT e.* FROM (SELECT DISTINCT a, s, i FROM unnest($1::text[], $2::text[], $3::text[]) AS x(a, s, i) ORDER BY a, s, i) k
		CROSS JOIN LATERAL (
			SELECT `+auditEventColumns+` FROM processed_events e
			WHERE e.account_id = k.a AND e.source_id = k.s AND e.event_id = k.i LIMIT 1) e`, accounts, sources, ids)
	page, err := pgx.CollectRows(rows, scanAuditEvent)
	if err != nil {
		return nil, fmt.Errorf("read events by key: %w", err)
	}
	return page, nil
}

// complete fills in where the pointers of events lead.
func (a *AuditSnapshot) complete(ctx context.Context, page []*AuditEvent) error {
	var b pgx.Batch
	queueReread(&b, page)
	queueOrderVersions(&b, page)
	queueRowsOf(&b, page)
	queueBases(&b, page)
	leads := queueLeads(&b, page)
	if err := send(ctx, a.tx, &b); err != nil {
		return err
	}
	a.follow(page, leads)
	a.noteStrays(page, leads)
	return a.readBytes(ctx, page)
}

// queueReread asks which events were read again.
func queueReread(b *pgx.Batch, page []*AuditEvent) {
	accounts, sources, ids := auditKeys(page)
	b.Queue(`
		SELECT x.n - 1 FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS x(a, s, i, n)
		WHERE EXISTS (SELECT FROM event_meanings m WHERE m.account_id = x.a AND m.source_id = x.s AND m.event_id = x.i)`,
		accounts, sources, ids).Query(func(rows pgx.Rows) error {
		var n int64
		_, err := pgx.ForEachRow(rows, []any{&n}, func() error {
			page[n].Reread = true
			return nil
		})
		return err
	})
}

func auditKeys(page []*AuditEvent) (accounts, sources, ids []string) {
	for _, e := range page {
		accounts, sources, ids = append(accounts, e.Account), append(sources, e.Source), append(ids, e.ID)
	}
	return accounts, sources, ids
}

// queueOrderVersions asks for the orders that events point at.
func queueOrderVersions(b *pgx.Batch, page []*AuditEvent) {
	var (
		accounts []string
		orders   []pgtype.UUID
	)
	for _, e := range page {
		accounts, orders = append(accounts, e.Account), append(orders, pgUUID(e.Order))
	}
	b.Queue(`
		SELECT x.n - 1, o.version FROM unnest($1::text[], $2::uuid[]) WITH ORDINALITY AS x(a, i, n)
		CROSS JOIN LATERAL (SELECT o.version FROM orders o WHERE o.account_id = x.a AND o.id = x.i LIMIT 1) o`,
		accounts, orders).Query(func(rows pgx.Rows) error {
		var (
			n       int64
			version int
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &version}, func() error {
			page[n].OrderVersion = version
			return nil
		})
		return err
	})
}

// queueRowsOf asks for the versions that events say they led from and to.
func queueRowsOf(b *pgx.Batch, page []*AuditEvent) {
	var (
		accounts      []string
		orders        []pgtype.UUID
		before, after []int32
	)
	for _, e := range page {
		accounts, orders = append(accounts, e.Account), append(orders, pgUUID(e.Order))
		before, after = append(before, int32(e.Before)), append(after, int32(e.After)) //nolint:gosec // they were read from an int
	}
	b.Queue(`
		SELECT x.n - 1, t.version, coalesce(t.source_id, ''), coalesce(t.event_id, '')
		FROM unnest($1::text[], $2::uuid[], $3::int[], $4::int[]) WITH ORDINALITY AS x(a, i, v, w, n)
		CROSS JOIN LATERAL (
			SELECT t.version, t.source_id, t.event_id FROM order_transitions t
			WHERE t.account_id = x.a AND t.order_id = x.i AND t.version BETWEEN x.v AND x.w
			ORDER BY t.version OFFSET 0) t`, accounts, orders, before, after).Query(func(rows pgx.Rows) error {
		var (
			n int64
			r AuditRowOf
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &r.Version, &r.Source, &r.ID}, func() error {
			page[n].Rows = append(page[n].Rows, r)
			return nil
		})
		return err
	})
}

// queueBases asks what came first under ids that came again.
func queueBases(b *pgx.Batch, page []*AuditEvent) {
	var twins []*AuditEvent
	var accounts, sources, ids []string
	for _, e := range page {
		if e.Twin {
			twins = append(twins, e)
			accounts, sources, ids = append(accounts, e.Account), append(sources, e.Source), append(ids, e.Event.ID)
		}
	}
	if len(twins) == 0 {
		return
	}
	b.Queue(sqlKnownEvents, accounts, sources, ids).Query(func(rows pgx.Rows) error {
		var (
			n       int64
			hash    []byte
			ord     pgtype.UUID
			version *int
		)
		_, err := pgx.ForEachRow(rows, []any{&n, &hash, &ord, &version}, func() error {
			twins[n].TwinFits = !bytes.Equal(hash, twins[n].hash)
			return nil
		})
		return err
	})
}

// readBytes reads the kept bytes of events, where that is asked for.
func (a *AuditSnapshot) readBytes(ctx context.Context, page []*AuditEvent) error {
	if a.reader == nil {
		return nil
	}
	var turn []*heldEvent
	var of []*AuditEvent
	for _, e := range page {
		if e.Source == APISource || e.Unreadable != "" {
			continue
		}
		turn = append(turn, &heldEvent{
			key: eventKey{e.Account, e.Source, e.ID}, item: e.item, hash: e.hash, outcome: e.Outcome, reason: e.Reason, received: e.Received,
		})
		of = append(of, e)
	}
	if len(turn) == 0 {
		return nil
	}
	today, err := a.reader.reread(ctx, turn)
	if err != nil {
		return err
	}
	for i, t := range today {
		b := &AuditBytes{Code: t.code, Why: t.why}
		of[i].Bytes = b
		if t.code != "" {
			continue
		}
		// What an event renews depends on what recurs today, and what is stored on what did then.
		named := *t.item
		named.Event = &t.next
		for _, it := range []*item{t.item, &named} {
			same, err := t.held.means(it)
			if err != nil {
				return err
			}
			b.Same = b.Same || same
		}
		b.Today = meaningAt(t.item, "", "", "", t.next.MappingVersion)
	}
	return nil
}
