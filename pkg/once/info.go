package once

import (
	"time"

	"github.com/berth-go/berth/internal/state"
)

// Outcome says how a run ended.
type Outcome string

// The outcomes, as the server keeps them.
const (
	// Begun: the run goes on, or its process has died. The lock of the name tells which: it is held
	// as long as the run goes on.
	Begun Outcome = "begun"
	// Succeeded: the run ended without an error. Its period is done.
	Succeeded Outcome = "done"
	// Failed: the run ended with an error.
	Failed Outcome = "failed"
	// Stopped: the run ended with an error because its own process told it to end: the context of the
	// call was cancelled, or the job was closed. It does not count as an attempt.
	Stopped Outcome = "stopped"
)

// Info is what is known of a run.
type Info struct {
	// Period is the period that the run is for.
	Period Period `json:"period"`
	// Attempt is the number of the run in its period, from 1. The run after one that was stopped has
	// the same number.
	Attempt int `json:"attempt"`
	// Fence is that of the hold that the run is under. A run that begins later has a greater one, as long
	// as the server keeps its data.
	Fence int64 `json:"fence"`
	// Node is the id of the node that runs it, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Outcome is how it ended, if it has.
	Outcome Outcome `json:"outcome"`
	// Error is why it failed: the text of its error, up to 512 bytes.
	Error string `json:"error"`
	// Begun and Ended are by the server's clock. Ended is zero where the run is not known to have ended.
	Begun time.Time `json:"begunAt"`
	Ended time.Time `json:"endedAt"`
	// Missed is how many periods went by without a success before this one, as far as no run that has
	// failed in this period has told of them.
	Missed int `json:"missed"`
}

// Took is how long the run took, 0 while it is not known to have ended.
func (i Info) Took() time.Duration {
	if i.Ended.IsZero() {
		return 0
	}
	return max(i.Ended.Sub(i.Begun), 0) // the server's clock may go back
}

// Last is what the server knows of the runs of a name.
type Last struct {
	// Run is the run that began last, nil for none.
	Run *Info `json:"run"`
	// Success is the newest run that succeeded, nil for none. It may be Run.
	Success *Info `json:"success"`
}

// parseInfo reads a run as a script has answered it; nil for "".
func parseInfo(text string) (*Info, error) {
	r, err := state.ParseRun(text)
	return infoOf(r), err
}

// infoOf is a run as the server keeps it; nil for none.
func infoOf(r *state.Run) *Info {
	if r == nil {
		return nil
	}
	i := Info{
		Period: period(r.Start, r.Over), Attempt: int(r.Attempt), Fence: r.Fence, Node: r.Node, Label: r.Label,
		Outcome: Outcome(r.Outcome), Error: r.Error, Begun: time.UnixMilli(r.Begun).UTC(), Missed: int(r.Missed),
	}
	if r.Ended > 0 {
		i.Ended = time.UnixMilli(r.Ended).UTC()
	}
	return &i
}
