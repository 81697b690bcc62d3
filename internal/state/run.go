package state

import (
	"fmt"
	"strings"

	"github.com/berth-go/berth"
)

// Run is a run of a name that runs once in each period, as scripts/once/run.lua writes it. Moments are by the server's
// clock (ms), 0 for none.
type Run struct {
	Start, Over, Fence, Attempt, Begun, Ended, Again, Missed int64
	Outcome, Node, Label, Error                              string
}

// RunBegun is the Outcome of a run that goes on, or whose process has died.
const RunBegun = "begun"

// ParseRun reads the text of a run; nil for "".
func ParseRun(text string) (*Run, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no run is known, and that is no error
	}
	var r Run
	var size int
	words := strings.SplitN(text, " ", 11)
	if len(words) == 11 {
		_, err := fmt.Sscanf(strings.Join(words[:10], " "), "%d %d %d %d %d %d %d %d %s %s",
			&r.Start, &r.Over, &r.Fence, &r.Attempt, &r.Begun, &r.Ended, &r.Again, &r.Missed, &r.Outcome, &r.Node)
		length, rest, _ := strings.Cut(words[10], ":")
		if _, bad := fmt.Sscanf(length, "%d", &size); err == nil && bad == nil && size >= 0 && size <= len(rest) && max(size, len(rest)-size) <= MaxText {
			r.Label, r.Error = rest[:size], rest[size:]
			for _, moment := range []*int64{&r.Start, &r.Over, &r.Begun, &r.Ended} {
				*moment = min(max(*moment, 0), Forever) // JSON has no others
			}
			return &r, nil
		}
	}
	return nil, fmt.Errorf("berth: what is kept of a run, %q, is %w: it cannot be read", Brief(text), ErrDamaged)
}

// Runs are what is kept of a name: the run that began last, and the newest that succeeded; nil for none.
type Runs struct{ Run, Success *Run }

// RunsFields are the fields of the hash that ParseRuns reads.
var RunsFields = []string{"fmt", "run", "success"}

// newestRuns is the number of the form of runs; see scripts/once/open.lua.
const newestRuns = "1"

// ParseRuns reads the runs of a name from the values of RunsFields, "" for those that are not there.
func ParseRuns(name string, values []string) (r Runs, err error) {
	if values[0] != "" && values[0] != newestRuns {
		return Runs{}, IncompatibleRuns(name, values[0])
	}
	if r.Run, err = ParseRun(values[1]); err != nil {
		return Runs{}, err
	}
	if r.Success, err = ParseRun(values[2]); err != nil {
		return Runs{}, err
	}
	return r, nil
}

// IncompatibleRuns is the error of runs in a form that this release does not know.
func IncompatibleRuns(name, form string) error {
	return fmt.Errorf("%w: what is kept of the runs of %q has the form %s", berth.ErrIncompatible, name, Brief(form))
}
