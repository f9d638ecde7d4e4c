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

// variants are the sources that the payloads of a gateway are read with.
func variants() map[string]map[string]gateway.Source {
	manual := adyenSource()
	manual.Capture = gateway.CaptureManual
	return map[string]map[string]gateway.Source{
		"stripe":   {"test": stripeSource()},
		"standard": {"test": standardSource()},
		"adyen":    {"basic": adyenSource(), "bare": bareAdyen(), "manual": manual},
	}
}

// TestPayloads reads every payload of testdata and compares what it means with
// what was agreed. It goes the whole way: signed, verified, mapped.
func TestPayloads(t *testing.T) {
	t.Parallel()
	for name, sources := range variants() {
		files, err := filepath.Glob(filepath.Join(payloads, name, "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			base := strings.TrimSuffix(filepath.Base(file), ".json")
			t.Run(name+"/"+base, func(t *testing.T) {
				t.Parallel()
				body, err := os.ReadFile(file)
				require.NoError(t, err)
				got := map[string][]order.Event{}
				for variant, source := range sources {
					got[variant] = events(t, source, body)
				}
				golden(t, filepath.Join("testdata", "TestPayloads", name, base+".golden"), got)
				requireBroken(t, got, strings.Contains(base, "broken"))
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
	for name, sources := range variants() {
		shown := map[string]bool{}
		files, err := filepath.Glob(filepath.Join(payloads, name, "*.json"))
		require.NoError(t, err)
		var source gateway.Source
		for _, source = range sources {
			for _, file := range files {
				body, err := os.ReadFile(file)
				require.NoError(t, err)
				for _, ev := range events(t, source, body) {
					shown[ev.Type] = shown[ev.Type] || len(ev.Facts) > 0
				}
			}
		}
		for _, typ := range of(t, source).Types(source) {
			require.True(t, shown[typ.Name], "%s: no payload of type %s with facts", name, typ.Name)
		}
	}
}
