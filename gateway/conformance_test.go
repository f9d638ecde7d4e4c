package gateway_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
	"github.com/paidonce/paidonce/signature"
)

// TestConformance is what every gateway promises. A new gateway passes it with
// one well configured source and the changes below.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			source, ok := sources()[g.Name]
			require.True(t, ok, "no source to test gateway %s with", g.Name)
			change, ok := changes[g.Name]
			require.True(t, ok, "no changes to test gateway %s with", g.Name)
			t.Run("Declares", func(t *testing.T) { t.Parallel(); declares(t, g, source) })
			t.Run("SamplesMeanWhatTheySay", func(t *testing.T) { t.Parallel(); samplesMean(t, g, source) })
			t.Run("SamplesOfOnePaymentAgree", func(t *testing.T) { t.Parallel(); samplesAgree(t, g, source) })
			t.Run("Pure", func(t *testing.T) { t.Parallel(); pure(t, g, source) })
			t.Run("RetriesKeepTheID", func(t *testing.T) { t.Parallel(); retries(t, g, source, change) })
			t.Run("UnknownTypeIsIgnored", func(t *testing.T) { t.Parallel(); unknownType(t, source, change) })
			t.Run("UnreadableFactsAreBroken", func(t *testing.T) { t.Parallel(); brokenFacts(t, g, source, change) })
			t.Run("UnreadableBodiesAreParseErrors", func(t *testing.T) { t.Parallel(); unreadable(t, g, source) })
			t.Run("ForgedIsRefused", func(t *testing.T) { t.Parallel(); forged(t, g, source) })
			t.Run("KeepsNoCredentials", func(t *testing.T) { t.Parallel(); keeps(t, g, source) })
		})
	}
}

// changes are how a sample of each gateway is made unusual.
var changes = map[string]change{
	"stripe": {
		volatile:    map[string]string{"pending_webhooks": "7", "request": `{"id":"req_2","idempotency_key":"k2"}`},
		unknownType: map[string]string{"type": "product.updated"},
		amount:      "data.object.amount_received",
		currency:    "data.object.currency",
		typ:         "payment_intent.succeeded",
	},
	"adyen": {
		volatile:    map[string]string{"reason": "again", "operations": `["REFUND"]`},
		unknownType: map[string]string{"eventCode": "REPORT_AVAILABLE"},
		amount:      "amount.value",
		currency:    "amount.currency",
		typ:         "AUTHORISATION",
	},
	"standard": {
		unknownType: map[string]string{"type": "customer.created"},
		amount:      "data.amount",
		currency:    "data.currency",
		typ:         "payment.succeeded",
	},
}

type change struct {
	volatile         map[string]string // what may differ between two tries of one event
	unknownType      map[string]string
	typ              string // of the sample whose amount is spoilt
	amount, currency string // where it stands
}

func declares(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	require.Equal(t, source.Gateway, g.Name)
	require.NotEmpty(t, g.Title)
	require.True(t, strings.HasPrefix(g.Docs, "https://"))
	_, ok := signature.Lookup(g.Scheme)
	require.True(t, ok, "no scheme %q", g.Scheme)
	require.Contains(t, []string{"body", "fields", "sender", "nothing"}, g.Covers.Of)
	require.Equal(t, g.Covers.Of == "fields", len(g.Covers.Fields) > 2)
	require.Greater(t, g.Deadline, 2*time.Second)
	require.LessOrEqual(t, g.Deadline, time.Minute)
	require.Equal(t, g.AckBody == "", g.AckType == "", "a body without a type, or a type without a body")
	require.NoError(t, g.Check(source))
	require.NotEmpty(t, g.Secrets(source))

	var names []string
	for _, typ := range g.Types(source) {
		require.NotEmpty(t, typ.Meaning, typ.Name)
		names = append(names, typ.Name)
	}
	require.NotEmpty(t, names)
	slices.Sort(names)
	require.Len(t, slices.Compact(names), len(g.Types(source)), "a type stands twice")
}

// samplesMean: a sample of every type is signed, verifies, and is read as what
// was asked for.
func samplesMean(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	for _, typ := range g.Types(source) {
		r := gateway.SampleRequest{
			Source: source, Type: typ.Name, ID: "evt_sample_1", Reference: "ord_7", Payment: "PAYMENT00000007", Ref: "REF0000000000007",
			Amount: order.Amount{Minor: 12345, Currency: "USD"}, At: now,
		}
		body := sample(t, r)
		require.Equal(t, string(body), string(sample(t, r)), "the same request gives other bytes")
		ev := event(t, source, body)
		require.NoError(t, ev.Validate())
		require.Equal(t, typ.Name, ev.Type)
		require.Empty(t, ev.Ignored, typ.Name)
		require.Empty(t, ev.Broken, typ.Name)
		require.Equal(t, g.Realm(source), ev.Realm)
		require.Contains(t, ev.Payment, r.Payment, typ.Name)
		require.NotEmpty(t, ev.Facts, typ.Name)
		for _, f := range ev.Facts {
			require.Empty(t, f.Misfit, typ.Name)
			if f.Kind != order.KindPhase && f.Amount != order.All {
				require.Equal(t, order.Amount{Minor: 12345, Currency: "USD"}, order.Amount{Minor: f.Amount, Currency: f.Currency}, typ.Name)
			}
			if f.Kind == order.KindDisputed || f.Kind == order.KindRefunded && f.Ref != "" {
				require.Equal(t, r.Ref, f.Ref, typ.Name)
			}
		}
		if ev.Reference != "" { // not every type has a place for it
			require.Equal(t, "ord_7", ev.Reference)
			require.NotZero(t, ev.Strength)
		}
		if ev.Own != nil {
			require.Equal(t, r.Amount, *ev.Own, typ.Name)
		}
		require.Equal(t, now, ev.At, typ.Name)

		r.Mode = gateway.Live // of the source that is test
		if g.Name != "standard" {
			for _, f := range sampled(t, r).Facts {
				require.Equal(t, order.MisfitMode, f.Misfit, typ.Name)
			}
		}
	}
	_, err := g.Sample(gateway.SampleRequest{Source: source, Type: "no.such.type"})
	require.ErrorContains(t, err, "no.such.type")
}

// samplesAgree: without ids given, the events of one reference are about one
// payment, and those of another about another.
func samplesAgree(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	ids := map[string]bool{}
	for _, typ := range g.Types(source) {
		ev := sampled(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"})
		other := sampled(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_8"})
		require.NotEmpty(t, ev.Payment)
		require.NotEqual(t, ev.ID, other.ID)
		for _, id := range other.Payment {
			require.NotContains(t, ev.Payment, id)
		}
		ids[ev.Payment[0]] = true
		ids[ev.Payment[len(ev.Payment)-1]] = ids[ev.Payment[len(ev.Payment)-1]] || len(ev.Payment) == 1
	}
	var mains []string
	for id, main := range ids {
		if main {
			mains = append(mains, id)
		}
	}
	require.Len(t, mains, 1, "the samples of one reference name several payments")
}

// pure: mapping depends on the source and on what is signed, not on when, how
// or with which other headers it came.
func pure(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	for _, typ := range g.Types(source) {
		d := deliver(t, source, sample(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"}))
		want, err := g.Events(source, d)
		require.NoError(t, err)

		again := d
		again.ReceivedAt = now.Add(1000 * time.Hour)
		again.Method = "PUT"
		again.Header = d.Header.Clone()
		for _, name := range []string{"Content-Type", "User-Agent", "X-Forwarded-For", "X-Event-Id", "Idempotency-Key", "Webhook-Event"} {
			again.Header.Set(name, "text/plain; a=b")
		}
		again.Header["webhook-mode"] = []string{"live"}
		got, err := g.Events(source, again)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.NoError(t, g.Verify(source, again, now))
	}
}

func retries(t *testing.T, g *gateway.Gateway, source gateway.Source, c change) {
	for _, typ := range g.Types(source) {
		r := gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"}
		want := sampled(t, r)
		r.Set = c.volatile
		body := sample(t, r)

		header, signed, err := g.SignID(source, body, "", now.Add(time.Hour)) // another try, another signature
		require.NoError(t, err)
		got, err := g.Events(source, gateway.Delivery{Header: header, Body: signed})
		require.NoError(t, err)
		require.Len(t, got, 1)
		require.Equal(t, want.ID, got[0].ID)
		want.At, got[0].At = time.Time{}, time.Time{} // standard: of the attempt
		require.Equal(t, want, got[0])
	}
}

func unknownType(t *testing.T, source gateway.Source, c change) {
	ev := sampled(t, gateway.SampleRequest{Source: source, Type: c.typ, Reference: "ord_7", Set: c.unknownType})
	require.NotEmpty(t, ev.ID)
	require.NotEqual(t, c.typ, ev.Type)
	require.Equal(t, gateway.UnknownType, ev.Ignored)
	require.Empty(t, ev.Facts)
	require.Empty(t, ev.Payment, "an ignored event must touch nothing")
	require.Empty(t, ev.Reference)
}

func brokenFacts(t *testing.T, g *gateway.Gateway, source gateway.Source, c change) {
	for path, values := range map[string][]string{
		c.amount:   {`null`, `"abc"`, `"5000"`, `-5000`, `50.5`, `5e3`, `5000.0`, `9223372036854775808`, `9223372036854775807`, `true`, `{}`},
		c.currency: {`EURO`, `ZZZ`, `E1R`, ``, `eur `},
	} {
		for _, value := range values {
			body, err := g.Sample(gateway.SampleRequest{
				Source: source, Type: c.typ, Reference: "ord_7", Set: map[string]string{path: value},
			})
			require.NoError(t, err)
			header, signed, err := g.Sign(source, body, now)
			if err != nil {
				// The verifier is as strict: such a body never gets here.
				require.Equal(t, "adyen", g.Name)
				continue
			}
			evs, err := g.Events(source, gateway.Delivery{Header: header, Body: signed})
			require.NoError(t, err)
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

func unreadable(t *testing.T, g *gateway.Gateway, source gateway.Source) {
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
		_, err := g.Events(source, bad)
		var parse *gateway.ParseError
		require.ErrorAs(t, err, &parse, name)
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

// forged: one bit of the body or of what is covered beside it, and the
// delivery is refused; for adyen that is tested bit by bit elsewhere.
func forged(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	body := sample(t, gateway.SampleRequest{Source: source, Type: g.Types(source)[0].Name, Reference: "ord_7"})
	d := deliver(t, source, body)
	stranger := source
	stranger.Secrets, stranger.HMACKeys = []string{"whsec_b3RoZXItc2VjcmV0LW9mLXRlc3RzLW9ubHk="}, []string{strings.Repeat("ab", 32)}
	require.Equal(t, signature.Mismatch, signature.ReasonOf(g.Verify(stranger, d, now)))

	none := source
	none.Secrets, none.HMACKeys = nil, nil
	require.Error(t, g.Verify(none, d, now), "no secret, and it verifies")

	if g.Covers.Of != "body" {
		return
	}
	for i := range d.Body {
		bad := d
		bad.Body = bytes.Clone(d.Body)
		bad.Body[i] ^= 1
		require.Error(t, g.Verify(source, bad, now), "byte %d of the body is not covered", i)
	}
	for _, name := range g.Covers.Fields {
		bad := d
		bad.Header = d.Header.Clone()
		bad.Header.Set(name, bad.Header.Get(name)+"1")
		require.Error(t, g.Verify(source, bad, now), "header %s is not covered", name)
	}
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

	// What is kept is enough to read the delivery again.
	d.Header = http.Header{}
	for name, value := range kept {
		d.Header.Set(name, value)
	}
	got, err := g.Events(source, d)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestRegistry: names are unique and found.
func TestRegistry(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, g := range gateway.All() {
		require.False(t, seen[g.Name])
		seen[g.Name] = true
		found, ok := gateway.Lookup(g.Name)
		require.True(t, ok)
		require.Same(t, g, found)
	}
	_, ok := gateway.Lookup("nobody")
	require.False(t, ok)

	gateway.All()[0] = nil
	require.NotNil(t, gateway.All()[0], "the caller's slice is the registry")
}

// TestAnswers pins what each gateway is answered: their queues depend on it.
func TestAnswers(t *testing.T) {
	t.Parallel()
	require.Equal(t, "[accepted]", gateway.Adyen.AckBody)
	require.True(t, gateway.Adyen.QuarantineUnreadable)
	require.Equal(t, `{"received":true}`, gateway.Stripe.AckBody)
	require.False(t, gateway.Stripe.QuarantineUnreadable)
	require.Empty(t, gateway.Standard.AckBody)
	require.Equal(t, 10*time.Second, gateway.Adyen.Deadline)
	require.Equal(t, 10*time.Second, gateway.Stripe.Deadline)
	require.Equal(t, 15*time.Second, gateway.Standard.Deadline)
	require.Contains(t, fmt.Sprint(gateway.Adyen.Covers), "fields(pspReference, ")
	require.Contains(t, fmt.Sprint(gateway.Adyen.Covers), "with credentials of the sender also eventDate")
	require.Equal(t, "body", gateway.Stripe.Covers.String())
}

// TestSignWithoutSecret: a source that cannot sign says so.
func TestSignWithoutSecret(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		_, _, err := g.Sign(gateway.Source{ID: "x", Gateway: g.Name}, []byte("{}"), now)
		require.ErrorContains(t, err, "no secret", g.Name)
		require.NotErrorAs(t, err, new(*gateway.ParseError))
	}
}
