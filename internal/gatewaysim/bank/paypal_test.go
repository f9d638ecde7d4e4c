package bank_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
)

func TestPayPalReads(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	held := s.pay("paypal", "A-1", false)
	auth, orderID := held.IDs[0], held.IDs[1]
	o := s.get("paypal", "/v2/checkout/orders/"+orderID).body
	require.Equal(t, `["AUTHORIZE","A-1","CREATED","50.00"]`, o.Get("[intent,purchase_units.0.custom_id,purchase_units.0.payments.authorizations.0.status,purchase_units.0.amount.value]").Raw)

	// Without a preference only what is needed is answered.
	a := s.capture("paypal", held, 2000, "m-1", "k-1")
	a.header = nil
	brief := s.do("paypal", a)
	require.Equal(t, 201, brief.status)
	require.Equal(t, []string{"id", "links", "status"}, members(brief.body))
	capture := s.get("paypal", "/v2/payments/captures/"+brief.body.Get("id").String()).body
	require.Equal(t, `["COMPLETED","20.00","EUR","m-1","A-1",false]`, capture.Get("[status,amount.value,amount.currency_code,invoice_id,custom_id,final_capture]").Raw)
	require.Equal(t, []string{auth, orderID}, []string{capture.Get("supplementary_data.related_ids.authorization_id").String(), capture.Get("supplementary_data.related_ids.order_id").String()})
	require.Equal(t, "PARTIALLY_CAPTURED", s.get("paypal", "/v2/payments/authorizations/"+auth).body.Get("status").String())

	twice := s.do("paypal", s.capture("paypal", held, 100, "m-1", "k-2"))
	require.Equal(t, "DUPLICATE_INVOICE_ID", twice.body.Get("details.0.issue").String())
	a = s.capture("paypal", held, 1000, "m-2", "k-3")
	a.body = strings.Replace(a.body, "{", `{"final_capture":true,`, 1)
	second := s.do("paypal", a).body
	require.True(t, second.Get("final_capture").Bool())
	require.Equal(t, "CAPTURED", s.get("paypal", "/v2/payments/authorizations/"+auth).body.Get("status").String())
	require.Equal(t, "AUTHORIZATION_ALREADY_CAPTURED", s.do("paypal", s.capture("paypal", held, 1, "m-3", "k-4")).body.Get("details.0.issue").String())

	// A refund is of one capture.
	of := bank.Payment{IDs: []string{second.Get("id").String()}}
	require.Equal(t, "REFUND_AMOUNT_EXCEEDED", s.do("paypal", s.refund("paypal", of, 1001, "m-4", "k-5")).body.Get("details.0.issue").String())
	s.do("paypal", s.refund("paypal", of, 400, "m-5", "k-6"))
	refund := s.do("paypal", s.refund("paypal", of, 600, "m-6", "k-7")).body
	require.Equal(t, `["COMPLETED","6.00","m-6","10.00"]`, refund.Get("[status,amount.value,custom_id,seller_payable_breakdown.total_refunded_amount.value]").Raw)
	require.Contains(t, refund.Get(`links.#(rel=="up").href`).String(), "/v2/payments/captures/"+of.IDs[0])
	require.Equal(t, refund.Raw, s.get("paypal", "/v2/payments/refunds/"+refund.Get("id").String()).text)
	require.Equal(t, "REFUNDED", s.get("paypal", "/v2/payments/captures/"+of.IDs[0]).body.Get("status").String())
	o = s.get("paypal", "/v2/checkout/orders/"+orderID).body
	require.Equal(t, `[2,2]`, o.Get("[purchase_units.0.payments.captures.#,purchase_units.0.payments.refunds.#]").Raw)

	let := s.pay("paypal", "A-2", false)
	a = s.void("paypal", let, "", "k-8")
	require.Equal(t, 204, s.do("paypal", a).status)
	require.Equal(t, 204, s.do("paypal", a).status, "repeated")
	other := s.pay("paypal", "A-3", false)
	s.do("paypal", s.capture("paypal", other, 1000, "m-9", "k-9"))
	a = s.void("paypal", other, "", "k-10")
	a.header = map[string]string{"Prefer": "return=representation"}
	voided := s.do("paypal", a)
	require.Equal(t, 200, voided.status)
	require.Equal(t, "VOIDED", voided.body.Get("status").String())
	require.EqualValues(t, 1000, s.book(other).Sums["EUR"].Captured, "the rest is let go of")

	for _, row := range []struct{ value, issue string }{
		{`{"value":"1.001","currency_code":"EUR"}`, "DECIMAL_PRECISION"},
		{`{"value":"-1.00","currency_code":"EUR"}`, "CANNOT_BE_ZERO_OR_NEGATIVE"},
		{`{"value":"1.00","currency_code":"USD"}`, "REFUND_CAPTURE_CURRENCY_MISMATCH"},
		{`{"value":1,"currency_code":"EUR"}`, "DECIMAL_PRECISION"},
	} {
		got := s.do("paypal", ask{method: "POST", path: "/v2/payments/captures/" + brief.body.Get("id").String() + "/refund", body: `{"amount":` + row.value + `}`})
		require.Equal(t, row.issue, got.body.Get("details.0.issue").String())
	}
	require.Equal(t, 400, s.do("paypal", ask{method: "POST", path: "/v2/payments/captures/X/refund", body: "{"}).status)
	for _, path := range []string{
		"/v2/payments/captures/" + auth, "/v2/payments/authorizations/" + of.IDs[0], "/v2/payments/refunds/" + auth, "/v2/checkout/orders/" + auth, "/v2/payments/refunds/X", "/v1/nothing",
	} {
		require.Equal(t, 404, s.get("paypal", path).status, path)
	}
	// All that is left, where no amount is named.
	rest := s.do("paypal", ask{method: "POST", path: "/v2/payments/captures/" + brief.body.Get("id").String() + "/refund", key: "k-11"})
	require.Equal(t, 201, rest.status)
	require.EqualValues(t, 3000, s.book(held).Sums["EUR"].Refunded)
}

func TestPayPalList(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("paypal", "A-1", true)
	for i := range 6 {
		s.clock.add(time.Minute)
		s.do("paypal", s.refund("paypal", p, 100, "m", fmt.Sprint("k", i)))
	}
	s.Pump(t.Context())
	sent := map[string]string{}
	for _, w := range s.inbox.hook {
		sent[gjson.GetBytes(w.Delivery.Body, "id").String()] = string(w.Delivery.Body)
	}
	require.Len(t, sent, 7)
	path, seen := "/v1/notifications/webhooks-events?page_size=3&start_time=2026-09-21T12:00:00Z&end_time=2026-09-21T12:05:00Z", 0
	for path != "" {
		page := s.get("paypal", path).body
		for _, e := range page.Get("events").Array() {
			require.Equal(t, sent[e.Get("id").String()], e.Raw)
			seen++
		}
		next := page.Get(`links.#(rel=="next").href`).String()
		u, err := url.Parse(next)
		require.NoError(t, err)
		path = u.RequestURI()
		if next == "" {
			path = ""
		}
	}
	require.Equal(t, 6, seen, "both ends are in it")
	require.EqualValues(t, 1, s.get("paypal", "/v1/notifications/webhooks-events?event_type=PAYMENT.CAPTURE.COMPLETED").body.Get("count").Int())
	for _, query := range []string{"start_time=x", "page_size=0", "page_size=301", "from=-1"} {
		require.Equal(t, 400, s.get("paypal", "/v1/notifications/webhooks-events?"+query).status)
	}
	s.clock.add(30 * 24 * time.Hour)
	require.EqualValues(t, 1, s.get("paypal", "/v1/notifications/webhooks-events").body.Get("count").Int())
}
