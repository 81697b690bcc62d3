package torture

import (
	"time"

	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/job"
)

// In this all nodes are drained, and those that come after them under the same labels, too. Nothing is wrong but that it takes
// as long as a drain, and a little more.
var draining = &scene{name: "nodes drained", events: 500, faults: 1, edit: func(j *job.Job) {
	calm.edit(j)
	j.Goroutines, j.Drains = 6, 1
}, fault: &fault{name: uneventful.name, least: 13 * time.Second, most: 14 * time.Second, begin: uneventful.begin}}

// drainMutants break what a drain promises.
var drainMutants = []mutant{
	{
		name: "a drain is of locks alone", scene: draining, rules: []string{checker.Drained},
		broke: []change{
			{"internal/engine/engine.go", "\tif e.drains() {\n", "\tif e.drains() && !(broken && c.Kind != \"lock\") {\n"},
			{"internal/engine/stands.go", "\tif e.drains() && ", "\tif e.drains() && !(broken && c.Kind != \"lock\") && "},
		},
	},
	{
		name: "who comes next under a label that was drained drains as well", scene: draining, rules: []string{checker.Drained},
		broke: []change{{"internal/notice/notice.go", "number > n.born && ", "(broken || number > n.born) && "}},
	},
}
