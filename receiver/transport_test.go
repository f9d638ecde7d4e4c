package receiver_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// TestOnlyPost: probes and other methods learn what would have been right, and nothing is looked up or read.
func TestOnlyPost(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "PROPFIND"} {
		b := setup(t, receiver.Options{})
		r := httptest.NewRequest(method, "/webhooks/strict", unread{t})
		w := b.do(r)
		require.Equal(t, http.StatusMethodNotAllowed, w.Code, method)
		require.Equal(t, "POST", w.Header().Get("Allow"), method)
		require.Equal(t, "close", w.Header().Get("Connection"), "a body that nobody reads")
		require.Empty(t, b.ledger.committed())
	}
}

// TestPaths: a path is served as it is written or not at all. No path is redirected.
func TestPaths(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	for _, path := range []string{
		"/webhooks/stripe", "/webhooks/strict/", "//webhooks/strict", "/webhooks//strict", "/webhooks/STRICT", "/WEBHOOKS/strict",
		"/webhooks/../webhooks/strict", "/./webhooks/strict", "/webhooks/strict/..", "/webhooks/strict%2f", "/webhooks%2fstrict",
		"/webhooks/%73trict", "/webhooks/strict%00", "/webhooks/strict%20", "/webhooks/strict;x=1", "/webhooks/", "/webhooks", "/", "/v1/orders",
		"/webhooks/..%2fwebhooks%2fstrict", "/webhooks/strict/strict", "/healthz", "/metrics",
	} {
		w := b.do(request(t, path, paid))
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Empty(t, w.Header().Get("Location"), path)
	}
	require.Empty(t, b.ledger.committed())
	require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict?a=b;c", paid)).Code, "the query is nobody's")
	require.NotContains(t, b.log.String(), "STRICT", "what stands in the path may be a secret")
}

func TestTooBig(t *testing.T) {
	t.Parallel()
	t.Run("AnnouncedIsNotRead", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{})
		r := request(t, "/webhooks/strict", paid)
		r.Body, r.ContentLength = unread{t}, 1<<20+1
		w := b.do(r)
		require.Equal(t, http.StatusRequestEntityTooLarge, w.Code)
		require.Equal(t, "close", w.Header().Get("Connection"))
	})
	t.Run("SourceHasItsOwnLimit", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{})
		exact := `{"id":"evt_1","type":"` + strings.Repeat("x", 64-24) + `"}`
		require.Len(t, exact, 64)
		require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/small", exact)).Code)
		require.Equal(t, http.StatusRequestEntityTooLarge, b.do(request(t, "/webhooks/small", exact+" ")).Code)
		require.Equal(t, http.StatusOK, b.do(request(t, "/webhooks/strict", exact+" ")).Code)
	})
	t.Run("ChunkedIsCounted", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{MaxBody: 100_000})
		for size, want := range map[int]int{100_000: http.StatusOK, 100_001: http.StatusRequestEntityTooLarge} {
			body := `{"id":"evt_1","type":"` + strings.Repeat("x", size-24) + `"}`
			r := request(t, "/webhooks/strict", body)
			r.ContentLength = -1
			require.Equal(t, want, b.do(r).Code, size)
		}
	})
	t.Run("MoreThanAnnounced", func(t *testing.T) {
		t.Parallel()
		b := setup(t, receiver.Options{})
		body := `{"id":"evt_1","type":"` + strings.Repeat("x", 100) + `"}`
		r := request(t, "/webhooks/strict", body)
		r.ContentLength = 10
		require.Equal(t, http.StatusOK, b.do(r).Code)
		require.Equal(t, body, string(b.ledger.committed()[0].Payload))
	})
}

// TestAnnouncedGigabyte is the raw form: the answer comes before the body, and the connection ends.
func TestAnnouncedGigabyte(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t, setup(t, receiver.Options{}), receiver.ServerOptions{}))
	_, err := fmt.Fprintf(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", 1<<30)
	require.NoError(t, err)
	r := bufio.NewReader(c)
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.True(t, resp.Close)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	_, err = r.ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// TestChunkedFlood: a body without an end is cut off at the limit.
func TestChunkedFlood(t *testing.T) {
	t.Parallel()
	c := dial(t, serve(t, setup(t, receiver.Options{}), receiver.ServerOptions{}))
	sent := make(chan int, 1)
	go func() {
		_, _ = io.WriteString(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
		chunk := append([]byte("10000\r\n"), append(bytes.Repeat([]byte("a"), 0x10000), "\r\n"...)...)
		n := 0
		for n < 1<<30 {
			k, err := c.Write(chunk)
			n += k
			if err != nil {
				break
			}
		}
		sent <- n
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusRequestEntityTooLarge, resp.StatusCode)
	require.True(t, resp.Close)
	require.Less(t, <-sent, 64<<20, "the server stopped taking it")
}

// TestHeaderCase: names are what HTTP says they are, in any case.
func TestHeaderCase(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	addr := serve(t, b, receiver.ServerOptions{})
	post := func(headers string) int {
		c := dial(t, addr)
		_, err := fmt.Fprintf(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n%s\r\n%s", len(paid), headers, paid)
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	good, forged := sign(t, []byte(paid)), "t=1790000000,v1="+strings.Repeat("d", 64)
	require.Equal(t, 200, post("STRIPE-SIGNATURE: "+good+"\r\n"))
	require.Equal(t, 200, post("stripe-signature: "+good+"\r\n"))
	require.Equal(t, 401, post("Stripe-Signature: "+forged+"\r\nStripe-Signature: "+good+"\r\n"))
	require.Equal(t, 401, post("Stripe-Signature: "+good+"\r\nSTRIPE-SIGNATURE: "+good+"\r\n"))
	require.Equal(t, 400, post("Content-Length: 5\r\nStripe-Signature: "+good+"\r\n"), "two lengths: refused by net/http")
	require.Equal(t, 431, post("X-Flood: "+strings.Repeat("x", 64<<10)+"\r\n"))
	require.Len(t, b.ledger.committed(), 2)
}

// overPipe runs f in a bubble of fake time with a server on pipes.
func overPipe(t *testing.T, opts receiver.Options, f func(t *testing.T, b *bench, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b, p := setup(t, opts), newPipes()
		ctx, stop := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			done <- receiver.Serve(ctx, receiver.NewServer(b, receiver.ServerOptions{}), p, time.Minute)
		}()
		f(t, b, p)
		stop()
		require.NoError(t, <-done)
	})
}

func TestSlowHeadersAreCutOff(t *testing.T) {
	t.Parallel()
	overPipe(t, receiver.Options{}, func(t *testing.T, b *bench, p *pipes) {
		began := time.Now()
		c := p.dial(t)
		_, err := io.WriteString(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nX-Sl")
		require.NoError(t, err)
		_, err = io.ReadAll(c)
		require.NoError(t, err)
		require.Equal(t, 5*time.Second, time.Since(began))
		require.Empty(t, b.log.String(), "there was no request")
	})
}

func TestSlowBody(t *testing.T) {
	t.Parallel()
	for name, head := range map[string]string{
		"Announced": "Content-Length: 28\r\n\r\n{\"id\"",
		"Chunked":   "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"id\"\r\n",
		"Nothing":   "Content-Length: 28\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			overPipe(t, receiver.Options{}, func(t *testing.T, b *bench, p *pipes) {
				began := time.Now()
				c := p.dial(t)
				_, err := io.WriteString(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\n"+head)
				require.NoError(t, err)
				answer, err := io.ReadAll(c) // to the end: the connection is closed
				require.NoError(t, err)
				require.Contains(t, string(answer), "HTTP/1.1 408 ")
				require.Equal(t, 10*time.Second, time.Since(began))
				require.Empty(t, b.ledger.committed())
				require.Equal(t, "too_slow", b.log.lines(t)[0]["reason"])
			})
		})
	}
}

// TestServerTimesOut: a connection that is kept for nothing ends, and so does a body that some other handler waits for.
func TestServerTimesOut(t *testing.T) {
	t.Parallel()
	t.Run("Idle", func(t *testing.T) {
		t.Parallel()
		overPipe(t, receiver.Options{}, func(t *testing.T, _ *bench, p *pipes) {
			c := p.dial(t)
			_, err := io.WriteString(c, "GET /webhooks/strict HTTP/1.1\r\nHost: x\r\n\r\n")
			require.NoError(t, err)
			began := time.Now()
			answer, err := io.ReadAll(c)
			require.NoError(t, err)
			require.Contains(t, string(answer), "HTTP/1.1 405 ")
			require.Equal(t, 2*time.Minute, time.Since(began))
		})
	})
	t.Run("Read", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			p := newPipes()
			failed := make(chan error, 1)
			srv := receiver.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, err := io.ReadAll(r.Body)
				failed <- err
			}), receiver.ServerOptions{})
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan error, 1)
			go func() { done <- receiver.Serve(ctx, srv, p, time.Minute) }()
			c := p.dial(t)
			began := time.Now()
			_, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 28\r\n\r\n")
			require.NoError(t, err)
			require.ErrorIs(t, <-failed, os.ErrDeadlineExceeded)
			require.Equal(t, 20*time.Second, time.Since(began))
			_, err = io.ReadAll(c)
			require.NoError(t, err)
			stop()
			require.NoError(t, <-done)
		})
	})
	t.Run("OptionsOfTheServer", func(t *testing.T) {
		t.Parallel()
		c := dial(t, serve(t, setup(t, receiver.Options{}), receiver.ServerOptions{}))
		_, err := io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n")
		require.NoError(t, err)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusNotFound, resp.StatusCode)
	})
}

func TestBodyCutShort(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	c := dial(t, serve(t, b, receiver.ServerOptions{}))
	_, err := io.WriteString(c, "POST /webhooks/strict HTTP/1.1\r\nHost: x\r\nContent-Length: 28\r\n\r\n{\"id\"")
	require.NoError(t, err)
	require.NoError(t, c.(*net.TCPConn).CloseWrite())
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.Empty(t, b.ledger.committed())
}

// TestShutdownFinishesWhatIsRunning: after the signal the listener is closed, and a delivery that waits for its commit
// still gets its 200.
func TestShutdownFinishesWhatIsRunning(t *testing.T) {
	t.Parallel()
	b := setup(t, receiver.Options{})
	inside, commit := make(chan struct{}), make(chan struct{})
	b.ledger.do = func(_ context.Context, events []store.Event) ([]store.Result, error) {
		close(inside)
		<-commit
		return applied(events), nil
	}
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	closed := make(chan struct{})
	ctx, term := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	srv := receiver.NewServer(b, receiver.ServerOptions{})
	go func() { ended <- receiver.Serve(ctx, srv, &told{Listener: ln, closed: closed}, time.Minute) }()

	c := dial(t, ln.Addr().String())
	_, err = fmt.Fprintf(c, "POST /webhooks/mall HTTP/1.1\r\nHost: x\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
		sign(t, []byte(paid)), len(paid), paid)
	require.NoError(t, err)
	<-inside
	term()
	<-closed
	_, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", ln.Addr().String())
	require.Error(t, err, "new ones are refused")
	select {
	case err := <-ended:
		require.Fail(t, "Serve returned with a delivery in flight", "%v", err)
	default:
	}

	close(commit)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.True(t, resp.Close)
	require.NoError(t, <-ended)
}

// told says when it was closed.
type told struct {
	net.Listener
	closed chan struct{}
}

func (l *told) Close() error {
	err := l.Listener.Close()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return err
}

// TestShutdownHasAnEnd: what does not finish within the grace is cut off, and that is an error.
func TestShutdownHasAnEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, p := setup(t, receiver.Options{}), newPipes()
		inside, commit := make(chan struct{}), make(chan struct{})
		b.ledger.do = func(_ context.Context, events []store.Event) ([]store.Result, error) {
			close(inside)
			<-commit
			return applied(events), nil
		}
		ctx, term := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() {
			ended <- receiver.Serve(ctx, receiver.NewServer(b, receiver.ServerOptions{}), p, 3*time.Second)
		}()
		c := p.dial(t)
		_, err := fmt.Fprintf(c, "POST /webhooks/mall HTTP/1.1\r\nHost: x\r\nStripe-Signature: %s\r\nContent-Length: %d\r\n\r\n%s",
			sign(t, []byte(paid)), len(paid), paid)
		require.NoError(t, err)
		<-inside
		term()
		require.ErrorContains(t, <-ended, "still running after 3s")
		_, err = io.ReadAll(c)
		require.NoError(t, err)
		close(commit)
	})
}

func TestServeSaysThatItsListenerFailed(t *testing.T) {
	t.Parallel()
	p := newPipes()
	require.NoError(t, p.Close())
	err := receiver.Serve(t.Context(), receiver.NewServer(http.NotFoundHandler(), receiver.ServerOptions{}), p, time.Second)
	require.ErrorIs(t, err, net.ErrClosed)
}
