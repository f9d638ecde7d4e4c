package processor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/processor"
	"github.com/paidonce/paidonce/store"
)

// A program that embeds Paidonce fulfils its orders itself instead of being called over HTTP.
func ExampleNewWorkers() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	st, err := store.New(pool, store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fulfil := processor.FulfillerFunc(func(ctx context.Context, c processor.Call) error {
		// One transaction of the program's own: it makes a note of the key and the version, so that a call that
		// comes again changes nothing, and then does what the effect says.
		switch c.Effect {
		case order.EffectFulfil:
			fmt.Println("ship", c.ExternalRef)
		case order.EffectHold:
			fmt.Println("do not ship yet", c.ExternalRef)
		case order.EffectRelease:
			fmt.Println("go on", c.ExternalRef, "after it was", c.After)
		case order.EffectRevoke:
			fmt.Println("take back", c.ExternalRef)
		}
		return nil
	})
	workers, err := processor.NewWorkers(st, fulfil, processor.WorkerOptions{})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(workers.Run(ctx))
}
