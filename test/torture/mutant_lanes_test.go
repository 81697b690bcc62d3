package torture

import (
	"github.com/berth-go/berth/test/torture/checker"
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
	{
		name: "a release does not look at who waits for its resource alone", scene: lanes, rules: []string{checker.HandOff},
		broke: []change{{"scripts/pool/settle.lua", "  lane_touch(at, st, key)\n", "  if i.listed or not listed then\n    lane_touch(at, st, key)\n  end\n"}},
	},
	{
		name: "the lane of a resource is forgotten when that has rested", scene: lanes, rules: []string{checker.Idle, checker.Order, checker.Stuck},
		broke: []change{
			{"scripts/pool/settle.lua", "  lane_touch(at, st, key)\n", "  if was.ends == 0 or i.ends > 0 then\n    lane_touch(at, st, key)\n  end\n"},
			{"scripts/pool/lanes.lua", "    lane_touch(at, st, string.sub(member, 3))\n", ""},
		},
	},
	{
		name: "who takes anything comes before who waits for one resource", scene: lanes, rules: []string{checker.Order},
		broke: []change{{"scripts/pool/next.lua", "not (r and string.format(lane_order, lane, r.place) < apart.order)", "not r"}},
	},
	{
		name: "a BindWait does not end", scene: lanes, rules: []string{checker.Order, checker.HandOff, checker.Idle},
		broke: []change{{
			"scripts/pool/apart.lua", "  r.place = lane .. r.place\n", "  ends = ends ~= lane_named and \"0\" or ends\n  r.place = lane .. r.place\n",
		}},
	},
	{
		name: "who waits for what it is bound to is given another", scene: lanes, rules: []string{checker.Asked},
		broke: []change{{"scripts/pool/target.lua", "w.bind ~= \"\" and w.patience > 0 and", "false and"}},
	},
	{
		name: "who asks for one resource is given another", scene: lanes, rules: []string{checker.Asked},
		broke: []change{{"scripts/pool/next.lua", "w.resource = arrival.target or w.resource", "w.resource = nil"}},
	},
	{
		name: "who waits for what is taken out of the pool goes on waiting", scene: lanes, rules: []string{checker.Absent},
		broke: []change{{"scripts/pool/look.lua", "    lanes_empty(at, st, lane, budget)\n", "    lanes_wait(at, st, lane, nil, nil, budget)\n"}},
	},
	{
		name: "what is held is called absent", scene: lanes, rules: []string{checker.Absent},
		broke: []change{{
			"scripts/pool/target.lua", "st.form and item_there(at, w.resource)",
			"st.form and item_there(at, w.resource) and item_read(at, w.resource).listed",
		}},
	},
	{
		name: "lanes have no priorities", scene: lanesBusy, rules: []string{checker.Order},
		broke: []change{{"scripts/pool/apart.lua", "  r.place = lane .. r.place\n", "  r.place = \"254\" .. r.place\n"}},
	},
	{
		name: "a fast release does not look at who waits for its resource alone", scene: lanes, rules: []string{checker.HandOff},
		broke: []change{{"scripts/fast/pool_release.lua", "redis.call(\"HEXISTS\", keys[1], \"l:\" .. key) == 1 or ", ""}},
	},
}
