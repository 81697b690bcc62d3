package history

import (
	"syscall"
	"unsafe"
)

// Monotonic is CLOCK_MONOTONIC in ns, which all processes of a machine have in common.
func Monotonic() int64 {
	const clock = 1
	var ts syscall.Timespec
	if _, _, failed := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0); failed != 0 {
		panic(failed)
	}
	return ts.Nano()
}
