package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/app"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/store/storetest"
)

// What a checkout was answered is about the payment that the source's webhooks are about, whatever a reload has made of the
// account's sources.
func TestConfirmIsAboutTheSourcesPayments(t *testing.T) {
	t.Parallel()
	url, r := storetest.OpenURL(t), newReloader()
	p := start(t, app.Serve, configure(t, url, "http://127.0.0.1:1/", secret), r.edges())
	header := http.Header{"Authorization": {"Bearer " + apiKey}, "Content-Type": {"application/json"}}
	code, answer := request(t, http.MethodPost, "http://"+p.Listen+"/v1/orders", header,
		[]byte(`{"data":{"amount":5000,"currency":"EUR","metadata":{"external_ref":"ord_1"}}}`))
	require.Equal(t, http.StatusCreated, code, answer)
	var made struct{ Data struct{ ID string } }
	require.NoError(t, json.Unmarshal([]byte(answer), &made))
	confirm := func(named, payment string) int {
		code, _ := request(t, http.MethodPost, "http://"+p.Listen+"/v1/orders/"+made.Data.ID+"/confirm", header,
			fmt.Appendf(nil, `{"data":{%s,"payment":%q,"status":"captured","amount":5000,"currency":"EUR"}}`, named, payment))
		return code
	}
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	realms := func(payment string) (found []string) {
		rows, _ := conn.Query(t.Context(), `SELECT realm FROM payment_ids WHERE id = $1 ORDER BY realm`, payment)
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return found
	}

	source := gateway.Source{ID: "stripe", Gateway: "stripe", Mode: gateway.Test}
	require.Equal(t, http.StatusOK, confirm(`"gateway":"stripe"`, "pi_1"))
	body, err := gateway.Stripe.Sample(gateway.SampleRequest{
		Source: source, Type: "payment_intent.succeeded", Reference: "ord_1", Payment: "pi_1", Amount: order.Amount{Minor: 5000, Currency: "EUR"},
	})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, deliver(t, p.Listen, secret, body))
	require.Equal(t, []string{gateway.Stripe.Realm(source)}, realms("pi_1"), "one payment")

	platform := source
	platform.ID, platform.Account, platform.StripeAccount, platform.Secrets = "platform", "shop", "acct_1", []string{secret}
	r.put(t, change(configure(t, url, "http://127.0.0.1:1/", secret), func(a *config.Account) { a.Sources["platform"] = platform }))
	require.Equal(t, http.StatusUnprocessableEntity, confirm(`"gateway":"stripe"`, "pi_2"), "two name spaces")
	require.Equal(t, http.StatusOK, confirm(`"source":"platform"`, "pi_2"))
	require.Equal(t, []string{gateway.Stripe.Realm(platform)}, realms("pi_2"))
	require.NotEqual(t, gateway.Stripe.Realm(source), gateway.Stripe.Realm(platform))
}
