package gateway_test

import (
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
