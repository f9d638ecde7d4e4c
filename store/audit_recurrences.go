package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// auditRecurrences is how many recurrences one page holds: each may have many orders.
const auditRecurrences = 50

// Recurrences calls each with all recurrences of an account, by id, a page at a time.
func (a *AuditSnapshot) Recurrences(ctx context.Context, account string, each func([]Recurrence) error) error {
	var last uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, `
			SELECT `+recurrenceColumns+` FROM recurrences r WHERE r.account_id = $1 AND r.id > $2 ORDER BY r.id LIMIT $3`, account, last, auditRecurrences)
		page, err := pgx.CollectRows(rows, scanRecurrence)
		if err != nil {
			return fmt.Errorf("read recurrences of account %s: %w", account, err)
		}
		if len(page) == 0 {
			return nil
		}
		if err := each(page); err != nil {
			return err
		}
		last = page[len(page)-1].ID
	}
}

// Registered reports which orders of these references there are, and whether each was registered.
func (a *AuditSnapshot) Registered(ctx context.Context, account string, refs []string) (map[string]bool, error) {
	rows, _ := a.tx.Query(ctx, `
		SELECT x.r, o.registered FROM unnest($2::text[]) AS x(r)
		CROSS JOIN LATERAL (SELECT o.registered FROM orders o WHERE o.account_id = $1 AND o.external_ref = x.r LIMIT 1) o`, account, refs)
	found := map[string]bool{}
	var (
		ref        string
		registered bool
	)
	_, err := pgx.ForEachRow(rows, []any{&ref, &registered}, func() error {
		found[ref] = registered
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find %d orders of account %s: %w", len(refs), account, err)
	}
	return found, nil
}
