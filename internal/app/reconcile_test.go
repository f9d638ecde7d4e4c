package app_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store/storetest"
)

// A third of the webhooks is lost on the way; serve takes the others in, work finds the rest in the gateway's list, and says so.
func TestWorkFindsWhatWebhooksLost(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	const payments = 40
	begun := time.Now().Add(-2 * time.Minute) // the schedule leaves webhooks a minute
	var (
		to   atomic.Pointer[string]
		sent atomic.Int64
	)
	b, err := bank.Start(bank.Options{
		Now: func() time.Time { return begun }, Seed: 3, Odds: bank.Odds{bank.HookDropped: 333},
		Deliver: func(ctx context.Context, hook bank.Webhook) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, *to.Load(), bytes.NewReader(hook.Delivery.Body))
			if err != nil {
				return err
			}
			req.Header = hook.Delivery.Header
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return err
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return fmt.Errorf("answered %d", resp.StatusCode)
			}
			sent.Add(1)
			return nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	cfg := configure(t, url, "https://merchant.example", secret)
	src, err := b.Source(gateway.Source{ID: "stripe", Account: "shop", Gateway: "stripe", Mode: gateway.Test, Secrets: []string{secret}, AccessToken: "rk_test_1"})
	require.NoError(t, err)
	cfg.Accounts["shop"].Sources["stripe"] = src
	cfg.Reconcile.Every = 0
	p := start(t, app.Both, cfg, app.Edges{})
	hooks := "http://" + p.Listen + "/webhooks/stripe"
	to.Store(&hooks)
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()

	for i := range payments {
		ref := fmt.Sprintf("ord_%d", i)
		require.Equal(t, http.StatusCreated, register(t, p.Listen, ref))
		_, err := b.Open(bank.Opening{Source: "stripe", Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: true})
		require.NoError(t, err)
	}
	b.Settle(t.Context())
	paid := func() (n int) {
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM orders WHERE state = 'paid'`).Scan(&n))
		return n
	}
	before := paid()
	require.Greater(t, before, 5)
	require.Less(t, before, payments-2, "some were lost for good")

	second := *cfg
	second.Reconcile.Every = time.Second
	w := start(t, app.Work, &second, app.Edges{})
	require.Eventually(t, func() bool { return paid() == payments }, 60*time.Second, 100*time.Millisecond, "%s", w.log)
	require.NoError(t, w.stop())
	var flags, applied, deliveries int
	require.NoError(t, conn.QueryRow(t.Context(), `
		SELECT (SELECT count(*) FROM orders WHERE flags <> '{}'), (SELECT coalesce(sum((report ->> 'moved')::int), 0) FROM reconcile_runs),
			(SELECT sum(deliveries) FROM processed_events WHERE source_id = 'stripe')`).Scan(&flags, &applied, &deliveries))
	require.Zero(t, flags, "what is told twice, in whatever words, is nothing odd")
	require.Equal(t, payments-before, applied)
	require.Contains(t, w.log.String(), `"msg":"source reconciled"`)
}

// Where a list names payments only, these are asked about, and what is answered counts as found.
func TestWorkAsksAboutWhatIsListed(t *testing.T) {
	t.Parallel()
	url := storetest.OpenURL(t)
	const payments = 8
	begun := time.Now().Add(-2 * time.Minute)
	b, err := bank.Start(bank.Options{Now: func() time.Time { return begun }, Odds: bank.Odds{}})
	require.NoError(t, err)
	t.Cleanup(b.Close)
	cfg := configure(t, url, "https://merchant.example", secret)
	src, err := b.Source(gateway.Source{ID: "mp", Account: "shop", Gateway: "mercadopago", Mode: gateway.Test, Topic: "payment", Secrets: []string{secret}, AccessToken: "TEST-1"})
	require.NoError(t, err)
	cfg.Accounts["shop"].Sources["mp"] = src
	cfg.Reconcile.Every = time.Second
	p := start(t, app.Both, cfg, app.Edges{})
	for i := range payments {
		ref := fmt.Sprintf("ord_%d", i)
		require.Equal(t, http.StatusCreated, register(t, p.Listen, ref))
		_, err := b.Open(bank.Opening{Source: "mp", Reference: ref, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: true})
		require.NoError(t, err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.Eventually(t, func() bool {
		var paid, moved int
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT (SELECT count(*) FROM orders WHERE state = 'paid'),
				(SELECT coalesce(sum((report ->> 'moved')::int), 0) FROM reconcile_runs WHERE source_id = 'mp')`).Scan(&paid, &moved))
		return paid == payments && moved == payments
	}, 60*time.Second, 100*time.Millisecond, "%s", p.log)
	require.NoError(t, p.stop())
}
