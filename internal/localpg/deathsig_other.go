//go:build unix && !linux

package localpg

import "syscall"

// dieWithParent has nothing to offer here: the next Start stops a server without a keeper.
func dieWithParent(*syscall.SysProcAttr) {}
