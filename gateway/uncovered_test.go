package gateway_test

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// uncovered changes every byte of a delivery that can be changed without the
// signature noticing: body, headers, query. Id, type and facts must stay (facts
// may become misfits), or the delivery must become unreadable. Of a gateway that
// proves no byte, nothing but the object to ask about may come out.
func uncovered(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	if c.bare != nil {
		source = *c.bare
	}
	for _, typ := range g.Types(source) {
		d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7", At: now}))
		want, err := g.Events(source, d)
		require.NoError(t, err)
		objects, err := g.Objects(source, d)
		require.NoError(t, err)
		proved := g.Covers.Of == "body" || g.Covers.Of == "fields"
		if !proved {
			require.Empty(t, want, "nothing is proved, and there are events")
		}
		changed := 0
		for _, bad := range variations(d, c) {
			if g.Verify(source, bad.Delivery, now, c.keys...) != nil {
				continue
			}
			changed++
			got, err := g.Events(source, bad.Delivery)
			if err == nil {
				require.Len(t, got, len(want), bad.where)
				for i := range want {
					require.Equal(t, meaningOf(want[i]), meaningOf(got[i]), "%s: %s", typ.Name, bad.where)
				}
			}
			asked, askErr := g.Objects(source, bad.Delivery)
			if proved && askErr == nil {
				require.Equal(t, objects, asked, "%s: %s", typ.Name, bad.where)
			}
		}
		require.NotZero(t, changed, "the test changed nothing that is not covered")
	}
}

type variation struct {
	gateway.Delivery
	where string
}

// variations are the deliveries that differ from d in one byte of the body or of
// the query, or in one header.
func variations(d gateway.Delivery, c conformance) []variation {
	var all []variation
	for i := range d.Body {
		if slices.ContainsFunc(c.places, func(place string) bool { return within(d.Body, place, i) }) {
			continue
		}
		for _, with := range []byte{d.Body[i] ^ 1, '0', '"'} {
			bad := d
			bad.Body = bytes.Clone(d.Body)
			bad.Body[i] = with
			if with != d.Body[i] {
				all = append(all, variation{bad, fmt.Sprintf("byte %d: …%s…", i, around(d.Body, i))})
			}
		}
	}
	for i := range d.Query {
		bad := d
		bad.Query = d.Query[:i] + string(d.Query[i]^1) + d.Query[i+1:]
		all = append(all, variation{bad, fmt.Sprintf("byte %d of the query", i)})
	}
	names := append(slices.Sorted(maps.Keys(d.Header)), "X-Event-Id", "X-Topic", "X-Forwarded-For", "User-Agent")
	for _, name := range names {
		for _, value := range []string{"", "1", d.Header.Get(name) + "x"} {
			bad := d
			bad.Header = d.Header.Clone()
			bad.Header.Set(name, value)
			all = append(all, variation{bad, fmt.Sprintf("header %s: %q", name, value)})
		}
		bad := d
		bad.Header = d.Header.Clone()
		bad.Header.Del(name)
		all = append(all, variation{bad, "without header " + name})
	}
	bad := d
	bad.Method, bad.Header = http.MethodPut, d.Header.Clone()
	return append(all, variation{bad, "method"})
}

// within reports whether byte i of body belongs to the text place.
func within(body []byte, place string, i int) bool {
	for from := 0; ; {
		at := bytes.Index(body[from:], []byte(place))
		if at < 0 {
			return false
		}
		if at += from; i >= at && i < at+len(place) {
			return true
		}
		from = at + 1
	}
}
