package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// wire is what lies between a shop and the program: it hands requests on, or spoils the first ones.
type wire struct {
	url, to string

	mu      sync.Mutex
	mishaps map[string][]mishap // by the end of the path; the next one first
	log     []seen
}

// seen is a request that came through.
type seen struct {
	path, key, body, authorization string

	at         time.Time
	retryAfter time.Duration // what it was told to wait
	replayed   bool          // the program answered with what it had answered before
}

// mishap is what becomes of a request.
type mishap struct {
	status int    // of an answer that the wire makes up
	code   string // its problem
	do     func(w http.ResponseWriter, r *http.Request, forward func() *http.Response)

	retryAfter time.Duration
}

// newWire listens, until the test ends, for requests to the program at the URL to.
func newWire(t *testing.T, to string) *wire {
	t.Helper()
	w := &wire{to: to, mishaps: map[string][]mishap{}}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// on has the first requests to a path that ends so go wrong, one after another.
func (w *wire) on(end string, mishaps ...mishap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mishaps[end] = mishaps
}

// seen returns the requests to a path, or all.
func (w *wire) seen(path string) []seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []seen
	for _, s := range w.log {
		if path == "" || s.path == path {
			some = append(some, s)
		}
	}
	return some
}

// ServeHTTP implements http.Handler.
func (w *wire) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	n, m := w.enter(seen{
		path: r.URL.Path, key: r.Header.Get("Idempotency-Key"), body: string(body), authorization: r.Header.Get("Authorization"), at: time.Now(),
	})
	forward := func() *http.Response {
		out := r.Clone(r.Context())
		out.RequestURI, out.URL.Scheme, out.URL.Host = "", "http", strings.TrimPrefix(w.to, "http://")
		out.Body = io.NopCloser(bytes.NewReader(body))
		resp, err := http.DefaultTransport.RoundTrip(out)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.log[n].replayed = resp.Header.Get("Idempotent-Replayed") == "true"
		return resp
	}
	m.do(rw, r, forward)
}

// enter notes a request, and says what happens to it.
func (w *wire) enter(s seen) (int, mishap) {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := mishap{do: passes}
	for end, mishaps := range w.mishaps {
		if strings.HasSuffix(s.path, end) && len(mishaps) > 0 {
			m, w.mishaps[end] = mishaps[0], mishaps[1:]
		}
	}
	s.retryAfter = m.retryAfter
	w.log = append(w.log, s)
	return len(w.log) - 1, m
}

func passes(w http.ResponseWriter, _ *http.Request, forward func() *http.Response) {
	resp := forward()
	defer resp.Body.Close()
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	w.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(w, resp.Body)
}

// losesAnswer: the program did it, and said so, and nobody hears.
var losesAnswer = mishap{do: func(_ http.ResponseWriter, _ *http.Request, forward func() *http.Response) {
	resp := forward()
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	panic(http.ErrAbortHandler)
}}

// cutsAnswer: the connection breaks in the middle of it.
var cutsAnswer = mishap{do: func(w http.ResponseWriter, _ *http.Request, forward func() *http.Response) {
	resp := forward()
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	w.Header().Set("Content-Type", resp.Header.Get("Content-Type"))
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(resp.StatusCode)
	_, _ = w.Write(body[:len(body)/2])
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}}

// says: the program is not asked at all.
func says(status int, code string, retryAfter int) mishap {
	return mishap{status: status, code: code, retryAfter: time.Duration(retryAfter) * time.Second, do: func(w http.ResponseWriter, _ *http.Request, _ func() *http.Response) {
		if retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
		}
		if code == "" { // what stands before a program, and knows nothing of it
			w.WriteHeader(status)
			_, _ = io.WriteString(w, "<html>Bad Gateway</html>")
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"type":"about:blank","title":"%s","status":%d,"code":"%s"}`, http.StatusText(status), status, code)
	}}
}

// redirects sends the caller to another host.
func redirects(status int, to string) mishap {
	return mishap{status: status, do: func(w http.ResponseWriter, r *http.Request, _ func() *http.Response) {
		http.Redirect(w, r, to+r.URL.Path, status)
	}}
}

// holds keeps a request until its caller is gone, and says when it is there.
func holds() (m mishap, arrived <-chan struct{}) {
	ch := make(chan struct{})
	return mishap{do: func(_ http.ResponseWriter, r *http.Request, _ func() *http.Response) {
		close(ch)
		<-r.Context().Done()
	}}, ch
}
