package torture

import (
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/job"
)

// In these names are paused all the time, and pauses ended.
var (
	// What is paused is often free, and somebody comes for it, or waits.
	halting = &scene{name: "names paused", events: 1500, edit: func(j *job.Job) {
		j.Calm, j.HoldMax, j.Goroutines, j.Pauses = true, 10, 4, 10
		j.Sems, j.Locks, j.Pools = j.Sems[1:], j.Locks[:1], j.Pools[1:2]
	}}

	// Heartbeats and arrivals come seldom: it is by timers, or by an Unpause itself, that a pause ends in time.
	resuming = &scene{name: "names paused, heartbeats seldom", events: 10_000, edit: func(j *job.Job) {
		long(j)
		j.Lease, j.HoldMax, j.Pauses = 12_000, 1500, 3
	}}
)

// pauseMutants break what a pause promises.
var pauseMutants = []mutant{
	{
		name: "a hand-off grants what is paused", scene: halting, rules: []string{checker.Paused},
		broke: []change{{"scripts/line/handoff.lua", "  if st.pause > 0 then\n", "  if false then\n"}},
	},
	{
		name: "an arrival is granted what is paused", scene: halting, rules: []string{checker.Paused},
		broke: []change{{"scripts/line/acquire.lua", "    if st.pause == 0 then\n", "    if true then\n"}},
	},
	{
		name: "a fast path grants what is paused", scene: halting, rules: []string{checker.Paused},
		broke: []change{
			{"scripts/state/values.lua", "(%d+ %d+ %d+ %d+)( .*)$", "(%d+ %d+ %d+)( .*)$"},
			{"scripts/state/values.lua", `values_calm = "0 0 0 0"`, `values_calm = "0 0 0"`},
			{"scripts/state/values.lua", `values_look = "^ (%d+)( .*)$"`, `values_look = "^ %d+ (%d+)( .*)$"`},
		},
	},
	{
		name: "a pool's fast path grants what is paused", scene: halting, rules: []string{checker.Paused},
		broke: []change{{"scripts/state/values.lua", "(0 0 1 0 .*)$", "(0 0 1 .*)$"}},
	},
	{
		name: "nobody comes at the end of a pause", scene: resuming, rules: []string{checker.Resumed},
		broke: []change{{"scripts/line/deadline.lua", "  if st.pause > 0 then\n    return st.pause\n", "  if false then\n    return st.pause\n"}},
	},
	{
		name: "the end of a pause by a call grants to nobody", scene: resuming, rules: []string{checker.Resumed},
		broke: []change{{"scripts/line/pause.lua", "    handoff(at, st, budget, true)\n", "    if lasts > 0 then\n      handoff(at, st, budget, true)\n    end\n"}},
	},
}
