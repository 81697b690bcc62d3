package checker

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/berth-go/berth/test/torture/history"
)

const (
	ms     = int64(1e6) // in ns, the unit of At
	second = 1000 * ms
	never  = int64(math.MaxInt64)
	// edge is how far the effect of a fault may reach over its From and To.
	edge = 2 * ms
)

// round is a history, by what it is about.
type round struct {
	run    *history.Run
	names  []*name
	calls  []*call
	byOp   map[opID]*call
	claims map[string]*claim // the acquires, by the id of their claim
	drains map[crew][]*call  // what has drained nodes, or ended that, by whose node it is, by invoke
	alone  []*history.Event  // Stuck, Leak, Closed
	losses []history.Fault   // Amnesia or Behind, by From
	killed map[string]int64  // when a process was killed at the latest
	pauses []pause
	// delays are the times that the server took for calls that wait for nobody, the
	// longer ones, to never where there was no answer.
	delays []pause
	// answers are, by process, the times in which something was asked and the server's
	// answer to it came.
	answers map[string][]stretch
	// subscribed are, by node, the moments at which its subscription was made.
	subscribed map[string][]int64
	// refused are, by node, the moments at which its subscription was refused: it goes on without one for a while.
	refused map[string][]int64
	// replaced is when a process got another node, by the id of the former: the swarm may have found that one dead.
	replaced map[string]int64
	// felt is longer than all leases that renew: what was wrong before no longer ends a hold.
	felt int64
	// offset is CLOCK_REALTIME in us less CLOCK_MONOTONIC.
	offset int64
	// skewed says that fences of this round may be ahead of the machine's clock, so
	// that over a loss of data their order need not be that of the grants.
	skewed bool
	// stepped says that the machine's own wall clock jumped: a fence then says nothing
	// about when its grant was.
	stepped bool
}

// pause is a time in which a process wrote nothing, or had no answer: it may not have
// run, nor the server.
type pause struct {
	process  string
	from, to int64
}

// stretch is a time from one moment to another.
type stretch struct{ from, to int64 }

// read sorts a history.
func read(run *history.Run) *round {
	r := &round{
		run: run, byOp: map[opID]*call{}, claims: map[string]*claim{}, drains: map[crew][]*call{}, killed: map[string]int64{},
		answers: map[string][]stretch{}, subscribed: map[string][]int64{}, refused: map[string][]int64{}, replaced: map[string]int64{}, felt: leaseOfHolds, offset: math.MaxInt64,
	}
	for _, f := range run.Faults {
		// A clock that was behind goes forward when it is set right again.
		if f.Amnesia || f.Behind {
			r.losses = append(r.losses, f)
			r.skewed = r.skewed || f.Behind || strings.Contains(f.Name, "clock")
		}
		if f.Kills {
			r.killed[f.Process] = max(r.killed[f.Process], f.To)
		}
	}
	acquires := r.readCalls()
	r.readHolds(acquires)
	r.readNames(acquires)
	r.readAnswers(acquires)
	r.readHalts()
	r.readPauses(busy)
	r.stepped = stepped(run.Events)
	return r
}

// readPauses finds the times in which a process wrote nothing for that long, at the least.
func (r *round) readPauses(least int64) {
	last := map[string]int64{}
	for i := range r.run.Events {
		e := &r.run.Events[i]
		if from, known := last[e.Process]; known && e.At-from >= least {
			r.pauses = append(r.pauses, pause{e.Process, from, e.At})
		}
		last[e.Process] = e.At
	}
}

// readAnswers finds out when the server answered.
func (r *round) readAnswers(acquires map[opID]*claim) {
	for _, k := range r.calls {
		from, process := k.invoke.At, k.invoke.Process
		if k.is(history.OK) {
			r.answers[process] = append(r.answers[process], stretch{from, k.outcome.At})
		}
		_, killed := r.killed[process]
		switch d := k.invoke.Do; {
		case d == history.Acquire || d == history.Reenter || d == history.Drain:
		case k.outcome == nil && !killed:
			r.delays = append(r.delays, pause{process, from, never})
		case k.outcome != nil && k.outcome.At-from >= busy:
			r.delays = append(r.delays, pause{process, from, k.outcome.At})
		}
	}
	for _, a := range acquires {
		if a.queued != nil {
			process := a.invoke.Process
			r.answers[process] = append(r.answers[process], stretch{a.invoke.At, a.queued.At})
		}
	}
	for i := range r.run.Events {
		e := &r.run.Events[i]
		r.offset = min(r.offset, e.Real-e.At/1000) // see stepped
		if e.Former != "" {
			r.replaced[e.Former] = e.At
		}
		if e.Kind == history.Trouble && e.Detail == "subscribed" {
			r.subscribed[e.Node] = append(r.subscribed[e.Node], e.At)
		}
		if e.Kind == history.Trouble && e.Detail == "deaf" && strings.Contains(e.Err, "NOPERM") {
			r.refused[e.Node] = append(r.refused[e.Node], e.At)
		}
	}
}

// stepped says whether the wall clock jumped against the monotonic one. The smallest
// difference of some hundred pairs is true: a Real is read after its At, so that a
// process that is stopped in between makes a difference larger, never smaller.
func stepped(events []history.Event) bool {
	const window, jump = 200, 20_000 // us
	before := int64(math.MaxInt64)
	for i := 0; i+window <= len(events); i += window {
		least := int64(math.MaxInt64)
		for _, e := range events[i : i+window] {
			least = min(least, e.Real-e.At/1000)
		}
		if before != math.MaxInt64 && max(least-before, before-least) > jump {
			return true
		}
		before = least
	}
	return false
}

// pausedBetween says whether the process, any if it is "", may have stood still for so
// long at a time, and that between the two.
func (r *round) pausedBetween(process string, least, from, to int64) bool {
	return slices.ContainsFunc(r.pauses, func(p pause) bool {
		return (process == "" || p.process == process) && p.to-p.from >= least && p.from <= to && p.to >= from
	})
}

// readCalls puts invokes and outcomes together, and returns the acquires.
func (r *round) readCalls() map[opID]*claim {
	acquires := map[opID]*claim{}
	for i := range r.run.Events {
		e := &r.run.Events[i]
		id := opID{e.Process, e.Op}
		switch e.Kind {
		case history.Invoke:
			c := &call{invoke: e}
			if e.Do == history.Acquire || e.Do == history.Try || e.Do == history.Reenter {
				a := &claim{call: *c}
				c, acquires[id] = &a.call, a
				r.felt = max(r.felt, e.Lease*ms*5/4)
			}
			r.byOp[id] = c
			r.calls = append(r.calls, c)
			if e.Do == history.Drain || e.Do == history.StopDrain {
				r.drains[crewOf(e)] = append(r.drains[crewOf(e)], c)
			}
		case history.OK, history.Fail, history.Unknown:
			c := r.byOp[id]
			if c == nil {
				continue
			}
			c.outcome = e
			if a := acquires[id]; a != nil {
				if e.Kind == history.OK {
					a.ok = e
					r.skewed = r.skewed || e.Fence > e.Real+1000
				}
				if e.Claim != "" {
					r.claims[e.Claim] = a
				}
			}
		case history.Stuck, history.Leak, history.Closed:
			r.alone = append(r.alone, e)
		}
	}
	return acquires
}

// readHolds gives the acquires what is known of their waits and holds.
func (r *round) readHolds(acquires map[opID]*claim) {
	of := func(e *history.Event) *claim {
		if a := acquires[opID{e.Process, e.Hold}]; a != nil && e.Hold != 0 {
			return a
		}
		return r.claims[e.Claim]
	}
	for i := range r.run.Events {
		e := &r.run.Events[i]
		a := of(e)
		if a == nil {
			continue
		}
		a.restored = a.restored || a.askedAnew(e)
		switch e.Kind {
		case history.Queued:
			if a.queued == nil {
				a.queued = e
			}
		case history.Restored:
			a.restored = true
		case history.Alive:
			a.alive = append(a.alive, e)
		case history.Ended:
			if a.ended == nil {
				a.ended = e
			}
		case history.Wanted:
			if a.told == nil {
				a.told = e
			}
		case history.Invoke:
			c := r.byOp[opID{e.Process, e.Op}]
			switch e.Do {
			case history.Release:
				a.releases = append(a.releases, c)
			case history.Extend:
				a.extends = append(a.extends, c)
			case history.Look:
				a.looks = append(a.looks, c)
			case history.Force:
				a.forced = append(a.forced, c)
			}
		}
	}
	for _, a := range acquires {
		slices.SortStableFunc(a.alive, func(x, y *history.Event) int { return cmp.Compare(x.At, y.At) })
	}
}

// readNames sorts the acquires by name and by hold.
func (r *round) readNames(acquires map[opID]*claim) {
	byName := map[[2]string]*name{}
	for _, a := range acquires {
		key := [2]string{a.invoke.Primitive, a.invoke.Name}
		n := byName[key]
		if n == nil {
			n = &name{
				primitive: key[0], name: key[1],
				bound: map[string][]*claim{}, adds: map[string][]*call{}, removes: map[string][]*call{},
			}
			byName[key] = n
			r.names = append(r.names, n)
		}
		n.claims = append(n.claims, a)
		if a.ok != nil {
			n.granted = append(n.granted, a)
		}
	}
	slices.SortFunc(r.names, func(a, b *name) int { return cmp.Compare(a.String(), b.String()) })
	for _, k := range r.calls { // by invoke
		if n := byName[[2]string{k.invoke.Primitive, k.invoke.Name}]; n != nil {
			n.calls = append(n.calls, k)
			switch r := k.invoke.Resource; k.invoke.Do {
			case history.Add:
				n.adds[r] = append(n.adds[r], k)
			case history.Remove:
				n.removes[r] = append(n.removes[r], k)
			case history.Pause, history.Unpause:
				n.decides = append(n.decides, k)
			case history.Want:
				n.wants = append(n.wants, k)
			}
		}
	}
	for _, n := range r.names {
		slices.SortFunc(n.claims, func(a, b *claim) int { return cmp.Compare(a.invoke.At, b.invoke.At) })
		slices.SortFunc(n.granted, func(a, b *claim) int {
			return cmp.Or(cmp.Compare(a.fence(), b.fence()), cmp.Compare(a.ok.At, b.ok.At))
		})
		for _, a := range n.claims {
			n.cooldown = max(n.cooldown, a.invoke.Cooldown*ms)
			if a.invoke.Bind != "" {
				n.bound[a.invoke.Bind] = append(n.bound[a.invoke.Bind], a)
			}
		}
		n.readGrants()
	}
}

// readGrants finds the holds of a name, and its capacity.
func (n *name) readGrants() {
	if n.primitive != "sem" {
		n.capacity = 1
	}
	for _, a := range n.granted {
		n.capacity = max(n.capacity, a.ok.Capacity, a.invoke.Capacity)
		// Only a re-entry shares a fence; two that do without one are told of by
		// the rule for fences, and count as two here.
		if last := len(n.holds) - 1; last >= 0 && n.holds[last].fence == a.fence() &&
			(a.invoke.Do == history.Reenter || n.holds[last].first().invoke.Do == history.Reenter) {
			n.holds[last].entries = append(n.holds[last].entries, a)
			continue
		}
		n.holds = append(n.holds, &hold{
			fence: a.fence(), resource: a.ok.Resource, weight: a.weight(), entries: []*claim{a},
		})
	}
}

// faultsBetween are those that were going on at some time between the two.
func (r *round) faultsBetween(from, to int64) []history.Fault {
	var found []history.Fault
	for _, f := range r.run.Faults {
		if f.From-edge <= to && f.To+edge >= from {
			found = append(found, f)
		}
	}
	return found
}

// lossBetween says whether data may have been lost, or a clock have jumped, between
// the two.
func (r *round) lossBetween(from, to int64) bool {
	for _, f := range r.losses {
		if f.From-edge <= to && f.To+edge >= from {
			return true
		}
	}
	return false
}

// forgets says whether the server may have lost something that it answered between the
// two, or its clock have jumped.
func (r *round) forgets(from, to int64) bool {
	for _, f := range r.losses {
		if f.From-edge <= to && f.LostBy()+edge >= from {
			return true
		}
	}
	return false
}

// behind says whether the grant of the claim may have been made by a clock that was
// behind the machine's.
func (r *round) behind(a *claim) bool {
	for _, f := range r.losses {
		if f.Behind && f.From-edge <= a.ok.At && f.To+edge >= a.invoke.At {
			return true
		}
	}
	return false
}

// told says whether the fences of two grants tell in which order they were made:
// within one life of the server's data they always do, and over a loss of it where
// clocks did not jump.
func (r *round) told(a, b *claim) bool {
	return !r.skewed || !r.lossBetween(min(a.invoke.At, b.invoke.At), max(a.ok.At, b.ok.At))
}
