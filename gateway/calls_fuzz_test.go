package gateway_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// FuzzCalls holds of every gateway that is called, whatever it answers: no panic, the form of verdicts, the same again from what
// is stored; nothing is done where the answer is no 2xx, or does not name the payment; and what is done has the amount that was asked for.
func FuzzCalls(f *testing.F) {
	var all []*gateway.Gateway
	for _, g := range gateway.All() {
		if g.Calls != nil {
			all = append(all, g)
		}
	}
	if len(all) == 0 {
		f.Skip("no gateway is called")
	}
	movements := map[string][]order.Movement{}
	for i, g := range all {
		c := callers[g.Name]
		names := make([]string, 0, len(c.made))
		for name := range c.made {
			names = append(names, name)
		}
		slices.Sort(names)
		for n, name := range names {
			m := c.made[name]
			movements[g.Name] = append(movements[g.Name], m)
			f.Add(uint8(i), uint8(n), false, uint16(200), []byte(c.done(f, m)))
			if g.Calls.Look != nil {
				f.Add(uint8(i), uint8(n), true, uint16(200), []byte(c.found(f, m)))
				f.Add(uint8(i), uint8(n), true, uint16(200), []byte(c.absent(f, m)))
			}
			for _, status := range []uint16{204, 302, 400, 401, 403, 404, 409, 422, 429, 500} {
				f.Add(uint8(i), uint8(n), n%2 == 0, status, []byte(`{"error":{"type":"a","code":"b","message":"c","param":"amount"},"errorCode":"704","name":"d","details":[{"issue":"e"}]}`))
			}
		}
	}
	f.Fuzz(func(t *testing.T, gw, n uint8, lookup bool, status uint16, body []byte) {
		g := all[int(gw)%len(all)]
		c := callers[g.Name]
		m := movements[g.Name][int(n)%len(movements[g.Name])]
		lookup = lookup && g.Calls.Look != nil
		v := judged(t, c.source, m, answered(int(status), string(body)), lookup)
		if v.Ruling == gateway.Absent || v.Ruling == gateway.Done {
			require.Equal(t, 2, int(status)/100, "%s by an answer %d", v.Ruling, status)
		}
		if v.Ruling != gateway.Done {
			return
		}
		named := bytes.Contains(body, []byte(m.ID)) || bytes.ContainsRune(body, '\\') // an escape may hide it
		for _, id := range m.Payment {
			named = named || bytes.Contains(body, []byte(id))
		}
		require.True(t, named, "done, and neither payment nor movement is named")
		for _, ev := range v.Events {
			for _, fact := range ev.Facts {
				if v.Ref != "" && fact.Ref == v.Ref && fact.Misfit == "" {
					moved := order.Amount{Minor: fact.Amount, Currency: fact.Currency}
					require.Equal(t, moved, m.Amount, "another amount than was asked for")
				}
			}
		}
	})
}

// FuzzListings holds of every gateway that lists: any answer is a page that can be read on, or says why it is none.
func FuzzListings(f *testing.F) {
	var all []*gateway.Gateway
	for _, g := range gateway.All() {
		if g.Listing != nil {
			all = append(all, g)
		}
	}
	s := askingStripe()
	for i := range all {
		f.Add(uint8(i), []byte(stripeEvents(true, string(sample(f, gateway.SampleRequest{Source: s, Type: "refund.created", At: now})), `{"id":"evt_1","object":"event","type":"x"}`)))
		f.Add(uint8(i), []byte(`{"object":"list","data":[{"id":"evt_1","type":"refund.created"}],"has_more":false}`))
		f.Add(uint8(i), []byte(`{"events":[{"id":"WH-1"}],"results":[{"id":1}],"paging":{"total":2,"offset":0,"limit":1},"links":[{"rel":"next","href":"x"}]}`))
		f.Add(uint8(i), []byte(fmt.Sprintf(`{"events":[%s],"links":[{"rel":"next","href":"https://x/v1/notifications/webhooks-events?a=b"}]}`,
			sample(f, gateway.SampleRequest{Source: paypalSource(), Type: "PAYMENT.CAPTURE.COMPLETED", At: now}))))
		f.Add(uint8(i), []byte(`{"results":[{"id":1,"date_last_updated":"2026-01-01T06:00:00.000-04:00"}],"paging":{"total":9,"limit":1,"offset":0}}`))
		f.Add(uint8(i), []byte("null"))
	}
	f.Fuzz(func(t *testing.T, gw uint8, body []byte) {
		g := all[int(gw)%len(all)]
		source := sourceFor(t, g)
		if c, ok := callers[g.Name]; ok {
			source = c.source
		}
		page, err := g.Listing.Read(source, gateway.Answer{Body: body, Started: now})
		if err != nil {
			var parse *gateway.ParseError
			require.ErrorAs(t, err, &parse)
			require.Equal(t, gateway.Page{}, page)
			return
		}
		for _, d := range page.Deliveries {
			evs, err := g.Read(source, d)
			if err != nil {
				var parse *gateway.ParseError
				require.ErrorAs(t, err, &parse)
				continue
			}
			requireForm(t, source, evs)
		}
		for _, o := range page.Objects {
			_, err := g.Fetch.Call(source, o)
			require.NoError(t, err)
		}
		if page.Next != "" {
			call, err := g.Listing.Call(source, gateway.Span{From: now.Add(-time.Hour), Until: now}, page.Next)
			require.NoError(t, err)
			next, err := url.Parse(call.Path)
			require.NoError(t, err)
			first, err := g.Listing.Call(source, gateway.Span{From: now.Add(-time.Hour), Until: now}, "")
			require.NoError(t, err)
			require.Equal(t, next.Path, strings.Split(first.Path, "?")[0], "the next page stands elsewhere")
			require.Equal(t, first.Header, call.Header)
		}
	})
}
