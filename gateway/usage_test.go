package gateway_test

import (
	"fmt"
	"time"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// What a delivery means needs no database and no server: a source, the request, and
// the time. Verify comes first.
func ExampleGateway_Events() {
	source := gateway.Source{
		ID: "square", Gateway: "square", Mode: gateway.Live, Secrets: []string{"signature-key"}, PublicURL: "https://shop.example/webhooks/square",
	}
	square, _ := gateway.Lookup(source.Gateway)
	if err := square.Check(source); err != nil {
		fmt.Println(err)
		return
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

	// In a program: Method, Header and Body of the request. Here it is made as Square would.
	body, err := square.Sample(gateway.SampleRequest{Source: source, Type: "payment.updated", Reference: "ord_1", Payment: "PAYMENT1", At: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	delivery, err := square.Deliver(source, body, "", now)
	if err != nil {
		fmt.Println(err)
		return
	}

	if err := square.Verify(source, delivery, now); err != nil {
		fmt.Println("refused:", err)
		return
	}
	events, err := square.Events(source, delivery)
	if err != nil {
		fmt.Println("unreadable:", err)
		return
	}
	for _, ev := range events {
		fmt.Println(ev.Type, ev.Payment, ev.Reference)
		for _, f := range ev.Facts {
			switch f.Kind {
			case order.KindPhase, order.KindDisputed:
				fmt.Println(f.Kind, f.Status)
			default:
				fmt.Println(f.Kind, f.Amount, f.Currency) // minor units
			}
		}
	}
	// Output:
	// payment.updated [PAYMENT1] ord_1
	// phase authorized
	// captured 5000 EUR
	// refunded 0 EUR
}
