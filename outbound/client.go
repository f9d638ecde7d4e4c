package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/egress"
)

// Options are optional settings of a [Client]. The zero value is ready to use.
type Options struct {
	// Now is what time it is: dates in Retry-After are judged by it. Default time.Now.
	Now func() time.Time

	// Elapsed is a clock that only runs forward, from any start: paces, waits,
	// circuits and the lives of tokens are measured by it. Default: the process's
	// monotonic clock.
	Elapsed func() time.Duration

	// DialContext opens connections, and resolves names. Default: a net.Dialer.
	// With one's own, the check that an address is public is made on the
	// connection, before anything is sent on it.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)

	// RootCAs are the authorities that servers' certificates chain to. Nil: the system's.
	RootCAs *x509.CertPool

	// Every and Burst are the bucket of each source: so many calls at once, then
	// one in so much time. Default 20, and one in 100 ms: below what gateways
	// that publish a limit allow (Stripe: 25 a second in test mode,
	// https://docs.stripe.com/rate-limits).
	Every time.Duration
	Burst int

	// Concurrent is how many calls a source makes at once. Default 4.
	Concurrent int

	// Deadline is the time for a whole call. Default 15 s.
	Deadline time.Duration

	// MaxBody is the largest answer, unpacked, in bytes. Default 4 MiB.
	MaxBody int64

	// CircuitAfter and CircuitOpen: after so many calls of a source to a host in
	// a row without an answer, or with one of 5xx, it is left alone for so long;
	// then one call tries. Default 5 and 30 s.
	CircuitAfter int
	CircuitOpen  time.Duration

	Registerer prometheus.Registerer // default: none
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	if o.Elapsed == nil {
		start := time.Now()                                           //nolint:forbidigo // the edge where the real clock enters
		o.Elapsed = func() time.Duration { return time.Since(start) } //nolint:forbidigo // the same
	}
	o.Every, o.Burst = cmp.Or(o.Every, 100*time.Millisecond), cmp.Or(o.Burst, 20)
	o.Concurrent = cmp.Or(o.Concurrent, 4)
	o.Deadline = cmp.Or(o.Deadline, 15*time.Second)
	o.MaxBody = cmp.Or(o.MaxBody, 4<<20)
	o.CircuitAfter, o.CircuitOpen = cmp.Or(o.CircuitAfter, 5), cmp.Or(o.CircuitOpen, 30*time.Second)
	return o
}

// Client makes the calls that package gateway describes. It is safe for
// concurrent use; a process needs one.
type Client struct {
	opts     Options
	public   *http.Client
	private  *http.Client // reaches any address
	gates    gates
	circuits *egress.Circuits
	tokens   tokens
	flights  singleflight.Group
	metrics  *metrics
}

// NewClient returns a Client. The error is about metrics that are registered already.
func NewClient(opts Options) (*Client, error) {
	opts = opts.withDefaults()
	c := &Client{
		opts: opts, public: newHTTP(egress.PublicDial(opts.DialContext), opts),
		private:  newHTTP(egress.AnyDial(opts.DialContext), opts),
		gates:    gates{every: opts.Every, burst: opts.Burst, slots: opts.Concurrent, m: map[string]*gate{}},
		circuits: egress.NewCircuits(opts.CircuitAfter, opts.CircuitOpen, opts.Elapsed),
		tokens:   tokens{m: map[string]token{}},
	}
	c.metrics = newMetrics(c.circuits.Open)
	if opts.Registerer != nil {
		if err := c.metrics.register(opts.Registerer); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func newHTTP(dial egress.DialFunc, opts Options) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dial, ForceAttemptHTTP2: true,
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: opts.RootCAs},
			TLSHandshakeTimeout: min(5*time.Second, opts.Deadline), ResponseHeaderTimeout: min(10*time.Second, opts.Deadline),
			MaxIdleConnsPerHost: 2 * opts.Concurrent, IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, // what is packed all the same is unpacked within bounds
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close ends idle connections.
func (c *Client) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

// Do makes a call to the API of a source that [gateway.Fetch] describes and
// returns the body of the answer 2xx. A call with a Grant gets its token first;
// where that is no longer accepted (401), a new one is got, once. The error is an
// [*Error].
func (c *Client) Do(ctx context.Context, g *gateway.Gateway, s gateway.Source, call gateway.Call) ([]byte, error) {
	if g.Fetch == nil {
		return nil, &Error{Kind: Refused, gateway: g.Name, text: "it has no API that is asked"}
	}
	return c.ask(ctx, target{gateway: g.Name, base: g.Fetch.BaseURL(s)}, s, call)
}

// List makes a call to the API of a source that [gateway.Listing] describes, as Do does.
func (c *Client) List(ctx context.Context, g *gateway.Gateway, s gateway.Source, call gateway.Call) ([]byte, error) {
	if g.Listing == nil {
		return nil, &Error{Kind: Refused, gateway: g.Name, text: "it has no list of what happened"}
	}
	return c.ask(ctx, target{gateway: g.Name, base: g.Listing.BaseURL(s)}, s, call)
}

// Call makes a call to the API of a source at a base URL, and returns what it was answered, whatever the status: what a refusal
// means is the caller's to say. It keeps the paces and guards of [Client.Do]. The error is an [*Error]: there was no answer, or none
// that can be read, or no call was made (no Status, and After says when).
func (c *Client) Call(ctx context.Context, g *gateway.Gateway, s gateway.Source, base string, call gateway.Call) (gateway.Reply, error) {
	a, err := c.answered(ctx, target{gateway: g.Name, base: base}, s, call)
	if a == nil {
		return gateway.Reply{}, err
	}
	return gateway.Reply{Status: a.status, Header: a.header, Body: a.body}, nil
}

// target is where a call goes.
type target struct {
	gateway string
	base    string // URL without a slash at the end
}

// ask is Do for any base URL.
func (c *Client) ask(ctx context.Context, t target, s gateway.Source, call gateway.Call) ([]byte, error) {
	a, err := c.answered(ctx, t, s, call)
	if err != nil {
		return nil, err
	}
	return a.body, nil
}

// answered makes a call. A refusal is an error, beside the answer.
func (c *Client) answered(ctx context.Context, t target, s gateway.Source, call gateway.Call) (*answer, error) {
	u, bad := t.resolve(call.Path, s.APIAllowPrivate)
	if bad != nil {
		c.metrics.done(t.gateway, bad)
		return nil, bad
	}
	leave, away := c.enter(t, s, u.Host)
	if away != nil {
		c.metrics.turnedAway(t.gateway)
		return nil, away
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, c.opts.Deadline)
	defer cancel()

	if call.Grant == nil {
		return c.send(ctx, t, s, u, call, "")
	}
	for again := false; ; again = true {
		bearer, fresh, err := c.token(ctx, t, s, *call.Grant)
		if err != nil {
			return nil, err
		}
		a, err := c.send(ctx, t, s, u, call, bearer)
		var e *Error
		if errors.As(err, &e) && e.Status == http.StatusUnauthorized {
			c.tokens.drop(bearer)
			if !fresh && !again {
				continue // it was taken back before its time
			}
		}
		return a, err
	}
}

// resolve returns the URL of a path at the target: its host is always the base's.
func (t target) resolve(path string, allowPrivate bool) (*url.URL, *Error) {
	refuse := func(text string) (*url.URL, *Error) {
		return nil, &Error{Kind: Refused, gateway: t.gateway, text: text}
	}
	base, err := url.Parse(t.base)
	switch {
	case err != nil || base.Host == "" || base.Opaque != "":
		return refuse("its base URL cannot be used")
	case base.Scheme != "https" && (base.Scheme != "http" || !allowPrivate):
		return refuse("its base URL is not https")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return refuse("its base URL has a user, query or fragment")
	case !strings.HasPrefix(path, "/"):
		return refuse("the call has no path")
	}
	u, err := url.Parse(t.base + path)
	if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || u.User != nil || u.Fragment != "" {
		return refuse("the path of the call cannot be used")
	}
	if slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == ".." || part == "." }) {
		return refuse("the path of the call leads elsewhere")
	}
	return u, nil
}

// send makes one request, whatever paces and waits there are, and reports how it
// ended to whom it concerns.
func (c *Client) send(ctx context.Context, t target, s gateway.Source, u *url.URL, call gateway.Call, bearer string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, cmp.Or(call.Method, http.MethodGet), u.String(), bytes.NewReader(call.Body))
	if err != nil {
		return nil, &Error{Kind: Refused, gateway: t.gateway, text: "the call cannot be made"}
	}
	if call.Header != nil {
		req.Header = call.Header.Clone()
	}
	if bearer != "" {
		req.Header.Set("Authorization", "Bearer "+bearer)
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	client := c.public
	if s.APIAllowPrivate {
		client = c.private
	}
	began := c.opts.Elapsed()
	a, bad := c.exchange(ctx, client, req, t, c.opts.MaxBody)
	c.metrics.took(t.gateway, c.opts.Elapsed()-began)
	c.metrics.done(t.gateway, bad)
	c.report(s, u.Host, bad)
	if bad != nil {
		return a, bad
	}
	return a, nil
}

const userAgent = "Paidonce (+https://github.com/paidonce/paidonce)"

// report lets circuits and waits know how a call ended.
func (c *Client) report(s gateway.Source, host string, e *Error) {
	switch {
	case e == nil:
		c.circuits.Report(circuitOf(s, host), false)
	case errors.Is(e.cause, context.Canceled): // the caller went away: nobody knows
	default:
		silent := e.Status == 0 && e.Kind == Retry
		c.circuits.Report(circuitOf(s, host), silent || e.Status/100 == 5)
		if e.Kind == Retry && e.After > 0 {
			c.gates.of(s.ID).hold(c.opts.Elapsed() + e.After)
		}
	}
}

func circuitOf(s gateway.Source, host string) string { return s.ID + " " + host }
