package clock

import (
	"time"

	"golang.org/x/sys/unix"
)

// systemMeter returns nil where the system refuses to be asked.
//
// CLOCK_BOOTTIME is CLOCK_MONOTONIC plus the time suspended.
func systemMeter() *meter {
	if _, ok := read(unix.CLOCK_BOOTTIME); !ok {
		return nil
	}
	return &meter{
		atMost: func() time.Duration {
			monotonic, _ := read(unix.CLOCK_MONOTONIC)
			boot, _ := read(unix.CLOCK_BOOTTIME)
			return boot - monotonic
		},
		atLeast: func() time.Duration {
			boot, _ := read(unix.CLOCK_BOOTTIME)
			monotonic, _ := read(unix.CLOCK_MONOTONIC)
			return boot - monotonic
		},
	}
}

func read(id int32) (time.Duration, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(id, &ts); err != nil {
		return 0, false
	}
	return time.Duration(ts.Nano()), true
}
