package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// ran makes a run that ended with that report.
func ran(t *testing.T, st *store.Store, account, source string, report store.ReconcileReport) store.ReconcileClaim {
	t.Helper()
	c, err := st.ClaimReconcile(t.Context(), store.ReconcileStart{
		ReconcileKey: store.ReconcileKey{Account: account, Source: source, Gateway: "stripe", Lists: true, Note: "it cannot be asked"},
		Cause:        store.ReconcileByCommand, Lease: time.Minute, Since: time.Now().Add(-time.Hour),
	})
	require.NoError(t, err)
	end := store.ReconcileEnd{Result: store.ReconcileDone, Wait: 5 * time.Minute}
	end.Report = report
	if report.Error != "" {
		end.Result = store.ReconcileFailed
	}
	require.NoError(t, st.EndReconcile(t.Context(), c, end))
	return c
}

func TestReconciliation(t *testing.T) {
	t.Parallel()
	sources := func(account string) []api.Source {
		return map[string][]api.Source{
			"a": {{ID: "stripe", Gateway: "stripe"}, {ID: "new", Gateway: "paypal"}}, "b": {{ID: "theirs", Gateway: "stripe"}},
		}[account]
	}
	b := onPostgres(t, api.Options{Sources: sources, Rate: 10_000, Burst: 10_000})
	some, at := uuid.New(), time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
	first := ran(t, b.st, "a", "stripe", store.ReconcileReport{
		From: &at, Until: &at, Calls: 3, Listed: 9, Duplicates: 4, Healed: 5, Moved: 1, LateP50: 7, LateMax: 8, Differs: 1, KeptAside: 1, Announced: 2,
		Asked: 1, Open: 1, Unexplained: 1, Uncertain: 1, Notes: []string{"a note"},
		Events:         []store.HealedEvent{{ID: "evt_1", Type: "t", Outcome: store.Applied, Order: &some, OccurredAt: &at, Late: 8}, {ID: "evt_2", Outcome: store.NoChange}},
		Orders:         []store.WaitingOrder{{Order: some, Ref: "ord_1", State: order.StatePending, Stub: true, Since: at, Asks: 2, AskedAt: &at}},
		Contradictions: []store.Contradiction{{Object: "payment/1", Order: &some, What: "captured", Ours: 5, Theirs: 4, Currency: "EUR", Detail: "They say less."}},
		Transactions:   []store.UncertainTransaction{{ID: some, Order: some, Kind: order.MovementRefund, Amount: 5, Currency: "EUR", SentAt: &at, Code: "outcome_unknown"}},
	})
	ran(t, b.st, "b", "theirs", store.ReconcileReport{Healed: 1, Events: []store.HealedEvent{{ID: "evt_SECRET", Outcome: store.Applied}}})
	ran(t, b.st, "a", "gone", store.ReconcileReport{})

	d := data(t, b.get("/v1/reconciliation", readOnly))
	all := d["sources"].([]any)
	require.Len(t, all, 2, "of sources that are configured")
	s := all[0].(map[string]any)
	require.Equal(t, "stripe", s["source"])
	require.Equal(t, []any{true, false, "it cannot be asked", false, 0.0}, []any{s["lists"], s["asks"], s["note"], s["running"], s["failures"]})
	require.InDelta(t, 3600, s["lag_seconds"], 60)
	require.NotNil(t, s["succeeded_at"])
	run := s["last_run"].(map[string]any)
	require.Equal(t, first.Run.String(), run["id"])
	require.Equal(t, "command", run["cause"])
	require.Equal(t, "done", run["result"])
	for name, want := range map[string]float64{
		"calls": 3, "listed": 9, "duplicates": 4, "healed": 5, "moved": 1, "late_p50_seconds": 7, "late_max_seconds": 8, "differs": 1, "kept_aside": 1,
		"announced": 2, "asked": 1, "open": 1, "unexplained": 1, "uncertain": 1,
	} {
		require.EqualValues(t, want, run[name], name)
	}
	require.Equal(t, at.Format(time.RFC3339), run["from"])
	require.Equal(t, "evt_1", run["events"].([]any)[0].(map[string]any)["id"])
	require.Nil(t, run["events"].([]any)[1].(map[string]any)["order_id"])
	require.Equal(t, "ord_1", run["orders"].([]any)[0].(map[string]any)["order_ref"])
	require.Equal(t, "They say less.", run["contradictions"].([]any)[0].(map[string]any)["text"])
	require.Equal(t, some.String(), run["transactions"].([]any)[0].(map[string]any)["id"])
	require.Contains(t, all[1].(map[string]any)["note"], "No run has looked at it yet")
	require.NotContains(t, all[1].(map[string]any), "last_run")

	_, err := b.st.ClaimReconcile(t.Context(), store.ReconcileStart{
		ReconcileKey: store.ReconcileKey{Account: "a", Source: "stripe", Gateway: "stripe"}, Cause: store.ReconcileByCommand, Lease: time.Minute,
	})
	require.NoError(t, err)
	s = data(t, b.get("/v1/reconciliation", keyA))["sources"].([]any)[0].(map[string]any)
	require.Equal(t, true, s["running"])
	require.Equal(t, "running", s["last_run"].(map[string]any)["result"])
	require.Nil(t, s["last_run"].(map[string]any)["ended_at"])

	w := b.get("/v1/reconciliation", writeOnly)
	require.Equal(t, http.StatusForbidden, w.Code)
	require.Len(t, b.list("/v1/reconciliation/runs", keyA, "id", "1"), 3)
	require.Equal(t, []any{first.Run.String()}, b.list("/v1/reconciliation/runs?eventful=true", keyA, "id", "50"))
	require.Len(t, b.list("/v1/reconciliation/runs?source=gone", keyA, "id", "50"), 1)
	for _, path := range []string{"/v1/reconciliation", "/v1/reconciliation/runs"} {
		require.NotContains(t, b.get(path, keyA).Body.String(), "SECRET")
		require.Contains(t, b.get(path, keyB).Body.String(), "SECRET")
	}
	require.Equal(t, http.StatusBadRequest, b.get("/v1/reconciliation/runs?cursor=x", keyA).Code)
}

// A list of many runs reads a page by an index, whatever the filter.
func TestReconcileRunsArePaged(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, api.Options{Rate: 10_000, Burst: 10_000})
	var want []any
	for i := range 7 {
		c := ran(t, b.st, "a", "stripe", store.ReconcileReport{Error: strings.Repeat("x", i%2)})
		want = append([]any{c.Run.String()}, want...)
	}
	for limit := 1; limit < 9; limit++ {
		require.Equal(t, want, b.list("/v1/reconciliation/runs", keyA, "id", fmt.Sprint(limit)))
	}
	require.Len(t, b.list("/v1/reconciliation/runs?eventful=true&source=stripe", keyA, "id", "2"), 3, "those that failed")
}
