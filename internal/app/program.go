package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/outbound"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// parts says what a process does.
type parts struct{ serve, work bool }

// Serve takes webhooks and the merchant's API in.
func Serve(ctx context.Context, cfg *config.Config, e Edges) error {
	return run(ctx, cfg, e, parts{serve: true})
}

// Work tells merchants what to do, and keeps the database in order.
func Work(ctx context.Context, cfg *config.Config, e Edges) error {
	return run(ctx, cfg, e, parts{work: true})
}

// Both is Serve and Work in one process, each with its own connections.
func Both(ctx context.Context, cfg *config.Config, e Edges) error {
	return run(ctx, cfg, e, parts{serve: true, work: true})
}

// program is a running process.
type program struct {
	cfg      *config.Config // as at the start; what a reload changes is in live
	edges    Edges
	log      *slog.Logger
	live     *live
	registry *prometheus.Registry
	checks   []receiver.Check
	store    *store.Store // of the first part
	resume   chan struct{}
	strict   bool             // refuses to leave out sources that receive
	calls    *outbound.Client // to gateways; see client

	front []func(context.Context) error // run until the process is to stop
	back  []func(context.Context) error // run until all of front has returned
	addrs Addrs
}

func run(ctx context.Context, cfg *config.Config, e Edges, what parts) error {
	e = e.withDefaults()
	tuneMemory()
	p := &program{
		cfg: cfg, edges: e, log: e.Log, live: newLive(cfg), registry: newRegistry(),
		resume: make(chan struct{}, 1),
		strict: what.serve && !what.work, // what runs both is dev, where sources come and go
	}
	p.log.InfoContext(ctx, "starting", "serve", what.serve, "work", what.work, "config", cfg)

	var closers []func()
	defer func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}()
	closers = append(closers, func() {
		if p.calls != nil {
			p.calls.Close()
		}
	})
	open := func(part string, size int) (*store.Store, error) {
		st, err := p.open(ctx, part, size)
		if err == nil {
			closers = append(closers, st.Pool().Close)
		}
		return st, err
	}

	if what.work {
		st, err := open("work", cfg.Pool.Work)
		if err != nil {
			return err
		}
		stop, err := p.addWork(st)
		if err != nil {
			return err
		}
		closers = append(closers, stop)
	}
	if what.serve {
		st, err := open("serve", cfg.Pool.Serve)
		if err != nil {
			return err
		}
		if err := p.addServe(ctx, st); err != nil {
			return err
		}
	}
	admin := cfg.AdminListen
	if !what.serve {
		admin = cfg.Workers.AdminListen
	}
	if err := p.addAdmin(ctx, admin); err != nil {
		return err
	}
	if err := p.checkSources(ctx, cfg); err != nil {
		return err
	}
	if err := p.enterAccounts(ctx, cfg); err != nil {
		return err
	}
	return p.run(ctx)
}

// open opens the connections of a part and checks what they lead to.
func (p *program) open(ctx context.Context, part string, size int) (*store.Store, error) {
	pool, err := OpenPool(ctx, p.cfg, part, size)
	if err != nil {
		return nil, err
	}
	if err := checkDatabase(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	st, err := store.New(pool, store.Options{MaxOpenFetches: p.cfg.Fetch.Open, Logger: p.log})
	if err != nil {
		pool.Close()
		return nil, err
	}
	registerPool(p.registry, part, pool)
	registerRetries(p.registry, part, st)
	p.checks = append(p.checks, receiver.Check{
		Name: part + "_database", Do: func(ctx context.Context) error { return checkDatabase(ctx, pool) },
	})
	if p.store == nil {
		p.store = st
	}
	return st, nil
}

// run starts everything, waits for ctx or a fault, and ends it in the order that
// loses nothing: no new requests and claims, then the open ones, then the
// ingester, then the admin listener. The pools are closed by the caller.
func (p *program) run(ctx context.Context) error {
	backCtx, stopBack := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBack()
	back, backCtx := errgroup.WithContext(backCtx)
	for _, f := range p.back {
		back.Go(func() error { return f(backCtx) })
	}

	front, frontCtx := errgroup.WithContext(ctx)
	for _, f := range append(p.front, p.reloadLoop) {
		front.Go(func() error { return f(frontCtx) })
	}
	// A fault of what must outlive the rest ends the rest too.
	front.Go(func() error {
		select {
		case <-backCtx.Done():
			return errors.New("stopped: a part that everything depends on has ended")
		case <-frontCtx.Done():
			return nil
		}
	})
	p.log.InfoContext(ctx, "started", "listen", p.addrs.Listen, "admin_listen", p.addrs.Admin)
	p.edges.Ready(p.addrs)

	err := front.Wait()
	stopBack()
	if backErr := back.Wait(); backErr != nil {
		err = backErr
	}
	if err != nil {
		p.log.ErrorContext(context.WithoutCancel(ctx), "stopped by a fault", "err", err)
		return err
	}
	p.log.InfoContext(context.WithoutCancel(ctx), "stopped")
	return nil
}

// addAdmin opens the listener for health and metrics. It is the last to close,
// and tells load balancers at once that the process is about to.
func (p *program) addAdmin(ctx context.Context, address string) error {
	if address == "off" {
		return nil
	}
	ln, err := listen(ctx, "admin_listen", address)
	if err != nil {
		return err
	}
	p.addrs.Admin = ln.Addr().String()
	stopping := make(chan struct{})
	p.front = append(p.front, func(ctx context.Context) error {
		<-ctx.Done()
		close(stopping)
		return nil
	})
	checks := append([]receiver.Check{{Name: "accepting", Do: func(context.Context) error {
		select {
		case <-stopping:
			return errors.New("the process is stopping")
		default:
			return nil
		}
	}}}, p.checks...)
	h := receiver.Admin(receiver.AdminOptions{Checks: checks, Notes: p.notes, Gatherer: p.registry, Logger: p.log})
	srv := receiver.NewServer(h, receiver.ServerOptions{Logger: p.log})
	p.back = append(p.back, serveOn(srv, ln, time.Second))
	return nil
}

func listen(ctx context.Context, setting, address string) (net.Listener, error) {
	ln, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", setting, address, err)
	}
	return ln, nil
}

func serveOn(srv *http.Server, ln net.Listener, grace time.Duration) func(context.Context) error {
	return func(ctx context.Context) error { return receiver.Serve(ctx, srv, ln, grace) }
}
