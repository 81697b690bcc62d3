package torture

import (
	"time"

	"github.com/berth-go/berth/test/torture/checker"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// In these much is held for longer than a lease, and wanted back.
var (
	wanting = &scene{name: "holds wanted", edit: want, events: 12_000}

	// A worker's heartbeats run, and their answers are lost, as the pushes are that prompt them.
	mute = &scene{name: "holds wanted, replies lost", proxies: true, edit: want, events: 2000, faults: 8, fault: &fault{
		name: "replies lost", least: 250 * time.Millisecond, most: 300 * time.Millisecond,
		begin: func(r *round, record *history.Fault) func() {
			n := r.rng.IntN(len(r.workers))
			record.Process = r.workers[n].job.Process
			r.world.proxies[n].DropReplies()
			return func() { r.world.proxies[n].Heal(r) }
		},
	}}
)

func want(j *job.Job) {
	longPairs(j)
	j.Lease, j.HoldMax, j.Wants = 1000, 2500, 1
}

// wantMutants break what Want promises.
var wantMutants = []mutant{
	{
		name: "no heartbeat says that a hold is wanted back", scene: wanting, rules: []string{checker.Wanted},
		broke: []change{{"scripts/line/renew.lua", `or r.wanted ~= "" and "wanted" or "held"`, `or "held"`}},
	},
	{
		name: "who is granted what was wanted back is asked as well", scene: wanting, rules: []string{checker.Wanted},
		broke: []change{
			{"scripts/line/release.lua", "  fatten(at, st, false, claim)\n", "  fatten(at, st, false, claim)\n  at.mark = r.wanted\n"},
			{"scripts/line/handoff.lua", "    local alive, place = record_alive(r), r.place\n", "    local alive, place = record_alive(r), r.place\n    r.wanted = at.mark or \"\"\n"},
		},
	},
	{
		name: "one heartbeat says that a hold is wanted back, heard or not", scene: mute, rules: []string{checker.Wanted},
		broke: []change{{
			"scripts/line/renew.lua", "        local limited = kind_renew(", `        local asked = r.wanted
        r.wanted, r.changed = "", r.changed or asked ~= ""
        local limited = kind_renew(`,
		}, {"scripts/line/renew.lua", `or r.wanted ~= "" and "wanted" or "held"`, `or asked ~= "" and "wanted" or "held"`}},
	},
}
