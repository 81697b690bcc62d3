//go:build unix && !linux

package supervise

import "syscall"

// attributes puts the command into a group of its own. This system cannot be
// asked to end it when we are gone.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
