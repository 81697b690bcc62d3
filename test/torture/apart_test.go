package torture

import (
	"slices"
	"time"

	"github.com/berth-go/berth/test/harness"
	"github.com/berth-go/berth/test/torture/history"
	"github.com/berth-go/berth/test/torture/job"
)

// oneStopped is a server of several that stands still, for longer than a lease, and not for so long that another one takes over.
// What is on the others is held for long meanwhile, by nodes that have names of all kinds on all of them, and must be kept. It
// is none of those on which nodes are looked for and operators are heard, where there is another one: these are for all names.
var oneStopped = &fault{
	name: "one server of several stopped (SIGSTOP) for more than a lease", ofServer: true, alone: true,
	least: 1500 * time.Millisecond, most: 2500 * time.Millisecond,
	begin: func(r *round, record *history.Fault) func() {
		r.command(job.Long)
		r.wait(500*time.Millisecond, time.Second) // some hold for long now
		s, met := r.oneOfSeveral()
		record.Names, record.Detail = met, s.Addr
		lag := r.meter(slices.DeleteFunc(r.world.d.Masters(r), func(other *harness.Server) bool { return other == s }))
		record.From, record.Real = history.Now()
		s.Stop(r)
		return func() {
			s.Cont(r)
			r.command(job.Short)
			if worst := lag(); worst < hindered && len(met) > 0 {
				record.Keeps = r.workers[0].job.Lease
			} else {
				r.Logf("%v of %s stood still, and others took up to %v to answer: what was held may be lost", met, s.Addr, worst)
			}
		}
	},
}

// uneventful is nothing, or the fault of a worker that comes during it, for as long as a drain takes and a little more: what else
// comes in a round leaves most drains no time to end, and the rule about them little to look at.
var uneventful = &fault{
	name: "none, for as long as a drain takes", ofServer: true, least: 9 * time.Second, most: 10 * time.Second,
	begin: func(_ *round, record *history.Fault) func() {
		record.Unseen = true
		return nothing
	},
}

// hindered is how late a server may be that hinders no heartbeat of a lease of a second.
const hindered = 200 * time.Millisecond

// oneOfSeveral is a master, and the names that are on it; none where it is one of those that all names need.
func (r *round) oneOfSeveral() (s *harness.Server, met []string) {
	r.Helper()
	on := map[*harness.Server][]string{}
	for _, name := range r.allNames() {
		master := r.world.d.Master(r, r.ns+":"+name)
		on[master] = append(on[master], name)
	}
	for _, common := range []string{"notice:{all}", "swarm:{nodes}"} {
		delete(on, r.world.d.Master(r, r.ns+":"+common))
	}
	masters := r.world.d.Masters(r)
	r.rng.Shuffle(len(masters), func(i, j int) { masters[i], masters[j] = masters[j], masters[i] })
	for _, s = range masters {
		if met = on[s]; len(met) > 0 {
			break
		}
	}
	return s, met
}

// name draws one of those that are contended for, as it is in keys.
func (r *round) name() string {
	all := r.allNames()
	return all[r.rng.IntN(len(all))]
}

// allNames are those that are contended for, as they are in keys.
func (r *round) allNames() (all []string) {
	for _, s := range sems {
		all = append(all, "sem:{"+s.Name+"}")
	}
	for _, l := range locks {
		all = append(all, "lock:{"+l.Name+"}")
	}
	for _, p := range pools {
		all = append(all, "pool:{"+p.Name+"}")
	}
	return all
}
