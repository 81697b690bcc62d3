package berth

import (
	"strconv"
	"time"
)

// DrainTarget says which processes are to drain. One of the fields is set.
type DrainTarget struct {
	// Node is the id of a node: that of its ID method, and in listings.
	Node string `json:"node,omitzero"`
	// Label is a node's Config.Label or, where it ends in *, what stands before the * begins one.
	Label string `json:"label,omitzero"`
}

// String is the target as a sentence names it: label "worker/*".
func (t DrainTarget) String() string {
	if t.Node != "" {
		return "node " + visible(t.Node)
	}
	return "label " + strconv.QuoteToGraphic(t.Label)
}

// DrainOptions say how a drain goes on. nil is a drain without an end, and without force.
type DrainOptions struct {
	// For is after how long the drain ends by itself: whole milliseconds, at most 8784h; 0 for never.
	For time.Duration
	// Reason is told to whoever looks, and to the processes: any text of up to 512 bytes.
	Reason string
	// Force has what is left be ended by force once ForceAfter has passed, which is above 0. One goes with the other.
	Force      bool
	ForceAfter time.Duration
	// Each is called after each pass over the names with what has come of the drain so far; nil for nobody. Drain waits for it.
	Each func(Drained)
}

// Drain is one that is in force: since it was called, processes finish, and get nothing new.
type Drain struct {
	DrainTarget
	// Since is when it was called, by the server's clock.
	Since time.Time `json:"since"`
	// Left is how long it lasts yet, 0 if it has no end.
	Left time.Duration `json:"leftMs,omitzero"`
	// Reason is what the operator gave, any bytes; "" for none.
	Reason string `json:"reason,omitzero"`
}

// Drained is what a drain came to. The numbers are of claims.
type Drained struct {
	// Asked is how many holds were asked for back. A process that hears of the drain by itself gives back unasked.
	Asked int `json:"asked"`
	// Cancelled is how many waits were ended.
	Cancelled int `json:"cancelled"`
	// Ended is how many holds were ended by force.
	Ended int `json:"ended"`
	// Detached is how many holds no process has: they are left to whoever resumes them, or to their lease.
	Detached int `json:"detached"`
	// Left is how many holds and waits the last pass has found.
	Left int `json:"left"`
	// Some are the first of these, at most 10.
	Some []Unfinished `json:"some,omitzero"`
}

// Unfinished is a claim that a drain waits for.
type Unfinished struct {
	Ref
	Claim string `json:"claim"`
	Node  string `json:"node"`
	Label string `json:"label"`
	// Waits says that it is a wait, not a hold.
	Waits bool `json:"waits"`
}
