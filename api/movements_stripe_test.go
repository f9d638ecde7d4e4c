package api_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// TestMovementsAtStripe: with a gateway as it is, what is stored is its request, without key and credentials.
func TestMovementsAtStripe(t *testing.T) {
	t.Parallel()
	stripe, ok := gateway.Lookup("stripe")
	require.True(t, ok)
	l := goLive(t, having(sourceOf(stripe, "stripe")))
	id, _ := l.order("ord_1")
	paid := hook("evt_1", "pi_1", "ord_1", captured(5000))
	paid.Payment = []string{"ch_1", "pi_1"}
	l.deliver(paid)
	tr := l.moved(id, "refunds", `{"data":{"amount":2000,"reason":"requested_by_customer"}}`)
	var (
		method, path, body, row string
		header                  map[string]string
	)
	require.NoError(t, l.pool.QueryRow(t.Context(), `SELECT method, path, convert_from(body, 'UTF8'), header, t::text FROM transactions t`).
		Scan(&method, &path, &body, &header, &row))
	require.Equal(t, "POST", method)
	require.Equal(t, "/v1/refunds", path)
	require.Equal(t, "amount=2000&metadata%5Bpaidonce_transaction%5D="+tr["id"].(string)+"&payment_intent=pi_1&reason=requested_by_customer", body)
	require.Equal(t, "application/x-www-form-urlencoded", header["Content-Type"])
	require.NotContains(t, header, "Authorization")
	require.NotContains(t, header, "Idempotency-Key")
	require.NotContains(t, row, "tok_TESTONLY")

	// Of what Stripe has no call for, its own words say why.
	other, _ := l.order("ord_2")
	l.deliver(hook("evt_2", "ch_2", "ord_2", authorized(5000)))
	w := l.move(other, "voids", `{"data":{}}`)
	require.Equal(t, http.StatusConflict, w.Code)
	require.Equal(t, "not_callable", string(problemOf(t, w).Code))
	require.Contains(t, problemOf(t, w).Detail, "The call cannot be made: a charge without PaymentIntent cannot be canceled")
	require.Equal(t, "capture", l.moved(other, "captures", `{"data":{}}`)["kind"])
}
