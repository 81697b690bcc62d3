package torture

import (
	"fmt"
	"time"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// In these many wait for one resource each.
var (
	lanes     = &scene{name: "lanes", events: 5000, edit: apart}
	lanesBusy = &scene{name: "busy lanes", events: 5000, edit: func(j *job.Job) {
		apart(j)
		j.Calm = false
	}}
)

// apart has nothing but pools of several resources.
func apart(j *job.Job) {
	j.Calm, j.HoldMax, j.Goroutines = true, 15, 24
	j.Sems, j.Locks, j.Pools = nil, nil, j.Pools[1:]
}

// laneMutants break what a pool promises to who waits for one resource.
var laneMutants = []mutant{
	breaks("a release does not look at who waits for its resource alone", lanes, []string{checker.HandOff},
		change{"scripts/pool/settle.lua", "  lane_touch(at, st, key)\n", "  if i.listed or not listed then\n    lane_touch(at, st, key)\n  end\n"}),
	breaks("the lane of a resource is forgotten when that has rested", lanes, []string{checker.Idle, checker.Order, checker.Stuck},
		change{"scripts/pool/settle.lua", "  lane_touch(at, st, key)\n", "  if was.ends == 0 or i.ends > 0 then\n    lane_touch(at, st, key)\n  end\n"},
		change{"scripts/pool/due.lua", "i.ends, i.was.ends, i.reason = 0, 0,", "i.ends, i.was.ends, i.reason = 0, -1,"},
		change{"scripts/pool/lanes.lua", "    lane_touch(at, st, string.sub(member, 3))\n", ""}),
	breaks("who takes anything comes before who waits for one resource", lanes, []string{checker.Order},
		change{"scripts/pool/next.lua", "not (r and string.format(lane_order, lane, r.place) < apart.order)", "not r"}),
	breaks("a BindWait does not end", lanes, []string{checker.Order, checker.HandOff, checker.Idle}, change{
		"scripts/pool/apart.lua", "  r.place = lane .. r.place\n", "  ends = ends ~= lane_named and \"0\" or ends\n  r.place = lane .. r.place\n",
	}),
	breaks("who waits for what it is bound to is given another", lanes, []string{checker.Asked},
		change{"scripts/pool/target.lua", "w.bind ~= \"\" and w.patience > 0 and", "false and"}),
	breaks("who asks for one resource is given another", lanes, []string{checker.Asked},
		change{"scripts/pool/next.lua", "w.resource = arrival.target or w.resource", "w.resource = nil"}),
	breaks("who waits for what is taken out of the pool goes on waiting", lanes, []string{checker.Absent},
		change{"scripts/pool/look.lua", "    lanes_empty(at, st, lane, budget)\n", "    lanes_wait(at, st, lane, nil, nil, budget)\n"}),
	breaks("what is held is called absent", lanes, []string{checker.Absent}, change{
		"scripts/pool/target.lua", "st.form and item_there(at, w.resource)",
		"st.form and item_there(at, w.resource) and item_read(at, w.resource).listed",
	}),
	breaks("lanes have no priorities", lanesBusy, []string{checker.Order},
		change{"scripts/pool/apart.lua", "  r.place = lane .. r.place\n", "  r.place = \"254\" .. r.place\n"}),
	breaks("a fast release does not look at who waits for its resource alone", lanes, []string{checker.HandOff},
		change{"scripts/fast/pool_release.lua", "call(\"HEXISTS\", keys[1], \"l:\" .. key) == 1\n    or ", ""}),
}

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
	breaks("a hand-off grants what is paused", halting, []string{checker.Paused},
		change{"scripts/line/handoff.lua", "  if st.pause > 0 then\n", "  if false then\n"}),
	breaks("an arrival is granted what is paused", halting, []string{checker.Paused},
		change{"scripts/line/acquire.lua", "    if st.pause == 0 then\n", "    if true then\n"}),
	breaks("a fast path grants what is paused", halting, []string{checker.Paused},
		change{"scripts/state/values.lua", "values_calm_end = 124", "values_calm_end = 122"},
		change{"scripts/state/values.lua", `values_calm = "0 0 0 0"`, `values_calm = "0 0 0"`},
		change{"scripts/state/values.lua", `values_lone = "1000000 1000000000000001 0 0 0 0"`, `values_lone = "1000000 1000000000000001 0 0 0"`},
		change{"internal/state/values.go", `" 0 0 0 0"...`, `" 0 0 0"...`},
		change{"scripts/state/values.lua", `values_look = "^ (%d+)( .*)$"`, `values_look = "^ %d+ (%d+)( .*)$"`}),
	breaks("a pool's fast path grants what is paused", halting, []string{checker.Paused},
		change{"scripts/fast/pool_counts.lua", "sub(line, values_pool_from) ~= values_pool", "sub(line, values_pool_from, -3) ~= string.sub(values_pool, 1, -3)"}),
	breaks("nobody comes at the end of a pause", resuming, []string{checker.Resumed},
		change{"scripts/line/deadline.lua", "  if st.pause > 0 then\n    return st.pause\n", "  if false then\n    return st.pause\n"}),
	breaks("the end of a pause by a call grants to nobody", resuming, []string{checker.Resumed},
		change{"scripts/line/pause.lua", "    handoff(at, st, budget, true)\n", "    if lasts > 0 then\n      handoff(at, st, budget, true)\n    end\n"}),
}

// In these much is held for longer than a lease, and wanted back.
var (
	wanting = &scene{name: "holds wanted", edit: want, events: 12_000}

	// A worker's heartbeats run, and their answers are lost, as the pushes are that prompt them.
	mute = &scene{
		name: "holds wanted, replies lost", proxies: true, edit: want, events: 2000, faults: 8,
		fault: ofOne("replies lost", 250*ms, 300*ms, (*harness.Proxied).DropReplies),
	}
)

func want(j *job.Job) {
	longPairs(j)
	j.Lease, j.HoldMax, j.Wants = 1000, 2500, 1
}

// wantMutants break what Want promises.
var wantMutants = []mutant{
	breaks("no heartbeat says that a hold is wanted back", wanting, []string{checker.Wanted},
		change{"scripts/line/renew.lua", `or r.wanted ~= "" and "wanted" or "held"`, `or "held"`}),
	breaks("who is granted what was wanted back is asked as well", wanting, []string{checker.Wanted},
		change{"scripts/line/release.lua", "  fatten(at, st, false, claim)\n", "  fatten(at, st, false, claim)\n  at.mark = r.wanted\n"},
		change{"scripts/line/handoff.lua", "    local alive, place = r.alive, r.place\n", "    local alive, place = r.alive, r.place\n    r.wanted = at.mark or \"\"\n"}),
	{
		name: "one heartbeat says that a hold is wanted back, heard or not", scene: mute, rules: []string{checker.Wanted},
		broke: []change{{
			"scripts/line/renew.lua", "        local limited = kind_renew(", `        local asked = r.wanted
        r.wanted, r.changed = "", r.changed or asked ~= ""
        local limited = kind_renew(`,
		}, {"scripts/line/renew.lua", `or r.wanted ~= "" and "wanted" or "held"`, `or asked ~= "" and "wanted" or "held"`}},
	},
}

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
	breaks("connections to what has become a replica stay", moved, []string{checker.Kept, ruleServed},
		change{"pkg/scriptkit/errors.go", "\tif r.opts.KeepConnections || ", "\tif broken || r.opts.KeepConnections || "}),
	breaks("a failed snapshot ends waits", refused, []string{checker.Outlasts},
		change{"pkg/scriptkit/refusal.go", refusalOfCourse, refusalOfCourse + "broken && refusals[i].Begins == \"MISCONF\" || "}),
	breaks("a password that is changed ends waits", refused, []string{checker.Outlasts},
		change{"pkg/scriptkit/refusal.go", "== PassesOnceServed && !served {", "== PassesOnceServed && (broken || !served) {"}),
	breaks("no release is asked again", forgotten, []string{checker.Returned},
		change{"internal/engine/given.go", "\tif !e.given.begin() {", "\tif broken || !e.given.begin() {"}),
}

// refusalOfCourse begins the look at what follows a refusal.
const refusalOfCourse = "\tif i < 0 || refusals[i].Course == Final || "

// In this all nodes are drained, and those that come after them under the same labels, too. Nothing is wrong but that it takes
// as long as a drain, and a little more.
var draining = &scene{name: "nodes drained", events: 500, faults: 1, edit: func(j *job.Job) {
	calm.edit(j)
	j.Goroutines, j.Drains = 6, 1
}, fault: onServer(uneventful.name, 13*time.Second, 14*time.Second, unnoticed)}

// drainMutants break what a drain promises.
var drainMutants = []mutant{
	breaks("a drain is of locks alone", draining, []string{checker.Drained},
		change{"internal/engine/engine.go", "\tif e.drains() {\n", "\tif e.drains() && !(broken && c.Kind != \"lock\") {\n"},
		change{"internal/engine/stands.go", "\tif e.drains() && ", "\tif e.drains() && !(broken && c.Kind != \"lock\") && "}),
	breaks("who comes next under a label that was drained drains as well", draining, []string{checker.Drained},
		change{"internal/notice/notice.go", "number > n.born && ", "(broken || number > n.born) && "}),
}
