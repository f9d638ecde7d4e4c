package receiver_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/receiver"
	"github.com/paidonce/paidonce/store"
)

// printer stands for a processor.Ingester, or for what a program has instead of one.
type printer struct{}

// Ingest commits the events; only then may it return without an error.
func (printer) Ingest(_ context.Context, events []store.Event) ([]store.Result, error) {
	for _, ev := range events {
		fmt.Println(ev.Source, ev.Type, ev.Reference)
	}
	return make([]store.Result, len(events)), nil
}

// A program that takes webhooks in itself, in a server of its own. Gateways that are
// asked need an Announcer too, PayPal and Plaid a Verifier.
func ExampleNew() {
	source := gateway.Source{ID: "cards", Gateway: "stripe", Mode: gateway.Test, Secrets: []string{"whsec_example"}}
	sources := func(id string) (gateway.Source, bool) { return source, id == source.ID }
	clock := time.Unix(1_790_000_000, 0)

	rc, err := receiver.New(sources, printer{}, receiver.Options{Now: func() time.Time { return clock }})
	if err != nil {
		fmt.Println(err)
		return
	}
	// It wants the whole path. A ServeMux around it redirects unclean ones, which no gateway follows.
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			return
		}
		rc.ServeHTTP(w, r)
	})

	body, err := gateway.Stripe.Sample(gateway.SampleRequest{Source: source, Type: "payment_intent.succeeded", Reference: "ord_1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	delivery, err := gateway.Stripe.Deliver(source, body, "", clock)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, path := range []string{"/webhooks/cards", "/webhooks/other"} {
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(delivery.Body))
		r.Header = delivery.Header
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Println(path, w.Code)
	}
	// Output:
	// cards payment_intent.succeeded ord_1
	// /webhooks/cards 200
	// /webhooks/other 404
}
