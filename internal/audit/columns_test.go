package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// unaudited are columns that may be anything as far as an audit can tell, and why.
var unaudited = map[string]string{
	"processed_events.received_at":       "when it came is told by nothing else",
	"processed_events.last_delivered_at": "as received_at",
	"processed_events.deliveries":        "a lower bound, counted in memory",
	"processed_events.dismissed_at":      "a person's word, which is kept nowhere else",
	"processed_events.mapping_version":   "what read the facts is told by nothing else",

	"event_payloads.header":        "what reads the bytes decides what it makes of it",
	"event_payloads.received_at":   "as of the event",
	"event_payloads.account_id":    "bytes without an event may be there: of deliveries that were refused by nobody",
	"event_payloads.source_id":     "as account_id",
	"event_payloads.event_id":      "as account_id",
	"event_payloads.delivery":      "groups what shares a body",
	"event_meanings.*":             "what an event meant once: nothing follows from it any more",
	"recurrences.id":               "in the metadata of its orders, which the merchant may have registered first",
	"recurrences.amount":           "of orders that the merchant registered first, it is another one",
	"recurrences.currency":         "as amount",
	"recurrences.details":          "as amount",
	"recurrences.ends_on":          "says what will be made",
	"recurrences.ends_after":       "says what will be made",
	"recurrences.next_start":       "says when to look: the zone's rules decide",
	"recurrences.ended_at":         "the database holds it beside next_period",
	"recurrences.version":          "counts what is kept nowhere else",
	"recurrences.created_at":       "told by nothing else",
	"recurrences.updated_at":       "told by nothing else",
	"recurrences.time_zone":        "of periods that have all been made, any zone may have the names",
	"orders.registered_at":         "that there is one is audited; when it was is told by nothing else",
	"orders.expired_at":            "when somebody noticed; the mark is audited",
	"orders.created_at":            "told by nothing else",
	"orders.updated_at":            "told by nothing else",
	"payments.created_at":          "told by nothing else",
	"order_transitions.at":         "told by nothing else",
	"order_transitions.next_at":    "how long to wait is drawn; that it is known is audited",
	"order_transitions.attempts":   "how often it was called is told by nothing else, but for none",
	"order_transitions.last_error": "what the merchant said",
	"order_transitions.why":        "for people",
	"order_transitions.settled_at": "that there is one is audited; when it was is told by nothing else",
	"incomes.external_ref":         "the event's name is made of it, so that another one finds none",
	"incomes.party":                "the merchant's words, kept nowhere else",
	"incomes.received_on":          "as party",
	"incomes.metadata":             "as party",
	"incomes.voided_at":            "the database holds it beside status",
	"incomes.created_at":           "told by nothing else",

	"order_transitions.claimed_until": "how long a call may take is told by nothing else",
	"incomes.status":                  "the database holds it beside voided_at; both together are audited",
	"idempotency_keys.response_code":  "what was answered is kept nowhere else, but for the body",
	"idempotency_keys.resource_type":  "of a word that nobody knows, nothing is looked for",
	"transactions.external_ref":       "the merchant's name of it, kept nowhere else",
	"transactions.payment_id":         "as it was called then: it may have been merged since",
	"transactions.party":              "the database holds it beside payment_id",
	"transactions.source_id":          "who was called is told by nothing else",
	"transactions.gateway":            "as source_id",
	"transactions.source_currency":    "always NULL",
	"transactions.reason":             "the merchant's words",
	"transactions.metadata":           "the merchant's words",
	"transactions.status":             "what became of the call, as it was heard",
	"transactions.method":             "the gateway's mapping makes it of the movement",
	"transactions.path":               "as method",
	"transactions.header":             "as method",
	"transactions.body":               "as method",
	"transactions.sent_at":            "what became of the call",
	"transactions.attempts":           "what became of the call",
	"transactions.lookups":            "what became of the call",
	"transactions.fence":              "what became of the call",
	"transactions.claimed_until":      "what became of the call",
	"transactions.next_at":            "what became of the call; the ticker comes back to what was forgotten",
	"transactions.gateway_ref":        "what became of the call",
	"transactions.code":               "what became of the call",
	"transactions.detail":             "what became of the call",
	"transactions.settled_at":         "what became of the call",
	"transactions.created_at":         "told by nothing else",

	"idempotency_keys.id":               "told by nothing else",
	"idempotency_keys.account_id":       "whose key it is, is told by nothing else",
	"idempotency_keys.scope_kind":       "as account_id",
	"idempotency_keys.user_id":          "as account_id",
	"idempotency_keys.idempotency_key":  "as account_id",
	"idempotency_keys.request_method":   "the request is kept nowhere else",
	"idempotency_keys.request_path":     "as request_method",
	"idempotency_keys.request_hash":     "as request_method",
	"idempotency_keys.request_digests":  "as request_method",
	"idempotency_keys.hash_bound":       "the database holds it beside status",
	"idempotency_keys.policy":           "the configuration's",
	"idempotency_keys.fence":            "counts calls",
	"idempotency_keys.epoch":            "counts requests",
	"idempotency_keys.attempts":         "counts calls",
	"idempotency_keys.lock_timeout":     "the policy's",
	"idempotency_keys.locked_at":        "the database holds it beside status",
	"idempotency_keys.response_headers": "sent as they are",
	"idempotency_keys.last_error":       "for people",
	"idempotency_keys.expires_at":       "the policy's",
	"idempotency_keys.created_at":       "told by nothing else",
	"idempotency_keys.completed_at":     "the database holds it beside status",
}

// change is SQL that makes another value of a column, by type.
var change = map[string]string{
	"text": `COL || 'x'`, "character varying": `COL || 'x'`, "uuid": `gen_random_uuid()`, "boolean": `NOT COL`, "smallint": `COL + 1`, "integer": `COL + 1`,
	"bigint": `COL + 1`, "timestamp with time zone": `COL + interval '1 year'`, "date": `COL + 1`, "bytea": `COL || '\x00'`, "jsonb": `COL || '{"odd": 1}'`,
	"ARRAY": `COL || '{unexpected_move}'::text[]`, "interval": `COL * 2`,
}

// words are columns whose values are of a list, so that another value is another word.
var words = map[string]string{
	"processed_events.outcome": "ignored", "orders.state": "failed", "orders.want": "pause", "orders.told": "held", "orders.currency": "USD", "recurrences.interval": "week",
	"order_transitions.effect": "release", "order_transitions.effect_state": "dead", "order_transitions.after": "revoked", "incomes.kind": "card", "incomes.currency": "GBP",
	"incomes.source_currency": "GBP", "recurrences.next_period": "2031-01-01", "transactions.kind": "void", "transactions.currency": "USD", "idempotency_keys.status": "FAILED",
}

// Whatever single value is changed, an audit finds it in one row at least, or the database itself refuses it; or there is a reason
// why nobody could tell. A new column has to be audited, or needs a reason.
func TestEveryColumnIsAudited(t *testing.T) {
	t.Parallel()
	s, pool := open(t)
	w := newShop(t, t.Context(), s, "shop")
	w.history(t)
	reset := keep(t, pool)
	used := map[string]bool{}
	var missed []string
	type column struct{ Table, Name, Type string }
	rows, _ := pool.Query(t.Context(), `
		SELECT table_name, column_name, data_type FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name = ANY($1) ORDER BY table_name, ordinal_position`, tables)
	columns, err := pgx.CollectRows(rows, pgx.RowToStructByPos[column])
	require.NoError(t, err)
	for _, c := range columns {
		name := c.Table + "." + c.Name
		if slices.ContainsFunc([]string{name, c.Table + ".*"}, func(n string) bool { used[n] = unaudited[n] != ""; return used[n] }) {
			continue
		}
		sql := strings.ReplaceAll(change[c.Type], "COL", c.Name)
		switch word := words[name]; {
		case word != "":
			sql = "'" + word + "'"
		case name == "transactions.movement":
			sql = `jsonb_set(movement, '{amount,minor}', '1')`
		}
		require.NotEmpty(t, sql, "%s is a %s", name, c.Type)
		if !noticed(t, pool, c.Table, c.Name, sql, func() bool {
			got, _ := auditOf(t, s, w)
			reset()
			return len(got) > 0
		}) {
			missed = append(missed, name)
		}
	}
	require.Empty(t, missed, "nobody notices if these are others")
	for name := range unaudited {
		require.True(t, used[name], "there is no column %s", name)
	}
}

// noticed changes a column row by row until found says that it is noticed. It reports true as well if the database refused all
// changes.
func noticed(t *testing.T, pool *pgxpool.Pool, table, column, sql string, found func() bool) bool {
	t.Helper()
	rows, _ := pool.Query(t.Context(), fmt.Sprintf(`SELECT row_number() OVER (ORDER BY x::text) FROM %s x WHERE %s IS NOT NULL`, table, column))
	n, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	require.NotEmpty(t, n, "the history has no %s.%s", table, column)
	refused := 0
	for _, i := range n {
		// By their text, since what was put back stands elsewhere.
		_, err := pool.Exec(t.Context(), fmt.Sprintf(`
			UPDATE %[1]s SET %[2]s = %[3]s WHERE ctid = (
				SELECT c FROM (SELECT x.ctid AS c, row_number() OVER (ORDER BY x::text) AS n FROM %[1]s x WHERE %[2]s IS NOT NULL) y WHERE n = %[4]d)
			AND tableoid = (SELECT o FROM (SELECT x.tableoid AS o, row_number() OVER (ORDER BY x::text) AS n FROM %[1]s x WHERE %[2]s IS NOT NULL) y WHERE n = %[4]d)`,
			table, column, sql, i))
		var pg *pgconn.PgError
		if errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23") {
			refused++
			continue
		}
		require.NoError(t, err)
		if found() {
			return true
		}
	}
	return refused == len(n)
}
