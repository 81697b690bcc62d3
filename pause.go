package berth

import (
	"fmt"
	"time"
)

// Pause is a pause of a name: nothing is granted until the pause ends. Then waiting claims are
// granted in their order, without any call.
type Pause struct {
	// Left is how long the pause still lasts.
	Left time.Duration `json:"leftMs"`
	// Since is when the end of the pause was set, by the server's clock; zero if that is not
	// known.
	Since time.Time `json:"since,omitzero"`
	// Reason is the operator's reason, any bytes; "" for none.
	Reason string `json:"reason,omitzero"`
}

// lasts returns a text with the remaining time and the reason.
func (p *Pause) lasts() string {
	text := fmt.Sprintf(" for %s", max(time.Second, p.Left.Round(time.Second)))
	if p.Reason != "" {
		text += ": " + visible(p.Reason)
	}
	return text
}

// PausedAll is the result of PauseAll or UnpauseAll.
type PausedAll struct {
	// Names is how many names in use are paused now or, for UnpauseAll, how many are no longer paused. Names
	// leaves out those with one hold for which nobody else has waited: nothing is granted of them either, since
	// each new claim pauses the name first.
	Names int `json:"names"`
	// Unread is how many names could not be read. The error says why, and names the first 100.
	Unread int `json:"unread"`
}
