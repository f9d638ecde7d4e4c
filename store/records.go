package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// ErrNotFound says that there is no row of that name.
var ErrNotFound = errors.New("not found")

// Order is an order as it stands. Amounts are minor units of Currency.
type Order struct {
	Account      string          `json:"account"`
	ID           uuid.UUID       `json:"id"`
	Ref          string          `json:"external_ref"`
	Registered   bool            `json:"registered"` // by the merchant's API
	RegisteredAt *time.Time      `json:"registered_at"`
	Total        *int64          `json:"total"` // nil: a stub
	Currency     *string         `json:"currency"`
	Canceled     bool            `json:"canceled"`
	ExpiresAt    *time.Time      `json:"expires_at,omitempty"` // until when it should be paid
	Dismissed    []string        `json:"dismissed,omitempty"`  // flags that a person has dealt with; not among Flags
	Details      json.RawMessage `json:"details,omitempty"`    // what else the merchant said when registering
	State        order.State     `json:"state"`
	Flags        []string        `json:"flags"`
	Want         order.Want      `json:"want"`
	Captured     int64           `json:"captured"`
	Refunded     int64           `json:"refunded"`
	Lost         int64           `json:"lost"`
	Kept         int64           `json:"kept"`
	AtRisk       int64           `json:"at_risk"`
	Authorized   int64           `json:"authorized"`
	Told         order.Told      `json:"told"`
	WakeAt       *time.Time      `json:"wake_at"`
	Version      int             `json:"version"`
	CreatedAt    time.Time       `json:"created_at"`
	UpdatedAt    time.Time       `json:"updated_at"`
}

const orderRecord = `o.account_id, o.id, o.external_ref, o.registered, o.registered_at, o.total, o.currency, o.canceled, o.expires_at, o.dismissed, o.details,
	o.state, o.flags, o.want, o.captured, o.refunded, o.lost, o.kept, o.at_risk, o.authorized, o.told, o.wake_at, o.version,
	o.created_at, o.updated_at`

// StoredEvent is an event as it was entered, and what it did.
type StoredEvent struct {
	Account         string         `json:"account"`
	Source          string         `json:"source"`
	ID              string         `json:"event_id"` // with #hash where the id came again with other facts
	Type            string         `json:"type"`
	Realm           string         `json:"realm"`
	OrderID         *uuid.UUID     `json:"order_id"`
	ReceivedAt      time.Time      `json:"received_at"`
	OccurredAt      *time.Time     `json:"occurred_at"`
	Deliveries      int            `json:"deliveries"` // a lower bound
	LastDeliveredAt time.Time      `json:"last_delivered_at"`
	Outcome         Outcome        `json:"outcome"`
	Reason          string         `json:"reason,omitempty"`
	Before          *int           `json:"order_version_before"`
	After           *int           `json:"order_version_after"`
	MappingVersion  int            `json:"mapping_version"`
	Payment         []string       `json:"payment,omitempty"` // every id the event knows its payment under
	Reference       string         `json:"reference,omitempty"`
	Strength        order.Strength `json:"strength,omitempty"`
	Renewal         *order.Renewal `json:"renewal,omitempty"` // of which period the payment is; Reference is then that of its order, if it was found
	Facts           []order.Fact   `json:"facts,omitempty"`
	Own             *order.Amount  `json:"own,omitempty"`
	Command         *order.Command `json:"command,omitempty"`
	DismissedAt     *time.Time     `json:"dismissed_at,omitempty"` // a person has dealt with it
	Fetch           string         `json:"fetch,omitempty"`        // what has to be asked about at the gateway: the event itself carries no fact
	Asking          *Asking        `json:"asking,omitempty"`       // how that stands, while the event waits for it
}

// Asking is how an object stands that the gateway is to be asked about.
type Asking struct {
	State     string     `json:"state"` // open, done or dead: given up until it is announced again
	Attempts  int        `json:"attempts"`
	NextAt    *time.Time `json:"next_at,omitempty"`
	LastError string     `json:"last_error,omitempty"`
}

const eventRecord = `e.account_id, e.source_id, e.event_id, e.type, e.realm, e.order_id, e.received_at, e.occurred_at, e.deliveries,
	e.last_delivered_at, e.outcome, coalesce(e.reason, ''), e.order_version_before, e.order_version_after, e.mapping_version, e.facts, e.dismissed_at,
	CASE WHEN e.outcome = 'waiting' AND e.facts ->> 'fetch' IS NOT NULL THEN (
		SELECT jsonb_build_object('state', f.state, 'attempts', f.attempts, 'next_at', f.next_at, 'last_error', f.last_error)
		FROM fetches f WHERE f.account_id = e.account_id AND f.source_id = e.source_id AND f.object = e.facts ->> 'fetch') END`

func scanStoredEvent(row pgx.CollectableRow) (StoredEvent, error) {
	var (
		e   StoredEvent
		doc []byte
		m   meaning
	)
	err := row.Scan(&e.Account, &e.Source, &e.ID, &e.Type, &e.Realm, &e.OrderID, &e.ReceivedAt, &e.OccurredAt, &e.Deliveries,
		&e.LastDeliveredAt, &e.Outcome, &e.Reason, &e.Before, &e.After, &e.MappingVersion, &doc, &e.DismissedAt, &e.Asking)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(doc, &m); err != nil {
		return e, fmt.Errorf("facts of event %s: %w", e.ID, err)
	}
	e.Payment, e.Reference, e.Strength, e.Facts, e.Own, e.Command = m.Payment, m.Reference, m.Strength, m.Facts, m.Own, m.Command
	e.Renewal, e.Fetch = m.Renewal, m.Fetch
	return e, nil
}

// Payment is one payment at a gateway.
type Payment struct {
	ID     uuid.UUID     `json:"id"`
	Ledger *order.Ledger `json:"ledger"`
}

// Version is one row of order_transitions: a change of an order, and the effect it asked for.
type Version struct {
	Version      int               `json:"version"`
	From         order.State       `json:"from,omitempty"`
	To           order.State       `json:"to"`
	Cause        string            `json:"cause"`
	Source       string            `json:"source,omitempty"`
	EventID      string            `json:"event_id,omitempty"`
	At           time.Time         `json:"at"`
	Kept         int64             `json:"kept"`
	Flags        []string          `json:"flags"`
	Effect       order.Effect      `json:"effect,omitempty"`
	EffectState  order.EffectState `json:"effect_state,omitempty"`
	Attempts     int               `json:"attempts,omitempty"`
	ClaimedUntil *time.Time        `json:"claimed_until,omitempty"`
	NextAt       *time.Time        `json:"next_at,omitempty"`
	SettledAt    *time.Time        `json:"settled_at,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	Why          string            `json:"why,omitempty"`
}

const versionRecord = `t.version, coalesce(t.from_state, ''), t.to_state, t.cause, coalesce(t.source_id, ''), coalesce(t.event_id, ''), t.at,
	t.kept, t.flags, coalesce(t.effect, ''), coalesce(t.effect_state, ''), t.attempts, t.claimed_until, t.next_at, t.settled_at,
	coalesce(t.last_error, ''), coalesce(t.why, '')`

// Timeline is everything that is known about one order.
type Timeline struct {
	Order    Order         `json:"order"`
	Payments []Payment     `json:"payments"`
	Events   []StoredEvent `json:"events"` // in the order in which they were received
	Versions []Version     `json:"versions"`
	Now      time.Time     `json:"now"` // the database's clock

	Transactions []Transaction `json:"transactions,omitempty"` // our calls that move its money, in the order in which they were asked for
}

// FindOrders returns the orders that name stands for: an order's id, or the merchant's reference. account "" looks in
// all. It returns ErrNotFound if there are none.
func (s *Store) FindOrders(ctx context.Context, account, name string) ([]Order, error) {
	id, err := uuid.Parse(name)
	if err != nil {
		id = uuid.Nil
	}
	rows, _ := s.pool.Query(ctx, `
		SELECT `+orderRecord+` FROM orders o
		WHERE ($1 = '' OR o.account_id = $1) AND o.account_id IN (SELECT id FROM accounts)
			AND (o.external_ref = $2 OR o.id = $3)
		ORDER BY o.account_id, o.id`, account, name, pgUUID(id))
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Order])
	if err != nil {
		return nil, fmt.Errorf("find order %q: %w", name, err)
	}
	if len(orders) == 0 {
		return nil, fmt.Errorf("order %q: %w", name, ErrNotFound)
	}
	return orders, nil
}

// Known reports whether the database has rows of an account, or of a source of it; account "" looks in all, source ""
// asks for the account alone.
func (s *Store) Known(ctx context.Context, account, source string) (bool, error) {
	var known bool
	err := s.pool.QueryRow(ctx, `
		SELECT EXISTS (
			SELECT FROM accounts a
			WHERE ($1 = '' OR a.id = $1)
				AND ($2 = '' OR EXISTS (SELECT FROM processed_events e WHERE e.account_id = a.id AND e.source_id = $2)))`,
		account, source).Scan(&known)
	if err != nil {
		return false, fmt.Errorf("look for account %q, source %q: %w", account, source, err)
	}
	return known, nil
}

// GetOrder returns one order of an account.
func (s *Store) GetOrder(ctx context.Context, account string, id uuid.UUID) (Order, error) {
	return getOrder(ctx, s.pool, account, id)
}

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func getOrder(ctx context.Context, q querier, account string, id uuid.UUID) (Order, error) {
	rows, _ := q.Query(ctx, `SELECT `+orderRecord+` FROM orders o WHERE o.account_id = $1 AND o.id = $2`, account, id)
	o, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Order])
	if errors.Is(err, pgx.ErrNoRows) {
		return o, fmt.Errorf("order %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return o, fmt.Errorf("read order %s: %w", id, err)
	}
	return o, nil
}

// Timeline returns all that is known about an order, as of one moment.
func (s *Store) Timeline(ctx context.Context, account string, id uuid.UUID) (Timeline, error) {
	var t Timeline
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		rows, _ := tx.Query(ctx, `SELECT `+orderRecord+` FROM orders o WHERE o.account_id = $1 AND o.id = $2`, account, id)
		if t.Order, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Order]); errors.Is(err, pgx.ErrNoRows) {
			return ErrNotFound
		} else if err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, `SELECT p.id, p.ledger FROM payments p WHERE p.account_id = $1 AND p.order_id = $2 ORDER BY p.id`, account, id)
		if t.Payments, err = pgx.CollectRows(rows, scanPaymentRecord); err != nil {
			return err
		}
		rows, _ = tx.Query(ctx, `SELECT `+versionRecord+` FROM order_transitions t WHERE t.account_id = $1 AND t.order_id = $2 ORDER BY t.version`,
			account, id)
		if t.Versions, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Version]); err != nil {
			return err
		}
		if t.Events, err = orderEvents(ctx, tx, &t); err != nil {
			return err
		}
		if t.Transactions, err = orderTransactions(ctx, tx, account, id); err != nil {
			return err
		}
		return tx.QueryRow(ctx, sqlClock).Scan(&t.Now)
	})
	if err != nil {
		return t, fmt.Errorf("timeline of order %s: %w", id, err)
	}
	return t, nil
}

// namedEvents is a condition that the index processed_events_named answers: events that did not simply count. $1 is the
// account, $2 the reference.
const namedEvents = `e.account_id = $1 AND e.facts ->> 'reference' = $2 AND e.outcome IN ('waiting', 'ignored', 'flagged', 'quarantined')`

// orderEvents finds an order's events by its payments' ids, those of the merchant's API by the versions they made, and
// by its name those that led to no payment of it: kept aside, ignored, or waiting.
func orderEvents(ctx context.Context, tx pgx.Tx, t *Timeline) ([]StoredEvent, error) {
	var ids, sources, events []string
	for _, p := range t.Payments {
		ids = append(ids, p.Ledger.IDs...)
	}
	for _, v := range t.Versions {
		if v.EventID != "" {
			sources, events = append(sources, v.Source), append(events, v.EventID)
		}
	}
	rows, _ := tx.Query(ctx, `
		WITH found AS (
			SELECT e.source_id, e.event_id FROM processed_events e WHERE e.account_id = $1 AND e.payment = ANY($3::text[])
			UNION
			SELECT e.source_id, e.event_id FROM processed_events e
			WHERE `+namedEvents+` AND (e.order_id IS NULL OR e.order_id = $4)
			UNION
			SELECT x.s, x.e FROM unnest($5::text[], $6::text[]) AS x(s, e))
		SELECT `+eventRecord+`
		FROM found f JOIN processed_events e ON e.account_id = $1 AND e.source_id = f.source_id AND e.event_id = f.event_id
		ORDER BY e.received_at, e.source_id, e.event_id`, t.Order.Account, t.Order.Ref, ids, pgUUID(t.Order.ID), sources, events)
	return pgx.CollectRows(rows, scanStoredEvent)
}

func scanPaymentRecord(row pgx.CollectableRow) (Payment, error) {
	var doc []byte
	p := Payment{Ledger: order.NewLedger()}
	if err := row.Scan(&p.ID, &doc); err != nil {
		return p, err
	}
	return p, json.Unmarshal(doc, p.Ledger)
}

// EventsNaming returns the events that name an order which nobody has made, because they were kept aside, ignored, or
// wait; none: no error. account and source "" look in all.
func (s *Store) EventsNaming(ctx context.Context, account, source, ref string) ([]StoredEvent, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT `+eventRecord+`
		FROM accounts a CROSS JOIN LATERAL (
			SELECT * FROM processed_events e WHERE `+strings.Replace(namedEvents, "$1", "a.id", 1)+`) e
		WHERE ($1 = '' OR a.id = $1) AND ($3 = '' OR e.source_id = $3)
		ORDER BY e.received_at, e.account_id, e.source_id, e.event_id`, account, ref, source)
	events, err := pgx.CollectRows(rows, scanStoredEvent)
	if err != nil {
		return nil, fmt.Errorf("find events that name %q: %w", ref, err)
	}
	return events, nil
}

// ReplacedMeaning is what an event was taken to mean until it was read again.
type ReplacedMeaning struct {
	EventMeaning
	Until time.Time `json:"until"`
}

// ReplacedMeanings returns what an event was taken to mean before, the first meaning first; none as a rule.
func (s *Store) ReplacedMeanings(ctx context.Context, key EventKey) ([]ReplacedMeaning, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT m.event_id, m.type, m.realm, m.occurred_at, m.facts, m.mapping_version, coalesce(m.outcome, ''), coalesce(m.reason, ''),
			coalesce(o.external_ref, ''), m.replaced_at
		FROM event_meanings m LEFT JOIN orders o ON o.account_id = m.account_id AND o.id = m.order_id
		WHERE m.account_id = $1 AND m.source_id = $2 AND m.event_id = $3
		ORDER BY m.replaced_at`, key.Account, key.Source, key.ID)
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r ReplacedMeaning, err error) {
		var (
			e       scannedEvent
			outcome Outcome
			reason  string
			ref     string
			mapping int16
		)
		if err := row.Scan(&e.id, &e.typ, &e.realm, &e.at, &e.doc, &mapping, &outcome, &reason, &ref, &r.Until); err != nil {
			return r, err
		}
		it, err := e.item(key.Account, key.Source)
		if err != nil {
			return r, err
		}
		r.EventMeaning = meaningAt(it, ref, outcome, reason, mapping)
		return r, nil
	})
	if err != nil {
		return nil, fmt.Errorf("what event %s meant: %w", key.ID, err)
	}
	return found, nil
}

// FindEvents returns the events with that id: usually one, more if several sources or accounts use it, or if it came
// again with other facts. account and source "" look in all. It returns ErrNotFound if there are none.
func (s *Store) FindEvents(ctx context.Context, account, source, id string) ([]StoredEvent, error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT `+eventRecord+` FROM processed_events e
		WHERE ($1 = '' OR e.account_id = $1) AND ($2 = '' OR e.source_id = $2)
			AND (e.event_id = $3 OR starts_with(e.event_id, $3 || '#'))
		ORDER BY e.account_id, e.source_id, e.event_id`, account, source, id)
	events, err := pgx.CollectRows(rows, scanStoredEvent)
	if err != nil {
		return nil, fmt.Errorf("find event %q: %w", id, err)
	}
	if len(events) == 0 {
		return nil, fmt.Errorf("event %q: %w", id, ErrNotFound)
	}
	return events, nil
}
