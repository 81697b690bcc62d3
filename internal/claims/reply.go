package claims

import (
	"fmt"
	"strconv"
	"time"

	"github.com/berth-go/berth"
	"github.com/berth-go/berth/internal/engine"
	"github.com/berth-go/berth/pkg/scriptkit"
)

// Unexpected is the error for a reply that is none of those which the caller
// reads: the state has a newer release's format, or Go does not know the
// status, which the tests rule out.
func Unexpected(name string, r *scriptkit.Reply) error {
	if r.Status() == statusIncompatible && r.Int(1) == 0 {
		return fmt.Errorf("berth: the state of %q is %w: it holds something in the place of its counts that is not Berth's", name, ErrDamaged)
	}
	if r.Status() == statusIncompatible {
		return fmt.Errorf("%w: the state of %q has format %d, which this release does not know", berth.ErrIncompatible, name, r.Int(1))
	}
	return fmt.Errorf("berth: unexpected status %q for %q", r.Status(), name)
}

// Decimal writes a number as the scripts take it.
func Decimal(n int64) string { return strconv.FormatInt(n, 10) }

// Millis reads milliseconds. More of them than a Duration carries, 292 years, are
// berth.Forever.
func Millis(n int64) time.Duration {
	if n > int64(berth.Forever/time.Millisecond) {
		return berth.Forever
	}
	return time.Duration(n) * time.Millisecond
}

// Left reads milliseconds that are left, where -1 stands for no end.
func Left(n int64) time.Duration {
	if n < 0 {
		return -1
	}
	return Millis(n)
}

// Tide reads next_ms and first at i, and more at j.
func Tide(r *scriptkit.Reply, i, j int) engine.Tide {
	return engine.Tide{Next: Left(r.Int(i)), First: r.Int(i+1) == 1, More: r.Int(j) == 1}
}
