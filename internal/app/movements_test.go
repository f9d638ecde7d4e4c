package app_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestMovementsOfTheProgram: the API knows which of the configured sources can call their gateway, from the next request after a
// reload on.
func TestMovementsOfTheProgram(t *testing.T) {
	t.Parallel()
	m, url, r := newMerchant(t), storetest.OpenURL(t), newReloader()
	p := start(t, app.Serve, configure(t, url, m.URL, secret), r.edges())
	require.Equal(t, http.StatusCreated, register(t, p.Listen, "ord_1"))
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))

	header := http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}}
	ask := func(method, path, body string) (int, map[string]any) {
		code, answer := request(t, method, "http://"+p.Listen+path, header, []byte(body))
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(answer), &doc), answer)
		return code, doc
	}
	_, doc := ask(http.MethodGet, "/v1/orders?external_ref=ord_1", "")
	refunds := "/v1/orders/" + doc["data"].([]any)[0].(map[string]any)["id"].(string) + "/refunds"
	code, doc := ask(http.MethodPost, refunds, `{"data":{}}`)
	require.Equal(t, http.StatusConflict, code)
	require.Equal(t, "not_callable", doc["code"])
	require.Contains(t, doc["detail"], "Source stripe cannot call Stripe: has no access_token")

	r.put(t, change(configure(t, url, m.URL, secret), func(a *config.Account) {
		s := a.Sources["stripe"]
		s.AccessToken = "rk_TESTONLY_app"
		a.Sources["stripe"] = s
	}))
	code, doc = ask(http.MethodPost, refunds, `{"data":{}}`)
	require.Equal(t, http.StatusCreated, code, doc)
	require.Equal(t, []any{"stripe", "stripe", "refund", "pending"}, []any{
		doc["data"].(map[string]any)["source"], doc["data"].(map[string]any)["gateway"], doc["data"].(map[string]any)["kind"], doc["data"].(map[string]any)["status"],
	})
	require.NotContains(t, p.log.String(), "rk_TESTONLY_app")
}
