package gateway_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
)

// TestOneObjectInManySpellings: an API may take an id in any case of its letters,
// and a stranger may announce it in each. Whatever it is asked by, an answer is
// about the same payment, or about none.
func TestOneObjectInManySpellings(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		if g.Fetch == nil {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			s := g.Example("spelling")
			s.ID, s.Account = "source", "shop"
			for _, typ := range g.Types(s) {
				o, body, err := g.Fetch.Sample(gateway.SampleRequest{Source: s, Type: typ.Name, Reference: "ord_1", At: now})
				if err != nil {
					continue // a type that deliveries carry whole
				}
				want, err := g.Fetched(s, o, gateway.Answer{Body: body, Started: now})
				require.NoError(t, err, typ.Name)
				other := gateway.Object{Kind: o.Kind, ID: strings.Map(otherCase, o.ID)}
				if other == o {
					continue
				}
				got, err := g.Fetched(s, other, gateway.Answer{Body: body, Started: now})
				if err != nil {
					require.ErrorAs(t, err, new(*gateway.ParseError))
					continue
				}
				require.Len(t, got, len(want))
				for i := range got {
					require.Equal(t, want[i].Payment, got[i].Payment, typ.Name)
					require.Equal(t, want[i].Facts, got[i].Facts, typ.Name)
				}
			}
		})
	}
}

func otherCase(r rune) rune {
	if unicode.IsUpper(r) {
		return unicode.ToLower(r)
	}
	return unicode.ToUpper(r)
}

// TestClipIDs: the ids are UUIDs, which databases take in any case. So there is
// one spelling, and a checkout announced in another is the same object.
func TestClipIDs(t *testing.T) {
	t.Parallel()
	const uuid = "0198aaaa-bbbb-7ccc-8ddd-eeeeffff0001"
	s := sourceNamed(t, "clip")
	for _, id := range []string{uuid, strings.ToUpper(uuid), "0198AAaa-bbbb-7ccc-8DDD-eeeeffff0001"} {
		objects, err := gateway.Clip.Objects(s, deliver(t, s, []byte(`{"payment_request_id":"`+id+`"}`)))
		require.NoError(t, err)
		require.Equal(t, []gateway.Object{{Kind: "checkout", ID: uuid}}, objects)
		events, err := gateway.Clip.Fetched(s, objects[0], gateway.Answer{Started: now, Body: []byte(
			`{"payment_request_id":"` + id + `","status":"CHECKOUT_COMPLETED","amount":25,"currency":"MXN","metadata":{}}`)})
		require.NoError(t, err, "the answer may write it as it likes")
		require.Equal(t, []string{uuid}, events[0].Payment)
	}
	objects, err := gateway.Clip.Objects(s, deliver(t, s, []byte(`{"payment_request_id":"AbCdEfGh-1"}`)))
	require.NoError(t, err)
	require.Equal(t, "AbCdEfGh-1", objects[0].ID, "what is no UUID stays as it is")
	_, err = gateway.Clip.Fetched(s, objects[0], gateway.Answer{Started: now, Body: []byte(`{"payment_request_id":"abcdefgh-1","status":"CHECKOUT_COMPLETED"}`)})
	require.ErrorAs(t, err, new(*gateway.ParseError))
}
