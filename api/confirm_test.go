package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store"
)

// withSources gives account a two sources of stripe in one name space, and two of adyen in different ones; b has one.
func withSources(o *api.Options) {
	o.Sources = func(account string) []api.Source {
		return map[string][]api.Source{
			"a": {
				{ID: "adyen", Gateway: "adyen", Realm: "adyen:live"},
				{ID: "adyen-test", Gateway: "adyen", Realm: "adyen:test"},
				{ID: "stripe", Gateway: "stripe", Realm: "stripe:live"},
				{ID: "stripe-2", Gateway: "stripe", Realm: "stripe:live"},
			},
			"b": {{ID: "theirs", Gateway: "paypal", Realm: "paypal:live"}},
		}[account]
	}
}

func (l *live) confirm(id, said string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	return l.do(http.MethodPost, "/v1/orders/"+id+"/confirm", keyA, `{"data":{`+said+`}}`, change...)
}

const paidByCheckout = `"gateway":"stripe","payment":"pi_1","status":"captured","amount":5000,"currency":"EUR"`

func TestConfirm(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	id, _ := l.order("ord_1")
	w := l.confirm(id, strings.Replace(paidByCheckout, "captured", "authorized", 1))
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Equal(t, "authorized", data(t, w)["state"])

	for _, change := range [][]func(*http.Request){nil, nil, {withKey("k1")}, {withKey("k1")}, {withKey("k2")}} {
		w = l.confirm(id, paidByCheckout, change...)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, "paid", data(t, w)["state"])
		require.Equal(t, `"3"`, w.Header().Get("ETag"))
	}
	require.Equal(t, 1, l.count(`payment_ids WHERE account_id = 'a' AND realm = 'stripe:live' AND id = 'pi_1'`))
	require.Equal(t, 2, l.count(`processed_events WHERE event_id LIKE 'confirm:%'`), "the same answer is one event")
	require.Equal(t, 1, l.count(`order_transitions WHERE effect = 'fulfil'`))

	// The webhook finds it done, and from then on only the gateway counts.
	reserved := order.Fact{Kind: order.KindAuthorized, Amount: 5000, Currency: "EUR"}
	l.deliver(hook("evt_1", "pi_1", "ord_1", reserved, captured(5000)))
	require.EqualValues(t, 3, l.read(id)["version"])
	l.deliver(hook("evt_2", "pi_1", "ord_1", refunded(5000)))
	w = l.confirm(id, strings.Replace(paidByCheckout, "5000", "5001", 1))
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "refunded", data(t, w)["state"])
	require.EqualValues(t, 5000, data(t, w)["captured"])
}

// TestConfirmFindsTheNameSpace: the payment is that of the source's webhooks.
func TestConfirmFindsTheNameSpace(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	for i, tt := range []struct{ named, realm string }{
		{`"gateway":"stripe"`, "stripe:live"},
		{`"source":"stripe-2"`, "stripe:live"},
		{`"source":"stripe","gateway":"stripe"`, "stripe:live"},
		{`"source":"adyen-test"`, "adyen:test"},
		{`"source":"adyen"`, "adyen:live"},
	} {
		id, _ := l.order(fmt.Sprint("named-", i))
		pay := fmt.Sprint("pay_", i)
		w := l.confirm(id, tt.named+`,"payment":"`+pay+`","status":"captured","amount":5000,"currency":"EUR"`)
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Equal(t, 1, l.count(`payment_ids WHERE realm = $1 AND id = $2`, tt.realm, pay))
	}
	w := l.post(keyB, ordinary)
	theirs := data(t, w)["id"].(string)
	w = l.do(http.MethodPost, "/v1/orders/"+theirs+"/confirm", keyB, `{"data":{"payment":"pay","status":"captured","amount":5000,"currency":"EUR"}}`)
	require.Equal(t, http.StatusOK, w.Code, "the only source there is")
	require.Equal(t, 1, l.count(`payment_ids WHERE account_id = 'b' AND realm = 'paypal:live' AND id = 'pay'`))
}

func TestConfirmIsRefused(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	id, _ := l.order("ord_1")
	try := func(name, said string, status int, code string, at ...string) refusal {
		return refusal{name: name, path: "/orders/" + id + "/confirm", body: `{"data":{` + said + `}}`, status: status, code: code, at: at}
	}
	swap := func(old, with string) string {
		require.Contains(t, paidByCheckout, old)
		return strings.Replace(paidByCheckout, old, with, 1)
	}
	at := func(r refusal, path, key string) refusal { r.path, r.key = path, key; return r }
	l.refuses(http.MethodPost,
		try("Nothing", ``, 422, "invalid_body", "/data/amount required", "/data/currency required", "/data/payment required", "/data/status required"),
		try("NeitherSourceNorGateway", swap(`"gateway":"stripe",`, ``), 422, "invalid_body", "/data/source ambiguous"),
		try("GatewayWithTwoNameSpaces", swap(`stripe`, `adyen`), 422, "invalid_body", "/data/source ambiguous"),
		try("UnknownGateway", swap(`stripe`, `paypal`), 422, "invalid_body", "/data/gateway unknown_gateway"),
		try("UnknownSource", swap(`"gateway":"stripe"`, `"source":"paypal"`), 422, "invalid_body", "/data/source unknown_source"),
		try("AnothersSource", swap(`"gateway":"stripe"`, `"source":"theirs"`), 422, "invalid_body", "/data/source unknown_source"),
		try("SourceOfAnotherGateway", `"source":"adyen",`+paidByCheckout, 422, "invalid_body", "/data/gateway other_gateway"),
		try("UnknownStatus", swap(`captured`, `refunded`), 422, "invalid_body", "/data/status unknown_value"),
		try("EmptyPayment", swap(`pi_1`, ``), 422, "invalid_body", "/data/payment too_short"),
		try("PaymentWithSpaces", swap(`pi_1`, ` pi_1`), 422, "invalid_body", "/data/payment not_trimmed"),
		try("PaymentTooLong", swap(`pi_1`, strings.Repeat("x", 256)), 422, "invalid_body", "/data/payment too_long"),
		try("FloatAmount", swap(`5000`, `50.00`), 422, "invalid_body", "/data/amount not_minor_units"),
		try("UnknownCurrency", swap(`EUR`, `eur`), 422, "invalid_body", "/data/currency unknown_currency"),
		try("UnknownField", paidByCheckout+`,"ref":"x"`, 422, "invalid_body", "/data/ref unknown_field"),
		at(try("UnknownOrder", paidByCheckout, 404, "order_not_found"), "/orders/"+uuid.NewString()+"/confirm", keyA),
		at(try("NoID", paidByCheckout, 404, "order_not_found"), "/orders/ord_1/confirm", keyA),
		at(try("AnotherAccounts", swap("stripe", "paypal"), 404, "order_not_found"), "/orders/"+id+"/confirm", keyB),
		at(try("ReadOnly", paidByCheckout, 403, "forbidden"), "/orders/"+id+"/confirm", readOnly),
	)
}

// TestConfirmTakesNoPaymentFromAnotherOrder: whoever pays once and shows the payment twice has paid once.
func TestConfirmTakesNoPaymentFromAnotherOrder(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	first, _ := l.order("ord_1")
	second, _ := l.order("ord_2")
	require.Equal(t, "paid", data(t, l.confirm(first, paidByCheckout))["state"])
	w := l.confirm(second, paidByCheckout)
	require.Equal(t, http.StatusOK, w.Code)
	require.Equal(t, "pending", data(t, w)["state"])
	require.Contains(t, data(t, w)["flags"], "reference_conflict")
	require.Equal(t, second, data(t, w)["id"], "the order that was asked about")
	require.Equal(t, "paid", l.read(first)["state"])

	// Also where the gateway has told of the payment before, and of the first order.
	l.deliver(hook("evt_1", "pi_9", "ord_1", captured(5000)))
	w = l.confirm(second, strings.Replace(paidByCheckout, "pi_1", "pi_9", 1))
	require.Equal(t, "pending", data(t, w)["state"])
}

// TestConfirmAndWebhookAtOnce (T100): whichever comes first moves the order, and nothing moves it twice.
func TestConfirmAndWebhookAtOnce(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	for i := range 20 {
		ref := fmt.Sprint("both-", i)
		id, _ := l.order(ref)
		said := strings.Replace(paidByCheckout, "pi_1", "pi_"+ref, 1)
		var wg sync.WaitGroup
		start := make(chan struct{})
		codes := make([]int, 4)
		for n := range codes {
			wg.Go(func() {
				<-start
				var change []func(*http.Request)
				if n%2 == 0 {
					change = append(change, withKey(fmt.Sprint(ref, "-", n)))
				}
				codes[n] = l.confirm(id, said, change...).Code
			})
			wg.Go(func() {
				<-start
				if _, err := l.store.Apply(t.Context(), []store.Event{hook("evt_"+ref, "pi_"+ref, ref, captured(5000))}); err != nil {
					t.Error(err)
				}
			})
		}
		close(start)
		wg.Wait()
		require.Equal(t, []int{200, 200, 200, 200}, codes)
		o := l.read(id)
		require.Equal(t, "paid", o["state"])
		require.EqualValues(t, 5000, o["captured"])
		require.EqualValues(t, 2, o["version"], "one transition")
		require.Empty(t, o["flags"])
		require.Equal(t, 1, l.count(`order_transitions WHERE order_id::text = $1 AND effect = 'fulfil'`, id))
	}
}

// TestConfirmOfAStub: a checkout may be quicker than the registration's answer; the order is there, and waits for its total.
func TestConfirmOfAStub(t *testing.T) {
	t.Parallel()
	l := goLive(t, withSources)
	l.deliver(hook("evt_1", "pi_0", "stub", order.Fact{Kind: order.KindPhase, Status: order.StatusProcessing}))
	var id string
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT id::text FROM orders WHERE external_ref = 'stub'`).Scan(&id))
	w := l.confirm(id, paidByCheckout)
	require.Equal(t, http.StatusOK, w.Code, w.Body.String())
	require.Contains(t, data(t, w)["flags"], "unregistered")
	w = l.post(keyA, strings.Replace(ordinary, "ord_1", "stub", 1))
	require.Equal(t, http.StatusCreated, w.Code)
	require.Equal(t, "paid", data(t, w)["state"])
}
