package idempotency_test

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/paidonce/paidonce/idempotency"
	"github.com/paidonce/paidonce/store/storetest"
)

// BenchmarkCalls is what the middleware costs without a network: a handler that inserts one row, by itself in a transaction of its
// own, under a key, and replayed.
func BenchmarkCalls(b *testing.B) {
	pool := storetest.Open(b)
	be := benchOn(b, pool, nil)
	body := `{"data":{"amount":5000,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_123","note":"two pairs of shoes"}}}`
	bare := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := pgx.BeginFunc(r.Context(), pool, func(tx pgx.Tx) error { return insert(r, tx) })
		if err != nil {
			b.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	protected := be.with(idempotency.Strict(), func(w http.ResponseWriter, r *http.Request) {
		tx, _ := idempotency.Tx(r.Context())
		if err := insert(r, tx); err != nil {
			b.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
	})
	var n atomic.Int64
	run := func(name string, h http.Handler, c func() call) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if w := c().to(h); w.Code != http.StatusCreated {
						b.Error(w.Code, w.Body.String())
					}
				}
			})
		})
	}
	run("unprotected", bare, func() call { return call{body: body} })
	run("first", protected, func() call { return post(fmt.Sprint("k", n.Add(1)), body) })
	run("replay", protected, func() call { return post("k1", body) })
}

func insert(r *http.Request, tx pgx.Tx) error {
	_, err := tx.Exec(r.Context(), `INSERT INTO effects (id, note) VALUES ($1, $2)`, uuid.NewString(), "bench")
	return err
}
