package app_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/store/storetest"
)

// Workers notice orders whose time ran out, delete keys that have expired, make the orders of recurrences that are due,
// and count what needs a person, at once when they start.
func TestWorkLooksAtTheClock(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	_, err = conn.Exec(t.Context(), `
		INSERT INTO orders (account_id, id, external_ref, registered, total, currency, flags, expires_at)
			VALUES ('shop', gen_random_uuid(), 'late', true, 5000, 'EUR', '{}', now() - interval '1 minute')`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `
		INSERT INTO idempotency_keys (account_id, scope_kind, user_id, idempotency_key, request_method, request_path, request_hash, status, policy,
			lock_timeout, expires_at)
		VALUES ('shop', 'account', gen_random_uuid(), 'old', 'POST', '/v1/orders', repeat('0', 64), 'FAILED', 'strict', '30 s', now() - interval '1 hour')`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `
		INSERT INTO recurrences (account_id, id, external_ref, amount, currency, interval, every, time_zone, starts_on, ends_after, next_period, next_start)
		VALUES ('shop', gen_random_uuid(), 'club_1', 5000, 'EUR', 'quarter', 1, 'Asia/Kolkata', '2026-01-31', 2, '2026-Q1', '2026-01-30 18:30Z')`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `
		INSERT INTO processed_events (account_id, source_id, event_id, type, received_at, outcome, reason, facts, facts_hash, mapping_version)
		VALUES ('shop', 'stripe', 'evt_1', 't', now() - interval '2 hours', 'quarantined', 'unreadable: x', '{}', '', 1)`)
	require.NoError(t, err)
	work := start(t, app.Work, configure(t, url, "https://merchant.example", secret), app.Edges{})

	require.Eventually(t, func() bool {
		var flagged, keys int
		var refs string
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT (SELECT count(*) FROM orders WHERE 'expired_unpaid' = ANY(flags)), (SELECT count(*) FROM idempotency_keys),
				(SELECT coalesce(string_agg(external_ref, ' ' ORDER BY external_ref), '') FROM orders WHERE external_ref <> 'late')`).Scan(&flagged, &keys, &refs))
		return flagged == 1 && keys == 0 && refs == "club_1:2026-Q1 club_1:2026-Q2"
	}, 30*time.Second, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		_, metrics := request(t, http.MethodGet, "http://"+work.Admin+"/metrics", nil, nil)
		return strings.Contains(metrics, `paidonce_attention{kind="event_quarantined"} 1`) && strings.Contains(metrics, `paidonce_attention_oldest_seconds{kind="event_quarantined"} 72`)
	}, 30*time.Second, 50*time.Millisecond)
}
