package berth

import (
	"fmt"
	"time"
)

// Pause is a pause of a name: nothing is granted until it ends, and then who waits comes in its
// order, without a call of anybody's.
type Pause struct {
	// Left is how long it lasts yet.
	Left time.Duration `json:"leftMs"`
	// Since is when it was set to its end, by the server's clock; zero where that is not known.
	Since time.Time `json:"since,omitzero"`
	// Reason is what the operator gave, any bytes; "" for none.
	Reason string `json:"reason,omitzero"`
}

// lasts says for how long yet, and why.
func (p *Pause) lasts() string {
	text := fmt.Sprintf(" for %s", max(time.Second, p.Left.Round(time.Second)))
	if p.Reason != "" {
		text += ": " + visible(p.Reason)
	}
	return text
}

// PausedAll is what a pause of all names, or its end, came to.
type PausedAll struct {
	// Names is how many names in use are paused now, without those that have one hold for which nobody else has
	// waited: of these nothing is granted either, as whoever asks pauses them first. Of an end it is how many
	// are no longer paused.
	Names int `json:"names"`
	// Unread is how many names could not be asked. The error says why, and names the first 100.
	Unread int `json:"unread"`
}
