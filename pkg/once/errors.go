package once

import "errors"

// The errors that only this package has.
var (
	// ErrUsedUp says that the period has been begun as often as Config.Attempts allow, and is not
	// done. The newest run is in the Result.
	ErrUsedUp = errors.New("berth: attempts of the period used up")

	// ErrLate says that the period was over before the call could begin, or that a later one with
	// other settings has begun. Nothing has run.
	ErrLate = errors.New("berth: too late for the period")
)
