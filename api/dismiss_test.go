package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func TestDismissFlags(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "ord_1", captured(6000)))
	dismiss := func(said string, change ...func(*http.Request)) map[string]any {
		w := l.do(http.MethodPost, "/v1/orders/"+id+"/dismiss", operator, `{"data":`+said+`}`, change...)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		return data(t, w)
	}
	require.Equal(t, []any{"overpaid"}, l.read(id)["flags"])
	o := dismiss(`{"flags":["overpaid","id_reused"],"dismissed":true}`, withKey("k1"))
	require.Equal(t, []any{}, o["flags"])
	require.Equal(t, []any{"overpaid"}, o["dismissed"])
	require.Equal(t, "paid", o["state"])
	require.Equal(t, o, dismiss(`{"flags":["overpaid","id_reused"],"dismissed":true}`, withKey("k1")))
	require.Equal(t, o["version"], dismiss(`{"flags":["overpaid"],"dismissed":true}`)["version"], "nothing new")

	require.Equal(t, []any{"overpaid"}, dismiss(`{"flags":["overpaid"],"dismissed":false}`)["flags"])
	dismiss(`{"flags":["overpaid"],"dismissed":true}`)
	l.deliver(hook("evt_2", "pi_1", "ord_1", captured(7000)))
	require.Equal(t, []any{"overpaid"}, l.read(id)["flags"], "it has arisen anew")
}

func TestDismissFlagsIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	id, _ := l.order("ord_1")
	try := func(name, path, key, said string, status int, code string, at ...string) refusal {
		return refusal{name: name, key: key, path: path, body: `{"data":` + said + `}`, status: status, code: code, at: at}
	}
	path := "/orders/" + id + "/dismiss"
	l.refuses(http.MethodPost,
		try("Nothing", path, operator, `{}`, 422, "invalid_body", "/data/dismissed required", "/data/flags required"),
		try("NoFlags", path, operator, `{"flags":[],"dismissed":true}`, 422, "invalid_body", "/data/flags too_few"),
		try("NullFlags", path, operator, `{"flags":null,"dismissed":true}`, 422, "invalid_body", "/data/flags required"),
		try("UnknownFlag", path, operator, `{"flags":["overpaid","x"],"dismissed":true}`, 422, "invalid_body", "/data/flags/1 unknown_value"),
		try("WhatTheOrderIs", path, operator, `{"flags":["unregistered"],"dismissed":true}`, 422, "invalid_body", "/data/flags/0 unknown_value"),
		try("UnknownOrder", "/orders/"+uuid.NewString()+"/dismiss", operator, `{"flags":["overpaid"],"dismissed":true}`, 404, "order_not_found"),
		try("NoOperator", path, keyA, `{"flags":["overpaid"],"dismissed":true}`, 403, "forbidden"),
	)
}

func TestDismissEvent(t *testing.T) {
	t.Parallel()
	l := goLive(t)
	ids := []string{"evt_1", "evt/1 2#3?x=%41", "é"}
	for _, id := range ids {
		broken := hook(id, "pi_1", "")
		broken.Payment, broken.Broken = nil, "no amount"
		l.deliver(broken)
	}
	other := hook("evt_1", "pi_2", "")
	other.Source, other.Payment, other.Broken = "adyen", nil, "no amount"
	elsewhere := hook("evt_1", "pi_3", "")
	elsewhere.Account, elsewhere.Payment, elsewhere.Broken = "b", nil, "no amount"
	l.deliver(other, elsewhere)
	dismiss := func(id, source, yes string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		return l.do(http.MethodPost, "/v1/events/"+url.PathEscape(id)+"/dismiss"+source, operator, `{"data":{"dismissed":`+yes+`}}`, change...)
	}
	open := func() int { return l.count(`processed_events WHERE dismissed_at IS NULL`) }
	require.Equal(t, 5, open())
	for _, id := range ids {
		first := dismiss(id, "?source=stripe", "true", withKey("k "+url.PathEscape(id)))
		require.Equal(t, http.StatusOK, first.Code, first.Body.String())
		require.Equal(t, id, data(t, first)["id"])
		require.Equal(t, "stripe", data(t, first)["source"])
		require.Equal(t, "quarantined", data(t, first)["outcome"], "what happened stays")
		require.NotNil(t, data(t, first)["dismissed_at"])
		again := dismiss(id, "?source=stripe", "true", withKey("k "+url.PathEscape(id)))
		require.Equal(t, first.Body.String(), again.Body.String())
		w := dismiss(id, "?source=stripe", "true")
		require.Equal(t, data(t, first)["dismissed_at"], data(t, w)["dismissed_at"], "the first time counts")
	}
	require.Equal(t, 2, open())
	w := dismiss("evt_1", "?source=stripe", "false")
	require.Nil(t, data(t, w)["dismissed_at"])
	require.Equal(t, 3, open())
	require.Equal(t, http.StatusOK, dismiss("é", "", "false").Code, "one source alone has it")

	path := "/events/evt_1/dismiss"
	yes := `{"data":{"dismissed":true}}`
	l.refuses(http.MethodPost,
		refusal{name: "Ambiguous", path: path, key: operator, body: yes, status: 409, code: "event_ambiguous"},
		refusal{name: "Unknown", path: "/events/evt_9/dismiss", key: operator, body: yes, status: 404, code: "event_not_found"},
		refusal{name: "UnknownSource", path: path + "?source=paypal", key: operator, body: yes, status: 404, code: "event_not_found"},
		refusal{name: "NoText", path: "/events/%00/dismiss", key: operator, body: yes, status: 404, code: "event_not_found"},
		refusal{name: "NoOperator", path: path + "?source=stripe", key: keyA, body: yes, status: 403, code: "forbidden"},
		refusal{name: "Nothing", path: path + "?source=stripe", key: operator, body: `{"data":{}}`, status: 422, code: "invalid_body", at: []string{"/data/dismissed required"}},
		refusal{name: "OtherParameter", path: path + "?sauce=stripe", key: operator, body: yes, status: 400, code: "invalid_parameter", at: []string{" unknown_parameter"}},
	)
	require.Equal(t, 1, l.count(`processed_events WHERE account_id = 'b' AND dismissed_at IS NULL`))
}
