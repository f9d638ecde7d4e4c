package store_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// planRows is how many orders there are, and as many events, of two accounts. (With 200,000 the plans are the same.)
const planRows = 20_000

// TestListsReadByIndex: a page of a list reads about as many rows as it shows, however many there are. Every list is asked
// as the API asks: one account, some filter, first page and a later one.
func TestListsReadByIndex(t *testing.T) {
	t.Parallel()
	spy := &statements{}
	cfg, err := pgxpool.ParseConfig(storetest.OpenURL(t))
	require.NoError(t, err)
	cfg.ConnConfig.Tracer = spy
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	fillLists(t, pool)

	first, last := day, day.Add(planRows*time.Second)
	middle := day.Add(planRows / 2 * time.Second)
	orders := func(f store.OrderFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account, f.Limit = "a", 50
			found, next, err := s.ListOrders(t.Context(), f)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			if f.Ref != "" {
				return
			}
			require.Len(t, found, 50)
			require.NotZero(t, next)
			f.Before = next
			_, _, err = s.ListOrders(t.Context(), f)
			require.NoError(t, err)
		}
	}
	events := func(f store.EventFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account, f.Limit = "a", 50
			found, next, err := s.ListEvents(t.Context(), f)
			require.NoError(t, err)
			require.Len(t, found, 50)
			f.Before = next
			_, _, err = s.ListEvents(t.Context(), f)
			require.NoError(t, err)
		}
	}
	effects := func(f store.EffectFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account = "a"
			found, err := s.Effects(t.Context(), f, nil, 50)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			_, err = s.Effects(t.Context(), f, &found[len(found)-1], 50)
			require.NoError(t, err)
		}
	}
	incomes := func(f store.IncomeFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account, f.Limit = "a", 50
			found, next, err := s.ListIncomes(t.Context(), f)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			if f.Ref != "" {
				return
			}
			require.Len(t, found, 50)
			f.Before = next
			_, _, err = s.ListIncomes(t.Context(), f)
			require.NoError(t, err)
		}
	}
	transactions := func(f store.TransactionFilter) func(*testing.T) {
		return func(t *testing.T) {
			f.Account, f.Limit = "a", 50
			found, next, err := s.ListTransactions(t.Context(), f)
			require.NoError(t, err)
			require.NotEmpty(t, found)
			if f.Ref != "" || f.OrderRef != "" {
				return
			}
			require.Len(t, found, 50)
			f.Before = next
			_, _, err = s.ListTransactions(t.Context(), f)
			require.NoError(t, err)
		}
	}
	busy := firstOrder(t, pool)
	for name, tt := range map[string]struct {
		do   func(*testing.T)
		most int // rows read for a page of 51
	}{
		"Orders":             {orders(store.OrderFilter{}), 60},
		"OrdersPaid":         {orders(store.OrderFilter{State: "paid"}), 80},
		"OrdersPending":      {orders(store.OrderFilter{State: "pending"}), 60},
		"OrdersDisputed":     {orders(store.OrderFilter{State: "disputed"}), planRows / 50}, // all of them, which are few, by their index
		"OrdersFlagged":      {orders(store.OrderFilter{Flag: "overpaid"}), 3 * planRows / 100},
		"OrdersStubs":        {orders(store.OrderFilter{Stubs: true}), 3 * planRows / 100}, // all of them, which are few
		"OrdersRef":          {orders(store.OrderFilter{Ref: "ord_10000"}), 2},
		"OrdersCreatedUntil": {orders(store.OrderFilter{CreatedUntil: middle}), 60 + 3600},
		"OrdersCreated":      {orders(store.OrderFilter{CreatedFrom: middle, CreatedUntil: last}), 60 + 3600},
		"Events":             {events(store.EventFilter{}), 400},
		"EventsUntil":        {events(store.EventFilter{Since: first, Until: middle}), 400},
		"EventsOfASource":    {events(store.EventFilter{Source: "s1"}), 800},
		"EventsOfAType":      {events(store.EventFilter{Type: "t3"}), 2000},
		"EventsFlagged":      {events(store.EventFilter{Outcome: store.Flagged}), 400},
		"Effects":            {effects(store.EffectFilter{}), 300},
		"EffectsDead":        {effects(store.EffectFilter{States: []order.EffectState{order.EffectDead}}), 200},
		"EffectsOfAnOrder":   {effects(store.EffectFilter{Ref: "ord_10000"}), 10},
		"Incomes":            {incomes(store.IncomeFilter{}), 120}, // each with its order
		"IncomesReceived":    {incomes(store.IncomeFilter{Status: store.IncomeReceived}), 120},
		"IncomesVoided":      {incomes(store.IncomeFilter{Status: store.IncomeVoided}), 120},
		"IncomesOfAnOrder":   {incomes(store.IncomeFilter{Order: busy}), 120},
		"IncomesRef":         {incomes(store.IncomeFilter{Ref: "inc_10000"}), 2},
		"IncomesUntil":       {incomes(store.IncomeFilter{CreatedUntil: middle}), 120 + 3600},
		"Transactions":       {transactions(store.TransactionFilter{}), 120}, // each with its order
		"TransactionsDone":   {transactions(store.TransactionFilter{Status: store.TransactionSucceeded}), 120},
		"TransactionsFailed": {transactions(store.TransactionFilter{Status: store.TransactionFailed}), 120},
		"TransactionsOf":     {transactions(store.TransactionFilter{Order: busy}), 120},
		"TransactionsOfRef":  {transactions(store.TransactionFilter{OrderRef: "ord_10002"}), 10},
		"TransactionsRef":    {transactions(store.TransactionFilter{Ref: "tr_10000"}), 2},
		"TransactionsUntil":  {transactions(store.TransactionFilter{CreatedUntil: middle}), 120 + 3600},
		"EventsByID": {func(t *testing.T) {
			found, err := s.EventsByID(t.Context(), "a", "evt_10000")
			require.NoError(t, err)
			require.Len(t, found, 1)
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			spy.reset()
			tt.do(t)
			for _, q := range spy.taken() {
				plan := explained(t, pool, q)
				require.Empty(t, plan.inSequence, plan.text)
				require.LessOrEqual(t, plan.rows, tt.most, "%s\n%s", q.sql, plan.text)
			}
		})
	}
}

// fillLists makes the orders of two accounts, one a second, each with a paid-for effect and an event of one of three sources.
func fillLists(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	_, err := pool.Exec(t.Context(), `
		INSERT INTO accounts (id) VALUES ('a'), ('b')`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO orders (account_id, id, external_ref, registered, total, currency, state, flags, created_at)
		SELECT CASE WHEN n % 2 = 0 THEN 'a' ELSE 'b' END,
			(lpad(to_hex((extract(epoch FROM $2::timestamptz) * 1000)::bigint + n * 1000), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
			'ord_' || n, n % 100 <> 0, CASE WHEN n % 100 <> 0 THEN 5000 END, CASE WHEN n % 100 <> 0 THEN 'EUR' END,
			CASE WHEN n % 200 = 2 THEN 'disputed' WHEN n % 20 = 4 THEN 'pending' ELSE 'paid' END,
			CASE WHEN n % 100 = 0 THEN ARRAY['unregistered'] WHEN n % 200 = 6 THEN ARRAY['overpaid'] ELSE '{}' END,
			$2::timestamptz + n * interval '1 second'
		FROM generate_series(1, $1::int) n`, planRows, day)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO payments (account_id, id, order_id) SELECT account_id, gen_random_uuid(), id FROM orders`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO order_transitions (account_id, order_id, version, to_state, cause, at, after, effect, effect_state)
		SELECT o.account_id, o.id, v, 'paid', 'c', o.created_at, 'fulfilled', CASE WHEN v = 2 THEN 'fulfil' END,
			CASE WHEN v = 2 THEN CASE WHEN substr(o.external_ref, 5)::int % 400 = 0 THEN 'dead' ELSE 'done' END END
		FROM orders o, generate_series(1, 2) v`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO processed_events (account_id, source_id, event_id, type, received_at, outcome, facts, facts_hash, mapping_version)
		SELECT account_id, 's' || n % 3, 'evt_' || n, 't' || n % 10 / 2, date_trunc('minute', created_at),
			CASE WHEN n % 200 = 8 THEN 'flagged' ELSE 'applied' END, '{}', '', 1
		FROM orders, LATERAL (SELECT substr(external_ref, 5)::int AS n) x`)
	require.NoError(t, err)
	// Every hundredth order has many, every hundredth income is void.
	_, err = pool.Exec(t.Context(), `
		INSERT INTO incomes (account_id, id, external_ref, order_id, kind, amount, currency, status, voided_at, created_at)
		SELECT account_id, id, 'inc_' || n, CASE WHEN n % 100 = 0 THEN (SELECT id FROM orders WHERE external_ref = 'ord_2') END, 'cash', n, 'EUR',
			CASE WHEN n % 100 = 50 THEN 'voided' ELSE 'received' END, CASE WHEN n % 100 = 50 THEN created_at END, created_at
		FROM orders, LATERAL (SELECT substr(external_ref, 5)::int AS n) x`)
	require.NoError(t, err)
	// The same of transactions, of which every hundredth has failed.
	_, err = pool.Exec(t.Context(), `
		INSERT INTO transactions (account_id, id, external_ref, order_id, payment_id, party, source_id, gateway, kind, amount, currency, status, movement,
			method, path, header, body, key, next_at, settled_at, created_at)
		SELECT o.account_id, o.id, 'tr_' || n, CASE WHEN n % 100 = 0 THEN (SELECT id FROM orders WHERE external_ref = 'ord_2') ELSE o.id END, p.id, p.id::text,
			's', 'stripe', 'refund', n, 'EUR', CASE WHEN n % 100 = 50 THEN 'failed' ELSE 'succeeded' END, '{}', 'POST', '/', '{}', '', '', NULL, o.created_at, o.created_at
		FROM orders o JOIN payments p ON p.account_id = o.account_id AND p.order_id = o.id, LATERAL (SELECT substr(o.external_ref, 5)::int AS n) x`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `ANALYZE`)
	require.NoError(t, err)
}

// firstOrder is the order that has the incomes.
func firstOrder(t *testing.T, pool *pgxpool.Pool) (id uuid.UUID) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT id FROM orders WHERE external_ref = 'ord_2'`).Scan(&id))
	return id
}

// statements notes what is asked of the database.
type statements struct {
	mu   sync.Mutex
	list []statement
}

type statement struct {
	sql  string
	args []any
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(q.SQL, "EXPLAIN") {
		s.list = append(s.list, statement{q.SQL, q.Args})
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (s *statements) reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
}

func (s *statements) taken() []statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list
}

type plan struct {
	text string
	rows int // that scans have read

	inSequence []string // tables
}

type node struct {
	Kind     string  `json:"Node Type"`
	Table    string  `json:"Relation Name"`
	Rows     float64 `json:"Actual Rows"`
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Plans    []node
}

func (n node) read() int {
	rows := 0
	if strings.Contains(n.Kind, "Scan") {
		rows = int((n.Rows + n.Filtered) * n.Loops)
	}
	for _, p := range n.Plans {
		rows += p.read()
	}
	return rows
}

func (n node) sequences() (tables []string) {
	if n.Kind == "Seq Scan" && n.Loops > 0 {
		tables = append(tables, n.Table)
	}
	for _, p := range n.Plans {
		tables = append(tables, p.sequences()...)
	}
	return tables
}

func explained(t *testing.T, pool *pgxpool.Pool, q statement) plan {
	t.Helper()
	var text []byte
	require.NoError(t, pool.QueryRow(t.Context(), `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+q.sql, q.args...).Scan(&text))
	var doc []struct{ Plan node }
	require.NoError(t, json.Unmarshal(text, &doc))
	return plan{string(text), doc[0].Plan.read(), doc[0].Plan.sequences()}
}

// TestPagesAreStable: what is entered while somebody turns pages neither repeats a row nor hides one that was there.
func TestPagesAreStable(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	for i := range 7 {
		ref := "ord_" + uuid.NewString()
		apply(t, s, register(ref, 5000), captured("evt_"+string(rune('a'+i)), "pi_"+ref, ref, 5000))
	}
	seen := map[uuid.UUID]int{}
	events := map[string]int{}
	f := store.OrderFilter{Account: account, Limit: 2}
	ef := store.EventFilter{Account: account, Limit: 3}
	for page := 0; ; page++ {
		found, next, err := s.ListOrders(t.Context(), f)
		require.NoError(t, err)
		for _, o := range found {
			seen[o.ID]++
		}
		evs, nextEvent, err := s.ListEvents(t.Context(), ef)
		require.NoError(t, err)
		for _, e := range evs {
			events[e.Source+"/"+e.ID]++
		}
		if page < 3 {
			ref := "late_" + uuid.NewString()
			apply(t, s, register(ref, 5000), captured("evt_late"+ref, "pi_"+ref, ref, 5000))
		}
		if next == uuid.Nil && nextEvent.ID == "" {
			break
		}
		f.Before, ef.Before = next, nextEvent
		if next == uuid.Nil {
			f.Before = uuid.UUID{15: 1}
		}
		if nextEvent.ID == "" {
			ef.Before = store.EventCursor{At: day.AddDate(-50, 0, 0), Source: "s", ID: "i"}
		}
	}
	require.Len(t, seen, 7)
	require.Len(t, events, 14)
	for id, n := range seen {
		require.Equal(t, 1, n, id)
	}
	for id, n := range events {
		require.Equal(t, 1, n, id)
	}
}
