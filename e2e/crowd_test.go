package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
	"github.com/paidonce/paidonce/internal/scenario/fault"
)

// heard is an answer of /v1; code 0 is a connection that was refused or dropped.
type heard struct {
	code     int
	replayed bool
	body     string
}

// create asks an instance for an order, once.
func (w *world) create(ctx context.Context, instance int, key string) heard {
	addr := w.program.Addr(instance)
	if addr == "" {
		return heard{}
	}
	const body = `{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"crowd-1"}}}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/orders", strings.NewReader(body))
	if err != nil {
		return heard{}
	}
	r.Header["idempotency-key"] = []string{key} // in lower case, or Go's client repeats the request by itself
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+apiKeys[cases.AccountA])
	resp, err := w.client.Do(r)
	if err != nil {
		return heard{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return heard{}
	}
	return heard{resp.StatusCode, resp.Header.Get("Idempotent-Replayed") == "true", string(text)}
}

// insist asks again, one instance and the other in turns, until there is an answer that a client does not repeat. All of them are
// counted in answers.
func (w *world) insist(ctx context.Context, key string, first int, answers *atomic.Int64) (last heard) {
	for try := first; ctx.Err() == nil; try++ {
		last = w.create(ctx, 1+try%2, key)
		answers.Add(1)
		switch last.code {
		case 0, http.StatusConflict, http.StatusTooManyRequests, http.StatusServiceUnavailable:
		default:
			return last
		}
		select {
		case <-time.After(50*time.Millisecond + rand.N(50*time.Millisecond)):
		case <-ctx.Done():
		}
	}
	return last
}

// TestAHundredOrdersAtOnce sends one hundred POST /v1/orders with one key to two servers at the same time, and kills one of them with
// SIGKILL meanwhile: the one that executes it, before its commit; or either of them, at a moment that nobody chose. There is one
// order, all are told of it in the same words, and nobody hears 409 for ever.
func TestAHundredOrdersAtOnce(t *testing.T) {
	t.Parallel()
	const crowd, key = 100, "8e03978e-40d5-43dd-bc93-6894a57f9324"
	for _, c := range []struct {
		name string
		// kill waits for its moment, and kills an instance.
		kill func(*world, *fault.Fault, *atomic.Int64) (instance int)
		hold bool
	}{
		{"TheOwnerIsKilled", func(w *world, f *fault.Fault, _ *atomic.Int64) int {
			w.killHeld(f, "serve", 1)
			return 1
		}, true},
		{"OneIsKilledAtRandom", func(w *world, _ *fault.Fault, answers *atomic.Int64) int {
			after, instance := rand.Int64N(crowd), 1+rand.IntN(2)
			w.t.Logf("kill serve %d after %d answers of any kind", instance, after)
			for end := time.Now().Add(readyWithin); answers.Load() < after && time.Now().Before(end); {
				runtime.Gosched()
			}
			require.NoError(w.t, w.program.Kill(w.t.Context(), "serve", instance))
			return instance
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(s *settings) { s.Limits = map[string]any{"api_rate": 10000, "api_burst": 10000} })
			require.NoError(t, w.Program.Start(t.Context(), "serve", 2))
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			var f *fault.Fault
			var answers atomic.Int64
			all := make(chan heard, crowd)
			ask := func(i int) { all <- w.insist(ctx, key, i, &answers) }
			begun := 0
			if c.hold { // the first stands before its commit when the others come
				f = w.hold("serve", 1, 0, "INSERT", "orders")
				go ask(0)
				w.held(f)
				begun = 1
			}
			for i := begun; i < crowd; i++ {
				go ask(i)
			}
			instance := c.kill(w, f, &answers)
			require.NoError(t, w.Program.Start(t.Context(), "serve", instance))
			// What the dead one had in hand is locked for half a minute: here it is over at once.
			_, err := w.Pool.Exec(t.Context(), `
				UPDATE idempotency_keys SET locked_at = locked_at - lock_timeout WHERE status = 'PROCESSING'`)
			require.NoError(t, err)

			executed, body := 0, ""
			for range crowd {
				h := <-all
				require.Equal(t, http.StatusCreated, h.code, h.body)
				if !h.replayed {
					executed++
				}
				if body == "" {
					body = h.body
				}
				require.Equal(t, body, h.body)
			}
			require.LessOrEqual(t, executed, 1, "at most one: its own answer may be lost")
			var doc struct{ Data struct{ ID string } }
			require.NoError(t, json.Unmarshal([]byte(body), &doc))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM orders`))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM orders WHERE id = $1::uuid AND external_ref = 'crowd-1' AND version = 1`, doc.Data.ID))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM order_transitions`))
			require.Equal(t, 1, w.count(`SELECT count(*) FROM idempotency_keys WHERE status = 'COMPLETED'`))
			for i := range 4 {
				h := w.create(ctx, 1+i%2, key)
				require.Equal(t, heard{http.StatusCreated, true, body}, h, fmt.Sprint(i))
			}
		})
	}
}
