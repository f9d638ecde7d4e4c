package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

func retries(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	if g.Fetch != nil && g.Fetch.Always {
		// What was fetched twice is one event, whenever it was fetched.
		for _, typ := range g.Types(source) {
			r := gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"}
			object, answer, err := g.Fetch.Sample(r)
			require.NoError(t, err)
			first, err := g.Fetched(source, object, gateway.Answer{Body: answer, Started: now})
			require.NoError(t, err)
			second, err := g.Fetched(source, object, gateway.Answer{Body: answer, Started: now.Add(time.Hour)})
			require.NoError(t, err)
			require.Equal(t, gateway.Digest(first), gateway.Digest(second))
		}
	}
	for _, typ := range g.Types(source) {
		r := gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"}
		want := events(t, source, sample(t, r))
		r.Set = c.volatile
		again, err := g.Deliver(source, sample(t, r), "", now.Add(time.Hour)) // another try, another signature
		require.NoError(t, err)
		got, err := g.Events(source, again)
		require.NoError(t, err)
		for i := range want {
			want[i].At, got[i].At = time.Time{}, time.Time{} // standard: of the attempt
		}
		require.Equal(t, want, got)
	}
}

func unknownType(t *testing.T, source gateway.Source, c conformance) {
	require.NotEmpty(t, c.typ, "the conformance names no typ")
	ev := spokenOne(t, gateway.SampleRequest{Source: source, Type: c.typ, Reference: "ord_7", Set: c.unknownType})
	require.NotEmpty(t, ev.ID)
	require.NotEqual(t, c.typ, ev.Type)
	require.Equal(t, gateway.UnknownType, ev.Ignored)
	require.Empty(t, ev.Facts)
	require.Empty(t, ev.Payment, "an ignored event must touch nothing")
	require.Empty(t, ev.Reference)
}

func brokenFacts(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	for path, values := range map[string][]string{c.amount: c.badAmounts, c.currency: c.badCurrencies} {
		if path == "" {
			continue
		}
		for _, value := range values {
			r := gateway.SampleRequest{Source: source, Type: c.typ, Reference: "ord_7", Set: map[string]string{path: value}}
			evs, ok := spoiltEvents(t, g, r)
			if !ok {
				require.True(t, c.strict, "%s = %s cannot be delivered", path, value)
				continue
			}
			require.Len(t, evs, 1)
			require.NotEmpty(t, evs[0].ID)
			require.Equal(t, c.typ, evs[0].Type)
			require.NotEmpty(t, evs[0].Broken, "%s = %s", path, value)
			require.NotContains(t, evs[0].Broken, "abc", "a byte of the payload stands in the reason")
			require.Empty(t, evs[0].Facts)
			require.Nil(t, evs[0].Own)
		}
	}
}

// spoiltEvents maps a sample; ok is false if the verifier is as strict as the
// mapping, so that such a body never gets there.
func spoiltEvents(t *testing.T, g *gateway.Gateway, r gateway.SampleRequest) (evs []order.Event, ok bool) {
	if g.Fetch != nil && g.Fetch.Always {
		object, answer, err := g.Fetch.Sample(r)
		require.NoError(t, err)
		evs, err = g.Fetched(r.Source, object, gateway.Answer{Body: answer, Started: now})
		require.NoError(t, err)
		return evs, true
	}
	body, err := g.Sample(r)
	require.NoError(t, err)
	d, err := g.Deliver(r.Source, body, "", now)
	if err != nil || g.Verify(r.Source, d, now, cases[g.Name].keys...) != nil {
		return nil, false
	}
	evs, err = g.Events(r.Source, d)
	require.NoError(t, err)
	return evs, true
}

func unreadable(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	if c.unreadable != nil {
		d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name}))
		for name, body := range c.unreadable {
			d.Body = []byte(body)
			_ = requireParseError(t, g, source, d, name)
		}
		return
	}
	d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name}))
	for name, tt := range map[string]struct{ body, code string }{
		"Empty":         {"", "not_json"},
		"Null":          {"null", "shape"},
		"String":        {`"pong"`, "shape"},
		"Array":         {"[]", "shape"},
		"Truncated":     {`{"id":"evt_1"`, "not_json"},
		"TwoValues":     {`{}{}`, "not_json"},
		"Form":          {"id=1&type=a", "not_json"},
		"NotUTF8":       {"{\"id\":\"evt_1\",\"x\":\"\xff\xfe\xc3(\"}", "not_utf8"},
		"TooDeep":       {`{"a":` + strings.Repeat("[", 101) + strings.Repeat("]", 101) + "}", "too_deep"},
		"VeryDeep":      {strings.Repeat("[", 1<<20), "too_deep"},
		"ControlInside": {"{\"id\":\"a\nb\"}", "not_json"},
	} {
		bad := d
		bad.Body = []byte(tt.body)
		parse := requireParseError(t, g, source, bad, name)
		require.Equal(t, tt.code, parse.Code, name)
		require.NotContains(t, parse.Error(), "evt_1", "a byte of the payload stands in the error")
	}
	// 100 levels are not too deep, whatever else is missing.
	d.Body = []byte(`{"a":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + "}")
	if _, err := g.Events(source, d); err != nil {
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse)
		require.NotEqual(t, "too_deep", parse.Code)
	}
}

// requireParseError: nothing can be read of the delivery.
func requireParseError(t *testing.T, g *gateway.Gateway, source gateway.Source, d gateway.Delivery, name string) *gateway.ParseError {
	t.Helper()
	var err error
	if g.Parse != nil {
		_, err = g.Events(source, d)
	} else {
		_, err = g.Objects(source, d)
	}
	var parse *gateway.ParseError
	require.ErrorAs(t, err, &parse, name)
	return parse
}

// forged: one bit of the body or of what is covered beside it, and the
// delivery is refused; for adyen that is tested bit by bit elsewhere.
func forged(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	body := sample(t, gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name, Reference: "ord_7"})
	d := deliver(t, source, body)
	if g.Scheme == "" {
		require.NoError(t, g.Verify(source, d, now))
		return
	}
	if g.Remote == nil {
		stranger := g.Example("stranger")
		stranger.PublicURL = source.PublicURL
		require.Equal(t, signature.Mismatch, signature.ReasonOf(g.Verify(withoutBasic(stranger), d, now)))
	}
	none := source
	none.Secrets, none.HMACKeys, none.SigningKeys = nil, nil, source.SigningKeys
	require.Error(t, g.Verify(none, d, now), "no secret, and it verifies")

	if g.Covers.Of != "body" {
		return
	}
	keys := cases[g.Name].keys
	for i := range d.Body {
		bad := d
		bad.Body = bytes.Clone(d.Body)
		bad.Body[i] ^= 1
		require.Error(t, g.Verify(source, bad, now, keys...), "byte %d of the body is not covered", i)
	}
	for _, name := range g.Covers.Fields {
		bad := d
		bad.Header = d.Header.Clone()
		bad.Header.Set(name, bad.Header.Get(name)+"1")
		require.Error(t, g.Verify(source, bad, now, keys...), "header %s is not covered", name)
	}
}

func withoutBasic(s gateway.Source) gateway.Source {
	s.Basic, s.Authorization = "", ""
	return s
}

func keeps(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	for _, name := range g.KeepHeaders {
		require.Equal(t, http.CanonicalHeaderKey(name), name)
		require.NotContains(t, []string{"Authorization", "Cookie", "Proxy-Authorization"}, name)
	}
	d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name}))
	want, err := g.Events(source, d)
	require.NoError(t, err)

	d.Header.Set("Cookie", "session=1")
	d.Header.Set("X-Other", "1")
	kept := g.Keep(d.Header)
	require.NotContains(t, kept, "Cookie")
	require.NotContains(t, kept, "Authorization")
	require.NotContains(t, kept, "X-Other")
	require.Contains(t, kept, "Content-Type")
	require.NotContains(t, fmt.Sprint(kept), "paidonce:")

	// What is kept is enough to read the delivery again.
	d.Header = http.Header{}
	for name, value := range kept {
		d.Header.Set(name, value)
	}
	got, err := g.Events(source, d)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
