//go:build !linux

package integration

import "time"

// monotonic is the wall clock here: the one clock that processes are known to
// share. Setting it while a test runs may fail the test.
func monotonic() time.Duration { return time.Duration(time.Now().UnixNano()) }
