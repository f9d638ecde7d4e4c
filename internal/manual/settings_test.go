package manual_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/gateway"
	"github.com/paidonce/paidonce/internal/config"
	"github.com/paidonce/paidonce/internal/manual"
)

// TestSourcesAreWhole: the source that a page shows is all that the configuration
// needs, once its variables are set.
func TestSourcesAreWhole(t *testing.T) {
	t.Parallel()
	for _, g := range gateway.All() {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			p, err := manual.Of(g)
			require.NoError(t, err)
			text := "accounts:\n  shop:\n    sources:\n      " + strings.ReplaceAll(strings.TrimSpace(p.Source), "\n", "\n      ")
			values := valuesOf(t, g)
			cfg, err := config.Parse("paidonce.yaml", []byte(strings.Replace(text, "mode: live", "mode: test", 1)), func(name string) string {
				return values[name]
			})
			require.NoError(t, err, p.Source)
			require.Equal(t, g.Name, cfg.Sources()[g.Name].Gateway)

			_, err = config.Parse("paidonce.yaml", []byte(text), os.Getenv)
			if len(values) > 0 && strings.Contains(p.Source, "${") {
				require.ErrorContains(t, err, "needs the environment variable "+strings.ToUpper(strings.ReplaceAll(g.Name, "-", "_")))
			}
		})
	}
}

// valuesOf are the variables of a source, with what the example has.
func valuesOf(t *testing.T, g *gateway.Gateway) map[string]string {
	t.Helper()
	text, err := json.Marshal(g.Example("main"))
	require.NoError(t, err)
	var example map[string]any
	require.NoError(t, json.Unmarshal(text, &example))
	values := map[string]string{}
	for option, v := range example {
		if list, ok := v.([]any); ok {
			v, option = list[0], strings.TrimSuffix(option, "s")
		}
		if s, ok := v.(string); ok {
			values[strings.ToUpper(strings.ReplaceAll(g.Name+"_"+option, "-", "_"))] = s
		}
	}
	return values
}
