package live

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Npm runs a program of the packages of npm that are installed in the module's folder, and returns what it said and whether that
// went well. Where npm ci has not been run the test is skipped, or fails if INTEROP_NODE is set.
func Npm(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	for _, folder := range []string{".", ".."} {
		path, err := filepath.Abs(filepath.Join(folder, "node_modules", ".bin", name))
		require.NoError(t, err)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		cmd := exec.CommandContext(t.Context(), path, args...)
		cmd.Env = append(os.Environ(), "REDOCLY_TELEMETRY=off", "REDOCLY_SUPPRESS_UPDATE_NOTICE=true", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	require.Empty(t, os.Getenv("INTEROP_NODE"), "npm ci has not been run here")
	t.Skip("npm ci has not been run here")
	return "", nil
}
