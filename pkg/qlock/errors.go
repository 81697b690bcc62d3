package qlock

import "github.com/berth-go/berth"

// The errors of this package, which are those of all primitives.
var (
	ErrNotAcquired    = berth.ErrNotAcquired
	ErrBusy           = berth.ErrBusy
	ErrNotHeld        = berth.ErrNotHeld
	ErrLost           = berth.ErrLost
	ErrExpired        = berth.ErrExpired
	ErrReleased       = berth.ErrReleased
	ErrDeadlock       = berth.ErrDeadlock
	ErrTooManyEntries = berth.ErrTooManyEntries
	ErrNotRunning     = berth.ErrNotRunning
	ErrClosed         = berth.ErrClosed
	ErrInvalidConfig  = berth.ErrInvalidConfig
	ErrIncompatible   = berth.ErrIncompatible
	ErrUnavailable    = berth.ErrUnavailable
)
