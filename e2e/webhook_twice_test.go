package e2e_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestT99_WebhookTwice: a webhook that comes twice, twice at once, after a failure, forged, or when its order is paid already, pays
// an order once. The database and both processes are real.
func TestT99_WebhookTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.NoError(t, w.program.Start(t.Context(), "serve", 2))
	refs := []string{"in-turn", "at-once", "after-a-fault", "forged-first", "already-paid"}
	w.register(refs...)
	events := func(ref string) int {
		return w.count(`SELECT count(*) FROM processed_events WHERE event_id = $1`, "evt_"+ref)
	}

	for range 2 {
		require.Equal(t, http.StatusOK, w.post(t.Context(), 1, paid("in-turn")))
	}

	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if code := w.post(t.Context(), 1+i%2, paid("at-once")); code != http.StatusOK {
				t.Errorf("answered %d", code)
			}
		})
	}
	wg.Wait()

	_, err := w.Pool.Exec(t.Context(), `
		CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused by the test'; END $$;
		CREATE TRIGGER refuse BEFORE INSERT ON order_transitions FOR EACH ROW EXECUTE FUNCTION refuse()`)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, w.post(t.Context(), 1, paid("after-a-fault")))
	require.Zero(t, events("after-a-fault"), "the id is not kept of what was not done")
	_, err = w.Pool.Exec(t.Context(), `DROP TRIGGER refuse ON order_transitions`)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, w.post(t.Context(), 1, paid("after-a-fault")))

	forged := paid("forged-first")
	forged.body = append(forged.body[:len(forged.body)-1:len(forged.body)-1], ' ', '}')
	require.Equal(t, http.StatusUnauthorized, w.post(t.Context(), 1, forged))
	require.Zero(t, events("forged-first"))
	require.Equal(t, http.StatusOK, w.post(t.Context(), 1, paid("forged-first")))

	require.Equal(t, http.StatusOK, w.post(t.Context(), 1, paid("already-paid")))
	version := w.count(`SELECT version FROM orders WHERE external_ref = 'already-paid'`)
	require.Equal(t, http.StatusOK, w.post(t.Context(), 2, signed(stripeEvent("payment_intent.succeeded", "already-paid", "evt_again"))))
	require.Equal(t, version, w.count(`SELECT version FROM orders WHERE external_ref = 'already-paid'`))

	w.eventually(healWithin, w.owed)
	for _, ref := range refs {
		require.Equal(t, 1, events(ref), ref)
		require.Equal(t, 1, w.count(`
			SELECT count(*) FROM order_transitions t JOIN orders o USING (account_id)
			WHERE o.id = t.order_id AND o.external_ref = $1 AND o.state = 'paid' AND o.captured = 5000 AND t.to_state = 'paid' AND t.from_state <> 'paid'`, ref), ref)
		require.Equal(t, []string{"fulfil"}, w.Merchant.Effects(ref))
	}
	require.Empty(t, w.Merchant.Violations())
}
