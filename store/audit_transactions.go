package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Transactions calls each with all transactions of an account, by id, a page at a time.
func (a *AuditSnapshot) Transactions(ctx context.Context, account string, each func([]Transaction) error) error {
	var last uuid.UUID
	for {
		rows, _ := a.tx.Query(ctx, sqlTransactions+` WHERE t.account_id = $1 AND t.id > $2 ORDER BY t.id LIMIT $3`, account, last, auditPage)
		page, err := pgx.CollectRows(rows, scanTransaction)
		if err != nil {
			return fmt.Errorf("read transactions of account %s: %w", account, err)
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
