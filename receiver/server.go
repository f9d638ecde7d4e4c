package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServerOptions are the limits of a server that faces the internet. The zero value is ready to use.
type ServerOptions struct {
	// ReadHeaderTimeout is how long a request's headers may take; then the connection is closed. Default 5 s.
	ReadHeaderTimeout time.Duration

	// ReadTimeout is how long a whole request may take. It backs up Options.BodyTimeout. Default 20 s.
	ReadTimeout time.Duration

	// WriteTimeout is how long a request may take from the end of its headers to the end of its answer. It must be
	// longer than the longest deadline of a gateway. Default 60 s.
	WriteTimeout time.Duration

	// IdleTimeout is how long an unused connection is kept: longer than the 60 s of common load balancers, which
	// would else meet a connection that has just been closed. Default 2 min.
	IdleTimeout time.Duration

	// MaxHeaderBytes bounds a request's line and headers; more is answered 431. Default 32 KiB.
	MaxHeaderBytes int

	// Logger receives what net/http complains about. Default: discard.
	Logger *slog.Logger
}

func (o ServerOptions) withDefaults() ServerOptions {
	for _, d := range []struct {
		v        *time.Duration
		standard time.Duration
	}{
		{&o.ReadHeaderTimeout, 5 * time.Second},
		{&o.ReadTimeout, 20 * time.Second},
		{&o.WriteTimeout, time.Minute},
		{&o.IdleTimeout, 2 * time.Minute},
	} {
		if *d.v == 0 {
			*d.v = d.standard
		}
	}
	if o.MaxHeaderBytes == 0 {
		o.MaxHeaderBytes = 32 << 10
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// NewServer returns a server of h with every limit set. It listens on nothing: see [Serve].
func NewServer(h http.Handler, opts ServerOptions) *http.Server {
	opts = opts.withDefaults()
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: opts.ReadHeaderTimeout,
		ReadTimeout:       opts.ReadTimeout,
		WriteTimeout:      opts.WriteTimeout,
		IdleTimeout:       opts.IdleTimeout,
		MaxHeaderBytes:    opts.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(opts.Logger.Handler(), slog.LevelWarn),
		// "OPTIONS *" is answered by h like everything else.
		DisableGeneralOptionsHandler: true,
	}
}

// Serve serves srv on ln until ctx ends. Then it takes no new connection, waits at most grace for the requests that are
// running, and returns nil; or, if some are still running, cuts them off and returns an error. It returns early with an
// error if ln fails. It closes ln.
func Serve(ctx context.Context, srv *http.Server, ln net.Listener, grace time.Duration) error {
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()

	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", ln.Addr(), err)
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := srv.Shutdown(ctx)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests on %s still running after %s: %w", ln.Addr(), grace, err), srv.Close())
	}
	if served := <-done; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve %s: %w", ln.Addr(), served))
	}
	return err
}
