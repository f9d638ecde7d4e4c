package receiver

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check is one thing that must hold before traffic may come: the database answers, its schema is current, its commits
// are durable.
type Check struct {
	Name string // snake_case; stands in the answer
	Do   func(ctx context.Context) error
}

// AdminOptions are the parts of the admin listener. The zero value has no checks and no metrics.
type AdminOptions struct {
	// Checks must all hold for /readyz to answer 200. They run at once, for every request.
	Checks []Check

	// Notes says what does not keep traffic away and a person may want to know, by snake_case names. It is asked beside
	// the checks; an error of it only leaves the notes out. Default: none.
	Notes func(ctx context.Context) (map[string]string, error)

	// Timeout is how long the checks may take. Default 2 s.
	Timeout time.Duration

	// Gatherer has what /metrics shows. Default: nothing, and /metrics is 404.
	Gatherer prometheus.Gatherer

	// Logger receives why a check failed: the answer only says which. Default: discard.
	Logger *slog.Logger
}

// Admin returns the handler of the admin listener, which is not for the internet:
//
//	/healthz   200 as long as the process serves requests
//	/readyz    200 if all checks hold, else 503; {"status":"ready","checks":{"database":"ok"}}, perhaps with "notes"
//	/metrics   for Prometheus
func Admin(opts AdminOptions) http.Handler {
	if opts.Timeout == 0 {
		opts.Timeout = 2 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := chi.NewRouter()
	r.Get("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, health{Status: "alive"})
	})
	r.Get("/readyz", opts.ready)
	if opts.Gatherer != nil {
		r.Method(http.MethodGet, "/metrics", promhttp.HandlerFor(opts.Gatherer, promhttp.HandlerOpts{
			ErrorLog: slog.NewLogLogger(opts.Logger.Handler(), slog.LevelError),
		}))
	}
	return r
}

func (o AdminOptions) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), o.Timeout)
	defer cancel()

	errs := make([]error, len(o.Checks))
	var wg sync.WaitGroup
	for i, c := range o.Checks {
		wg.Go(func() { errs[i] = c.Do(ctx) })
	}
	var notes map[string]string
	if o.Notes != nil {
		wg.Go(func() {
			var err error
			if notes, err = o.Notes(ctx); err != nil {
				notes = nil
				o.Logger.LogAttrs(ctx, slog.LevelWarn, "readiness notes failed", errAttr(err))
			}
		})
	}
	wg.Wait()

	status, word := http.StatusOK, "ready"
	checks := make(map[string]string, len(errs))
	for i, err := range errs {
		checks[o.Checks[i].Name] = "ok"
		if err != nil {
			status, word = http.StatusServiceUnavailable, "not ready"
			checks[o.Checks[i].Name] = "failed"
			o.Logger.LogAttrs(ctx, slog.LevelWarn, "readiness check failed", slog.String("check", o.Checks[i].Name), errAttr(err))
		}
	}
	writeJSON(w, status, health{Status: word, Checks: checks, Notes: notes})
}

type health struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitempty"`
	Notes  map[string]string `json:"notes,omitempty"`
}

// writeJSON writes v; an error means that the caller is gone.
func writeJSON(w http.ResponseWriter, status int, v health) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		return
	}
}
