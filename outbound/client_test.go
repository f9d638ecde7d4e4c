package outbound_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/outbound"
)

func TestDo(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = io.WriteString(w, strings.Join([]string{
			r.Host, r.Method, r.RequestURI, r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding"), string(body),
		}, " "))
	})
	reg := prometheus.NewRegistry()
	c := h.client(t, &hand{}, func(o *outbound.Options) { o.Registerer = reg })
	body, err := c.Do(t.Context(), asked, shop, payment)
	require.NoError(t, err)
	require.Equal(t, "example.com GET /v1/payments/1?token=sk_query Bearer sk_header  ", string(body))

	body, err = c.Do(t.Context(), asked, shop, gateway.Call{Method: http.MethodPost, Path: "/a%2Fb", Body: []byte("{}")})
	require.NoError(t, err)
	require.Equal(t, "example.com POST /a%2Fb   {}", string(body))
	require.Equal(t, []string{"Bearer sk_header"}, payment.Header["Authorization"], "the caller's header is left as it was")
	require.Len(t, payment.Header, 1)

	require.NoError(t, testutil.GatherAndCompare(reg, strings.NewReader(`
# HELP paidonce_gateway_calls_total Calls to gateways by result: ok, retry, gone, denied, refused; turned_away were not made, to keep a pace.
# TYPE paidonce_gateway_calls_total counter
paidonce_gateway_calls_total{gateway="asked",result="ok"} 2
`), "paidonce_gateway_calls_total"))
}

func TestDoStatuses(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]outbound.Kind{
		400: outbound.Refused, 401: outbound.Denied, 402: outbound.Refused, 403: outbound.Denied, 404: outbound.Gone,
		408: outbound.Retry, 409: outbound.Retry, 410: outbound.Gone, 422: outbound.Refused, 425: outbound.Retry,
		429: outbound.Retry, 500: outbound.Retry, 502: outbound.Retry, 503: outbound.Retry, 304: outbound.Refused,
	} {
		h := newHost(t, status(code))
		_, err := h.client(t, &hand{}, nil).Do(t.Context(), asked, shop, payment)
		require.Equal(t, code, fails(t, err, want).status)
	}
}

func TestDoFollowsNoRedirect(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"https://example.com/other", "https://elsewhere.example/", "http://169.254.169.254/", "/other"} {
		h := newHost(t, status(http.StatusFound, "Location", to))
		_, err := h.client(t, &hand{}, nil).Do(t.Context(), asked, shop, payment)
		require.Equal(t, http.StatusFound, fails(t, err, outbound.Refused).status)
		require.EqualValues(t, 1, h.calls.Load())
		require.EqualValues(t, 1, h.dialled.Load())
	}
}

// TestDoStaysOutside: what a base URL or a path could lead to.
func TestDoStaysOutside(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := outbound.NewClient(outbound.Options{}) // the real dialer: nothing here leaves the machine
	require.NoError(t, err)
	for _, base := range []string{
		"https://127.0.0.1", "https://[::1]", "https://10.0.0.1", "https://192.168.1.1:8443", "https://169.254.169.254",
		"https://[::ffff:10.0.0.1]", "https://[::ffff:127.0.0.1]", "https://[64:ff9b::a00:1]", "https://0.0.0.0", "https://100.100.100.200",
		"https://localhost", // a name that resolves to a private address
		"http://1.1.1.1", "ftp://1.1.1.1", "https://user:sk_pw@1.1.1.1", "https://1.1.1.1?sk_q=1", "https://1.1.1.1#x", "1.1.1.1", "", "https://",
	} {
		s := shop
		s.APIURL = base
		if base == "" {
			s.Mode = gateway.Live // has no base URL
		}
		_, err := c.Do(ctx, asked, s, payment)
		fails(t, err, outbound.Refused)
	}
	for _, path := range []string{"", "x", "@1.1.1.1/", ".evil.example/", "/a/../b", "/a/./b", "/..", "/%2e%2e/x", "/x#y", "/\x00", ":8080/"} {
		_, err := c.Do(ctx, asked, shop, gateway.Call{Path: path})
		fails(t, err, outbound.Refused)
	}
	_, err = c.Do(ctx, &gateway.Gateway{Name: "mute"}, shop, payment)
	fails(t, err, outbound.Refused)
}

// TestDoJudgesTheConnection: with a dialer of one's own, which resolves names,
// the address is that of the connection, and nothing is sent to a private one.
func TestDoJudgesTheConnection(t *testing.T) {
	t.Parallel()
	h := newHost(t, text("{}"))
	plain := func(o *outbound.Options) {
		o.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", h.Listener.Addr().String())
		}
	}
	_, err := h.client(t, &hand{}, plain).Do(t.Context(), asked, shop, payment)
	fails(t, err, outbound.Refused)
	require.Zero(t, h.calls.Load())

	s := shop
	s.APIAllowPrivate = true
	_, err = h.client(t, &hand{}, plain).Do(t.Context(), asked, s, payment)
	require.NoError(t, err)
}

func TestDoAllowsHTTPOnlyInPrivate(t *testing.T) {
	t.Parallel()
	h := newHost(t, text("{}"))
	plain := &http.Server{Handler: text("plain"), ReadHeaderTimeout: time.Minute}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = plain.Serve(ln) }()
	t.Cleanup(func() { _ = plain.Close() })
	s := shop
	s.APIURL = "http://" + ln.Addr().String()
	c := h.client(t, &hand{}, func(o *outbound.Options) { o.DialContext = nil })
	_, err = c.Do(t.Context(), asked, s, payment)
	fails(t, err, outbound.Refused)
	s.APIAllowPrivate = true
	body, err := c.Do(t.Context(), asked, s, payment)
	require.NoError(t, err)
	require.Equal(t, "plain", string(body))
}

func TestDoWantsATrustedCertificate(t *testing.T) {
	t.Parallel()
	h := newHost(t, text("{}"))
	_, err := h.client(t, &hand{}, func(o *outbound.Options) { o.RootCAs = nil }).Do(t.Context(), asked, shop, payment)
	require.Contains(t, fails(t, err, outbound.Retry).err.Error(), "not trusted")

	s := shop
	s.APIURL = "https://api.other.test"
	_, err = h.client(t, &hand{}, nil).Do(t.Context(), asked, s, payment)
	require.Contains(t, fails(t, err, outbound.Retry).err.Error(), "another name")
	require.Zero(t, h.calls.Load())
}

func TestDoBoundsTime(t *testing.T) {
	t.Parallel()
	short := func(o *outbound.Options) { o.Deadline = 100 * time.Millisecond }
	hang := func(w http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	slow := func(w http.ResponseWriter, r *http.Request) { // a head, and a body that does not end
		_, _ = io.WriteString(w, "{")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	for name, answer := range map[string]http.HandlerFunc{"hang": hang, "slow": slow} {
		h := newHost(t, answer)
		_, err := h.client(t, &hand{}, short).Do(t.Context(), asked, shop, payment)
		require.ErrorIs(t, fails(t, err, outbound.Retry).err, context.DeadlineExceeded, name)
	}

	h := newHost(t, hang)
	ctx, cancel := context.WithCancel(t.Context())
	h.now(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
	_, err := h.client(t, &hand{}, nil).Do(ctx, asked, shop, payment)
	require.ErrorIs(t, fails(t, err, outbound.Retry).err, context.Canceled)
}

func TestDoBoundsSize(t *testing.T) {
	t.Parallel()
	small := func(o *outbound.Options) { o.MaxBody = 1000 }
	packed := func(n int) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_, _ = w.Write(bytes.Repeat([]byte("a"), n))
		_ = w.Close()
		return b.Bytes()
	}
	pack := func(data []byte) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(data)
		}
	}
	for name, row := range map[string]struct {
		answer http.HandlerFunc
		size   int // -1: refused
	}{
		"full":          {text(strings.Repeat("a", 1000)), 1000},
		"large":         {text(strings.Repeat("a", 1001)), -1},
		"endless":       {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, endless{}) }, -1},
		"packed":        {pack(packed(1000)), 1000},
		"packed large":  {pack(packed(1001)), -1},
		"bomb":          {pack(packed(64 << 20)), -1},
		"not packed":    {pack([]byte("sk_body, which is no gzip")), -1},
		"unknown":       {status(200, "Content-Encoding", "br"), -1},
		"damaged":       {pack(append(packed(10)[:20], 1, 2, 3, 4, 10, 0, 0, 0)), -1},
		"empty":         {func(http.ResponseWriter, *http.Request) {}, 0},
		"created":       {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201) }, 0},
		"refused large": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(418); _, _ = io.Copy(w, endless{}) }, -1},
	} {
		body, err := newHost(t, row.answer).client(t, &hand{}, small).Do(t.Context(), asked, shop, payment)
		if row.size < 0 {
			fails(t, err, outbound.Refused)
			continue
		}
		require.NoError(t, err, name)
		require.Len(t, body, row.size, name)
	}
}

// TestDoReadsNoFurther: what is too large is not read to its end, which may not
// come.
func TestDoReadsNoFurther(t *testing.T) {
	t.Parallel()
	for _, packed := range []bool{false, true} {
		free := make(chan struct{})
		h := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
			out, flush := io.Writer(w), func() error { return nil }
			if packed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				out, flush = z, z.Flush
			}
			_, _ = out.Write(make([]byte, 2000))
			_ = flush()
			_ = http.NewResponseController(w).Flush()
			<-free
		})
		c := h.client(t, &hand{}, func(o *outbound.Options) { o.MaxBody, o.Deadline = 1000, time.Minute })
		done := make(chan error, 1)
		go func() { _, err := c.Do(t.Context(), asked, shop, payment); done <- err }()
		select {
		case err := <-done:
			require.Contains(t, fails(t, err, outbound.Refused).err.Error(), "larger than 1000 bytes")
		case <-time.After(20 * time.Second):
			t.Error("it waits for the end")
		}
		close(free)
	}
}

// endless is a body that does not end before somebody hangs up.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestDoQuotesNothing: net/http's own errors quote what the other side sent.
func TestDoQuotesNothing(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"sk_garbage\r\n\r\n", "HTTP/1.1 sk_x\r\n\r\n", "HTTP/1.1 200 OK\r\nsk_header\r\n\r\n", ""} {
		h := newHost(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(conn, answer)
				_ = conn.Close()
			}
		})
		c := h.client(t, &hand{}, nil)
		_, err := c.Do(t.Context(), asked, shop, payment)
		require.Equal(t, "ask asked: the connection broke before there was an answer", fails(t, err, outbound.Retry).err.Error())
	}
	for _, err := range []error{&net.DNSError{Err: "sk_dns", Name: "sk_name"}, &net.OpError{Op: "dial", Err: errors.New("sk_dial")}, errors.New("sk_any")} {
		c, bad := outbound.NewClient(outbound.Options{DialContext: func(context.Context, string, string) (net.Conn, error) { return nil, err }})
		require.NoError(t, bad)
		_, err := c.Do(t.Context(), asked, shop, payment)
		fails(t, err, outbound.Retry)
	}
}
