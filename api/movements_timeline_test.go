package api_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/api"
	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

func TestTimelineTellsOfTransactions(t *testing.T) {
	t.Parallel()
	l := goLive(t, callable)
	id := l.paidOrder("ord_1")
	refund := l.moved(id, "refunds", `{"data":{"amount":2000,"reason":"did not fit","metadata":{"external_ref":"rf_1"}}}`)["id"]
	l.answer(refund, done("re_1", hook("evt_2", "pi_ord_1", "", refundOf("re_1", 2000))))
	open := l.moved(id, "refunds", `{"data":{"amount":500}}`)["id"]
	l.answer(open, unsure())

	doc := data(t, l.do(http.MethodGet, "/v1/orders/"+id+"/timeline", readOnly, ""))
	var texts []any
	for _, e := range doc["entries"].([]any) {
		e := e.(map[string]any)
		if e["kind"] == "transaction" {
			texts = append(texts, e["text"])
			require.Equal(t, l.transaction(e["transaction"].(map[string]any)["id"]), e["transaction"])
		}
	}
	require.Len(t, texts, 4)
	require.Equal(t, "Refund of 20.00 EUR of pi_ord_1 (rf_1) was asked for: did not fit.", texts[0])
	require.Regexp(t, `^Refund of 20.00 EUR of pi_ord_1 \(rf_1\) was asked of stripe, and succeeded \(re_1\) at 20`, texts[1])
	require.Equal(t, "Refund of 5.00 EUR of pi_ord_1 was asked for.", texts[2])
	unsure := "Refund of 5.00 EUR of pi_ord_1 was asked of stripe, and whether it was done is not known (stored_failure: it answered 500, and would again); only a webhook or a person can tell."
	require.Equal(t, unsure, texts[3])
	report := doc["explanation"].(map[string]any)
	require.Contains(t, report["why"], unsure)
	require.Contains(t, report["todo"].([]any)[0], "paidonce transactions resolve "+open.(string))
}

// NewSource: which sources can call, and that nothing secret is in what is stored.
func TestNewSource(t *testing.T) {
	t.Parallel()
	m := order.Movement{ID: "m", Kind: order.MovementRefund, Amount: order.Amount{Minor: 1, Currency: "EUR"}, Payment: []string{"pi_1"}}
	good := bank("stripe")
	s := sourceOf(good, "s", func(s *gateway.Source) { s.StripeAccount = "acct_1" })
	require.Equal(t, "stripe:acct_1:live", s.Realm)
	require.Equal(t, []string{"s", "stripe", ""}, []string{s.ID, s.Gateway, s.NotCallable})
	r, err := s.Prepare(m)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"Content-Type": "text/plain", "X-Version": "1, 2"}, r.Header)
	require.NotContains(t, string(r.Body)+r.Path, "tok_TESTONLY")

	none := bank("klarna")
	none.Calls = nil
	for want, s := range map[string]api.Source{
		"Source s cannot call Stripe: access_token is missing.": sourceOf(good, "s", poor),
		"Source s is paused.": sourceOf(good, "s", func(s *gateway.Source) { s.Paused = true }),
		"Paidonce does not know how Klarna is asked to move money: do it there, and the order follows by itself.": sourceOf(none, "s"),
	} {
		require.Nil(t, s.Prepare)
		require.Equal(t, want, s.NotCallable)
	}

	made := func(call gateway.Call, err error) error {
		g := bank("stripe")
		g.Calls.Make = func(gateway.Source, order.Movement) (gateway.Call, error) { return call, err }
		_, err = sourceOf(g, "s").Prepare(m)
		return err
	}
	broken := errors.New("broken on purpose")
	require.ErrorIs(t, made(gateway.Call{}, broken), broken)
	require.NoError(t, made(gateway.Call{Path: "/"}, nil))
	for _, name := range []string{"authorization", "X-Api-Key", "X-Key", "Cookie"} {
		require.ErrorContains(t, made(gateway.Call{Header: http.Header{name: {"secret"}}}, nil), "not to be stored", name)
	}
	require.ErrorContains(t, made(gateway.Call{Grant: &gateway.Call{}}, nil), "not to be stored")
}
