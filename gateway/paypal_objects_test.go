package gateway_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// TestPayPalAnnouncesNothing: deliveries are as they were, whatever can be asked.
func TestPayPalAnnouncesNothing(t *testing.T) {
	t.Parallel()
	require.False(t, gateway.PayPal.Announces())
	s := paypalSource()
	for _, typ := range gateway.PayPal.Types(s) {
		objects, err := gateway.PayPal.Objects(s, deliver(t, s, sample(t, gateway.SampleRequest{Source: s, Type: typ.Name})))
		require.NoError(t, err)
		require.Empty(t, objects)
	}
	require.True(t, gateway.MercadoPago.Announces())
}

// TestPayPalAbout: what is asked about, by the ids that a payment is known under.
func TestPayPalAbout(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	for _, tt := range []struct {
		ids  []string
		want string
	}{
		{[]string{ppTaken, ppHeld, ppPlace}, "order/" + ppOrder},
		{[]string{ppTaken, ppDirect}, "order/" + ppOrder},
		{[]string{ppHeld, "authorizations/" + ppHeld, ppPlace}, "order/" + ppOrder},
		{[]string{ppHeld, "authorizations/" + ppHeld}, "authorization/" + ppHeld},
		{[]string{ppTaken, "captures/" + ppTaken}, "capture/" + ppTaken},
		{[]string{ppTaken, ppHeld}, ""}, // which is which?
		{[]string{"orders/../authorizations/" + ppHeld, "orders/x/captures/" + ppTaken, "captures/", "orders/A/captures/B/C", "refunds/A"}, ""},
		{nil, ""},
	} {
		var got []string
		for _, o := range gateway.PayPal.Fetch.About(s, tt.ids) {
			got = append(got, o.String())
			call, err := gateway.PayPal.Fetch.Call(s, o)
			require.NoError(t, err)
			require.NotNil(t, call.Grant)
		}
		require.Equal(t, tt.want, strings.Join(got, " "), tt.ids)
	}
	s.ClientID, s.ClientSecret = "", ""
	require.Empty(t, gateway.PayPal.Fetch.About(s, []string{ppTaken, ppDirect}), "nobody may ask")
	_, err := gateway.PayPal.Fetch.Call(s, gateway.Object{Kind: "order", ID: ppOrder})
	require.ErrorContains(t, err, "client_id")
	for _, o := range []gateway.Object{{Kind: "refund", ID: ppTaken}, {Kind: "order", ID: "../x"}, {Kind: "order", ID: strings.ToLower(ppOrder)}} {
		_, err := gateway.PayPal.Fetch.Call(paypalSource(), o)
		require.ErrorAs(t, err, new(*gateway.ParseError))
	}
}

// TestPayPalAsksWhatWebhooksSay: what the API shows has the facts of the webhook that says the same, of the same payment.
func TestPayPalAsksWhatWebhooksSay(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	for _, typ := range gateway.PayPal.Types(s) {
		r := gateway.SampleRequest{Source: s, Type: typ.Name, Reference: "ord_7", At: now}
		o, body, err := gateway.PayPal.Fetch.Sample(r)
		if err != nil {
			require.Regexp(t, `^(CUSTOMER|PAYMENT\.SALE)\.`, typ.Name)
			continue
		}
		told, err := gateway.PayPal.Fetched(s, o, gateway.Answer{Body: body, Started: now})
		require.NoError(t, err)
		got, want := told[len(told)-1], sampled(t, r)
		if typ.Name == "PAYMENT.CAPTURE.DENIED" {
			want.Type = "PAYMENT.CAPTURE.DECLINED" // one word less
		}
		if typ.Name == "PAYMENT.CAPTURE.REVERSED" { // the API does not say who took it
			want.Type, want.Facts[0].Forced = "PAYMENT.CAPTURE.REFUNDED", false
		}
		want.ID = got.ID
		require.Equal(t, want, got, typ.Name)
	}
}

// TestPayPalAskedReference: a reference of the source's own points into events, and finds the same in what the API shows.
func TestPayPalAskedReference(t *testing.T) {
	t.Parallel()
	r := gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.COMPLETED", Reference: "ord_7", Set: set("invoice_id", "inv_1")}
	for pointer, want := range map[string]string{"": "ord_7", "/resource/invoice_id": "inv_1", "/summary": ""} {
		r.Source.Reference = pointer
		o, body, err := gateway.PayPal.Fetch.Sample(r)
		require.NoError(t, err)
		told, err := gateway.PayPal.Fetched(r.Source, o, gateway.Answer{Body: body, Started: now})
		require.NoError(t, err)
		require.Equal(t, want, told[0].Reference)
	}
}

// someSpan is a span whose ends are no whole seconds.
var someSpan = gateway.Span{From: now.Add(500 * time.Millisecond), Until: now.Add(time.Hour + time.Millisecond)}

// TestPayPalListing: pages follow each other by their links, and hold the events as the webhook brings them.
func TestPayPalListing(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	list := gateway.PayPal.Listing
	require.NoError(t, list.Ready(s))
	require.Equal(t, "https://api-m.sandbox.paypal.com", list.BaseURL(s))
	call, err := list.Call(s, someSpan, "")
	require.NoError(t, err)
	require.Equal(t, "/v1/notifications/webhooks-events?end_time=2026-01-01T10%3A00%3A01Z&page_size=100&start_time=2026-01-01T09%3A00%3A00Z", call.Path)
	require.Equal(t, "/v1/oauth2/token", call.Grant.Path)

	one := sample(t, gateway.SampleRequest{Source: s, Type: "PAYMENT.CAPTURE.COMPLETED", Reference: "ord_7", At: now})
	two := sample(t, gateway.SampleRequest{Source: s, Type: "CUSTOMER.DISPUTE.CREATED", Reference: "ord_7", At: now})
	plan := `{"id":"WH-1","event_type":"BILLING.PLAN.CREATED","resource":{}}`
	next := "https://api.sandbox.paypal.com" + "/v1/notifications/webhooks-events?page_size=100&index_id=7&move_to=next"
	body := fmt.Sprintf(`{"events":[%s,%s,%s],"count":3,"links":[{"rel":"self","href":"x"},{"rel":"next","href":%q}]}`, one, plan, two, next)
	page, err := list.Read(s, gateway.Answer{Body: []byte(body), Started: now})
	require.NoError(t, err)
	require.Len(t, page.Deliveries, 2, "what moves no money is left out")
	for i, body := range [][]byte{one, two} {
		got, err := gateway.PayPal.Read(s, page.Deliveries[i])
		require.NoError(t, err)
		require.Equal(t, events(t, s, body), got, "an event as the webhook brings it")
	}
	call, err = list.Call(s, someSpan, page.Next)
	require.NoError(t, err)
	require.Equal(t, "/v1/notifications/webhooks-events?index_id=7&move_to=next&page_size=100", call.Path)

	for name, last := range map[string]string{
		"NoLink": `{"events":[` + string(one) + `],"links":[]}`, "NoLinks": `{"events":[]}`, "Empty": strings.Replace(body, "["+string(one)+","+plan+","+string(two)+"]", "[]", 1),
	} {
		page, err := list.Read(s, gateway.Answer{Body: []byte(last), Started: now})
		require.NoError(t, err, name)
		require.Empty(t, page.Next, name)
	}
	for name, bad := range map[string]string{
		"NotJSON": "<html>", "NoEvents": `{"links":[]}`, "EventsNoList": `{"events":{}}`, "NoEvent": `{"events":[7]}`, "NoID": `{"events":[{"event_type":"X"}]}`,
		"EventsTwice": `{"events":[],"events":[]}`, "IDTwice": `{"events":[{"id":"a","id":"b"}]}`,
		"LeadsElsewhere": strings.Replace(body, "/v1/notifications", "/v1/other", 1), "NoQuery": strings.Replace(body, "?page_size=100&index_id=7&move_to=next", "", 1),
		"NoURL": strings.Replace(body, next, "https://%zz", 1), "BadQuery": strings.Replace(body, "index_id=7", "index_id=%zz", 1),
		"TooMany": `{"events":[` + strings.Repeat(plan+",", 1000) + plan + `]}`,
	} {
		_, err := list.Read(s, gateway.Answer{Body: []byte(bad), Started: now})
		require.ErrorAs(t, err, new(*gateway.ParseError), name)
	}
	_, err = list.Call(s, someSpan, "%zz")
	require.ErrorAs(t, err, new(*gateway.ParseError))
	s.ClientSecret = ""
	require.ErrorContains(t, list.Ready(s), "client_secret")
	_, err = list.Call(s, someSpan, "")
	require.ErrorContains(t, err, "client_secret")
}

// TestPayPalFetchedOnce: a state that is read again is the same event, and another state another.
func TestPayPalFetchedOnce(t *testing.T) {
	t.Parallel()
	s := paypalSource()
	o := gateway.Object{Kind: "order", ID: ppOrder}
	ids := func(body string) []string {
		told, err := gateway.PayPal.Fetched(s, o, gateway.Answer{Body: []byte(body), Started: now})
		require.NoError(t, err)
		var ids []string
		for _, ev := range told {
			ids = append(ids, ev.ID)
			require.NoError(t, ev.Validate())
		}
		return ids
	}
	m := ppRefund("1500 EUR")
	before, after := ppShown(m, "PARTIALLY_CAPTURED", []string{ppFirst(m, "COMPLETED")}, nil), ppFound(t, m)
	require.Equal(t, ids(before), ids(before))
	require.Equal(t, ids(before), ids(after)[:2])
	require.Len(t, ids(after), 3)
	require.Equal(t, order.StatusOK, ledgerOf(mustFetch(t, s, o, after)).Money["EUR"].Refunds[ppMade].Status)
	require.True(t, gjson.Valid(after))
}

func mustFetch(t *testing.T, s gateway.Source, o gateway.Object, body string) []order.Event {
	t.Helper()
	told, err := of(t, s).Fetched(s, o, gateway.Answer{Body: []byte(body), Started: now})
	require.NoError(t, err)
	return told
}
