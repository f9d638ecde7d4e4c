package app_test

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/store/storetest"
)

// A server that starts after work has not run for weeks has no partition to store
// a payload in: it makes them itself.
func TestServeMakesPartitionsThatAreMissing(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	partitions := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_inherits WHERE inhparent = 'event_payloads'::regclass`).Scan(&n))
		return n
	}
	_, err = conn.Exec(t.Context(), `
		DO $$ DECLARE p regclass; BEGIN
		  FOR p IN SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = 'event_payloads'::regclass LOOP
		    EXECUTE format('DROP TABLE %s', p);
		  END LOOP;
		END $$`)
	require.NoError(t, err)
	require.Zero(t, partitions())

	cfg := configure(t, url, "http://127.0.0.1:1/", secret)
	r := start(t, app.Serve, cfg, app.Edges{})
	require.Greater(t, partitions(), 13)
	require.Equal(t, http.StatusOK, deliver(t, r.Listen, secret, payment(t, "ord_1")))
}
