package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// written is everything that an income may write.
func written(t *testing.T, pool *pgxpool.Pool) (w struct{ Events, Payments, IDs, Transitions, Jobs, Payloads, Incomes, Versions int }) {
	t.Helper()
	rows, _ := pool.Query(t.Context(), `SELECT (SELECT count(*) FROM processed_events), (SELECT count(*) FROM payments), (SELECT count(*) FROM payment_ids),
		(SELECT count(*) FROM order_transitions), (SELECT count(*) FROM river_job), (SELECT count(*) FROM event_payloads),
		(SELECT count(*) FROM incomes), (SELECT coalesce(sum(version), 0) FROM orders)`)
	w, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct{ Events, Payments, IDs, Transitions, Jobs, Payloads, Incomes, Versions int }])
	require.NoError(t, err)
	return w
}

func TestT97_ExternalRefOfIncomes(t *testing.T) {
	t.Parallel()

	t.Run("RepeatedForEver", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
		onDay := midMinute
		n := cash(called("inc_1"), towards("ord_1"))
		n.ReceivedOn, n.Metadata = &onDay, []byte(`{"a": [1, 2.50], "b": {"n": -1200.0, "z": -0}, "external_ref": "inc_1"}`)
		first := enters(t, s, n)
		before := written(t, pool)

		same := func(n store.NewIncome, differs bool, why string) {
			t.Helper()
			in, err := enter(t, s, n)
			require.NoError(t, err, why)
			require.False(t, in.New, why)
			require.Equal(t, differs, in.Differs, why)
			require.Equal(t, first, in.Income, why)
			require.Equal(t, before, written(t, pool), why)
		}
		same(n, false, "again")
		n.Metadata = []byte(`{"external_ref":"inc_1","a":[1,2.50],"b":{"n":-12e2,"z":0}}`)
		same(n, false, "in other words")
		n.Metadata = []byte(`{"external_ref":"inc_1","a":[1,2.50],"b":{"n":"-1200","z":0}}`)
		same(n, true, "a text is no number")
		n.Metadata = []byte(`{"external_ref":"inc_1","a":[1,2.51],"b":{"n":-1200,"z":-0}}`)
		same(n, true, "in another number")
		n.Metadata = []byte(`{"external_ref":"inc_1","a":[1.0,2.5],"b":{"n":-0.12E+4,"z":0.00}}`)
		same(n, false, "in other numerals")
		n.OrderRef, n.Order = "", *first.Order
		same(n, false, "its order by its id")
		for why, change := range map[string]func(*store.NewIncome){
			"another amount":   worth(9900, "EUR"),
			"another currency": worth(5000, "USD"),
			"another party":    from("Ana"),
			"another kind":     func(n *store.NewIncome) { n.Kind = order.IncomeCard },
			"another source":   func(n *store.NewIncome) { n.Source = &order.Amount{Minor: 1, Currency: "USD"} },
			"another day":      func(n *store.NewIncome) { d := onDay.AddDate(0, 0, 1); n.ReceivedOn = &d },
			"no day":           func(n *store.NewIncome) { n.ReceivedOn = nil },
			"other metadata":   func(n *store.NewIncome) { n.Metadata = nil },
			"another order":    func(n *store.NewIncome) { n.Order, n.OrderRef = uuid.Nil, "ord_2" },
			"no order":         func(n *store.NewIncome) { n.Order = uuid.Nil },
			"no such order":    func(n *store.NewIncome) { n.Order = uuid.New() },
		} {
			other := n
			change(&other)
			same(other, true, why)
		}
		require.Equal(t, "pending", readOrder(t, pool, "ord_2").State, "the reference alone says which income is meant")

		require.NoError(t, pool.QueryRow(t.Context(), `UPDATE incomes SET created_at = created_at - interval '3 years' RETURNING created_at`).Scan(&first.CreatedAt))
		same(n, false, "three years later")
		gone := voids(t, s, first.ID)
		first, before = gone, written(t, pool)
		same(n, false, "after it was taken back")
	})

	t.Run("AtOnce", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		apply(t, s, register("ord_1", 5000))
		results := make([]store.EnteredIncome, 32)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() {
				in, err := enter(t, s, cash(called("inc_1"), towards("ord_1"), worth(int64(5000+i), "EUR")))
				if err != nil {
					t.Error(err)
				}
				results[i] = in
			})
		}
		wg.Wait()
		winner := -1
		for i, in := range results {
			require.Equal(t, results[0].Income, in.Income)
			if in.New {
				require.Equal(t, -1, winner, "one of them is new")
				winner = i
			}
		}
		require.GreaterOrEqual(t, winner, 0)
		for i, in := range results {
			require.Equal(t, i != winner, in.Differs)
		}
		require.EqualValues(t, 5000+winner, results[0].Amount.Minor, "the one that was entered")
		require.EqualValues(t, 5000+winner, readOrder(t, pool, "ord_1").Captured)
		require.Equal(t, 1, count(t, pool, "payments"))
		require.Equal(t, 1, count(t, pool, "incomes"))
	})

	t.Run("EveryReference", func(t *testing.T) {
		t.Parallel()
		s, _ := open(t)
		seen := map[uuid.UUID]bool{}
		for _, ref := range []string{"1", "ref:1", "a#~b", "a#deadbeefdeadbeefdeadbeefdeadbeef", "Überweisung № 1", strings.Repeat("é", 127), `"`} {
			in := enters(t, s, cash(called(ref)))
			require.False(t, seen[in.ID])
			seen[in.ID] = true
			again, err := enter(t, s, cash(called(ref)))
			require.NoError(t, err, ref)
			require.Equal(t, in, again.Income)
		}
	})

	t.Run("NoneIsNoName", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		enters(t, s, cash(from("Ana")))
		enters(t, s, cash(from("Bea")))
		require.Equal(t, 2, count(t, pool, "incomes WHERE external_ref IS NULL"))
	})

	// A row that somebody put in around us has no event; its reference is taken all the same.
	t.Run("OfARowThatCameAround", func(t *testing.T) {
		t.Parallel()
		s, pool := open(t)
		apply(t, s, register("ord_1", 5000))
		var id uuid.UUID
		insert := func() error {
			return pool.QueryRow(t.Context(), `INSERT INTO incomes (account_id, id, external_ref, kind, amount, currency)
				VALUES ($1, gen_random_uuid(), 'inc_1', 'cash', 1, 'EUR') RETURNING id`, account).Scan(&id)
		}
		before := written(t, pool)
		err := s.InTx(t.Context(), func(tx store.Tx) error {
			// It comes between our looking and our writing.
			in, err := s.CreateIncome(t.Context(), beforeInsert{tx, insert}, cash(called("inc_1"), towards("ord_1")))
			require.NoError(t, err)
			require.False(t, in.New)
			require.True(t, in.Differs)
			require.Equal(t, id, in.ID)
			return nil
		})
		require.NoError(t, err)
		before.Incomes++
		require.Equal(t, before, written(t, pool), "no event, no fact")
		require.Equal(t, "pending", readOrder(t, pool, "ord_1").State)
	})
}

func TestT98_DedupNetOfIncomes(t *testing.T) {
	t.Parallel()

	t.Run("TwiceInAMinute", func(t *testing.T) {
		t.Parallel()
		for name, n := range map[string]store.NewIncome{
			"TowardsAnOrder": cash(towards("ord_1"), worth(2000, "EUR")),
			"FromAParty":     cash(from("Ana")),
			"Both":           cash(from("Ana"), towards("ord_1")),
			"OfASource":      cash(from("Ana"), func(n *store.NewIncome) { n.Source = &order.Amount{Minor: 5500, Currency: "USD"} }),
		} {
			s, pool, set := openAt(t)
			apply(t, s, register("ord_1", 5000))
			n.Payload = []byte(`{}`)
			first := enters(t, s, n)
			before := written(t, pool)
			set(midMinute.Add(29 * time.Second))
			_, err := enter(t, s, n)
			refusedAsTwinOf(t, err, first.ID)
			if n.Source != nil {
				n.Source = &order.Amount{Minor: 5501, Currency: "USD"} // currencies and the amount that counts are compared
				_, err = enter(t, s, n)
				refusedAsTwinOf(t, err, first.ID)
			}
			require.Equal(t, before, written(t, pool), "%s: event, fact and row are one", name)

			voids(t, s, first.ID)
			second := enters(t, s, n)
			_, err = enter(t, s, n)
			refusedAsTwinOf(t, err, second.ID)
		}
	})

	t.Run("WhatIsNotTheSame", func(t *testing.T) {
		t.Parallel()
		s, pool, _ := openAt(t)
		apply(t, s, register("ord_1", 5000), register("ord_2", 5000))
		usd := func(n *store.NewIncome) { n.Source = &order.Amount{Minor: 5500, Currency: "USD"} }
		kind := func(k order.IncomeKind) func(*store.NewIncome) { return func(n *store.NewIncome) { n.Kind = k } }
		all := []store.NewIncome{
			cash(towards("ord_1")),
			cash(towards("ord_2")),               // two buyers at one price
			cash(from("Ana")), cash(from("Bea")), // two parties at one price
			cash(towards("ord_1"), from("Ana")), cash(towards("ord_1"), from("Bea")), // two friends share a bill
			cash(from("Ana"), called("inc_1")), cash(from("Ana"), called("inc_2")), // two references
			cash(called("inc_3")), cash(called("inc_4")),
			cash(from("Ana"), worth(5001, "EUR")), cash(from("Ana"), worth(5000, "GBP")),
			cash(from("Ana"), kind(order.IncomeCard)), cash(from("Ana"), kind(order.IncomeOther)),
			cash(from("Ana"), usd),
		}
		for _, n := range all {
			enters(t, s, n)
		}
		require.Equal(t, len(all), count(t, pool, "incomes"))
	})

	// The edge of the net, documented: what came in two minutes is two things, however close they are.
	t.Run("TheMinuteEnds", func(t *testing.T) {
		t.Parallel()
		s, pool, set := openAt(t)
		at := func(min, sec, micro int) { set(time.Date(2026, 3, 1, 10, min, sec, micro*1000, time.UTC)) }
		n := cash(from("Ana"))
		at(0, 0, 0)
		first := enters(t, s, n)
		at(0, 59, 999999)
		_, err := enter(t, s, n)
		refusedAsTwinOf(t, err, first.ID)
		at(1, 0, 0)
		second := enters(t, s, n)

		// The same of rows that came before this program had a clock of its own to give them.
		put := func(at string) error {
			_, err := pool.Exec(t.Context(), `INSERT INTO incomes (account_id, id, party, kind, amount, currency, created_at)
				VALUES ($1, gen_random_uuid(), 'Ana', 'cash', 5000, 'EUR', $2::text::timestamptz)`, account, at)
			return err
		}
		require.NoError(t, put("2026-03-01 12:00:59+00"))
		require.NoError(t, put("2026-03-01 12:01:00+00"))
		refusedByTheNet(t, put("2026-03-01 12:00:00+00"))
		refusedByTheNet(t, put("2026-03-01 17:30:59.5+05:30"))
		refusedByTheNet(t, put("2026-03-01 10:01:59+00"))
		voids(t, s, second.ID)
		require.NoError(t, put("2026-03-01 10:01:59+00"))
	})

	t.Run("NobodysMoney", func(t *testing.T) {
		t.Parallel()
		s, pool, _ := openAt(t)
		_, err := enter(t, s, cash())
		require.ErrorIs(t, err, store.ErrUnstorable)
		_, err = pool.Exec(t.Context(), `INSERT INTO incomes (account_id, id, kind, amount, currency) VALUES ('a', gen_random_uuid(), 'cash', 1, 'EUR')`)
		require.ErrorContains(t, err, "incomes_named")
		for _, empty := range []string{"party", "external_ref"} {
			_, err = pool.Exec(t.Context(), `INSERT INTO incomes (account_id, id, `+empty+`, kind, amount, currency) VALUES ('a', gen_random_uuid(), '', 'cash', 1, 'EUR')`)
			require.ErrorContains(t, err, "incomes_names")
		}
	})

	// What webhooks bring is told apart by the gateways' ids and by nothing else.
	t.Run("NotOfWebhooks", func(t *testing.T) {
		t.Parallel()
		s, pool, _ := openAt(t)
		apply(t, s, register("ord_1", 20000))
		enters(t, s, cash(towards("ord_1")))
		apply(t, s, captured("evt_1", "pi_1", "ord_1", 5000), captured("evt_2", "pi_2", "ord_1", 5000))
		apply(t, s, captured("evt_3", "pi_3", "ord_1", 5000))
		o := readOrder(t, pool, "ord_1")
		require.EqualValues(t, 20000, o.Captured)
		require.Equal(t, "paid", o.State)
		require.Equal(t, 1, count(t, pool, "incomes"))
		_, err := enter(t, s, cash(towards("ord_1")))
		require.ErrorAs(t, err, new(*store.DuplicateError))
	})
}

// refusedByTheNet requires that Postgres refused a row for the index.
func refusedByTheNet(t *testing.T, err error) {
	t.Helper()
	var pg *pgconn.PgError
	require.ErrorAs(t, err, &pg)
	require.Equal(t, "23505", pg.Code)
	require.Equal(t, "uq_transaction_dedup", pg.ConstraintName)
}

// TestT98_DedupNetHoldsAroundTheMiddleware: the database decides, whoever inserts, and however many at once.
func TestT98_DedupNetHoldsAroundTheMiddleware(t *testing.T) {
	t.Parallel()

	t.Run("SQL", func(t *testing.T) {
		t.Parallel()
		s, pool, _ := openAt(t)
		apply(t, s, register("ord_1", 5000))
		put := func(status string) (id uuid.UUID, err error) {
			err = pool.QueryRow(t.Context(), `INSERT INTO incomes (account_id, id, order_id, kind, amount, currency, status, voided_at, created_at)
				VALUES ($1, gen_random_uuid(), $2, 'cash', 5000, 'EUR', $3, CASE WHEN $3 = 'voided' THEN now() END, $4) RETURNING id`,
				account, readOrder(t, pool, "ord_1").ID, status, midMinute).Scan(&id)
			return id, err
		}
		_, err := put("voided")
		require.NoError(t, err)
		id, err := put("received")
		require.NoError(t, err)
		_, err = put("received")
		refusedByTheNet(t, err)
		before := written(t, pool)
		_, err = enter(t, s, cash(towards("ord_1")))
		refusedAsTwinOf(t, err, id)
		require.Equal(t, before, written(t, pool))
		_, err = put("voided")
		require.NoError(t, err, "what counts for nothing stands in nobody's way")
	})

	for name, n := range map[string]store.NewIncome{"OneOrder": cash(towards("ord_1")), "OneParty": cash(from("Ana"))} {
		t.Run(name+"FromManyGoroutines", func(t *testing.T) {
			t.Parallel()
			s, pool, _ := openAt(t)
			apply(t, s, register("ord_1", 5000))
			var (
				wg      sync.WaitGroup
				mu      sync.Mutex
				entered []uuid.UUID
				twins   []uuid.UUID
			)
			for range 32 {
				wg.Go(func() {
					in, err := enter(t, s, n)
					mu.Lock()
					defer mu.Unlock()
					var twin *store.DuplicateError
					switch {
					case err == nil:
						entered = append(entered, in.ID)
					case errors.As(err, &twin):
						twins = append(twins, twin.ID)
					default:
						t.Error(err)
					}
				})
			}
			wg.Wait()
			require.Len(t, entered, 1)
			require.Len(t, twins, 31)
			for _, id := range twins {
				require.Equal(t, entered[0], id)
			}
			w := written(t, pool)
			require.Equal(t, 1, w.Incomes)
			require.Equal(t, 2, w.Events, "with the registration")
			require.Equal(t, 1, w.Payments)
			if n.OrderRef != "" {
				require.EqualValues(t, 5000, readOrder(t, pool, "ord_1").Captured)
			}
			require.Zero(t, s.Retries().Deadlock, "one lock order everywhere: Postgres never has to break a deadlock")
		})
	}

	// Everybody takes back what the one before has entered, and enters the same anew: at every moment one stands at most.
	t.Run("EnteredAndTakenBackAtOnce", func(t *testing.T) {
		t.Parallel()
		s, pool, _ := openAt(t)
		apply(t, s, register("ord_1", 5000))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 6 {
					in, err := enter(t, s, cash(towards("ord_1")))
					id := in.ID
					var twin *store.DuplicateError
					if errors.As(err, &twin) {
						id, err = twin.ID, nil
					}
					if err != nil {
						t.Error(err)
						return
					}
					if _, _, err := void(t, s, id); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		o := readOrder(t, pool, "ord_1")
		require.EqualValues(t, 0, o.Kept)
		require.NotContains(t, o.Flags, "overpaid")
		require.NotContains(t, o.Flags, "unexpected_move")
		require.Equal(t, 0, count(t, pool, "incomes WHERE status = 'received'"))
		require.Equal(t, 0, count(t, pool, "order_transitions WHERE kept > 5000"), "never two of them")
		require.Equal(t, count(t, pool, "incomes"), count(t, pool, "processed_events WHERE type = 'income.voided'"))
		require.Zero(t, s.Retries().Deadlock)
	})
}

// TestT98_EveryMoneyTableHasTheNet: a table of money that our API enters has an index of the very expressions that
// incomes has. What gateways say stands in tables without an amount of their own.
func TestT98_EveryMoneyTableHasTheNet(t *testing.T) {
	t.Parallel()
	_, pool := open(t)
	rows, _ := pool.Query(t.Context(), `
		SELECT c.relname, coalesce((
			SELECT replace(pg_get_indexdef(x.indexrelid), c.relname, 'T') FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
			WHERE x.indrelid = c.oid AND x.indisunique AND i.relname ~ '^uq_.*dedup$'), '')
		FROM pg_class c
		WHERE c.relkind IN ('r', 'p') AND c.relnamespace = 'public'::regnamespace
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'account_id')
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'amount')
			AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'status')
		ORDER BY 1`)
	type table struct{ Name, Index string }
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	require.NoError(t, err)
	require.NotEmpty(t, tables)
	for _, m := range tables {
		_, index, ok := strings.Cut(m.Index, " USING ")
		require.True(t, ok, "table %s holds money and has no unique index uq_…_dedup: see docs/ARCHITECTURE.md", m.Name)
		columns, where, partial := strings.Cut(index, " WHERE ")
		require.Equal(t, `btree (account_id, COALESCE((order_id)::text, ''::text), COALESCE(party, ''::text), kind, COALESCE(source_currency, currency), `+
			`currency, amount, date_trunc('minute'::text, (created_at AT TIME ZONE 'UTC'::text)), COALESCE(external_ref, ''::text))`, columns, m.Name)
		require.True(t, partial, m.Name)
		require.Contains(t, where, "status", m.Name)
	}
}

// beforeInsert is a transaction in which something happens elsewhere right before the row of an income is written.
type beforeInsert struct {
	pgx.Tx
	happen func() error
}

func (b beforeInsert) Begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := b.Tx.Begin(ctx)
	return beforeInsert{tx, b.happen}, err
}

func (b beforeInsert) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if strings.Contains(sql, "INSERT INTO incomes") {
		if err := b.happen(); err != nil {
			return nil, fmt.Errorf("meanwhile: %w", err)
		}
	}
	return b.Tx.Query(ctx, sql, args...)
}
