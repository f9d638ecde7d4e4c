package app

import (
	"context"
	"fmt"
	"time"

	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// client returns what calls gateways, the same for all parts of the process: the
// paces that it keeps are the process's. What run closes is closed with it.
func (p *program) client() (*outbound.Client, error) {
	if p.calls != nil {
		return p.calls, nil
	}
	opts := p.edges.Calls
	opts.Now, opts.DialContext, opts.RootCAs, opts.Registerer = p.edges.Now, p.edges.DialContext, p.edges.RootCAs, p.registry
	c, err := outbound.NewClient(opts)
	if err != nil {
		return nil, err
	}
	p.calls = c
	return c, nil
}

// verifier returns what verifies deliveries whose keys are found on the network.
func (p *program) verifier() (*outbound.Verifier, error) {
	c, err := p.client()
	if err != nil {
		return nil, err
	}
	return outbound.NewVerifier(c, outbound.VerifierOptions{}), nil
}

// newFetcher returns what asks gateways about what their webhooks only name. What
// they answer goes the way of webhooks, through an ingester of this part's own
// connections.
func (p *program) newFetcher(st *store.Store) (*outbound.Fetcher, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	ingester, err := processor.NewIngester(st, processor.IngestOptions{Logger: p.log})
	if err != nil {
		return nil, err
	}
	p.back = append(p.back, ingester.Run)
	opts := p.edges.Fetches
	opts.Workers, opts.Logger, opts.Registerer = p.cfg.Fetch.Workers, p.log, p.registry
	return outbound.NewFetcher(st, client, ingester, p.live.source, opts)
}

// newMover returns what moves money at gateways, as the merchant's API has asked.
func (p *program) newMover(st *store.Store) (*outbound.Mover, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	opts := p.edges.Moves
	opts.Logger, opts.Registerer = p.log, p.registry
	return outbound.NewMover(st, client, p.live.source, opts)
}

// newReconciler returns what looks for what webhooks lost. What it finds goes their way, through an ingester of its own.
func (p *program) newReconciler(st *store.Store) (*outbound.Reconciler, error) {
	client, err := p.client()
	if err != nil {
		return nil, err
	}
	ingester, err := processor.NewIngester(st, processor.IngestOptions{Logger: p.log})
	if err != nil {
		return nil, err
	}
	p.back = append(p.back, ingester.Run)
	return outbound.NewReconciler(st, client, ingester, p.live.sources, outbound.ReconcileOptions{
		Every: p.cfg.Reconcile.Every, TickEvery: min(p.cfg.Reconcile.Every, 15*time.Second),
		WaitingOptions: outbound.WaitingOptions{StuckAfter: p.cfg.Reconcile.StuckAfter},
		Logger:         p.log, Registerer: p.registry,
	})
}

// stuckAfter is how long an object may wait to be asked about before it is noted.
const stuckAfter = 15 * time.Minute

// notes tells paidonce health, and whoever reads /readyz, of gateways that could
// not be asked, or whose lists could not be read.
func (p *program) notes(ctx context.Context) (map[string]string, error) {
	piles, err := p.store.FetchPiles(ctx)
	if err != nil {
		return nil, err
	}
	notes := map[string]string{}
	for gateway, pile := range piles {
		if pile.Dead > 0 || pile.Oldest > stuckAfter {
			notes["fetches_"+gateway] = fmt.Sprintf("%d given up, %d waiting, the oldest for %s", pile.Dead, pile.Open, pile.Oldest.Round(time.Second))
		}
	}
	cursors, err := p.store.ReconcileCursors(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, c := range cursors {
		if _, configured := p.live.source(c.Source); configured && c.Failures > 1 {
			notes["reconcile_"+c.Source] = fmt.Sprintf("failed %d times: %s", c.Failures, c.LastError)
		}
	}
	return notes, nil
}
