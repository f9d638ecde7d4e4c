//go:build unix && !linux

package bouncertest

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
