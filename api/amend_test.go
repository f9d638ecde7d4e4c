package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// patch sends a merge patch to the order as it stands.
func (l *live) patch(id, change string, more ...func(*http.Request)) *httptest.ResponseRecorder {
	tag := fmt.Sprintf(`"%v"`, l.read(id)["version"])
	return l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":`+change+`}`, append([]func(*http.Request){ifMatch(tag)}, more...)...)
}

func TestAmendIsAMergePatch(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	later := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	show := func(w *httptest.ResponseRecorder) string {
		t.Helper()
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		d := data(t, w)
		require.Equal(t, fmt.Sprintf(`"%v"`, d["version"]), w.Header().Get("ETag"))
		require.Empty(t, w.Header().Get("Location"))
		shown := map[string]any{}
		for _, name := range []string{"amount", "currency", "items", "metadata", "expires_at", "version"} {
			shown[name] = d[name]
		}
		doc, err := json.Marshal(shown)
		require.NoError(t, err)
		return string(doc)
	}
	for _, step := range []struct{ name, patch, want string }{
		{"Amount", `{"amount":6000}`, `{"amount":6000,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","note":"<x>"},"expires_at":null,"version":2}`},
		{"Currency", `{"currency":"USD"}`, `{"amount":6000,"currency":"USD","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","note":"<x>"},"expires_at":null,"version":3}`},
		{"Both", `{"amount":7,"currency":"EUR"}`, `{"amount":7,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","note":"<x>"},"expires_at":null,"version":4}`},
		{"Merge", `{"metadata":{"note":null,"a":{"b":1,"c":2}}}`, `{"amount":7,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","a":{"b":1,"c":2}},"expires_at":null,"version":5}`},
		{"MergeDeeper", `{"metadata":{"a":{"b":null,"d":[null]}}}`, `{"amount":7,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":6}`},
		{"SameName", `{"metadata":{"external_ref":"ord_1"}}`, `{"amount":7,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":6}`},
		{"Nothing", `{"metadata":{}}`, `{"amount":7,"currency":"EUR","items":[{"sku":"A","qty":1}],"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":6}`},
		{"Items", `{"items":[{"sku":"B"},{}]}`, `{"amount":7,"currency":"EUR","items":[{"sku":"B"},{}],"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":7}`},
		{"NoItems", `{"items":null}`, `{"amount":7,"currency":"EUR","items":null,"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":8}`},
		{"Limit", `{"expires_at":"` + later.Format(time.RFC3339) + `"}`, `{"amount":7,"currency":"EUR","items":null,"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":"` + later.Format(time.RFC3339) + `","version":9}`},
		{"NoLimit", `{"expires_at":null}`, `{"amount":7,"currency":"EUR","items":null,"metadata":{"external_ref":"ord_1","a":{"c":2,"d":[null]}},"expires_at":null,"version":10}`},
	} {
		require.JSONEq(t, step.want, show(l.patch(id, step.patch)), step.name)
	}
	w := l.patch(id, `{"metadata":{"exact":9007199254740993,"decimal":1.10}}`)
	require.Contains(t, w.Body.String(), `9007199254740993`, "no number goes through a float")
	require.Contains(t, w.Body.String(), `1.10`)
	require.Equal(t, `application/json`, w.Header().Get("Content-Type"))
}

// TestAmendWithItsKey: the change is made once, and a repeat hears what came of it although the version has moved on.
func TestAmendWithItsKey(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, etag := l.order("ord_1")
	send := func() *httptest.ResponseRecorder {
		return l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":{"amount":6000}}`, ifMatch(etag), withKey("k1"))
	}
	first := send()
	require.Equal(t, http.StatusOK, first.Code, first.Body.String())
	require.Equal(t, `"2"`, first.Header().Get("ETag"))
	again := send()
	require.Equal(t, http.StatusOK, again.Code)
	require.Equal(t, "true", again.Header().Get("Idempotent-Replayed"))
	require.Equal(t, first.Body.String(), again.Body.String())
	require.Equal(t, `"2"`, again.Header().Get("ETag"))
	require.EqualValues(t, 2, l.read(id)["version"])
	require.Equal(t, 1, l.count(`idempotency_keys WHERE resource_type = 'order' AND resource_id::text = $1`, id))

	// Without a key, the version says that it was carried out.
	w := l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":{"amount":6000}}`, ifMatch(etag))
	require.Equal(t, http.StatusPreconditionFailed, w.Code)
}

func TestAmendIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	paid, _ := l.order("paid")
	l.deliver(hook("evt_1", "pi_1", "paid", captured(5000)))
	back, _ := l.order("back")
	l.deliver(hook("evt_2", "pi_2", "back", captured(5000)), hook("evt_3", "pi_2", "back", refunded(5000)))
	l.deliver(hook("evt_4", "pi_4", "stub", captured(5000)))
	var stub uuid.UUID
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT id FROM orders WHERE external_ref = 'stub'`).Scan(&stub))
	nameless := data(t, l.post(keyA, `{"data":{"amount":1,"currency":"EUR","metadata":{"a":1}}}`))["id"].(string)

	try := func(name, id, patch string, status int, code string, at ...string) refusal {
		return refusal{name: name, path: "/orders/" + id, body: `{"data":` + patch + `}`, header: ifMatch("*"), status: status, code: code, at: at}
	}
	changed := func(r refusal, f func(*refusal)) refusal { f(&r); return r }
	l.refuses(http.MethodPatch,
		try("Empty", id, `{}`, 422, "invalid_body", "/data empty"),
		try("Null", id, `null`, 422, "invalid_body", "/data required"),
		try("UnknownField", id, `{"state":"paid"}`, 422, "invalid_body", "/data/state unknown_field"),
		try("TopLevelReference", id, `{"external_ref":"x"}`, 422, "invalid_body", "/data/external_ref unknown_field"),
		try("AmountNull", id, `{"amount":null}`, 422, "invalid_body", "/data/amount type"),
		try("AmountNegative", id, `{"amount":-1}`, 422, "invalid_body", "/data/amount not_minor_units"),
		try("AmountFloat", id, `{"amount":1.0}`, 422, "invalid_body", "/data/amount not_minor_units"),
		try("CurrencyNull", id, `{"currency":null}`, 422, "invalid_body", "/data/currency type"),
		try("CurrencyUnknown", id, `{"currency":"eur"}`, 422, "invalid_body", "/data/currency unknown_currency"),
		try("ItemsObject", id, `{"items":{}}`, 422, "invalid_body", "/data/items type"),
		try("ItemNull", id, `{"items":[null]}`, 422, "invalid_body", "/data/items/0 type"),
		try("MetadataList", id, `{"metadata":[]}`, 422, "invalid_body", "/data/metadata type"),
		try("OtherName", id, `{"metadata":{"external_ref":"ord_2"}}`, 422, "invalid_body", "/data/metadata/external_ref immutable"),
		try("NoName", id, `{"metadata":{"external_ref":null}}`, 422, "invalid_body", "/data/metadata/external_ref immutable"),
		try("EmptyName", id, `{"metadata":{"external_ref":""}}`, 422, "invalid_body", "/data/metadata/external_ref immutable"),
		try("NoMetadata", id, `{"metadata":null}`, 422, "invalid_body", "/data/metadata/external_ref immutable"),
		try("NameOfOneWithout", nameless, `{"metadata":{"external_ref":"ord_2"}}`, 422, "invalid_body", "/data/metadata/external_ref immutable"),
		try("NoTime", id, `{"expires_at":"tomorrow"}`, 422, "invalid_body", "/data/expires_at invalid_time"),
		try("TimeOfNoYear", id, `{"expires_at":"9999-12-31T23:59:59-01:00"}`, 422, "invalid_body", "/data/expires_at invalid_time"),
		try("PastTime", id, `{"expires_at":"2026-01-01T00:00:00Z"}`, 422, "invalid_body", "/data/expires_at in_the_past"),
		try("TotalOfAPaidOrder", paid, `{"amount":6000}`, 409, "captured"),
		try("CurrencyOfAPaidOrder", paid, `{"currency":"USD","metadata":{"a":1}}`, 409, "captured"),
		try("TotalOfARefundedOrder", back, `{"amount":6000}`, 409, "captured"),
		try("Stub", stub.String(), `{"amount":6000}`, 409, "unregistered"),
		try("StubWithoutTotal", stub.String(), `{"metadata":{"a":1}}`, 409, "unregistered"),
		try("Unknown", uuid.NewString(), `{"amount":1}`, 404, "order_not_found"),
		try("NoID", "ord_1", `{"amount":1}`, 404, "order_not_found"),
		changed(try("Stale", id, `{"amount":1}`, 412, "version_mismatch"), func(r *refusal) { r.header = ifMatch(`"9"`) }),
		changed(try("Unconditional", id, `{"amount":1}`, 428, "precondition_required"), func(r *refusal) { r.header = nil }),
		changed(try("AnotherAccounts", id, `{"amount":1}`, 404, "order_not_found"), func(r *refusal) { r.key = keyB }),
		changed(try("ReadOnly", id, `{"amount":1}`, 403, "forbidden"), func(r *refusal) { r.key = readOnly }),
	)

	// What does not touch the total of a paid order is free, and so is its total as it is.
	require.Equal(t, http.StatusOK, l.patch(paid, `{"amount":5000,"metadata":{"a":1}}`).Code)
	w := l.patch(nameless, `{"metadata":null}`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Nil(t, data(t, w)["metadata"])
	require.Equal(t, http.StatusOK, l.patch(nameless, fmt.Sprintf(`{"metadata":{"external_ref":%q}}`, l.read(nameless)["external_ref"])).Code)
}

// TestAmendAtOnce: of those who amend one version, one does; those who amend whatever there is all do.
func TestAmendAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	const n = 12
	all := func(id, tag, change string) map[int]int {
		var (
			wg    sync.WaitGroup
			mu    sync.Mutex
			codes = map[int]int{}
		)
		for i := range n {
			wg.Go(func() {
				w := l.do(http.MethodPatch, "/v1/orders/"+id, keyA, `{"data":`+fmt.Sprintf(change, i)+`}`, ifMatch(tag))
				mu.Lock()
				codes[w.Code]++
				mu.Unlock()
			})
		}
		wg.Wait()
		return codes
	}
	id, etag := l.order("version")
	require.Equal(t, map[int]int{200: 1, 412: n - 1}, all(id, etag, `{"amount":60%02d}`))
	require.EqualValues(t, 2, l.read(id)["version"])

	id, _ = l.order("any")
	require.Equal(t, map[int]int{200: n}, all(id, "*", `{"metadata":{"m%d":1}}`))
	require.Len(t, l.read(id)["metadata"], n+2, "none is lost")

	id, _ = l.order("half")
	require.Equal(t, map[int]int{200: n}, all(id, "*", `{"amount":70%02d}`))
	require.EqualValues(t, n+1, l.read(id)["version"])
}
