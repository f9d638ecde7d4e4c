package processor

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/paidonce/paidonce/internal/egress"
	"github.com/paidonce/paidonce/signature"
)

// DialFunc opens a connection, as net.Dialer.DialContext does.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// ErrPrivateAddress is returned for a callback whose host is, or resolves to, an address that is not public.
var ErrPrivateAddress = errors.New("the callback's host has an address that is not public; set allow_private if that is meant")

// Target is where an account's effects are called out to.
type Target struct {
	// URL gets a POST for every effect.
	URL string
	// Secrets sign it, each of them, so that the merchant can change over: "whsec_" and the base64 of the key.
	Secrets []string
	// AllowPrivate allows hosts with loopback, private and other addresses that are not public.
	AllowPrivate bool
	// Timeout is the time for the whole call. Default, and at most: [WorkerOptions.Deadline].
	Timeout time.Duration
}

// CallbackOptions are optional settings of a [Callback]. The zero value is ready to use.
type CallbackOptions struct {
	// Now is the time that calls are signed with. Default time.Now.
	Now func() time.Time
	// DialContext opens connections, and resolves names. Default: a net.Dialer. With one's own, the check that an address
	// is public is made on the connection, before anything is sent on it.
	DialContext DialFunc
	// TLS is the client's TLS configuration. Default: the system's roots, TLS 1.2 or later.
	TLS *tls.Config
	// MaxIdle is how many idle connections are kept per host. Default 16.
	MaxIdle int
}

// Callback is the [Fulfiller] that asks the merchant over HTTP. The call is a POST of [Call.MarshalJSON], signed as
// Standard Webhooks says (webhook-id is the key), with the key once more as Idempotency-Key.
//
//	2xx                             done
//	409, 423, 425, 429, 5xx, no     tried again by the schedule, not before Retry-After
//	answer, network error
//	410, 422                        dead at once
//	other 4xx, 3xx, private address refused: tried again for a day, then dead
//
// Redirects are never followed and no proxy is used: the address that was checked is the one that is called.
//
// Specification of the signature: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
type Callback struct {
	target  func(account string) (Target, bool)
	scheme  *signature.Scheme
	now     func() time.Time
	public  *http.Client
	private *http.Client // reaches any address
}

// NewCallback returns a Callback that asks target for an account's target at every call, so that a configuration can
// be reloaded; target reports false for an account that has none.
func NewCallback(target func(account string) (Target, bool), opts CallbackOptions) (*Callback, error) {
	if target == nil {
		return nil, errors.New("processor: nil target function")
	}
	scheme, ok := signature.Lookup("standard")
	if !ok {
		return nil, errors.New("processor: there is no signature scheme standard")
	}
	now := opts.Now
	if now == nil {
		now = time.Now //nolint:forbidigo // the edge where the real clock enters
	}
	return &Callback{
		target: target, scheme: scheme, now: now,
		public:  newClient(egress.PublicDial(opts.DialContext), opts),
		private: newClient(egress.AnyDial(opts.DialContext), opts),
	}, nil
}

func newClient(dial DialFunc, opts CallbackOptions) *http.Client {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if opts.TLS != nil {
		conf = opts.TLS.Clone()
	}
	return &http.Client{
		Transport: &http.Transport{
			Proxy: nil, DialContext: dial, TLSClientConfig: conf, ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: cmp.Or(opts.MaxIdle, 16), IdleConnTimeout: 90 * time.Second,
			MaxResponseHeaderBytes: maxAnswer, DisableCompression: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// maxAnswer is how much of an answer's head, and of its body, is read: nothing in it is needed.
const maxAnswer = 64 << 10

// Close ends idle connections.
func (c *Callback) Close() {
	c.public.CloseIdleConnections()
	c.private.CloseIdleConnections()
}

// Endpoint implements [Endpointer]: an endpoint is a URL.
func (c *Callback) Endpoint(account string) (string, bool) {
	t, ok := c.target(account)
	return t.URL, ok && t.URL != ""
}

// Fulfil implements [Fulfiller].
func (c *Callback) Fulfil(ctx context.Context, call Call) error {
	t, ok := c.target(call.Account)
	if !ok {
		return errors.New("the account has no callback")
	}
	if t.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, t.Timeout)
		defer cancel()
	}
	req, err := c.request(ctx, t, call)
	if err != nil {
		return Refused(err)
	}
	client := c.public
	if t.AllowPrivate {
		client = c.private
	}
	resp, err := client.Do(req)
	if err != nil {
		return unanswered(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer) // so that the connection can be used again
	return c.read(resp)
}

func (c *Callback) request(ctx context.Context, t Target, call Call) (*http.Request, error) {
	body, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode the callback: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.URL, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the callback's url cannot be used") // the error would quote it
	}
	if err := c.sign(req.Header, body, call.Key(), t.Secrets); err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Paidonce (+https://github.com/paidonce/paidonce)")
	// Names of headers have no case, but net/http repeats a request that has "Idempotency-Key" by itself when a kept
	// connection breaks after it was sent: the merchant might then work on two at once.
	req.Header["idempotency-key"] = []string{call.Key()}
	return req, nil
}

// sign adds the headers of Standard Webhooks; with several secrets their signatures stand in one list.
func (c *Callback) sign(h http.Header, body []byte, id string, secrets []string) error {
	if len(secrets) == 0 {
		return errors.New("the callback has no secret")
	}
	now := c.now()
	var list []string
	for _, secret := range secrets {
		s, err := c.scheme.Sign(body, secret, now, signature.SignOptions{ID: id})
		if err != nil {
			return fmt.Errorf("sign the callback: %w", err)
		}
		for name, values := range s.Header {
			h[name] = values
		}
		list = append(list, s.Header.Get(signatureHeader))
	}
	h.Set(signatureHeader, strings.Join(list, " "))
	return nil
}

const signatureHeader = "Webhook-Signature"

// unanswered turns an error of the client into what is stored and shown: without the URL, which may hold a token.
func unanswered(ctx context.Context, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	switch {
	case errors.Is(err, egress.ErrNotPublic):
		return Refused(ErrPrivateAddress)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	default:
		return fmt.Errorf("no answer: %w", err)
	}
}

func (c *Callback) read(resp *http.Response) error {
	code := resp.StatusCode
	if code/100 == 2 {
		return nil
	}
	a := &answer{class: classRefused, status: code, err: fmt.Errorf("the merchant answered %d %s", code, http.StatusText(code))}
	switch {
	case code/100 == 5, code == http.StatusConflict, code == http.StatusLocked, code == http.StatusTooEarly, code == http.StatusTooManyRequests:
		a.class, a.wait = classRetry, egress.RetryAfter(resp.Header.Get("Retry-After"), c.now())
	case code == http.StatusGone, code == http.StatusUnprocessableEntity:
		a.class = classDead
	}
	return a
}
