package gateway_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/signature"
)

// plaidKeys are what Plaid's API would hand out for the example's deliveries.
func plaidKeys() []string {
	_, key := gateway.Plaid.Remote.Example(gateway.Plaid.Example("main"))
	return []string{string(key)}
}

var (
	_ = conforms("ebanx", conformance{
		unknownType: map[string]string{"payment.status": "ND"},
		typ:         "payment.CO",
		amount:      "payment.amount_ext",
		currency:    "payment.currency_ext",
		badAmounts:  decimals,
		noMode:      true,
		noTime:      true,
		unreadable: map[string]string{
			"Empty": "", "JSON": `{"hash_codes":"5a00"}`, "NoHash": "operation=payment_status_change", "Two": "hash_codes=5a&hash_codes=5b",
			"NotAHash": "hash_codes=../x", "Short": "hash_codes=5a", "Upper": "hash_codes=5A0000000000000000000000", "Trailing": "hash_codes=5a0000000000000000000000%2C",
		},
		object: func(body []byte) gateway.Object {
			return gateway.Object{Kind: "payment", ID: gjson.GetBytes(body, "payment.hash").String()}
		},
	})
	_ = conforms("plaid", conformance{
		keys:        plaidKeys(),
		unknownType: map[string]string{"status": "PAYMENT_STATUS_ESTABLISHED"},
		typ:         "payment.PAYMENT_STATUS_SETTLED",
		amount:      "amount.value",
		currency:    "amount.currency",
		badAmounts:  decimals,
		noMode:      true,
		object: func(body []byte) gateway.Object {
			return gateway.Object{Kind: "payment", ID: gjson.GetBytes(body, "payment_id").String()}
		},
	})
	_ = asks([]askedFlow{
		{gateway: "ebanx", name: "Paid", steps: []step{{typ: "payment.OP"}, {typ: "payment.PE", at: 1}, {typ: "payment.CO", at: 2}}, want: "paid 5000-0-0 go"},
		{gateway: "ebanx", name: "Authorized", steps: []step{{typ: "payment.OP"}, {typ: "payment.PE", at: 1, set: set("payment.capture_available", "true")}}, want: "authorized 0-0-0 wait"},
		{gateway: "ebanx", name: "Canceled", steps: []step{{typ: "payment.PE"}, {typ: "payment.CA", at: 1}}, want: "canceled 0-0-0 wait"},
		{gateway: "ebanx", name: "PartlyRefunded", steps: []step{
			{typ: "payment.CO"},
			{typ: "payment.CO", at: 1, set: set("payment.refunds", `[{"id":"1","status":"PE","amount_ext":"10.00"}]`)},
			{typ: "payment.CO", at: 2, set: set("payment.refunds", `[{"id":"1","status":"CO","amount_ext":"10.00"}]`)},
		}, want: "partially_refunded 5000-1000-0 go"},
		{gateway: "ebanx", name: "RefundIsCanceled", steps: []step{
			{typ: "payment.CO"},
			{typ: "payment.CO", at: 1, set: set("payment.refunds", `[{"id":"1","status":"PE","amount_ext":"10.00"}]`)},
			{typ: "payment.CO", at: 2, set: set("payment.refunds", `[{"id":"1","status":"CA","amount_ext":"10.00"}]`)},
		}, want: "paid 5000-0-0 go"},
		{gateway: "ebanx", name: "ChargedBack", steps: []step{
			{typ: "payment.CO"}, {typ: "payment.CO", at: 1, set: set("payment.chargeback", `{"create_date":"2026-01-05 10:00:00","chargeback_credit":false}`)},
		}, want: "charged_back 5000-0-5000 stop"},
		{gateway: "ebanx", name: "ChargedBackInAList", steps: []step{
			{typ: "payment.CO"}, {typ: "payment.CO", at: 1, set: set("payment.chargeback", `[{"create_date":"2026-01-05 10:00:00"}]`)},
		}, want: "charged_back 5000-0-5000 stop"},
		{gateway: "ebanx", name: "ChargebackCredited", steps: []step{
			{typ: "payment.CO"},
			{typ: "payment.CO", at: 1, set: set("payment.chargeback", `[{"create_date":"2026-01-05 10:00:00"}]`)},
			{typ: "payment.CO", at: 2, set: set("payment.chargeback", `[{"create_date":"2026-01-05 10:00:00","chargeback_credit":true}]`)},
		}, want: "disputed 5000-0-0 pause"},
		{gateway: "ebanx", name: "NoChargeback", steps: []step{
			{typ: "payment.CO", set: set("payment.chargeback", `{"chargeback_credit":false}`)}, {typ: "payment.CO", at: 1, set: set("payment.chargeback", `[]`)},
		}, want: "paid 5000-0-0 go"},
		{gateway: "ebanx", name: "Refunded", steps: []step{
			{typ: "payment.CO"}, {typ: "payment.CO", at: 2, set: set("payment.refunds", `[{"id":"1","status":"CO","amount_ext":"50.00"}]`)},
		}, want: "refunded 5000-5000-0 stop"},
		{gateway: "plaid", name: "Settled", steps: []step{
			{typ: "payment.PAYMENT_STATUS_INPUT_NEEDED"},
			{typ: "payment.PAYMENT_STATUS_INITIATED", at: 1},
			{typ: "payment.PAYMENT_STATUS_EXECUTED", at: 2},
			{typ: "payment.PAYMENT_STATUS_SETTLED", at: 3},
		}, want: "paid 5000-0-0 go"},
		{gateway: "plaid", name: "InitiatedIsNotPaid", steps: []step{{typ: "payment.PAYMENT_STATUS_AUTHORISING"}, {typ: "payment.PAYMENT_STATUS_INITIATED", at: 1}}, want: "authorized 0-0-0 wait"},
		{gateway: "plaid", name: "ExecutedIsNotPaid", steps: []step{{typ: "payment.PAYMENT_STATUS_INITIATED"}, {typ: "payment.PAYMENT_STATUS_EXECUTED", at: 1}}, want: "authorized 0-0-0 wait"},
		{gateway: "plaid", name: "Rejected", steps: []step{{typ: "payment.PAYMENT_STATUS_INITIATED"}, {typ: "payment.PAYMENT_STATUS_REJECTED", at: 1}}, want: "failed 0-0-0 wait"},
		{gateway: "plaid", name: "Canceled", steps: []step{{typ: "payment.PAYMENT_STATUS_AUTHORISING"}, {typ: "payment.PAYMENT_STATUS_CANCELLED", at: 1}}, want: "canceled 0-0-0 wait"},
		{gateway: "plaid", name: "RefundThatComesBack", steps: []step{
			{typ: "payment.PAYMENT_STATUS_SETTLED"},
			{typ: "payment.PAYMENT_STATUS_SETTLED", at: 1, set: set("amount_refunded", `{"currency":"EUR","value":10.00}`)},
			{typ: "payment.PAYMENT_STATUS_SETTLED", at: 2, set: set("amount_refunded", `{"currency":"EUR","value":0}`)},
		}, want: "paid 5000-0-0 go"},
	}...)
)

func TestEBANXCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "ebanx")
	source.AccessToken = "key"
	o := gateway.Object{Kind: "payment", ID: "5a00000000000000"}
	call, err := gateway.EBANX.Fetch.Call(source, o)
	require.NoError(t, err)
	require.Equal(t, "POST", call.Method)
	require.Equal(t, "/ws/query", call.Path)
	require.JSONEq(t, `{"integration_key":"key","hash":"5a00000000000000"}`, string(call.Body))
	_, err = gateway.EBANX.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "x"})
	require.Error(t, err)
	for _, body := range []string{`{"payment":{"hash":"5b00000000000000"},"status":"SUCCESS"}`, `{"status":"ERROR","status_code":"BP-QR-2"}`} {
		_, err = gateway.EBANX.Fetched(source, o, gateway.Answer{Body: []byte(body), Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), body)
	}
}

// TestEBANXMany: hashes are not left out in silence.
func TestEBANXMany(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "ebanx")
	hashes := make([]string, 201)
	for i := range hashes {
		hashes[i] = fmt.Sprintf("5a%022x", i)
	}
	for n, fits := range map[int]bool{200: true, 201: false} {
		d := gateway.Delivery{Body: []byte("hash_codes=" + strings.Join(hashes[:n], ","))}
		objects, err := gateway.EBANX.Objects(source, d)
		if !fits {
			require.ErrorAs(t, err, new(*gateway.ParseError))
			continue
		}
		require.NoError(t, err)
		require.Len(t, objects, n)
	}
}

// TestPlaidKeys: the key that a delivery names is looked for, and no other
// verifies it.
func TestPlaidKeys(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "plaid")
	require.Contains(t, gateway.Plaid.Check(gateway.Source{Gateway: "plaid", Mode: gateway.Test}).Error(), "client_secret")
	d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: "payment.PAYMENT_STATUS_EXECUTED"}))
	ref, err := gateway.Plaid.Remote.Key(source, d)
	require.NoError(t, err)
	want, key := gateway.Plaid.Remote.Example(source)
	require.Equal(t, want, ref)
	require.Empty(t, gjson.GetBytes(key, "d").String(), "the private half is handed out")
	_, stranger := gateway.Plaid.Remote.Example(gateway.Plaid.Example("stranger"))
	require.Error(t, gateway.Plaid.Verify(source, d, now, string(stranger)))
	require.Error(t, gateway.Plaid.Verify(source, d, now), "without any key")
	d.Header.Set("Plaid-Verification", "x.y.z")
	_, err = gateway.Plaid.Remote.Key(source, d)
	require.NotEmpty(t, signature.ReasonOf(err))
}

// TestPlaidExecuted: that the money has left the payer's account counts as paid
// only where the source says so.
func TestPlaidExecuted(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "plaid")
	paid := func(typ string) int64 {
		return fold(step{typ: "payment.PAYMENT_STATUS_" + typ}.answered(t, source)).Captured
	}
	require.Zero(t, paid("EXECUTED"))
	source.Unconfirmed = true
	require.NoError(t, gateway.Plaid.Check(source))
	require.EqualValues(t, 5000, paid("EXECUTED"))
	require.Zero(t, paid("INITIATED"))
}

func TestPlaidCall(t *testing.T) {
	t.Parallel()
	source := sourceNamed(t, "plaid")
	source.ClientID, source.ClientSecret = "client", "secret"
	call, err := gateway.Plaid.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "payment-id-sandbox-1"})
	require.NoError(t, err)
	require.Equal(t, "/payment_initiation/payment/get", call.Path)
	require.JSONEq(t, `{"client_id":"client","secret":"secret","payment_id":"payment-id-sandbox-1"}`, string(call.Body))
	_, err = gateway.Plaid.Fetch.Call(source, gateway.Object{Kind: "payment", ID: "transfer-1"})
	require.Error(t, err)
	require.Equal(t, "https://sandbox.plaid.com", gateway.Plaid.Fetch.BaseURL(source))
	require.Equal(t, "https://sandbox.plaid.com", gateway.Plaid.Remote.BaseURL(source))

	// The same news is one event, however often it comes; other news are others.
	r := gateway.SampleRequest{Source: source, Type: "payment.PAYMENT_STATUS_EXECUTED", Payment: "payment-id-sandbox-1", At: now}
	first := sampled(t, r)
	require.Equal(t, "payment-id-sandbox-1:PAYMENT_STATUS_EXECUTED:2026-01-01T09:00:00.000Z", first.ID)
	r.Type = "payment.PAYMENT_STATUS_SETTLED"
	require.NotEqual(t, first.ID, sampled(t, r).ID)
	r.Set = map[string]string{"new_payment_status": "null"}
	require.Contains(t, sampled(t, r).ID, "body:")
}
