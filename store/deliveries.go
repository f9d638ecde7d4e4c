package store

import (
	"context"
	"fmt"
	"slices"
)

// EventKey names an event: the thing that happens once.
type EventKey struct{ Account, Source, ID string }

// CountDeliveries adds repeated deliveries to their events. Ids that are not stored are passed over.
func (s *Store) CountDeliveries(ctx context.Context, counts map[EventKey]int) error {
	keys := make([]eventKey, 0, len(counts))
	for k := range counts {
		keys = append(keys, eventKey{k.Account, k.Source, k.ID})
	}
	slices.SortFunc(keys, eventKey.compare)
	var accounts, sources, ids []string
	var n []int32
	for _, k := range keys {
		accounts, sources, ids = append(accounts, k.account), append(sources, k.source), append(ids, k.id)
		n = append(n, int32(counts[EventKey{k.account, k.source, k.id}]))
	}
	_, err := retry(ctx, &s.retried, func() (struct{}, error) {
		_, err := s.pool.Exec(ctx, `
			WITH x AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::int[]) AS x(account, source, id, n)),
			held AS MATERIALIZED (
				SELECT e.account_id, e.source_id, e.event_id, x.n
				FROM x JOIN processed_events e ON e.account_id = x.account AND e.source_id = x.source AND e.event_id = x.id
				ORDER BY e.account_id, e.source_id, e.event_id
				FOR NO KEY UPDATE OF e)
			UPDATE processed_events e
			SET deliveries = e.deliveries + h.n, last_delivered_at = now()
			FROM held h
			WHERE e.account_id = h.account_id AND e.source_id = h.source_id AND e.event_id = h.event_id`,
			accounts, sources, ids, n)
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("count repeated deliveries of %d events: %w", len(counts), err)
	}
	return nil
}
