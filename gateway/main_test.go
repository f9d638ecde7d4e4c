package gateway_test

import (
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

var update = flag.Bool("update", false, "rewrite golden files")

// now is when the deliveries of these tests are signed and received.
var now = time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)

// Secrets of test sources. They sign nothing else.
const (
	stripeSecret   = "whsec_dGVzdC1vbmx5LXNlY3JldC1vZi1zdHJpcGU"
	adyenKey       = "44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056"
	standardSecret = "whsec_c3RhbmRhcmQtd2ViaG9va3MtdGVzdC1vbmx5LWtleSE="
)

func stripeSource() gateway.Source {
	return gateway.Source{ID: "stripe", Gateway: "stripe", Mode: gateway.Test, Secrets: []string{stripeSecret}}
}

func adyenSource() gateway.Source {
	return gateway.Source{
		ID: "adyen", Gateway: "adyen", Mode: gateway.Test, HMACKeys: []string{adyenKey},
		MerchantAccounts: []string{"ExampleShopECOM"}, Basic: "hooks:pa:ss",
	}
}

// bareAdyen is adyenSource without credentials of the sender.
func bareAdyen() gateway.Source {
	s := adyenSource()
	s.Basic = ""
	return s
}

func manualAdyen() gateway.Source {
	s := adyenSource()
	s.Capture = gateway.CaptureManual
	return s
}

func standardSource() gateway.Source {
	return gateway.Source{
		ID: "standard", Gateway: "standard", Mode: gateway.Test, Secrets: []string{standardSecret},
		Map: &gateway.Map{
			Type: "/type", Payment: "/data/payment_id", Reference: "/data/order_id", Amount: "/data/amount", Currency: "/data/currency",
			Facts: map[string]string{
				"payment.authorized": "authorized", "payment.succeeded": "captured", "refund.succeeded": "refunded",
			},
		},
	}
}

// sourceNamed is the source that a gateway is tested with.
func sourceNamed(t failer, name string) gateway.Source {
	t.Helper()
	g, ok := gateway.Lookup(name)
	require.True(t, ok)
	return sourceFor(t, g)
}

// failer is what a test and a property test have in common.
type failer interface {
	require.TestingT
	Helper()
}

func ptr[T any](v T) *T { return &v }

// of returns the gateway of a source.
func of(t testing.TB, s gateway.Source) *gateway.Gateway {
	t.Helper()
	g, ok := gateway.Lookup(s.Gateway)
	require.True(t, ok, "no gateway %q", s.Gateway)
	return g
}

// deliver signs body and returns the delivery, which verifies.
func deliver(t testing.TB, s gateway.Source, body []byte) gateway.Delivery {
	t.Helper()
	g := of(t, s)
	d, err := g.Deliver(s, body, "", now)
	require.NoError(t, err)
	require.NoError(t, g.Verify(s, d, now, cases[g.Name].keys...))
	return d
}

// events maps the events of body.
func events(t testing.TB, s gateway.Source, body []byte) []order.Event {
	t.Helper()
	evs, err := of(t, s).Events(s, deliver(t, s, body))
	require.NoError(t, err)
	return evs
}

// event maps the one event of body.
func event(t testing.TB, s gateway.Source, body []byte) order.Event {
	t.Helper()
	evs := events(t, s, body)
	require.Len(t, evs, 1)
	return evs[0]
}

// mapped maps the one event of a body that nobody signed: what the verifier
// would refuse must not surprise the mapping either.
func mapped(t testing.TB, s gateway.Source, body string) order.Event {
	t.Helper()
	header := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {"1767258000"}}
	evs, err := of(t, s).Events(s, gateway.Delivery{Header: header, Body: []byte(body)})
	require.NoError(t, err)
	require.Len(t, evs, 1)
	return evs[0]
}

// sample makes a body.
func sample(t testing.TB, r gateway.SampleRequest) []byte {
	t.Helper()
	body, err := of(t, r.Source).Sample(r)
	require.NoError(t, err)
	return body
}

// sampled maps the event of a sample.
func sampled(t testing.TB, r gateway.SampleRequest) order.Event {
	t.Helper()
	return event(t, r.Source, sample(t, r))
}

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, path string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, text, 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "no golden file; run with -update and read what it wrote")
	require.Equal(t, string(want), string(text))
}
