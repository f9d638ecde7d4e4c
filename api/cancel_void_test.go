package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/order"
)

// cancel cancels an order of account a, and returns the whole answer.
func (l *live) cancel(id string, change ...func(*http.Request)) map[string]any {
	l.t.Helper()
	w := l.do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "", change...)
	require.Equal(l.t, http.StatusOK, w.Code, w.Body.String())
	doc := decoded(l.t, w)
	require.Equal(l.t, "canceled", doc["data"].(map[string]any)["state"])
	return doc
}

func TestCancelLetsGoOfWhatIsAuthorized(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	l.deliver(
		hook("evt_1", "pi_1", "ord_1", authorized(5000)), hook("evt_2", "pi_2", "ord_1", order.Fact{Kind: order.KindAuthorized, Amount: 700, Currency: "USD"}),
		hook("evt_3", "pi_3", "ord_1", authorized(5000), order.Fact{Kind: order.KindPhase, Status: order.StatusFailed}),
	)
	doc := l.cancel(id, withKey("k1"))
	require.Empty(t, doc["todo"])
	voids := doc["voids"].([]any)
	require.Len(t, voids, 2, "one for each payment that holds something")
	amounts := map[any]any{}
	for _, v := range voids {
		v := v.(map[string]any)
		require.Equal(t, []any{"void", "pending", "order canceled"}, []any{v["kind"], v["status"], v["reason"]})
		require.Equal(t, v, l.transaction(v["id"]))
		amounts[v["payment"].([]any)[0]] = v["amount"]
	}
	require.Equal(t, map[any]any{"pi_1": 5000.0, "pi_2": 700.0}, amounts)

	// Again, with keys and without, before and after they are done or were declined: no second one.
	before := l.written()
	l.cancel(id)
	require.Equal(t, doc, l.cancel(id, withKey("k1")))
	require.Equal(t, doc, l.cancel(id, withKey("k2")))
	require.Equal(t, before, l.written())
	l.answer(voids[0].(map[string]any)["id"], done("", hook("evt_5", voids[0].(map[string]any)["payment"].([]any)[0].(string), "", order.Fact{Kind: order.KindPhase, Status: order.StatusCanceled})))
	l.answer(voids[1].(map[string]any)["id"], declined())
	again := l.cancel(id)
	require.Len(t, again["voids"], 2)
	require.Equal(t, "failed", again["voids"].([]any)[1].(map[string]any)["status"])
	require.Equal(t, 2, l.count("transactions"))
	// The one that was declined is for a person now, and the timeline says so.
	report := data(t, l.do(http.MethodGet, "/v1/orders/"+id+"/timeline", readOnly, ""))["explanation"].(map[string]any)
	require.Contains(t, report["why"], "7.00 USD is still authorized by pi_2, although the order is canceled.")
	require.Contains(t, report["todo"], "Let go of the 7.00 USD that pi_2 holds: POST /v1/orders/"+id+"/voids, or at the gateway itself.")
	w := l.move(id, "voids", `{"data":{"payment":"pi_2","currency":"USD"}}`)
	require.Equal(t, http.StatusCreated, w.Code, w.Body.String())

	// What comes after the cancellation is let go of by saying it again.
	late, _ := l.order("late")
	require.Empty(t, l.cancel(late)["voids"])
	l.deliver(hook("evt_6", "pi_6", "late", authorized(5000)))
	require.Len(t, l.cancel(late)["voids"], 1)
	require.Len(t, l.cancel(late)["voids"], 1)
}

// What cannot be called is said, and holds nothing up.
func TestCancelWithoutCredentials(t *testing.T) {
	t.Parallel()
	l := goLive(t, having(sourceOf(bank("stripe"), "stripe"), sourceOf(bank("adyen"), "adyen", poor)))
	id, _ := l.order("ord_1")
	adyen := hook("evt_2", "psp_2", "ord_1", authorized(300))
	adyen.Realm, adyen.Source = "adyen:live", "adyen"
	l.deliver(hook("evt_1", "pi_1", "ord_1", authorized(5000)), adyen, hook("evt_3", "odd_3", "ord_1", authorized(200)))
	doc := l.cancel(id)
	require.Len(t, doc["voids"], 1)
	require.Equal(t, []any{"pi_1"}, doc["voids"].([]any)[0].(map[string]any)["payment"])
	require.ElementsMatch(t, []any{
		"3.00 EUR stay authorized by psp_2: let go of it at its gateway. Source adyen cannot call Adyen: access_token is missing.",
		"2.00 EUR stay authorized by odd_3: let go of it at its gateway. The call cannot be made: the payment is an odd one.",
	}, doc["todo"])
	require.Equal(t, doc, l.cancel(id))
	report := data(t, l.do(http.MethodGet, "/v1/orders/"+id+"/timeline", readOnly, ""))["explanation"].(map[string]any)
	for _, held := range []string{"3.00 EUR that psp_2 holds", "2.00 EUR that odd_3 holds"} {
		require.Contains(t, report["todo"], "Let go of the "+held+": POST /v1/orders/"+id+"/voids, or at the gateway itself.")
	}
	require.Len(t, report["todo"], 2, "what is under way is not left to do")
}

// Money that is kept refuses the cancellation as ever, and then nothing is let go of.
func TestCancelRefusedLetsGoOfNothing(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id, _ := l.order("ord_1")
	l.deliver(hook("evt_1", "pi_1", "ord_1", captured(2000)), hook("evt_2", "pi_2", "ord_1", authorized(3000)))
	l.refuses(http.MethodPost, refusal{name: "MoneyKept", path: "/orders/" + id + "/cancel", status: 409, code: "money_kept"})
	require.Zero(t, l.count("transactions"))

	// A capture that is under way is not undone: what it brings is flagged, as any money after a cancellation.
	other, _ := l.order("ord_2")
	l.deliver(hook("evt_3", "pi_3", "ord_2", authorized(5000)))
	capture := l.moved(other, "captures", `{"data":{}}`)
	require.Empty(t, l.cancel(other)["voids"])
	l.answer(capture["id"], done("ca_1", hook("evt_4", "pi_3", "", captureOf("ca_1", 5000))))
	require.Contains(t, l.read(other)["flags"], "paid_after_cancel")
}

func TestCancelOfManyVoidsOnce(t *testing.T) {
	t.Parallel()
	l := twoStores(t)
	id, _ := l[0].order("ord_1")
	l[0].deliver(hook("evt_1", "pi_1", "ord_1", authorized(5000)))
	answers := make([]*httptest.ResponseRecorder, 16)
	atOnce(len(answers), func(i int) { answers[i] = l[i%2].do(http.MethodPost, "/v1/orders/"+id+"/cancel", keyA, "") })
	for _, w := range answers {
		require.Equal(t, http.StatusOK, w.Code, w.Body.String())
		require.Len(t, decoded(t, w)["voids"], 1)
	}
	require.Equal(t, 1, l[0].count("transactions"))
}
