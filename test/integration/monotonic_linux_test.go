package integration

import (
	"syscall"
	"time"
	"unsafe"
)

// monotonic is CLOCK_MONOTONIC, which all processes of a machine have in common.
func monotonic() time.Duration {
	const clock = 1
	var ts syscall.Timespec
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); failed != 0 {
		panic(failed)
	}
	return time.Duration(ts.Nano())
}
