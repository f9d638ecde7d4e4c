// Package tsclient has a client in TypeScript whose types are generated.
package tsclient

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/interop/openapi/live"
)

// The types that openapi-typescript makes of the document fit a client that was written by hand, and what the program answers.
func TestClient(t *testing.T) {
	t.Parallel()
	out, err := live.Npm(t, "openapi-typescript", "../../../docs/openapi.json", "--output", "generated/schema.d.ts")
	require.NoError(t, err, out)
	out, err = live.Npm(t, "tsc", "--project", ".")
	require.NoError(t, err, out)

	program := live.Start(t)
	text, err := exec.CommandContext(t.Context(), "node", "generated/client.js", program.URL, program.Key).CombinedOutput()
	require.NoError(t, err, string(text))
	require.Equal(t, "ok\n", string(text))
}
