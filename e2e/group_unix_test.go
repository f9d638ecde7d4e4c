//go:build unix

package e2e_test

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the end of a command the end of its children too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
