package app_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store/storetest"
)

// A source that received within 30 days cannot be taken out of the configuration, or renamed; paused it can be.
func TestSourceThatReceivesStays(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	with := func(edit func(*config.Account)) *config.Config {
		return change(configure(t, url, "http://127.0.0.1:1/", secret), edit)
	}
	without := with(func(a *config.Account) { delete(a.Sources, "stripe") })
	renamed := with(func(a *config.Account) {
		s := a.Sources["stripe"]
		s.ID = "stripe_eu"
		a.Sources["stripe_eu"] = s
		delete(a.Sources, "stripe")
	})
	paused := with(func(a *config.Account) {
		s := a.Sources["stripe"]
		s.Paused = true
		a.Sources["stripe"] = s
	})

	next, reload := make(chan *config.Config, 1), make(chan func(error))
	p := start(t, app.Serve, with(func(*config.Account) {}), app.Edges{
		Reload: reload, Load: func() (*config.Config, error) { return <-next, nil },
	})
	put := func(cfg *config.Config) error {
		next <- cfg
		done := make(chan error)
		reload <- func(err error) { done <- err }
		return <-done
	}
	require.NoError(t, put(without), "it has received nothing yet")
	require.NoError(t, put(with(func(*config.Account) {})))
	require.Equal(t, http.StatusUnauthorized, deliver(t, p.Listen, rolled, payment(t, "ord_0")))
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	noted := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM sources WHERE id = 'stripe'`).Scan(&n))
		return n
	}
	require.Eventually(t, func() bool { return noted() == 1 }, 10*time.Second, 10*time.Millisecond)

	const put30 = "put source stripe back with paused: true"
	for _, cfg := range []*config.Config{without, renamed} {
		require.ErrorContains(t, put(cfg), put30)
		require.ErrorContains(t, app.Serve(t.Context(), cfg, app.Edges{}), "the configuration has no source stripe of account shop (last event 20")
	}
	require.Contains(t, p.log.String(), "configuration not reloaded: the old one stays in force")
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_2")), "the old one is in force")
	require.NoError(t, put(paused))
	require.NoError(t, p.stop())

	_, err = conn.Exec(t.Context(), `UPDATE sources SET last_received_at = now() - interval '31 days'`)
	require.NoError(t, err)
	require.NoError(t, start(t, app.Serve, without, app.Edges{}).stop(), "nothing came for long")
}
