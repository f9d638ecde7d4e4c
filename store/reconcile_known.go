package store

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/order"
)

// Knowledge is what is known of an event that stands in a gateway's list.
type Knowledge string

// The kinds of knowledge.
const (
	EventNew   Knowledge = "new"   // nobody has brought it
	EventKnown Knowledge = "known" // it was entered

	// EventReworded: its id is known with other facts, which change nothing of what its payment comes to: a list may tell an event in
	// other words than a webhook does, such as those of another version of the API. Or the facts of the stored one were read by
	// another mapping, and are to be read again ([Store.Reevaluate]) rather than joined.
	EventReworded Knowledge = "reworded"

	// EventDiffers: its id is known with other facts, which say more of its payment than is known.
	EventDiffers Knowledge = "differs"
)

const sqlKnown = `
	SELECT x.n - 1, e.event_id = x.id, e.facts_hash, e.mapping_version
	FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS x(id, reused, n)
	CROSS JOIN unnest($4::text[]) AS s(id)
	CROSS JOIN LATERAL (
		SELECT e.event_id, e.facts_hash, e.mapping_version FROM processed_events e
		WHERE e.account_id = $3 AND e.source_id = s.id AND e.event_id IN (x.id, x.reused)) e`

// KnownEvents says of events of one account what is known of each, in the order given. sources are those that know the same payments:
// what one of them has received the others need not. It writes nothing and takes no lock, and the answer may be out of date at once:
// entering an event that is known changes nothing. The error is an [*EventError] for an event that cannot be stored.
func (s *Store) KnownEvents(ctx context.Context, sources []string, events []Event) ([]Knowledge, error) {
	if len(events) == 0 {
		return nil, nil
	}
	items, err := newItems(events)
	if err != nil {
		return nil, err
	}
	var (
		ids, reused []string
		out         = make([]Knowledge, len(items))
	)
	for i, it := range items {
		out[i] = EventNew
		ids, reused = append(ids, it.id), append(reused, it.id+"#"+hex.EncodeToString(it.hash))
	}
	var (
		b       pgx.Batch
		n       int
		own     bool
		hash    []byte
		mapping int16
	)
	b.Queue("BEGIN READ ONLY")
	b.Queue(sqlSettings)
	b.Queue(sqlKnown, ids, reused, items[0].Account, sources).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&n, &own, &hash, &mapping}, func() error {
			switch {
			case !own || bytes.Equal(hash, items[n].hash):
				out[n] = EventKnown
			case out[n] == EventKnown:
			case mapping != max(items[n].MappingVersion, 1):
				out[n] = EventReworded
			case out[n] == EventNew:
				out[n] = EventDiffers
			}
			return nil
		})
		return err
	})
	b.Queue("COMMIT")
	if err := s.inPipe(ctx, func(tx *pipedTx) error { return send(ctx, tx, &b) }); err != nil {
		return nil, fmt.Errorf("look %d events up: %w", len(items), err)
	}
	for i, it := range items {
		if out[i] != EventDiffers {
			continue
		}
		l, err := s.paymentLedger(ctx, it.Account, it.Realm, it.Payment)
		if err != nil {
			return nil, err
		}
		if !l.Learns(it.Event.Event) {
			out[i] = EventReworded
		}
	}
	return out, nil
}

// paymentLedger returns what is known of the payment of these ids: an empty ledger if nothing is. Where they lead to several payments,
// all that is known of any.
func (s *Store) paymentLedger(ctx context.Context, account, realm string, ids []string) (*order.Ledger, error) {
	l := order.NewLedger()
	var accounts, realms []string
	for range ids {
		accounts, realms = append(accounts, account), append(realms, realm)
	}
	rows, _ := s.pool.Query(ctx, withRoots+`
		SELECT DISTINCT ON (p.id) p.id, p.ledger FROM r JOIN payments p ON p.account_id = r.a AND p.id = r.id WHERE r.up IS NULL ORDER BY p.id`,
		accounts, realms, ids)
	var (
		id  uuid.UUID
		doc []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &doc}, func() error {
		one := order.NewLedger()
		if err := one.UnmarshalJSON(doc); err != nil {
			return err
		}
		l.Merge(one)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the payment %q: %w", ids, err)
	}
	return l, nil
}
