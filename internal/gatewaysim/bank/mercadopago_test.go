package bank_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

func TestMercadoPagoReads(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	held := s.pay("mercadopago", "A-1", false)
	path := "/v1/payments/" + held.IDs[0]
	show := func() gjson.Result { return s.get("mercadopago", path).body }
	require.Equal(t, `["authorized","pending_capture",50.00,0.00,"A-1",false]`, show().Get("[status,status_detail,transaction_amount,transaction_amount_refunded,external_reference,captured]").Raw)
	before := show().Get("date_last_updated").String()
	require.Equal(t, show().Get("date_created").String(), before)
	captured := s.do("mercadopago", s.capture("mercadopago", held, 3000, "", "k-1"))
	require.Equal(t, `["approved","accredited",30.00,true]`, captured.body.Get("[status,status_detail,transaction_amount,captured]").Raw)
	require.Greater(t, show().Get("date_last_updated").String(), before, "also if the clock stands still")

	first := s.do("mercadopago", s.refund("mercadopago", held, 1000, "m-1", "k-2"))
	require.Equal(t, 201, first.status)
	require.Equal(t, `["approved",10.00,"m-1"]`, first.body.Get("[status,amount,metadata.paidonce_transaction]").Raw)
	require.Equal(t, held.IDs[0], first.body.Get("payment_id").Raw)
	require.Equal(t, `["approved","partially_refunded",10.00]`, show().Get("[status,status_detail,transaction_amount_refunded]").Raw)
	require.Equal(t, show().Get("refunds").Raw, s.get("mercadopago", path+"/refunds").text)
	require.Equal(t, first.text, s.get("mercadopago", path+"/refunds/"+first.body.Get("id").Raw).text)
	rest := s.do("mercadopago", ask{method: "POST", path: path + "/refunds", key: "k-3"})
	require.Equal(t, "20.00", rest.body.Get("amount").Raw)
	require.Equal(t, `["refunded","refunded",30.00]`, show().Get("[status,status_detail,transaction_amount_refunded]").Raw)

	let := s.pay("mercadopago", "A-2", false)
	require.Equal(t, `["cancelled","by_collector"]`, s.do("mercadopago", s.void("mercadopago", let, "", "")).body.Get("[status,status_detail]").Raw)

	paid := s.pay("mercadopago", "A-3", true)
	for _, row := range []struct {
		method, path, body, code string
		status                   int
	}{
		{"GET", "/v1/payments/1", "", "2000", 404},
		{"GET", "/v1/payments/" + paid.IDs[0] + "/refunds/1", "", "2032", 404},
		{"POST", "/v1/payments/" + paid.IDs[0] + "/refunds", `{"amount":"1"}`, "4041", 400},
		{"POST", "/v1/payments/" + paid.IDs[0] + "/refunds", `{"amount":1.001}`, "4041", 400},
		{"POST", "/v1/payments/" + paid.IDs[0] + "/refunds", `{`, "1", 400},
		{"PUT", "/v1/payments/" + paid.IDs[0], `{"status":"approved"}`, "2016", 400},
		{"PUT", "/v1/payments/" + paid.IDs[0], `{"capture":false}`, "2079", 400},
		{"GET", "/v1/customers", "", "", 404},
	} {
		got := s.do("mercadopago", ask{method: row.method, path: row.path, body: row.body, key: "k"})
		require.Equal(t, row.status, got.status, row)
		require.Equal(t, row.code, got.body.Get("cause.0.code").String(), row)
		require.EqualValues(t, row.status, got.body.Get("status").Int())
	}
}

// TestMercadoPagoHidesWhatIsUnderWay: without the header that asks for it, a refund that is under way looks like a failure. Whoever
// repeats it under its key makes no second one.
func TestMercadoPagoHidesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p := s.pay("mercadopago", "A-1", true)
	path := "/v1/payments/" + p.IDs[0]
	s.Script(bank.Match{Kind: bank.Refund}, bank.Step{bank.RefundPends})
	blind := s.refund("mercadopago", p, 1000, "m-1", "k-1")
	asking := blind.header
	blind.header = nil
	require.Equal(t, 400, s.do("mercadopago", blind).status)
	require.Equal(t, 400, s.do("mercadopago", blind).status)
	require.Len(t, asked(s.book(p)), 1)
	require.Equal(t, "[]", s.get("mercadopago", path+"/refunds").text)
	list := s.do("mercadopago", ask{method: "GET", path: path + "/refunds", header: asking})
	require.Equal(t, `["in_process"]`, list.body.Get("#.status").Raw)
	one := path + "/refunds/" + list.body.Get("0.id").Raw
	require.Equal(t, 404, s.get("mercadopago", one).status)
	require.Equal(t, 200, s.do("mercadopago", ask{method: "GET", path: one, header: asking}).status)
	require.Equal(t, `["approved",0.00,1]`, s.get("mercadopago", path).body.Get("[status,transaction_amount_refunded,refunds.#]").Raw)
	s.Settle(t.Context())
	require.Equal(t, 200, s.do("mercadopago", blind).status)
	require.Equal(t, `["approved",10.00]`, s.get("mercadopago", path).body.Get("[status,transaction_amount_refunded]").Raw)

	p, err := s.Open(bank.Opening{Source: p.Source, Amount: order.Amount{Minor: 5000, Currency: "EUR"}, Captured: true, Unmarked: true})
	require.NoError(t, err)
	made := s.do("mercadopago", s.refund("mercadopago", p, 1000, "m-2", "k-2"))
	require.Equal(t, `{}`, made.body.Get("metadata").Raw)
	require.Equal(t, "m-2", asked(s.book(p))[0].Given)
}

func TestMercadoPagoSearch(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	var payments []bank.Payment
	for i := range 5 {
		payments = append(payments, s.pay("mercadopago", fmt.Sprint("A-", i), true))
		s.clock.add(time.Minute)
	}
	s.do("mercadopago", s.refund("mercadopago", payments[0], 100, "m", "k"))
	ids := func(query string) (ids []string) {
		got := s.get("mercadopago", "/v1/payments/search?"+query)
		require.Equal(t, 200, got.status, got.text)
		for _, r := range got.body.Get("results").Array() {
			ids = append(ids, r.Get("id").Raw)
		}
		return ids
	}
	n := func(at ...int) (want []string) {
		for _, i := range at {
			want = append(want, payments[i].IDs[0])
		}
		return want
	}
	require.Equal(t, n(0, 1, 2, 3, 4), ids("sort=date_created&criteria=asc"))
	require.Equal(t, n(1, 2, 3, 4, 0), ids("sort=date_last_updated&criteria=asc&range=date_last_updated"))
	require.Equal(t, n(0, 4), ids("sort=date_last_updated&criteria=desc&range=date_last_updated&limit=2"))
	require.Equal(t, n(3, 2), ids("sort=date_last_updated&criteria=desc&range=date_last_updated&limit=2&offset=2"))
	require.Equal(t, n(2, 3), ids("range=date_last_updated&begin_date=2026-09-21T12:02:00Z&end_date=2026-09-21T12:03:00.000-00:00"))
	require.Equal(t, n(3), ids("external_reference=A-3"))
	page := s.get("mercadopago", "/v1/payments/search?limit=2&offset=4").body
	require.Equal(t, `[5,2,4,1]`, page.Get("[paging.total,paging.limit,paging.offset,results.#]").Raw)
	for _, query := range []string{"limit=x", "offset=-1", "limit=1001", "begin_date=x"} {
		require.Equal(t, 400, s.get("mercadopago", "/v1/payments/search?"+query).status)
	}
}
