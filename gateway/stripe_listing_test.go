package gateway_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

func stripeEvents(more bool, events ...string) string {
	return fmt.Sprintf(`{"object":"list","url":"/v1/events","has_more":%t,"data":[%s]}`, more, strings.Join(events, ","))
}

// TestStripeListCalls: the calls for the pages of a span, whole seconds and none left out.
func TestStripeListCalls(t *testing.T) {
	t.Parallel()
	l := gateway.Stripe.Listing
	require.ErrorContains(t, l.Ready(stripeSource()), "access_token")
	require.NoError(t, l.Ready(connectedStripe()))
	require.Equal(t, "https://api.stripe.com", l.BaseURL(connectedStripe()))
	require.Equal(t, 30*24*time.Hour, l.Reach)

	for _, tt := range []struct {
		until time.Time
		page  string
		want  url.Values
	}{
		{now.Add(time.Hour), "", url.Values{"created[gte]": {"1767258000"}, "created[lt]": {"1767261600"}, "limit": {"100"}}},
		{now.Add(time.Hour + 1), "", url.Values{"created[gte]": {"1767258000"}, "created[lt]": {"1767261601"}, "limit": {"100"}}},
		{now.Add(time.Hour), "evt_1&x", url.Values{"created[gte]": {"1767258000"}, "created[lt]": {"1767261600"}, "limit": {"100"}, "starting_after": {"evt_1&x"}}},
	} {
		call, err := l.Call(connectedStripe(), gateway.Span{From: now.Add(time.Millisecond), Until: tt.until}, tt.page)
		require.NoError(t, err)
		path, query, _ := strings.Cut(call.Path, "?")
		require.Equal(t, "/v1/events", path)
		got, err := url.ParseQuery(query)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
		require.Empty(t, call.Method)
		require.Equal(t, "acct_1A2b3C", call.Header.Get("Stripe-Account"))
		require.Equal(t, "Bearer rk_test_made_up_for_tests", call.Header.Get("Authorization"))
		require.Empty(t, call.Header.Get("Stripe-Version"), "events keep the version they were made in")
	}
}

// TestStripeListIsTheWebhooks: what the list tells is what the webhooks told, with the same ids and the same facts, byte by byte.
func TestStripeListIsTheWebhooks(t *testing.T) {
	t.Parallel()
	s := askingStripe()
	var bodies []string
	var want []order.Event
	for _, file := range payloadFiles(t, "stripe") {
		body, err := os.ReadFile(file)
		require.NoError(t, err)
		evs, err := gateway.Stripe.Events(s, gateway.Delivery{Body: body})
		if err != nil || !slices.ContainsFunc(gateway.Stripe.Types(s), func(typ gateway.Type) bool { return typ.Name == evs[0].Type }) {
			continue // what is not mapped is left out
		}
		if !json.Valid(body) { // with a byte order mark: no list has one inside
			continue
		}
		bodies = append(bodies, string(body))
		want = append(want, evs...)
	}
	require.Greater(t, len(bodies), 20)
	page, err := gateway.Stripe.Listing.Read(s, gateway.Answer{Body: []byte(stripeEvents(false, bodies...)), Started: now})
	require.NoError(t, err)
	require.Empty(t, page.Next)
	require.Empty(t, page.Objects)
	require.Equal(t, len(bodies), len(page.Deliveries)) //nolint:testifylint // Len would show every byte
	for i, d := range page.Deliveries {
		require.Equal(t, strings.TrimSpace(bodies[i]), string(d.Body))
		evs, err := gateway.Stripe.Read(s, d)
		require.NoError(t, err)
		require.Equal(t, want[i], evs[0])
	}
}

// TestStripeListPages: pages go on after their last event, whatever kind it is of.
func TestStripeListPages(t *testing.T) {
	t.Parallel()
	s := askingStripe()
	paid := string(sample(t, gateway.SampleRequest{Source: s, Type: "payment_intent.succeeded", ID: "evt_2", Reference: "ord_7", At: now}))
	other := `{"id":"evt_1","object":"event","type":"customer.created","data":{}}`
	read := func(body string) (gateway.Page, error) {
		return gateway.Stripe.Listing.Read(s, gateway.Answer{Body: []byte(body), Started: now})
	}
	page, err := read(stripeEvents(true, paid, other))
	require.NoError(t, err)
	require.Len(t, page.Deliveries, 1)
	require.Equal(t, "evt_1", page.Next)
	page, err = read(stripeEvents(false))
	require.NoError(t, err)
	require.Equal(t, gateway.Page{}, page)

	for name, body := range map[string]string{
		"NoJSON": "<html>", "NoList": paid, "NoWordOfMore": `{"object":"list","data":[]}`, "NoData": `{"object":"list","has_more":false}`,
		"MoreAfterNothing": stripeEvents(true), "NoEvent": stripeEvents(false, `{"id":"ch_1","object":"charge"}`), "NoID": stripeEvents(false, `{"object":"event"}`),
		"NoObject": stripeEvents(false, `"evt_1"`), "IDTwice": stripeEvents(false, `{"id":"evt_1","id":"evt_2"}`),
		"DataTwice": `{"object":"list","has_more":false,"data":[],"data":[]}`,
	} {
		page, err := read(body)
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, name)
		require.Equal(t, gateway.Page{}, page, name)
	}
}

// TestStripeListOfConnectedAccount: its own list need not say whose it is; its webhooks do.
func TestStripeListOfConnectedAccount(t *testing.T) {
	t.Parallel()
	s := connectedStripe()
	hook := sample(t, gateway.SampleRequest{Source: s, Type: "payment_intent.succeeded", ID: "evt_2", Reference: "ord_7", At: now})
	require.Contains(t, string(hook), `"account":"acct_1A2b3C"`)
	want := event(t, s, hook)
	require.Empty(t, want.Facts[0].Misfit)
	for name, account := range map[string]string{"Named": `"account":"acct_1A2b3C",`, "Unnamed": "", "Null": `"account":null,`} {
		listed := strings.Replace(string(hook), `"account":"acct_1A2b3C",`, account, 1)
		page, err := gateway.Stripe.Listing.Read(s, gateway.Answer{Body: []byte(stripeEvents(false, listed))})
		require.NoError(t, err)
		evs, err := gateway.Stripe.Read(s, page.Deliveries[0])
		require.NoError(t, err, name)
		require.Equal(t, []order.Event{want}, evs, name)
	}
	// Another's is not made ours, and neither is a connected account's in the platform's own list.
	for source, account := range map[*gateway.Source]string{ptr(s): `"account":"acct_other",`, ptr(askingStripe()): `"account":"acct_1A2b3C",`} {
		listed := strings.Replace(string(hook), `"account":"acct_1A2b3C",`, account, 1)
		page, err := gateway.Stripe.Listing.Read(*source, gateway.Answer{Body: []byte(stripeEvents(false, listed))})
		require.NoError(t, err)
		evs, err := gateway.Stripe.Read(*source, page.Deliveries[0])
		require.NoError(t, err)
		require.Equal(t, order.MisfitAccount, evs[0].Facts[0].Misfit)
	}
}
