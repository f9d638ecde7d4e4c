package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var _ = conforms("standard", conformance{
	source:      ptr(standardSource()),
	unknownType: map[string]string{"type": "customer.created"},
	amount:      "data.amount",
	currency:    "data.currency",
	typ:         "payment.succeeded",
	noMode:      true,
})

func TestStandardIDIsTheHeader(t *testing.T) {
	t.Parallel()
	s := standardSource()
	body := sample(t, gateway.SampleRequest{Source: s, Type: "payment.succeeded", Reference: "ord_7"})
	read := func(header http.Header) (order.Event, error) {
		evs, err := gateway.Standard.Events(s, gateway.Delivery{Header: header, Body: body})
		if err != nil {
			return order.Event{}, err
		}
		return evs[0], nil
	}
	header, signed, err := gateway.Standard.SignID(s, body, "msg_1", now)
	require.NoError(t, err)
	require.Equal(t, string(body), string(signed))
	first, err := read(header)
	require.NoError(t, err)
	require.Equal(t, "msg_1", first.ID)
	require.Equal(t, now, first.At)

	header, _, err = gateway.Standard.SignID(s, body, "msg_1", now.Add(time.Hour))
	require.NoError(t, err)
	again, err := read(header)
	require.NoError(t, err)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, first.Facts, again.Facts)
	require.Equal(t, now.Add(time.Hour), again.At)

	// Svix writes the same under names of its own, and some senders in lower case.
	svix, err := read(http.Header{"Svix-Id": {"msg_1"}, "Svix-Timestamp": {"1767258000"}})
	require.NoError(t, err)
	require.Equal(t, first, svix)
	lower, err := read(http.Header{"webhook-id": {"msg_1"}, "webhook-timestamp": {"1767258000"}})
	require.NoError(t, err)
	require.Equal(t, first, lower)

	for _, id := range []string{"", "a\x00b", "a\nb", strings.Repeat("x", 513), "\xff"} {
		_, err := read(http.Header{"Webhook-Id": {id}})
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, "%q", id)
		require.Equal(t, "no_event_id", parse.Code)
	}
	for _, at := range []string{"", "x", "-1", "0", "1e9", "253402300800"} {
		ev, err := read(http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {at}})
		require.NoError(t, err)
		require.True(t, ev.At.IsZero(), at)
	}
}

func TestStandardMap(t *testing.T) {
	t.Parallel()
	body := []byte(`{"a/b":{"~":[{"kind":"paid","who":12345678901234567890,"ref":"ord_7","n":5000,"cur":"Eur"}]},"other":"ord_8"}`)
	s := standardSource()
	s.Map = &gateway.Map{
		Type: "/a~1b/~0/0/kind", Payment: "/a~1b/~0/0/who", Reference: "/a~1b/~0/0/ref", Amount: "/a~1b/~0/0/n", Currency: "/a~1b/~0/0/cur",
		Facts: map[string]string{"paid": "captured"},
	}
	require.NoError(t, gateway.Standard.Check(s))
	ev := event(t, s, body)
	require.Empty(t, ev.Broken)
	require.Equal(t, []string{"12345678901234567890"}, ev.Payment, "an id that is a number loses no digit")
	require.Equal(t, "ord_7", ev.Reference)
	require.Equal(t, []order.Fact{{Kind: order.KindCaptured, Amount: 5000, Currency: "EUR"}}, ev.Facts)
	require.Nil(t, ev.Own, "what was captured is not what the payment is about")

	s.Reference = "/other"
	require.Equal(t, "ord_8", event(t, s, body).Reference)
	s.Reference, s.Map.Reference = "", ""
	require.Empty(t, event(t, s, body).Reference)

	s.Map.Facts = map[string]string{"paid": "authorized"}
	require.Equal(t, &order.Amount{Minor: 5000, Currency: "EUR"}, event(t, s, body).Own)
	s.Map.Facts = map[string]string{"paid": "refunded"}
	s.Map.Reference = "/other"
	ev = event(t, s, body)
	require.Equal(t, order.StrengthModification, ev.Strength)
	require.Nil(t, ev.Own)
}

func TestStandardAmbiguous(t *testing.T) {
	t.Parallel()
	for _, twice := range []string{
		`"type":"payment.succeeded",`, `"data":{},`, `"t\u0079pe":"refund.succeeded",`,
	} {
		body := `{` + twice + `"type":"payment.succeeded","data":{"payment_id":"p","amount":1,"currency":"EUR"}}`
		ev := event(t, standardSource(), []byte(body))
		require.Contains(t, ev.Broken, "occurs twice", twice)
	}
	for _, twice := range []string{`"amount":2`, `"currency":"USD"`, `"payment_id":"q"`, `"order_id":"a","order_id":"b"`, `"amoun\u0074":2`} {
		body := `{"type":"payment.succeeded","data":{` + twice + `,"payment_id":"p","amount":1,"currency":"EUR"}}`
		ev := event(t, standardSource(), []byte(body))
		require.Contains(t, ev.Broken, "occurs twice", twice)
		require.Empty(t, ev.Facts)
	}
	// Keys of another case are other keys.
	ev := event(t, standardSource(), []byte(`{"Type":"x","type":"payment.succeeded","data":{"Amount":9,"payment_id":"p","amount":1,"currency":"EUR"}}`))
	require.Empty(t, ev.Broken)
	require.Equal(t, int64(1), ev.Facts[0].Amount)
}

func TestStandardWithoutMap(t *testing.T) {
	t.Parallel()
	s := standardSource()
	s.Map = nil
	require.ErrorContains(t, gateway.Standard.Check(s), "map is missing")
	_, err := gateway.Standard.Events(s, gateway.Delivery{Header: http.Header{"Webhook-Id": {"a"}}, Body: []byte("{}")})
	require.Error(t, err)
	_, err = gateway.Standard.Sample(gateway.SampleRequest{Source: s, Type: "payment.succeeded"})
	require.Error(t, err)
	require.Empty(t, gateway.Standard.Types(s))
}
