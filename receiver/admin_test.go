package receiver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
)

func get(h http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestAdmin(t *testing.T) {
	t.Parallel()
	var broken error
	log := &logbook{}
	reg := prometheus.NewRegistry()
	setup(t, receiver.Options{Registerer: reg}).do(request(t, "/webhooks/mall", paid))
	h := receiver.Admin(receiver.AdminOptions{
		Checks: []receiver.Check{
			{Name: "database", Do: func(context.Context) error { return broken }},
			{Name: "schema", Do: func(context.Context) error { return nil }},
		},
		Gatherer: reg, Logger: log.logger(),
	})

	w := get(h, "/readyz")
	require.Equal(t, http.StatusOK, w.Code)
	require.JSONEq(t, `{"status":"ready","checks":{"database":"ok","schema":"ok"}}`, w.Body.String())

	broken = errors.New("dial db.internal: refused")
	w = get(h, "/readyz")
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"status":"not ready","checks":{"database":"failed","schema":"ok"}}`, w.Body.String())
	require.Contains(t, log.String(), "db.internal", "the log says why")

	var noted error
	h = receiver.Admin(receiver.AdminOptions{
		Checks: []receiver.Check{{Name: "database", Do: func(context.Context) error { return nil }}},
		Notes: func(context.Context) (map[string]string, error) {
			return map[string]string{"fetches_mall": "3 given up"}, noted
		},
		Logger: log.logger(), Gatherer: reg,
	})
	w = get(h, "/readyz")
	require.Equal(t, http.StatusOK, w.Code, "a note keeps no traffic away")
	require.JSONEq(t, `{"status":"ready","checks":{"database":"ok"},"notes":{"fetches_mall":"3 given up"}}`, w.Body.String())
	noted = errors.New("nobody knows")
	require.Equal(t, http.StatusOK, get(h, "/readyz").Code)

	w = get(h, "/healthz")
	require.Equal(t, http.StatusOK, w.Code, "alive, database or not")

	w = get(h, "/metrics")
	require.Equal(t, http.StatusOK, w.Code)
	require.Contains(t, w.Body.String(), `paidonce_webhook_deliveries_total{gateway="mall",source="mall",status="200"} 1`)

	require.Equal(t, http.StatusNotFound, get(receiver.Admin(receiver.AdminOptions{}), "/metrics").Code)
	require.Equal(t, http.StatusNotFound, get(h, "/webhooks/strict").Code)
}

// TestReadinessDoesNotHang: a check that does not answer is one that failed.
func TestReadinessDoesNotHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := receiver.Admin(receiver.AdminOptions{Checks: []receiver.Check{
			{Name: "database", Do: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
			{Name: "schema", Do: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		}})
		began := time.Now()
		require.Equal(t, http.StatusServiceUnavailable, get(h, "/readyz").Code)
		require.Equal(t, 2*time.Second, time.Since(began))

		slow := func(ctx context.Context) error {
			select {
			case <-time.After(1500 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		h = receiver.Admin(receiver.AdminOptions{Checks: []receiver.Check{{Name: "database", Do: slow}, {Name: "schema", Do: slow}}})
		require.Equal(t, http.StatusOK, get(h, "/readyz").Code, "together, not one after the other")
	})
}
