package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAttention(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	require.NoError(t, l.store.EnsureAccounts(t.Context(), []string{"a", "b"}))
	look := func(key, query string) map[string]any {
		w := l.do(http.MethodGet, "/v1/attention"+query, key, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		return data(t, w)
	}
	well := look(keyA, "")
	require.Equal(t, []any{}, well["kinds"])
	require.Equal(t, []any{}, well["notes"])
	require.EqualValues(t, 0, well["count"])

	ids := map[string]string{}
	for _, ref := range []string{"ord_1", "ord_2"} {
		ids[ref], _ = l.order(ref)
		l.deliver(hook("evt_"+ref, "pi_"+ref, ref, captured(6000)))
	}
	broken := hook("evt_1", "pi_1", "")
	broken.Payment, broken.Broken = nil, "no amount"
	l.deliver(broken)
	sick := look(readOnly, "?limit=1")
	require.EqualValues(t, 3, sick["count"])
	kinds := sick["kinds"].([]any)
	require.Len(t, kinds, 2)
	overpaid, quarantined := kinds[0].(map[string]any), kinds[1].(map[string]any)
	require.Equal(t, []any{"overpaid", "today", 2.0, false}, []any{overpaid["kind"], overpaid["urgency"], overpaid["count"], overpaid["more"]})
	require.Len(t, overpaid["items"], 1, "as many as were asked for")
	require.Equal(t, "event_quarantined", quarantined["kind"])
	require.Empty(t, look(keyB, "")["kinds"], "accounts are apart")

	// What it says is what ends it.
	for _, k := range look(keyA, "")["kinds"].([]any) {
		for _, i := range k.(map[string]any)["items"].([]any) {
			item := i.(map[string]any)
			r := item["request"].(map[string]any)
			require.Equal(t, strings.Join([]string{r["method"].(string), r["path"].(string), r["body"].(string)}, " "), item["resolve"])
			w := l.do(r["method"].(string), r["path"].(string), operator, r["body"].(string))
			require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		}
	}
	require.Empty(t, look(keyA, "")["kinds"])
	require.Equal(t, []any{"overpaid"}, l.read(ids["ord_1"])["dismissed"])

	require.Equal(t, http.StatusForbidden, l.do(http.MethodGet, "/v1/attention", operator, "").Code)
	require.Equal(t, http.StatusBadRequest, l.do(http.MethodGet, "/v1/attention?"+url.Values{"limit": {"0"}}.Encode(), keyA, "").Code)
}
