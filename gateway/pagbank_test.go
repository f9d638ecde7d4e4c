package gateway_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

const pagbankCharge = "charges.0."

var _ = conforms("pagbank", conformance{
	volatile:    map[string]string{"notification_urls": `["https://shop.example/other"]`, "links": "[]"},
	unknownType: map[string]string{pagbankCharge + "status": "NEW_STATUS"},
	typ:         "PAID",
	amount:      pagbankCharge + "amount.value",
	currency:    pagbankCharge + "amount.currency",
	noMode:      true,
	payment: func(r gateway.SampleRequest) string {
		if r.Type == "CHECKOUT.EXPIRED" {
			return "CHEC_" + r.Payment
		}
		return r.Payment
	},
	alone: []string{"CHECKOUT.EXPIRED"},
})

// summary sets what was paid and refunded of a charge by then.
func summary(paid, refunded string) map[string]string {
	return map[string]string{pagbankCharge + "amount.summary": `{"total":5000,"paid":` + paid + `,"refunded":` + refunded + `}`}
}

func TestPagBankFlows(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "pagbank")
	gone := set(pagbankCharge+"amount.summary", "null")
	playFlows(t, []flow{
		{"Paid", s, []step{{typ: "WAITING"}, {typ: "IN_ANALYSIS", at: 1}, {typ: "PAID", at: 2}}, "paid 5000-0-0 go"},
		{"AuthorizedAndCaptured", s, []step{{typ: "IN_ANALYSIS"}, {typ: "AUTHORIZED", at: 1}, {typ: "PAID", at: 2}}, "paid 5000-0-0 go"},
		{"Authorized", s, []step{{typ: "IN_ANALYSIS"}, {typ: "AUTHORIZED", at: 1}}, "authorized 0-0-0 wait"},
		{"GivenUp", s, []step{{typ: "AUTHORIZED"}, {typ: "CANCELED", at: 1, set: summary("0", "0")}}, "canceled 0-0-0 wait"},
		{"GivenUpWithoutSummary", s, []step{{typ: "AUTHORIZED"}, {typ: "CANCELED", at: 1, set: gone}}, "canceled 0-0-0 wait"},
		{"Declined", s, []step{{typ: "IN_ANALYSIS"}, {typ: "DECLINED", at: 1}}, "failed 0-0-0 wait"},
		{"Waiting", s, []step{{typ: "WAITING"}}, "pending 0-0-0 wait"},
		{"CheckoutLeft", s, []step{{typ: "CHECKOUT.EXPIRED"}}, "expired 0-0-0 wait"},
		{"TwoRefunds", s, []step{{typ: "PAID"}, {typ: "PAID", set: summary("5000", "1000")}, {typ: "PAID", set: summary("5000", "2500")}}, "partially_refunded 5000-2500-0 go"},
		{"Refunded", s, []step{{typ: "PAID"}, {typ: "CANCELED", at: 9}}, "refunded 5000-5000-0 stop"},
		{"RefundedWithoutSummary", s, []step{{typ: "PAID"}, {typ: "CANCELED", at: 9, set: gone}}, "refunded 5000-5000-0 stop"},
	})
}

// TestPagBankCanceledAndKept: a charge cannot be given up and keep all of its money.
func TestPagBankCanceledAndKept(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "pagbank")
	for refunded, broken := range map[string]bool{"0": true, "null": true, "1000": false, "5000": false} {
		ev := step{typ: "CANCELED", set: summary("5000", refunded)}.event(t, s)
		require.Equal(t, broken, ev.Broken != "", refunded)
	}
}

// TestPagBankCharges: every charge of an order is a payment, and one that cannot be
// read takes no other with it.
func TestPagBankCharges(t *testing.T) {
	t.Parallel()
	s := sourceNamed(t, "pagbank")
	body := `{"id":"ORDE_1","reference_id":"ord_7","charges":[
		{"id":"CHAR_1","status":"DECLINED","amount":{"value":5000,"currency":"BRL"}},
		{"id":"CHAR_2","status":"PAID","amount":{"value":"5000","currency":"BRL"}},
		{"status":7},
		{"id":"CHAR_3","status":"PAID","amount":{"value":5000,"currency":"BRL","summary":{"paid":5000,"refunded":0}}}]}`
	evs := events(t, s, []byte(body))
	require.Len(t, evs, 4)
	require.Equal(t, "CHAR_1:DECLINED::", evs[0].ID)
	require.Equal(t, "CHAR_2:PAID::", evs[1].ID)
	require.NotEmpty(t, evs[1].Broken)
	require.NotEmpty(t, evs[2].Broken)
	require.Regexp(t, "^body:[0-9a-f]{64}:2$", evs[2].ID)
	require.Equal(t, "CHAR_3:PAID:5000:0", evs[3].ID)
	require.Equal(t, "ord_7", evs[3].Reference)
	v := fold(evs[3:])
	require.Equal(t, int64(0), v.Captured, "an amount of another currency is not counted")

	s.Reference = "/charges/0/id"
	require.Equal(t, "CHAR_1", events(t, s, []byte(body))[3].Reference)

	many := `{"id":"ORDE_1","charges":[` + strings.TrimSuffix(strings.Repeat(`{"id":"CHAR_1","status":"PAID"},`, 101), ",") + `]}`
	d := deliver(t, s, []byte(many))
	_, err := gateway.PagBank.Events(s, d)
	var parse *gateway.ParseError
	require.ErrorAs(t, err, &parse)
	require.Equal(t, "shape", parse.Code)
}
