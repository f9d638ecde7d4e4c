package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/order"
)

const payloads = "../testdata/payloads"

// variantsOf are the sources that the payloads of a gateway are read with.
func variantsOf(t testing.TB, g *gateway.Gateway) map[string]gateway.Source {
	t.Helper()
	if v := cases[g.Name].variants; v != nil {
		return v
	}
	return map[string]gateway.Source{"test": sourceFor(t, g)}
}

// reading is what a payload means.
type reading struct {
	Events []order.Event `json:"events,omitempty"`
	Ask    []string      `json:"ask,omitempty"` // the objects to ask about
}

// readPayload reads a file of testdata the whole way: a delivery is signed,
// verified and mapped; api.*.json is what the API answers.
func readPayload(t testing.TB, s gateway.Source, file string) reading {
	t.Helper()
	body, err := os.ReadFile(file)
	require.NoError(t, err)
	g := of(t, s)
	if strings.HasPrefix(filepath.Base(file), "api.") {
		evs, err := g.Fetched(s, cases[g.Name].object(body), gateway.Answer{Body: body, Started: now})
		require.NoError(t, err)
		return reading{Events: evs}
	}
	d := deliver(t, s, body)
	evs, err := g.Events(s, d)
	require.NoError(t, err)
	objects, err := g.Objects(s, d)
	require.NoError(t, err)
	r := reading{Events: evs}
	for _, o := range objects {
		r.Ask = append(r.Ask, o.String())
	}
	return r
}

func payloadFiles(t testing.TB, name string) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.json", "*.form", "*.xml"} {
		found, err := filepath.Glob(filepath.Join(payloads, name, pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.NotEmpty(t, files, "gateway %s has no payloads", name)
	return files
}

// TestPayloads reads every payload of testdata and compares what it means with
// what was agreed.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		for _, file := range payloadFiles(t, g.Name) {
			base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
			t.Run(g.Name+"/"+base, func(t *testing.T) {
				t.Parallel()
				got, evs := map[string]reading{}, map[string][]order.Event{}
				for variant, source := range variantsOf(t, g) {
					got[variant] = readPayload(t, source, file)
					evs[variant] = got[variant].Events
				}
				golden(t, filepath.Join("testdata", "TestPayloads", g.Name, base+".golden"), got)
				requireBroken(t, evs, strings.Contains(base, "broken"))
			})
		}
	}
}

// requireBroken: a payload that is called broken is quarantined, and no other is.
func requireBroken(t *testing.T, got map[string][]order.Event, want bool) {
	t.Helper()
	for _, evs := range got {
		broken := false
		for _, ev := range evs {
			require.NoError(t, ev.Validate())
			broken = broken || ev.Broken != ""
			if ev.Broken != "" || ev.Ignored != "" {
				require.Empty(t, ev.Facts)
				require.Nil(t, ev.Own)
			}
		}
		if want {
			require.True(t, broken)
		}
	}
}

// TestEveryTypeHasAPayload: testdata shows every type that is mapped.
func TestEveryTypeHasAPayload(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		shown := map[string]bool{}
		var source gateway.Source
		for _, source = range variantsOf(t, g) {
			for _, file := range payloadFiles(t, g.Name) {
				for _, ev := range readPayload(t, source, file).Events {
					shown[ev.Type] = shown[ev.Type] || len(ev.Facts) > 0 || cases[g.Name].noFacts != ""
				}
			}
		}
		for _, typ := range g.Types(source) {
			require.True(t, shown[typ.Name], "%s: no payload of type %s with facts", g.Name, typ.Name)
		}
	}
}
