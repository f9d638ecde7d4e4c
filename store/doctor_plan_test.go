package store_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestAttentionReadsByIndex: a look reads what it tells of and no more than its bounds allow, of tables with far more in them, and no
// table from end to end. It is asked for one account and for all, as the command does and the job of every minute.
func TestAttentionReadsByIndex(t *testing.T) {
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
	fillAttention(t, pool)

	sources := []store.SourceKey{{Account: "a", ID: "s0"}, {Account: "b", ID: "s1"}}
	// What is looked through is counted once for each step of its way: each of a thousand pending orders and two thousand events
	// with its payment.
	most := map[string]int{"s.last_received_at": 4200, "'pending' AND": 6500, "no_reference": 13000}
	for name, tt := range map[string]struct {
		filter   store.AttentionFilter
		accounts int
	}{
		"One": {store.AttentionFilter{Account: "a", Limit: 10, Sources: sources}, 1},
		"All": {store.AttentionFilter{Limit: 10, Sources: sources}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			spy.reset()
			a, err := s.Attention(t.Context(), tt.filter)
			require.NoError(t, err)
			for list, n := range map[string]int{
				"unknown": len(a.Unknown), "late": len(a.Late), "dead": len(a.Dead), "stubs": len(a.Stubs), "authorized": len(a.Authorized),
				"pending": len(a.Pending), "underpaid": len(a.Underpaid), "quarantined": len(a.Quarantined), "fetches": len(a.Fetches),
				"owed": len(a.Owed), "unplaced": len(a.Unplaced),
			} {
				require.Equal(t, 10, n, list)
			}
			require.NotEmpty(t, a.Flagged)
			require.NotEmpty(t, a.Silent)
			require.Zero(t, a.Partly)

			asked := spy.taken()
			conn, err := pool.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			explained := 0
			require.NoError(t, pgx.BeginFunc(t.Context(), conn.Conn(), func(tx pgx.Tx) error {
				for _, q := range asked {
					switch {
					case strings.Contains(q.sql, "set_config"):
						_, err := tx.Exec(t.Context(), q.sql)
						require.NoError(t, err)
					case strings.HasPrefix(strings.TrimSpace(q.sql), "SELECT"), strings.HasPrefix(strings.TrimSpace(q.sql), "WITH"):
						explained++
						plan := explainedIn(t, tx, q)
						require.Empty(t, slices.DeleteFunc(plan.inSequence, func(table string) bool { return table == "sources" }), plan.text) // a row per source
						bound := 700
						for word, n := range most {
							if strings.Contains(q.sql, word) {
								bound = n
							}
						}
						// Twice that: rows that are dead and not cleaned up yet are read, too.
						require.LessOrEqual(t, plan.rows, 2*bound*tt.accounts, "%s\n%s", q.sql, plan.text)
					}
				}
				return nil
			}))
			require.GreaterOrEqual(t, explained, 18)
		})
	}
}

func explainedIn(t *testing.T, tx pgx.Tx, q statement) plan {
	t.Helper()
	var text []byte
	require.NoError(t, tx.QueryRow(t.Context(), `EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) `+q.sql, q.args...).Scan(&text))
	var doc []struct{ Plan node }
	require.NoError(t, json.Unmarshal(text, &doc))
	return plan{string(text), doc[0].Plan.read(), doc[0].Plan.sequences()}
}

// fillAttention gives some of the orders and events of fillLists trouble, and most of them what looks like it and is none.
func fillAttention(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	n := `substring(external_ref from '^ord_([0-9]+)$')::int`
	for _, sql := range []string{
		// Half of the orders were made by their payment's own amount; stubs are few.
		`UPDATE orders SET registered = false, flags = '{unregistered}' WHERE total IS NOT NULL AND state = 'paid' AND flags = '{}' AND ` + n + ` % 10 < 4`,
		`UPDATE orders SET flags = '{expired_unpaid}' WHERE state = 'pending'`,
		`UPDATE orders SET state = 'authorized' WHERE ` + n + ` % 400 IN (10, 11)`,
		`UPDATE orders SET state = 'partially_paid', flags = '{underpaid}' WHERE ` + n + ` % 400 IN (12, 13)`,
		`UPDATE orders SET flags = '{mode_mismatch,unexpected_move}' WHERE ` + n + ` % 400 IN (14, 15)`,
		// Carts that nobody has paid for, as most pending orders are.
		`INSERT INTO orders (account_id, id, external_ref, registered, total, currency, flags, created_at)
			SELECT account_id, (left(id::text, 19) || '9' || right(id::text, 16))::uuid, 'cart_' || external_ref, true, 1, 'EUR', '{}', created_at FROM orders
			WHERE ` + n + ` % 20 IN (6, 7)`,
		`UPDATE order_transitions t SET effect_state = 'open' FROM orders o WHERE o.id = t.order_id AND t.effect = 'fulfil' AND ` + n + ` % 200 IN (20, 21)
			AND o.external_ref LIKE 'ord%'`,
		`UPDATE orders SET want = 'go' WHERE external_ref LIKE 'ord%'`,
		// Every tenth event came before its payment had an order.
		`INSERT INTO payment_ids (account_id, realm, id, payment_id) SELECT account_id, 'r', 'pi_' || order_id, id FROM payments WHERE order_id IS NOT NULL`,
		`UPDATE processed_events e SET outcome = 'waiting', reason = 'no_reference', realm = 'r', payment = 'pi_' || o.id FROM orders o
			WHERE o.account_id = e.account_id AND o.external_ref = replace(e.event_id, 'evt_', 'ord_') AND ` + strings.ReplaceAll(n, "external_ref", "o.external_ref") + ` % 10 IN (0, 1)
			AND EXISTS (SELECT FROM payments p WHERE p.order_id = o.id)`,
		`UPDATE processed_events SET outcome = 'waiting', reason = 'no_reference', payment = NULL WHERE substr(event_id, 5)::int % 1000 IN (52, 53)`,
		`UPDATE processed_events SET outcome = 'quarantined', dismissed_at = CASE WHEN substr(event_id, 5)::int % 1000 > 100 THEN now() END
			WHERE substr(event_id, 5)::int % 100 IN (54, 55)`,
		`INSERT INTO transactions (account_id, id, order_id, payment_id, party, source_id, gateway, kind, amount, currency, status, movement, method, path,
				header, body, key, sent_at, settled_at, next_at, code, created_at)
			SELECT o.account_id, gen_random_uuid(), o.id, p.id, p.id::text, 's0', 'stripe', 'refund', 1, 'EUR', x.status, '{}', 'POST', '/', '{}', '', '', o.created_at,
				CASE WHEN x.status = 'succeeded' THEN now() END, CASE WHEN x.status = 'sent' THEN now() END, CASE WHEN x.status = 'sent' THEN 'credentials_denied' END, o.created_at
			FROM orders o JOIN payments p ON p.account_id = o.account_id AND p.order_id = o.id,
				LATERAL (SELECT CASE WHEN ` + n + ` % 400 IN (30, 31) THEN 'uncertain' WHEN ` + n + ` % 400 IN (32, 33) THEN 'sent' ELSE 'succeeded' END AS status) x
			WHERE o.external_ref LIKE 'ord%' AND ` + n + ` % 10 < 4`,
		`INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, settled_at)
			SELECT account_id, 's0', 'payment/' || external_ref, 'mollie', CASE WHEN ` + n + ` % 400 IN (40, 41) THEN 'dead' ELSE 'done' END, NULL, now()
			FROM orders WHERE external_ref LIKE 'ord%'`,
		`INSERT INTO sources (account_id, id, last_received_at) SELECT a, s, CASE WHEN s = 's2' THEN now() ELSE now() - interval '5 hours' END
			FROM unnest('{a,b}'::text[]) a, unnest('{s0,s1,s2}'::text[]) s`,
		`ANALYZE orders, processed_events, payments, payment_ids, order_transitions, transactions, fetches, sources`,
	} {
		_, err := pool.Exec(t.Context(), sql)
		require.NoError(t, err, sql)
	}
}
