package berth

import (
	"strconv"
	"time"
)

// DrainTarget selects the processes that must drain. Exactly one field must be set.
type DrainTarget struct {
	// Node is the id of a node, as its ID method and listings give it.
	Node string `json:"node,omitzero"`
	// Label matches a node whose Config.Label equals it. A Label that ends in * matches every node
	// whose Config.Label begins with the text before the *.
	Label string `json:"label,omitzero"`
}

// String returns the target for use in a sentence, such as: label "worker/*".
func (t DrainTarget) String() string {
	if t.Node != "" {
		return "node " + visible(t.Node)
	}
	return "label " + strconv.QuoteToGraphic(t.Label)
}

// DrainOptions are the options of Drain. With nil the drain has no end and uses no force.
type DrainOptions struct {
	// For is the time after which the drain ends by itself: whole milliseconds, at most 8784h; 0 for
	// never.
	For time.Duration
	// Reason is shown in listings and given to the draining processes: any text of up to 512
	// bytes.
	Reason string
	// Force ends the holds and waits that are left once ForceAfter, which must be above 0, has passed. Set both
	// fields or neither.
	Force      bool
	ForceAfter time.Duration
	// Each, if not nil, is called after each pass over the names with the drain's results so far. Drain waits until Each
	// returns.
	Each func(Drained)
}

// Drain is a drain that is in force: the matching processes finish their holds and get nothing
// new.
type Drain struct {
	DrainTarget
	// Since is when the drain was called, by the server's clock.
	Since time.Time `json:"since"`
	// Left is how long the drain still lasts, 0 if the drain has no end.
	Left time.Duration `json:"leftMs,omitzero"`
	// Reason is the operator's reason, any bytes; "" for none.
	Reason string `json:"reason,omitzero"`
}

// Drained is the result of a drain. Each number counts claims.
type Drained struct {
	// Asked is how many holds were asked back. A process that learns of the drain by itself gives its holds back
	// without being asked.
	Asked int `json:"asked"`
	// Cancelled is how many waits were ended.
	Cancelled int `json:"cancelled"`
	// Ended is how many holds were ended by force.
	Ended int `json:"ended"`
	// Detached is how many holds are detached, so that no process has them. The drain leaves them to a
	// Resume or to the end of their lease.
	Detached int `json:"detached"`
	// Left is how many holds and waits the last pass found.
	Left int `json:"left"`
	// Some are the first claims of Left, at most 10.
	Some []Unfinished `json:"some,omitzero"`
}

// Unfinished is a claim that a drain waits for.
type Unfinished struct {
	Ref
	Claim string `json:"claim"`
	Node  string `json:"node"`
	Label string `json:"label"`
	// Waits is true for a wait, false for a hold.
	Waits bool `json:"waits"`
}
