package openapi_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/interop/openapi/live"
)

const document = "../../docs/openapi.json"

// The document is in order by the recommended rules of two linters, to the last warning. What is not asked stands in redocly.yaml
// and spectral.yaml, with the reason.
func TestLint(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"redocly":  {"lint", "--config", "redocly.yaml"},
		"spectral": {"lint", "--ruleset", "spectral.yaml", "--fail-severity", "hint"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := live.Npm(t, name, append(args, document)...)
			require.NoError(t, err, out)

			// It does find what is wrong.
			broken := filepath.Join(t.TempDir(), "openapi.json")
			require.NoError(t, os.WriteFile(broken, []byte(`{"openapi":"3.1.0","info":{"title":"no version"},"paths":{}}`), 0o600))
			out, err = live.Npm(t, name, append(args, broken)...)
			require.Error(t, err, out)
		})
	}
}
