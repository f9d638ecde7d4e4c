package bank_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/internal/gatewaysim/bank"
	"github.com/paidonce/paidonce/order"
)

func (s *stage) get(gw, path string) got { return s.do(gw, ask{method: "GET", path: path}) }

// ids are the ids of what a list shows.
func ids(list gjson.Result) (all []string) {
	for _, one := range list.Get("data").Array() {
		all = append(all, one.Get("id").String())
	}
	return all
}

func TestStripeReads(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	held := s.pay("stripe", "A-1", false)
	require.Equal(t, []string{"pi_", "ch_"}, []string{held.IDs[0][:3], held.IDs[1][:3]})
	intent := s.get("stripe", "/v1/payment_intents/"+held.IDs[0]).body
	require.Equal(t, `["requires_capture",5000,5000,0,"eur","A-1",false,"manual"]`, intent.Get(
		"[status,amount,amount_capturable,amount_received,currency,metadata.order_id,livemode,capture_method]").Raw)
	require.Equal(t, held.IDs[1], intent.Get("latest_charge").String())

	captured := s.do("stripe", s.capture("stripe", held, 3000, "m-1", "k-1")).body
	require.Equal(t, `["succeeded",0,3000,"m-1"]`, captured.Get("[status,amount_capturable,amount_received,metadata.paidonce_transaction]").Raw)
	require.Equal(t, captured.Raw, s.get("stripe", "/v1/payment_intents/"+held.IDs[0]).text)

	refund := s.do("stripe", s.refund("stripe", held, 1000, "m-2", "k-2")).body
	require.Equal(t, `["refund","succeeded",1000,"m-2"]`, refund.Get("[object,status,amount,metadata.paidonce_transaction]").Raw)
	require.Equal(t, refund.Raw, s.get("stripe", "/v1/refunds/"+refund.Get("id").String()).text)
	charge := s.get("stripe", "/v1/charges/"+held.IDs[1]).body
	require.Equal(t, `[5000,3000,1000,true,false]`, charge.Get("[amount,amount_captured,amount_refunded,captured,refunded]").Raw)
	s.do("stripe", s.refund("stripe", held, 2000, "m-3", "k-3"))
	require.True(t, s.get("stripe", "/v1/charges/"+held.IDs[1]).body.Get("refunded").Bool())

	let := s.pay("stripe", "A-2", false)
	a := s.void("stripe", let, "", "k-4")
	a.body = "cancellation_reason=duplicate"
	canceled := s.do("stripe", a).body
	require.Equal(t, `["canceled","duplicate",0]`, canceled.Get("[status,cancellation_reason,amount_capturable]").Raw)

	for path, status := range map[string]int{
		"/v1/payment_intents/pi_x": 404, "/v1/payment_intents/" + held.IDs[1]: 404, "/v1/charges/" + held.IDs[0]: 404, "/v1/refunds/re_x": 404,
		"/v1/events/evt_x": 404, "/v1/customers": 404, "/v1/refunds?limit=0": 400, "/v1/refunds?starting_after=re_x": 400, "/v1/events?created[gte]=x": 400,
	} {
		got := s.get("stripe", path)
		require.Equal(t, status, got.status, path)
		require.Equal(t, "invalid_request_error", got.body.Get("error.type").String(), path)
	}
}

func TestStripeParameters(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	held, paid := s.pay("stripe", "A-1", false), s.pay("stripe", "A-2", true)
	for i, row := range []struct{ path, body, code string }{
		{"/v1/refunds", "", "parameter_missing"},
		{"/v1/refunds", "payment_intent=" + paid.IDs[0] + "&amount=x", "parameter_invalid_integer"},
		{"/v1/refunds", "payment_intent=" + paid.IDs[0] + "&amount=-1", "parameter_invalid_integer"},
		{"/v1/refunds", "payment_intent=" + paid.IDs[0] + "&reason=mine", ""},
		{"/v1/refunds", "charge=ch_x", "resource_missing"},
		{"/v1/payment_intents/" + held.IDs[0] + "/cancel", "cancellation_reason=mine", ""},
		{"/v1/payment_intents/" + held.IDs[0] + "/capture", "amount=1", "parameter_unknown"},
		{"/v1/payment_intents/" + held.IDs[0] + "/capture?x=1", "", ""},
		{"/v1/charges/" + paid.IDs[1] + "/capture", "", "charge_already_captured"},
	} {
		got := s.do("stripe", ask{method: "POST", path: row.path, body: row.body, key: fmt.Sprint("k", i)})
		require.Equal(t, 4, got.status/100, row)
		require.Equal(t, row.code, got.body.Get("error.code").String(), row)
	}
	require.Empty(t, asked(s.book(paid)))
	// All of it, where no amount is named; by the charge too.
	all := s.do("stripe", ask{method: "POST", path: "/v1/refunds", body: "charge=" + paid.IDs[1] + "&reason=duplicate&metadata[a]=b", key: "k"})
	require.Equal(t, `[5000,"b","duplicate"]`, all.body.Get("[amount,metadata.a,reason]").Raw)
	require.Equal(t, 200, s.do("stripe", ask{method: "POST", path: "/v1/charges/" + held.IDs[1] + "/capture", key: "k-c"}).status)
	require.EqualValues(t, 5000, s.book(held).Sums["EUR"].Captured)
}

func TestStripeChargeWithoutIntent(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{})
	p, err := s.Open(bank.Opening{Source: "a.stripe", Reference: "A-1", Amount: order.Amount{Minor: 5000, Currency: "EUR"}, ChargeOnly: true})
	require.NoError(t, err)
	require.Len(t, p.IDs, 1)
	got := s.do("stripe", ask{method: "POST", path: "/v1/charges/" + p.IDs[0] + "/capture", body: "amount=4000", key: "k"})
	require.Equal(t, `["charge",4000,null]`, got.body.Get("[object,amount_captured,payment_intent]").Raw)
	s.do("stripe", ask{method: "POST", path: "/v1/refunds", body: "charge=" + p.IDs[0] + "&amount=1500", key: "k-2"})
	s.Pump(t.Context())
	l := newLedgers(t, s, "stripe")
	l.webhooks()
	require.Equal(t, bank.Sums{Captured: 4000, Refunded: 1500}, l.sums("A-1"))
}

func TestStripeLists(t *testing.T) {
	t.Parallel()
	s := open(t, bank.Options{ListLag: time.Minute})
	p, other := s.pay("stripe", "A-1", true), s.pay("stripe", "A-2", true)
	var made []string
	for i := range 5 {
		s.clock.add(time.Second)
		made = append(made, s.do("stripe", s.refund("stripe", p, 100, "m", fmt.Sprint("k", i))).body.Get("id").String())
	}
	s.do("stripe", s.refund("stripe", other, 100, "m", "k"))

	list := s.get("stripe", "/v1/refunds?limit=2&payment_intent="+p.IDs[0]).body
	require.Equal(t, []string{made[4], made[3]}, ids(list))
	require.True(t, list.Get("has_more").Bool())
	list = s.get("stripe", "/v1/refunds?limit=2&starting_after="+made[3]+"&charge="+p.IDs[1]).body
	require.Equal(t, []string{made[2], made[1]}, ids(list))
	list = s.get("stripe", "/v1/refunds?limit=2&ending_before="+made[0]+"&payment_intent="+p.IDs[0]).body
	require.Equal(t, []string{made[2], made[1]}, ids(list))
	list = s.get("stripe", "/v1/refunds?starting_after="+made[1]+"&payment_intent="+p.IDs[0]).body
	require.Equal(t, []string{made[0]}, ids(list))
	require.False(t, list.Get("has_more").Bool())
	require.EqualValues(t, 6, s.get("stripe", "/v1/refunds").body.Get("data.#").Int())

	// Events: newest first, by time and type, not younger than the lag, not older than 30 days, and those that were sent.
	require.Zero(t, s.get("stripe", "/v1/events").body.Get("data.#").Int())
	s.clock.add(time.Minute)
	s.Pump(t.Context())
	sent := map[string]string{}
	for _, w := range s.inbox.hook {
		body := gjson.ParseBytes(w.Delivery.Body)
		require.EqualValues(t, 1, body.Get("pending_webhooks").Int())
		sent[body.Get("id").String()] = body.Get("data").Raw
	}
	require.Len(t, sent, 16)
	seen, after := 0, ""
	for {
		page := s.get("stripe", "/v1/events?limit=7"+after).body
		last := int64(1 << 60)
		for _, e := range page.Get("data").Array() {
			require.Equal(t, sent[e.Get("id").String()], e.Get("data").Raw)
			require.Zero(t, e.Get("pending_webhooks").Int())
			require.LessOrEqual(t, e.Get("created").Int(), last)
			last, after = e.Get("created").Int(), "&starting_after="+e.Get("id").String()
			seen++
		}
		if !page.Get("has_more").Bool() {
			break
		}
	}
	require.Equal(t, 16, seen)
	at := start.Unix()
	for query, want := range map[string]int64{
		fmt.Sprintf("created[gte]=%d&created[lt]=%d", at+1, at+3): 4, fmt.Sprintf("created[gt]=%d", at+1): 10, fmt.Sprintf("created[lte]=%d", at): 4,
		"type=refund.created": 6, "types[]=refund.created&types[]=charge.refunded": 12,
	} {
		require.Equal(t, want, s.get("stripe", "/v1/events?limit=100&"+strings.NewReplacer("[", "%5B", "]", "%5D").Replace(query)).body.Get("data.#").Int(), query)
	}
	one := s.get("stripe", "/v1/events?limit=1").body.Get("data.0")
	require.Equal(t, one.Raw, s.get("stripe", "/v1/events/"+one.Get("id").String()).text)
	s.clock.add(30*24*time.Hour - time.Minute)
	require.EqualValues(t, 2, s.get("stripe", "/v1/events?limit=100&type=refund.created").body.Get("data.#").Int(), "those of the last second")
	s.clock.add(time.Second)
	require.Zero(t, s.get("stripe", "/v1/events").body.Get("data.#").Int())
}
