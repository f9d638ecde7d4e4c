package gateway_test

import (
	"encoding/base64"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("midtrans", conformance{
	volatile:    map[string]string{"status_message": "another"},
	unknownType: map[string]string{"transaction_status": "held_by_nobody"},
	typ:         "settlement", amount: "gross_amount", currency: "currency",
	badAmounts: decimals,
	noMode:     true,
	object: func(body []byte) gateway.Object {
		return gateway.Object{Kind: "order", ID: gjson.GetBytes(body, "order_id").String()}
	},
})

// TestMidtransObjects: the id that is asked about is the one that is signed, and
// cannot lead to another place of the API.
func TestMidtransObjects(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "midtrans")
	for _, tt := range []struct{ body, want string }{
		{`{"order_id":"ord_7","transaction_id":"t-1"}`, "order/ord_7"},
		{`{"order_id":"A.7~x-1"}`, "order/A.7~x-1"},
		{`{"order_id":".7"}`, "order/.7"},
		{`{"order_id":"."}`, ""},
		{`{"order_id":".."}`, ""},
		{`{"order_id":"a/../b"}`, ""},
		{`{"order_id":"a?b"}`, ""},
		{`{"order_id":"a b"}`, ""},
		{`{"order_id":""}`, ""},
		{`{"order_id":7}`, ""},
		{`{"transaction_id":"t-1"}`, ""},
		{`{"order_id":"a","order_id":"b"}`, ""},
	} {
		got, err := gateway.Midtrans.Objects(source, gateway.Delivery{Body: []byte(tt.body)})
		if tt.want == "" {
			require.ErrorAs(t, err, new(*gateway.ParseError), tt.body)
			continue
		}
		require.NoError(t, err, tt.body)
		require.Len(t, got, 1)
		require.Equal(t, tt.want, got[0].String())
	}
}

func TestMidtransCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "midtrans")
	basic := func(key string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(key+":")) }
	call, err := gateway.Midtrans.Fetch.Call(source, gateway.Object{Kind: "order", ID: "ord_7"})
	require.NoError(t, err)
	require.Equal(t, "/v2/ord_7/status", call.Path)
	require.Equal(t, basic(source.Secrets[0]), call.Header.Get("Authorization"))
	source.AccessToken = "another"
	call, err = gateway.Midtrans.Fetch.Call(source, gateway.Object{Kind: "order", ID: "ord_7"})
	require.NoError(t, err)
	require.Equal(t, basic("another"), call.Header.Get("Authorization"))
	for _, o := range []gateway.Object{{Kind: "order", ID: ".."}, {Kind: "payment", ID: "ord_7"}} {
		_, err = gateway.Midtrans.Fetch.Call(source, o)
		require.Error(t, err)
	}
	require.Equal(t, "https://api.sandbox.midtrans.com", gateway.Midtrans.Fetch.BaseURL(source))
}

// TestMidtransAnswers: an answer must be about what was asked about, and a capture
// counts only once nobody doubts it.
func TestMidtransAnswers(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "midtrans")
	asked := gateway.Object{Kind: "order", ID: "ord_7"}
	for _, body := range []string{
		`{"status_code":"404","status_message":"Transaction doesn't exist."}`,
		`{"order_id":"ord_8","transaction_id":"t-1","transaction_status":"settlement","gross_amount":"50.00","currency":"IDR"}`,
		`{"order_id":"ORD_7","transaction_id":"t-1","transaction_status":"settlement","gross_amount":"50.00","currency":"IDR"}`,
		`{"order_id":"ord_7","order_id":"ord_7"}`, `[]`, ``,
	} {
		_, err := gateway.Midtrans.Fetched(source, asked, gateway.Answer{Body: []byte(body), Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), body)
	}
	for _, tt := range []struct {
		fraud    string
		captured int64
		phase    order.Status
	}{
		{`"accept"`, 5000, order.StatusAuthorized},
		{`"challenge"`, 0, order.StatusProcessing},
		{`"deny"`, 0, order.StatusFailed},
		{`null`, 0, order.StatusProcessing},
		{`"ACCEPT"`, 0, order.StatusProcessing},
	} {
		ev := spokenOne(t, gateway.SampleRequest{Source: source, Type: "capture", Reference: "ord_7", Set: set("fraud_status", tt.fraud)})
		require.Equal(t, tt.phase, ev.Facts[0].Status, tt.fraud)
		require.Equal(t, tt.captured, ev.Facts[1].Amount, tt.fraud)
	}
	// The sandbox's key on a live source: its notifications would be believed.
	source.Mode, source.Secrets = gateway.Live, []string{"SB-Mid-server-0123456789"}
	require.ErrorContains(t, gateway.Midtrans.Check(source), "sandbox")
}

var _ = asks(
	askedFlow{gateway: "midtrans", name: "Settled", steps: []step{{typ: "pending"}, {typ: "settlement", at: 9}}, want: "paid 5000-0-0 go"},
	askedFlow{gateway: "midtrans", name: "Card", steps: []step{
		{typ: "authorize"}, {typ: "capture", at: 5}, {typ: "settlement", at: 9},
	}, want: "paid 5000-0-0 go"},
	askedFlow{gateway: "midtrans", name: "Challenged", steps: []step{
		{typ: "pending"}, {typ: "capture", at: 5, set: set("fraud_status", "challenge")},
	}, want: "pending 0-0-0 wait"},
	askedFlow{gateway: "midtrans", name: "ChallengedAndApproved", steps: []step{
		{typ: "capture", set: set("fraud_status", "challenge")}, {typ: "capture", at: 5},
	}, want: "paid 5000-0-0 go"},
	askedFlow{gateway: "midtrans", name: "Authorized", steps: []step{{typ: "pending"}, {typ: "authorize", at: 1}}, want: "authorized 0-0-0 wait"},
	askedFlow{gateway: "midtrans", name: "Expired", steps: []step{{typ: "pending"}, {typ: "expire", at: 99}}, want: "expired 0-0-0 wait"},
	askedFlow{gateway: "midtrans", name: "Denied", steps: []step{{typ: "pending"}, {typ: "deny", at: 1}}, want: "failed 0-0-0 wait"},
	askedFlow{gateway: "midtrans", name: "PartialRefunds", steps: []step{
		{typ: "settlement"},
		{typ: "partial_refund", at: 5, set: set("refund_amount", "10.00")},
		{typ: "partial_refund", at: 9, set: set("refund_amount", "25.50")},
	}, want: "partially_refunded 5000-2550-0 go"},
	askedFlow{gateway: "midtrans", name: "RefundTakenBack", steps: []step{
		{typ: "settlement"}, {typ: "partial_refund", at: 5, set: set("refund_amount", "10.00")}, {typ: "settlement", at: 9},
	}, want: "paid 5000-0-0 go"},
	askedFlow{gateway: "midtrans", name: "Refunded", steps: []step{{typ: "settlement"}, {typ: "refund", at: 5}}, want: "refunded 5000-5000-0 stop"},
	askedFlow{gateway: "midtrans", name: "Chargeback", steps: []step{{typ: "settlement"}, {typ: "chargeback", at: 5}}, want: "charged_back 5000-0-5000 stop"},
	askedFlow{gateway: "midtrans", name: "PartialChargeback", steps: []step{
		{typ: "settlement"}, {typ: "partial_chargeback", at: 5},
	}, want: "disputed 5000-0-0 pause"},
	askedFlow{gateway: "midtrans", name: "ChargebackWon", steps: []step{
		{typ: "settlement"}, {typ: "chargeback", at: 5}, {typ: "settlement", at: 9},
	}, want: "paid 5000-0-0 go"},
)

// TestMidtransVoided: a capture that was canceled before its settlement takes the
// order back, in whatever order the two are read.
func TestMidtransVoided(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "midtrans")
	steps := []step{{typ: "capture"}, {typ: "cancel", at: 5}}
	for _, at := range [][2]int{{0, 1}, {1, 0}} {
		v := fold([]order.Event{steps[at[0]].answered(t, source)[0], steps[at[1]].answered(t, source)[0]})
		require.Equal(t, order.State("canceled"), v.State)
		require.Equal(t, order.Want("stop"), v.Want)
	}
}
