package berth

import "time"

// Pause is a pause of a name: nothing is granted until it ends, and then who waits comes in its
// order, without a call of anybody's.
type Pause struct {
	// Left is how long it lasts yet.
	Left time.Duration
	// Since is when it was set to its end, by the server's clock; zero where that is not known.
	Since time.Time
	// Reason is what the operator gave, any bytes; "" for none.
	Reason string
}

// PausedAll is what a pause of all names, or its end, came to.
type PausedAll struct {
	// Names is how many names were in use and are paused now; or how many pauses were ended.
	Names int
	// Unread is how many names could not be asked. The error says why.
	Unread int
}
