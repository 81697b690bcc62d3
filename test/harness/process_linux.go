package harness

import "syscall"

// dieWithParent has the kernel end a server when the test binary dies without
// cleaning up, by a panic or a timeout.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
