package bouncertest

import "syscall"

// dieWithParent has the kernel end PgBouncer when the test binary is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
