//go:build unix

package bouncertest_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store/storetest"
	"github.com/paidonce/paidonce/store/storetest/bouncertest"
)

// exec is the mode that prepares nothing by name.
var exec = map[string]string{"default_query_exec_mode": "exec"}

// One connection to the server serves two clients by turns, transaction by transaction: so it is PgBouncer that
// answers, and in transaction mode.
func TestTransactionMode(t *testing.T) {
	t.Parallel()
	url := bouncertest.Open(t, storetest.OpenEmpty(t), bouncertest.Options{PoolSize: 1, Params: exec})
	one, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer one.Close(t.Context())
	two, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer two.Close(t.Context())

	backend := func(conn *pgx.Conn) (pid int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
		return pid
	}
	require.Equal(t, backend(one), backend(two))
	tx, err := one.Begin(t.Context())
	require.NoError(t, err)
	waits := make(chan error, 1)
	go func() { waits <- two.Ping(t.Context()) }()
	_, err = tx.Exec(t.Context(), `SELECT 1`)
	require.NoError(t, err)
	require.Empty(t, waits, "the other has to wait for the end of the transaction")
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-waits)
}

// It is as strict as it comes: what a program must not rely on does not work.
func TestRefusesSessionState(t *testing.T) {
	t.Parallel()
	base := storetest.OpenEmpty(t)
	url := bouncertest.Open(t, base, bouncertest.Options{PoolSize: 1})
	_, err := pgx.Connect(t.Context(), url+"&statement_timeout=1000")
	require.ErrorContains(t, err, "statement_timeout")
	pool, err := pgxpool.New(t.Context(), url+"&default_query_exec_mode=exec")
	require.NoError(t, err)
	defer pool.Close()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT $1::int + 1`, 1).Scan(&n))
	require.Equal(t, 2, n)
}
