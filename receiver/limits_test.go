package receiver_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// clock is a time that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// forged is a delivery that nobody signed, from an address.
func forged(t testing.TB, from string) *http.Request {
	t.Helper()
	r := request(t, "/webhooks/strict", paid)
	r.Header.Set("Stripe-Signature", "t=1790000000,v1="+strings.Repeat("0", 64))
	r.RemoteAddr = from
	return r
}

func from(r *http.Request, addr string) *http.Request {
	r.RemoteAddr = addr
	return r
}

func TestRefusalLimit(t *testing.T) {
	t.Parallel()
	limit := receiver.RefusalLimit{Burst: 3, Every: 10 * time.Second}
	start := func(t *testing.T) (*bench, *clock) {
		c := &clock{at: now}
		return setup(t, receiver.Options{Refusals: limit, Now: c.now}), c
	}
	const one, other = "192.0.2.1:4000", "192.0.2.2:4000"

	t.Run("429InsteadOf401", func(t *testing.T) {
		t.Parallel()
		b, c := start(t)
		for range 3 {
			require.Equal(t, http.StatusUnauthorized, b.do(forged(t, one)).Code)
		}
		w := b.do(forged(t, "192.0.2.1:5000"))
		require.Equal(t, http.StatusTooManyRequests, w.Code, "by address, not by connection")
		require.Equal(t, "10", w.Header().Get("Retry-After"))
		require.Equal(t, http.StatusUnauthorized, b.do(forged(t, other)).Code, "other addresses are other senders")

		c.at = c.at.Add(4 * time.Second)
		require.Equal(t, "6", b.do(forged(t, one)).Header().Get("Retry-After"), "asking again costs nothing")
		c.at = c.at.Add(6 * time.Second)
		require.Equal(t, http.StatusUnauthorized, b.do(forged(t, one)).Code, "one is forgiven")
		require.Equal(t, http.StatusTooManyRequests, b.do(forged(t, one)).Code)
		c.at = c.at.Add(time.Hour)
		for range 3 {
			require.Equal(t, http.StatusUnauthorized, b.do(forged(t, one)).Code, "all are forgiven, and no more than all")
		}
		require.Equal(t, http.StatusTooManyRequests, b.do(forged(t, one)).Code)
	})

	t.Run("VerifiedNeverSeesIt", func(t *testing.T) {
		t.Parallel()
		b, _ := start(t)
		for range 10 {
			b.do(forged(t, one))
			require.Equal(t, http.StatusOK, b.do(from(request(t, "/webhooks/strict", paid), one)).Code)
		}
		require.Len(t, b.ledger.committed(), 10)
		require.Equal(t, http.StatusTooManyRequests, b.do(forged(t, one)).Code, "nor does it earn the others anything")
	})

	t.Run("IPv6CountsByNetwork", func(t *testing.T) {
		t.Parallel()
		b, _ := start(t)
		for _, a := range []string{"[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::ffff:1]:1"} {
			require.Equal(t, http.StatusUnauthorized, b.do(forged(t, a)).Code)
		}
		require.Equal(t, http.StatusTooManyRequests, b.do(forged(t, "[2001:db8::3]:1")).Code)
		require.Equal(t, http.StatusUnauthorized, b.do(forged(t, "[2001:db8:0:1::1]:1")).Code)
	})

	t.Run("MemoryIsBounded", func(t *testing.T) {
		t.Parallel()
		limit := receiver.RefusalLimit{Burst: 1, Every: time.Hour, Addresses: 2}
		b := setup(t, receiver.Options{Refusals: limit})
		refused := func(a string) int { return b.do(forged(t, a)).Code }
		require.Equal(t, 401, refused("192.0.2.1:1"))
		require.Equal(t, 401, refused("192.0.2.2:1"))
		require.Equal(t, 429, refused("192.0.2.1:1"), "seen again")
		require.Equal(t, 401, refused("192.0.2.3:1"))
		require.Equal(t, 401, refused("192.0.2.2:1"), "the one unseen for longest was forgotten")
		require.Equal(t, 429, refused("192.0.2.3:1"))
	})

	t.Run("ClockSetBack", func(t *testing.T) {
		t.Parallel()
		b, c := start(t)
		c.at = now.Add(24 * time.Hour)
		for range 4 {
			b.do(forged(t, one))
		}
		c.at = now
		require.Equal(t, http.StatusUnauthorized, b.do(forged(t, one)).Code, "nobody waits for a day")
	})
}

// TestSender: the address is that of the connection, unless a proxy of ours says otherwise.
func TestSender(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name, conn string
		header     []string
		want       string
	}{
		{"NoProxy", "192.0.2.1:4000", nil, "192.0.2.1"},
		{"StrangersHeaderIsNotRead", "192.0.2.1:4000", []string{"198.51.100.7"}, "192.0.2.1"},
		{"FromProxy", "10.1.2.3:4000", []string{"198.51.100.7"}, "198.51.100.7"},
		{"ProxyOverIPv6", "[fd00::1]:4000", []string{"2001:db8::1"}, "2001:db8::1"},
		{"MappedIPv4", "[::ffff:10.1.2.3]:4000", []string{"198.51.100.7"}, "198.51.100.7"},
		{"LastStrangerCounts", "10.1.2.3:4000", []string{"203.0.113.66, 198.51.100.7, 10.9.9.9"}, "198.51.100.7"},
		{"LinesAreOneList", "10.1.2.3:4000", []string{"203.0.113.66", "198.51.100.7:8080"}, "198.51.100.7"},
		{"NoHeader", "10.1.2.3:4000", nil, "10.1.2.3"},
		{"Garbage", "10.1.2.3:4000", []string{"203.0.113.66, unknown, 10.9.9.9"}, "10.9.9.9"},
		{"OnlyProxies", "10.1.2.3:4000", []string{"10.9.9.9"}, "10.9.9.9"},
		{"UnixSocket", "@", []string{"198.51.100.7"}, "invalid IP"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, receiver.Options{TrustedProxies: proxies})
			r := from(request(t, "/webhooks/strict", paid), tt.conn)
			r.Header["X-Forwarded-For"] = tt.header
			r.Header.Set("Forwarded", "for=203.0.113.99")
			b.do(r)
			require.Equal(t, tt.want, b.log.lines(t)[0]["remote"])
		})
	}
	t.Run("OtherHeader", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{TrustedProxies: proxies, ProxyHeader: "X-Real-IP"})
		r := from(request(t, "/webhooks/strict", paid), "10.1.2.3:4000")
		r.Header.Set("X-Real-Ip", "198.51.100.7")
		r.Header.Set("X-Forwarded-For", "203.0.113.99")
		b.do(r)
		require.Equal(t, "198.51.100.7", b.log.lines(t)[0]["remote"])
	})
}

// TestOverload: beyond what may wait for a commit, the answer is 503 at once, and only for as long as that lasts.
func TestOverload(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{MaxInFlight: 2})
	inside, commit := make(chan struct{}), make(chan struct{})
	b.ledger.do = func(_ context.Context, events []store.Event) ([]store.Result, error) {
		inside <- struct{}{}
		<-commit
		return applied(events), nil
	}
	codes := make(chan int)
	for range 2 {
		r := request(t, "/webhooks/strict", paid)
		go func() { codes <- b.do(r).Code }()
		<-inside
	}
	w := b.do(request(t, "/webhooks/strict", paid))
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.NotEmpty(t, w.Header().Get("Retry-After"))
	require.Equal(t, http.StatusUnauthorized, b.do(forged(t, "192.0.2.1:1")).Code, "what is forged takes no place")

	close(commit)
	require.Equal(t, http.StatusOK, <-codes)
	require.Equal(t, http.StatusOK, <-codes)
	go func() { <-inside }()
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
}

// stalled is a body of n bytes whose end does not come before it is released.
type stalled struct {
	io.Reader
	sent    chan struct{}
	release chan struct{}
}

func (s *stalled) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		close(s.sent)
		<-s.release
	}
	return n, err
}

func stall(t *testing.T, b *bench, n int) (release func() int) {
	t.Helper()
	body := &stalled{Reader: strings.NewReader(strings.Repeat("x", n)), sent: make(chan struct{}), release: make(chan struct{})}
	code := make(chan int, 1)
	go func() {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/strict", body)
		r.ContentLength = -1
		code <- b.do(r).Code
	}()
	<-body.sent
	return func() int {
		close(body.release)
		return <-code
	}
}

// TestBytesAreBounded: large bodies that are held are counted together, and never keep an ordinary one out.
func TestBytesAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{MaxBodyBytes: 150_000})
	large := `{"id":"evt_1","type":"` + strings.Repeat("x", 100_000) + `"}`
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", large)).Code)

	release := stall(t, b, 120_000)
	for range 5 {
		require.Equal(t, http.StatusServiceUnavailable, b.do(request(t, "/webhooks/strict", large)).Code)
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
	require.Equal(t, http.StatusUnauthorized, release())

	for range 5 { // what is refused gives back what it held, too
		require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", large)).Code)
		r := request(t, "/webhooks/strict", large)
		r.Header.Del("Stripe-Signature")
		require.Equal(t, http.StatusUnauthorized, b.do(r).Code)
	}
}

// TestAnnouncedBytesAreNotHeld: a length in a header reserves nothing.
func TestAnnouncedBytesAreNotHeld(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{MaxBodyBytes: 1, MaxInFlight: 100})
	var releases []func() int
	for range 50 {
		body := &stalled{Reader: strings.NewReader("x"), sent: make(chan struct{}), release: make(chan struct{})}
		code := make(chan int, 1)
		go func() {
			r := httptest.NewRequest(http.MethodPost, "/webhooks/strict", body)
			r.ContentLength = 1 << 20
			code <- b.do(r).Code
		}()
		<-body.sent
		releases = append(releases, func() int { close(body.release); return <-code })
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
	for _, release := range releases {
		require.Equal(t, http.StatusUnauthorized, release())
	}
}

// TestReadersAreBounded: four times MaxInFlight may be on their way in.
func TestReadersAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{MaxInFlight: 1})
	var releases []func() int
	for range 4 {
		releases = append(releases, stall(t, b, 10))
	}
	r := request(t, "/webhooks/strict", paid)
	r.Body = unread{t}
	require.Equal(t, http.StatusServiceUnavailable, b.do(r).Code)
	for _, release := range releases {
		require.Equal(t, http.StatusUnauthorized, release())
	}
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", paid)).Code)
}
