package fault_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/fault"
	"github.com/paidonce/paidonce/store/storetest"
)

// insert enters n orders in one statement.
func insert(ctx context.Context, pool interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, n int,
) error {
	_, err := pool.Exec(ctx, `
		INSERT INTO orders (account_id, id, external_ref)
		SELECT 'a', gen_random_uuid(), gen_random_uuid()::text FROM generate_series(1, $1)`, n)
	return err
}

func count(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	var n int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&n))
	return n
}

func install(t *testing.T, pool *pgxpool.Pool, s fault.Spec) *fault.Fault {
	t.Helper()
	s.Verb, s.Table = "INSERT", "orders"
	f, err := fault.Install(t.Context(), pool, s)
	require.NoError(t, err)
	return f
}

func requireState(t *testing.T, err error, state string) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, state, pg.Code)
}

func TestFaults(t *testing.T) {
	t.Parallel()

	t.Run("SQLErrorForTheFirstTimes", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		f := install(t, pool, fault.Spec{Kind: fault.SQLError, SQLState: "55P03", Times: 2})
		for range 2 {
			requireState(t, insert(t.Context(), pool, 3), "55P03")
		}
		require.NoError(t, insert(t.Context(), pool, 3))
		require.Equal(t, 3, count(t, pool))
		fired, err := f.Fired(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, fired, int64(2))
	})

	t.Run("SkipSparesTheFirst", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		f := install(t, pool, fault.Spec{Kind: fault.SQLError, SQLState: "P0001", Skip: 2, Times: 1})
		require.NoError(t, insert(t.Context(), pool, 1))
		require.NoError(t, insert(t.Context(), pool, 1))
		spent, err := f.Spent(t.Context())
		require.NoError(t, err)
		require.False(t, spent)
		requireState(t, insert(t.Context(), pool, 1), "P0001")
		require.NoError(t, insert(t.Context(), pool, 1))
		spent, err = f.Spent(t.Context())
		require.NoError(t, err)
		require.True(t, spent)
	})

	t.Run("SQLErrorUntilCleared", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		f := install(t, pool, fault.Spec{Kind: fault.SQLError, SQLState: "P0001"})
		for range 3 {
			requireState(t, insert(t.Context(), pool, 1), "P0001")
		}
		require.NoError(t, f.Clear(t.Context()))
		require.NoError(t, insert(t.Context(), pool, 1))
	})

	t.Run("SQLDelayOncePerStatement", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		install(t, pool, fault.Spec{Kind: fault.SQLDelay, Delay: 200 * time.Millisecond, Times: 2})
		took := func() time.Duration {
			start := time.Now()
			require.NoError(t, insert(t.Context(), pool, 20))
			return time.Since(start)
		}
		for range 2 {
			first := took()
			require.GreaterOrEqual(t, first, 200*time.Millisecond)
			require.Less(t, first, 4*time.Second)
		}
		var sleeps int
		require.NoError(t, pool.QueryRow(t.Context(), `SELECT last_value FROM faults.count_1`).Scan(&sleeps))
		require.Equal(t, 2, sleeps)
	})

	t.Run("KillConnectionAtCommit", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		install(t, pool, fault.Spec{Kind: fault.KillConnection, Times: 1})
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, insert(t.Context(), tx, 1)) // the statement itself is well
		requireState(t, tx.Commit(t.Context()), "57P01")
		require.Equal(t, 0, count(t, pool))
		require.NoError(t, insert(t.Context(), pool, 1))
		require.Equal(t, 1, count(t, pool))
	})

	t.Run("HoldCommitOfOneProcess", func(t *testing.T) {
		t.Parallel()
		url := storetest.OpenURL(t)
		pool, err := pgxpool.New(t.Context(), url)
		require.NoError(t, err)
		t.Cleanup(pool.Close)
		f := install(t, pool, fault.Spec{Kind: fault.HoldCommit, Process: "serve-1"})
		require.NoError(t, insert(t.Context(), pool, 1)) // another process
		pid, err := f.Held(t.Context())
		require.NoError(t, err)
		require.Zero(t, pid)

		config, err := pgx.ParseConfig(url)
		require.NoError(t, err)
		config.RuntimeParams["options"] = fmt.Sprintf("-c %s=serve-1", fault.ProcessSetting)
		conn, err := pgx.ConnectConfig(t.Context(), config)
		require.NoError(t, err)
		defer conn.Close(context.WithoutCancel(t.Context()))
		done := make(chan error, 1)
		go func() { done <- insert(t.Context(), conn, 1) }()
		require.Eventually(t, func() bool {
			pid, err = f.Held(t.Context())
			require.NoError(t, err)
			return pid != 0
		}, fault.HoldTime, time.Millisecond)
		require.NoError(t, f.Clear(t.Context()))
		require.NoError(t, fault.Terminate(t.Context(), pool, pid))
		require.Error(t, <-done)
		require.Equal(t, 1, count(t, pool))
	})

	t.Run("UnknownNamesAreRefused", func(t *testing.T) {
		t.Parallel()
		pool := storetest.Open(t)
		for _, s := range []fault.Spec{
			{Kind: fault.SQLError, Verb: "DELETE", Table: "orders"},
			{Kind: fault.SQLError, Verb: "INSERT", Table: "orders; DROP TABLE orders"},
			{Kind: "sql_eror", Verb: "INSERT", Table: "orders"},
		} {
			_, err := fault.Install(t.Context(), pool, s)
			require.Error(t, err)
		}
	})
}
