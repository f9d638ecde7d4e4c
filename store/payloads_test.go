package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// kept is an event of a delivery, with its bytes.
func kept(t *testing.T, source, id string, delivery uuid.UUID, body string) store.Event {
	t.Helper()
	return store.Event{
		Event: order.Event{
			ID: id, Type: "captured", Realm: "test:live", Payment: []string{"pay_" + id}, Reference: "ord_" + id, Strength: order.StrengthPayment,
			Facts: []order.Fact{{Kind: order.KindCaptured, Status: order.StatusOK, Amount: 1000, Currency: "EUR"}},
		},
		Account: "shop", Source: source, Delivery: delivery, Payload: []byte(body), Header: map[string]string{"X-Test": id},
	}
}

func TestDeliveries(t *testing.T) {
	t.Parallel()
	st, err := store.New(storetest.Open(t), store.Options{})
	require.NoError(t, err)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	for i := range 5 { // a transaction and a time each
		both := uuid.Must(uuid.NewV7())
		source := []string{"one", "two"}[i%2]
		_, err := st.Apply(t.Context(), []store.Event{
			kept(t, source, fmt.Sprintf("a%d", i), both, fmt.Sprintf("body %d", i)),
			kept(t, source, fmt.Sprintf("b%d", i), both, fmt.Sprintf("body %d", i)),
		})
		require.NoError(t, err)
	}
	all := func(f store.DeliveryFilter, page int) (bodies []string) {
		var last *store.StoredDelivery
		for {
			found, err := st.Deliveries(t.Context(), f, last, page)
			require.NoError(t, err)
			for _, d := range found {
				bodies = append(bodies, string(d.Body))
				require.Contains(t, d.Header, "X-Test")
			}
			if len(found) < page {
				return bodies
			}
			last = &found[len(found)-1]
		}
	}
	want := []string{"body 0", "body 1", "body 2", "body 3", "body 4"}
	for _, page := range []int{1, 2, 5, 100} {
		require.Equal(t, want, all(store.DeliveryFilter{}, page), "each delivery once, the oldest first")
	}
	require.Equal(t, []string{"body 1", "body 3"}, all(store.DeliveryFilter{Source: "two"}, 10))
	require.Empty(t, all(store.DeliveryFilter{Account: "other"}, 10))
	require.Empty(t, all(store.DeliveryFilter{Until: time.Now().Add(-time.Hour)}, 10))
	require.Len(t, all(store.DeliveryFilter{Since: time.Now().Add(-time.Hour)}, 10), 5)

	// What retention has moved away is found, and once.
	_, err = st.Pool().Exec(t.Context(), `INSERT INTO event_payloads_kept
		SELECT p.account_id, p.source_id, p.event_id, p.received_at, p.delivery, p.header,
			(SELECT q.body FROM event_payloads q WHERE q.delivery = p.delivery AND q.body IS NOT NULL) FROM event_payloads p`)
	require.NoError(t, err)
	_, err = st.Pool().Exec(t.Context(), `DELETE FROM event_payloads`)
	require.NoError(t, err)
	require.Equal(t, want, all(store.DeliveryFilter{}, 2))
}

// A dry run says what Apply then does, and leaves nothing behind.
func TestDryRun(t *testing.T) {
	t.Parallel()
	st, err := store.New(storetest.Open(t), store.Options{})
	require.NoError(t, err)
	require.NoError(t, st.EnsureAccounts(t.Context(), []string{"shop"}))
	events := []store.Event{kept(t, "one", "a", uuid.Must(uuid.NewV7()), "body")}
	rows := func() (n int) {
		require.NoError(t, st.Pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM processed_events) + (SELECT count(*) FROM event_payloads)
			+ (SELECT count(*) FROM payments) + (SELECT count(*) FROM orders) + (SELECT count(*) FROM order_transitions)`).Scan(&n))
		return n
	}
	dry, err := st.DryRun(t.Context(), events)
	require.NoError(t, err)
	require.Zero(t, rows())
	done, err := st.Apply(t.Context(), events)
	require.NoError(t, err)
	require.NotZero(t, rows())
	require.Equal(t, done[0].Outcome, dry[0].Outcome)
	require.Equal(t, done[0].After, dry[0].After)

	events[0].ID = "" // an error is Apply's own
	_, err = st.DryRun(t.Context(), events)
	require.ErrorIs(t, err, store.ErrUnstorable)
}
