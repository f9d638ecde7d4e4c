package receiver_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// BenchmarkDelivery is what a delivery costs up to the ingester; BenchmarkBare is net/http's own share of it.
func BenchmarkDelivery(bm *testing.B) {
	// The line is encoded, as it is in production, and goes nowhere.
	b := setup(bm, receiver.Options{Logger: slog.New(slog.NewJSONHandler(struct{ io.Writer }{io.Discard}, nil))})
	b.ledger.do = func(_ context.Context, events []store.Event) ([]store.Result, error) {
		return make([]store.Result, len(events)), nil
	}
	benchmark(bm, b)
}

// BenchmarkBare reads the same request and answers it.
func BenchmarkBare(bm *testing.B) {
	benchmark(bm, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		buf := make([]byte, r.ContentLength)
		_, _ = r.Body.Read(buf)
		w.WriteHeader(http.StatusOK)
	}))
}

func benchmark(bm *testing.B, h http.Handler) {
	body := `{"id":"evt_1","type":"paid","pad":"` + strings.Repeat("x", 2000) + `"}`
	sig := sign(bm, []byte(body))
	bm.ReportAllocs()
	for bm.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/webhooks/strict", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Stripe-Signature", sig)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			bm.Fatal(w.Code)
		}
	}
}
