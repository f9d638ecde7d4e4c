package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// IncomeFilter chooses incomes; zero fields choose all.
type IncomeFilter struct {
	Account string
	Order   uuid.UUID // as they were received for
	Ref     string    // the merchant's external_ref
	Status  IncomeStatus

	CreatedFrom, CreatedUntil time.Time // from the first on, before the second

	Before uuid.UUID // of the page before: its last id
	Limit  int       // default 50, at most 1000
}

func (f IncomeFilter) conditions() (*conditions, error) {
	c := &conditions{}
	if f.Account != "" {
		c.add("i.account_id = ?", f.Account)
	}
	if f.Order != uuid.Nil {
		c.add("i.order_id = ?", f.Order)
	}
	if f.Ref != "" {
		c.add("i.external_ref = ?", f.Ref)
	}
	switch f.Status {
	case "":
	case IncomeReceived, IncomeVoided:
		c.add("i.status = '" + string(f.Status) + "'") // written out for the index of the few that are void
	default:
		return nil, fmt.Errorf("there is no status %q", f.Status)
	}
	c.created("i", f.CreatedFrom, f.CreatedUntil)
	if f.Before != uuid.Nil {
		c.add("i.id < ?", f.Before)
	}
	return c, nil
}

// ListIncomes returns incomes, newest first, and the cursor of the next page (zero: there is none).
func (s *Store) ListIncomes(ctx context.Context, f IncomeFilter) ([]Income, uuid.UUID, error) {
	limit := pageSize(f.Limit)
	c, err := f.conditions()
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list incomes: %w", err)
	}
	rows, _ := s.pool.Query(ctx, sqlIncomes+c.where()+` ORDER BY i.id DESC LIMIT `+c.arg(limit+1), c.args...)
	found, err := pgx.CollectRows(rows, scanIncome)
	if err != nil {
		return nil, uuid.Nil, fmt.Errorf("list incomes: %w", err)
	}
	if len(found) > limit {
		return found[:limit], found[limit-1].ID, nil
	}
	return found, uuid.Nil, nil
}
