package store_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
)

// breakTable has every such change of a table fail: at once, or only at the commit.
func breakTable(t *testing.T, pool *pgxpool.Pool, when, table string, deferred bool) {
	t.Helper()
	sql := `CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'broken on purpose'; END $$; `
	if deferred {
		sql += `CREATE CONSTRAINT TRIGGER broken AFTER ` + when + ` ON ` + table + ` DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION broken()`
	} else {
		sql += `CREATE TRIGGER broken BEFORE ` + when + ` ON ` + table + ` FOR EACH ROW EXECUTE FUNCTION broken()`
	}
	_, err := pool.Exec(t.Context(), sql)
	require.NoError(t, err)
}

// An income is an event, the fact in it, and a row: if any of them cannot be written, none is, whichever breaks and when.
func TestIncomeAndItsEventCommitTogether(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, when, table string
		deferred          bool
	}{
		{"Row", "INSERT", "incomes", false},
		{"RowAtCommit", "INSERT", "incomes", true},
		{"Event", "INSERT", "processed_events", false},
		{"EventAtCommit", "INSERT", "processed_events", true},
		{"Payment", "INSERT", "payment_ids", false},
		{"Fact", "UPDATE", "payments", false},
		{"Order", "UPDATE", "orders", false},
		{"Transition", "INSERT", "order_transitions", false},
		{"TransitionAtCommit", "INSERT", "order_transitions", true},
		{"Job", "INSERT", "river_job", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			apply(t, s, register("ord_1", 5000))
			before, o := written(t, pool), readOrder(t, pool, "ord_1")
			breakTable(t, pool, tt.when, tt.table, tt.deferred)
			_, err := enter(t, s, cash(towards("ord_1")))
			require.ErrorContains(t, err, "broken on purpose")
			require.Equal(t, before, written(t, pool))
			require.Equal(t, o, readOrder(t, pool, "ord_1"))
		})
	}
	for _, tt := range []struct {
		name, when, table string
		deferred          bool
	}{
		{"VoidRow", "UPDATE", "incomes", false},
		{"VoidRowAtCommit", "UPDATE", "incomes", true},
		{"VoidEvent", "INSERT", "processed_events", false},
		{"VoidFact", "UPDATE", "payments", false},
		{"VoidTransition", "INSERT", "order_transitions", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, pool := open(t)
			apply(t, s, register("ord_1", 5000))
			in := enters(t, s, cash(towards("ord_1")))
			before, o := written(t, pool), readOrder(t, pool, "ord_1")
			breakTable(t, pool, tt.when, tt.table, tt.deferred)
			_, _, err := void(t, s, in.ID)
			require.ErrorContains(t, err, "broken on purpose")
			require.Equal(t, before, written(t, pool))
			require.Equal(t, o, readOrder(t, pool, "ord_1"))
			got, err := s.GetIncome(t.Context(), account, in.ID)
			require.NoError(t, err)
			require.Equal(t, in, got)
		})
	}
}

// What the caller writes beside it lives and dies with the income, and a refusal leaves the caller's rows alone.
func TestIncomeInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	s, pool, _ := openAt(t)
	_, err := pool.Exec(t.Context(), `CREATE TABLE public.mine (n int)`)
	require.NoError(t, err)
	apply(t, s, register("ord_1", 5000))
	before, o := written(t, pool), readOrder(t, pool, "ord_1")

	changedMyMind := errors.New("changed my mind")
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		in, err := s.CreateIncome(t.Context(), tx, cash(towards("ord_1")))
		require.NoError(t, err)
		_, voided, err := s.VoidIncome(t.Context(), tx, account, in.ID)
		require.NoError(t, err)
		require.True(t, voided)
		return changedMyMind
	})
	require.ErrorIs(t, err, changedMyMind)
	require.Equal(t, before, written(t, pool))
	require.Equal(t, o, readOrder(t, pool, "ord_1"))

	first := enters(t, s, cash(from("Ana")))
	before = written(t, pool)
	err = s.InTx(t.Context(), func(tx store.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO mine VALUES (1)`)
		require.NoError(t, err)
		_, err = s.CreateIncome(t.Context(), tx, cash(from("Ana")))
		refusedAsTwinOf(t, err, first.ID)
		_, err = s.CreateIncome(t.Context(), tx, cash(towards("ord_9")))
		require.ErrorIs(t, err, store.ErrNotFound)
		_, _, err = s.VoidIncome(t.Context(), tx, account, uuid.New())
		require.ErrorIs(t, err, store.ErrNotFound)
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, 1, count(t, pool, "mine"))
	require.Equal(t, before, written(t, pool))
}
