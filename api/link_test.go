package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

func (l *live) link(id, said string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, "/v1/orders/"+id+"/link", operator, `{"data":{`+said+`}}`, change...)
}

func TestLink(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	first, _ := l.order("ord_1")
	second, _ := l.order("ord_2")
	l.deliver(hook("evt_1", "pi_1", "", captured(5000)), hook("evt_2", "pi_2", "ord_1", captured(4000)))

	w := l.link(first, `"payment":"pi_1","linked":true`, withKey("k1"))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.EqualValues(t, 9000, data(t, w)["captured"])
	again := l.link(first, `"payment":"pi_1","linked":true`, withKey("k1"))
	require.Equal(t, w.Body.String(), again.Body.String())
	require.Equal(t, 1, l.count(`processed_events WHERE event_id LIKE 'link:%'`))

	// To another order: a person's word is stronger than the gateway's, and than what was said before.
	w = l.link(second, `"payment":"pi_1","realm":"stripe:live","linked":true`)
	require.Equal(t, "paid", data(t, w)["state"])
	require.EqualValues(t, 4000, l.read(first)["captured"])
	w = l.link(second, `"payment":"pi_2","linked":true`)
	require.EqualValues(t, 9000, data(t, w)["captured"])
	require.EqualValues(t, 0, l.read(first)["captured"])

	// Taken back: as if nobody had said it.
	w = l.link(second, `"payment":"pi_2","linked":false`)
	require.EqualValues(t, 5000, data(t, w)["captured"])
	require.EqualValues(t, 4000, l.read(first)["captured"], "where its own event says")
	w = l.link(second, `"payment":"pi_1","linked":false`)
	require.EqualValues(t, 0, data(t, w)["captured"])
	require.Equal(t, 1, l.count(`payments WHERE order_id IS NULL AND merged_into IS NULL`))

	// And again.
	require.Equal(t, "paid", data(t, l.link(second, `"payment":"pi_1","linked":true`))["state"])

	// From an order that does not have it, nothing is taken.
	before := l.written()
	w = l.link(first, `"payment":"pi_1","linked":false`)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, first, data(t, w)["id"])
	require.Equal(t, before, l.written())
	require.EqualValues(t, 5000, l.read(second)["captured"])
}

func TestLinkOfMoneyOutsideOfGateways(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	id, _ := l.order("ord_1")
	income := l.entered(cash(`"party":"Ana"`))["id"].(string)
	require.Equal(t, "paid", data(t, l.link(id, `"payment":"`+income+`","linked":true`))["state"])
	require.Equal(t, "pending", data(t, l.link(id, `"payment":"`+income+`","realm":"offline","linked":false`))["state"])
}

func TestLinkIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	id, _ := l.order("ord_1")
	twin := hook("evt_2", "twin", "", captured(1))
	twin.Realm, twin.Source = "adyen:test", "adyen-test"
	gone := hook("evt_3", "gone", "", captured(1))
	gone.Realm = "mollie:live" // of a source that is not configured any more
	theirs := hook("evt_4", "theirs", "", captured(1))
	theirs.Account = "b"
	l.deliver(hook("evt_1", "twin", "", captured(1)), twin, gone, theirs)

	try := func(name, said string, status int, code string, at ...string) refusal {
		return refusal{name: name, key: operator, path: "/orders/" + id + "/link", body: `{"data":{` + said + `}}`, status: status, code: code, at: at}
	}
	at := func(r refusal, path, key string) refusal { r.path, r.key = path, key; return r }
	l.refuses(http.MethodPost,
		try("Nothing", ``, 422, "invalid_body", "/data/linked required", "/data/payment required"),
		try("LinkedIsNoText", `"payment":"pi_1","linked":"true"`, 422, "invalid_body", "/data/linked type"),
		try("LinkedIsNotNull", `"payment":"pi_1","linked":null`, 422, "invalid_body", "/data/linked required"),
		try("EmptyRealm", `"payment":"pi_1","realm":"","linked":true`, 422, "invalid_body", "/data/realm too_short"),
		try("UnknownPayment", `"payment":"pi_9","linked":true`, 404, "payment_not_found"),
		try("UnknownPaymentOfARealm", `"payment":"twin","realm":"adyen:live","linked":true`, 404, "payment_not_found"),
		try("AnotherAccountsPayment", `"payment":"theirs","linked":true`, 404, "payment_not_found"),
		try("AnotherAccountsPaymentOfARealm", `"payment":"theirs","realm":"stripe:live","linked":true`, 404, "payment_not_found"),
		try("NotTakenBack", `"payment":"pi_9","linked":false`, 404, "payment_not_found"),
		try("Ambiguous", `"payment":"twin","linked":true`, 409, "payment_ambiguous", "/data/realm ambiguous"),
		at(try("UnknownOrder", `"payment":"gone","realm":"mollie:live","linked":true`, 404, "order_not_found"), "/orders/"+uuid.NewString()+"/link", operator),
		at(try("NoOperator", `"payment":"twin","linked":true`, 403, "forbidden"), "/orders/"+id+"/link", keyA),
	)
	w := l.link(id, `"payment":"twin","linked":true`)
	require.Contains(t, problemOf(t, w).Detail, "adyen:test, stripe:live")
	require.Equal(t, http.StatusOK, l.link(id, `"payment":"twin","realm":"adyen:test","linked":true`).Code)
	require.Equal(t, http.StatusOK, l.link(id, `"payment":"gone","realm":"mollie:live","linked":true`).Code)
	require.EqualValues(t, 2, l.read(id)["captured"])
}

// TestTakingBackTakesNoLinkToAnotherOrder: of two who decide at once, one links the payment elsewhere and one takes it from
// where it was. Whoever comes second, it never ends up nowhere.
func TestTakingBackTakesNoLinkToAnotherOrder(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	for i := range 20 {
		from, _ := l.order(fmt.Sprint("from-", i))
		to, _ := l.order(fmt.Sprint("to-", i))
		pay := fmt.Sprint("pi_", i)
		l.deliver(hook("evt_"+pay, pay, "", captured(5000)))
		require.Equal(t, http.StatusOK, l.link(from, `"payment":"`+pay+`","linked":true`).Code)
		done := make(chan int)
		go func() { done <- l.link(from, `"payment":"`+pay+`","linked":false`).Code }()
		require.Equal(t, http.StatusOK, l.link(to, `"payment":"`+pay+`","linked":true`).Code)
		require.Equal(t, http.StatusOK, <-done)
		require.EqualValues(t, 5000, l.read(to)["captured"])
		require.EqualValues(t, 0, l.read(from)["captured"])
	}
}
