// Package clock is the one clock that local deadlines are compared with. It
// runs through suspend where the system tells how long that was, and in the
// virtual time of testing/synctest it is exact.
package clock

import (
	"sync/atomic"
	"time"
)

// Clock tells the time since it was made. It never goes back.
type Clock interface {
	Now() time.Duration
}

// New returns a clock that stands at 0. On Linux it counts the time that the
// machine spends suspended, on other systems it stands still meanwhile, and
// what a paused virtual machine misses it never knows. It is safe for
// concurrent use, and cheap enough to be asked on every call.
func New() Clock {
	base := time.Now()
	if clock := newSuspendable(elapsedSince(base), systemMeter()); clock != nil {
		return clock
	}
	return running{base}
}

// running is a clock that stands still while the machine is suspended.
type running struct{ base time.Time }

func (c running) Now() time.Duration { return time.Since(c.base) }

// least is the smallest suspension that counts. What is below it is the noise
// of clocks that are read one after the other.
const least = time.Millisecond

// meter reads how long the machine has been suspended since it was started.
// Its two clocks cannot be read in one instant; whatever pauses the process in
// between makes one reading too large and the other too small.
type meter struct {
	atMost, atLeast func() time.Duration
}

// elapsed reads the time since a moment, and how far the wall clock has moved
// apart from the monotonic clock since then.
type elapsed func() (since, shift time.Duration)

func elapsedSince(base time.Time) elapsed {
	wall := base.Round(0) // without its monotonic reading
	return func() (since, shift time.Duration) {
		now := time.Now()
		since = now.Sub(base)
		return since, now.Round(0).Sub(wall) - since
	}
}

// suspendable is a clock that runs through suspend.
//
// Asking the system costs ten times as much as time.Now, which is free of
// system calls. So the wall clock is the hint: the kernel moves it forward by
// the time suspended, in the same step as the clock that the meter reads. The
// meter is asked only after the wall clock moved apart from the monotonic one,
// for which setting it by hand is another, harmless reason.
type suspendable struct {
	elapsed elapsed
	meter   *meter
	before  time.Duration // suspended before the clock was made, at most

	suspended atomic.Int64 // since the clock was made; only grows
	shift     atomic.Int64 // of the wall clock when the meter was last asked
}

// newSuspendable returns nil when there is no meter.
func newSuspendable(elapsed elapsed, meter *meter) *suspendable {
	if meter == nil {
		return nil
	}
	// The smallest of three: one pause of this goroutine in the wrong place
	// must not hide as much of every suspension to come.
	before := min(meter.atMost(), meter.atMost(), meter.atMost())
	return &suspendable{elapsed: elapsed, meter: meter, before: before}
}

// Now never counts more than was really suspended: a deadline that passed too
// early would end a hold for nothing.
func (c *suspendable) Now() time.Duration {
	since, shift := c.elapsed()
	if moved := shift - time.Duration(c.shift.Load()); moved >= least/2 || moved <= -least/2 {
		c.measure()
		// Only now: who sees this shift must find the suspension counted.
		c.shift.Store(int64(shift))
	}
	return since + time.Duration(c.suspended.Load())
}

// measure raises suspended to what the meter says.
func (c *suspendable) measure() {
	total := c.meter.atLeast() - c.before
	for {
		known := c.suspended.Load()
		if total-time.Duration(known) < least || c.suspended.CompareAndSwap(known, int64(total)) {
			return
		}
	}
}
