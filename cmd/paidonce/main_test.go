package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files again")

// The test binary is the program itself when it is called as a part of it: by
// tests that kill processes, and by dev --replay, which starts work.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "work") {
		main()
	}
	os.Exit(m.Run())
}

// now is the time at which commands run in tests of what they print.
var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// answer is what a command said.
type answer struct {
	code           int
	stdout, stderr string
}

// call runs a command line in the environment of pairs.
func call(t *testing.T, args []string, pairs ...string) answer {
	t.Helper()
	vars := map[string]string{"PATH": os.Getenv("PATH"), "HOME": os.Getenv("HOME")}
	for i := 0; i < len(pairs); i += 2 {
		vars[pairs[i]] = pairs[i+1]
	}
	var stdout, stderr bytes.Buffer
	e := &env{
		getenv: func(name string) string { return vars[name] }, environ: slices.Collect(maps.Keys(vars)), stdin: strings.NewReader(""),
		stdout: &stdout, stderr: &stderr, now: func() time.Time { return now },
	}
	code := e.run(t.Context(), args)
	return answer{code, stdout.String(), stderr.String()}
}

// words splits a command line at spaces.
func words(format string, args ...any) []string { return strings.Fields(fmt.Sprintf(format, args...)) }

// golden compares a text with testdata/<name>.
func golden(t *testing.T, name, have string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(have), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), have, "write it again with -update")
}

// write makes a file in a folder of the test's own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}
