package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// income posts an income of account a.
func (l *live) income(body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, "/v1/incomes", keyA, body, change...)
}

// entered posts an income that must be new, and returns it.
func (l *live) entered(body string, change ...func(*http.Request)) map[string]any {
	l.t.Helper()
	w := l.income(body, change...)
	require.Equal(l.t, http.StatusCreated, w.Code, w.Body.String())
	in := data(l.t, w)
	require.Equal(l.t, "/v1/incomes/"+in["id"].(string), w.Header().Get("Location"))
	return in
}

func (l *live) void(id any, change ...func(*http.Request)) map[string]any {
	l.t.Helper()
	w := l.do(http.MethodPost, fmt.Sprintf("/v1/incomes/%s/void", id), keyA, "", change...)
	require.Equal(l.t, http.StatusOK, w.Code, w.Body.String())
	return data(l.t, w)
}

// cash is a body: 50.00 EUR in cash, and more.
func cash(more string) string {
	return `{"data":{"amount":5000,"currency":"EUR","kind":"cash",` + more + `}}`
}

func TestIncome(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	body := cash(`"order_ref":"ord_1","party":"Ana","received_on":"2026-02-28","source":{"amount":6000,"currency":"USD"},` +
		`"metadata":{"external_ref":"inc_1","shift":7,"exact":9007199254740993}`)
	w := l.income(body)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())
	require.Contains(t, w.Body.String(), "9007199254740993", "no number goes through a float")
	in := data(t, w)
	at := w.Header().Get("Location")
	require.Equal(t, "/v1/incomes/"+in["id"].(string), at)
	require.NotEmpty(t, in["created_at"])
	require.Equal(t, map[string]any{
		"id": in["id"], "external_ref": "inc_1", "order_id": id, "order_ref": "ord_1", "party": "Ana", "kind": "cash",
		"amount": 5000.0, "currency": "EUR", "source": map[string]any{"amount": 6000.0, "currency": "USD"}, "received_on": "2026-02-28",
		"status": "received", "voided_at": nil, "created_at": in["created_at"],
		"metadata": map[string]any{"external_ref": "inc_1", "shift": 7.0, "exact": 9007199254740993.0},
	}, in)
	require.Equal(t, in, data(t, l.do(http.MethodGet, at, readOnly, "")))
	require.Equal(t, "paid", l.read(id)["state"])
	require.Contains(t, l.log.String(), `"order_id":"`+id+`"`)

	var sent []byte
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT body FROM event_payloads WHERE event_id = 'income:ref:inc_1'`).Scan(&sent))
	require.Equal(t, body, string(sent), "the bytes as they came")
	line := l.do(http.MethodGet, "/v1/orders/"+id+"/timeline", readOnly, "").Body.String()
	require.Contains(t, line, "50.00 EUR in cash, received outside of gateways as 60.00 USD")

	gone := l.void(in["id"])
	require.NotNil(t, gone["voided_at"])
	in["status"], in["voided_at"] = "voided", gone["voided_at"]
	require.Equal(t, in, gone)
	require.Equal(t, gone, l.void(in["id"]), "again")
	require.Equal(t, gone, l.void(in["id"], withKey("k")), "and again")
	require.Equal(t, gone, l.void(in["id"], withKey("k")))
	require.Equal(t, gone, data(t, l.do(http.MethodGet, at, readOnly, "")))
	require.Equal(t, "pending", l.read(id)["state"])
	require.Equal(t, 1, l.count(`processed_events WHERE type = 'income.voided'`))
	line = l.do(http.MethodGet, "/v1/orders/"+id+"/timeline", readOnly, "").Body.String()
	require.Contains(t, line, "50.00 EUR received outside of gateways, taken back")
}

// What is not said is null, other, or not there.
func TestIncomeOfFewWords(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	in := l.entered(`{"data":{"amount":1,"currency":"JPY","party":"Ana"}}`)
	require.Equal(t, map[string]any{
		"id": in["id"], "external_ref": nil, "order_id": nil, "order_ref": nil, "party": "Ana", "kind": "other", "amount": 1.0, "currency": "JPY",
		"received_on": nil, "status": "received", "voided_at": nil, "created_at": in["created_at"],
	}, in)
	null := l.entered(`{"data":{"amount":2,"currency":"JPY","party":"Ana","order_id":null,"order_ref":null,"received_on":null,"metadata":null}}`)
	require.Nil(t, null["order_id"])

	// An event that concerns no order is shown as any other.
	w := l.do(http.MethodGet, "/v1/events/"+url.PathEscape("income:"+in["id"].(string)), readOnly, "")
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Contains(t, w.Body.String(), "changed no order: the money came for none.")

	id, _ := l.order("ord_1")
	require.Equal(t, "ord_1", l.entered(cash(`"order_id":"` + id + `"`))["order_ref"])
	require.Equal(t, "paid", l.read(id)["state"])
	require.EqualValues(t, 1e15, l.entered(`{"data":{"amount":1000000000000000,"currency":"EUR","party":"Bea"}}`)["amount"], "the most")
}

func TestIncomesThatAreRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	inc := l.entered(cash(`"party":"Zoe"`))["id"].(string)
	amount := func(a string) string { return `{"data":{"amount":` + a + `,"currency":"EUR","party":"Ana"}}` }
	source := func(s string) string { return cash(`"party":"Ana","source":` + s) }
	bad := func(name, body string, at ...string) refusal {
		return refusal{name: name, path: "/incomes", body: body, status: 422, code: "invalid_body", at: at}
	}
	l.refuses(http.MethodPost,
		bad("Nothing", `{"data":{}}`, "/data/amount required", "/data/currency required"),
		bad("OfNobody", cash(`"received_on":"2026-01-31"`), "/data unidentified"),
		bad("OfNobodyNull", cash(`"order_id":null,"order_ref":null,"party":null,"metadata":{"external_ref":""}`), "/data unidentified"),
		bad("Zero", amount("0"), "/data/amount too_small"),
		bad("Float", amount("50.00"), "/data/amount not_minor_units"),
		bad("Exponent", amount("5e3"), "/data/amount not_minor_units"),
		bad("Text", amount(`"5000"`), "/data/amount type"),
		bad("Negative", amount("-1"), "/data/amount not_minor_units"),
		bad("TooMuch", amount("1000000000000001"), "/data/amount too_large"),
		bad("FarTooMuch", amount("18446744073709551617"), "/data/amount too_large"),
		bad("Currency", `{"data":{"amount":1,"currency":"eur","party":"Ana"}}`, "/data/currency unknown_currency"),
		bad("Kind", `{"data":{"amount":1,"currency":"EUR","party":"Ana","kind":"barter"}}`, "/data/kind unknown_value"),
		bad("KindNull", `{"data":{"amount":1,"currency":"EUR","party":"Ana","kind":null}}`, "/data/kind type"),
		bad("OrderNoUUID", cash(`"order_id":"ord_1"`), "/data/order_id invalid_uuid"),
		bad("OrderEmpty", cash(`"order_ref":"","party":"Ana"`), "/data/order_ref too_short"),
		bad("PartyEmpty", cash(`"order_ref":"ord_1","party":""`), "/data/party too_short"),
		bad("PartyTooLong", cash(`"party":"`+strings.Repeat("é", 128)+`"`), "/data/party too_long"),
		bad("PartySpaces", cash(`"party":" Ana"`), "/data/party not_trimmed"),
		bad("PartyNotText", cash(`"party":"A\tna"`), "/data/party not_printable"),
		bad("TwoOrders", cash(`"order_id":"`+id+`","order_ref":"ord_1"`), "/data/order_ref ambiguous"),
		bad("NoDay", cash(`"party":"Ana","received_on":"2026-02-30"`), "/data/received_on invalid_date"),
		bad("NotADay", cash(`"party":"Ana","received_on":"2026-02-28T12:00:00Z"`), "/data/received_on invalid_date"),
		bad("TypedYear", cash(`"party":"Ana","received_on":"0026-02-28"`), "/data/received_on invalid_date"),
		bad("SourceNothing", source(`{"amount":0,"currency":"USD"}`), "/data/source/amount too_small"),
		bad("SourceFloat", source(`{"amount":1.5,"currency":"USD"}`), "/data/source/amount not_minor_units"),
		bad("SourceHalf", source(`{"amount":1}`), "/data/source/currency required"),
		bad("SourceSame", source(`{"amount":1,"currency":"EUR"}`), "/data/source/currency same_currency"),
		bad("RefTooLong", cash(`"metadata":{"external_ref":"`+strings.Repeat("x", 256)+`"}`), "/data/metadata/external_ref too_long"),
		bad("Misspelt", cash(`"party":"Ana","order":"ord_1"`), "/data/order unknown_field"),
		refusal{name: "NoSuchRef", path: "/incomes", body: cash(`"order_ref":"ord_9","metadata":{"external_ref":"inc_9"}`), status: 404, code: "order_not_found", at: []string{"/data/order_ref order_not_found"}},
		refusal{name: "NoSuchID", path: "/incomes", body: cash(`"order_id":"` + uuid.NewString() + `"`), status: 404, code: "order_not_found", at: []string{"/data/order_id order_not_found"}},
		refusal{name: "AnotherAccountsRef", path: "/incomes", key: keyB, body: cash(`"order_ref":"ord_1"`), status: 404, code: "order_not_found", at: []string{"/data/order_ref order_not_found"}},
		refusal{name: "AnotherAccountsID", path: "/incomes", key: keyB, body: cash(`"order_id":"` + id + `"`), status: 404, code: "order_not_found", at: []string{"/data/order_id order_not_found"}},
		refusal{name: "ReadOnly", path: "/incomes", key: readOnly, body: cash(`"party":"Ana"`), status: 403, code: "forbidden"},
		refusal{name: "Operator", path: "/incomes", key: operator, body: cash(`"party":"Ana"`), status: 403, code: "forbidden"},
		refusal{name: "VoidUnknown", path: "/incomes/" + uuid.NewString() + "/void", status: 404, code: "income_not_found"},
		refusal{name: "VoidNoID", path: "/incomes/inc_1/void", status: 404, code: "income_not_found"},
		refusal{name: "VoidAnotherAccounts", path: "/incomes/" + inc + "/void", key: keyB, status: 404, code: "income_not_found"},
		refusal{name: "VoidReadOnly", path: "/incomes/" + inc + "/void", key: readOnly, status: 403, code: "forbidden"},
	)
	for _, path := range []string{"/v1/incomes/" + uuid.NewString(), "/v1/incomes/inc_1"} {
		w := l.do(http.MethodGet, path, keyA, "")
		require.Equal(t, http.StatusNotFound, w.Code)
		require.EqualValues(t, "income_not_found", problemOf(t, w).Code)
	}
	w := l.do(http.MethodGet, "/v1/incomes/"+inc, keyB, "")
	require.Equal(t, http.StatusNotFound, w.Code)
	require.Equal(t, http.StatusForbidden, l.do(http.MethodGet, "/v1/incomes/"+inc, operator, "").Code)
	require.Equal(t, http.StatusForbidden, l.do(http.MethodGet, "/v1/incomes", operator, "").Code)
}

func TestListsOfIncomes(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	var all []any // newest first
	for i := range 5 {
		body := cash(fmt.Sprintf(`"party":"p%d"`, i))
		if i%2 == 0 {
			body = cash(fmt.Sprintf(`"order_ref":"ord_1","metadata":{"external_ref":"inc_%d"}`, i))
		}
		in := l.entered(body)
		if i == 3 {
			in = l.void(in["id"])
		}
		all = append([]any{in}, all...)
	}
	require.Equal(t, http.StatusCreated, l.do(http.MethodPost, "/v1/incomes", keyB, cash(`"party":"theirs"`)).Code)

	page := func(query string) (found []any, next any) {
		t.Helper()
		w := l.do(http.MethodGet, "/v1/incomes?"+query, readOnly, "")
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		doc := decoded(t, w)
		return doc["data"].([]any), doc["next"]
	}
	list := func(query string) (found []any) {
		t.Helper()
		cursor := ""
		for {
			some, next := page(query + "&limit=2" + cursor)
			require.LessOrEqual(t, len(some), 2)
			found = append(found, some...)
			if next == nil {
				return found
			}
			cursor = "&cursor=" + next.(string)
		}
	}
	require.Equal(t, all, list(""))
	require.Equal(t, []any{all[0], all[2], all[4]}, list("order_id="+id))
	require.Equal(t, []any{all[1]}, list("status=voided"))
	require.Equal(t, []any{all[0], all[2], all[3], all[4]}, list("status=received"))
	require.Equal(t, []any{all[2]}, list("external_ref=inc_2"))
	between := url.QueryEscape(all[2].(map[string]any)["created_at"].(string))
	require.Equal(t, all[:3], list("created_from="+between))
	require.Equal(t, all[3:], list("created_until="+between))
	require.Empty(t, list("order_id="+uuid.NewString()))

	_, next := page("limit=2")
	for query, code := range map[string]string{
		"status=lost": "invalid_parameter", "limit=0": "invalid_parameter", "order_id=ord_1": "invalid_parameter", "order=ord_1": "invalid_parameter",
		"cursor=x": "invalid_cursor",
	} {
		w := l.do(http.MethodGet, "/v1/incomes?"+query, readOnly, "")
		require.Equal(t, http.StatusBadRequest, w.Code, query)
		require.EqualValues(t, code, problemOf(t, w).Code, query)
	}
	w := l.do(http.MethodGet, "/v1/orders?cursor="+next.(string), readOnly, "")
	require.EqualValues(t, "invalid_cursor", problemOf(t, w).Code, "a place in this list is none in another")
}
