package torture

import (
	"fmt"
	"time"

	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// In these a server is another one, or another for a while, and what it held back or lost is to be asked again.
var (
	moved = &scene{name: "the endpoint moves", start: endpointWorld, edit: lasting, events: 500, faults: 1, fault: moving}

	// Some wait for all that there is, and their nodes were answered before.
	refused = &scene{name: "refusals that pass", edit: lasting, events: 500, faults: 2, fault: passing("two refusals", func(r *round) func() {
		end := ofRefusals[0].begin(r, &history.Fault{})
		r.wait(300*time.Millisecond, 500*time.Millisecond)
		end()
		return ofRefusals[1].begin(r, &history.Fault{})
	})}

	// The faults take long: what happens meanwhile is kept small.
	forgotten = &scene{name: "releases lost", events: 500, faults: 2, fault: restarting, edit: func(j *job.Job) {
		lasting(j)
		j.HoldMax, j.Goroutines = 300, 6
	}}
)

// lasting has nodes that live on, and more names than usual.
func lasting(j *job.Job) {
	j.Calm, j.HoldMax, j.Goroutines, j.Life = true, 30, 24, 60_000
	j.Sems, j.Locks, j.Pools = nil, nil, nil
	for n := range 12 {
		j.Locks = append(j.Locks, job.Lock{Name: fmt.Sprintf("lasting %d", n), Kind: job.Queued})
	}
}

// passingMutants break what is promised where a server is replaced, or refuses for a while.
var passingMutants = []mutant{
	{
		name: "connections to what has become a replica stay", scene: moved, rules: []string{checker.Kept, ruleServed},
		broke: []change{{"pkg/scriptkit/errors.go", "\tif r.opts.KeepConnections || ", "\tif broken || r.opts.KeepConnections || "}},
	},
	{
		name: "a failed snapshot ends waits", scene: refused, rules: []string{checker.Outlasts},
		broke: []change{{"pkg/scriptkit/refusal.go", refusalOfCourse, refusalOfCourse + "broken && refusals[i].Begins == \"MISCONF\" || "}},
	},
	{
		name: "a password that is changed ends waits", scene: refused, rules: []string{checker.Outlasts},
		broke: []change{{"pkg/scriptkit/refusal.go", "== PassesOnceServed && !served {", "== PassesOnceServed && (broken || !served) {"}},
	},
	{
		name: "no release is asked again", scene: forgotten, rules: []string{checker.Returned},
		broke: []change{{"internal/engine/given.go", "\tif !e.given.begin() {", "\tif broken || !e.given.begin() {"}},
	},
}

// refusalOfCourse begins the look at what follows a refusal.
const refusalOfCourse = "\tif i < 0 || refusals[i].Course == Final || "
