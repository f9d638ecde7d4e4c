package outbound_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
)

// noon is what time it is in the tests.
var noon = time.Date(2026, 9, 21, 12, 0, 0, 0, time.UTC)

// hand is a clock that a test moves.
type hand struct{ d atomic.Int64 }

func (h *hand) elapsed() time.Duration { return time.Duration(h.d.Load()) }
func (h *hand) now() time.Time         { return noon.Add(h.elapsed()) }
func (h *hand) move(d time.Duration)   { h.d.Add(int64(d)) }

// publicConn says that it leads to an address of the public Internet.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(1, 1, 1, 1), Port: 443} }

// host is a gateway's host, https://example.com, on loopback.
type host struct {
	*httptest.Server
	mu      sync.Mutex
	answer  http.HandlerFunc
	calls   atomic.Int64
	dialled atomic.Int64
	roots   *x509.CertPool
}

func newHost(t *testing.T, answer http.HandlerFunc) *host {
	t.Helper()
	h := &host{answer: answer, roots: x509.NewCertPool()}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.calls.Add(1)
		h.mu.Lock()
		answer := h.answer
		h.mu.Unlock()
		answer(w, r)
	}))
	root := newAuthority(t)
	h.roots.AddCert(root.cert)
	h.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{root.serverCertificate(t)}}
	h.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	h.StartTLS()
	t.Cleanup(h.Close)
	return h
}

// now answers like that from here on.
func (h *host) now(answer http.HandlerFunc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// dial leads every name to the host, as if at a public address.
func (h *host) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	h.dialled.Add(1)
	c, err := new(net.Dialer).DialContext(ctx, "tcp", h.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	return publicConn{c}, nil
}

// client calls the host; change may change its options.
func (h *host) client(t *testing.T, clock *hand, change func(*outbound.Options)) *outbound.Client {
	t.Helper()
	opts := outbound.Options{Now: clock.now, Elapsed: clock.elapsed, DialContext: h.dial, RootCAs: h.roots}
	if change != nil {
		change(&opts)
	}
	c, err := outbound.NewClient(opts)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// asked is a gateway that is asked at https://example.com.
var asked = &gateway.Gateway{Name: "asked", Fetch: &gateway.Fetch{Test: "https://example.com"}}

var shop = gateway.Source{ID: "shop", Account: "a", Gateway: "asked", Mode: gateway.Test}

var payment = gateway.Call{Path: "/v1/payments/1?token=sk_query", Header: http.Header{"Authorization": {"Bearer sk_header"}}}

// failed is what tests look at of an [outbound.Error]; it is no error, which
// would have to be handled.
type failed struct {
	kind   outbound.Kind
	after  time.Duration
	status int
	err    error
}

// fails returns the error of a call that must fail.
func fails(t *testing.T, err error, kind outbound.Kind) failed {
	t.Helper()
	var e *outbound.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, kind, e.Kind, "%v", e)
	require.NotContains(t, e.Error(), "sk_")
	require.NotContains(t, e.Error(), "/v1")
	return failed{e.Kind, e.After, e.Status, e}
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = w.Write([]byte("sk_body"))
	}
}
