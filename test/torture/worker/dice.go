package main

import (
	"math"
	"math/rand/v2"
	"time"
)

// dice draws, from the seed, what a goroutine does.
type dice struct{ *rand.Rand }

// oneIn is true once in n draws.
func (d *dice) oneIn(n int) bool { return d.IntN(n) == 0 }

// between draws whole milliseconds from low to high.
func (d *dice) between(low, high int64) time.Duration {
	return time.Duration(low+d.Int64N(high-low+1)) * time.Millisecond
}

// moment draws a duration up to limit, the short ones as often as the long ones:
// each doubling of 30 us is as likely as any other.
func (d *dice) moment(limit time.Duration) time.Duration {
	const least = 30 * time.Microsecond
	return time.Duration(float64(least) * math.Pow(float64(limit)/float64(least), d.Float64()))
}
