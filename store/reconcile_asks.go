package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paidonce/paidonce/order"
)

// ReconcileAsk is an object that a run has its gateway asked about.
type ReconcileAsk struct {
	Object string    // kind/id
	Order  uuid.UUID // that waits; zero: the object stood in the list
}

// ToAsk returns those of the objects that stood in the list which have to be asked about: nobody has asked, with success, since the
// time up to which they are listed. fresh are those of them that nobody else has announced: what is answered about these, no webhook
// has brought.
func (s *Store) ToAsk(ctx context.Context, key SourceKey, objects []string, since time.Time) (wanted, fresh []string, err error) {
	rows, _ := s.pool.Query(ctx, `
		SELECT x.object, f.state IS DISTINCT FROM 'open'
		FROM unnest($3::text[]) WITH ORDINALITY AS x(object, n)
		LEFT JOIN fetches f ON f.account_id = $1 AND f.source_id = $2 AND f.object = x.object
		WHERE f.object IS NULL OR f.state <> 'done' OR f.asked_at < $4
		ORDER BY x.n`, key.Account, key.ID, objects, since)
	var (
		object string
		alone  bool
	)
	_, err = pgx.ForEachRow(rows, []any{&object, &alone}, func() error {
		wanted = append(wanted, object)
		if alone {
			fresh = append(fresh, object)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("find which objects of source %s to ask about: %w", key.ID, err)
	}
	return wanted, fresh, nil
}

// NoteAsks remembers what a run is about to announce, so that a later one can tell what the answers brought: all of them since it was
// announced first, though it is announced again before somebody has looked.
func (s *Store) NoteAsks(ctx context.Context, key SourceKey, asks []ReconcileAsk) error {
	var (
		objects []string
		orders  []pgtype.UUID
	)
	for _, a := range asks {
		objects, orders = append(objects, a.Object), append(orders, pgUUID(a.Order))
	}
	_, err := s.pool.Exec(ctx, `
		INSERT INTO reconcile_asks AS a (account_id, source_id, object, order_id)
		SELECT DISTINCT ON (x.o) $1, $2, x.o, x.i FROM unnest($3::text[], $4::uuid[]) AS x(o, i) ORDER BY x.o, x.i
		ON CONFLICT ON CONSTRAINT reconcile_asks_pk DO UPDATE
			SET order_id = coalesce(excluded.order_id, a.order_id)`, key.Account, key.ID, objects, orders)
	if err != nil {
		return fmt.Errorf("note what source %s is asked about: %w", key.ID, err)
	}
	return nil
}

// ReconcileAnswers are what the answers brought that earlier runs had asked for.
type ReconcileAnswers struct {
	Healed         []HealedEvent // each has moved an order
	Contradictions []Contradiction
}

// answeredAsk is an object that was asked about, as its row of fetches stands.
type answeredAsk struct {
	Object string
	Order  *uuid.UUID
	Dead   bool
	Gone   bool // its gateway does not know it
	News   bool // it was told anew since it was announced
	Told   *time.Time
}

const sqlAnsweredAsks = `
	SELECT a.object, a.order_id, f.state = 'dead', coalesce(f.failing = '` + FetchGone + `', false), coalesce(f.told_at >= a.announced_at, false), f.told_at
	FROM reconcile_asks a JOIN fetches f ON f.account_id = a.account_id AND f.source_id = a.source_id AND f.object = a.object
	WHERE a.account_id = $1 AND a.source_id = $2 AND f.state <> 'open' AND f.asked_at >= a.announced_at
	ORDER BY a.announced_at, a.object LIMIT $3`

// TakeAnswers looks at the answers to what earlier runs had asked for, at most limit, and forgets these asks. realm is the one of the
// source's payments.
func (s *Store) TakeAnswers(ctx context.Context, c ReconcileClaim, realm string, limit int) (ReconcileAnswers, error) {
	var out ReconcileAnswers
	rows, _ := s.pool.Query(ctx, sqlAnsweredAsks, c.Account, c.Source, limit)
	asks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[answeredAsk])
	if err != nil {
		return out, fmt.Errorf("find what was answered: %w", err)
	}
	objects := make([]string, 0, len(asks))
	for _, a := range asks {
		if err := s.takeAnswer(ctx, c, realm, a, &out); err != nil {
			return out, fmt.Errorf("look at what was answered about %s: %w", a.Object, err)
		}
		objects = append(objects, a.Object)
	}
	if len(objects) == 0 {
		return out, nil
	}
	_, err = s.pool.Exec(ctx, `DELETE FROM reconcile_asks WHERE account_id = $1 AND source_id = $2 AND object = ANY($3)`, c.Account, c.Source, objects)
	if err != nil {
		return out, fmt.Errorf("forget what was answered: %w", err)
	}
	return out, nil
}

// toldWithin is how long after the start of a call its answer is entered at the latest.
const toldWithin = time.Minute

const sqlAnswerEvents = `
	SELECT e.event_id, e.type, e.outcome, e.order_id, e.occurred_at, e.received_at, e.facts
	FROM processed_events e
	WHERE e.account_id = $1 AND e.source_id = $2 AND e.received_at >= $4 AND e.received_at <= $4 + $5::interval
		AND starts_with(e.event_id, $3 || ':')
	ORDER BY e.received_at, e.event_id`

type answerEvent struct {
	ID         string
	Type       string
	Outcome    *Outcome
	Order      *uuid.UUID
	OccurredAt *time.Time
	ReceivedAt time.Time
	Facts      []byte
}

func (s *Store) takeAnswer(ctx context.Context, c ReconcileClaim, realm string, a answeredAsk, out *ReconcileAnswers) error {
	if a.Dead {
		if a.Gone && a.Order != nil {
			return s.goneOrder(ctx, c, a, out)
		}
		return nil
	}
	if a.Told == nil {
		return nil
	}
	rows, _ := s.pool.Query(ctx, sqlAnswerEvents, c.Account, c.Source, a.Object, *a.Told, toldWithin)
	events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[answerEvent])
	if err != nil {
		return err
	}
	for _, e := range events {
		if e.Outcome == nil {
			continue
		}
		if *e.Outcome == Applied {
			if a.News {
				out.Healed = append(out.Healed, e.healed())
			}
			continue
		}
		if err := s.contradicted(ctx, c, realm, a, e, out); err != nil {
			return err
		}
	}
	return nil
}

func (e answerEvent) healed() HealedEvent {
	h := HealedEvent{ID: e.ID, Type: e.Type, Outcome: *e.Outcome, Order: e.Order, OccurredAt: e.OccurredAt, Asked: true}
	if e.OccurredAt != nil {
		h.Late = max(0, int64(e.ReceivedAt.Sub(*e.OccurredAt)/time.Second))
	}
	return h
}

// contradicted finds where an answer says otherwise than our ledger. If the payment was told of since, the answer is too old to say so.
func (s *Store) contradicted(ctx context.Context, c ReconcileClaim, realm string, a answeredAsk, e answerEvent, out *ReconcileAnswers) error {
	var m meaning
	if err := json.Unmarshal(e.Facts, &m); err != nil {
		return err
	}
	if len(m.Payment) == 0 {
		return nil
	}
	l, err := s.paymentLedger(ctx, c.Account, realm, m.Payment)
	if err != nil {
		return err
	}
	found := l.Contradictions(order.Event{Facts: m.Facts})
	if len(found) == 0 {
		return nil
	}
	var later bool
	err = s.pool.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM processed_events e WHERE e.account_id = $1 AND e.payment = ANY($2) AND e.realm = $3 AND e.received_at > $4)`,
		c.Account, l.IDs, realm, e.ReceivedAt).Scan(&later)
	if err != nil || later {
		return err
	}
	for _, d := range found {
		out.Contradictions = append(out.Contradictions, contradiction(a, e.Order, d))
	}
	return nil
}

func contradiction(a answeredAsk, ord *uuid.UUID, d order.Difference) Contradiction {
	of := "of the payment"
	if d.Ref != "" {
		of = "of " + d.Ref
	}
	if a.Order != nil {
		ord = a.Order
	}
	return Contradiction{
		Object: a.Object, Order: ord, What: string(d.Kind), Ours: d.Ours, Theirs: d.Theirs, Currency: d.Currency,
		Detail: fmt.Sprintf("Our ledger has %s %s of what was %s %s, the gateway says %s.", order.Format(d.Ours, d.Currency), d.Currency, d.Kind, of, order.Format(d.Theirs, d.Currency)),
	}
}

// goneOrder: the gateway does not know what it was asked about. If our ledger has money of the order, that is a contradiction.
func (s *Store) goneOrder(ctx context.Context, c ReconcileClaim, a answeredAsk, out *ReconcileAnswers) error {
	var captured int64
	var currency *string
	rows, _ := s.pool.Query(ctx, `SELECT o.captured, o.currency FROM orders o WHERE o.account_id = $1 AND o.id = $2`, c.Account, *a.Order)
	_, err := pgx.ForEachRow(rows, []any{&captured, &currency}, func() error {
		if captured > 0 {
			cur := deref(currency)
			out.Contradictions = append(out.Contradictions, Contradiction{
				Object: a.Object, Order: a.Order, What: string(order.KindCaptured), Ours: captured, Currency: cur,
				Detail: fmt.Sprintf("Our ledger has %s %s of the order, and the gateway does not know %s.", order.Format(captured, cur), cur, a.Object),
			})
		}
		return nil
	})
	return err
}
