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

func TestKeptDeliveries(t *testing.T) {
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
	all := func(f store.ReevaluateFilter, page int) (bodies []string) {
		var last store.DeliveryKey
		n, err := st.CountKept(t.Context(), f, last)
		require.NoError(t, err)
		for {
			keys, err := st.ListKept(t.Context(), f, last, page)
			require.NoError(t, err)
			found, err := st.ReadKept(t.Context(), keys)
			require.NoError(t, err)
			for i, d := range found {
				require.Equal(t, keys[i], d.Key())
				bodies = append(bodies, string(d.Body))
				require.Contains(t, d.Header, "X-Test")
			}
			if len(keys) < page {
				require.Len(t, bodies, n)
				return bodies
			}
			last = keys[len(keys)-1]
			again, err := store.ParseDeliveryKey(last.String())
			require.NoError(t, err)
			require.True(t, again.At.Equal(last.At))
			last = again
			left, err := st.CountKept(t.Context(), f, last)
			require.NoError(t, err)
			require.Equal(t, n-len(bodies), left)
		}
	}
	want := []string{"body 0", "body 1", "body 2", "body 3", "body 4"}
	filters := func() {
		t.Helper()
		for _, page := range []int{1, 2, 5, 100} {
			require.Equal(t, want, all(store.ReevaluateFilter{}, page), "each delivery once, the oldest first")
			require.Equal(t, want, all(store.ReevaluateFilter{Type: "captured"}, page), "once, though two of its events are")
		}
		for name, f := range map[string]store.ReevaluateFilter{
			"source":  {Sources: []string{"two"}},
			"both":    {Sources: []string{"two"}, Type: "captured", Account: "shop"},
			"outcome": {Sources: []string{"two"}, Outcome: store.Waiting},
			"reason":  {Sources: []string{"two"}, Reason: store.ReasonUnregistered},
			"mapping": {Sources: []string{"two"}, Mapping: 2},
			"since":   {Sources: []string{"two"}, Type: "captured", Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)},
		} {
			require.Equal(t, []string{"body 1", "body 3"}, all(f, 10), name)
		}
		require.Equal(t, []string{"body 3"}, all(store.ReevaluateFilter{Event: "b3"}, 10), "by an event whose row has no body")
		require.Equal(t, []string{"body 0", "body 3"}, all(store.ReevaluateFilter{Events: []store.EventKey{{Account: "shop", Source: "two", ID: "a3"}, {Account: "shop", Source: "one", ID: "b0"}}}, 1))
		for name, f := range map[string]store.ReevaluateFilter{
			"account": {Account: "other"}, "type": {Type: "refunded"}, "outcome": {Outcome: store.Applied}, "reason": {Reason: "no"}, "mapping": {Mapping: 1},
			"events": {Events: []store.EventKey{}}, "until": {Until: time.Now().Add(-time.Hour)}, "since": {Since: time.Now().Add(time.Hour), Type: "captured"},
			"another source's": {Sources: []string{"one"}, Event: "a1"}, "api": {Sources: []string{store.APISource}},
		} {
			require.Empty(t, all(f, 10), name)
		}
		require.Len(t, all(store.ReevaluateFilter{Since: time.Now().Add(-time.Hour)}, 10), 5)
	}
	filters()

	// What retention has moved away is found, and once.
	_, err = st.Pool().Exec(t.Context(), `INSERT INTO event_payloads_kept
		SELECT p.account_id, p.source_id, p.event_id, p.received_at, p.delivery, p.header, p.body FROM event_payloads p`)
	require.NoError(t, err)
	filters()
	_, err = st.Pool().Exec(t.Context(), `DELETE FROM event_payloads`)
	require.NoError(t, err)
	filters()

	// Where events were lost, what is asked of bytes finds them, and what is asked of events does not.
	_, err = st.Pool().Exec(t.Context(), `DELETE FROM processed_events WHERE event_id IN ('a1', 'b1')`)
	require.NoError(t, err)
	require.Equal(t, []string{"body 1", "body 3"}, all(store.ReevaluateFilter{Sources: []string{"two"}}, 10))
	require.Equal(t, []string{"body 3"}, all(store.ReevaluateFilter{Sources: []string{"two"}, Type: "captured"}, 10))

	_, err = st.Pool().Exec(t.Context(), `DELETE FROM event_payloads_kept WHERE event_id = 'a2'`)
	require.NoError(t, err)
	gone, err := st.ReadKept(t.Context(), []store.DeliveryKey{{At: time.Now(), Delivery: uuid.New()}})
	require.NoError(t, err)
	require.Empty(t, gone)
	for _, text := range []string{"", "x", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z/x", "soon/" + uuid.NewString()} {
		_, err := store.ParseDeliveryKey(text)
		require.ErrorContains(t, err, "is no time/id", text)
	}
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
