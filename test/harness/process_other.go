//go:build !linux

package harness

import "syscall"

// DieWithParent is for Linux alone: elsewhere a test binary that dies without
// cleaning up leaves its processes running.
func DieWithParent() *syscall.SysProcAttr { return nil }
