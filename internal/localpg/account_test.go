//go:build unix

package localpg_test

import (
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Continuous integration runs as root and as a service account; root can try both.
func TestServiceAccountWithoutHome(t *testing.T) {
	t.Parallel()
	const nobody = 65534
	dir, become := somebodyElse(t, nobody)
	u := startUser(t, userOptions{}, become)
	require.Equal(t, dir, filepath.Dir(u.Dir), "its cluster is in the temporary directory")
	require.NoError(t, connect(t, u.URL).Ping(t.Context()))
	info, err := os.Stat(filepath.Join(u.Dir, "data"))
	require.NoError(t, err)
	require.EqualValues(t, nobody, info.Sys().(*syscall.Stat_t).Uid)
	u.leave(t)
	waitStopped(t, u.Dir)
}

// A container may run under a number that /etc/passwd does not know.
func TestUserWithoutName(t *testing.T) {
	t.Parallel()
	const nameless = 64242
	if _, err := osuser.LookupId(strconv.Itoa(nameless)); err == nil {
		t.Skip("somebody has the number")
	}
	_, become := somebodyElse(t, nameless)
	cmd := exec.Command("")
	cmd.Env = append(os.Environ(), userEnv+"={}")
	become(cmd)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "the user id 64242 has no name in /etc/passwd")
	require.Contains(t, string(out), "add an entry, or set PAIDONCE_DATABASE_URL")
}

// somebodyElse returns a folder where everybody may write, as /tmp is, and what makes a command run
// this binary as another user who has no home and whose temporary directory that is.
func somebodyElse(t *testing.T, uid uint32) (dir string, become func(*exec.Cmd)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can become somebody else")
	}
	dir = filepath.Dir(newDir(t))
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	exe, err := os.Executable()
	require.NoError(t, err)
	binary, err := os.ReadFile(exe)
	require.NoError(t, err)
	copied := filepath.Join(dir, "localpg.test") // go test's own folder is closed to others
	require.NoError(t, os.WriteFile(copied, binary, 0o755))
	return dir, func(cmd *exec.Cmd) {
		cmd.Path, cmd.Args, cmd.Dir, cmd.Err = copied, []string{copied}, "/", nil
		cmd.Env = append(cmd.Env, "HOME=/nonexistent", "XDG_CACHE_HOME=", "TMPDIR="+dir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
}
