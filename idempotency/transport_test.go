package idempotency_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

// server serves h over real connections.
func server(t *testing.T, h http.Handler, http2 bool) *httptest.Server {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = http2
	if http2 {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// over sends the call over the wire.
func (c call) over(ctx context.Context, s *httptest.Server) (*http.Response, error) {
	in := c.request()
	r, err := http.NewRequestWithContext(ctx, in.Method, s.URL+in.URL.RequestURI(), strings.NewReader(c.body))
	if err != nil {
		return nil, err
	}
	r.Header = in.Header
	return s.Client().Do(r)
}

func TestT87_CallerHangsUp(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP1": false, "HTTP2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, nil)
			began, hungUp := make(chan struct{}), make(chan struct{})
			h := b.strict(func(w http.ResponseWriter, r *http.Request) {
				close(began)
				<-hungUp
				if r.Context().Err() != nil {
					t.Error("the handler's context has ended with the caller's patience")
				}
				b.effect(w, r)
			})
			gone := make(chan struct{})
			s := server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() { <-r.Context().Done(); close(gone) }()
				h.ServeHTTP(w, r)
			}), http2)
			ctx, hangUp := context.WithCancel(t.Context())
			go func() { <-began; hangUp(); <-gone; close(hungUp) }()
			res, err := post("k", `{}`).over(ctx, s)
			if err == nil {
				_ = res.Body.Close()
			}
			require.ErrorIs(t, err, context.Canceled)
			b.wait(`SELECT count(*) = 1 FROM idempotency_keys WHERE status = 'COMPLETED'`)
			w := post("k", `{}`).to(b.strict(b.effect))
			require.Equal(t, "true", w.Header().Get("Idempotent-Replayed"))
			require.Equal(t, 1, b.effects())
		})
	}
}

func TestT87_ShutdownWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	began, let := make(chan struct{}), make(chan struct{})
	s := server(t, b.strict(func(w http.ResponseWriter, r *http.Request) { close(began); <-let; b.effect(w, r) }), false)
	answered := make(chan int, 1)
	go func() {
		res, err := post("k", `{}`).over(context.Background(), s)
		if err != nil {
			t.Error(err)
			answered <- 0
			return
		}
		_ = res.Body.Close()
		answered <- res.StatusCode
	}()
	<-began
	down := make(chan error, 1)
	go func() { down <- s.Config.Shutdown(context.Background()) }()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	}, patience, time.Millisecond)
	close(let)
	require.Equal(t, http.StatusCreated, <-answered)
	require.NoError(t, <-down)
}

func TestT88_FlushAndHijack(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.strict(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := w.(http.Flusher); ok {
			t.Error("a unit of work offers Flush")
		}
		if _, ok := w.(http.Hijacker); ok {
			t.Error("a unit of work offers Hijack")
		}
		if err := http.NewResponseController(w).Flush(); err == nil {
			t.Error("a unit of work offers Flush to a controller")
		}
		b.effect(w, r)
	})
	s := server(t, h, false)
	res, err := post("tx", `{}`).over(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, http.StatusCreated, res.StatusCode)

	p := idempotency.Strict()
	p.NoTx = true
	id := uuid.New()
	let := make(chan struct{})
	streaming := b.with(p, func(w http.ResponseWriter, r *http.Request) {
		b.runs.Add(1)
		idempotency.SetResource(r.Context(), "export", id)
		w.Header().Set("Content-Type", "text/csv")
		w.WriteHeader(http.StatusAccepted)
		_, _ = io.WriteString(w, "one\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		<-let
		_, _ = io.WriteString(w, "two\n")
	})
	b.runs.Store(0)
	s = server(t, streaming, false)
	res, err = post("stream", `{}`).over(t.Context(), s)
	require.NoError(t, err)
	line, err := bufio.NewReader(io.LimitReader(res.Body, 4)).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "one\n", line, "it arrives while the handler runs")
	require.Equal(t, "executed", res.Header.Get("Idempotency-Status"))
	close(let)
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "two\n", string(rest))
	b.wait(`SELECT status = 'COMPLETED' FROM idempotency_keys WHERE idempotency_key = 'stream'`)
	w := post("stream", `{}`).to(streaming)
	refused(t, w, http.StatusConflict, "idempotency_result_unavailable")
	require.Equal(t, id.String(), problemOf(t, w).Resource.ID)
	require.EqualValues(t, 1, b.runs.Load())

	s = server(t, b.with(p, func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = rw.WriteString("HTTP/1.1 299 Mine\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = rw.Flush()
		_ = conn.Close()
	}), false)
	res, err = post("hijack", `{}`).over(t.Context(), s)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, 299, res.StatusCode)
	b.wait(`SELECT status = 'COMPLETED' AND response_raw IS NULL FROM idempotency_keys WHERE idempotency_key = 'hijack'`)
}

func TestT89_AnswersThatAreTooLong(t *testing.T) {
	t.Parallel()
	b := newBench(t, func(o *idempotency.Options) {
		o.ResourceURL = func(typ string, id uuid.UUID) string { return "/v1/" + typ + "/" + id.String() }
	})
	p := idempotency.Strict()
	p.MaxResponse = 1000
	id := uuid.New()
	answer := func(n int) http.Handler {
		return b.with(p, func(w http.ResponseWriter, r *http.Request) {
			b.runs.Add(1)
			idempotency.SetResource(r.Context(), "report", id)
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, strings.Repeat("x", n))
		})
	}
	first := post("fits", `{}`).to(answer(1000))
	executed(t, first, http.StatusCreated)
	replays(t, post("fits", `{}`).to(answer(1000)), first)

	first = post("long", `{}`).to(answer(1001))
	executed(t, first, http.StatusCreated)
	require.Equal(t, 1001, first.Body.Len(), "the first caller gets it whole")
	r := b.record("long")
	require.Equal(t, "COMPLETED", r.State)
	require.False(t, r.Kept)
	require.Equal(t, "result_unavailable", r.Next)
	w := post("long", `{}`).to(answer(1001))
	refused(t, w, http.StatusConflict, "idempotency_result_unavailable")
	got := problemOf(t, w).Resource
	require.Equal(t, "report", got.Type)
	require.Equal(t, "/v1/report/"+id.String(), got.Href)
	require.Contains(t, strings.Join(w.Header().Values("Link"), " "), `</v1/report/`+id.String()+`>; rel="related"`)
	require.EqualValues(t, 2, b.runs.Load(), "never run again")
}

func TestT90_ExpectTrailersAndChunks(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := b.relaxed(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Trailer-Came", r.Trailer.Get("Checksum"))
		_, _ = w.Write(body)
	})
	s := server(t, h, false)
	send := func(raw string) (status int, header http.Header) {
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		require.NoError(t, err)
		defer conn.Close()
		rd := bufio.NewReader(conn)
		head, body, expects := strings.Cut(raw, "<100>")
		_, err = io.WriteString(conn, strings.ReplaceAll(head, "\n", "\r\n"))
		require.NoError(t, err)
		for {
			res, err := http.ReadResponse(rd, nil)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			if !expects || res.StatusCode != http.StatusContinue {
				return res.StatusCode, res.Header
			}
			_, err = io.WriteString(conn, body)
			require.NoError(t, err)
		}
	}
	const head = "POST /x HTTP/1.1\nHost: x\nTest-Caller: user/7\nContent-Type: application/json\nIdempotency-Key: "
	status, _ := send(head + "expect\nExpect: 100-continue\nContent-Length: 2\n\n<100>{}")
	require.Equal(t, 200, status)
	status, _ = send(head + "expect-large\nExpect: 100-continue\nContent-Length: 102401\n\n<100>")
	require.Equal(t, http.StatusRequestEntityTooLarge, status, "before a byte of it was asked for")
	status, header := send(head + "trailers\nTransfer-Encoding: chunked\nTrailer: Checksum\n\n2\n{}\n0\nChecksum: abc\n\n")
	require.Equal(t, 200, status)
	require.Equal(t, "abc", header.Get("Trailer-Came"))
	status, header = send(head + "empty\nTransfer-Encoding: chunked\n\n0\n\n")
	require.Equal(t, 200, status)
	require.Equal(t, "executed", header.Get("Idempotency-Status"))
	require.Equal(t, 3, b.keys())
}

func TestT91_HeadersForBrowsers(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"Idempotency-Key"}, idempotency.CORSAllowHeaders())
	require.Subset(t, idempotency.CORSExposeHeaders(), []string{"Idempotent-Replayed", "Idempotency-Status", "Retry-After"})
}

func TestT93_CompressionOutside(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	r := chi.NewRouter()
	r.Use(middleware.Compress(5, "application/json"))
	body := `{"x":"` + strings.Repeat("y", 4000) + `"}`
	r.With(b.mw.Protect(idempotency.Strict())).Post("/v1/effects", answering(201, "application/json", body))
	packed := post("k", `{}`).set("Accept-Encoding", "gzip").to(r)
	require.Equal(t, "gzip", packed.Header().Get("Content-Encoding"))
	plain := post("k", `{}`).to(r)
	require.Equal(t, "true", plain.Header().Get("Idempotent-Replayed"))
	require.Empty(t, plain.Header().Get("Content-Encoding"))
	require.Equal(t, body, plain.Body.String())
	again := post("k", `{}`).set("Accept-Encoding", "gzip").to(r)
	z, err := gzip.NewReader(bytes.NewReader(again.Body.Bytes()))
	require.NoError(t, err)
	unpacked, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, body, string(unpacked))
}

func TestTrailersOfAHandler(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	s := server(t, b.strict(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "Checksum")
		_, _ = io.WriteString(w, "body")
		w.Header().Set("Checksum", "abc")
	}), false)
	res, err := post("k", `{}`).over(t.Context(), s)
	require.NoError(t, err)
	_, err = io.ReadAll(res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	require.Equal(t, "abc", res.Trailer.Get("Checksum"))
}
