package idempotency_test

import (
	"context"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// describe lists columns, constraints, indexes and settings of the table.
func describe(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `
		SELECT format('column %s %s null=%s default=%s', attname, format_type(atttypid, atttypmod), NOT attnotnull, pg_get_expr(adbin, adrelid))
		FROM pg_attribute LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
		WHERE attrelid = 'idempotency_keys'::regclass AND attnum > 0
		UNION ALL SELECT format('constraint %s %s', conname, pg_get_constraintdef(oid)) FROM pg_constraint WHERE conrelid = 'idempotency_keys'::regclass
		UNION ALL SELECT indexdef FROM pg_indexes WHERE tablename = 'idempotency_keys'
		UNION ALL SELECT array_to_string(reloptions, ' ') FROM pg_class WHERE oid = 'idempotency_keys'::regclass
		ORDER BY 1`)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return lines
}

func openEmpty(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), storetest.OpenEmpty(t))
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

func TestMigrateMakesWhatTheProgramsMigrationMakes(t *testing.T) {
	t.Parallel()
	alone := openEmpty(t)
	require.NoError(t, idempotency.Migrate(t.Context(), alone))
	lines := describe(t, alone)
	require.Greater(t, len(lines), 30)
	require.Equal(t, describe(t, storetest.Open(t)), lines)

	migration, err := os.ReadFile("../migrations/00005_idempotency_keys.sql")
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(migration), "-- +goose Up\n\n"+idempotency.Schema), "the statements must be the same, to the byte")
}

func TestMigrateTwiceAndAtOnce(t *testing.T) {
	t.Parallel()
	pool := openEmpty(t)
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { errs[i] = idempotency.Migrate(context.Background(), pool) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	b := benchOn(t, pool, nil)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), 201)
	require.NoError(t, idempotency.Migrate(t.Context(), pool))
	require.Equal(t, 1, b.keys(), "migrating again keeps what is there")
}

// The columns that the payments guide's schema names, by name and type.
func TestColumnsOfTheGuide(t *testing.T) {
	t.Parallel()
	lines := strings.Join(describe(t, storetest.Open(t)), "\n")
	for _, want := range []string{
		"column id uuid null=f default=gen_random_uuid()",
		"column idempotency_key character varying(255) null=f",
		"column user_id uuid null=f",
		"column request_path character varying(500) null=f",
		"column request_hash character varying(64) null=f",
		"column status character varying(20) null=f default='PROCESSING'::character varying",
		"column response_code integer null=t",
		"column response_body jsonb null=t",
		"column resource_id uuid null=t",
		"column resource_type character varying(100) null=t",
		"column locked_at timestamp with time zone null=t",
		"column expires_at timestamp with time zone null=f",
		"column created_at timestamp with time zone null=f default=now()",
		"constraint uq_idempotency_user_key UNIQUE (account_id, scope_kind, user_id, idempotency_key)",
		"INDEX idx_idempotency_expires ON public.idempotency_keys USING btree (expires_at) WHERE ((status)::text <> 'PROCESSING'::text)",
	} {
		require.Contains(t, lines, want)
	}
}

// What no code path writes cannot be written by hand either: an answer without a status would be 409 for ever.
func TestConstraints(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	executed(t, post("k", `{}`).to(b.strict(b.effect)), 201)
	for constraint, change := range map[string]string{
		"idempotency_keys_completed": `response_code = NULL`,
		"idempotency_keys_status":    `status = 'DONE'`,
		"idempotency_keys_lock":      `locked_at = now()`,
		"idempotency_keys_bound":     `hash_bound = false`,
	} {
		_, err := b.pool.Exec(t.Context(), `UPDATE idempotency_keys SET `+change)
		require.ErrorContains(t, err, constraint)
	}
}
