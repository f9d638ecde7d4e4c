package gateway_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

// FuzzGateways holds of every gateway, whatever its body is made of:
//
//   - any body that can be delivered verifies, is refused under another's secret,
//     and is mapped or refused without a panic;
//   - of a real delivery, changed in its body or in one header, whatever still
//     verifies says what it said before: where the signature covers the body, no
//     byte of it was changed at all;
//   - what nobody signed is refused, and if the gateway signs nothing, is no event.
func FuzzGateways(f *testing.F) {
	all := gateway.All()
	for i, g := range all {
		files := payloadFiles(f, g.Name)
		for n := 0; n < len(files); n += 1 + len(files)/6 { // a few of each: a run of seconds must get beyond them
			body, err := os.ReadFile(files[n])
			require.NoError(f, err)
			f.Add(uint8(i), uint8(0), body, uint16(0), "", "", "")
		}
		types := len(g.Types(sourceFor(f, g)))
		for n, with := range []string{"0", `"`, "00", `":1,"`, "&a=b", "%00", "\xff", "", "}{", " "} {
			f.Add(uint8(i), uint8(n%types), []byte{}, uint16(37*n), with, "", "")
		}
		for n, header := range []string{
			"Authorization", "Content-Type", "X-Event-Id", "Webhook-Id", "Webhook-Timestamp", "Stripe-Signature", "X-Date", "X-Login", "X-Kushki-Id",
			"X-Shopify-Topic", "X-Callback-Token", "Verif-Hash", "Paypal-Transmission-Id", "Digest",
		} {
			f.Add(uint8(i), uint8(n%types), []byte{}, uint16(0), "", header, "1")
		}
	}
	f.Fuzz(func(t *testing.T, gw, typ uint8, body []byte, at uint16, with, header, text string) {
		g := all[int(gw)%len(all)]
		c := cases[g.Name]
		source := sourceFor(t, g)
		if c.bare != nil {
			source = *c.bare
		}
		if d, err := g.Deliver(source, body, "", now); err == nil {
			require.NoError(t, g.Verify(source, d, now, c.keys...), "%s does not verify what it signed", g.Name)
			readAny(t, g, source, d)
			refusesStrangers(t, g, source, d)
		}
		types := g.Types(source)
		d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: types[int(typ)%len(types)].Name, Reference: "ord_7", At: now}))
		saysTheSame(t, g, source, d, changedAt(d, int(at), with))
		if header != "" {
			bad := d
			bad.Header = d.Header.Clone()
			bad.Header.Set(header, text)
			saysTheSame(t, g, source, d, bad)
		}
	})
}

// readAny maps a delivery that verified: no panic, and events of the form that is
// promised, or a fault that says why not.
func readAny(t *testing.T, g *gateway.Gateway, s gateway.Source, d gateway.Delivery) {
	t.Helper()
	evs, err := g.Events(s, d)
	objects, askErr := g.Objects(s, d)
	for _, err := range []error{err, askErr} {
		if err != nil {
			var parse *gateway.ParseError
			require.ErrorAs(t, err, &parse)
		}
	}
	if err == nil && g.Parse != nil {
		requireForm(t, s, evs)
	}
	for _, o := range objects {
		_, err := g.Fetch.Call(s, o)
		require.NoError(t, err, "an object that cannot be asked about")
	}
	if g.Probe != nil {
		g.Probe(s, d)
	}
}

// refusesStrangers: neither another's secret verifies a delivery nor none at all.
func refusesStrangers(t *testing.T, g *gateway.Gateway, s gateway.Source, d gateway.Delivery) {
	t.Helper()
	if g.Scheme == "" {
		evs, err := g.Events(s, d)
		require.NoError(t, err)
		require.Empty(t, evs, "%s signs nothing, and there is an event", g.Name)
		return
	}
	if g.Remote == nil {
		stranger := g.Example("stranger")
		stranger.PublicURL = s.PublicURL
		require.Error(t, g.Verify(withoutBasic(stranger), d, now), "%s takes another's secret", g.Name)
	}
	bare := d
	bare.Header = d.Header.Clone()
	maps.DeleteFunc(bare.Header, func(name string, _ []string) bool { return name != "Content-Type" })
	if g.Covers.Of == "body" || g.Covers.Of == "sender" {
		require.Error(t, g.Verify(s, bare, now, cases[g.Name].keys...), "%s takes what has no signature", g.Name)
	}
}

// changedAt puts a text in the place of as many bytes of the body; without one, the
// rest of the body is cut off.
func changedAt(d gateway.Delivery, at int, with string) gateway.Delivery {
	at %= len(d.Body) + 1
	bad := d
	if with == "" {
		bad.Body = bytes.Clone(d.Body[:at])
		return bad
	}
	bad.Body = slices.Concat(d.Body[:at], []byte(with), d.Body[min(at+len(with), len(d.Body)):])
	return bad
}

// saysTheSame: a delivery that was changed and still verifies has the events of the
// one before, or cannot be read at all. Facts may become misfits.
func saysTheSame(t *testing.T, g *gateway.Gateway, s gateway.Source, was, is gateway.Delivery) {
	t.Helper()
	if g.Verify(s, is, now, cases[g.Name].keys...) != nil {
		return
	}
	if g.Covers.Of == "body" {
		require.Equal(t, string(was.Body), string(is.Body), "%s: a byte of the body was changed, and nobody noticed", g.Name)
	}
	readAny(t, g, s, is)
	want, err := g.Events(s, was)
	require.NoError(t, err)
	got, err := g.Events(s, is)
	var parse *gateway.ParseError
	if errors.As(err, &parse) {
		return
	}
	require.NoError(t, err)
	require.Equal(t, meanings(want), meanings(got), "%s", g.Name)
}

func meanings(evs []order.Event) []meaning {
	var out []meaning
	for _, ev := range evs {
		out = append(out, meaningOf(ev))
	}
	return out
}
