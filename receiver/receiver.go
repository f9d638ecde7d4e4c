// Package receiver takes webhooks in over HTTP: one delivery is read once, verified, parsed, ingested, and then gets
// the answer that its gateway wants to see.
//
// What it guarantees:
//
//   - A 200 is written only after [Ingester.Ingest] returned without an error for every event of the delivery, that
//     is: after the commit. Every other end is a 4xx that stored nothing, or a 503 that asks the gateway to try again.
//   - Nothing looks at a body before its signature was verified over the bytes as they came: no decompression, no
//     parsing, no row, no outbound call. Two things are excepted: a gateway's probe of an endpoint, whose answer
//     tells a stranger nothing; and deliveries of gateways that sign nothing, of which only the names of objects are
//     read, to be asked about ([Announcer]). Those are never stored, and no event is ever made of them.
//   - A refusal tells its reason to the log and the metrics, never to the caller: all 401 answers are one body.
//   - Neither the log nor an answer holds a secret, a body, a signature, a query string, or the digest that would have
//     been right. Of the query string only what a gateway signs is looked at.
//   - Memory is bounded: by body size, by the bytes of all bodies that are being held, by the number of deliveries in
//     flight, and by the number of addresses whose refusals are counted.
//   - No path is redirected: gateways do not follow redirects, or follow them as a GET.
package receiver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/store"
)

// Ingester commits events. It returns one result per event, in the order of events, after they were committed, and
// an error if any of them was not, or if nobody knows.
type Ingester interface {
	Ingest(ctx context.Context, events []store.Event) ([]store.Result, error)
}

// Announcer remembers what has to be asked about at a gateway. It returns after that was committed; an error means that
// it was not, or that nobody knows.
type Announcer interface {
	Announce(ctx context.Context, objects []store.Announcement) (store.Announced, error)
}

// Verifier verifies deliveries of gateways that need the network for it ([gateway.Remote]). A *signature.Error means
// that the delivery is not genuine, every other error that this could not be found out.
type Verifier interface {
	Verify(ctx context.Context, gw *gateway.Gateway, src gateway.Source, d gateway.Delivery, now time.Time) error
}

// SourceFunc finds a configured source by its id, the {source} of /webhooks/{source}. It is asked once per delivery,
// so a reload of the configuration takes effect with the next one. It must be safe for concurrent use.
type SourceFunc func(id string) (gateway.Source, bool)

// Options are optional settings of a [Receiver]. The zero value is ready to use.
type Options struct {
	// Gateways finds a gateway by name. Default [gateway.Lookup].
	Gateways func(name string) (*gateway.Gateway, bool)

	// Announcer takes what has to be asked about at gateways. Without one, deliveries that name such things are
	// answered 503.
	Announcer Announcer

	// Verifier verifies what needs the network. Without one, deliveries of gateways that need it are answered 503.
	Verifier Verifier

	// MaxVerifying is how many deliveries may wait for the Verifier at once; one more is answered 503. Default 128.
	MaxVerifying int

	// MaxAnnouncing is how many announcements are written at once, so that a flood of them leaves the database to the
	// others; more wait. Default 4.
	MaxAnnouncing int

	// MaxBody is the largest accepted body in bytes, for sources that set no MaxBody of their own. Default 1 MiB.
	MaxBody int64

	// BodyTimeout is how long a body may take to arrive, counted from the end of its headers. Default 10 s.
	BodyTimeout time.Duration

	// MaxInFlight is how many verified deliveries may wait for their commit at once; one more is answered 503.
	// Four times as many may be on their way in. Default 1024.
	MaxInFlight int

	// MaxBodyBytes is how many bytes the bodies of all deliveries may hold at once, the first 16 KiB of each not
	// counted, so that large bodies never keep ordinary ones out. Beyond it: 503. Default 64 MiB.
	MaxBodyBytes int64

	// RetryAfter is what a 503 asks the gateway to wait. Default 2 s.
	RetryAfter time.Duration

	// Refusals is how many bad signatures of one address are answered 401 before the answer is 429.
	Refusals RefusalLimit

	// TrustedProxies are the networks of the reverse proxies in front. Only of a connection from one of them is
	// ProxyHeader read; else the address of the connection is the sender's. Default: none.
	TrustedProxies []netip.Prefix

	// ProxyHeader is the header in which trusted proxies append the address they were called from. Default
	// X-Forwarded-For.
	ProxyHeader string

	// Now reports the current time, against which signatures are checked. Default time.Now.
	Now func() time.Time

	// Logger receives one line per request. Default: discard.
	Logger *slog.Logger

	// Registerer takes the metrics. Default: they are counted, and registered nowhere.
	Registerer prometheus.Registerer
}

func (o Options) withDefaults() Options {
	if o.Gateways == nil {
		o.Gateways = gateway.Lookup
	}
	if o.MaxBody == 0 {
		o.MaxBody = 1 << 20
	}
	if o.BodyTimeout == 0 {
		o.BodyTimeout = 10 * time.Second
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 1024
	}
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = 64 << 20
	}
	if o.MaxVerifying == 0 {
		o.MaxVerifying = 128
	}
	if o.MaxAnnouncing == 0 {
		o.MaxAnnouncing = 4
	}
	if o.RetryAfter == 0 {
		o.RetryAfter = 2 * time.Second
	}
	if o.ProxyHeader == "" {
		o.ProxyHeader = "X-Forwarded-For"
	}
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Refusals = o.Refusals.withDefaults()
	return o
}

func (o Options) check() error {
	var errs []error
	for name, v := range map[string]int64{
		"MaxVerifying": int64(o.MaxVerifying), "MaxAnnouncing": int64(o.MaxAnnouncing),
		"MaxBody": o.MaxBody, "BodyTimeout": int64(o.BodyTimeout), "MaxInFlight": int64(o.MaxInFlight),
		"MaxBodyBytes": o.MaxBodyBytes, "RetryAfter": int64(o.RetryAfter), "Refusals.Burst": int64(o.Refusals.Burst),
		"Refusals.Every": int64(o.Refusals.Every), "Refusals.Addresses": int64(o.Refusals.Addresses),
	} {
		if v < 0 {
			errs = append(errs, fmt.Errorf("receiver: Options.%s is negative; it must be 0 (default) or more", name))
		}
	}
	return errors.Join(errs...)
}

// Receiver serves POST /webhooks/{source}, and answers everything else 404 or 405, save other methods that a gateway
// probes its endpoints with. It is safe for concurrent use.
// Mount it so that it sees the whole path as it was sent: http.ServeMux would answer unclean paths with a redirect.
type Receiver struct {
	sources SourceFunc
	ingest  Ingester
	opts    Options
	router  chi.Router

	metrics  *metrics
	refusals *refusals
	reading  atomic.Int64  // deliveries between their headers and their last byte
	held     budget        // bytes of bodies
	slots    chan struct{} // verified deliveries that wait for their commit

	verifying  chan struct{} // deliveries that wait for the Verifier
	announcing chan struct{} // transactions of the Announcer
	notes      *refusals     // bounds how many probes of an address are noted in the log
	diagnoses  diagnoses
}

// New returns a Receiver that looks sources up with sources and hands what is verified to ing. Both are required.
// It fails on a negative option, or if Options.Registerer already has metrics of these names.
func New(sources SourceFunc, ing Ingester, opts Options) (*Receiver, error) {
	if sources == nil || ing == nil {
		return nil, errors.New("receiver: nil SourceFunc or Ingester")
	}
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	rc := &Receiver{
		sources: sources, ingest: ing, opts: opts,
		metrics:  newMetrics(),
		refusals: newRefusals(opts.Refusals),
		slots:    make(chan struct{}, opts.MaxInFlight),

		verifying:  make(chan struct{}, opts.MaxVerifying),
		announcing: make(chan struct{}, opts.MaxAnnouncing),
		notes:      newRefusals(RefusalLimit{Burst: 10, Every: time.Minute}.withDefaults()),
	}
	rc.held.free.Store(opts.MaxBodyBytes)
	if err := rc.metrics.register(opts.Registerer); err != nil {
		return nil, fmt.Errorf("receiver: %w", err)
	}

	r := chi.NewRouter()
	r.HandleFunc("/webhooks/{source}", rc.serve(rc.deliver))
	r.NotFound(rc.serve(func(http.ResponseWriter, *http.Request, *record) *refusal {
		return &refusal{status: http.StatusNotFound, reason: reasonUnknownPath}
	}))
	r.MethodNotAllowed(rc.serve(func(http.ResponseWriter, *http.Request, *record) *refusal {
		return &refusal{status: http.StatusMethodNotAllowed, reason: reasonMethod}
	}))
	rc.router = r
	return rc, nil
}

// ServeHTTP implements http.Handler.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) { rc.router.ServeHTTP(w, r) }
