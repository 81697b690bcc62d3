package once

import "errors"

// The errors of this package.
var (
	// ErrUsedUp says that Config.Attempts runs of the period have begun and none has succeeded.
	// The newest run is in the Result.
	ErrUsedUp = errors.New("berth: attempts of the period used up")

	// ErrLate says that the period ended before the call could begin a run, or that a later period
	// with other settings has begun. Nothing has run.
	ErrLate = errors.New("berth: too late for the period")
)
