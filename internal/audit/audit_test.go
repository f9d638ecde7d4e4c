package audit_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/audit"
	"github.com/paidonce/paidonce/internal/audit/audittest"
	"github.com/paidonce/paidonce/store"
)

func TestHistoryIsClean(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	w.history(t)
	newShop(t, t.Context(), s, "other").register("ord_1", 5000)
	audittest.Clean(t, pool)
	var done, total int
	sum, err := audit.Run(t.Context(), s, audit.Options{Read: w.read, Progress: func(d, n int) {
		require.GreaterOrEqual(t, d, done)
		done, total = d, n
	}})
	require.NoError(t, err)
	require.Zero(t, sum.Differences)
	require.Empty(t, sum.Kinds)
	require.Equal(t, total, done, "every row was looked at")
	require.Equal(t, map[string]int{store.SkipPayloadGone: 1}, sum.Unread, "what came by our own call has no bytes")
	for what, n := range map[string]int{
		"events": sum.Events, "payments": sum.Payments, "orders": sum.Orders, "versions": sum.Versions, "incomes": sum.Incomes, "recurrences": sum.Recurrences,
		"transactions": sum.Transactions, "keys": sum.Keys, "reread": sum.Reread,
	} {
		require.Positive(t, n, what)
	}
	require.Equal(t, 3, sum.Accounts)
	var orders int
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&orders))
	require.Equal(t, orders, sum.Orders)
	one, err := audit.Run(t.Context(), s, audit.Options{Account: "other"})
	require.NoError(t, err)
	require.Equal(t, []int{1, 1, 1}, []int{one.Accounts, one.Orders, one.Events})
}

// An order alone is audited with what it follows from.
func TestOneOrder(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	w.history(t)
	audited := func(ref string) (sum audit.Summary, kinds []audit.Kind) {
		sum, err := audit.Run(t.Context(), s, audit.Options{Account: "shop", Order: w.orderID(ref), Read: w.read, Each: func(d audit.Difference) error {
			kinds = append(kinds, d.Kind)
			return nil
		}})
		require.NoError(t, err)
		return sum, kinds
	}
	rows, _ := pool.Query(t.Context(), `SELECT external_ref FROM orders WHERE account_id = 'shop' ORDER BY 1`)
	refs, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	for _, ref := range refs {
		sum, kinds := audited(ref)
		require.Empty(t, kinds, ref)
		require.Equal(t, 1, sum.Orders)
	}
	exec(t, pool, `UPDATE orders SET state = 'failed'; UPDATE payment_ids SET payment_id = `+named.Replace(`PAYMENT('pi_owed')`)+` WHERE id = 'ch_paid'`)
	_, kinds := audited("ord_paid")
	require.ElementsMatch(t, []audit.Kind{audit.PaymentID, audit.OrderFold, audit.VersionLast}, kinds, "of this order, and of no other")

	_, err = audit.Run(t.Context(), s, audit.Options{Account: "shop", Order: uuid.New()})
	require.ErrorIs(t, err, store.ErrNotFound)
	_, err = audit.Run(t.Context(), s, audit.Options{Order: uuid.New()})
	require.ErrorContains(t, err, "needs its Account")
}

// A difference is told once, and whoever has heard enough ends the audit.
func TestWhoIsToldEndsIt(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	for _, ref := range []string{"ord_1", "ord_2"} {
		w.register(ref, 5000)
	}
	exec(t, pool, `UPDATE orders SET state = 'failed'`)
	enough := errors.New("enough")
	told := 0
	_, err := audit.Run(t.Context(), s, audit.Options{Each: func(audit.Difference) error {
		told++
		return enough
	}})
	require.ErrorIs(t, err, enough)
	require.Equal(t, 1, told)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = audit.Run(ctx, s, audit.Options{Each: func(audit.Difference) error { cancel(); return nil }})
	require.ErrorIs(t, err, context.Canceled)
}

// It looks at one moment: what is written meanwhile is not seen, neither as it was nor as it is.
func TestOneMoment(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	w.register("ord_1", 5000)
	first := true
	sum, err := audit.Run(t.Context(), s, audit.Options{Progress: func(int, int) {
		if !first {
			return
		}
		first = false
		w.deliver(w.hook("evt_1", "pi_1", "ord_1", captured(5000)))
		w.tell("ord_1", done)
		w.register("ord_2", 5000)
	}})
	require.NoError(t, err)
	require.Zero(t, sum.Differences)
	require.Equal(t, []int{1, 1}, []int{sum.Orders, sum.Events})
	audittest.Clean(t, pool)
}

// The memory of an audit does not grow with the database. No other test runs beside this one, since it measures.
func TestMemoryIsBounded(t *testing.T) {
	s, pool := open(t)
	const n = 20_000
	ctx := t.Context()
	for _, sql := range []string{
		`INSERT INTO orders (account_id, id, external_ref, registered, registered_at, total, currency, flags)
			SELECT 'many', gen_random_uuid(), 'ord_' || n, true, now(), 5000, 'EUR', '{}' FROM generate_series(1, $1) n`,
		`INSERT INTO processed_events (account_id, source_id, event_id, type, order_id, outcome, order_version_before, order_version_after, facts, facts_hash, mapping_version)
			SELECT 'many', 'api', 'register:' || external_ref, 'order.registered', id, 'applied', 1, 1, said::jsonb, substr(sha256(convert_to(said, 'UTF8')), 1, 16), 1
			FROM (SELECT *, '{"reference":"' || external_ref || '","command":{"register":{"minor":5000,"currency":"EUR"}}}' AS said FROM orders LIMIT $1) o`,
		`INSERT INTO order_transitions (account_id, order_id, version, to_state, cause, source_id, event_id)
			SELECT 'many', id, 1, 'pending', 'created', 'api', 'register:' || external_ref FROM orders LIMIT $1`,
	} {
		tag, err := pool.Exec(ctx, sql, n)
		require.NoError(t, err)
		require.EqualValues(t, n, tag.RowsAffected())
	}
	var stats runtime.MemStats
	live := func() uint64 {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	before, most, next := live(), uint64(0), 0
	sum, err := audit.Run(ctx, s, audit.Options{Progress: func(done, total int) {
		if done >= next {
			next, most = done+total/20, max(most, live())
		}
	}})
	require.NoError(t, err)
	require.Equal(t, []int{n, n, 0}, []int{sum.Orders, sum.Events, sum.Differences})
	require.Less(t, most-min(before, most), uint64(16<<20), "as much as some pages, and not as %d orders", n)
}
