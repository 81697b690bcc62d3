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
