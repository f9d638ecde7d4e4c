package upkeep_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/upkeep"
	"github.com/paidonce/paidonce/store"
	"github.com/paidonce/paidonce/store/storetest"
)

func TestUpkeepReportsWhatWaits(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO orders (account_id, id, external_ref, created_at) VALUES
			('acme', '00000000-0000-7000-8000-000000000001', 'late', now() - interval '2 hours'),
			('acme', '00000000-0000-7000-8000-000000000002', 'void', now() - interval '2 hours'),
			('acme', '00000000-0000-7000-8000-000000000003', 'young', now());
		INSERT INTO payments (account_id, id, order_id) VALUES
			('acme', '00000000-0000-7000-8000-000000000011', '00000000-0000-7000-8000-000000000001'),
			('acme', '00000000-0000-7000-8000-000000000013', '00000000-0000-7000-8000-000000000003');
		INSERT INTO processed_events (account_id, source_id, event_id, type, facts, facts_hash, mapping_version, outcome)
			VALUES ('acme', 's', 'evt_1', 't', '{}', '', 1, 'quarantined');
		INSERT INTO river_job (state, kind, args, max_attempts, attempted_at, attempt)
			VALUES ('running', 'drain', '{}', 5, now() - interval '2 hours', 1)`)
	require.NoError(t, err)

	reg := prometheus.NewRegistry()
	u, err := upkeep.New(s, upkeep.Options{Registerer: reg})
	require.NoError(t, err)
	require.NoError(t, u.Run(t.Context()))
	for name, want := range map[string]float64{"paidonce_stubs_overdue": 1, "paidonce_events_to_review": 1, "paidonce_jobs_stuck": 1} {
		n, err := testutil.GatherAndCount(reg, name)
		require.NoError(t, err)
		require.Equal(t, 1, n, name)
		families, err := reg.Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == name {
				require.InDelta(t, want, f.GetMetric()[0].GetGauge().GetValue(), 0, name)
			}
		}
	}
}

func TestUpkeepForgetsOldFetches(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO fetches (account_id, source_id, object, gateway, state, next_at, last_digest, settled_at) VALUES
			('acme', 's', 'payment/old', 'g', 'done', NULL, 'd', now() - interval '401 days'),
			('acme', 's', 'payment/young', 'g', 'done', NULL, 'd', now() - interval '399 days')`)
	require.NoError(t, err)
	u, err := upkeep.New(s, upkeep.Options{})
	require.NoError(t, err)
	require.NoError(t, u.Run(t.Context()))
	var left string
	require.NoError(t, pool.QueryRow(t.Context(), `SELECT string_agg(object, ' ') FROM fetches`).Scan(&left))
	require.Equal(t, "payment/young", left)
}

func TestUpkeepForgetsOldReconciliations(t *testing.T) {
	t.Parallel()
	pool := storetest.Open(t)
	s, err := store.New(pool, store.Options{})
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO reconcile_runs (account_id, id, source_id, gateway, cause, fence, result, ended_at, eventful) VALUES
			('acme', gen_random_uuid(), 'quiet, old', 'g', 'schedule', 1, 'done', now() - interval '49 hours', false),
			('acme', gen_random_uuid(), 'quiet', 'g', 'schedule', 1, 'done', now() - interval '47 hours', false),
			('acme', gen_random_uuid(), 'found, old', 'g', 'schedule', 1, 'done', now() - interval '91 days', true),
			('acme', gen_random_uuid(), 'found', 'g', 'schedule', 1, 'done', now() - interval '89 days', true),
			('acme', gen_random_uuid(), 'runs', 'g', 'schedule', 1, 'running', NULL, false)`)
	require.NoError(t, err)
	_, err = pool.Exec(t.Context(), `
		INSERT INTO reconcile_asks (account_id, source_id, object, announced_at) VALUES
			('acme', 's', 'payment/old', now() - interval '91 days'), ('acme', 's', 'payment/young', now())`)
	require.NoError(t, err)
	u, err := upkeep.New(s, upkeep.Options{})
	require.NoError(t, err)
	require.NoError(t, u.Run(t.Context()))
	var runs, asks string
	require.NoError(t, pool.QueryRow(t.Context(), `
		SELECT (SELECT string_agg(source_id, '; ' ORDER BY source_id) FROM reconcile_runs), (SELECT string_agg(object, ' ') FROM reconcile_asks)`).Scan(&runs, &asks))
	require.Equal(t, "found; quiet; runs", runs)
	require.Equal(t, "payment/young", asks)
}

type broken struct{ health bool }

func (broken) EnsurePartitions(context.Context) (int, error) { return 0, errors.New("no partitions") }

func (broken) DropPartitions(context.Context, time.Duration) ([]string, error) {
	return nil, errors.New("no drop")
}

func (broken) DropFetches(context.Context, time.Duration) (int64, error) {
	return 0, errors.New("no fetches")
}

func (broken) DropReconcileRuns(context.Context, time.Duration) (int64, error) {
	return 0, errors.New("no reconciliations")
}

func (b *broken) Health(context.Context, time.Duration) (store.Health, error) {
	b.health = true
	return store.Health{}, nil
}

func TestUpkeepGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	b := &broken{}
	u, err := upkeep.New(b, upkeep.Options{})
	require.NoError(t, err)
	err = u.Run(t.Context())
	require.ErrorContains(t, err, "no partitions")
	require.ErrorContains(t, err, "no drop")
	require.ErrorContains(t, err, "no fetches")
	require.ErrorContains(t, err, "no reconciliations")
	require.True(t, b.health)
}

func TestUpkeepRefusesToDropFreshPayloads(t *testing.T) {
	t.Parallel()
	_, err := upkeep.New(&broken{}, upkeep.Options{KeepPayloads: time.Hour})
	require.ErrorContains(t, err, "24h or more")
	_, err = upkeep.New(&broken{}, upkeep.Options{KeepFetches: time.Hour})
	require.ErrorContains(t, err, "24h or more")
	_, err = upkeep.New(&broken{}, upkeep.Options{KeepReconciliations: time.Hour})
	require.ErrorContains(t, err, "24h or more")
}
