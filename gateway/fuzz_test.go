package gateway_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/gjson"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// seed adds the payloads of testdata.
func seed(f *testing.F, name string) {
	files, err := filepath.Glob(filepath.Join(payloads, name, "*.json"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, file := range files {
		body, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(body)
	}
}

// mapAny maps any bytes, and checks what holds for all of them: no panic, the
// form that Events promises, the same again, and JSON as everybody reads it.
func mapAny(t *testing.T, s gateway.Source, header http.Header, body []byte) []order.Event {
	t.Helper()
	g := of(t, s)
	d := gateway.Delivery{Header: header, Body: body}
	var parse *gateway.ParseError
	if _, err := g.Objects(s, d); err != nil {
		require.ErrorAs(t, err, &parse)
	}
	evs, err := g.Events(s, d)
	if g.Parse == nil {
		require.Empty(t, evs)
		return nil
	}
	if err != nil {
		require.ErrorAs(t, err, &parse)
		require.NotEmpty(t, parse.Code)
		require.Nil(t, evs)
		text := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
		if parse.Code == "not_json" {
			require.False(t, json.Valid(text), "encoding/json reads it")
		}
		if parse.Code == "not_utf8" {
			require.False(t, utf8.Valid(text))
		}
		return nil
	}
	require.True(t, json.Valid(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))), "encoding/json does not read it")
	require.NotEmpty(t, evs)
	requireForm(t, s, evs)
	again, err := g.Events(s, d)
	require.NoError(t, err)
	require.Equal(t, evs, again)
	return evs
}

// fetchAny maps any bytes as what the API answers; the same holds of them.
func fetchAny(t *testing.T, s gateway.Source, o gateway.Object, body []byte) {
	t.Helper()
	g := of(t, s)
	evs, err := g.Fetched(s, o, gateway.Answer{Body: body, Started: now})
	if err != nil {
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse)
		require.Nil(t, evs)
		return
	}
	require.NotEmpty(t, evs)
	requireForm(t, s, evs)
	again, err := g.Fetched(s, o, gateway.Answer{Body: body, Started: now})
	require.NoError(t, err)
	require.Equal(t, evs, again)
}

// requireForm: the events have the form that Events and Fetched promise.
func requireForm(t testing.TB, s gateway.Source, evs []order.Event) {
	t.Helper()
	g := of(t, s)
	for _, ev := range evs {
		require.NoError(t, ev.Validate())
		require.NotEmpty(t, ev.ID)
		require.LessOrEqual(t, len(ev.ID), 512)
		require.Equal(t, ev.ID, order.BaseID(ev.ID))
		require.NotEmpty(t, ev.Type)
		require.LessOrEqual(t, len(ev.Type), 256)
		require.LessOrEqual(t, len(ev.Reference), 512)
		require.Equal(t, g.Realm(s), ev.Realm)
		require.Equal(t, ev.Reference == "", ev.Strength == 0)
		if ev.Ignored != "" || ev.Broken != "" {
			require.Empty(t, ev.Facts)
			require.Nil(t, ev.Own)
		}
		if ev.Renewal != nil {
			require.Empty(t, ev.Ignored)
			require.NotEmpty(t, ev.Renewal.Of)
		}
		for _, fact := range ev.Facts {
			require.GreaterOrEqual(t, fact.Amount, int64(0))
			if fact.Kind == order.KindCaptured && fact.Status != order.StatusFailed {
				require.NotEqual(t, int64(order.All), fact.Amount)
			}
		}
		_, err := json.Marshal(ev)
		require.NoError(t, err)
	}
}

// read reads a body as package encoding/json does.
func read(t *testing.T, body []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))))
	dec.UseNumber()
	var m map[string]any
	require.NoError(t, dec.Decode(&m))
	return m
}

func FuzzStripe(f *testing.F) {
	seed(f, "stripe")
	f.Fuzz(func(t *testing.T, body []byte) {
		evs := mapAny(t, stripeSource(), nil, body)
		if evs == nil {
			return
		}
		require.Len(t, evs, 1)
		m := read(t, body)
		require.Equal(t, strings.ReplaceAll(m["id"].(string), "#", "%23"), evs[0].ID) //nolint:forcetypeassert // it was read
		if evs[0].Broken == "" {
			require.Equal(t, m["type"], evs[0].Type)
		}
	})
}

func FuzzStandard(f *testing.F) {
	seed(f, "standard")
	f.Fuzz(func(t *testing.T, body []byte) {
		header := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1767258000"}}
		evs := mapAny(t, standardSource(), header, body)
		if evs == nil || evs[0].Broken != "" || evs[0].Ignored != "" {
			return
		}
		m := read(t, body)
		data, ok := m["data"].(map[string]any)
		require.True(t, ok)
		number, err := data["amount"].(json.Number).Int64() //nolint:forcetypeassert // it was read
		require.NoError(t, err)
		require.Equal(t, number, evs[0].Facts[0].Amount)
		require.Equal(t, m["type"], evs[0].Type)
	})
}

// FuzzAdyen also checks that what is signed is what is read: if the verifier
// accepts a body, an independent reader finds the same in it as the mapping.
func FuzzAdyen(f *testing.F) {
	seed(f, "adyen")
	f.Fuzz(func(t *testing.T, body []byte) {
		mapAny(t, adyenSource(), nil, body)
		s := bareAdyen()
		mapAny(t, s, nil, body)

		header, signed, err := gateway.Adyen.Sign(s, body, now)
		if err != nil {
			return
		}
		d := gateway.Delivery{Header: header, Body: signed}
		require.NoError(t, gateway.Adyen.Verify(s, d, now))
		evs, err := gateway.Adyen.Events(s, d)
		var parse *gateway.ParseError
		if errors.As(err, &parse) {
			require.Equal(t, "too_deep", parse.Code, "a signed body that cannot be read: %v", err)
			return
		}
		require.NoError(t, err)
		items, ok := read(t, signed)["notificationItems"].([]any)
		require.True(t, ok)
		require.Len(t, evs, len(items))
		for i, ev := range evs {
			if ev.Broken != "" {
				continue
			}
			item := items[i].(map[string]any)["NotificationRequestItem"].(map[string]any) //nolint:forcetypeassert // the verifier read it
			id := item["pspReference"].(string) + ":" + item["eventCode"].(string) + ":" + item["success"].(string)
			if len(id) <= 512 {
				require.Equal(t, strings.ReplaceAll(id, "#", "%23"), ev.ID)
			}
			require.Equal(t, item["eventCode"], ev.Type)
			if ev.Reference != "" {
				require.Equal(t, item["merchantReference"], ev.Reference)
			}
			if ev.Own != nil && ev.Own.Currency == "EUR" {
				amount := item["amount"].(map[string]any) //nolint:forcetypeassert // it was read
				number, err := amount["value"].(json.Number).Int64()
				require.NoError(t, err)
				require.Equal(t, number, ev.Own.Minor)
			}
		}
	})
}

// FuzzMembers puts any JSON in the place of any value of a sample, so that what
// is tried is a payload and not noise.
func FuzzMembers(f *testing.F) {
	all := gateway.All()
	for _, raw := range []string{
		`null`, `"x"`, `""`, `7`, `-1`, `1.5`, `1e3`, `9223372036854775807`, `true`, `{}`, `[]`, `[[]]`, `{"id":"x","id":"y"}`, `{"id":"x"}`,
		`{"data":[{"id":"ch_1"},7]}`, `{"data":[{"payment":{"payment_intent":"pi_1"}}]}`, `"\ud800"`, `"\u0000"`, `"a","amount":1`, `"isk"`, "\"\xff\"",
	} {
		for g := range all {
			for member := range 12 {
				f.Add(uint8(g), uint8(member*2), uint8(member), raw)
			}
		}
	}
	f.Fuzz(func(t *testing.T, gw, typ, member uint8, raw string) {
		g := all[int(gw)%len(all)]
		source := sourceFor(t, g)
		types := g.Types(source)
		r := gateway.SampleRequest{Source: source, Type: types[int(typ)%len(types)].Name, Reference: "ord_7"}
		body := sample(t, r)
		if g.Fetch != nil && g.Fetch.Always {
			object, answer, err := g.Fetch.Sample(r)
			require.NoError(t, err)
			fetchAny(t, source, object, replaceMember(answer, member, raw))
		}
		if !json.Valid(body) {
			return // a form, which FuzzPings reads, or the gateway's own fuzz test
		}
		changed := replaceMember(body, member, raw)
		header := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1767258000"}}
		mapAny(t, source, header, changed)
		if g.Name == "adyen" {
			mapAny(t, bareAdyen(), header, changed)
		}
	})
}

// FuzzPings reads any body of any gateway that is asked: no id comes out that has
// not the form of the gateway's ids.
func FuzzPings(f *testing.F) {
	var asked []*gateway.Gateway
	for _, g := range gateway.All() {
		if g.Announces() {
			asked = append(asked, g)
		}
	}
	for i, g := range asked {
		for _, file := range payloadFiles(f, g.Name) {
			body, err := os.ReadFile(file)
			require.NoError(f, err)
			f.Add(uint8(i), "data.id=1&type=payment", body)
		}
	}
	f.Fuzz(func(t *testing.T, gw uint8, query string, body []byte) {
		g := asked[int(gw)%len(asked)]
		s := sourceFor(t, g)
		objects, err := g.Objects(s, gateway.Delivery{Query: query, Body: body})
		if err != nil {
			var parse *gateway.ParseError
			require.ErrorAs(t, err, &parse)
		}
		for _, o := range objects {
			again, ok := gateway.ParseObject(o.String())
			require.True(t, ok)
			require.Equal(t, o, again)
			call, err := g.Fetch.Call(s, o)
			require.NoError(t, err, "an object that cannot be asked about")
			require.True(t, strings.HasPrefix(call.Path, "/"))
			for _, segment := range strings.Split(call.Path[1:], "/") {
				require.NotContains(t, []string{"", ".", ".."}, segment, "a path that leads elsewhere")
			}
		}
	})
}

// replaceMember puts raw in the place of a value of body.
func replaceMember(body []byte, member uint8, raw string) []byte {
	places := members(gjson.ParseBytes(body), nil)
	at := places[int(member)%len(places)]
	return slices.Concat(body[:at[0]], []byte(raw), body[at[1]:])
}

// members returns where every value of a document stands.
func members(v gjson.Result, places [][2]int) [][2]int {
	v.ForEach(func(_, value gjson.Result) bool {
		places = append(places, [2]int{value.Index, value.Index + len(value.Raw)})
		if value.IsObject() || value.IsArray() {
			places = members(value, places)
		}
		return true
	})
	return places
}
