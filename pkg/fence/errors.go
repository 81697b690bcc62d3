package fence

import (
	"errors"
	"fmt"
)

// ErrStale says that a guard has admitted a greater fence before, or that the given
// number is no fence. The numbers are in *StaleError.
var ErrStale = errors.New("berth: stale fence")

// StaleError says which fence was refused, and why. It matches ErrStale.
type StaleError struct {
	// Name is what is guarded.
	Name string
	// Fence is the number that was refused. 0 and less are no fences; 0 is what a context
	// has outside of a hold.
	Fence int64
	// Greatest is the greatest fence that was admitted; 0 if Fence is not above 0.
	Greatest int64
}

// Error names what is guarded and both fences.
func (e *StaleError) Error() string {
	if e.Fence <= 0 {
		return fmt.Sprintf("berth: stale fence for %q: %d is not above 0", e.Name, e.Fence)
	}
	return fmt.Sprintf("berth: stale fence for %q: %d, after %d was admitted", e.Name, e.Fence, e.Greatest)
}

// Is reports whether target is ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
