package demo

import "time"

// urlVariable tells a worker process where the server is.
const urlVariable = "BERTH_DEMO_URL"

// actVariable tells it the name of the act in which it plays.
const actVariable = "BERTH_DEMO_ACT"

// labelVariable tells it its label.
const labelVariable = "BERTH_DEMO_LABEL"

// leaseVariable tells it its lease.
const leaseVariable = "BERTH_DEMO_LEASE"

// steady is the lease of all workers except the victim: no pause of a busy machine ends it.
const steady = time.Minute

// aliveEvery is how often a worker says that it has said all until then.
const aliveEvery = 20 * time.Millisecond

// order is what a worker is told, one JSON document a line on its stdin: to ask, and
// when it is inside any other one, or the end of stdin, to leave.
type order struct {
	// Work is how long the worker must stay inside at least, by order of its director.
	Work time.Duration `json:"work"`
	// Again is how much of Work the worker must spend in a second entry, which it makes at once; 0
	// for none.
	Again time.Duration `json:"again,omitempty"`
	// Bind names the binding with which the worker asks, "" for none.
	Bind string `json:"bind,omitempty"`
	// Rest is how long the worker's resource must rest, 0 for not at all.
	Rest time.Duration `json:"rest,omitempty"`
}

// kind is what a worker reports.
type kind string

const (
	ready   kind = "ready"   // the process is up
	queued  kind = "queued"  // the server has put the claim into the line
	granted kind = "granted" // the worker is inside
	leaving kind = "leaving" // it is about to give its place back
	gone    kind = "gone"    // it has
	trouble kind = "trouble" // something went wrong, see Text

	alive     kind = "alive"      // all that it said before has been said
	reentered kind = "reentered"  // the worker is inside a second time
	innerGone kind = "inner gone" // and only once again

	// The kinds that the director finds out by itself.
	exited   kind = "exited"    // the process has ended, see Text
	killed   kind = "killed"    // a worker was killed, see Text
	leaseEnd kind = "lease end" // the lease of a worker that was killed is over
)

// report is what a worker says, one JSON document a line on its stdout.
type report struct {
	Kind kind `json:"kind"`
	// At is when, by the clock of the machine.
	At time.Time `json:"at"`
	// Ahead is how many stand before a queued claim.
	Ahead int `json:"ahead,omitempty"`
	// Claim is the id of a granted claim, Fence the number of its grant.
	Claim string `json:"claim,omitempty"`
	Fence int64  `json:"fence,omitempty"`
	// Resource is what the worker has of a pool.
	Resource string `json:"resource,omitempty"`
	Text     string `json:"text,omitempty"`
	// Late is how late the worker's timers were at worst.
	Late time.Duration `json:"late,omitempty"`

	worker int // who said it; not sent
}
