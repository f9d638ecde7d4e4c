package app

import (
	"context"
	"time"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// NewReconciler returns what looks for what webhooks lost, for a person who does so by hand: beside the processes of work, whose claims
// it respects. What it finds goes the way of webhooks. stop ends what was opened for it.
func NewReconciler(ctx context.Context, st *store.Store, cfg *config.Config, e Edges) (r *outbound.Reconciler, stop func() error, err error) {
	e = e.withDefaults()
	client, err := outbound.NewClient(outbound.Options{Now: e.Now, DialContext: e.DialContext, RootCAs: e.RootCAs})
	if err != nil {
		return nil, nil, err
	}
	ingester, err := processor.NewIngester(st, processor.IngestOptions{Logger: e.Log})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	live := newLive(cfg)
	r, err = outbound.NewReconciler(st, client, ingester, live.sources, outbound.ReconcileOptions{
		Every:          max(cfg.Reconcile.Every, time.Minute), // if it is never done by itself, it still has to be said when the next one is due
		WaitingOptions: outbound.WaitingOptions{StuckAfter: cfg.Reconcile.StuckAfter}, Logger: e.Log,
	})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- ingester.Run(running) }()
	return r, func() error {
		cancel()
		err := <-done
		client.Close()
		return err
	}, nil
}
