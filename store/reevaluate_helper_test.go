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

// bgContext is for helpers that also serve tests of rapid, which have no context of their own.
var bgContext = context.Background()

// work does what every order owes, as a merchant that always says yes.
func work(t *testing.T, s *store.Store, pool *pgxpool.Pool) {
	t.Helper()
	workAccount(t, s, pool, account)
}

func workAccount(t require.TestingT, s *store.Store, pool *pgxpool.Pool, acct string) {
	rows, err := pool.Query(bgContext, `SELECT id FROM orders WHERE account_id = $1 AND wake_at IS NOT NULL ORDER BY 1`, acct)
	require.NoError(t, err)
	due, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	require.NoError(t, err)
	for _, id := range due {
		l, err := s.Look(bgContext, acct, id, time.Minute)
		require.NoError(t, err)
		for c := l.Claim; c != nil; {
			out, err := s.Settle(bgContext, *c, store.Answer{Done: true}, time.Minute)
			require.NoError(t, err)
			c = out.Next
		}
	}
}
