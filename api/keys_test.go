package api_test

import (
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
)

func TestGetIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := onPostgres(t, plenty)
	key := `a key/with "all" %41 of: it?#`
	sent := func(r *http.Request) {
		r.Header.Set("Idempotency-Key", `"a key/with \"all\" %41 of: it?#"`)
	}
	at := "/v1/idempotency-keys/" + url.PathEscape(key)
	require.Equal(t, api.CodeKeyNotFound, problemOf(t, b.get(at, keyA)).Code)

	w := b.post(keyA, ordinary, sent)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	d := data(t, b.get(at, readOnly))
	require.Equal(t, "COMPLETED", d["state"])
	require.Equal(t, "POST", d["method"])
	require.Equal(t, "/v1/orders", d["path"])
	require.EqualValues(t, 201, d["response_code"])
	require.Equal(t, "replay", d["next"])
	require.Equal(t, "key_reused", d["next_other"])
	id := data(t, w)["id"]
	require.Equal(t, map[string]any{"type": "order", "id": id, "href": "/v1/orders/" + id.(string)}, d["resource"])
	require.NotContains(t, d, "lock_age_seconds")

	_, err := b.pool.Exec(t.Context(), `
		UPDATE idempotency_keys SET status = 'PROCESSING', locked_at = clock_timestamp() - interval '5 s', response_code = NULL, response_raw = NULL, response_body = NULL, completed_at = NULL, resource_type = NULL, resource_id = NULL`)
	require.NoError(t, err)
	d = data(t, b.get(at, keyA))
	require.Equal(t, "PROCESSING", d["state"])
	require.Equal(t, "in_progress", d["next"])
	require.InDelta(t, 5, d["lock_age_seconds"], 4)

	for _, other := range []string{keyB} {
		require.Equal(t, http.StatusNotFound, b.get(at, other).Code, "keys are the account's own")
	}
	for _, path := range []string{"nosuch", "%00", "%ff", "a%20key"} {
		w := b.get("/v1/idempotency-keys/"+path, keyA)
		require.Equal(t, http.StatusNotFound, w.Code, path)
		require.Equal(t, api.CodeKeyNotFound, problemOf(t, w).Code)
	}
	// Without a store of keys, none is known.
	require.Equal(t, http.StatusNotFound, setup(t, api.Options{}).get(at, keyA).Code)
}
