package semaphore

import (
	"errors"

	"github.com/berth-go/berth"
)

// ErrAbsent says that no capacity is stored under a semaphore's name: nobody has
// used it, or it is forgotten.
var ErrAbsent = errors.New("berth: no such semaphore")

// The other errors of this package, which are those of all primitives.
var (
	ErrNotAcquired   = berth.ErrNotAcquired
	ErrBusy          = berth.ErrBusy
	ErrNotHeld       = berth.ErrNotHeld
	ErrLost          = berth.ErrLost
	ErrExpired       = berth.ErrExpired
	ErrReleased      = berth.ErrReleased
	ErrClosed        = berth.ErrClosed
	ErrInvalidConfig = berth.ErrInvalidConfig
	ErrIncompatible  = berth.ErrIncompatible
	ErrUnavailable   = berth.ErrUnavailable
)
