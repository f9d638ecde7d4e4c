package bench_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/migrations"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// runPaidonce is `paidonce serve` with one account and one source.
func runPaidonce(url string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := migrations.Up(ctx, url, nil); err != nil {
		return err
	}
	if err := registerOrders(ctx, url); err != nil {
		return err
	}
	cfg := config.Defaults()
	cfg.DatabaseURL, cfg.Listen, cfg.AdminListen = url, "127.0.0.1:0", "off"
	cfg.Limits.APIRate, cfg.Limits.APIBurst = 1_000_000, 1_000_000
	sum := sha256.Sum256([]byte(apiKey))
	keys := []config.APIKey{{Name: "bench", SHA256: hex.EncodeToString(sum[:]), Roles: []string{config.RoleRead, config.RoleWrite}}}
	cfg.Accounts = map[string]config.Account{"shop": {APIKeys: keys, Sources: map[string]gateway.Source{
		"stripe": {ID: "stripe", Account: "shop", Gateway: "stripe", Mode: "live", Secrets: []string{secret}},
	}}}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return app.Serve(ctx, cfg, app.Edges{Log: log, Ready: func(a app.Addrs) { fmt.Println(a.Listen) }})
}

func registerOrders(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	st, err := store.New(pool, store.Options{})
	if err != nil {
		return err
	}
	if err := st.EnsureAccounts(ctx, []string{"shop"}); err != nil {
		return err
	}
	const batch = 500
	for n := int64(1); n <= ordersAhead; n += batch {
		events := make([]store.Event, batch)
		for i := range events {
			r := ref(n + int64(i))
			events[i] = store.Event{Account: "shop", Source: store.APISource, Event: order.Event{
				ID: "register:" + r, Type: "order.registered", At: time.Unix(1_789_000_000, 0), Reference: r,
				Command: &order.Command{Register: &order.Amount{Minor: 5000, Currency: "EUR"}},
			}}
		}
		if _, err := st.Apply(ctx, events); err != nil {
			return err
		}
	}
	_, err = pool.Exec(ctx, `VACUUM ANALYZE`)
	return err
}
