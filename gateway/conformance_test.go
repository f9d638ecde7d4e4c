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

// conformance is what TestConformance needs to know of a gateway.
type conformance struct {
	// source is the source to test with. Default: the gateway's example.
	source *gateway.Source

	// bare is the source for the test of coverage, if it needs another one
	// (adyen: without credentials of the sender).
	bare *gateway.Source

	// keys are the public keys that the network would have found.
	keys []string

	volatile    map[string]string // what may differ between two tries of one event
	unknownType map[string]string // what makes typ an event that is not known

	typ              string   // of the sample whose amount is spoilt
	amount, currency string   // where they stand, by path of [gateway.SampleRequest].Set; "": the payload has none
	badAmounts       []string // default: what is no integer of minor units
	badCurrencies    []string

	// noMode: no byte of the payload tells live from test. noTime: nor when it
	// happened (to the second).
	noMode, noTime bool

	// noFacts says why a gateway's events move no order: all of its types are
	// ignored. What a sample means is then not asked.
	noFacts string

	// oneName: the gateway's id of a payment is the merchant's own reference.
	oneName bool

	// strict: the verifier may refuse what the test spoils; that is as good.
	strict bool

	// unreadable are bodies that are refused. Default: what is no JSON object.
	unreadable map[string]string

	// alone are the types that are about a payment of their own (a payment link
	// that nobody used).
	alone []string

	// payment is how the payment of a sample is known, where that is not the id
	// that was asked for.
	payment func(gateway.SampleRequest) string

	// variants are the sources that the payloads of testdata are read with, by
	// name. Default: {"test": source}.
	variants map[string]gateway.Source

	// object says which object a payload of testdata called api.*.json is about.
	object func(body []byte) gateway.Object

	// places are the values that the test may not flip, by a piece of the payload
	// that holds them: covered by something else than the signature, and named in
	// the gateway's comment.
	places []string
}

var cases = map[string]conformance{}

// conforms registers a gateway for TestConformance; each does so in its own test file.
func conforms(name string, c conformance) bool {
	if c.badAmounts == nil {
		c.badAmounts = []string{`null`, `"abc"`, `"5000"`, `-5000`, `50.5`, `5e3`, `5000.0`, `9223372036854775808`, `9223372036854775807`, `true`, `{}`}
	}
	if c.badCurrencies == nil {
		c.badCurrencies = []string{`EURO`, `ZZZ`, `E1R`, ``, `eur `}
	}
	cases[name] = c
	return true
}

// decimals are what is no amount where amounts are decimal texts of major units.
var decimals = []string{`null`, `"abc"`, `"-50.00"`, `"50.001"`, `"5e3"`, `"50,00"`, `"92233720368547758.08"`, `""`, `" 50.00"`, `true`, `{}`}

// TestConformance is what every gateway promises.
func TestConformance(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			c, ok := cases[g.Name]
			require.True(t, ok, "gateway %s does not register: write var _ = conforms(%[1]q, conformance{…}) into a test file of its own, as primer_test.go does", g.Name)
			source := sourceFor(t, g)
			t.Run("Declares", func(t *testing.T) { t.Parallel(); declares(t, g, source) })
			t.Run("UncoveredBytesGrantNothing", func(t *testing.T) { t.Parallel(); uncovered(t, g, source, c) })
			if c.noFacts == "" {
				t.Run("SamplesMeanWhatTheySay", func(t *testing.T) { t.Parallel(); samplesMean(t, g, source, c) })
				t.Run("SamplesOfOnePaymentAgree", func(t *testing.T) { t.Parallel(); samplesAgree(t, g, source, c) })
			} else {
				t.Run("SamplesMoveNothing", func(t *testing.T) { t.Parallel(); samplesMoveNothing(t, g, source) })
			}
			t.Run("Pure", func(t *testing.T) { t.Parallel(); pure(t, g, source) })
			t.Run("RetriesKeepTheID", func(t *testing.T) { t.Parallel(); retries(t, g, source, c) })
			t.Run("UnknownTypeIsIgnored", func(t *testing.T) { t.Parallel(); unknownType(t, source, c) })
			t.Run("UnreadableFactsAreBroken", func(t *testing.T) { t.Parallel(); brokenFacts(t, g, source, c) })
			t.Run("UnreadableBodiesAreParseErrors", func(t *testing.T) { t.Parallel(); unreadable(t, g, source, c) })
			t.Run("ForgedIsRefused", func(t *testing.T) { t.Parallel(); forged(t, g, source) })
			t.Run("KeepsNoCredentials", func(t *testing.T) { t.Parallel(); keeps(t, g, source) })
		})
	}
}

// sourceFor is the source that a gateway is tested with.
func sourceFor(t failer, g *gateway.Gateway) gateway.Source {
	t.Helper()
	if c := cases[g.Name]; c.source != nil {
		return *c.source
	}
	require.NotNil(t, g.Example, "gateway %s has no example", g.Name)
	s := g.Example("main")
	s.ID = g.Name
	return s
}

// spoken is what a request for a sample means in the end: what the delivery
// says, or what the API answers about the object that it names.
func spoken(t testing.TB, r gateway.SampleRequest) []order.Event {
	t.Helper()
	g := of(t, r.Source)
	if g.Fetch == nil || !g.Fetch.Always {
		return events(t, r.Source, sample(t, r))
	}
	object, answer, err := g.Fetch.Sample(r)
	require.NoError(t, err)
	evs, err := g.Fetched(r.Source, object, gateway.Answer{Body: answer, Started: now})
	require.NoError(t, err)
	return evs
}

func spokenOne(t testing.TB, r gateway.SampleRequest) order.Event {
	t.Helper()
	evs := spoken(t, r)
	require.Len(t, evs, 1)
	return evs[0]
}

func declares(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	require.Equal(t, source.Gateway, g.Name)
	require.NotEmpty(t, g.Title)
	require.True(t, strings.HasPrefix(g.Docs, "https://"))
	if g.Scheme != "" {
		_, ok := signature.Lookup(g.Scheme)
		require.True(t, ok, "no scheme %q", g.Scheme)
	}
	require.Contains(t, []gateway.Evidence{gateway.Solid, gateway.Usable, gateway.Unconfirmed, gateway.Unsigned}, g.Evidence)
	require.Equal(t, g.Scheme == "", g.Evidence == gateway.Unsigned)
	require.Equal(t, g.Scheme == "", g.Covers.Of == "nothing")
	require.NotEmpty(t, g.Manual.EventID)
	require.NotEmpty(t, g.Manual.Retries)
	require.Equal(t, g.Scheme != "", g.Manual.Secret != "")
	require.Contains(t, []string{"body", "fields", "sender", "nothing"}, g.Covers.Of)
	require.Equal(t, g.Covers.Of == "fields", len(g.Covers.Fields) > 0 && g.Covers.Of != "body")
	require.Greater(t, g.Deadline, 2*time.Second)
	require.LessOrEqual(t, g.Deadline, time.Minute)
	require.Equal(t, g.AckBody == "", g.AckType == "", "a body without a type, or a type without a body")
	require.NoError(t, g.Check(source))
	require.NoError(t, g.Check(g.Example("other")))
	require.Equal(t, g.Scheme != "" && g.Remote == nil, len(g.LiveSecrets(source)) > 0)
	if g.Fetch != nil {
		require.NotNil(t, g.Fetch.Sample)
		for _, base := range []string{g.Fetch.Live, g.Fetch.Test} {
			require.True(t, strings.HasPrefix(base, "https://"), base)
			require.False(t, strings.HasSuffix(base, "/"), base)
		}
	}

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
func samplesMean(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	for _, typ := range g.Types(source) {
		r := gateway.SampleRequest{
			Source: source, Type: typ.Name, ID: "evt_sample_1", Reference: "ord_7", Payment: "PAYMENT00000007", Ref: "REF0000000000007",
			Amount: order.Amount{Minor: 12345, Currency: "USD"}, At: now,
		}
		if c.oneName {
			r.Payment = r.Reference
		}
		require.Equal(t, string(sample(t, r)), string(sample(t, r)), "the same request gives other bytes")
		ev := spokenOne(t, r)
		require.NoError(t, ev.Validate())
		require.Equal(t, typ.Name, ev.Type)
		require.Empty(t, ev.Ignored, typ.Name)
		require.Empty(t, ev.Broken, typ.Name)
		require.Equal(t, g.Realm(source), ev.Realm)
		payment := r.Payment
		if c.payment != nil {
			payment = c.payment(r)
		}
		require.Contains(t, ev.Payment, payment, typ.Name)
		require.NotEmpty(t, ev.Facts, typ.Name)
		for _, f := range ev.Facts {
			require.Empty(t, f.Misfit, typ.Name)
			// A snapshot also says what there is nothing of.
			if f.Kind != order.KindPhase && f.Amount != order.All && f.Amount != 0 {
				require.Equal(t, order.Amount{Minor: 12345, Currency: "USD"}, order.Amount{Minor: f.Amount, Currency: f.Currency}, typ.Name)
			}
			if f.Kind == order.KindDisputed && f.Ref != r.Payment || f.Kind == order.KindRefunded && f.Ref != "" {
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
		if !c.noTime {
			require.Equal(t, now, ev.At, typ.Name)
		}

		r.Mode = gateway.Live // of the source that is test
		if !c.noMode {
			for _, f := range spokenOne(t, r).Facts {
				require.Equal(t, order.MisfitMode, f.Misfit, "%s of mode live at a source of mode test (noMode: no byte tells)", typ.Name)
			}
		}
	}
	_, err := g.Sample(gateway.SampleRequest{Source: source, Type: "no.such.type"})
	require.ErrorContains(t, err, "no.such.type")
}

// samplesMoveNothing: a sample of every type is signed, verifies, is known, and is
// about no order and no payment.
func samplesMoveNothing(t *testing.T, g *gateway.Gateway, source gateway.Source) {
	for _, typ := range g.Types(source) {
		ev := spokenOne(t, gateway.SampleRequest{
			Source: source, Type: typ.Name, Reference: "ord_7", Payment: "PAYMENT00000007", Ref: "REF0000000000007", At: now,
		})
		require.Equal(t, order.Event{ID: ev.ID, Type: typ.Name, At: now, Realm: g.Realm(source), Ignored: gateway.NoFact}, ev)
		require.NotEmpty(t, ev.ID)
	}
	_, err := g.Sample(gateway.SampleRequest{Source: source, Type: "no.such.type"})
	require.ErrorContains(t, err, "no.such.type")
}

// samplesAgree: without ids given, the events of one reference are about one
// payment, and those of another about another.
func samplesAgree(t *testing.T, g *gateway.Gateway, source gateway.Source, c conformance) {
	ids := map[string]bool{}
	for _, typ := range g.Types(source) {
		ev := spokenOne(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_7"})
		other := spokenOne(t, gateway.SampleRequest{Source: source, Type: typ.Name, Reference: "ord_8"})
		require.NotEmpty(t, ev.Payment)
		require.NotEqual(t, ev.ID, other.ID)
		for _, id := range other.Payment {
			require.NotContains(t, ev.Payment, id)
		}
		if slices.Contains(c.alone, typ.Name) {
			continue
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
		require.NoError(t, g.Verify(source, again, now, cases[g.Name].keys...))
		objects, err := g.Objects(source, d)
		require.NoError(t, err)
		same, err := g.Objects(source, again)
		require.NoError(t, err)
		require.Equal(t, objects, same)
	}
}

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
		if g.Scheme == "" {
			continue
		}
		s := g.Example("main")
		s.ID, s.Secrets, s.HMACKeys, s.SigningKeys, s.WebhookID = "x", nil, nil, nil, ""
		_, _, err := g.Sign(s, []byte("{}"), now)
		require.Error(t, err, g.Name)
		require.NotErrorAs(t, err, new(*gateway.ParseError))
	}
}
