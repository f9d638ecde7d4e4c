package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// work does what every order owes, as a merchant that always says yes.
func work(t *testing.T, s *store.Store, pool *pgxpool.Pool) {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT account_id, id FROM orders WHERE wake_at IS NOT NULL ORDER BY 1, 2`)
	require.NoError(t, err)
	type key struct {
		Account string
		ID      uuid.UUID
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
	require.NoError(t, err)
	for _, k := range due {
		l, err := s.Look(t.Context(), k.Account, k.ID, time.Minute)
		require.NoError(t, err)
		for c := l.Claim; c != nil; {
			out, err := s.Settle(t.Context(), *c, store.Answer{Done: true}, time.Minute)
			require.NoError(t, err)
			c = out.Next
		}
	}
}
