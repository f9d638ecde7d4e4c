package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// SourceKey names a source of an account.
type SourceKey struct{ Account, ID string }

// Receipt says when a source received an event; there may be later ones, by two hours at most.
type Receipt struct {
	SourceKey
	At time.Time
}

// NoteReceived remembers that sources receive events now.
func (s *Store) NoteReceived(ctx context.Context, sources []SourceKey) error {
	accounts, ids := columns(sources)
	// At most two writes per source and hour, however many processes call; in key order, as all locks are taken.
	_, err := s.pool.Exec(ctx, `
		INSERT INTO sources (account_id, id)
		SELECT account, id FROM unnest($1::text[], $2::text[]) AS x(account, id) ORDER BY account, id
		ON CONFLICT (account_id, id) DO UPDATE SET last_received_at = now()
		WHERE sources.last_received_at < now() - interval '30 minutes'`, accounts, ids)
	if err != nil {
		return fmt.Errorf("note which sources receive: %w", err)
	}
	return nil
}

// ReceivedBesides returns the sources that are not among those given and received an event within the time before now,
// by account and id.
func (s *Store) ReceivedBesides(ctx context.Context, sources []SourceKey, within time.Duration) ([]Receipt, error) {
	accounts, ids := columns(sources)
	rows, _ := s.pool.Query(ctx, `
		SELECT account_id, id, last_received_at FROM sources
		WHERE last_received_at > now() - make_interval(secs => $3)
			AND (account_id, id) NOT IN (SELECT account, source FROM unnest($1::text[], $2::text[]) AS x(account, source))
		ORDER BY account_id, id`, accounts, ids, within.Seconds())
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r Receipt, err error) {
		return r, row.Scan(&r.Account, &r.ID, &r.At)
	})
	if err != nil {
		return nil, fmt.Errorf("look for sources that receive: %w", err)
	}
	return found, nil
}

func columns(sources []SourceKey) (accounts, ids []string) {
	accounts, ids = []string{}, []string{}
	sorted := slices.SortedFunc(slices.Values(sources), func(a, b SourceKey) int {
		return strings.Compare(a.Account+"\x00"+a.ID, b.Account+"\x00"+b.ID)
	})
	for _, k := range slices.Compact(sorted) {
		accounts, ids = append(accounts, k.Account), append(ids, k.ID)
	}
	return accounts, ids
}
