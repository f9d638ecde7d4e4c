package idempotency_test

import (
	"net/http"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/idempotency"
)

func TestAudit(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	nothing := func(http.ResponseWriter, *http.Request) { t.Error("the audit ran a handler") }
	protect := b.mw.Protect(idempotency.Strict())
	r := chi.NewRouter()
	r.Use(middleware.RequestID, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			t.Error("the audit ran a middleware")
			next.ServeHTTP(w, r)
		})
	})
	r.Get("/free", nothing)
	r.Delete("/free", nothing)
	r.With(protect).Post("/inline", nothing)
	r.With(middleware.NoCache, b.mw.ProtectFunc("by account", func(*http.Request) idempotency.Policy { return idempotency.Strict() })).Put("/func", nothing)
	r.With(idempotency.Exempt("it is idempotent by itself")).Patch("/exempt", nothing)
	r.Method("POST", "/handler", protect(http.HandlerFunc(nothing)))
	r.Group(func(r chi.Router) {
		r.Use(protect)
		r.Post("/group", nothing)
	})
	r.Route("/sub", func(r chi.Router) {
		r.Use(protect)
		r.Post("/", nothing)
		r.Route("/deeper/{id}", func(r chi.Router) { r.Put("/", nothing) })
	})
	require.NoError(t, idempotency.Audit(r))

	r.Post("/forgotten", nothing)
	r.Route("/mounted", func(r chi.Router) { r.Patch("/forgotten", nothing) })
	r.With(protect, idempotency.Exempt("or not")).Post("/both", nothing)
	err := idempotency.Audit(r)
	require.ErrorContains(t, err, "POST /forgotten declares no policy and no exemption")
	require.ErrorContains(t, err, "PATCH /mounted/forgotten declares no policy")
	require.ErrorContains(t, err, `POST /both declares 2 things: ["policy strict" "exempt: or not"]`)
	require.NotContains(t, err.Error(), "/inline")

	all := chi.NewRouter()
	all.HandleFunc("/any", nothing)
	require.ErrorContains(t, idempotency.Audit(all), "PUT /any declares no policy")
}

func TestExemptRoutesSayThatKeysAreIgnored(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	h := idempotency.Exempt("reads")(http.HandlerFunc(b.status200))
	require.Equal(t, "ignored", post("k", `{}`).to(h).Header().Get("Idempotency-Status"))
	require.Empty(t, call{}.to(h).Header().Get("Idempotency-Status"))
	require.EqualValues(t, 2, b.runs.Load())
	require.Zero(t, b.keys())
}

func (b *bench) status200(w http.ResponseWriter, _ *http.Request) { b.statusOnly(w, http.StatusOK) }
