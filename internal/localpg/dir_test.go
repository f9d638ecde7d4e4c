//go:build unix

package localpg_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/paidonce/paidonce/internal/localpg"
)

func TestDefaultDir(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := func(key string, vars map[string]string) string { return localpg.DefaultDir(key, env(vars)) }
	here := map[string]string{"HOME": home}

	require.Equal(t, dir("a", here), dir("a", here))
	require.NotEqual(t, dir("a", here), dir("b", here))
	if os.Geteuid() == 0 {
		require.Equal(t, "/var/cache/paidonce", filepath.Dir(dir("a", here)), "root's home is closed to postgres")
		return
	}
	require.Contains(t, dir("a", here), home)
	cache := t.TempDir()
	require.Contains(t, dir("a", map[string]string{"HOME": home, "XDG_CACHE_HOME": cache}), cache)
	require.Contains(t, dir("a", map[string]string{"HOME": "/nonexistent"}), os.TempDir())
	require.Contains(t, dir("a", nil), os.TempDir())
}

// Root's umask is often 077, and postgres does not run as root.
func TestUmask(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(newDir(t), "..", "made", "pg")
	u := startUser(t, userOptions{Dir: dir}, func(cmd *exec.Cmd) {
		cmd.Args = []string{"sh", "-c", `umask 077; exec "$0"`, cmd.Path}
		cmd.Path = "/bin/sh"
	})
	require.NoError(t, connect(t, u.URL).Ping(t.Context()))
	u.leave(t)
}

// The path of the directory can be guessed and what is in it is run, so somebody else
// must not have laid it out for us.
func TestDirectoryOfOthersIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		lay  func(t *testing.T, dir string)
		want string
	}{
		{"Link", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Symlink(t.TempDir(), dir))
		}, "is not a directory"},
		{"File", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
		}, "is not a directory"},
		{"Writable", func(t *testing.T, dir string) {
			t.Helper()
			require.NoError(t, os.Mkdir(dir, 0o700))
			require.NoError(t, os.Chmod(dir, 0o777))
		}, "others may write to"},
		{"Foreign", func(t *testing.T, dir string) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root can give a directory away")
			}
			require.NoError(t, os.Mkdir(dir, 0o755))
			require.NoError(t, os.Chown(dir, 65534, 65534))
		}, "belongs to another user"},
		{"Unreachable", func(t *testing.T, dir string) {
			t.Helper()
			if os.Geteuid() != 0 {
				t.Skip("only root runs postgres as another user")
			}
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o700))
		}, "cannot reach"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := newDir(t)
			tt.lay(t, dir)
			_, err := localpg.Start(t.Context(), localpg.Options{Dir: dir})
			require.ErrorContains(t, err, tt.want)
		})
	}
}
