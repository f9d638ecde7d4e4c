package outbound_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/store"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(envChild); url != "" {
		fmt.Fprintln(os.Stderr, child(url))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// childName is what the child's sessions are called.
const childName = "outbound child"

// hangs is a gateway that never answers.
type hangs struct{}

func (hangs) Do(ctx context.Context, _ *gateway.Gateway, _ gateway.Source, _ gateway.Call) ([]byte, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// child works jobs with calls that hang, until it is killed or its parent is gone.
func child(url string) error {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	ctx := context.Background()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	config.ConnConfig.RuntimeParams["application_name"] = childName
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	st, err := store.New(pool, store.Options{})
	if err != nil {
		return err
	}
	source := func(id string) (gateway.Source, bool) {
		return gateway.Source{ID: id, Account: "acme", Gateway: "pinger", AccessToken: "token", Mode: gateway.Live}, true
	}
	f, err := outbound.NewFetcher(st, hangs{}, through{st}, source, outbound.FetchOptions{Gateways: gateways})
	if err != nil {
		return err
	}
	ws := river.NewWorkers()
	if err := f.Register(ws); err != nil {
		return err
	}
	c, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: f.Queues(), Workers: ws, FetchPollInterval: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler), JobTimeout: time.Minute,
	})
	if err != nil {
		return err
	}
	if err := c.Start(ctx); err != nil {
		return err
	}
	return f.Run(ctx)
}
