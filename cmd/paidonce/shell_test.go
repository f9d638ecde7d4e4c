package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// shell runs a line that dev printed, as it stands: in a shell, except that
// calls of this program run in this process.
func shell(t *testing.T, e *env, line string) string {
	t.Helper()
	if args, ok := strings.CutPrefix(line, selfCommand(e.getenv)+" "); ok {
		var out, errs bytes.Buffer
		sub := &env{getenv: e.getenv, stdin: strings.NewReader(""), stdout: &out, stderr: &errs, now: e.now}
		require.Equal(t, exitOK, sub.run(t.Context(), strings.Fields(args)), "%s\n%s", line, &errs)
		return out.String()
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line).CombinedOutput()
	require.NoError(t, err, "%s\n%s", line, out)
	return string(out)
}
