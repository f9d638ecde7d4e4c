package localpg

import "syscall"

// dieWithParent has the kernel tell postgres to shut down when its keeper is killed.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
