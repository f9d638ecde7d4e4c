package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// record gathers what the log line of a request says beside its answer.
type record struct {
	began   time.Time
	account string
	order   string
	note    string // something that is not an error and that the merchant should know of
	stack   string // of a panic
}

// serve runs an endpoint, writes its answer, and then its one log line.
func (a *API) serve(route string, do endpoint) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		l := &record{began: a.opts.Now()}
		r.Body = http.MaxBytesReader(w, r.Body, a.opts.MaxBody)
		resp, err := guarded(do, r, l)
		status, code := a.answer(w, r, resp, err)
		a.metrics.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
		took := max(0, a.opts.Now().Sub(l.began))
		a.metrics.seconds.WithLabelValues(route).Observe(took.Seconds())

		level := slog.LevelInfo
		if status >= 500 {
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{slog.String("route", route), slog.Int("status", status), slog.Duration("duration", took)}
		for _, f := range [][2]string{{"account", l.account}, {"order_id", l.order}, {"code", code}, {"note", l.note}} {
			if f[1] != "" {
				attrs = append(attrs, slog.String(f[0], f[1]))
			}
		}
		if p := (*Problem)(nil); err != nil && !errors.As(err, &p) {
			attrs = append(attrs, slog.String("err", err.Error()))
		}
		if l.stack != "" {
			level = slog.LevelError
			attrs = append(attrs, slog.String("stack", l.stack))
		}
		a.opts.Logger.LogAttrs(r.Context(), level, "api request", attrs...)
	}
}

// guarded turns a panic into an error. What was asked for may have been committed all the same; asking again is safe.
func guarded(do endpoint, r *http.Request, l *record) (resp *response, err error) {
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
		l.stack = string(debug.Stack())
	}()
	return do(r, l)
}

// answer writes what an endpoint came to, and returns its status and, of a problem, its code.
func (a *API) answer(w http.ResponseWriter, r *http.Request, resp *response, err error) (status int, code string) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	if err == nil {
		for k, v := range resp.header {
			h.Set(k, v)
		}
		write(w, resp.status, "application/json", map[string]any{"data": resp.data})
		return resp.status, ""
	}

	p := new(Problem)
	if !errors.As(err, &p) {
		p = problem(http.StatusServiceUnavailable, "unavailable", "The request could not be completed; send it again.")
	}
	switch p.Status {
	case http.StatusServiceUnavailable:
		h.Set("Retry-After", seconds(a.opts.RetryAfter))
	case http.StatusUnauthorized:
		h.Set("WWW-Authenticate", `Bearer realm="paidonce"`)
	case http.StatusMethodNotAllowed:
		h.Set("Allow", strings.Join(p.allow, ", "))
	}
	if r.ContentLength != 0 && !p.bodyRead {
		h.Set("Connection", "close") // the rest of the body is not waited for
	}
	write(w, p.Status, "application/problem+json", p)
	return p.Status, p.Code
}

// write sends v as JSON. An error of the connection means that the caller is gone.
func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil { // only what a Reader handed over as raw JSON can be at fault
		status, contentType = http.StatusInternalServerError, "application/problem+json"
		body = []byte(`{"type":"about:blank","status":500,"code":"internal"}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)+1))
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}

// detached is a context that lives on when the caller hangs up: what was asked for is then finished, and the caller's
// next try finds it done.
func (a *API) detached(r *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(r.Context()), a.opts.Timeout)
}

// metrics are what Prometheus sees of an API. The label route is a pattern of ours, or empty where none fits.
type metrics struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
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
	}
}

func (m *metrics) register(r prometheus.Registerer) error {
	if r == nil {
		return nil
	}
	return errors.Join(r.Register(m.requests), r.Register(m.seconds))
}
