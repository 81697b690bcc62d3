//go:build !linux

package harness

import "syscall"

// dieWithParent is for Linux alone: elsewhere a test binary that dies without
// cleaning up leaves its servers running.
func dieWithParent() *syscall.SysProcAttr { return nil }
