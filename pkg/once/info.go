package once

import (
	"time"

	"github.com/berth-go/berth/internal/state"
)

// Outcome says how a run ended.
type Outcome string

// The outcomes, as the server stores them.
const (
	// Begun: the run goes on, or its process has died. While the run goes on, the lock of the name
	// is held.
	Begun Outcome = "begun"
	// Succeeded: the run ended without an error. Its period is done.
	Succeeded Outcome = "done"
	// Failed: the run ended with an error.
	Failed Outcome = "failed"
	// Stopped: the run ended with an error because its own process stopped it: the context of the
	// call was cancelled, or the job was closed. A stopped run does not count as an attempt.
	Stopped Outcome = "stopped"
)

// Info describes a run.
type Info struct {
	// Period is the period that the run is for.
	Period Period `json:"period"`
	// Attempt is the number of the run in its period, from 1. The run after a stopped run has the
	// same number.
	Attempt int `json:"attempt"`
	// Fence is the fence of the run's hold. A later run has a greater fence, as long as the server keeps
	// its data.
	Fence int64 `json:"fence"`
	// Node is the id of the run's node, Label that node's label.
	Node  string `json:"node"`
	Label string `json:"label"`
	// Outcome says how the run ended, or Begun.
	Outcome Outcome `json:"outcome"`
	// Error is the text of the run's error, up to 512 bytes.
	Error string `json:"error"`
	// Begun and Ended are the run's times, by the server's clock. Ended is zero unless the run is known
	// to have ended.
	Begun time.Time `json:"begunAt"`
	Ended time.Time `json:"endedAt"`
	// Missed is how many periods before this one passed without a success, except those that a failed
	// run of this period has already reported.
	Missed int `json:"missed"`
}

// Took returns how long the run took, 0 unless the run is known to have ended.
func (i Info) Took() time.Duration {
	if i.Ended.IsZero() {
		return 0
	}
	return max(i.Ended.Sub(i.Begun), 0) // the server's clock may go back
}

// Last has the stored runs of a name.
type Last struct {
	// Run is the run that began last, nil for none.
	Run *Info `json:"run"`
	// Success is the newest successful run, nil for none. Success may be the same run as Run.
	Success *Info `json:"success"`
}

// parseInfo reads a run from a script's reply; nil for "".
func parseInfo(text string) (*Info, error) {
	r, err := state.ParseRun(text)
	return infoOf(r), err
}

// infoOf returns a run as the server stores it; nil for none.
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
