package allocator

import (
	"errors"

	"github.com/berth-go/berth"
)

// The errors of this package: those of all primitives, and two of its own.
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

	// ErrAbsent says that a resource is not in the pool.
	ErrAbsent = errors.New("berth: resource not in the pool")
	// ErrSuperseded says that another process has begun a newer Replace of the same pool.
	ErrSuperseded = errors.New("berth: superseded by a newer replace")
)
