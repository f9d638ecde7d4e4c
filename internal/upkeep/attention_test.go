package upkeep_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/doctor"
	"github.com/paidonce/paidonce/internal/upkeep"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

// kinds are the values of a metric that are above 0, by kind.
func kinds(t *testing.T, reg *prometheus.Registry, name string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		require.Len(t, f.GetMetric(), len(doctor.Kinds()), "each kind has a value at any time, so that rates and alarms have one")
		for _, m := range f.GetMetric() {
			if v := m.GetGauge().GetValue(); v != 0 {
				values[m.GetLabel()[0].GetValue()] = v
			}
		}
	}
	return values
}

func TestAttentionIsCounted(t *testing.T) {
	t.Parallel()
	const count, oldest = "paidonce_attention", "paidonce_attention_oldest_seconds"
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	require.NoError(t, s.EnsureAccounts(t.Context(), []string{"a", "b"}))
	reg := prometheus.NewRegistry()
	now := time.Now()
	a, err := upkeep.NewAttention(s, upkeep.AttentionOptions{Registerer: reg, Now: func() time.Time { return now }})
	require.NoError(t, err)
	run := func() {
		n, err := a.Task().Run(t.Context())
		require.NoError(t, err)
		require.Zero(t, n, "it is no news in every minute")
	}
	require.Empty(t, kinds(t, reg, count), "nobody has looked")
	run()
	require.Empty(t, kinds(t, reg, count))

	for _, account := range []string{"a", "b"} {
		_, err := s.Apply(t.Context(), []store.Event{
			{Account: account, Source: "s", Event: order.Event{ID: "evt_1", Type: "t", Broken: "no amount"}},
			{Account: account, Source: "s", Event: order.Event{
				ID: "evt_2", Type: "t", Realm: "r", Payment: []string{"pi_1"}, Facts: []order.Fact{{Kind: order.KindCaptured, Amount: 1, Currency: "EUR"}},
			}},
		})
		require.NoError(t, err)
	}
	_, err = pool.Exec(t.Context(), `UPDATE processed_events SET received_at = received_at - CASE account_id WHEN 'a' THEN interval '2 hours' ELSE interval '3 hours' END`)
	require.NoError(t, err)
	run()
	require.Equal(t, map[string]float64{"event_quarantined": 2, "payment_without_order": 2}, kinds(t, reg, count))
	require.InDelta(t, 3*3600, kinds(t, reg, oldest)["event_quarantined"], 120)

	before := kinds(t, reg, oldest)["event_quarantined"]
	now = now.Add(2 * time.Minute)
	require.InDelta(t, before+120, kinds(t, reg, oldest)["event_quarantined"], 1, "it grows between two looks")
	now = now.Add(2 * time.Minute)
	require.Empty(t, kinds(t, reg, count), "another process looks by now")

	_, err = pool.Exec(t.Context(), `UPDATE processed_events SET dismissed_at = now()`)
	require.NoError(t, err)
	run()
	require.Empty(t, kinds(t, reg, oldest))

	_, err = pool.Exec(t.Context(), `ALTER TABLE fetches RENAME TO gone`)
	require.NoError(t, err)
	_, err = a.Run(t.Context())
	require.ErrorContains(t, err, "look for what needs a person")
	_, err = upkeep.NewAttention(nil, upkeep.AttentionOptions{})
	require.Error(t, err)
	_, err = upkeep.NewAttention(s, upkeep.AttentionOptions{Registerer: reg})
	require.ErrorAs(t, err, &prometheus.AlreadyRegisteredError{})
}
