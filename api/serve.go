package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// call is one request on its way, and what its log line will say beside its answer.
type call struct {
	route string // the pattern; empty: none fits
	began time.Time
	key   Key

	body  []byte // as it came, once it was read to its end
	ended bool   // nothing of the body is left in the connection

	code    Code   // of the problem that was answered
	order   string // which order it was about
	note    string // something that is not an error and that the merchant should know of
	err     error  // why it was answered 5xx
	failure error  // of the handler
	stack   string // of a panic
}

// begin forgets an attempt of the handler that was rolled back: under an Idempotency-Key it may be run again.
func (c *call) begin() {
	c.failure, c.err, c.code, c.order, c.note, c.stack = nil, nil, "", "", "", ""
}

type callKey struct{}

// callOf returns the call that observe began. A handler gets it as a parameter; middlewares have the context alone.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{ended: true}
}

// observe is the outermost middleware of a route: it bounds the body, catches panics, and writes the one log line.
func (a *API) observe(route string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := &call{route: route, began: a.opts.Now()}
			r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
			r.Body = http.MaxBytesReader(w, r.Body, a.opts.MaxBody)
			defer limitTime(w, r, a.opts.BodyTimeout)()
			h := w.Header()
			h.Set("Cache-Control", "no-store")
			h.Set("X-Content-Type-Options", "nosniff")
			sw := &statusWriter{ResponseWriter: w}
			if err := caught(c, func() error { next.ServeHTTP(sw, r); return nil }); err != nil && sw.status == 0 {
				a.fail(sw, r, err)
			}
			a.report(r, sw, c)
		})
	}
}

// limitTime has reads of the body fail that come later than after d. What it returns ends that.
func limitTime(w http.ResponseWriter, r *http.Request, d time.Duration) (stop func()) {
	if r.ContentLength == 0 {
		return func() {} // the connection is being read already, to see whether the caller hangs up
	}
	// A deadline in the past ends the read that is waiting; setting it from a timer needs no clock.
	slow := time.AfterFunc(d, func() { _ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0)) })
	r.Body = timedBody{r.Body, slow}
	return func() { slow.Stop() }
}

// timedBody stops its timer where the body ends: what comes afterwards is no matter of the caller's.
type timedBody struct {
	io.ReadCloser
	slow *time.Timer
}

func (b timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.slow.Stop()
	}
	return n, err
}

// report counts and logs a request that was answered.
func (a *API) report(r *http.Request, w *statusWriter, c *call) {
	status := w.status
	if status == 0 {
		status = http.StatusOK // what net/http answers for those who write nothing
	}
	a.metrics.requests.WithLabelValues(c.route, strconv.Itoa(status)).Inc()
	if c.note == noteBodyDiffers {
		a.metrics.differs.WithLabelValues(c.key.Account).Inc()
	}
	took := max(0, a.opts.Now().Sub(c.began))
	a.metrics.seconds.WithLabelValues(c.route).Observe(took.Seconds())

	level := slog.LevelInfo
	if status >= 500 {
		level = slog.LevelWarn
	}
	attrs := []slog.Attr{slog.String("route", c.route), slog.Int("status", status), slog.Duration("duration", took)}
	for _, f := range [][2]string{
		{"account", c.key.Account},
		{"api_key", c.key.Name},
		{"order_id", c.order},
		{"code", string(c.code)},
		{"note", c.note},
		{"idempotency", w.Header().Get("Idempotency-Status")},
	} {
		if f[1] != "" {
			attrs = append(attrs, slog.String(f[0], f[1]))
		}
	}
	if c.err != nil {
		attrs = append(attrs, slog.String("err", c.err.Error()))
	}
	if c.stack != "" {
		level = slog.LevelError
		attrs = append(attrs, slog.String("stack", c.stack))
	}
	a.opts.Logger.LogAttrs(r.Context(), level, "api request", attrs...)
}

// statusWriter remembers the status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets an http.ResponseController through.
func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// caught turns a panic into an error. What was asked for may have been committed all the same; asking again is safe.
func caught(c *call, do func() error) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		// The text of a runtime error holds types and indices; any other value may quote the body.
		var bug runtime.Error
		err = fmt.Errorf("panic: %T", v)
		if e, ok := v.(error); ok && errors.As(e, &bug) {
			err = fmt.Errorf("panic: %w", bug)
		}
		c.stack = string(debug.Stack())
	}()
	return do()
}

// fail answers an error: a [*Problem] as it is, anything else as a 503 that says nothing of it. Statuses of errors are
// chosen nowhere else.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r.Context())
	p := new(Problem)
	if !errors.As(err, &p) {
		p = problem(CodeUnavailable, "The request could not be completed; send it again.")
		c.err = err
	}
	c.code = p.Code
	h := w.Header()
	if p.etag != "" {
		h.Set("ETag", p.etag)
	}
	if p.Resource != nil && p.Resource.Href != "" {
		h.Set("Link", "<"+p.Resource.Href+`>; rel="related"`)
	}
	switch p.Status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", seconds(a.opts.RetryAfter))
	case http.StatusTooManyRequests:
		h.Set("Retry-After", seconds(p.retryAfter))
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="paidonce"`)
	case http.StatusMethodNotAllowed:
		h.Set("Allow", strings.Join(p.allow, ", "))
	}
	if r.ContentLength != 0 && !c.ended {
		h.Set("Connection", "close") // the rest of the body is not waited for
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic("api: a problem does not encode: " + err.Error())
	}
	send(w, p.Status, "application/problem+json", append(body, '\n'))
}

// send writes an answer. An error of the connection means that the caller is gone.
func send(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

// seconds is d as Retry-After wants it: whole, rounded up, at least 1.
func seconds(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// metrics are what Prometheus sees of an API. The label route is a pattern of ours, or empty where none fits.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	differs  *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_api_requests_total",
			Help: "Requests to the API, by route and answer.",
		}, []string{"route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "paidonce_api_request_seconds",
			Help:    "Time from a request's headers to its answer.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
		differs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "paidonce_api_external_ref_body_differs_total",
			Help: "Requests that named an external_ref which had come with another body before, by account. They were answered with what it stood for.",
		}, []string{"account"}),
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Register(m.requests), r.Register(m.seconds), r.Register(m.differs))
}
