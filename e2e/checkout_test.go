package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/scenario/cases"
)

// say posts to /v1 of account A, and returns the status.
func (w *world) say(ctx context.Context, path, key, body string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+w.program.Addr(1)+path, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+apiKeys[cases.AccountA])
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	resp, err := w.client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// TestT100_CheckoutAndWebhookAtOnce: the customer comes back with the gateway's answer while its webhook arrives. Whichever is first
// moves the order, the other finds it moved, and the merchant is told once.
func TestT100_CheckoutAndWebhookAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	refs := make([]string, 24)
	for i := range refs {
		refs[i] = fmt.Sprint("checkout-", i)
	}
	w.register(refs...)
	for i, ref := range refs {
		var id string
		require.NoError(t, w.Pool.QueryRow(t.Context(), `SELECT id::text FROM orders WHERE external_ref = $1`, ref).Scan(&id))
		body := `{"data":{"gateway":"stripe","payment":"pi_` + ref + `","status":"captured","amount":5000,"currency":"EUR"}}`
		hook := signed(stripeEvent("payment_intent.succeeded", ref, "evt_"+ref).with(func(m *message) { m.sample.Payment = "pi_" + ref }))
		var wg sync.WaitGroup
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			if err := w.deliver(t.Context(), hook, 1); err != nil {
				t.Errorf("%s: webhook: %v", ref, err)
			}
		})
		for _, key := range []string{"", fmt.Sprint("checkout key ", i)} {
			wg.Go(func() {
				<-start
				if code, err := w.say(t.Context(), "/v1/orders/"+id+"/confirm", key, body); err != nil || code != http.StatusOK {
					t.Errorf("%s: confirm: %d, %v", ref, code, err)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	w.eventually(healWithin, w.owed)
	require.Equal(t, len(refs), w.count(`SELECT count(*) FROM orders WHERE state = 'paid' AND captured = 5000 AND told = 'fulfilled' AND flags = '{}'`))
	require.Equal(t, len(refs), w.count(`SELECT count(*) FROM order_transitions WHERE from_state <> to_state`), "one transition each")
	require.Equal(t, len(refs), w.count(`SELECT count(*) FROM payments WHERE merged_into IS NULL`))
	for _, ref := range refs {
		require.Equal(t, []string{"fulfil"}, w.Merchant.Effects(ref))
	}
	require.Equal(t, map[string]int{"fulfil": len(refs)}, w.Merchant.Keys())
	require.Empty(t, w.Merchant.Violations())
}
