// Package app puts the program together: what paidonce serve, work and dev run,
// and what the tests run as goroutines or as child processes.
//
//	Serve(ctx, cfg, edges)   webhooks and /v1 on cfg.Listen, ingest, the admin listener
//	Work(ctx, cfg, edges)    River's workers, the ticker, retention, an admin listener of its own
//	Both(ctx, cfg, edges)    the two in one process, with one admin listener
//
// Each of them returns nil when ctx ends and everything that was under way is
// finished, and an error when it could not start, or could not end in time.
// Any number of each may run on one database.
//
// The edges of the program, its clock, its way to the network and its log, are
// handed in, so that a test can hold them. The released program passes none but
// the log: it has no switch for them.
package app

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net"
	"time"

	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/outbound"
)

// Edges is where the program touches the world. The zero value is the real
// world, with a log that goes nowhere.
type Edges struct {
	// Now reports the program's time: signatures are judged by it. Rows have the
	// database's. Default time.Now.
	Now func() time.Time

	// DialContext opens every connection to a merchant or a gateway (not those
	// to Postgres), and resolves their names. Whether a merchant's address may be
	// private is then judged by the connection it returns. Default: a net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are the authorities that the certificates of gateways' servers chain
	// to. Nil: the system's.
	RootCAs *x509.CertPool

	// Calls, Moves and Fetches are the paces at which gateways are called, for tests that cannot wait. Default: their own.
	Calls   outbound.Options
	Moves   outbound.MoveOptions
	Fetches outbound.FetchOptions

	// Log gets everything. Default: discarded.
	Log *slog.Logger

	// Ready is called once, when the listeners are open and the parts run.
	Ready func(Addrs)

	// Reload asks for the configuration to be read again, as SIGHUP does. What
	// it delivers is called when that is done, with nil if the new one is in
	// force, or the reason why the old one stays. Nil: never.
	Reload <-chan func(error)

	// Load reads the configuration again. Default: a reload is refused.
	Load func() (*config.Config, error)
}

// Addrs are the addresses that the program listens on, as host:port with the
// ports that were really taken. Empty: no such listener.
type Addrs struct {
	Listen string // webhooks and /v1; of Serve and Both
	Admin  string // health and metrics
}

func (e Edges) withDefaults() Edges {
	if e.Now == nil {
		e.Now = time.Now //nolint:forbidigo // one of the places where the real clock enters
	}
	if e.Log == nil {
		e.Log = slog.New(slog.DiscardHandler)
	}
	if e.Ready == nil {
		e.Ready = func(Addrs) {}
	}
	return e
}
