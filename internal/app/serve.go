package app

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/internal/reevaluate"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// addServe adds what takes webhooks and API requests in.
func (p *program) addServe(ctx context.Context, st *store.Store) error {
	// work looks after partitions; this is for the day on which it has not run for two weeks.
	if _, err := st.EnsurePartitions(ctx); err != nil {
		p.log.WarnContext(ctx, "partitions not made", "err", err)
	}
	ingester, err := processor.NewIngester(st, processor.IngestOptions{Logger: p.log, Registerer: p.registry})
	if err != nil {
		return err
	}
	noting := newReceipts(ingester, st, func(ctx context.Context, err error) {
		p.log.WarnContext(ctx, "receiving sources not noted", "err", err)
	})
	verifier, err := p.verifier()
	if err != nil {
		return err
	}
	webhooks, err := receiver.New(p.live.source, noting, p.receiverOptions(noting, verifier))
	if err != nil {
		return err
	}
	keys, err := idempotency.NewStore(st.Pool(), idempotency.StoreOptions{})
	if err != nil {
		return err
	}
	once, err := p.idempotency(keys)
	if err != nil {
		return err
	}
	v1, err := api.New(st, p.live.keys, api.Options{
		Idempotency: once, Keys: keys, Policy: p.live.policy, Sources: p.live.accountSources, TimeZone: p.live.timeZone,
		Rate: p.cfg.Limits.APIRate, Burst: p.cfg.Limits.APIBurst, BodyTimeout: p.cfg.Limits.BodyTimeout, Replay: p.replay(st),
		Now: p.edges.Now, Logger: p.log, Registerer: p.registry,
	})
	if err != nil {
		return err
	}
	ln, err := listen(ctx, "listen", p.cfg.Listen)
	if err != nil {
		return err
	}
	p.addrs.Listen = ln.Addr().String()
	limits := p.cfg.Limits
	srv := receiver.NewServer(route(webhooks, v1), receiver.ServerOptions{
		ReadHeaderTimeout: limits.HeaderTimeout,
		ReadTimeout:       limits.HeaderTimeout + 2*limits.BodyTimeout,
		IdleTimeout:       limits.IdleTimeout,
		MaxHeaderBytes:    int(limits.MaxHeader),
		Logger:            p.log,
	})
	p.front = append(p.front, serveOn(srv, ln, limits.ShutdownTimeout), p.resumeLoop(st))
	p.back = append(p.back, ingester.Run, noting.run)
	return nil
}

// idempotency makes the middleware of the Idempotency-Key header, on the connections that the API has.
func (p *program) idempotency(keys *idempotency.Store) (*idempotency.Middleware, error) {
	return idempotency.New(keys, idempotency.Options{
		Scope: api.Scope, ResourceURL: api.ResourceURL, Logger: p.log, Registerer: p.registry,
	})
}

// replay reads one event again, with the mapping and the configuration of now.
func (p *program) replay(st *store.Store) func(context.Context, store.EventKey, bool) (store.Reevaluated, error) {
	return func(ctx context.Context, key store.EventKey, apply bool) (store.Reevaluated, error) {
		return reevaluate.Reader{Config: p.live.config()}.Run(ctx, st, reevaluate.Work{
			Filter: store.ReevaluateFilter{Account: key.Account, Events: []store.EventKey{key}}, Apply: apply,
		})
	}
}

func (p *program) receiverOptions(announcer receiver.Announcer, verifier receiver.Verifier) receiver.Options {
	limits := p.cfg.Limits
	opts := receiver.Options{
		Announcer: announcer, Verifier: verifier,
		MaxBody: limits.MaxBody, BodyTimeout: limits.BodyTimeout,
		MaxInFlight: limits.InFlight, MaxBodyBytes: limits.BodyMemory,
		Refusals: receiver.RefusalLimit{
			Burst: limits.Refusals, Every: time.Minute / time.Duration(limits.RefusalsPerMinute),
		},
		ProxyHeader: p.cfg.TrustedProxyHeader,
		Now:         p.edges.Now, Logger: p.log, Registerer: p.registry,
	}
	for _, network := range p.cfg.TrustedProxies {
		if prefix, err := netip.ParsePrefix(network); err == nil { // the configuration was checked
			opts.TrustedProxies = append(opts.TrustedProxies, prefix)
		}
	}
	return opts
}

// route sends /v1 to the API and all else to the receiver, which knows what to
// say of paths that do not exist. Paths are not cleaned and nothing is redirected:
// http.ServeMux would do both.
func route(webhooks, v1 http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/") {
			v1.ServeHTTP(w, r)
			return
		}
		webhooks.ServeHTTP(w, r)
	})
}
