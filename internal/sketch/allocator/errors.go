package allocator

import (
	"errors"

	"github.com/berth-go/berth"
)

var errSketch = errors.New("sketch: signatures only")

// The errors of all primitives, see package berth.
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
)

// The errors of pools alone.
var (
	// ErrAbsent says that a resource is not in the pool.
	ErrAbsent = errors.New("berth: resource not in the pool")
	// ErrSuperseded says that a newer Replace of the same pool has begun.
	ErrSuperseded = errors.New("berth: superseded by a newer replace")
)

// What all primitives list.
type (
	// Holder is a hold as listings show it.
	Holder = berth.Holder
	// Waiter is a claim that waits in line, as listings show it.
	Waiter = berth.Waiter
)
