package fence

import (
	"errors"
	"fmt"
)

// ErrStale says that a guard has admitted a greater fence before, or that the given number is
// not a fence. The numbers are in *StaleError.
var ErrStale = errors.New("berth: stale fence")

// StaleError says which fence was refused, and why. StaleError matches ErrStale.
type StaleError struct {
	// Name is the name that is guarded.
	Name string
	// Fence is the number that was refused. A number below 1 is not a fence; a context outside of
	// a hold has 0.
	Fence int64
	// Greatest is the greatest fence that was admitted; 0 if Fence is not above 0.
	Greatest int64
}

// Error returns a text with the name and both fences.
func (e *StaleError) Error() string {
	if e.Fence <= 0 {
		return fmt.Sprintf("berth: stale fence for %q: %d is not above 0", e.Name, e.Fence)
	}
	return fmt.Sprintf("berth: stale fence for %q: %d, after %d was admitted", e.Name, e.Fence, e.Greatest)
}

// Is reports whether target is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
