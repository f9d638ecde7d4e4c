package app_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/store/storetest"
)

// TestAPIOfTheProgram: what the program hands the API works: its keys and policies, the rates, the mapping of today.
func TestAPIOfTheProgram(t *testing.T) {
	t.Parallel()
	cfg := configure(t, storetest.OpenURL(t), "http://127.0.0.1:1/", secret)
	shop := cfg.Accounts["shop"]
	shop.APIKeys[0].Roles = append(shop.APIKeys[0].Roles, config.RoleOperate)
	shop.Idempotency = config.Idempotency{Profile: config.ProfileRelaxed, Require: true}
	cfg.Accounts["shop"] = shop
	cfg.Limits.APIRate, cfg.Limits.APIBurst = 1, 9
	at := time.Now()
	p := start(t, app.Serve, cfg, app.Edges{Now: func() time.Time { return at }}) // so that no share is filled up again

	header := http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}}
	ask := func(method, path, body string) (int, map[string]any) {
		code, answer := request(t, method, "http://"+p.Listen+path, header, []byte(body))
		var doc map[string]any
		require.NoError(t, json.Unmarshal([]byte(answer), &doc), answer)
		return code, doc
	}
	order := `{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"ord_1"}}}`
	code, doc := ask(http.MethodPost, "/v1/orders", order)
	require.Equal(t, http.StatusBadRequest, code)
	require.Equal(t, "idempotency_key_missing", doc["code"], "the account requires one")

	header.Set("Idempotency-Key", "k1")
	code, first := ask(http.MethodPost, "/v1/orders", order)
	require.Equal(t, http.StatusCreated, code)
	code, again := ask(http.MethodPost, "/v1/orders", order)
	require.Equal(t, http.StatusCreated, code, "replayed")
	require.Equal(t, first, again)
	code, doc = ask(http.MethodGet, "/v1/idempotency-keys/k1", "")
	require.Equal(t, http.StatusOK, code)
	key := doc["data"].(map[string]any)
	require.Equal(t, "relaxed", key["policy"])
	require.Equal(t, "/v1/orders/"+first["data"].(map[string]any)["id"].(string), key["resource"].(map[string]any)["href"])

	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, payment(t, "ord_1")))
	code, doc = ask(http.MethodGet, "/v1/events?source=stripe", "")
	require.Equal(t, http.StatusOK, code)
	id := doc["data"].([]any)[0].(map[string]any)["id"].(string)
	code, doc = ask(http.MethodPost, "/v1/events/"+id+"/replay", `{"data":{}}`)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, map[string]any{"dry_run": true, "events": []any{}, "entered": []any{}, "orders": []any{}, "skipped": []any{}}, doc["data"],
		"today's mapping reads it as it was read")

	for range 10 {
		code, doc = ask(http.MethodGet, "/v1/orders", "")
	}
	require.Equal(t, http.StatusTooManyRequests, code)
	require.Equal(t, "rate_limited", doc["code"])
	require.NotContains(t, p.log.String(), apiKey)
}
