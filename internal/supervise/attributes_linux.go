package supervise

import "syscall"

// attributes puts the command into a group of its own, and has the kernel end
// it when we are gone: whoever cannot be told of a lost lease must not outlive
// it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
