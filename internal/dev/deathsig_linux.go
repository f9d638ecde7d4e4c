package dev

import (
	"os/exec"
	"syscall"
)

// dieWithParent ends a child when this process dies, kill -9 included.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
