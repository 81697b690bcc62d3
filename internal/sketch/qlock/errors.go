package qlock

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
	ErrDeadlock      = berth.ErrDeadlock
	ErrClosed        = berth.ErrClosed
	ErrInvalidConfig = berth.ErrInvalidConfig
	ErrIncompatible  = berth.ErrIncompatible
)

// What all primitives list.
type (
	// Holder is a hold as listings show it.
	Holder = berth.Holder
	// Waiter is a claim that waits in line, as listings show it.
	Waiter = berth.Waiter
)
