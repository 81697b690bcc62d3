package harness

import "syscall"

// DieWithParent has the kernel end a process when the test binary dies without
// cleaning up, by a panic or a timeout. The goroutine that starts it must stay locked
// to its thread for as long as the process lives: it is the thread's end that counts. An interrupt from the
// terminal does not reach it: what the test binary makes of that is for it to say.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
